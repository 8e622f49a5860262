"""Reasoning that is bound to everything before it, where that has changed.

Some models sign their reasoning together with what stood before it, and their provider refuses it
behind anything else. A compaction, another system prompt or other tools change that for all
reasoning so far: it is left out of the window, at once and for good, while what the model thinks
from then on stays as it is. Costs time in proportion to the messages that hold reasoning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.counting import Counter

__all__ = ["unbound"]

_KINDS: Final = frozenset({"thinking", "redacted_thinking"})


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
    for message in messages[:older]:
        bare = _bare(message)
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


def _bare(message: Any) -> Any:  # noqa: ANN401 - a message is whatever the caller has
    """A copy without reasoning; the same object if there is none, None if there is nothing else."""
    content = _field(message, "content")
    if not isinstance(content, (list, tuple)):
        return message
    blocks = cast("Sequence[Any]", content)
    kept = [block for block in blocks if not _is_reasoning(block)]
    if len(kept) == len(blocks):
        return message
    if not kept:
        return None
    if isinstance(message, dict):
        return {**cast("dict[str, Any]", message), "content": kept}
    return {"role": _field(message, "role"), "content": kept}


def _is_reasoning(block: object) -> bool:
    kind = _field(block, "type")
    if isinstance(kind, str) and kind in _KINDS:
        return True
    return _field(block, "reasoningContent") is not None


def _field(value: object, name: str) -> Any:  # noqa: ANN401 - likewise
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).get(name)
    return getattr(value, name, None)
