"""Whole steps of a list of items: a call and its output are never parted.

What an item is, and what it belongs to, the native reader of the dialect says, so items of every
kind pair here as they do in a window. Costs one look at each item.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, cast

from satchel import _core
from satchel.linting import lint

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["DIALECT", "Replay", "first_whole", "is_delta", "whole_items"]

DIALECT: Final = "openai-responses"
"""The form of the SDK's items, whatever model they are for."""

_MADE_UP_ID: Final = "__fake_id__"
"""What the SDK calls items of models that name none; no provider takes it back."""

_SIDES: Final = re.compile("_(?:call|output|request|response)")

_LED_TO: Final = frozenset({"message", "function_call", "custom_tool_call"})
"""Items whose id names the reasoning behind them, and that may do without."""

_UNPAIRED: Final = frozenset({"or1_unanswered_call", "or2_orphan_output", "or3_lone_reasoning"})


def first_whole(items: Sequence[object], start: int) -> int:
    """The first place from ``start`` on at which the list can be cut without parting a step.

    A call goes with its output and all between them, reasoning with what the model said after it.
    """
    if not 0 < start < len(items):
        return start
    depth = 0
    for at, change in enumerate(_bound(items)):
        depth += change
        if at >= start and depth == 0:
            return at
    return len(items)


def _bound(items: Sequence[object]) -> list[int]:
    """How many more stretches begin than end at each place; where some are open, nothing is cut."""
    described = [_core.describe_message(item, DIALECT) for item in items]
    opened = [0] * (len(items) + 1)
    asked: dict[str | None, list[tuple[int, str]]] = {}
    thought: int | None = None
    for at, message in enumerate(described):
        if message["role"] != "assistant":
            thought = None
        elif thought is not None:
            _bind(opened, thought, at)
        kind_of_item = _type(items[at])
        for part in message["parts"]:
            if part["kind"] == "reasoning":
                thought = at
            elif part["kind"] == "call":
                asked.setdefault(part["id"], []).append((at, kind_of_item))
            elif part["kind"] == "result" and asked.get(part["id"]):
                _bind(opened, _answered(asked[part["id"]], kind_of_item), at)
    return opened


def _answered(calls: list[tuple[int, str]], kind: str) -> int:
    """The place of the call that an output answers: of those with its id, the first of its kind.

    Where there is none of its kind, the first stays open: what answers it may be to come.
    """
    for place, (at, asked) in enumerate(calls):
        if kind == asked:
            del calls[place]
            return min(at, calls[0][0]) if calls else at
    return calls[0][0]


def _type(item: object) -> str:
    """What kind of tool an item is about: the same for a call and its output."""
    found: object = cast("dict[str, object]", item).get("type") if isinstance(item, dict) else None
    return _SIDES.sub("", found) if isinstance(found, str) else ""


def _bind(opened: list[int], first: int, last: int) -> None:
    """Says that the list is not to be cut between two places."""
    opened[first + 1] += 1
    opened[last + 1] -= 1


def whole_items(items: Sequence[Any], new: Sequence[Any] = ()) -> list[Any]:
    """The items without calls that have no output, outputs without call, and lone reasoning.

    Args:
        items: the history, oldest first.
        new: what comes behind it; its outputs answer calls of the history, and it stays as it is.

    Returns:
        A new list of the same objects.
    """
    kept = list(items)
    while kept:
        found = {
            violation.index
            for violation in lint([*kept, *new], DIALECT)
            if violation.code in _UNPAIRED
            and violation.index is not None
            and violation.index < len(kept)
        }
        if not found:
            break
        kept = [item for at, item in enumerate(kept) if at not in found]
    return kept


class Replay:
    """Makes items fit to be sent again; keeps in mind what the ones before were.

    Args:
        is_stored: whether the provider keeps what it answered, so that an id is enough for it to
            find its reasoning again.
    """

    __slots__ = ("_is_lost", "_is_stored")

    def __init__(self, *, is_stored: bool) -> None:
        self._is_stored: Final = is_stored
        self._is_lost = False

    def sendable(self, item: Any) -> Any:
        """The item, a copy without an id that nobody knows, or None for one to be left out.

        Reasoning that the provider can neither read nor find goes, and with it the ids of what it
        led to: under those the provider would miss it.
        """
        if not isinstance(item, dict):
            return cast("object", item)
        fields = cast("dict[str, Any]", item)
        kind = fields.get("type")
        if kind == "reasoning":
            found = fields.get("encrypted_content") or (self._is_stored and fields.get("id"))
            self._is_lost = not found
            return fields if found else None
        if _core.describe_message(fields, DIALECT)["role"] != "assistant":
            self._is_lost = False
        made_up = fields.get("id") == _MADE_UP_ID
        if "id" in fields and (made_up or (self._is_lost and kind in _LED_TO)):
            return {name: value for name, value in fields.items() if name != "id"}
        return fields


def is_delta(items: Sequence[object]) -> bool:
    """Whether a list looks like what is new to a conversation that the server keeps.

    Then it begins with outputs, whose calls are on the server, and has nothing that the model said.
    A history of ours that lost a call begins with what the user said, or has more of the model's.
    """
    # The first item tells for nearly every history: the others are looked at only behind an output.
    if not items or not any(
        part["kind"] == "result" for part in _core.describe_message(items[0], DIALECT)["parts"]
    ):
        return False
    return all(_core.describe_message(item, DIALECT)["role"] != "assistant" for item in items)
