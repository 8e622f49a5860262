"""What a history becomes when it goes on in another dialect.

The window's steps are converted one by one, so that it stays known where each came from; nothing
else of the conversion depends on its neighbours but the ids of calls, which are told apart here.
Costs time in proportion to the window.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from satchel.converting import convert

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from satchel._core import WorkingSet

__all__ = ["Opening", "converted_request", "joined_system", "opening_of"]

_ASSISTANT: Final = "assistant"


@dataclass(frozen=True, slots=True)
class Opening:
    """Where a history begins in its new dialect.

    Attributes:
        messages: the messages.
        steps: for each step that was handed on: first and end among the messages before, first and
            end among ``messages``. In order, and without gaps on the right.
        pins: places in ``messages`` of pinned steps.
        system: instructions that stand outside the messages now, in the form of the dialect.
        gone: steps and tokens that are gone, and the note that leads to them.
    """

    messages: list[Any]
    steps: tuple[tuple[int, int, int, int], ...] = ()
    pins: tuple[int, ...] = ()
    system: Any = None
    gone: tuple[int, int, str] | None = None


def opening_of(core: WorkingSet, source: str, target: str) -> Opening:
    """What ``core`` shows, in the dialect ``target``.

    Raises:
        InputError: ``open_calls`` while calls wait for results.
    """
    carried, gone = core.hand_on()
    ids = _Ids(target)
    messages: list[Any] = []
    steps: list[tuple[int, int, int, int]] = []
    pins: list[int] = []
    system: object = None
    for first, end, role, is_leading, is_pinned, step in carried:
        before = [] if is_leading else _before(source, role)
        made = convert([*before, *step], source, target)
        system = joined_system(target, system, made.system)
        own = ids.told_apart(made.messages[_length(source, target, role) if before else 0 :])
        if is_pinned and own:
            pins.append(len(messages))
        steps.append((first, end, len(messages), len(messages) + len(own)))
        messages += own
    return Opening(messages, tuple(steps), tuple(pins), system, gone)


def converted_request(system: object, tools: object, source: str, target: str) -> tuple[Any, Any]:
    """The ``system`` and ``tools`` arguments of a request in the dialect ``target``."""
    made = convert([], source, target, system=system, tools=tools)
    if made.messages:  # there is no such argument, so it became the first message
        return made.messages[0]["content"], made.tools
    return made.system, made.tools


def joined_system(dialect: str, first: Any, second: Any) -> Any:  # noqa: ANN401 - a provider's own form
    """Two ``system`` arguments as one."""
    if first is None or second is None:
        return second if first is None else first
    if dialect == "gemini":
        return {"parts": [*_parts(first), *_parts(second)]}
    if dialect == "bedrock" or not (isinstance(first, str) and isinstance(second, str)):
        return [*_blocks(first, dialect), *_blocks(second, dialect)]
    if dialect == "anthropic":
        return [*_blocks(first, dialect), *_blocks(second, dialect)]
    return f"{first}\n\n{second}"


def _parts(system: object) -> list[Any]:
    if isinstance(system, str):
        return [{"text": system}]
    if isinstance(system, (list, tuple)):
        listed = cast("Sequence[Any]", system)
        return [{"text": part} if isinstance(part, str) else part for part in listed]
    fields = cast("dict[str, Any]", system)
    found = fields.get("parts") if isinstance(system, dict) else getattr(system, "parts", None)
    return list(cast("Iterable[Any]", found or ()))


def _blocks(system: object, dialect: str) -> list[Any]:
    if isinstance(system, str):
        return [{"text": system} if dialect == "bedrock" else {"type": "text", "text": system}]
    return list(cast("Iterable[Any]", system))


# --- one step -------------------------------------------------------------------------------------


@cache
def _before(source: str, role: str) -> list[Any]:
    """What stands before a step while it is converted.

    So it is not the first message, and does not become one with its neighbour.
    """
    speakers = ["user"] if role == _ASSISTANT else ["user", _ASSISTANT]
    return [_plain(source, speaker) for speaker in speakers]


def _plain(dialect: str, role: str) -> dict[str, Any]:
    if dialect == "gemini":
        return {"role": "model" if role == _ASSISTANT else role, "parts": [{"text": "."}]}
    return {"role": role, "content": [{"text": "."}] if dialect == "bedrock" else "."}


@cache
def _length(source: str, target: str, role: str) -> int:
    """How many messages `_before` becomes."""
    return len(convert(_before(source, role), source, target).messages)


class _Ids:
    """The ids of calls: one that came before gets a number, on call and result alike."""

    def __init__(self, dialect: str) -> None:
        self._dialect: Final = dialect
        self._taken: set[str] = set()
        self._next = 1

    def told_apart(self, messages: list[Any]) -> list[Any]:
        """The messages of one step, changed in place: they were made just now."""
        named = list(self._named(messages))
        found = dict.fromkeys(holder[key] for holder, key in named if isinstance(holder[key], str))
        renamed = {name: self._free(name) for name in found}
        for holder, key in named:
            holder[key] = renamed.get(holder[key], holder[key])
        return messages

    def _free(self, name: str) -> str:
        free = name
        while free in self._taken:
            free = f"call_{self._next}"
            self._next += 1
        self._taken.add(free)
        return free

    def _named(self, messages: list[Any]) -> Iterator[tuple[dict[str, Any], str]]:
        """Every place of an id: the object and its key."""
        for message in messages:
            if self._dialect == "openai":
                yield from ((call, "id") for call in message.get("tool_calls") or ())
                if "tool_call_id" in message:
                    yield message, "tool_call_id"
            elif self._dialect == "openai-responses":
                if "call_id" in message:
                    yield message, "call_id"
            else:
                content = message.get("parts", message.get("content"))
                is_list = isinstance(content, (list, tuple))
                for block in cast("Sequence[Any]", content) if is_list else ():
                    yield from _block_names(block)


def _block_names(block: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    if block.get("type") == "tool_use":
        yield block, "id"
    if block.get("type") == "tool_result":
        yield block, "tool_use_id"
    for kind, key in (
        ("functionCall", "id"),
        ("functionResponse", "id"),
        ("toolUse", "toolUseId"),
        ("toolResult", "toolUseId"),
    ):
        if isinstance(block.get(kind), dict) and key in block[kind]:
            yield block[kind], key
