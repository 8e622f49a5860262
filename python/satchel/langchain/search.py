"""Which messages fit from one end of a list, and a part of the next one.

Written as generators that yield each list to be counted and are sent its count: one algorithm for
counters that answer at once and for those that are awaited. A counter of the caller's own may be
anything (not additive, stateful), so it is asked about the lists, and in the order, that LangChain
asks about: the whole, then prefixes by bisection, then what a partial message needs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from langchain_core.messages import BaseMessage

__all__ = ["Counting", "Fit", "Fitter", "Window", "first_window", "split_lines"]

_T = TypeVar("_T")
Counting: TypeAlias = "Generator[Sequence[BaseMessage], Any, _T]"


class Fitter(Protocol):
    """A counter that knows without probes how many messages fit."""

    def fitting(self, messages: list[BaseMessage], budget: object, *, backward: bool) -> int | None:
        """How many messages fit, from the first or the last on; None if it takes probes."""
        ...


@dataclass(frozen=True, slots=True)
class Fit:
    """How to fit.

    Attributes:
        budget: most tokens; whatever the counts compare with.
        ends_on: whether the window may end with a message; None: with any.
        partial: whether a part of the message that no longer fits may stay.
        split: cuts a text into pieces.
        backward: whether the list was reversed, so that its parts are taken from their ends.
        keep_blocks: whether a shortened list of blocks stays a list.
    """

    budget: Any
    ends_on: Callable[[BaseMessage], bool] | None
    partial: bool
    split: Callable[[str], Any]
    backward: bool = False
    keep_blocks: bool = False


@dataclass(slots=True)
class Window:
    """The messages that fit, in the order they were given in, and how many of these are whole."""

    messages: list[BaseMessage]
    whole: int


def first_window(
    messages: list[BaseMessage], fit: Fit, fitting: int | None = None
) -> Counting[Window]:
    """The first messages that fit; the list is not changed.

    Args:
        messages: the messages, or the first of them and at least one more than fit.
        fit: how to fit.
        fitting: how many fit, if that is known.
    """
    if fitting is None:
        fitting = yield from _fitting(messages, fit.budget)
    kept = messages[:fitting]
    if fit.partial and fitting < len(messages):
        part = yield from _part(kept, messages[fitting], fit)
        if part is not None:
            kept.append(part)
    if fit.ends_on is not None:
        while kept and not fit.ends_on(kept[-1]):
            kept.pop()
    return Window(kept, min(fitting, len(kept)))


def _fitting(messages: list[BaseMessage], budget: Any) -> Counting[int]:
    """How many messages fit."""
    if not messages:
        return 0
    # A copy, because a counter may keep or change what it gets.
    if (yield list(messages)) <= budget:
        return len(messages)
    return (yield from _bisect(len(messages), lambda middle: messages[:middle], budget))


def _bisect(
    most: int, probe: Callable[[int], Sequence[BaseMessage]], budget: Any, base: Any = None
) -> Counting[int]:
    """The largest number whose probe fits, if probes grow; never more than ``most``."""
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        count = yield probe(middle)
        if (count if base is None else base + count) <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def _part(kept: list[BaseMessage], boundary: BaseMessage, fit: Fit) -> Counting[BaseMessage | None]:
    """A copy of the first message that does not fit, with what fits of its content."""
    part = boundary.model_copy(deep=True)
    if isinstance(part.content, list):
        blocks = part.content
        if fit.backward:
            part.content = blocks[::-1]
        for _ in range(1, len(blocks)):
            part.content = part.content[:-1]
            if (yield [*kept, part]) <= fit.budget:
                if fit.backward:
                    part.content = part.content[::-1]
                return part
    text = _text_of(part.content)
    if not text:
        return None
    block: Any = part.content[0] if isinstance(part.content, list) and part.content else None
    dressed = _dressed(block) if fit.keep_blocks and block is not None else _bare
    pieces = fit.split(text)
    base = yield list(kept)
    if fit.backward:
        pieces = list(reversed(pieces))

    def shortened(count: int) -> list[BaseMessage]:
        part.content = dressed("".join(pieces[:count]))
        return [part]

    count = yield from _bisect(len(pieces), shortened, fit.budget, base)
    if count == 0:
        return None
    chosen = pieces[:count]
    part.content = dressed("".join(list(reversed(chosen)) if fit.backward else chosen))
    return part


def _text_of(content: Any) -> Any:
    """The text of a message, or of its first block that has one."""
    if isinstance(content, str):
        return content
    for block in cast("list[Any]", content):
        if isinstance(block, str):
            return block
        if isinstance(block, dict) and cast("dict[str, Any]", block).get("type") == "text":
            return cast("dict[str, Any]", block).get("text")
    return None


def _bare(text: str) -> Any:
    return text


def _dressed(block: Any) -> Callable[[str], Any]:
    """Puts a text into a list with one block like the given one."""
    if isinstance(block, dict):
        fields = cast("dict[str, Any]", block)
        return lambda text: [{**fields, "text": text}]
    return lambda text: [text]


def split_lines(text: str) -> list[str]:
    """The lines of a text, each with its line feed; together they are the text."""
    *lines, last = text.split("\n")
    return [*(line + "\n" for line in lines), last]
