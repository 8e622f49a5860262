"""Trimming of one text by its structure: what it is made of decides what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from satchel import _core
from satchel._arguments import invalid, optional_text, plain_texts, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from satchel.counting import AnyCounter

__all__ = ["Structure", "Trimmed", "trim_text"]

Structure: TypeAlias = Literal[
    "json",
    "json_lines",
    "diff",
    "trace",
    "log",
    "listing",
    "search",
    "table",
    "code",
    "text",
]
"""What a text can be made of."""

_DEFAULT_ENCODING: Final = "o200k_base"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trimmed:
    """A text within its limit.

    Attributes:
        text: what is left, with markers that say what and how much is missing where.
        structure: what the text was taken for.
        left_out_lines: lines that are missing; for ``"json"`` elements.
    """

    text: str
    structure: Structure
    left_out_lines: int


def trim_text(
    text: str,
    *,
    max_tokens: int | None = None,
    max_chars: int | None = None,
    counter: AnyCounter | None = None,
    pointer: str | None = None,
    matching: Iterable[str] = (),
) -> Trimmed:
    r"""Trim a text to a limit and keep what tells most.

    Whole lines stay or go. Of logs stay the ends, failures, outcomes and one line of every kind
    with a count of the others; of diffs the list of files, the hunks and their first changes; of
    code the signatures; of stack traces what was raised and the innermost frames of own code; of
    tables header, totals and extremes; of search results and listings something of every file and
    folder; of plain text headings, start and end. JSON stays valid JSON: rows of a new shape,
    extremes and telling members stay, unchanged in every byte, and a string or a member ``"…"``
    says what is missing.

    One line that is longer than the limit keeps its start and end. A limit too small for any
    marker leaves the start alone, of JSON too.

    Args:
        text: what to trim, such as the output of a tool. Lone surrogates become U+FFFD.
        max_tokens: the most tokens; exactly one of this and ``max_chars`` is given.
        max_chars: the most characters (code points).
        counter: counts ``max_tokens``; by default ``o200k_base``.
        pointer: where the whole text can be found; the first marker names it.
        matching: literal strings; what holds one of them is kept before anything else.

    Returns:
        The text, unchanged if it is within the limit, and what was done to it.

    Raises:
        InputError: ``invalid_value`` if not exactly one limit is given, it is negative or no
            integer, or another argument has the wrong type; ``unknown_encoding``;
            ``counter_failed`` if a counter of the caller's own fails.

    Example:
        >>> import satchel
        >>> log = "start\n" + "GET /health 200\n" * 40 + "ERROR: disk full\n"
        >>> print(satchel.trim_text(log, max_chars=80).text, end="")
        start
        [… 40 lines left out (2-41): 40 like "GET /health 200"]
        ERROR: disk full
    """
    if (max_tokens is None) == (max_chars is None):
        message = "exactly one of max_tokens and max_chars is given"
        raise invalid(message)
    limit = (
        whole_number("max_tokens", max_tokens)
        if max_chars is None
        else whole_number("max_chars", max_chars)
    )
    trimmed, structure, left_out = _core.trim_text(
        text,
        limit=limit,
        counter=_counter(counter) if max_chars is None else None,
        pointer=optional_text("pointer", pointer) or "",
        matching=plain_texts("matching", matching),
    )
    return Trimmed(text=trimmed, structure=cast("Structure", structure), left_out_lines=left_out)


def _counter(counter: AnyCounter | None) -> _core.Counter:
    if isinstance(counter, _core.Counter):
        return counter
    return _core.Counter(_DEFAULT_ENCODING if counter is None else counter)
