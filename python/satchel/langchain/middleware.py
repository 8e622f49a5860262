"""The middleware that packs the context window of a LangChain agent; ``langchain`` 1.x.

It plans over the thread's log and changes three things: the messages of the request, the messages
of the state (through the command that goes with the model's answer), and long results when they
come. Two private keys of the state hold what it needs to go on; nothing else is kept anywhere, so a
checkpointer, a restart or another process changes nothing.
"""

# Parts of the package that are not its public face.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from langchain.agents.middleware.types import AgentMiddleware, ExtendedModelResponse
from langchain_core.messages import BaseMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.types import Command

from satchel._arguments import invalid, name_of_type, plain_text, whole_number
from satchel._page_reading import PAGE_TOOL_NAME, Source, source_of
from satchel.compaction import CompactionReport, is_worth_it, part_due, redacted, summary_event
from satchel.counting import counter as counter_of
from satchel.errors import BudgetError, InputError, SummaryError
from satchel.langchain.exact import as_chat
from satchel.langchain.middleware_log import ContextState, Record, log_of
from satchel.langchain.middleware_model import assembler_for, definitions, figures_of
from satchel.langchain.middleware_results import page_source, shortened
from satchel.langchain.middleware_window import (
    chat_of,
    edits_of,
    excess_of,
    rendered,
    with_others,
)
from satchel.overflow import is_overflow_error, overflow_details
from satchel.paging import DEFAULT_TOKENS, LEAST_TOKENS, answer, page_tool
from satchel.session import _chain_of
from satchel.summarize.extractive import ExtractiveSummarizer
from satchel.summarize.writing import Attempt, write_summary
from satchel.sync import _LOOP

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from langchain.agents.middleware.types import ModelRequest, ModelResponse, ToolCallRequest

    from satchel.assembler import Assembler
    from satchel.compaction import SummaryPart
    from satchel.counting import AnyCounter
    from satchel.langchain.middleware_log import Log
    from satchel.policy import Policy
    from satchel.summarize.base import Summarizer
    from satchel.summarize.writing import Patience, Written
    from satchel.window import Window
    from satchel.working_set import WorkingSet

__all__ = ["ContextMiddleware"]

_TRIES: Final = 6
_OVERFLOWS: Final = 3
"""How many refused requests in a row are answered with a smaller one."""

_SHRINK: Final = 0.9
_RESULT_TOKENS: Final = 8_000
_MOST_SUMMARIES: Final = 64
_MOST_RESTING: Final = 64


@dataclass(frozen=True, slots=True)
class _Resting:
    """The working set of a thread between two of its requests: saves folding its log again."""

    assembler: Assembler
    chat: list[dict[str, Any]]
    working_set: WorkingSet


@dataclass(slots=True)
class _Plan:
    """One request that is being packed."""

    request: ModelRequest[Any]
    assembler: Assembler
    log: Log
    others: list[tuple[int, BaseMessage]]
    chat: list[dict[str, Any]]
    working_set: WorkingSet
    kept: Mapping[str, bytes | None]
    is_shared: bool
    system: str | None
    tools: list[dict[str, Any]]
    summary: CompactionReport | None = None
    window: Window | None = None
    shown: list[tuple[int | None, BaseMessage]] = field(
        default_factory=list[tuple["int | None", BaseMessage]]
    )


class ContextMiddleware(AgentMiddleware[ContextState, Any, Any]):
    """Keeps every request of an agent within its budget, and valid for its provider.

    A request holds the system prompt, the tools, the schema of a structured answer and the
    messages; together they take at most the budget. What is shortened or left out is changed in the
    agent's state too, in the same step as the model's answer, and is read back with the tool
    ``page_in``, which the middleware brings along. Works with ``invoke`` and ``ainvoke``.

    Args:
        model: the name of the model that budgets and counts are for; None for that of the request.
        budget: input tokens of the whole request; None for the model's window less the reserve.
        reserve_tokens: tokens kept for the answer; only without ``budget``.
        policy: as for `satchel.Assembler`.
        counter: as for `satchel.Assembler`.
        summarizer: who writes summaries, where ``policy.summary`` asks for them; several are asked
            one after the other. One that fails changes nothing but the report.
        patience: how long summaries are waited for.
        redactor: what a summary passes before it is shown: a function of a text.
        max_result_tokens: the most tokens of each text of a tool's result; a longer one is
            shortened when it is produced. None for a quarter of ``budget``, at most 8,000; 0 for no
            limit.
        persist: whether the state's messages are changed too; False for this request only.
        report: called with the `satchel.Window` of each request.

    Raises:
        InputError: ``invalid_value``, ``unknown_model``.

    A request that does not fit even then is a `satchel.BudgetError` out of ``invoke``.
    """

    state_schema = ContextState
    _page_arguments: ClassVar[dict[str, Any]] = page_tool("openai")["function"]["parameters"]

    def __init__(
        self,
        *,
        model: str | None = None,
        budget: int | None = None,
        reserve_tokens: int | None = None,
        policy: str | Policy = "adaptive",
        counter: AnyCounter | None = None,
        summarizer: Summarizer | Sequence[Summarizer] | None = None,
        patience: Patience | None = None,
        redactor: Callable[[str], object] | None = None,
        max_result_tokens: int | None = None,
        persist: bool = True,
        report: Callable[[Window], object] | None = None,
    ) -> None:
        super().__init__()
        if model is not None:
            plain_text("model", model)
        if budget is not None:
            whole_number("budget", budget, least=1)
        if reserve_tokens is not None:
            whole_number("reserve_tokens", reserve_tokens)
            if budget is not None:
                message = "give budget or reserve_tokens: budget is already without the reserve"
                raise invalid(message)
        if max_result_tokens is not None:
            whole_number("max_result_tokens", max_result_tokens)
        if not isinstance(cast("object", persist), bool):
            message = f"persist must be a bool, not {name_of_type(persist)}"
            raise invalid(message)
        for role, given in (("report", report), ("redactor", redactor)):
            if given is not None and not callable(given):
                message = f"{role} must be callable, not {name_of_type(given)}"
                raise invalid(message)
        self._model: Final = model
        self._options: Final[dict[str, Any]] = {
            "budget": budget,
            "reserve_tokens": reserve_tokens,
            "policy": policy,
            "counter": counter,
        }
        try:
            self._chain: Final = _chain_of(summarizer)
        except TypeError as error:
            message = f"summarizer must be a Summarizer or several, not {name_of_type(summarizer)}"
            raise invalid(message) from error
        self._patience: Final = patience
        self._redactor: Final = redactor
        quarter = _RESULT_TOKENS if budget is None else max(LEAST_TOKENS, budget // 4)
        self._result_tokens: Final = (
            min(_RESULT_TOKENS, quarter) if max_result_tokens is None else max_result_tokens
        )
        self._persist: Final = persist
        self._report: Final = report
        self._assemblers: Final[dict[tuple[str | None, int | None, int | None], Assembler]] = {}
        self._written: Final[OrderedDict[bytes, Written]] = OrderedDict()
        self._resting: Final[OrderedDict[str, _Resting]] = OrderedDict()
        self._guard: Final = threading.Lock()
        # Whatever is wrong with the settings is said here, not in the middle of a run.
        self._assembler((model or "gpt-4o", None, None))
        self.tools = [
            StructuredTool(
                name=PAGE_TOOL_NAME,
                description=page_tool("openai")["function"]["description"],
                args_schema=self._page_arguments,
                func=_unanswered,
            )
        ]

    @property
    def name(self) -> str:
        """Its name in the agent, which takes each name once: two of these would undo each other."""
        return "SatchelContextMiddleware"

    # --- the request ------------------------------------------------------------------------------

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Packs the request; what that changed in the state goes along with the answer.

        Raises:
            BudgetError: ``over_budget``.
            InputError: ``unknown_model``; ``counter_failed``.
        """
        strain: list[dict[str, Any]] = []
        while True:
            plan = self._opened(request, strain)
            part = self._part(plan)
            if part is not None:
                _LOOP.run(partial(self._summarize, plan, part))
            packed = self._packed(plan)
            try:
                response = handler(packed)
            except Exception as error:  # noqa: BLE001 - raised again unless it is an overflow
                self._strain(plan, strain, error)
                continue
            return self._answered(plan, response)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """As `wrap_model_call`; planning runs in a thread, never on the event loop."""
        strain: list[dict[str, Any]] = []
        while True:
            plan = await asyncio.to_thread(self._opened, request, strain)
            part = await asyncio.to_thread(self._part, plan)
            if part is not None:
                await self._summarize(plan, part)
            packed = await asyncio.to_thread(self._packed, plan)
            try:
                response = await handler(packed)
            except Exception as error:  # noqa: BLE001 - raised again unless it is an overflow
                self._strain(plan, strain, error)
                continue
            return await asyncio.to_thread(self._answered, plan, response)

    # --- results ----------------------------------------------------------------------------------

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        """Answers the page-in tool, and shortens what another tool gives where it is too long."""
        if request.tool_call["name"] == PAGE_TOOL_NAME:
            return self._page(request)
        return self._shortened(handler(request))

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        """As `wrap_tool_call`."""
        if request.tool_call["name"] == PAGE_TOOL_NAME:
            return await asyncio.to_thread(self._page, request)
        return await asyncio.to_thread(self._shortened, await handler(request))

    # --- in between -------------------------------------------------------------------------------

    def _assembler(self, figures: tuple[str | None, int | None, int | None]) -> Assembler:
        found = self._assemblers.get(figures)
        if found is None:
            found = self._assemblers[figures] = assembler_for(figures, **self._options)
        return found

    def _assembler_of(self, model: object) -> Assembler:
        return self._assembler((self._model, None, None) if self._model else figures_of(model))

    def _opened(self, request: ModelRequest[Any], strain: Sequence[Mapping[str, Any]]) -> _Plan:
        """The log of the thread, folded up to now; nothing is changed."""
        state = cast("dict[str, Any]", request.state)
        held: list[BaseMessage] = list(state.get("messages") or ())
        kept: Mapping[str, bytes | None] = state.get("satchel_kept") or {}
        record: Record | None = state.get("satchel_context")
        others = _others(request.messages, held)
        is_shared = others is not None
        log = log_of(held if is_shared else request.messages, record, kept)
        placed = [] if others is None else _in_log(others, held, log)
        assembler = self._assembler_of(request.model)
        chat = chat_of(log.messages)
        system = _system_of(request, [message for _, message in placed])
        tools = definitions(request)
        rested = self._taken(assembler, log, chat)
        if rested is not None:
            working_set = rested.working_set
            chat = [*rested.chat, *chat[len(rested.chat) :]]
            working_set.append(chat[len(rested.chat) :])
            if _budget_of(log.events) != assembler.budget:
                working_set.apply({"kind": "settings", "budget": assembler.budget})
        else:
            working_set = _folded(assembler, log, chat, system, tools)
        for event in strain:
            working_set.apply(event)
        return _Plan(
            request=request,
            assembler=assembler,
            log=log,
            others=placed,
            chat=chat,
            working_set=working_set,
            kept=kept,
            is_shared=is_shared,
            system=system,
            tools=tools,
        )

    def _taken(self, assembler: Assembler, log: Log, chat: list[dict[str, Any]]) -> _Resting | None:
        """The working set of this very log, if it is here; nobody else has it until it is back."""
        with self._guard:
            found = self._resting.pop(_thread_of(log), None)
        if found is None or found.assembler is not assembler:
            return None
        if not log.events or log.events != [dict(event) for event in found.working_set.events]:
            return None
        return found if chat[: len(found.chat)] == found.chat else None

    def _rest(self, plan: _Plan) -> None:
        with self._guard:
            self._resting[_thread_of(plan.log)] = _Resting(
                plan.assembler, plan.chat, plan.working_set
            )
            while len(self._resting) > _MOST_RESTING:
                self._resting.popitem(last=False)

    def _part(self, plan: _Plan) -> SummaryPart | None:
        """What a summary is due for."""
        settings = plan.assembler.policy.summary
        if settings is None:
            return None
        part = part_due(plan.working_set, settings)
        return part if part is not None and is_worth_it(part, settings) else None

    async def _summarize(self, plan: _Plan, part: SummaryPart) -> None:
        """Has the part summarised; if nobody can, all stays as it is and the report says so."""
        settings = plan.assembler.policy.summary
        if settings is None:
            return
        working_set = plan.working_set
        previous = None if part.previous is None else part.previous["text"]
        key = _key_of(part, previous)
        try:
            written = self._written.get(key)
            if written is None:
                last = (ExtractiveSummarizer(),) if settings.fallback or not self._chain else ()
                written = await write_summary(
                    part.messages,
                    part.dialect,
                    first=part.first,
                    previous=previous,
                    chain=(*self._chain, *last),
                    counter=working_set.counter,
                    max_tokens=settings.max_tokens,
                    patience=self._patience,
                )
                if self._redactor is not None:
                    written = await asyncio.to_thread(
                        redacted, written, self._redactor, working_set.counter, settings.max_tokens
                    )
                # A request that is tried again does not pay for its summary again.
                self._written[key] = written
                while len(self._written) > _MOST_SUMMARIES:
                    self._written.popitem(last=False)
            event = summary_event(working_set, part, written, settings, self._redactor)
            await asyncio.to_thread(working_set.apply, event)
            plan.summary = CompactionReport(
                outcome="summarized",
                covers=(part.first, part.end),
                summary_tokens=written.tokens,
                summarizer=written.summarizer,
                requests=written.requests,
                failures=written.failures,
                usage=written.usage,
            )
        except SummaryError as error:
            plan.summary = CompactionReport(
                outcome="failed",
                covers=(part.first, part.end),
                requests=error.value or 0,
                failures=(Attempt(summarizer="all", code=error.code, message=str(error)),),
            )

    def _packed(self, plan: _Plan) -> ModelRequest[Any]:
        """The request with the messages of the window."""
        window = self._fitting(plan)
        if plan.summary is not None:
            report = window.report.model_copy(update={"summary": plan.summary})
            window = replace(window, report=report)
        plan.window = window
        if self._report is not None:
            self._report(window)
        messages = with_others(plan.shown, plan.others)
        return plan.request.override(messages=cast("Any", messages))

    def _fitting(self, plan: _Plan) -> Window:
        """A window that is within its budget as LangChain's messages, too."""
        working_set = plan.working_set
        tries = 0
        while True:
            window = working_set.window(
                system=plan.system, tools=plan.tools, open_calls="synthesize"
            )
            plan.shown = rendered(window.messages, plan.chat, plan.log)
            shown = [message for _, message in plan.shown]
            excess = excess_of(window.messages, shown, working_set.counter)
            excess = math.ceil(excess * max(1.0, _factor_of(window.events)))
            above = window.tokens_upper + excess - plan.assembler.budget
            if above <= 0:
                return window
            tries += 1
            if tries == _TRIES:
                message = f"shortened calls take {excess} tokens more than planned"
                size, limit = window.tokens_upper + excess, plan.assembler.budget
                raise BudgetError(message, code="over_budget", value=size, limit=limit)
            # Of this boundary only: the next request begins with the whole budget again.
            # The smaller window has other calls shortened, so there is room for those too.
            smaller = window.budget - excess - above * 2**tries
            working_set.apply({"kind": "settings", "budget": max(1, smaller)})

    def _answered(
        self, plan: _Plan, response: ModelResponse[Any]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """The answer, with what changes in the state."""
        state = cast("dict[str, Any]", plan.request.state)
        before: Record | None = state.get("satchel_context")
        if not plan.is_shared:
            return response
        update: dict[str, Any] = {}
        edited = plan.log.edited
        if self._persist:
            edits = edits_of(plan.log, plan.shown, plan.kept)
            edited = edits.edited
            if edits.messages:
                update["messages"] = edits.messages
            if edits.kept:
                update["satchel_kept"] = edits.kept
        events = [dict(event) for event in plan.working_set.events]
        self._rest(plan)
        is_same = (
            before is not None
            and before["events"] == events
            and before["edited"] == edited
            and "messages" not in update
        )
        if not is_same:
            update["satchel_context"] = Record(events=events, order=plan.log.order, edited=edited)
        if not update:
            return response
        return ExtendedModelResponse(model_response=response, command=Command(update=update))

    def _strain(self, plan: _Plan, strain: list[dict[str, Any]], error: Exception) -> None:
        """Notes that the provider found the request too long; raises what is something else."""
        window = plan.window
        if window is None or len(strain) >= _OVERFLOWS or not is_overflow_error(error):
            raise error
        limit, actual = overflow_details(error) or (None, None)
        factor = _factor_of(plan.working_set.events)
        wanted = factor / _SHRINK
        if actual is not None and actual > window.tokens_upper:
            wanted = max(wanted, factor * actual / max(1, window.tokens_upper))
        if limit is not None and limit < window.budget:
            wanted = max(wanted, window.budget / max(1, limit))
        strain.append({"kind": "calibration", "factor": wanted, "offset": 0.0})

    def _shortened(self, result: ToolMessage | Command[Any]) -> ToolMessage | Command[Any]:
        if not self._result_tokens:
            return result
        return shortened(result, self._counter(), self._result_tokens)

    def _counter(self) -> Any:
        """What counts where no request tells the model: the newest one's, or the usual encoding."""
        if self._options["counter"] is not None or self._model is not None:
            return self._assembler((self._model or "gpt-4o", None, None)).counter
        return counter_of("o200k_base")

    def _page(self, request: ToolCallRequest) -> ToolMessage:
        """The answer to a call of the page-in tool; reads, and changes nothing."""
        state = cast("dict[str, Any]", request.state)
        kept: Mapping[str, bytes | None] = state.get("satchel_kept") or {}
        log = log_of(list(state.get("messages") or ()), state.get("satchel_context"), kept)
        events = log.events
        budget = _budget_of(events)
        assembler = self._assembler((self._model or "gpt-4o", None, None))
        working_set = assembler.working_set(chat_of(log.messages), events=events)

        def read(pointer: str) -> Source:
            found = page_source(kept, pointer, len(log.messages))
            return source_of(working_set._eras, pointer) if found is None else found  # noqa: SLF001 - a part of the package

        most = DEFAULT_TOKENS if budget is None else min(DEFAULT_TOKENS, budget // 4)
        call = request.tool_call
        said = answer(
            call["args"], read=read, counter=working_set.counter, max_tokens=max(LEAST_TOKENS, most)
        )
        return ToolMessage(
            said.text,
            name=PAGE_TOOL_NAME,
            tool_call_id=call["id"] or "",
            status="error" if said.is_error else "success",
        )


def _folded(
    assembler: Assembler,
    log: Log,
    chat: list[dict[str, Any]],
    system: str | None,
    tools: list[dict[str, Any]],
) -> WorkingSet:
    """The working set of a log, from the start."""
    try:
        return assembler.working_set(chat, events=log.events, system=system, tools=tools)
    except InputError as error:
        if not log.events or error.code != "invalid_event":
            raise
        # Somebody changed the history under the events.
        return assembler.working_set(chat, system=system, tools=tools)


def _thread_of(log: Log) -> str:
    """What finds a resting working set again; whether it is the right one is looked at then."""
    return log.messages[0].id or "" if log.messages else ""


def _others(
    asked: Sequence[BaseMessage], held: Sequence[BaseMessage]
) -> list[tuple[int, BaseMessage]] | None:
    """What a request has beside the state's messages, each behind how many of them.

    None where it does not have all of them in their order: others have changed it before.
    """
    found: list[tuple[int, BaseMessage]] = []
    at = 0
    for message in asked:
        if at < len(held) and (message is held[at] or message == held[at]):
            at += 1
        else:
            found.append((at, message))
    return found if at == len(held) else None


def _in_log(
    others: Sequence[tuple[int, BaseMessage]], held: Sequence[BaseMessage], log: Log
) -> list[tuple[int, BaseMessage]]:
    """The places of those in the log, which has more messages than the state."""
    places: list[int] = [at for at, message in enumerate(log.shown) if message is not None]
    if len(places) != len(held):
        return [(len(log.messages), message) for _, message in others]
    return [(places[before - 1] if before else -1, message) for before, message in others]


def _system_of(request: ModelRequest[Any], others: Sequence[BaseMessage]) -> str | None:
    """What counts before the messages: the system prompt, and what only this request has."""
    system = request.system_message
    texts: list[str] = [] if system is None else [system.text]
    for message in others:
        texts.append(message.text)
        if calls := as_chat(message).get("tool_calls"):
            texts.append(json.dumps(calls, ensure_ascii=False))
    return "\n".join(texts) if texts else None


def _budget_of(events: Sequence[Mapping[str, Any]]) -> int | None:
    """The budget in force; None if the events say none."""
    return next((event["budget"] for event in reversed(events) if "budget" in event), None)


def _factor_of(events: Sequence[Mapping[str, Any]]) -> float:
    for event in reversed(events):
        if event["kind"] == "calibration":
            return float(event["factor"])
    return 1.0


def _key_of(part: SummaryPart, previous: str | None) -> bytes:
    text = repr((part.first, part.end, previous, part.messages))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _unanswered(**_: object) -> str:
    """What the tool says where the middleware is not there to answer it."""
    return f"{PAGE_TOOL_NAME} failed: it works only in an agent with ContextMiddleware"
