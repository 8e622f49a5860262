"""`trim_messages`: the messages that fit from one end of a history.

Without the further keywords the result is LangChain's, quirks included: it may split a call from
its results, and a system message that is kept may exceed the budget.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

from satchel.langchain.counting import newest_fitting
from satchel.langchain.form import runnable_form
from satchel.langchain.metering import Meter, meter_of
from satchel.langchain.options import Options
from satchel.langchain.peer import as_messages
from satchel.langchain.windowing import window

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.prompt_values import PromptValue

    from satchel.counting import Counter
    from satchel.langchain.metering import CountsMessages
    from satchel.langchain.report import TrimReport
    from satchel.langchain.search import Counting

__all__ = ["atrim_messages", "trim_messages"]

_T = TypeVar("_T")
_ESTIMATE: Final = "approximate"


@runnable_form
def trim_messages(
    messages: Iterable[Any] | PromptValue,
    *,
    max_tokens: int,
    token_counter: Callable[[list[BaseMessage]], int]
    | Callable[[BaseMessage], int]
    | CountsMessages
    | Counter
    | Literal["approximate"],
    strategy: Literal["first", "last"] = "last",
    allow_partial: bool = False,
    end_on: str | type[BaseMessage] | Sequence[str | type[BaseMessage]] | None = None,
    start_on: str | type[BaseMessage] | Sequence[str | type[BaseMessage]] | None = None,
    include_system: bool = False,
    text_splitter: Callable[[str], list[str]] | Any | None = None,
    keep_steps: bool = False,
    pin: Iterable[str | int] | Callable[[BaseMessage], bool] = (),
    tools: Sequence[Any] | None = None,
    reserve_tokens: int = 0,
    strict: bool = False,
    per_message_counter: bool | None = None,
    forward_counts: bool = False,
    keep_blocks: bool = False,
    report: Callable[[TrimReport], object] | None = None,
) -> list[BaseMessage]:
    """The first or last messages of a history that fit a budget.

    The keywords up to ``text_splitter`` are LangChain's and mean what they mean there. Those after
    it are off by default.

    Args:
        messages: messages in any form that LangChain takes; without them, a runnable.
        max_tokens: tokens of the window.
        token_counter: what counts. ``"approximate"``, ``count_tokens_approximately`` (LangChain's
            or ours, or a ``partial`` of it) and a `satchel.Counter` are counted natively; a counter
            of ours bills each message as the chat message it is sent as, upper bound of its margin
            included. Others are asked as often, and about the same lists, as LangChain asks them.
        strategy: which end of the history stays.
        allow_partial: whether a part of the message that no longer fits stays.
        end_on: types the window may end with.
        start_on: types the window may start with, after the system message; ``"last"`` only.
        include_system: whether a system message at index 0 stays; ``"last"`` only.
        text_splitter: cuts a text for ``allow_partial``; default: lines.
        keep_steps: keep calls and their results together or not at all. What no provider takes
            (results without call, calls without all of their results) is left out.
        pin: messages that stay in any case, by id, by index, or by a function; with ``keep_steps``
            together with their steps. ``start_on`` and ``end_on`` are about the others.
        tools: tools of the request; the tokens of their definitions are taken off the budget.
        reserve_tokens: tokens of ``max_tokens`` to keep free.
        strict: raise if what must stay, or the message at the end that is kept, does not fit.
        per_message_counter: whether ``token_counter`` takes one message (True) or a list (False);
            default: by the annotation of its first parameter, as in LangChain.
        forward_counts: give lists to the counter in the order of the history, also for ``"last"``.
        keep_blocks: with ``allow_partial``, a shortened list of blocks stays a list.
        report: called with a `TrimReport` before the result is returned.

    Returns:
        A new list of the same objects; a shortened message is a copy.

    Raises:
        ValueError: arguments that do not go together, an unknown strategy or counter, or a message
            without role or content.
        NotImplementedError: what cannot be a message.
        BudgetError: ``over_budget``, with ``strict``: ``value`` is what it takes.
        InputError: ``invalid_value`` for a pin that is not there or ``tools`` with ``len``.
        ImportError: ``langchain_core`` is not installed.

    Example:
        >>> from langchain_core.messages import AIMessage, HumanMessage
        >>> history = [HumanMessage("a"), AIMessage("b"), HumanMessage("c")]
        >>> trim_messages(history, max_tokens=12, token_counter="approximate") == history[1:]
        True
    """
    if (
        strategy == "last"
        and isinstance(token_counter, str)
        and token_counter == _ESTIMATE
        and type(messages) is list
        and not (allow_partial or end_on or start_on or include_system or keep_steps)
        and not (pin != () or tools or reserve_tokens or strict or report)
        and (kept := newest_fitting(cast("Any", messages), max_tokens)) is not None
    ):
        # What most agents ask for at every step, without a detour.
        return kept
    options = Options(
        max_tokens=max_tokens,
        token_counter=token_counter,
        strategy=strategy,
        allow_partial=allow_partial,
        end_on=end_on,
        start_on=start_on,
        include_system=include_system,
        text_splitter=text_splitter,
        keep_steps=keep_steps,
        pin=pin,
        tools=tools,
        reserve_tokens=reserve_tokens,
        strict=strict,
        per_message_counter=per_message_counter,
        forward_counts=forward_counts,
        keep_blocks=keep_blocks,
        report=report,
    )
    prepared = _prepare(messages, options)
    if isinstance(prepared, list):
        return prepared
    history, meter = prepared
    return _answered(window(history, meter, options), _order(meter.count, options))


async def atrim_messages(
    messages: Iterable[Any] | PromptValue, **options: Any
) -> list[BaseMessage]:
    """`trim_messages` for an event loop, which it never blocks.

    A ``token_counter`` that is a coroutine function is awaited, one list after the other; with any
    other the work is done in a thread.

    Args:
        messages: messages in any form that LangChain takes.
        options: the keywords of `trim_messages`.

    Returns:
        What `trim_messages` returns.

    Raises:
        ValueError: as `trim_messages`, and so for its other exceptions.
    """
    counter: Any = options.get("token_counter")
    if not _is_awaited(counter):
        trim: Callable[..., list[BaseMessage]] = cast("Any", trim_messages)
        return await asyncio.to_thread(trim, messages, **options)
    gathered = _gathered(**options)
    prepared = _prepare(messages, gathered)
    if isinstance(prepared, list):
        return prepared
    history, meter = prepared
    if gathered.per_message_counter is True:
        meter = replace(meter, count=_each_awaited(counter))
    return await _awaited(window(history, meter, gathered), _order(meter.count, gathered))


def _gathered(**options: Any) -> Options:
    """The keywords of one call with the defaults of `trim_messages`."""
    bound = inspect.signature(trim_messages).bind([], **options)
    bound.apply_defaults()
    given = dict(bound.arguments)
    del given["messages"]
    return Options(**given)


def _is_awaited(counter: Any) -> bool:
    call: object = getattr(counter, "__call__", None)  # noqa: B004 - the method is looked at
    return inspect.iscoroutinefunction(counter) or inspect.iscoroutinefunction(call)


def _each_awaited(counter: Callable[[BaseMessage], Any]) -> Callable[..., Any]:
    async def count(messages: Sequence[BaseMessage]) -> Any:
        return sum([await counter(message) for message in messages])

    return count


def _prepare(
    messages: Any, options: Options
) -> tuple[list[BaseMessage], Meter] | list[BaseMessage]:
    """The history and its meter, in LangChain's order of checks; or what LangChain returns."""
    if options.strategy == "first" and (options.start_on or options.include_system):
        return options.refused(messages)
    history = as_messages(messages)
    meter = meter_of(options.token_counter, per_message=options.per_message_counter)
    if meter is None or options.strategy not in {"first", "last"}:
        return options.refused(history)
    return history, meter


def _order(
    count: Callable[[Sequence[BaseMessage]], Any], options: Options
) -> Callable[[Sequence[BaseMessage]], Any]:
    """The counter as it is asked: about reversed lists for ``"last"``, unless told otherwise."""
    if options.last and options.forward_counts:
        return lambda messages: count(messages[::-1])
    return count


def _answered(counting: Counting[_T], count: Callable[[Sequence[BaseMessage]], Any]) -> _T:
    answer: Any = None
    while True:
        try:
            question = counting.send(answer)
        except StopIteration as done:
            return cast("_T", done.value)
        answer = count(question)


async def _awaited(counting: Counting[_T], count: Callable[[Sequence[BaseMessage]], Any]) -> _T:
    answer: Any = None
    while True:
        try:
            question = counting.send(answer)
        except StopIteration as done:
            return cast("_T", done.value)
        answer = await count(question)
