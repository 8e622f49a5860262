"""The working set: the state of one history, and the windows over it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from satchel import _core
from satchel._arguments import (
    MOST_WHOLE,
    UNSET,
    Unset,
    invalid,
    listed,
    name_of_type,
    one_of,
    optional_text,
    whole_number,
)
from satchel._bound_reasoning import unbound
from satchel._damage import Repairs
from satchel._era import CLOSED, Era
from satchel._given_context import MEMORY_PART, given_events
from satchel._handover import converted_request, joined_system
from satchel._log_events import (
    FIXED,
    binds_reasoning,
    by_dialect,
    differing,
    fixed_tokens,
    plain_event,
    with_figures_of_model,
)
from satchel._page_calls import calls_in, results_of
from satchel._page_reading import PAGE_TOOL_NAME, read_page, source_of
from satchel._provider_edits import provider_edits
from satchel._reasoning import thinking_tail
from satchel._stakes import checked_stakes, window_with_originals
from satchel.counting import resolved
from satchel.errors import BudgetError, InputError, SatchelError
from satchel.paging import DEFAULT_TOKENS, LEAST_TOKENS, answer
from satchel.policy import planned_policy
from satchel.window import Columns, StepReport, window_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel._handover import Opening
    from satchel._page_calls import ToolCall
    from satchel._stakes import Stakes
    from satchel.assembler import Assembler
    from satchel.counting import Counter
    from satchel.window import Window

__all__ = ["OpenCalls", "WorkingSet"]

OpenCalls = Literal["raise", "synthesize"]

_SIGNED: Final = ("anthropic", "bedrock", "openai")
"""Dialects in which reasoning is bound to what stands before it, with some models; in chat messages
it stands as blocks of their provider's, as frameworks keep it."""

_PAIR: Final = 2


class WorkingSet:
    """The state of one history: append messages, apply events, ask for windows.

    Made by `Assembler.working_set`. Used from one thread at a time; a second one gets a
    ``UsageError`` (``concurrent_use``). Appending costs what the new messages cost, however long
    the history is. Pickles by its messages and events, from which it is rebuilt to the same bytes.

    A ``settings`` event may name another model and another ``dialect``. Messages appended from then
    on are in that dialect, and so are the windows: what was in the window is converted, without
    foreign reasoning; what was gone stays gone and can still be read. A step that is gone by then
    cannot be pinned or placed again.
    """

    __slots__ = (
        "_assembler",
        "_era",
        "_events",
        "_is_bound",
        "_joined",
        "_past",
        "_said",
        "_system",
        "_tools",
    )

    _era: Era
    _system: Any
    _tools: Sequence[Any] | None

    def __init__(
        self,
        assembler: Assembler,
        messages: Iterable[Any] = (),
        *,
        events: Iterable[Mapping[str, Any]] = (),
        system: object = None,
        tools: Sequence[Any] | None = None,
    ) -> None:
        self._open(_checked_assembler(assembler), messages, events, system, tools)
        self._settle(self._own_settings())

    def _open(
        self,
        assembler: Assembler,
        messages: Iterable[Any],
        events: Iterable[Mapping[str, Any]],
        system: object,
        tools: Sequence[Any] | None,
        *,
        checkpoint: str | None = None,
    ) -> None:
        """Folds the log as it is; with a ``checkpoint``, even an empty one, it keeps them."""
        self._assembler = assembler
        self._joined: tuple[Any, Any, Any] = (None, None, None)
        self._system, self._tools = system, tools
        if not isinstance(cast("object", events), Iterable):
            message = f"events must be an iterable of events, not {type(events).__name__}"
            raise InputError(message, code="invalid_value")
        self._events = tuple(plain_event(event, at) for at, event in enumerate(events))
        if not self._events:
            self._events = (self._own_settings(),)
        # The settings in force: what the events say, one after the other.
        self._said: dict[str, Any] = {}
        self._past: list[Era] = []
        parts = list(by_dialect(self._events))
        if len(parts) == 1:
            self._era = self._opened(parts[0], messages, checkpoint=checkpoint)
        else:
            self._open_parts(parts, list(messages))
            return
        for event in self._events:
            self._note(event)

    def _open_parts(self, parts: list[list[Mapping[str, Any]]], messages: list[Any]) -> None:
        """Folds a log that changes its dialect: the messages of each part, and its events."""
        starts = [0, *(part[0]["at"] for part in parts[1:]), len(messages)]
        for number, part in enumerate(parts):
            start, end = starts[number : number + _PAIR]
            if not start <= end <= len(messages):
                message = f"the dialect changes at message {end}, the log has {len(messages)}"
                raise InputError(message, code="invalid_event")
            if number > 0:
                self._past.append(self._era)
            # An era begins with all settings, as the log does.
            events = [{**self._said, **part[0]}, *part[1:]]
            self._era = self._opened(events, messages[start:end])
            for event in part:
                self._note(event)

    def _opened(
        self,
        events: Sequence[Mapping[str, Any]],
        messages: Iterable[Any],
        opening: Opening | None = None,
        checkpoint: str | None = None,
    ) -> Era:
        """The era that begins where the newest of the past ones ends, with its ``opening``."""
        assembler = self._assembler
        if not self._past:
            era = Era(events, checkpoint=checkpoint)
        else:
            before = self._past[-1]
            era = Era(
                events,
                start=before.start + len(before.raw),
                opening=opening or before.hand_over(events[0]["dialect"]),
                closed=before.rows(),
                summary=before.summary,
            )

        def build(history: Iterable[Any]) -> _core.WorkingSet:
            # What was counted by another assembler's counter is counted by it again.
            first = self._named_counters(era.events[:1])
            later = [era.event_inside(event) for event in era.events[1:]]
            return _core.WorkingSet(
                first[0] if first else assembler.counter,
                json.dumps({**era.events[0], "at": 0} if era.opening else era.events[0]),
                history,
                json.dumps([*era.handed_on_events(), *later]),
                [assembler.counter, *self._named_counters(era.events)],
                era.gone,
                era.checkpoint(),
            )

        era.repairs = Repairs(
            assembler.on_damage,
            dialect=era.dialect,
            model=events[0].get("model", assembler.model),
            request=lambda: (self._whole_system(era), self._tools),
            build=build,
        )
        with era.errors_outside():
            era.core = era.repairs.open([*era.handed_on, *messages] if era.opening else messages)
        return era

    @classmethod
    def _restore(
        cls,
        assembler: Assembler,
        messages: Iterable[Any],
        events: tuple[Mapping[str, Any], ...],
        system: object,
        tools: Sequence[Any] | None,
        *,
        checkpoint: str | None = None,
    ) -> WorkingSet:
        """The working set of a pickle: settings that events changed are not changed back."""
        working_set = cls.__new__(cls)
        working_set._open(  # noqa: SLF001 - its own
            assembler, messages, events, system, tools, checkpoint=checkpoint
        )
        return working_set

    def _note(self, event: Mapping[str, Any]) -> None:
        if event["kind"] == "summary":
            self._era.summary = event
        if event["kind"] == "settings":
            self._said.update(event)
            self._is_bound = self._era.dialect in _SIGNED and binds_reasoning(
                self._said.get("model", self._assembler.model)
            )

    def __len__(self) -> int:
        return len(self._era)

    def __repr__(self) -> str:
        return f"<satchel.WorkingSet of {len(self)} messages, {len(self._events)} events>"

    def __reduce__(self) -> tuple[object, ...]:
        raw = [message for era in (*self._past, self._era) for message in era.raw]
        return (
            WorkingSet._restore,
            (self._assembler, raw, self._events, self._system, self._tools),
        )

    @property
    def dialect(self) -> str:
        """The dialect of windows, and of messages that are appended."""
        return self._era.dialect

    @property
    def counter(self) -> Counter:
        """What counts."""
        return self._counter()

    @property
    def messages(self) -> list[Any]:
        """The raw history, the caller's own objects; repaired, if it could not be packed."""
        before = [message for era in self._past for message in era.raw]
        return [*before, *self._era.messages]

    @property
    def events(self) -> tuple[Mapping[str, Any], ...]:
        """All events so far; event 0 is ``settings``."""
        return self._events

    @property
    def columns(self) -> Columns:
        """What happened to each step, as read-only numpy arrays."""
        arrays = self._era.columns()
        for array in arrays.values():
            array.setflags(write=False)
        return Columns(**arrays)

    def append(self, messages: object) -> None:
        """Appends one message or several; all of them or, on an error, none.

        Raises:
            InputError: as in `Assembler.assemble`.
        """
        # Messages of the clients have a role, their items a type.
        is_one = isinstance(messages, (dict, Mapping)) or any(
            hasattr(messages, name) for name in ("role", "type")
        )
        several = cast("Iterable[object]", [messages] if is_one else messages)
        self._era.append(several)

    def apply(self, event: Mapping[str, Any]) -> None:
        """Folds an event at the end of the log, such as ``{"kind": "pin", "index": 3}``.

        ``at`` may be left out; it is the number of messages so far. Settings that name another
        model bring its counter, unless they name one or the one in force is not a model's, and
        lower the budget to what that model can take, unless they name one. With another dialect the
        system prompt and the tools are converted too.

        Raises:
            InputError: ``invalid_event``, ``invalid_value``; ``open_calls`` for a change of the
                dialect while calls wait for results; ``unknown_dialect``, ``unknown_model``.
            PageNotFoundError: a ``page_in`` whose pointer has no page.
        """
        event = {"at": len(self), **plain_event(event, len(self._events))}
        if event.get("kind") == "settings":
            event = with_figures_of_model(event, self._said)
            if "policy" in event:
                event["policy"] = planned_policy(event["policy"])
        self._fold(event, is_converted=True)

    def _fold(self, event: dict[str, Any], *, is_converted: bool) -> None:
        """Folds an event; ``is_converted`` if system and tools are still in the old dialect."""
        era = self._era
        is_settings = event.get("kind") == "settings"
        if is_settings and len(list(by_dialect([{**self._said, "at": 0}, event]))) > 1:
            self._change_dialect(event, is_converted=is_converted)
            return
        named = self._named_counters((event,))
        if is_settings and "counter" in event:
            # Another counter says another number for these too.
            event = {**self._fixed_tokens(self._counter_of(event)), **event}
        with era.errors_outside():
            era.core.apply(json.dumps(era.event_inside(event)), named[0] if named else None)
        self._events = (*self._events, event)
        era.events = (*era.events, event)
        self._note(event)

    def _change_dialect(self, event: dict[str, Any], *, is_converted: bool) -> None:
        before, at = self._era, event["at"]
        if at != len(self):
            message = f"an event at message {at} cannot be applied, the log has {len(self)}"
            raise InputError(message, code="invalid_event")
        if event.get("page_key", self._said.get("page_key")) != self._said.get("page_key"):
            message = "the page key is set by event 0 and cannot change"
            raise InputError(message, code="invalid_event")
        # What the caller gave, which a repair may have made more or less of.
        event["at"] = before.start + len(before.raw)
        dialect = event["dialect"]
        request = self._system, self._tools
        opening = before.hand_over(dialect)
        if is_converted:
            system, tools = converted_request(*request, before.dialect, dialect)
        else:
            system, tools = request
        counter = self._counter_of({**self._said, **event})
        if event.get("counter", counter.name) != counter.name:
            counter = _core.Counter(event["counter"])  # which says what is wrong with the name
        fixed = fixed_tokens(
            counter, joined_system(dialect, opening.system, system), tools, dialect
        )
        event = {**fixed, **event}
        self._system, self._tools = system, tools
        self._past.append(before)
        try:
            self._era = self._opened([{**self._said, **event}], (), opening)
        except Exception:  # undone and raised again: the log goes on as it was
            self._past.pop()
            self._system, self._tools = request
            raise
        self._events = (*self._events, event)
        self._note(event)

    def pin(self, index: int) -> None:
        """Keeps the step of message ``index`` verbatim; brings it back if it was lowered."""
        self.apply({"kind": "pin", "index": whole_number("index", index)})

    def unpin(self, index: int) -> None:
        """Lets the step of message ``index`` be lowered again."""
        self.apply({"kind": "unpin", "index": whole_number("index", index)})

    def window(
        self,
        *,
        system: object = UNSET,
        tools: Sequence[Any] | Unset | None = UNSET,
        summary: Mapping[str, Any] | None = None,
        memories: Iterable[object] = (),
        query: str | None = None,
        stakes: Stakes = "normal",
        open_calls: OpenCalls = "raise",
    ) -> Window:
        """The window for the next call.

        Args:
            system: a changed system prompt; becomes an event.
            tools: changed tool definitions; they become an event.
            summary: as in `Assembler.assemble`; becomes an event, unless it is the one in force.
            memories: likewise; the same ones again at the same place come once.
            query: as in `Assembler.assemble`.
            stakes: as in `Assembler.assemble`; what comes back becomes events.
            open_calls: as in `Assembler.assemble`.

        Returns:
            A window within the budget. Until levels fall, each window is the one before it plus
            what was appended.

        Raises:
            BudgetError: ``over_budget``.
            InputError: ``open_calls``, ``counter_failed``, ``invalid_value``.
        """
        one_of("open_calls", open_calls, ("raise", "synthesize"))
        query = optional_text("query", query)
        if not isinstance(system, Unset) or not isinstance(tools, Unset):
            self._change(system, tools)
        checked_stakes(stakes)
        if summary is None and memories == ():
            return self._asked(query, stakes, open_calls)
        before, given = self._events, listed("memories", memories, of="items or texts")
        left_out = self._give(summary, given)
        try:
            window = self._asked(query, stakes, open_calls)
        except SatchelError as error:
            # Nothing was sent, so nothing was shown: the log is as it was before.
            raw = [message for era in (*self._past, self._era) for message in era.raw]
            self._open(self._assembler, raw, before, self._system, self._tools)
            if not given or not isinstance(error, BudgetError):
                raise
            # A window without memories is better than none.
            left_out = len(given)
            window = self.window(summary=summary, query=query, stakes=stakes, open_calls=open_calls)
        report = window.report.model_copy(update={"memories_left_out": left_out})
        return replace(window, report=report)

    def _asked(self, query: str | None, stakes: Stakes, open_calls: OpenCalls) -> Window:
        if stakes == "normal":
            return self._window(open_calls, query)
        ask = partial(self._window, open_calls, query)

        def place(pointer: str) -> None:
            self._fold({"at": len(self), "kind": "page_in", "pointer": pointer}, is_converted=True)

        trigger = self._said["policy"].get("trigger", 1.0) if open_calls == "raise" else None
        return window_with_originals(ask, place, lambda: self._eras, trigger, self._counter())

    def _give(self, summary: Mapping[str, Any] | None, memories: list[object]) -> int:
        """Makes events of what a caller brings; how many memories did not fit."""
        most = self._assembler.memory_tokens
        most = self._said["budget"] // MEMORY_PART if most is None else most
        events, left_out = given_events(summary, memories, self._counter(), most)
        at = len(self)
        here = takewhile(lambda event: event["at"] == at, reversed(self._events))
        known = [*here, *([{**self._era.summary, "at": at}] if self._era.summary else [])]
        for event in events:
            placed = plain_event({**event, "at": at}, len(self._events))
            if placed not in known:
                self._fold(placed, is_converted=True)
        return left_out

    def _window(self, open_calls: OpenCalls, query: str | None) -> Window:
        """The window at the pending boundary."""
        era = self._era
        messages, figures = era.window(synthesize=open_calls == "synthesize", query=query)
        tokens, upper, stable, compactions, count, revision = figures[:6]
        worth, worth_bound = figures[10:]
        said, policy, counter = self._said, self._assembler.policy, self._counter()
        model = said.get("model", self._assembler.model)
        checked = revision
        tail = era.core.unchanged_tail() if self._is_bound else None
        if policy.thinking is not None and not policy.server:
            spared = thinking_tail(messages, policy.thinking.keep, model)
            tail = spared if tail is None else min(tail, spared)
        if tail is not None:
            # Where reasoning goes, older messages are others than before.
            checked = -1 - ((revision << 32) + len(messages) - tail)
            messages, saved = unbound(messages, tail, counter, era.dialect)
            tokens, stable = tokens - saved, max(0, stable - saved)
            # A calibrated estimate stays as it was: it is above the smaller one.
            if saved and all(event["kind"] != "calibration" for event in era.events):
                upper = math.ceil(tokens * (1 + counter.margin))
        mended = era.repairs.window(messages, checked, era.core.messages)
        if mended is not None:
            messages = mended
            tokens, upper = self._count_again(messages)
        rewrites = era.rewrites(revision)
        if self._past:
            past = [one for before in self._past for one in before.rewrites(CLOSED)]
            rewrites = (*past, *rewrites)
        return window_of(
            {
                "model": model,
                "policy": said["policy"].get("name", "adaptive"),
                "messages": count + era.shift,
                "steps": era.levels(revision, figures[6:10]),
                "compactions": era.compactions + compactions,
                "rewrites": rewrites,
                "system_tokens": said.get("system_tokens", 0),
                "tools_tokens": said.get("tools_tokens", 0),
                "worth": worth,
                "worth_bound": worth_bound,
            },
            messages=messages,
            system=self._whole_system(era),
            tools=self._tools,
            events=self._events,
            tokens=tokens,
            tokens_upper=upper,
            exact=counter.exact,
            budget=said["budget"],
            stable_prefix_tokens=stable,
            pages=era.pages(revision),
            model=model,
            dialect=era.dialect,
            provider_edits=provider_edits(policy),
        )

    def page_in(
        self, pointer: str, *, pattern: str | None = None, lines: tuple[int, int] | None = None
    ) -> str:
        """The content behind a pointer; reading it changes nothing.

        Args:
            pointer: as a window or the index page shows it.
            pattern: only lines that hold this literal text.
            lines: only lines from the first to the last of these numbers, from 1, both included.

        Returns:
            A text exactly as it was appended; anything else as canonical JSON. For the index
            pointer a listing of everything that is gone.

        Raises:
            PageNotFoundError: ``page_not_found``.
            InputError: ``invalid_value`` for the wrong type or a line number below 1.
        """
        return read_page(self._eras, pointer, pattern, lines)

    def handle_page_call(self, call: object, *, max_tokens: int | None = None) -> Any:  # noqa: ANN401 - a provider's own form
        """The result of a model's call of the page-in tool, ready to be appended; only reads.

        Whatever the model wrote is answered: an unknown pointer or wrong arguments get a result
        that says what is wrong. Content is fenced, labelled as data with its source, and comes in
        whole lines; what did not fit is named by its line numbers. A page that is itself a result
        of this tool is answered with the page that it showed.

        Args:
            call: the call in the form of ``dialect``, as a dict or a client's object: a tool call,
                an item, a block, a part. Or a whole reply with one call of the page-in tool.
            max_tokens: the most tokens of the result's text, at least 192; default: 4,000, or a
                quarter of the budget if that is less.

        Returns:
            A message (``openai-responses``: an item) with the result.

        Raises:
            InputError: ``invalid_value`` if there is not one call of the page-in tool, or
                ``max_tokens`` is out of range.
        """
        calls = self._page_calls(call)
        if len(calls) != 1:
            message = f"one call of {PAGE_TOOL_NAME} is needed, there are {len(calls)}"
            raise InputError(message, code="invalid_value", value=len(calls), limit=1)
        [result] = self._page_results(calls, max_tokens)
        return result

    def handle_page_calls(self, reply: object, *, max_tokens: int | None = None) -> list[Any]:
        """The results of all calls of the page-in tool in a reply; other calls are left to you.

        Args:
            reply: an assistant message, or a list of its items, blocks, parts or calls.
            max_tokens: the most tokens of each result, as in `handle_page_call`.

        Returns:
            A message for each result; one with all of them where the dialect wants them together
            (``anthropic``, ``gemini``, ``bedrock``). Empty if there is no such call.

        Raises:
            InputError: ``invalid_value`` if ``reply`` is none, or ``max_tokens`` is out of range.
        """
        return self._page_results(self._page_calls(reply), max_tokens)

    def _page_calls(self, reply: object) -> list[ToolCall]:
        calls = calls_in(reply, self.dialect)
        if calls is None:
            message = f"no call or reply in the dialect {self.dialect}: {name_of_type(reply)}"
            raise invalid(message)
        return [call for call in calls if call.is_page_call]

    def _page_results(self, calls: Sequence[ToolCall], max_tokens: int | None) -> list[Any]:
        if max_tokens is None:
            max_tokens = max(LEAST_TOKENS, min(DEFAULT_TOKENS, self._said["budget"] // 4))
        max_tokens = whole_number("max_tokens", max_tokens, least=LEAST_TOKENS, most=MOST_WHOLE)
        read, counter = partial(source_of, self._eras), self._counter()
        answers = (
            answer(call.arguments, read=read, counter=counter, max_tokens=max_tokens)
            for call in calls
        )
        return results_of(list(zip(calls, answers, strict=True)), self.dialect)

    @property
    def _eras(self) -> list[Era]:
        """The parts of the log, the newest first."""
        return [self._era, *reversed(self._past)]

    def explain(self, index: int | None = None) -> list[StepReport]:
        """What happened to each step, in order, or only to the step of message ``index``.

        Raises:
            InputError: ``invalid_event`` if there is no such message, ``invalid_value`` if
                ``index`` is no whole number from 0.
        """
        if index is not None:
            index = whole_number("index", index, most=MOST_WHOLE)
        if not self._past:
            return [StepReport(*row) for row in self._era.core.explain(index)]
        rows = self._era.rows()
        if index is None:
            return rows
        found = [row for row in rows if row.first <= index < row.end]
        if not found:
            message = f"no message {index}, the log has {len(self)}"
            raise InputError(message, code="invalid_event", value=index, limit=len(self))
        return found

    def _named_counters(self, events: Iterable[Mapping[str, Any]]) -> list[Counter]:
        """The counters that settings in ``events`` name, beside the assembler's own."""
        names = {
            name
            for event in events
            if event.get("kind") == "settings" and isinstance(name := event.get("counter"), str)
        }
        names.discard(self._assembler.counter.name)
        return [found for name in sorted(names) if (found := resolved(name)) is not None]

    def _counter(self) -> Counter:
        """The counter in force."""
        return self._counter_of(self._said)

    def _counter_of(self, settings: Mapping[str, Any]) -> Counter:
        name, own = settings.get("counter"), self._assembler.counter
        if not isinstance(name, str) or name == own.name:
            return own
        return resolved(name) or own

    def _count_again(self, messages: list[Any]) -> tuple[int, int]:
        """Tokens of a window that was repaired, and their upper bound."""
        era = self._era
        counted = self._counter().count_messages(
            messages, system=self._whole_system(era), tools=self._tools, dialect=era.dialect
        )
        budget = self._said["budget"]
        if counted.upper > budget:
            message = f"the repaired window needs {counted.upper} tokens, budget {budget}"
            raise BudgetError(message, code="over_budget", value=counted.upper, limit=budget)
        return counted.total, counted.upper

    def _own_settings(self) -> dict[str, Any]:
        """What the assembler says, which has its own dialect."""
        assembler = self._assembler
        fixed = fixed_tokens(assembler.counter, self._system, self._tools, assembler.dialect)
        return assembler.settings_event(**fixed)

    def _whole_system(self, era: Era) -> Any:  # noqa: ANN401 - a provider's own form
        """The system prompt with the instructions of the log that the dialect wants there."""
        first, second, joined = self._joined
        if first is not era.system or second is not self._system:
            joined = joined_system(era.dialect, era.system, self._system)
            # One object for as long as nothing changes: what is known of it stays known.
            self._joined = (era.system, self._system, joined)
        return joined

    def _fixed_tokens(self, counter: Counter) -> dict[str, int]:
        """What system and tools take by ``counter``, as settings say it."""
        era = self._era
        return fixed_tokens(counter, self._whole_system(era), self._tools, era.dialect)

    def _change(self, system: object, tools: Sequence[Any] | Unset | None) -> None:
        before = self._system, self._tools
        self._system = self._system if isinstance(system, Unset) else system
        self._tools = self._tools if isinstance(tools, Unset) else tools
        if before == (self._system, self._tools):
            return
        try:
            # Also where the tokens are the same: it is another text.
            fixed = self._fixed_tokens(self._counter())
            changed = {
                name: fixed[name]
                for name, old, new in zip(FIXED, before, (self._system, self._tools), strict=True)
                if old != new
            }
            self._fold({"at": len(self), "kind": "settings", **changed}, is_converted=False)
        except InputError:
            self._system, self._tools = before
            raise

    def _settle(self, wanted: Mapping[str, Any]) -> None:
        """Makes an event of every wanted setting that differs from the one in force."""
        changed = differing(wanted, self._said)
        if "dialect" in changed:
            # What system and tools take is only known once instructions of the log moved there.
            changed = {key: value for key, value in changed.items() if key not in FIXED}
        elif self._era.system is not None:
            changed = differing({**wanted, **self._fixed_tokens(self._counter())}, self._said)
        if changed:
            event = {"at": len(self), "kind": "settings", **changed}
            self._fold(event, is_converted=False)


def _checked_assembler(assembler: object) -> Assembler:
    from satchel.assembler import Assembler  # noqa: PLC0415 - it imports this module

    if not isinstance(assembler, Assembler):
        message = f"assembler must be an Assembler, not {name_of_type(assembler)}"
        raise invalid(message)
    return assembler
