"""The log behind an agent's thread: its messages as they came, whatever its state keeps of them.

What the middleware shortens or removes in the state is packed beside it, so that the log can be put
together again: every window is planned over the originals, and two plans of one log are the same.
A message that somebody else edited or removed in the state counts as they left it.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, cast

from langchain.agents.middleware.types import AgentState, PrivateStateAttr
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
    messages_from_dict,
)
from typing_extensions import TypedDict  # before Python 3.12 pydantic reads no other

from satchel.errors import InputError
from satchel.stores.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["ContextState", "Log", "Record", "digest_of", "log_of", "merged", "pack", "unpack"]

_OF_MESSAGE: Final = "m:"

_KNOWN: Final[frozenset[type[BaseMessage]]] = frozenset(
    {
        AIMessage,
        AIMessageChunk,
        ChatMessage,
        ChatMessageChunk,
        FunctionMessage,
        FunctionMessageChunk,
        HumanMessage,
        HumanMessageChunk,
        SystemMessage,
        SystemMessageChunk,
        ToolMessage,
        ToolMessageChunk,
    }
)
"""What LangChain reads back from a dict."""


class Record(TypedDict):
    """What the state keeps about the log, beside what it keeps of it.

    Attributes:
        events: the events of the newest window.
        order: ids of the messages of the log at that time; the empty text for one without.
        edited: what the messages that were shortened in the state looked like, by id.
    """

    events: list[dict[str, Any]]
    order: list[str]
    edited: dict[str, str]


def merged(
    first: dict[str, bytes | None] | None, second: dict[str, bytes | None] | None
) -> dict[str, bytes | None]:
    """The channel's reducer: calls that end at once each add what they keep."""
    found = {**(first or {}), **(second or {})}
    return {name: value for name, value in found.items() if value is not None}


class ContextState(AgentState[Any]):
    """The agent's state with the two private keys of the middleware."""

    satchel_context: NotRequired[Annotated[Record, PrivateStateAttr]]
    satchel_kept: NotRequired[Annotated[dict[str, bytes | None], PrivateStateAttr, merged]]


@dataclass(slots=True)
class Log:
    """The messages as they came.

    Attributes:
        messages: all of them, oldest first.
        shown: what the state holds for each; None for one that it does not hold any more.
        events: what is known of earlier windows of this log.
        edited: as in `Record`, of messages that are still as they were left.
        dropped: names of what is kept for messages that somebody removed.
    """

    messages: list[BaseMessage] = field(default_factory=list[BaseMessage])
    shown: list[BaseMessage | None] = field(default_factory=list["BaseMessage | None"])
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    edited: dict[str, str] = field(default_factory=dict[str, str])
    dropped: list[str] = field(default_factory=list[str])

    @property
    def order(self) -> list[str]:
        """The ids, in order."""
        return [message.id or "" for message in self.messages]


def name_of(message_id: str) -> str:
    """The name under which a message's original is kept."""
    return _OF_MESSAGE + message_id


def log_of(
    state: Sequence[BaseMessage],
    record: Record | None,
    kept: Mapping[str, bytes | None] | None,
) -> Log:
    """The log of a thread.

    Args:
        state: the messages that the state holds.
        record: what the middleware noted last; None for a new thread.
        kept: what it keeps.
    """
    if record is None:
        return Log(list(state), list(state))
    kept = kept or {}
    log = Log()
    places = {message.id: at for at, message in enumerate(state) if message.id}
    order = record["order"]
    # Whoever removed all that was left meant to begin anew.
    is_anew = not any(name in places for name in order if name)
    done = 0
    for name in () if is_anew else order:
        at = places.get(name)
        if at is not None:
            if at >= done:
                for message in state[done : at + 1]:
                    _add(log, message, record, kept)
                done = at + 1
        elif name and (packed := kept.get(name_of(name))) and name not in record["edited"]:
            log.messages.append(unpack(packed))
            log.shown.append(None)
    for message in state[done:]:
        _add(log, message, record, kept)
    if [name for name in log.order[: len(order)] if name] == [name for name in order if name]:
        log.events = list(record["events"])
    present = set(log.order)
    log.dropped = [
        name
        for name in kept
        if is_anew
        or (name.startswith(_OF_MESSAGE) and name.removeprefix(_OF_MESSAGE) not in present)
    ]
    return log


def _add(log: Log, message: BaseMessage, record: Record, kept: Mapping[str, bytes | None]) -> None:
    """Adds a message of the state, as it was before the middleware shortened it."""
    original = message
    left = record["edited"].get(message.id) if message.id else None
    if message.id and left is not None and left == digest_of(message):
        packed = kept.get(name_of(message.id))
        if packed:
            original = unpack(packed)
            log.edited[message.id] = left
    log.messages.append(original)
    log.shown.append(message)


def digest_of(message: BaseMessage) -> str:
    """What tells a message from an edited one: content, calls, and whose result it is."""
    names = ("tool_calls", "invalid_tool_calls", "tool_call_id")
    calls = [getattr(message, name, None) for name in names]
    text = repr((message.type, cast("Any", message).content, calls))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def pack(message: BaseMessage) -> bytes:
    """A message in few bytes, as one of LangChain's own classes.

    What cannot be written as JSON is left out of its metadata, and is its text elsewhere.
    """
    own: type = type(message)
    known: type[BaseMessage] = next((kind for kind in own.__mro__ if kind in _KNOWN), HumanMessage)
    # The defaults of a class of somebody else are not those that it is read with.
    fields = message.model_dump(exclude={"artifact", "type"}, exclude_defaults=own is known)
    kind: str = known.model_fields["type"].default
    try:
        payload = encode({"type": kind, "data": fields})
    except InputError:
        for name in ("additional_kwargs", "response_metadata"):
            fields.pop(name, None)
        try:
            payload = encode({"type": kind, "data": fields})
        except InputError:
            fields = json.loads(json.dumps(fields, default=str, skipkeys=True))
            payload = encode({"type": kind, "data": fields})
    return zlib.compress(payload)


@lru_cache(maxsize=4_096)
def unpack(packed: bytes) -> BaseMessage:
    """The message that was packed; the same object each time, to be copied before it is shown."""
    [message] = messages_from_dict([decode(zlib.decompress(packed))])
    return message
