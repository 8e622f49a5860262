"""The parts of ``langchain_core`` that the bridge needs, loaded at the first call."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

__all__ = ["Peer", "as_messages", "peer", "type_matcher"]


class Peer(NamedTuple):
    """What is used of ``langchain_core``.

    Attributes:
        base: the class of all messages.
        ai: the class of the model's messages.
        tool: the class of results.
        system: the class of instructions.
        function: the class of results in the older format.
        human: the class of the user's messages.
        convert: its ``convert_to_messages``.
        count: its ``count_tokens_approximately``.
        merge: its ``merge_message_runs``.
        trim: its ``trim_messages``, which words its own refusals.
        runnable: its ``RunnableLambda``.
        kinds: its exact message classes, by what their native reader is called.
        classes: the keys of ``kinds``.
    """

    base: type[BaseMessage]
    ai: type[AIMessage]
    tool: type[ToolMessage]
    system: type[SystemMessage]
    function: type[BaseMessage]
    human: type[BaseMessage]
    convert: Callable[[Any], list[BaseMessage]]
    count: Callable[..., int]
    merge: Callable[..., list[BaseMessage]]
    trim: Callable[..., list[BaseMessage]]
    runnable: Callable[..., Any]
    kinds: dict[type, str]
    classes: frozenset[type]


@cache
def peer() -> Peer:
    """Loads ``langchain_core``.

    Raises:
        ImportError: it is not installed; the message names the extra.
    """
    try:
        from langchain_core import messages  # noqa: PLC0415 - an optional package
        from langchain_core.messages import utils  # noqa: PLC0415 - as above
        from langchain_core.runnables import RunnableLambda  # noqa: PLC0415 - as above
    except ImportError as error:
        message = "satchel.langchain needs langchain-core: install satchel with the extra langchain"
        raise ImportError(message, name="langchain_core") from error
    kinds: dict[type, str] = {
        messages.HumanMessage: "human",
        messages.AIMessage: "ai",
        messages.ToolMessage: "tool",
        messages.SystemMessage: "system",
        messages.FunctionMessage: "function",
        messages.ChatMessage: "chat",
        messages.HumanMessageChunk: "human",
        messages.AIMessageChunk: "ai",
        messages.ToolMessageChunk: "tool",
        messages.SystemMessageChunk: "system",
        messages.FunctionMessageChunk: "function",
        messages.ChatMessageChunk: "chat",
    }
    module = cast("Any", utils)  # two of its functions name a type of a package that may be absent
    return Peer(
        base=messages.BaseMessage,
        ai=messages.AIMessage,
        tool=messages.ToolMessage,
        system=messages.SystemMessage,
        function=messages.FunctionMessage,
        human=messages.HumanMessage,
        convert=module.convert_to_messages,
        count=module.count_tokens_approximately,
        merge=module.merge_message_runs,
        trim=module.trim_messages,
        runnable=RunnableLambda,
        kinds=kinds,
        classes=frozenset(kinds),
    )


def as_messages(messages: Iterable[Any]) -> list[BaseMessage]:
    """A new list of message objects; objects of the known classes are not looked into."""
    known = peer()
    if isinstance(messages, (list, tuple)) and known.classes.issuperset(
        set(map(type, cast("list[object]", messages)))
    ):
        return list(cast("list[BaseMessage]", messages))
    return known.convert(messages)


def type_matcher(wanted: Any) -> Callable[[BaseMessage], bool]:
    """Whether a message is of one of the types: names compare with ``type``, classes by isinstance.

    An iterator is used up by the first message, as in LangChain; nothing is looked at before.
    """

    def matches(message: BaseMessage) -> bool:
        types = [wanted] if isinstance(wanted, (str, type)) else wanted
        names = [item for item in types if isinstance(item, str)]
        classes = tuple(item for item in types if isinstance(item, type))
        return message.type in names or isinstance(message, classes)

    return matches
