"""Damaged histories as ones that their provider accepts.

What was right stays the same object; nothing is invented but marked placeholders
(``PLACEHOLDERS``). `satchel.lint` says what is wrong, `repair` mends it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal

from satchel import _core
from satchel._arguments import one_of, plain_text
from satchel.linting import traits_of

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["PLACEHOLDERS", "repair"]

PLACEHOLDERS: Final[tuple[str, ...]] = tuple(_core.repair_placeholders())
"""Every text that `repair` may put into a history by itself."""


def repair(
    messages: Iterable[Any],
    dialect: str,
    *,
    system: object = None,
    tools: object = None,
    model: str | None = None,
    mode: Literal["synthesize", "drop", "flatten"] = "synthesize",
) -> list[Any]:
    """The history as its provider accepts it; `satchel.lint` finds no error in it afterwards.

    Results are paired with their calls by position: each answers the nearest call before it that
    is open and has its id. The results of one turn come back together right behind it; a first
    result answers a call, further ones are told apart from it. Empty texts and messages go, ids
    that the provider refuses are renamed on call and result alike, reasoning stays byte for byte
    with its calls or goes with them, and the first message is a user's.

    A history without an error stays as it is, all of it the same objects in the same order, also
    where lint has warnings: what the provider accepts keeps its bytes and with them the prompt
    cache. Warnings are mended only beside errors. An empty list stays empty.

    Values of the wrong type are mended where they can only mean one thing: a number as content is
    its text, one block is a list of one. Arguments that must be an object and are none are kept
    word for word under the key ``_raw_arguments``, as `satchel.convert` does. A name of a tool that
    the provider refuses is renamed on calls and results alike; a call without a name cannot stay
    one. Blocks that hold nothing go (an image without a source), an output that is missing is an
    empty one. What JSON cannot say becomes what can be sent: half a surrogate pair U+FFFD, a number
    that is not finite null, bytes their base64.

    Args:
        messages: the history, as dicts or SDK objects; never changed.
        dialect: the message format, such as ``"openai"`` or ``"anthropic"``.
        system: the ``system`` argument of the request; its cache marks count towards the limit.
        tools: the tool definitions of the request; likewise.
        model: the model the request is for; adds what only some models ask for.
        mode: what becomes of tool traffic that cannot stay. ``"synthesize"``: a call without a
            result gets a placeholder, a result without a call becomes labelled text; nothing is
            left out but exact duplicates, empty messages and unsigned reasoning. ``"drop"``: both
            go, and so does everything before the first user message. ``"flatten"``: both become
            labelled text.

    Returns:
        A new list; messages that did not have to change are the same objects. Repairing it again
        gives the same.

    Raises:
        InputError: ``invalid_message``, ``too_deep``, ``dialect_changed`` with the index of a
            message whose meaning is not clear; ``unknown_dialect``; ``unknown_model``;
            ``invalid_value`` for a mode.

    Example:
        >>> late = {"role": "tool", "tool_call_id": "a", "content": "42"}
        >>> repair([{"role": "user", "content": "hi"}, late], "openai", mode="drop")
        [{'role': 'user', 'content': 'hi'}]
    """
    plain_text("dialect", dialect)
    one_of("mode", mode, ("synthesize", "drop", "flatten"))
    return _core.repair_messages(
        messages,
        dialect,
        mode=mode,
        traits=traits_of(model),
        system=system,
        tools=tools,
    )
