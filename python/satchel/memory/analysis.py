"""The terms of a text: one analyser for every backend, so that all of them rank alike."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["ANALYSER", "terms_of"]

ANALYSER: Final = "satchel-1"
"""Name and version of the analyser; kept with a store, for terms of another cannot be compared."""

_WORD = re.compile(r"[A-Za-z0-9_]+|[^\W\d_]+")
_CJK = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_STOP = frozenset("a an the and or of to in on at for is are was were be been it its this that these those i you he she we they me him her us them my your his their our with as by from do did does have has had what when where who which how why will would can could should so but if not no about".split())


def _stem(word: str) -> str:
    for suffix, least in (("ings", 3), ("ing", 3), ("edly", 3), ("ies", 2), ("ed", 3), ("ly", 4), ("es", 3), ("s", 3)):
        if word.endswith(suffix) and len(word) - len(suffix) >= least:
            word = word[: -len(suffix)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    if len(word) > 3 and word.endswith("e"):
        word = word[:-1]
    if len(word) > 3 and word.endswith("y"):
        word = word[:-1] + "i"
    return word


def terms_of(text: str) -> list[str]:
    """The terms of a text, in order, repeated as often as they occur."""
    found = []
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        if _CJK.search(word):
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        elif word not in _STOP:
            found.append(_stem(word))
    return found
