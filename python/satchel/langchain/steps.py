"""Whole steps of a list of message objects: calls with all their results, or a plain message.

Pairing is by place: a result belongs to the calls right before it. What no provider takes is in no
step: results without their call, calls without all of their results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from satchel.langchain.peer import peer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

__all__ = ["whole_steps"]


def whole_steps(messages: Sequence[BaseMessage]) -> list[list[int]]:
    """The indices of each whole step, in order; indices that are missing are in none."""
    known = peer()
    steps: list[list[int]] = []
    at = 0
    while at < len(messages):
        message = messages[at]
        step = [at]
        at += 1
        open_calls = _calls(message) if isinstance(message, known.ai) else set[str | None]()
        if open_calls:
            while at < len(messages) and (name := _answered(messages[at])) is not None:
                if name in open_calls:
                    open_calls.discard(name)
                    step.append(at)
                at += 1
            if not open_calls:
                steps.append(step)
        elif _answered(message) is None:
            steps.append(step)
    return steps


def _calls(message: Any) -> set[str | None]:
    """What results must name: call ids, and the name of a call in the older format."""
    calls: set[str | None] = {call["id"] for call in message.tool_calls}
    calls |= {call["id"] for call in message.invalid_tool_calls}
    older: object = message.additional_kwargs.get("function_call")
    if isinstance(older, dict):
        calls.add(f"function {cast('dict[str, object]', older).get('name')}")
    return calls


def _answered(message: BaseMessage) -> str | None:
    """What a result names; None for a message that is no result."""
    known = peer()
    if isinstance(message, known.tool):
        return message.tool_call_id
    if isinstance(message, known.function):
        return f"function {message.name}"
    return None
