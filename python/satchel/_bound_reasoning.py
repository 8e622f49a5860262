"""Reasoning that is bound to everything before it, where that has changed.

Some models sign their reasoning together with what stood before it, and their provider refuses it
behind anything else. A compaction, another system prompt or other tools change that for all
reasoning so far: it is left out of the window, at once and for good, while what the model thinks
from then on stays as it is. Costs time in proportion to the messages that hold reasoning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satchel._reasoning import without_reasoning

if TYPE_CHECKING:
    from satchel.counting import Counter

__all__ = ["unbound"]


def unbound(
    messages: list[Any], tail: int, counter: Counter, dialect: str
) -> tuple[list[Any], int]:
    """The messages without reasoning, but for the last ``tail`` of them, and the tokens it took.

    Messages that do not change are the same objects.
    """
    older = len(messages) - tail
    before: list[Any] = []
    after: list[Any] = []
    kept: list[Any] = []
    for message, bare in without_reasoning(messages[:older]):
        if bare is message:
            kept.append(message)
            continue
        before.append(message)
        if bare is not None:
            after.append(bare)
            kept.append(bare)
    if not before:
        return messages, 0
    saved = _tokens(before, counter, dialect) - _tokens(after, counter, dialect)
    return [*kept, *messages[older:]], saved


def _tokens(messages: list[Any], counter: Counter, dialect: str) -> int:
    return int(counter.count_messages(messages, dialect=dialect).per_message.sum(dtype="uint64"))
