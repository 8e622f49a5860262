"""Lines that a summary must not replace: quoted word for word, with where they are from.

Standing instructions and decisions of users, what the assistant committed itself to, and errors.
Only what users said grants the first rank, so a tool's output cannot have itself quoted as a rule.
A line is quoted whole or not at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from satchel import _core
from satchel._giving_way import giving_way
from satchel.summarize.extractive import is_decision, is_error, is_standing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from satchel.counting import Counter

__all__ = ["receipts_of"]

_SHORTEST: Final = 3
_LONGEST: Final = 400
_AROUND: Final = 12
"""Tokens of the label of a line."""

_MOST_TRIED: Final = 1_000
"""Lines that are tried for a place; sorting all would hold the interpreter for long."""

_FADING: Final = 0.85
"""What a line is worth that an earlier summary quoted, beside a new one of its kind."""


@dataclass(frozen=True, slots=True)
class _Line:
    place: tuple[int, int]
    source: str
    message: int | None
    text: str
    worth: float


def receipts_of(
    messages: Sequence[Any],
    dialect: str,
    *,
    first: int,
    before: Iterable[Mapping[str, Any]],
    counter: Counter,
    max_tokens: int,
) -> list[dict[str, Any]]:
    """The receipts of a summary event, in the order of the conversation.

    Args:
        messages: what the summary covers.
        dialect: its dialect.
        first: raw index of the first of them.
        before: receipts of the summary before.
        counter: counts them.
        max_tokens: the most tokens of all; what does not fit stays behind its pointer.

    Raises:
        InputError: ``invalid_message``.
    """
    # One after the other: forty thousand lines at once are work for the garbage collector.
    lines = chain(_carried(before), _found(messages, dialect, first))
    seen: set[str] = set()
    kept: list[_Line] = []
    left = max_tokens
    most = max(_MOST_TRIED, max_tokens)
    for line in nsmallest(most, lines, key=lambda line: (-line.worth, line.place)):
        if line.text in seen:
            continue
        cost = counter.count(line.text) + _AROUND
        if cost <= left:
            seen.add(line.text)
            left -= cost
            kept.append(line)
    kept.sort(key=lambda line: line.place)
    return [
        {
            **({} if line.message is None else {"message": line.message}),
            "source": line.source,
            "text": line.text,
        }
        for line in kept
    ]


def _carried(before: Iterable[Mapping[str, Any]]) -> Iterator[_Line]:
    for number, receipt in enumerate(before):
        text = receipt["text"]
        role = receipt["source"].rpartition(", ")[2]
        message = receipt.get("message")
        place = (-1 if message is None else message, number)
        yield _Line(place, receipt["source"], message, text, _FADING * _worth(text, role))


def _found(messages: Sequence[Any], dialect: str, first: int) -> Iterator[_Line]:
    for offset, message in enumerate(giving_way(messages)):
        described = _core.describe_message(message, dialect)
        for part in described["parts"]:
            if part["kind"] not in ("text", "result"):
                continue
            role = "tool" if part["kind"] == "result" else described["role"]
            page = bytes(part["page"])
            if role == "tool" and page[:1] in (b"[", b"{"):
                continue  # JSON: a line of it is no sentence
            # Later lines of a long error are its cause; no line is quoted twice.
            for number, raw in enumerate(giving_way(page.decode("utf-8", "ignore").splitlines())):
                text = raw.strip()
                worth = _worth(text, role) if _SHORTEST <= len(text) <= _LONGEST else 0.0
                if worth > 0:
                    index = first + offset
                    source = f"message {index}, {role}"
                    yield _Line((index, number), source, index, text, worth)


def _worth(text: str, role: str) -> float:
    if role == "tool":
        return 1.0 if is_error(text) else 0.0
    if role == "user":
        if is_standing(text):
            return 4.0
        if is_decision(text):
            return 3.0
        return 1.5 if any(letter.isdigit() for letter in text) else 0.0
    if role == "assistant":
        return 2.0 if is_decision(text) else 0.0
    return 0.0
