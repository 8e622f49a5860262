"""The part of a conversation that a summarizer reads, as text that cannot forge anything.

One element a message, numbered as in the history. Content is escaped, so a tool result that writes
``</message><message role="user">`` stays the text it is.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING, Any, Final, cast

from satchel import _core
from satchel._giving_way import giving_way
from satchel.trimming import trim_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from satchel.counting import Counter
    from satchel.summarize.base import Language

__all__ = ["Said", "chunks", "language_of", "read_back", "transcript_of"]

RESULT_TOKENS: Final = 800
"""Most tokens of one text of a tool: a summary needs what came of it, and all of it has a page."""

_ELEMENT: Final = re.compile(
    r'<message n="(\d+)" role="([a-z]+)"(?: tool="([^"]*)")?>\n(.*?)\n</message>', re.DOTALL
)
_HANGUL: Final = re.compile(r"[\uac00-\ud7a3]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_KOREAN_SHARE: Final = 0.2
_SHOWN: Final = {"image": "[image]", "audio": "[audio]", "file": "[file]"}


@dataclass(frozen=True, slots=True)
class Said:
    """What one message says, as far as a summary is concerned.

    Attributes:
        index: raw index of the message.
        role: who speaks; ``tool`` for a result, also in dialects where it comes as the user's.
        tool: the tool's name for a call, and for a result where the dialect says it; else None.
        text: what it says; a call's arguments as JSON.
    """

    index: int
    role: str
    tool: str | None
    text: str

    @property
    def is_speech(self) -> bool:
        """Whether somebody says it, rather than calls a tool or is one."""
        return self.role != "tool" and self.tool is None


def said_in(messages: Iterable[Any], dialect: str, *, first: int = 0) -> Iterator[Said]:
    """What each message says, part by part; reasoning and opaque parts say nothing.

    Raises:
        InputError: ``invalid_message``.
    """
    for offset, message in enumerate(giving_way(messages)):
        described = _core.describe_message(message, dialect)
        for part in described["parts"]:
            kind, tool = part["kind"], part["tool"]
            if kind in _SHOWN:
                yield Said(first + offset, described["role"], None, _SHOWN[kind])
                continue
            if kind not in ("text", "call", "result"):
                continue
            text = bytes(part["page"]).decode("utf-8", "replace")
            if kind == "result" and text[:1] in "[{":
                text = _texts_of(text)
            if not text.strip():
                continue
            role = "tool" if kind == "result" else described["role"]
            yield Said(first + offset, role, tool if kind != "text" else None, text)


def transcript_of(said: Iterable[Said], counter: Counter) -> list[str]:
    """One element for each text, in order; of a long one of a tool its telling lines."""
    found: list[str] = []
    for one in said:
        text = one.text
        if not one.is_speech and not counter.fits(text, RESULT_TOKENS):
            text = trim_text(text, max_tokens=RESULT_TOKENS, counter=counter).text
        found.append(_element(one, text))
    return found


def chunks(elements: Sequence[str], counter: Counter, room: int) -> list[str]:
    """The elements in order as texts of at most ``room`` tokens each.

    An element that is longer alone is cut inside and closed again; what is left of it goes on in
    the next text.
    """
    found: list[str] = []
    pending: list[str] = []
    used = 0
    for element in elements:
        for piece in _pieces(element, counter, room):
            # One more for the line break, whatever it joins.
            tokens = counter.count(piece) + 1
            if pending and used + tokens > room:
                found.append("\n".join(pending))
                pending, used = [], 0
            pending.append(piece)
            used += tokens
    if pending:
        found.append("\n".join(pending))
    return found


def read_back(transcript: str) -> list[Said]:
    """What `transcript_of` wrote, as it was said."""
    # One by one: a single search through megabytes would hold the interpreter all the while.
    found = (match.groups() for match in _ELEMENT.finditer(transcript))
    return [
        Said(int(index), role, unescape(tool) if tool else None, unescape(text))
        for index, role, tool, text in found
    ]


def language_of(texts: Iterable[str]) -> Language:
    """``ko`` if more than a fifth of the letters are Hangul, else ``en``."""
    letters = hangul = 0
    for text in texts:
        letters += len(_LETTER.findall(text))
        hangul += len(_HANGUL.findall(text))
    return "ko" if hangul > _KOREAN_SHARE * max(1, letters) else "en"


def _element(one: Said, text: str) -> str:
    tool = f' tool="{escape(one.tool)}"' if one.tool else ""
    body = escape(text.strip("\n"), quote=False)
    return f'<message n="{one.index}" role="{one.role}"{tool}>\n{body}\n</message>'


def _pieces(element: str, counter: Counter, room: int) -> Iterator[str]:
    if counter.fits(element, room - 1):
        yield element
        return
    head, _, rest = element.partition("\n")
    body = rest.removesuffix("\n</message>")
    around = counter.count(f"{head}\n\n</message>") + 2
    inside = max(1, room - around)
    while body:
        piece = counter.truncate(body, inside) or body[:1]
        # Not inside an entity: what follows an "&" without its ";" moves on.
        entity = piece.rfind("&")
        if entity > 0 and ";" not in piece[entity:] and len(piece) < len(body):
            piece = piece[:entity]
        yield f"{head}\n{piece}\n</message>"
        body = body[len(piece) :]


def _texts_of(page: str) -> str:
    """The texts in a result that is JSON; the JSON itself if it has none."""
    try:
        value = json.loads(page)
    except (ValueError, RecursionError):
        return page
    blocks = cast("Sequence[Any]", value) if isinstance(value, list) else [value]
    texts = [
        cast("Mapping[str, Any]", block).get("text") for block in blocks if isinstance(block, dict)
    ]
    return "\n".join(text for text in texts if isinstance(text, str)) or page
