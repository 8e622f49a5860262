"""What a run starts with: the stored items and the new ones, joined at whole steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satchel.openai_agents.items import first_whole, whole_items
from satchel.stores.base import checked_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["session_input_callback"]


def session_input_callback(
    history: Sequence[Any], new: Sequence[Any], *, max_items: int | None = None
) -> list[Any]:
    """For ``RunConfig(session_input_callback=...)``: history and new items as one valid list.

    Left out of the history are outputs whose call is not there, calls that nothing answers (the new
    items neither), and reasoning that leads to nothing. Nothing is edited or added: the SDK would
    store a shortened copy or a summary as new, once more with each run. To make things fit is the
    business of `context_filter`, which never touches what is stored.

    Args:
        history: the stored items, oldest first.
        new: the items of this run.
        max_items: at most this many of the history, from the beginning of a step on. Use
            `functools.partial` to set it.

    Returns:
        A new list of the same objects.

    Raises:
        InputError: ``invalid_value`` for a limit below 0.

    Example:
        >>> lost = {"type": "function_call_output", "call_id": "gone", "output": "4"}
        >>> asked = {"role": "user", "content": "And now?"}
        >>> session_input_callback([lost], [asked]) == [asked]
        True
    """
    items = list(history)
    most = checked_limit(max_items)
    if most is not None and most < len(items):
        items = items[first_whole(items, len(items) - most) :] if most else []
    return [*whole_items(items, new), *new]
