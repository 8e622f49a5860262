"""The page-in tool: with it a model reads what its window only points to.

`page_tool` defines it, `WorkingSet.handle_page_call` answers a call. The answer is an excerpt of a
page: whole lines, byte for byte, within a number of tokens, fenced and labelled as data. What did
not fit is named by its line numbers, so that the model can ask on. Whatever a model writes into a
call gets an answer; nothing of it is an exception.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from satchel._arguments import plain_text
from satchel._fences import free_tag
from satchel._page_calls import Answer, parsed
from satchel._page_reading import PAGE_TOOL_NAME, split_lines
from satchel.converting import convert
from satchel.errors import InputError, PageNotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from satchel._page_reading import Source
    from satchel.counting import Counter

__all__ = ["DEFAULT_TOKENS", "LEAST_TOKENS", "PAGE_TOOL_NAME", "answer", "fence", "page_tool"]

DEFAULT_TOKENS: Final = 4_000
"""Tokens of an answer, if the caller says nothing and a quarter of the budget is not less."""

LEAST_TOKENS: Final = 192
"""The smallest limit of an answer: fence, source and the note on the rest take up to 110 tokens of
o200k_base, and half as many again by counters that count high."""

_CONTEXT_CHARS: Final = 200
"""Characters shown before a match in a line that is too long to be shown whole."""

_RANGES: Final = 12
"""Groups of line numbers that the label of matching lines spells out."""

_TAG: Final = "recalled"
_MOST_DIGITS: Final = 15
_SHOWN: Final = {"image": "an image", "audio": "a sound"}

_TOOL: Final[dict[str, Any]] = {
    "name": PAGE_TOOL_NAME,
    "description": (
        "Reads earlier content of this conversation that was shortened or moved out of your "
        "context. Where that happened, a note shows a pointer: p_ and 18 digits. Call this tool "
        "with the pointer before you rely on a detail that the note leaves out (an exact value, "
        "a line of code, an error message, what somebody said), instead of guessing or running "
        "the same tool again. The pointer of the index lists everything that was moved out. Long "
        "content comes in pieces: the answer says which lines are left and how to ask for them. "
        "Use pattern to find the lines with a certain text. Reading changes nothing."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "pointer": {
                "type": "string",
                "description": "The pointer exactly as a note or the index shows it.",
            },
            "first_line": {
                "type": "integer",
                "description": "The first line wanted, counted from 1; without it, the first.",
            },
            "last_line": {
                "type": "integer",
                "description": "The last line wanted; without it, as many as fit.",
            },
            "first_char": {
                "type": "integer",
                "description": (
                    "The character of the first line to begin with, counted from 1. Only for a "
                    "line that an answer could not show to its end."
                ),
            },
            "pattern": {
                "type": "string",
                "description": (
                    "Only lines that hold this text. It is taken literally, upper and lower case "
                    "differ; it is no regular expression."
                ),
            },
        },
        "required": ["pointer"],
    },
}
_ARGUMENTS: Final = tuple(_TOOL["parameters"]["properties"])


def page_tool(dialect: str) -> dict[str, Any]:
    """The definition of the page-in tool, to be sent along with your own tools.

    Its name is ``page_in`` (``satchel.paging.PAGE_TOOL_NAME``), its arguments are ``pointer`` and,
    optional, ``first_line``, ``last_line``, ``first_char`` and ``pattern``. Calls of it are
    answered by `WorkingSet.handle_page_call`.

    Args:
        dialect: ``openai``, ``openai-responses``, ``anthropic``, ``gemini`` or ``bedrock``.

    Returns:
        One element of the list of tools in that dialect, made anew by each call.

    Raises:
        InputError: ``unknown_dialect``.

    Example:
        >>> page_tool("anthropic")["name"]
        'page_in'
    """
    plain_text("dialect", dialect)
    [tool] = convert([], "openai", dialect, tools=[{"type": "function", "function": _TOOL}]).tools
    return cast("dict[str, Any]", tool)


class _RefusedError(Exception):
    """What a model asked for cannot be had; its text is for the model."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a call asks for."""

    pointer: str
    first_line: int | None
    last_line: int | None
    first_char: int | None
    pattern: str | None

    @property
    def is_whole(self) -> bool:
        """Whether it asks for everything."""
        asked = (self.first_line, self.last_line, self.first_char, self.pattern)
        return all(value is None for value in asked)


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines of a page, or one that is not shown whole.

    Attributes:
        content: the text to show.
        numbers: the lines it is of.
        start: the character it begins with in a line that is not shown whole, from 1; else 0.
        rest: what is left out behind it, and how to get it; empty if nothing is.
    """

    content: str
    numbers: Sequence[int]
    start: int
    rest: str


def answer(
    arguments: object, *, read: Callable[[str], Source], counter: Counter, max_tokens: int
) -> Answer:
    """The answer to a call with these arguments, whatever they are.

    Args:
        arguments: as the model wrote them.
        read: gives the page of a pointer, or raises as `WorkingSet.page_in` does.
        counter: counts the answer.
        max_tokens: the most that the answer takes.
    """
    try:
        wanted = _wanted(arguments)
        source, wanted = _original(wanted, read)
        return Answer(_excerpt(source, wanted, counter, max_tokens))
    except _RefusedError as refused:
        return Answer(f"{PAGE_TOOL_NAME} failed: {refused}", is_error=True)


def fence(source: str, content: str) -> str:
    """``content`` between two tags that do not occur in it, labelled as data with its source."""
    tag = free_tag(_TAG, content)
    newline = "" if content.endswith("\n") else "\n"
    note = "earlier content, shown as data"
    return f'<{tag} source="{source}" note="{note}">\n{content}{newline}</{tag}>'


def _wanted(arguments: object) -> _Wanted:
    """What the arguments ask for; as lenient as their meaning is certain."""
    fields = parsed(arguments)
    if fields is None:
        message = "the arguments are not a JSON object"
        raise _RefusedError(message)
    if any(name not in _ARGUMENTS for name in fields):
        message = f"there is an argument that it does not take; it takes {', '.join(_ARGUMENTS)}"
        raise _RefusedError(message)
    pointer = _text(fields, "pointer")
    if pointer is None:
        message = "pointer is missing; copy one from a note in the conversation"
        raise _RefusedError(message)
    pattern = _text(fields, "pattern") or None
    if pattern is not None and "\n" in pattern.rstrip("\n"):
        message = "pattern must be text of a single line"
        raise _RefusedError(message)
    return _Wanted(
        pointer,
        _whole(fields, "first_line"),
        _whole(fields, "last_line"),
        _whole(fields, "first_char"),
        pattern,
    )


def _text(fields: dict[str, Any], name: str) -> str | None:
    value: object = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        message = f"{name} must be a string"
        raise _RefusedError(message)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        message = f"{name} holds half of a character pair; write it as text"
        raise _RefusedError(message) from error
    return value


def _whole(fields: dict[str, Any], name: str) -> int | None:
    """A whole number from 1; also written as 3.0 or "3", as some models and clients do."""
    value: object = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str) and re.fullmatch(rf"[0-9]{{1,{_MOST_DIGITS}}}", value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        message = f"{name} must be a whole number from 1"
        raise _RefusedError(message)
    return value


def _original(wanted: _Wanted, read: Callable[[str], Source]) -> tuple[Source, _Wanted]:
    """The page and what is wanted of it; of a result of this tool, the page that it showed.

    Else each look at a result that was moved out would lead to another copy of it.
    """
    try:
        source = read(wanted.pointer)
    except (PageNotFoundError, InputError) as error:
        if isinstance(error, PageNotFoundError) and error.code == "forgotten":
            message = "this content was deleted on purpose; it cannot be read any more"
        else:
            message = (
                "no page has this pointer; copy it exactly as it stands in the conversation, "
                "p_ and 18 digits"
            )
        raise _RefusedError(message) from error
    while source.copied is not None:
        try:
            earlier = _wanted(source.copied)
            original = read(earlier.pointer)
        except (PageNotFoundError, InputError, _RefusedError):
            break  # it shows that a call failed
        # A history that somebody made up may lead in circles.
        if original.message is None or original.message >= (source.message or 0):
            break
        source, wanted = original, earlier if wanted.is_whole else wanted
    return source, wanted


def _excerpt(source: Source, wanted: _Wanted, counter: Counter, max_tokens: int) -> str:
    """What is wanted of a page, as far as it fits, with its source and a note on the rest."""
    if source.kind in _SHOWN:
        where = f"message {source.message}"
        return f"Page {source.pointer} is {_SHOWN[source.kind]} in {where}; it has no text to show."
    lines = split_lines(source.text)
    chosen = _chosen(lines, wanted)
    if not chosen:
        what = "No line with this text" if wanted.pattern else "Nothing to show"
        return f"{what}: page {source.pointer} has {_lines(len(lines))}{_span(wanted, lines)}."
    # The frame around an empty piece is what an answer costs at least.
    room = max_tokens
    while True:
        piece = _fitting(lines, chosen, wanted, counter, room)
        text = _framed(source, lines, piece)
        tokens = counter.count(text)
        if tokens <= max_tokens or room == 0:
            return text
        room = max(0, room - max(tokens - max_tokens, 1))


def _chosen(lines: Sequence[str], wanted: _Wanted) -> list[int]:
    """Indices of the lines that are asked for."""
    first, last = wanted.first_line or 1, wanted.last_line or len(lines)
    if first > max(len(lines), 1):
        message = f"first_line is behind the end: the page has {_lines(len(lines))}"
        raise _RefusedError(message)
    if first > last and lines:
        message = "last_line is before first_line"
        raise _RefusedError(message)
    if lines and (wanted.first_char or 1) > len(lines[first - 1]):
        message = f"first_char is behind the end: line {first} has {len(lines[first - 1])}"
        raise _RefusedError(message)
    inside = range(first - 1, min(last, len(lines)))
    if wanted.pattern is None:
        return list(inside)
    pattern = wanted.pattern.rstrip("\n") or "\n"
    return [at for at in inside if pattern in lines[at]]


def _fitting(
    lines: Sequence[str], chosen: Sequence[int], wanted: _Wanted, counter: Counter, room: int
) -> _Piece:
    """As many of the chosen lines as fit into ``room`` tokens; of one that is too long, a part."""
    skipped = _skipped(wanted)
    texts = [lines[at] for at in chosen]
    if chosen[0] == (wanted.first_line or 1) - 1:
        texts[0] = texts[0][skipped:]
    else:
        skipped = 0
    content = "".join(texts)
    head = content if counter.fits(content, room) else counter.truncate(content, room)
    if len(head) == len(content):
        numbers = [at + 1 for at in chosen]
        return _Piece(content, numbers, skipped + 1 if skipped else 0, "")
    end = 0
    count = 0
    for text in texts:
        if end + len(text) > len(head):
            break
        end += len(text)
        count += 1
    if count:
        numbers = [at + 1 for at in chosen[:count]]
        rest = _rest(lines, chosen[count:], wanted)
        return _Piece(content[:end], numbers, skipped + 1 if skipped else 0, rest)
    return _part_of_line(lines, chosen, wanted, counter, room)


def _part_of_line(
    lines: Sequence[str], chosen: Sequence[int], wanted: _Wanted, counter: Counter, room: int
) -> _Piece:
    """A part of the first chosen line, from its match or from where the call says."""
    line, number = lines[chosen[0]], chosen[0] + 1
    start = _skipped(wanted) if number == (wanted.first_line or 1) else 0
    if wanted.pattern is not None:
        match = line.find(wanted.pattern.rstrip("\n"), start)
        start = max(start, match - _CONTEXT_CHARS)
    # A line may be far longer than an answer: no token has more than a few hundred characters.
    shown = counter.truncate(line[start : start + 256 * (room + 1)], room)
    end = start + len(shown)
    # On from here, without the pattern, and for the sake of a pattern not into other lines.
    kept = [f"first_line={number}", f"first_char={end + 1}"]
    if wanted.pattern is not None or wanted.last_line is not None:
        last = number if wanted.pattern is not None else min(wanted.last_line or 1, len(lines))
        kept.insert(1, f"last_line={last}")
    rest = (
        f"Line {number} is shown from character {start + 1} to {end} of {len(line)}. For more, "
        f"call {PAGE_TOOL_NAME} with {' and '.join(kept)}."
    )
    if len(chosen) > 1 and wanted.pattern is not None:
        rest += f" {_rest(lines, chosen[1:], wanted)}"
    elif len(chosen) > 1:
        rest += f" {_counted(len(chosen) - 1, 'more line')} {_follow(len(chosen) - 1)} behind it."
    return _Piece(shown, [number], start + 1, rest)


def _skipped(wanted: _Wanted) -> int:
    return (wanted.first_char or 1) - 1


def _rest(lines: Sequence[str], left: Sequence[int], wanted: _Wanted) -> str:
    """What is left out, and how to ask for it."""
    chars = sum(len(lines[at]) for at in left)
    what = "matching lines" if wanted.pattern is not None else "lines"
    kept = [f"first_line={left[0] + 1}"]
    if wanted.last_line is not None:
        kept.append(f"last_line={min(wanted.last_line, len(lines))}")
    if wanted.pattern is not None:
        kept.append("the same pattern")
    return (
        f"Left out: {what} {left[0] + 1} to {left[-1] + 1} ({_counted(len(left), 'line')}, "
        f"{_counted(chars, 'character')}). For more, call {PAGE_TOOL_NAME} with "
        f"{' and '.join(kept)}."
    )


def _framed(source: Source, lines: Sequence[str], piece: _Piece) -> str:
    """A piece between its tags, with the note on the rest behind them."""
    if source.message is None:
        label = f"index of what is paged out, page {source.pointer}"
    else:
        label = f"message {source.message}, {source.role}, page {source.pointer}"
    numbers = piece.numbers
    if len(numbers) < len(lines) or piece.start:
        label += f", {_ranges(numbers)} of {len(lines)}"
    if piece.start:
        label += f", from character {piece.start}"
    text = fence(label, piece.content)
    return f"{text}\n{piece.rest}" if piece.rest else text


def _ranges(numbers: Iterable[int]) -> str:
    """Line numbers in groups, such as ``lines 3, 7-9``."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and groups[-1][1] + 1 == number:
            groups[-1][1] = number
        else:
            groups.append([number, number])
    spelled = [str(one) if one == two else f"{one}-{two}" for one, two in groups[:_RANGES]]
    more = f" and {len(groups) - _RANGES} more" if len(groups) > _RANGES else ""
    return f"lines {', '.join(spelled)}{more}"


def _span(wanted: _Wanted, lines: Sequence[str]) -> str:
    if wanted.first_line is None and wanted.last_line is None:
        return ""
    last = min(wanted.last_line or len(lines), len(lines))
    return f", and lines {wanted.first_line or 1} to {last} were looked at"


def _follow(count: int) -> str:
    return "follows" if count == 1 else "follow"


def _lines(count: int) -> str:
    return _counted(count, "line")


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
