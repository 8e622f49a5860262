"""Reading pages of a log: over all its parts, and with the lines that are wanted.

Reading changes nothing. A page of a part before a change of dialect is found there.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from satchel import _core
from satchel._arguments import MOST_WHOLE, plain_text, whole_number
from satchel.errors import InputError, PageNotFoundError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel._era import Era

__all__ = ["PAGE_TOOL_NAME", "Source", "read_page", "source_of", "split_lines"]

PAGE_TOOL_NAME: Final = "page_in"
"""The name of the tool with which a model reads pages; the notes in windows speak of it."""

_PAIR: Final = 2
"""The largest index or line number: far above any history, and exact in every JSON reader."""


@dataclass(frozen=True, slots=True)
class Source:
    """A page as a model reads it, and where it is from.

    Attributes:
        pointer: its pointer.
        text: its text; of a list of blocks, their texts.
        message: raw index of its message; None for the index of everything gone.
        role: the role of that message.
        kind: ``text``, ``call``, ``result``, ``image``, ...; ``index`` for the index.
        copied: the arguments of the call of the page-in tool that it is a result of, else None.
    """

    pointer: str
    text: str
    message: int | None
    role: str
    kind: str
    copied: dict[str, Any] | None = None


def read_page(
    eras: Sequence[Era], pointer: str, pattern: str | None, lines: tuple[int, int] | None
) -> str:
    """The content behind a pointer, in any part of a log; ``eras`` has the newest first.

    Raises:
        PageNotFoundError: ``page_not_found``.
        InputError: ``invalid_value``.
    """
    plain_text("pointer", pointer)
    if pattern is not None:
        plain_text("pattern", pattern)
    if lines is not None:
        given: object = lines
        if not isinstance(given, (tuple, list)) or len(cast("Sequence[object]", given)) != _PAIR:
            message = "lines must be two line numbers, the first and the last"
            raise InputError(message, code="invalid_value")
        for line in lines:
            whole_number("a line number", line, least=1, most=MOST_WHOLE)
        lines = (lines[0], lines[1])
    if len(eras) > 1 and _is_index(eras, pointer):
        pages = (era.core.page_in(pointer, pattern=None, lines=None) for era in reversed(eras))
        return _selected("".join(pages), pattern, lines)
    for era in eras[:-1]:
        try:
            return era.core.page_in(pointer, pattern=pattern, lines=lines)
        except PageNotFoundError:
            continue
    return eras[-1].core.page_in(pointer, pattern=pattern, lines=lines)


def source_of(eras: Sequence[Era], pointer: str) -> Source:
    """The page behind a pointer as a model reads it; arguments and errors as in `read_page`."""
    plain_text("pointer", pointer)
    if _is_index(eras, pointer):
        text = "".join(era.core.page_source(pointer)[0] for era in reversed(eras))
        return Source(pointer.strip(), text, None, "", "index")
    for era in eras:
        try:
            text, message, part, role, kind = era.core.page_source(pointer)
        except PageNotFoundError:
            continue
        if message is None:  # only the index has none
            break
        copied = _copied(era, message, part) if kind == "result" else None
        return Source(pointer.strip(), text, era.outside(message), role, kind, copied)
    message_text = "no page has this pointer in this log"
    raise PageNotFoundError(message_text, code="page_not_found")


def split_lines(text: str) -> list[str]:
    """The lines of a text, each with its own line end; only a line feed ends one."""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def _is_index(eras: Sequence[Era], pointer: str) -> bool:
    return pointer.strip() == eras[0].core.index_pointer()


def _copied(era: Era, message: int, part: int) -> dict[str, Any] | None:
    """The arguments of the page-in call that this result answers; None for any other result."""
    [step] = era.core.explain(message)
    rows = [
        (at, place, row)
        for at, one in enumerate(era.core.messages(step[0], message + 1), step[0])
        for place, row in enumerate(_core.describe_message(one, era.dialect)["parts"])
    ]
    [result] = [row for at, place, row in rows if (at, place) == (message, part)]
    calls = [row for _, _, row in rows if row["kind"] == "call"]
    if result["id"]:
        calls = [row for row in calls if row["id"] == result["id"]]
    else:
        # Without ids results stand in the order of the calls of their tool.
        before = [
            row
            for at, place, row in rows
            if row["kind"] == "result" and (at, place) < (message, part)
        ]
        same = sum(row["tool"] == result["tool"] for row in before)
        calls = [row for row in calls if row["tool"] == result["tool"]][same:]
    if not calls or calls[0]["tool"] != PAGE_TOOL_NAME:
        return None
    try:
        arguments: object = json.loads(calls[0]["page"])
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else None


def _selected(text: str, pattern: str | None, lines: tuple[int, int] | None) -> str:
    """The lines of a text that hold ``pattern`` and stand in ``lines``, from 1, both included."""
    return "".join(
        line
        for number, line in enumerate(split_lines(text), 1)
        if (lines is None or lines[0] <= number <= lines[1])
        and (pattern is None or pattern in line)
    )
