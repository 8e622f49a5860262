"""Runs of messages of one kind become one message. Each run is folded once.

Runs of plain texts are joined here, which is linear; a run with anything else (lists of blocks,
calls, usage, additional fields, classes of the caller's own) is merged by LangChain's own function,
run by run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from satchel.langchain.form import runnable_form
from satchel.langchain.peer import as_messages, peer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain_core.messages import BaseMessage
    from langchain_core.prompt_values import PromptValue

__all__ = ["merge_message_runs"]


@runnable_form
def merge_message_runs(
    messages: Iterable[Any] | PromptValue, *, chunk_separator: str = "\n"
) -> list[BaseMessage]:
    r"""Neighbours of one kind as one message each; results are never merged.

    Args:
        messages: messages in any form that LangChain takes; without them, a runnable.
        chunk_separator: stands between two texts that are not empty.

    Returns:
        A new list. A message that is merged with none is the same object; a merged one has the
        first one's ``response_metadata`` and no name.

    Raises:
        ValueError: a message without role or content, or messages that cannot be merged.
        NotImplementedError: what cannot be a message.
        ImportError: ``langchain_core`` is not installed.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> merge_message_runs([HumanMessage("a"), HumanMessage("b"), AIMessage("c")])[0].content
        'a\nb'
    """
    if not cast("object", messages):  # a length of 0, whatever it is
        return []
    merged: list[BaseMessage] = []
    for run in _runs(as_messages(messages)):
        if len(run) == 1:
            merged.append(run[0])
        elif (joined := _joined(run, chunk_separator)) is not None:
            merged.append(joined)
        else:
            merged += peer().merge(run, chunk_separator=chunk_separator)
    return merged


def _runs(messages: list[BaseMessage]) -> list[list[BaseMessage]]:
    """The messages in runs; a run of a subclass takes its base class once two were merged."""
    known = peer()
    plain = tuple(cls for cls in known.kinds if not cls.__name__.endswith("Chunk"))
    runs: list[list[BaseMessage]] = []
    last: type = type(None)
    for message in messages:
        if runs and isinstance(message, last) and not isinstance(message, known.tool):
            run = runs[-1]
            run.append(message)
            if len(run) == 2:  # noqa: PLR2004 - the merge that settles the class of the rest
                last = next((cls for cls in plain if issubclass(last, cls)), last)
        else:
            runs.append([message])
            last = type(message)
    return runs


def _joined(run: list[BaseMessage], separator: str) -> BaseMessage | None:
    """The message of a run of plain texts; None if there is more in it than texts."""
    known = peer()
    first = run[0]
    cls = type(first)
    if known.kinds.get(cls) not in {"human", "system", "ai"} or cls.__name__.endswith("Chunk"):
        return None
    fields: dict[str, Any] = {}
    if cls is known.ai:
        if any(
            message.tool_calls or message.invalid_tool_calls or message.usage_metadata is not None
            for message in run
            if isinstance(message, known.ai)
        ):
            return None
        fields["id"] = _reply_id([message.id for message in run])
    else:
        fields["id"] = first.id
    if any(
        type(message) is not cls
        or type(message.content) is not str
        or message.additional_kwargs
        or message.model_extra
        for message in run
    ):
        return None
    if not isinstance(separator, str):
        return None
    texts = [message.content for message in run if message.content]
    # Through a dump, as LangChain has it: nothing of the first message is shared.
    metadata = first.model_dump(include={"response_metadata"})
    return cls(content=separator.join(map(str, texts)), **metadata, **fields)


def _reply_id(ids: list[str | None]) -> str | None:
    """The id of a merged reply: a provider's first, else a run's, else a generated one."""
    for prefixes in ((), ("lc_run-",), ("lc_",)):
        for name in ids:
            if name and (name.startswith(prefixes) if prefixes else not name.startswith("lc_")):
                return name
    return None
