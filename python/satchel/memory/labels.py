"""Who speaks: the name that a text begins with, and whether a question names it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from satchel.memory.item import MemoryItem

__all__ = ["label_of", "names", "said_text"]

_LABEL: Final = re.compile(r"(?:[\[(][^\])\n]{1,60}[\])]\s?)?([^\W\d][^\n:]{0,39}):\s")
"""A name and a colon, perhaps behind a date in brackets."""

_MOST_WORDS: Final = 4
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")


def label_of(item: MemoryItem) -> str | None:
    """Who said it, in lower case: the source's speaker, or a name before a colon; None for none."""
    if item.source.speaker:
        return item.source.speaker.casefold()
    found = _LABEL.match(item.text)
    if found is None or len(found[1].split()) > _MOST_WORDS:
        return None
    return found[1].strip().casefold()


def said_text(text: str) -> str:
    """The text without the name before it."""
    found = _LABEL.match(text)
    if found is None or len(found[1].split()) > _MOST_WORDS:
        return text
    return text[found.end() :] or text


def names(query: str, label: str) -> bool:
    """Whether a query names who speaks; in Korean and Japanese particles may follow the name."""
    folded = query.casefold()
    ends = "" if _CJK.search(label) else r"(?!\w)"
    parts = [label, *label.split()[:1]]
    return any(re.search(rf"(?<!\w){re.escape(part)}{ends}", folded) for part in parts)
