"""The state of an agent as a value, and how one update leads to the next.

A state is never changed. `reduce` makes a new one of an old one and an update, and each field says
how: it is overwritten, appended to, or merged. Works alone, without any other part of satchel.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, TypedDict, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from satchel.errors import InputError

__all__ = [
    "AgentMessage",
    "AgentState",
    "AgentStateDict",
    "Append",
    "Merge",
    "RemoveMessage",
    "append_messages",
    "merge_mappings",
    "reduce",
]

MAX_STEPS: Final = 15
"""Steps that an agent may take if nothing else is said."""

Role = Literal["system", "user", "assistant", "tool"]


def _new_id() -> str:
    return uuid.uuid4().hex


class AgentMessage(BaseModel):
    """One message of a state.

    Attributes:
        id: what later updates name it by.
        role: who speaks.
        content: its text; None where calls are all there is.
        name: of the speaker or the tool.
        tool_calls: calls in the form of the provider.
        tool_call_id: the call that a tool's message answers.
        metadata: anything of the caller's.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(default_factory=_new_id)
    role: Role
    content: str | None = None
    name: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    tool_call_id: str | None = None
    metadata: Mapping[str, Any] = Field(default_factory=dict[str, Any])


class RemoveMessage(BaseModel):
    """In an update of messages: the message with this id goes.

    Attributes:
        id: of a message that is there.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    id: str


Reducer = Callable[[Any, Any], Any]


class Append:
    """Marks a field whose updates are messages to be appended, replaced or removed by id."""


class Merge:
    """Marks a field whose updates are merged into it, key by key."""


def append_messages(old: Iterable[AgentMessage], update: object) -> tuple[AgentMessage, ...]:
    """The messages after an update.

    Args:
        old: the messages so far.
        update: a message or several, as `AgentMessage`, mapping, or `RemoveMessage`. One whose id
            is there replaces that message in its place; any other comes behind the last.

    Returns:
        New messages; those that nothing was said about are the same objects.

    Raises:
        InputError: ``invalid_message`` for what is no message, ``message_not_found`` for the
            removal of one that is not there.
    """
    found = {message.id: message for message in old}
    for place, entry in enumerate(_listed(update)):
        if isinstance(entry, RemoveMessage):
            if found.pop(entry.id, None) is None:
                message = f"update {place} removes a message that is not there"
                raise InputError(message, code="message_not_found", index=place)
            continue
        message_of = _message(entry, place)
        found[message_of.id] = message_of
    return tuple(found.values())


def merge_mappings(old: Mapping[str, Any], update: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping with what the update says laid over it; neither is changed."""
    return {**old, **update}


class AgentState(BaseModel):
    """What an agent knows about its run.

    Attributes:
        session_id: the conversation.
        user_id: whose it is.
        messages: the conversation so far; updates are appended, the same id replaces.
        current_step: steps taken.
        max_steps: steps that may be taken.
        scratchpad: notes of the agent's own; updates are merged.
        is_completed: whether the task is done.

    Raises:
        pydantic.ValidationError: a ``ValueError``, for a field out of range.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    session_id: str
    user_id: str
    messages: Annotated[tuple[AgentMessage, ...], Append()] = ()
    current_step: Annotated[int, Field(ge=0)] = 0
    max_steps: Annotated[int, Field(gt=0)] = MAX_STEPS
    scratchpad: Annotated[Mapping[str, Any], Merge()] = Field(default_factory=dict[str, Any])
    is_completed: bool = False


class AgentStateDict(TypedDict, total=False):
    """The same for frameworks that keep their state in a dict, with the same reducers."""

    session_id: str
    user_id: str
    messages: Annotated[tuple[AgentMessage, ...], append_messages]
    current_step: int
    max_steps: int
    scratchpad: Annotated[Mapping[str, Any], merge_mappings]
    is_completed: bool


def reduce(state: AgentState, update: Mapping[str, Any]) -> AgentState:
    """The state after an update: field by field, each by its own rule.

    Args:
        state: the state before; never changed.
        update: new values by field. ``messages`` are appended, ``scratchpad`` is merged, all others
            are overwritten.

    Returns:
        A new state.

    Raises:
        InputError: ``invalid_value`` for a field that there is not, or a value out of range;
            ``invalid_message``, ``message_not_found``.

    Example:
        >>> state = AgentState(session_id="s", user_id="u")
        >>> state = reduce(state, {"messages": {"role": "user", "content": "Hi"}})
        >>> reduce(state, {"current_step": 1}).messages[0].content
        'Hi'
    """
    fields = type(state).model_fields
    values = {name: getattr(state, name) for name in fields}
    for name, value in update.items():
        if name not in fields:
            message = f"the state has no such field; its fields: {', '.join(fields)}"
            raise InputError(message, code="invalid_value")
        values[name] = _reducer(fields[name].metadata)(values[name], value)
    try:
        return type(state).model_validate(values)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(key) for key in first["loc"])
        message = f"state {place}: {first['msg']}"
        raise InputError(message, code="invalid_value") from error


def _reducer(marks: Iterable[object]) -> Reducer:
    for mark in marks:
        if isinstance(mark, Append):
            return append_messages
        if isinstance(mark, Merge):
            return merge_mappings
    return _overwrite


def _overwrite(_: object, new: object) -> object:
    return new


def _listed(update: object) -> list[object]:
    if isinstance(update, (Mapping, AgentMessage, RemoveMessage)):
        return [cast("object", update)]
    if isinstance(update, Iterable) and not isinstance(update, (str, bytes)):
        return list(cast("Iterable[object]", update))
    message = f"an update of messages must be a message or several, not {type(update).__name__}"
    raise InputError(message, code="invalid_message")


def _message(entry: object, place: int) -> AgentMessage:
    if isinstance(entry, AgentMessage):
        return entry
    try:
        return AgentMessage.model_validate(entry)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ".".join(str(key) for key in first["loc"]) or "message"
        message = f"message {place} of the update, {field}: {first['msg']}"
        raise InputError(message, code="invalid_message", index=place) from error
