"""A node that summarises the older steps of a graph's messages, and takes them out of the state.

What it decides is which whole steps are old: the newest user message and the newest messages stay,
calls stay with all of their results; so does what no removal can name, having no id or one that
occurs twice. The summary stands in a key of its own, with a marker of how
far it goes instead of a set of ids that grows. A summarizer that fails changes nothing.
"""

# Parts of the package that are not its public face.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from collections import Counter as Tally
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from langchain_core.messages import (
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
)
from langchain_core.runnables import Runnable
from typing_extensions import TypedDict  # before Python 3.12 pydantic reads no other

from satchel._arguments import invalid, name_of_type, one_of, plain_text, whole_number
from satchel.compaction import CompactionReport, redacted
from satchel.counting import Counter
from satchel.counting import counter as counter_of
from satchel.errors import SummaryError
from satchel.langchain.middleware_window import chat_of
from satchel.langchain.steps import whole_steps
from satchel.paging import fence
from satchel.session import _chain_of
from satchel.summarize.extractive import ExtractiveSummarizer
from satchel.summarize.writing import Attempt, write_summary
from satchel.sync import _LOOP

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langchain_core.runnables import RunnableConfig

    from satchel.counting import AnyCounter
    from satchel.summarize.base import Summarizer
    from satchel.summarize.writing import Patience

__all__ = ["RunningSummary", "SummaryNode"]

_SOURCE: Final = "summary of earlier steps"
_HINTS: Final = ("messages", "tokens")


class RunningSummary(TypedDict):
    """What the state keeps of a summary: JSON, and of one size however long the thread is.

    Attributes:
        summary: its text.
        last_summarized_message_id: id of the newest message that it covers.
        summarized_messages: how many messages it covers.
        spared_message_id: id of a question up to there that it does not cover.
        message_id: id of the message that shows it, where it stands among the messages.
    """

    summary: str
    last_summarized_message_id: str
    summarized_messages: int
    spared_message_id: str | None
    message_id: str | None


@dataclass(frozen=True, slots=True)
class _Due:
    """What is to be summarised: messages by place, and the summary that it goes on from."""

    places: list[int]
    messages: list[BaseMessage]
    running: RunningSummary | None
    spared_id: str | None


class SummaryNode(Runnable[Any, dict[str, Any]]):
    """A node of LangGraph, or a ``pre_model_hook``; for ``invoke`` and ``ainvoke``.

    As a node it returns ``RemoveMessage`` updates and the running summary, or nothing; the model's
    node then sends `window` of the state. With ``hook=True`` it returns the request of each call as
    ``llm_input_messages`` too, every time: LangGraph would send a former one again.

    Args:
        summarizer: who writes summaries; several are asked one after the other, the extractive one,
            which needs no model, last in any case.
        trigger: ``("messages", n)`` or ``("tokens", n)``: summarise with more than n of them.
        keep: the newest messages that no summary covers; whole steps, so it may be more.
        max_tokens: the most tokens of a summary.
        model: whose tokens count; None for those of ``o200k_base``.
        counter: what counts; instead of ``model``.
        show: ``context``: the summary stands in its own key; ``messages``: it stands among the
            messages too, in the place and under the id of the first one that it covers.
        hook: whether the node is a ``pre_model_hook``.
        remove: whether messages that the summary covers leave the state.
        messages_key: the key of the messages.
        context_key: the key of the running summary.
        fallback: whether the extractive summary steps in where all others failed.
        patience: how long summaries are waited for.
        redactor: what each summary passes before it is kept: a function of a text.
        report: called with the `satchel.CompactionReport` of each summary, one that failed too.

    Raises:
        InputError: ``invalid_value``, ``unknown_model``.
    """

    def __init__(
        self,
        summarizer: Summarizer | Sequence[Summarizer] | None = None,
        *,
        trigger: tuple[Literal["messages", "tokens"], int] = ("messages", 8),
        keep: int = 2,
        max_tokens: int = 300,
        model: str | None = None,
        counter: AnyCounter | None = None,
        show: Literal["context", "messages"] = "context",
        hook: bool = False,
        remove: bool = True,
        messages_key: str = "messages",
        context_key: str = "context",
        fallback: bool = True,
        patience: Patience | None = None,
        redactor: Callable[[str], object] | None = None,
        report: Callable[[CompactionReport], object] | None = None,
    ) -> None:
        pair: object = trigger
        if not isinstance(pair, (tuple, list)) or len(cast("Sequence[object]", pair)) != 2:  # noqa: PLR2004 - a name and a number
            message = "trigger must be a pair such as ('messages', 8)"
            raise invalid(message)
        self._unit: Final = one_of("the unit of trigger", trigger[0], _HINTS)
        self._most: Final = whole_number("trigger", trigger[1])
        self._keep: Final = whole_number("keep", keep)
        self._max_tokens: Final = whole_number("max_tokens", max_tokens, least=16)
        one_of("show", show, ("context", "messages"))
        for role, flag in (("hook", hook), ("remove", remove), ("fallback", fallback)):
            if not isinstance(cast("object", flag), bool):
                message = f"{role} must be a bool, not {name_of_type(flag)}"
                raise invalid(message)
        if show == "messages" and not remove:
            message = "a summary that stands among the messages takes the place of what it covers"
            raise invalid(message)
        for role, given in (("report", report), ("redactor", redactor)):
            if given is not None and not callable(given):
                message = f"{role} must be callable, not {name_of_type(given)}"
                raise invalid(message)
        self._messages_key: Final = plain_text("messages_key", messages_key)
        self._context_key: Final = plain_text("context_key", context_key)
        if counter is None:
            self._counter = counter_of("o200k_base" if model is None else model)
        else:
            self._counter = counter if isinstance(counter, Counter) else Counter(counter)
        try:
            chain = _chain_of(summarizer)
        except TypeError as error:
            message = f"summarizer must be a Summarizer or several, not {name_of_type(summarizer)}"
            raise invalid(message) from error
        last = (ExtractiveSummarizer(),) if fallback or not chain else ()
        self._chain: Final = (*chain, *last)
        self._shows_messages: Final = show == "messages"
        self._hook: Final = hook
        self._remove: Final = remove
        self._patience: Final = patience
        self._redactor: Final = redactor
        self._report: Final = report
        self.name = "SummaryNode"

    def invoke(
        self,
        input: Any,  # noqa: A002, ANN401 - the signature of Runnable
        config: RunnableConfig | None = None,  # noqa: ARG002 - likewise
        **_: Any,  # noqa: ANN401 - likewise
    ) -> dict[str, Any]:
        """The update of the state.

        Raises:
            InputError: ``invalid_value`` if the state has no messages.
        """
        due = self._due(input)
        return self._update(input, None if due is None else _LOOP.run(lambda: self._write(due)))

    async def ainvoke(
        self,
        input: Any,  # noqa: A002, ANN401 - the signature of Runnable
        config: RunnableConfig | None = None,  # noqa: ARG002 - likewise
        **_: Any,  # noqa: ANN401 - likewise
    ) -> dict[str, Any]:
        """As `invoke`; what is counted and decided is so off the event loop."""
        due = await asyncio.to_thread(self._due, input)
        made = None if due is None else await self._write(due)
        return await asyncio.to_thread(self._update, input, made)

    def window(self, state: Mapping[str, Any]) -> list[BaseMessage]:
        """What the model is to be sent: instructions, the summary, and what it does not cover.

        Args:
            state: the state of the graph.

        Raises:
            InputError: ``invalid_value`` if the state has no messages.
        """
        messages, running = self._read(state)
        if running is None or running["message_id"] is not None:
            return messages
        covered = self.summarized_message_ids(state)
        note = HumanMessage(fence(_SOURCE, running["summary"]))
        rest = [one for one in messages if one.id not in covered]
        first = next(
            (at for at, one in enumerate(rest) if not isinstance(one, SystemMessage)), len(rest)
        )
        return [*rest[:first], note, *rest[first:]]

    def summarized_message_ids(self, state: Mapping[str, Any]) -> set[str]:
        """Ids of the messages that are still in the state and that the summary covers."""
        messages, running = self._read(state)
        if running is None:
            return set()
        ids = [one.id for one in messages]
        last = running["last_summarized_message_id"]
        if last not in ids:
            return set()
        end = ids.index(last) + 1
        spared = {running["spared_message_id"], running["message_id"]}
        named = _named(messages)
        return {
            one.id
            for one in messages[:end]
            if one.id in named and one.id not in spared and not isinstance(one, SystemMessage)
        }

    # --- deciding ---------------------------------------------------------------------------------

    def _read(self, state: object) -> tuple[list[BaseMessage], RunningSummary | None]:
        messages = _field(state, self._messages_key)
        if not isinstance(messages, (list, tuple)):
            message = f"the state has no messages under {self._messages_key!r}"
            raise invalid(message)
        context: Any = _field(state, self._context_key) or {}
        running: RunningSummary | None = context.get("running_summary")
        return list(cast("Sequence[BaseMessage]", messages)), running

    def _due(self, state: object) -> _Due | None:
        messages, running = self._read(state)
        shown = None if running is None else running["message_id"]
        spared_id = None if running is None else running["spared_message_id"]
        ids = [one.id for one in messages]
        named = _named(messages)
        start = 0
        if running is not None and running["last_summarized_message_id"] in ids:
            start = ids.index(running["last_summarized_message_id"]) + 1
        held = [
            at
            for at, one in enumerate(messages)
            if not isinstance(one, SystemMessage)
            and one.id != shown
            and (at >= start or (spared_id is not None and one.id == spared_id))
        ]
        if not self._is_over([messages[at] for at in held]):
            return None
        questions = [at for at in held if isinstance(messages[at], HumanMessage)]
        spared = {*held[len(held) - min(self._keep, len(held)) :], *questions[-1:]}
        places: list[int] = []
        steps = [[held[at] for at in step] for step in whole_steps([messages[at] for at in held])]
        for step in steps:
            if questions[-1:] == step:
                continue
            # From the first step on that must stay, all do; so does what cannot be named.
            if spared.intersection(step) or any(messages[at].id not in named for at in step):
                break
            places += step
        if not places:
            return None
        # Results without call, and calls without all results, go with what is around them.
        inside = {at for step in steps for at in step}
        end = max(places)
        places += [at for at in held if at < end and at not in inside and messages[at].id in named]
        places.sort()
        question = questions[-1:]
        is_spared = bool(question) and question[0] < places[-1]
        spared_id = messages[question[0]].id if is_spared else None
        return _Due(places, [messages[at] for at in places], running, spared_id)

    def _is_over(self, held: Sequence[BaseMessage]) -> bool:
        if self._unit == "messages":
            return len(held) > self._most
        return self._tokens(held) > self._most

    def _tokens(self, messages: Sequence[BaseMessage]) -> int:
        counted = self._counter.count_messages(chat_of(messages), dialect="openai")
        return counted.upper

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self, due: _Due) -> tuple[_Due, str] | None:
        """The summary; None if nobody wrote one."""
        previous = None if due.running is None else due.running["summary"]
        covers = (due.places[0], due.places[-1] + 1)
        try:
            # Counting and whatever the caller's redactor does take their time off the event loop.
            chat = await asyncio.to_thread(chat_of, due.messages)
            written = await write_summary(
                chat,
                "openai",
                first=due.places[0],
                previous=previous,
                chain=self._chain,
                counter=self._counter,
                max_tokens=self._max_tokens,
                patience=self._patience,
            )
            if self._redactor is not None:
                written = await asyncio.to_thread(
                    redacted, written, self._redactor, self._counter, self._max_tokens
                )
        except SummaryError as error:
            failure = Attempt(summarizer="all", code=error.code, message=str(error))
            self._tell(CompactionReport(outcome="failed", covers=covers, failures=(failure,)))
            return None
        covered = await asyncio.to_thread(self._tokens, due.messages)
        self._tell(
            CompactionReport(
                outcome="summarized",
                covers=covers,
                freed_tokens=covered - written.tokens,
                summary_tokens=written.tokens,
                summarizer=written.summarizer,
                requests=written.requests,
                failures=written.failures,
                usage=written.usage,
            )
        )
        return due, written.text

    def _tell(self, report: CompactionReport) -> None:
        if self._report is not None:
            self._report(report)

    def _update(self, state: Any, made: tuple[_Due, str] | None) -> dict[str, Any]:  # noqa: ANN401 - a graph's own state
        update: dict[str, Any] = {}
        if made is not None:
            update = self._changes(state, *made)
        if self._hook:
            update["llm_input_messages"] = self._asked(state, update)
        return update

    def _changes(self, state: Any, due: _Due, text: str) -> dict[str, Any]:  # noqa: ANN401 - as above
        messages, running = self._read(state)
        before = 0 if running is None else running["summarized_messages"]
        names = [one.id for one in due.messages if one.id]
        shown = None if running is None else running["message_id"]
        edits: list[BaseMessage] = []
        if self._shows_messages:
            if shown is None or shown not in {one.id for one in messages}:
                shown = names.pop(0)
            edits.append(HumanMessage(fence(_SOURCE, text), id=shown))
        if self._remove:
            edits += [RemoveMessage(id=name) for name in names]
        context: Any = _field(state, self._context_key) or {}
        summary = RunningSummary(
            summary=text,
            last_summarized_message_id=due.messages[-1].id or "",
            summarized_messages=before + len(due.messages),
            spared_message_id=due.spared_id,
            message_id=shown if self._shows_messages else None,
        )
        update: dict[str, Any] = {self._context_key: {**context, "running_summary": summary}}
        if edits:
            update[self._messages_key] = edits
        return update

    def _asked(self, state: Any, update: Mapping[str, Any]) -> list[BaseMessage]:  # noqa: ANN401 - as above
        """The request after this update."""
        messages, _ = self._read(state)
        edits = {one.id: one for one in update.get(self._messages_key, ())}
        left: list[BaseMessage] = []
        for one in messages:
            edit = edits.get(one.id) if one.id else None
            if not isinstance(edit, RemoveMessage):
                left.append(one if edit is None else edit)
        context: Any = update.get(self._context_key) or _field(state, self._context_key) or {}
        return self.window({self._messages_key: left, self._context_key: context})


def _named(messages: Sequence[BaseMessage]) -> set[str]:
    """The ids that name one message; a removal by any other would take more than is meant."""
    counts = Tally(one.id for one in messages)
    return {name for name, count in counts.items() if name and count == 1}


def _field(state: object, key: str) -> Any:  # noqa: ANN401 - a graph's own state
    """A key of a state, which is a dict or an object."""
    held: Any = state
    return held.get(key) if hasattr(held, "get") else getattr(held, key, None)
