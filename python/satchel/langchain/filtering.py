"""Which messages stay, by name, type, id and tool call. One pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from satchel.langchain.form import runnable_form
from satchel.langchain.peer import as_messages, peer, type_matcher

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.prompt_values import PromptValue

__all__ = ["filter_messages"]


@runnable_form
def filter_messages(
    messages: Iterable[Any] | PromptValue,
    *,
    include_names: Sequence[str] | None = None,
    exclude_names: Sequence[str] | None = None,
    include_types: Sequence[str | type[BaseMessage]] | None = None,
    exclude_types: Sequence[str | type[BaseMessage]] | None = None,
    include_ids: Sequence[str] | None = None,
    exclude_ids: Sequence[str] | None = None,
    exclude_tool_calls: Sequence[str] | bool | None = None,
) -> list[BaseMessage]:
    """The messages that no ``exclude_`` names and, if there is an ``include_``, that one names.

    Args:
        messages: messages in any form that LangChain takes; without them, a runnable.
        include_names: names to keep; membership is ``in``.
        exclude_names: names to leave out.
        include_types: types to keep, as names (``"human"``, ``"ai"``) or classes.
        exclude_types: types to leave out.
        include_ids: ids to keep.
        exclude_ids: ids to leave out.
        exclude_tool_calls: True leaves out every message with calls and every result. A list, tuple
            or set of call ids leaves out these calls and their results; a message of the model
            with calls is then copied, and left out if none of its calls stays.

    Returns:
        A new list of the same objects, but for the copies.

    Raises:
        ValueError: a message without role or content, or with an unknown role.
        NotImplementedError: what cannot be a message.
        ImportError: ``langchain_core`` is not installed.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> history = [HumanMessage("a", name="ann"), AIMessage("b"), HumanMessage("c")]
        >>> [message.content for message in filter_messages(history, include_types=["human"])]
        ['a', 'c']
    """
    history = as_messages(messages)
    known = peer()
    is_unwanted = type_matcher(exclude_types)
    is_wanted = type_matcher(include_types)
    chooses = bool(include_types or include_ids or include_names)
    by_id = isinstance(cast("object", exclude_tool_calls), (list, tuple, set))
    calls_out = cast("Container[object]", exclude_tool_calls)
    kept: list[BaseMessage] = []
    for message in history:
        if (
            (exclude_names and cast("Any", message.name) in exclude_names)
            or (exclude_types and is_unwanted(message))
            or (exclude_ids and cast("Any", message.id) in exclude_ids)
        ):
            continue
        has_calls = isinstance(message, known.ai) and bool(message.tool_calls)
        chosen: BaseMessage | None = message
        if exclude_tool_calls is True:
            if has_calls or isinstance(message, known.tool):
                continue
        elif by_id and has_calls:
            chosen = _without_calls(cast("AIMessage", message), calls_out)
        elif by_id and isinstance(message, known.tool) and message.tool_call_id in calls_out:
            continue
        if chosen is not None and (
            not chooses
            or (include_names and cast("Any", chosen.name) in include_names)
            or (include_types and is_wanted(chosen))
            or (include_ids and cast("Any", chosen.id) in include_ids)
        ):
            kept.append(chosen)
    return kept


def _without_calls(message: AIMessage, calls_out: Container[object]) -> AIMessage | None:
    """A copy without these calls and their content blocks; None if no call stays."""
    calls = [call for call in message.tool_calls if call["id"] not in calls_out]
    if not calls:
        return None
    content: Any = message.content
    if isinstance(content, list):
        content = [
            block
            for block in cast("list[object]", content)
            if not isinstance(block, dict)
            or cast("dict[str, Any]", block).get("type") != "tool_use"
            or cast("dict[str, Any]", block).get("id") not in calls_out
        ]
    return message.model_copy(update={"tool_calls": calls, "content": content})
