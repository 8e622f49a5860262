"""The assembler: settings that are chosen once, and the working set over one log."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from satchel import _core, models
from satchel._damage import OnDamage, Repairs, checked
from satchel.counting import Counter, resolved
from satchel.counting import counter as counter_of
from satchel.errors import BudgetError, InputError
from satchel.policy import Policy
from satchel.window import Page, Report, StepReport, Window, WindowDiff

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from satchel.counting import AnyCounter

__all__ = [
    "Assembler",
    "Budget",
    "Columns",
    "Page",
    "Report",
    "StepReport",
    "Window",
    "WindowDiff",
    "WorkingSet",
]

OpenCalls = Literal["raise", "synthesize"]

_LEVELS: Final = ("verbatim", "trimmed", "stub", "gone")

_PAIR: Final = 2
_MOST: Final = 2**53
"""The largest index or line number: far above any history, and exact in every JSON reader."""


class _Unset:
    """Stands for an argument that was not given, where None means none."""


_UNSET: Final = _Unset()


@dataclass(frozen=True, slots=True)
class Budget:
    """Input tokens of a request: a number, or what the model's window leaves.

    Attributes:
        tokens: input tokens of the whole request; None for the model's window less the reserve.
        reserve_tokens: tokens kept for the answer; None for the model's output limit, at most a
            quarter of its window. Only used if ``tokens`` is None.

    Raises:
        InputError: ``invalid_value`` for a number below 1 (reserve: below 0) or both given.
    """

    tokens: int | None = None
    reserve_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, value, least in (
            ("tokens", self.tokens, 1),
            ("reserve_tokens", self.reserve_tokens, 0),
        ):
            if value is None:
                continue
            if not isinstance(cast("object", value), int) or isinstance(value, bool):
                message = f"budget {name} must be an int, not {type(value).__name__}"
                raise InputError(message, code="invalid_value")
            if value < least:
                message = f"budget {name} is {value}, must be at least {least}"
                raise InputError(message, code="invalid_value", value=value, limit=least)
        if self.tokens is not None and self.reserve_tokens is not None:
            message = "give tokens or reserve_tokens: tokens is already without the reserve"
            raise InputError(message, code="invalid_value")

    def resolve(self, model: models.Model) -> int:
        """The input tokens for ``model``."""
        if self.tokens is not None:
            return self.tokens
        return model.input_budget(reserve_tokens=self.reserve_tokens)


@dataclass(frozen=True, slots=True)
class Columns:
    """A snapshot of what happened to each step; read-only arrays of one length.

    Attributes:
        first: raw index of the step's first message, uint32.
        end: one past the raw index of its last message, uint32.
        level: index into ``level_names``, uint8.
        tokens: tokens in the window, uint32.
        original_tokens: tokens of the original, uint32.
        salience: 0 to 1, float32.
        fidelity: index into ``fidelity_names``, uint8.
        reason: index into ``reason_names``, uint8.
        compaction: number of the compaction that decided, from 1; 0 if none has, uint32.
    """

    first: NDArray[np.uint32]
    end: NDArray[np.uint32]
    level: NDArray[np.uint8]
    tokens: NDArray[np.uint32]
    original_tokens: NDArray[np.uint32]
    salience: NDArray[np.float32]
    fidelity: NDArray[np.uint8]
    reason: NDArray[np.uint8]
    compaction: NDArray[np.uint32]

    @property
    def level_names(self) -> tuple[str, ...]:
        """Names of the levels, by number."""
        return _core.column_names["level"]

    @property
    def fidelity_names(self) -> tuple[str, ...]:
        """Names of the fidelities, by number."""
        return _core.column_names["fidelity"]

    @property
    def reason_names(self) -> tuple[str, ...]:
        """Names of the reasons, by number."""
        return _core.column_names["reason"]


class Assembler:
    """Packs the context window of one model; immutable, shared freely between threads.

    Args:
        model: the model's name, as ``satchel.models`` knows it.
        budget: input tokens of the whole request, or a `Budget`; default: the model's window less
            its output reserve.
        policy: a `Policy`, or the name of a preset.
        counter: what counts; default: the model's own. Any object with ``count(text)`` and any
            callable ``text -> int`` will do.
        dialect: ``openai``, ``openai-responses``, ``anthropic``, ``gemini`` or ``bedrock``;
            default: the model's.
        on_damage: what to do about a history that the provider would reject. ``"repair"``: one
            that cannot be packed as it is goes through `satchel.repair` first, and so does a window
            with an error that is left; indices then mean the repaired history, which is
            `WorkingSet.messages`. ``"raise"``: an error says what is wrong.

    Raises:
        InputError: ``unknown_model``, ``unknown_dialect``, or ``invalid_value``.

    Example:
        >>> packer = Assembler("gpt-4o", budget=1_000)
        >>> packer.assemble([{"role": "user", "content": "Hello"}]).tokens
        8
    """

    __slots__ = (
        "_budget",
        "_counter",
        "_dialect",
        "_model",
        "_on_damage",
        "_policy",
        "_settings",
    )

    def __init__(
        self,
        model: str,
        *,
        budget: int | Budget | None = None,
        policy: str | Policy = "adaptive",
        counter: AnyCounter | None = None,
        dialect: str | None = None,
        on_damage: OnDamage = "repair",
    ) -> None:
        self._on_damage: Final = checked(on_damage)
        known = models.get(model)
        sizes = budget if isinstance(budget, Budget) else Budget(budget)
        self._model: Final = model
        self._budget: Final = sizes.resolve(known)
        self._policy: Final = Policy.preset(policy) if isinstance(policy, str) else policy
        if not isinstance(cast("object", self._policy), Policy):
            message = f"policy must be a preset's name or a Policy, not {type(policy).__name__}"
            raise InputError(message, code="invalid_value")
        if counter is None:
            self._counter = counter_of(model)
        else:
            self._counter = counter if isinstance(counter, Counter) else Counter(counter)
        self._dialect: Final = dialect if dialect is not None else known.dialect
        self._settings: Final[dict[str, Any]] = {
            "model": self._model,
            "dialect": self._dialect,
            "counter": self._counter.name,
            "budget": self._budget,
            "policy": self._policy.model_dump(exclude_none=True),
        }
        # An unknown dialect and a budget of 0 are found here, not at the first message.
        self.working_set()

    @property
    def model(self) -> str:
        """The model's name."""
        return self._model

    @property
    def budget(self) -> int:
        """Input tokens of the whole request."""
        return self._budget

    @property
    def policy(self) -> Policy:
        """How room is made."""
        return self._policy

    @property
    def counter(self) -> Counter:
        """What counts."""
        return self._counter

    @property
    def dialect(self) -> str:
        """The dialect of messages in and out."""
        return self._dialect

    @property
    def on_damage(self) -> OnDamage:
        """What is done about a history that the provider would reject."""
        return self._on_damage

    def __repr__(self) -> str:
        return (
            f"Assembler({self._model!r}, budget={self._budget}, policy={self._policy.name!r}, "
            f"counter={self._counter.name!r}, dialect={self._dialect!r})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        return (
            _rebuild_assembler,
            (
                self._model,
                self._budget,
                self._policy,
                self._counter,
                self._dialect,
                self._on_damage,
            ),
        )

    def assemble(
        self,
        messages: Iterable[Any],
        *,
        events: Iterable[Mapping[str, Any]] = (),
        system: object = None,
        tools: Sequence[Any] | None = None,
        open_calls: OpenCalls = "raise",
    ) -> Window:
        """The window for the next call.

        Args:
            messages: the whole history, oldest first. Never changed; what need not change in the
                window is returned as the same objects.
            events: the ``events`` of the last window of this history, if there was one. Where they
                say other settings than this assembler's, its own hold from here on, as an event.
            system: the system prompt, where it stands outside the messages.
            tools: the tool definitions that the request will carry; counted, not changed.
            open_calls: what to do about calls of the newest step without a result: ``"raise"``, or
                ``"synthesize"`` a placeholder result.

        Returns:
            A window within the budget.

        Raises:
            BudgetError: ``over_budget`` if what must stay does not fit; names the message, its size
                and the limit.
            InputError: ``open_calls``; ``invalid_message``, ``orphan_result``,
                ``duplicate_result``, ``too_deep`` with the message's index; ``invalid_event``;
                ``counter_failed``.
        """
        working_set = self.working_set(messages, events=events, system=system, tools=tools)
        return working_set.window(open_calls=open_calls)

    def working_set(
        self,
        messages: Iterable[Any] = (),
        *,
        events: Iterable[Mapping[str, Any]] = (),
        system: object = None,
        tools: Sequence[Any] | None = None,
    ) -> WorkingSet:
        """An incremental working set over one history; arguments as in `assemble`."""
        return WorkingSet(self, messages, events=events, system=system, tools=tools)

    def settings_event(self, *, system_tokens: int, tools_tokens: int) -> dict[str, Any]:
        """Event 0 of a new log under this assembler's settings."""
        return {
            "kind": "settings",
            "at": 0,
            **self._settings,
            "system_tokens": system_tokens,
            "tools_tokens": tools_tokens,
        }


class WorkingSet:
    """The state of one history: append messages, apply events, ask for windows.

    Made by `Assembler.working_set`. Used from one thread at a time; a second one gets a
    ``UsageError`` (``concurrent_use``). Appending costs what the new messages cost, however long
    the history is. Pickles by its messages and events, from which it is rebuilt to the same bytes.
    """

    __slots__ = (
        "_assembler",
        "_core",
        "_events",
        "_pages",
        "_repairs",
        "_said",
        "_system",
        "_tools",
    )

    def __init__(
        self,
        assembler: Assembler,
        messages: Iterable[Any] = (),
        *,
        events: Iterable[Mapping[str, Any]] = (),
        system: object = None,
        tools: Sequence[Any] | None = None,
    ) -> None:
        self._open(assembler, messages, events, system, tools)
        self._settle(self._own_settings())

    def _open(
        self,
        assembler: Assembler,
        messages: Iterable[Any],
        events: Iterable[Mapping[str, Any]],
        system: object,
        tools: Sequence[Any] | None,
    ) -> None:
        """Folds the log as it is."""
        self._assembler = assembler
        self._system = system
        self._tools = tools
        if not isinstance(cast("object", events), Iterable):
            message = f"events must be an iterable of events, not {type(events).__name__}"
            raise InputError(message, code="invalid_value")
        self._events = tuple(_plain_event(event, at) for at, event in enumerate(events))
        if not self._events:
            self._events = (self._own_settings(),)
        self._repairs = Repairs(
            assembler.on_damage,
            dialect=assembler.dialect,
            model=assembler.model,
            request=lambda: (self._system, self._tools),
            build=self._build,
        )
        self._core = self._repairs.open(messages)
        self._pages: tuple[int, tuple[Page, ...]] = (-1, ())
        # The settings in force: what the events say, one after the other.
        self._said: dict[str, Any] = {}
        for event in self._events:
            self._note(event)

    def _build(self, messages: Iterable[Any]) -> _core.WorkingSet:
        assembler = self._assembler
        # What was counted by another assembler's counter is counted by it again.
        first = self._named_counters(self._events[:1])
        return _core.WorkingSet(
            first[0] if first else assembler.counter,
            json.dumps(self._events[0]),
            messages,
            json.dumps(self._events[1:]),
            [assembler.counter, *self._named_counters(self._events)],
        )

    @classmethod
    def _restore(
        cls,
        assembler: Assembler,
        messages: list[Any],
        events: tuple[Mapping[str, Any], ...],
        system: object,
        tools: Sequence[Any] | None,
    ) -> WorkingSet:
        """The working set of a pickle: settings that events changed are not changed back."""
        working_set = cls.__new__(cls)
        working_set._open(assembler, messages, events, system, tools)  # noqa: SLF001 - its own
        return working_set

    def _note(self, event: Mapping[str, Any]) -> None:
        if event["kind"] == "settings":
            self._said.update(event)

    def __len__(self) -> int:
        return len(self._core)

    def __repr__(self) -> str:
        return f"<satchel.WorkingSet of {len(self)} messages, {len(self._events)} events>"

    def __reduce__(self) -> tuple[object, ...]:
        return (
            WorkingSet._restore,
            (
                self._assembler,
                self.messages if self._repairs.raw is None else self._repairs.raw,
                self._events,
                self._system,
                self._tools,
            ),
        )

    @property
    def messages(self) -> list[Any]:
        """The raw history, the caller's own objects; repaired, if it could not be packed."""
        return self._core.messages()

    @property
    def events(self) -> tuple[Mapping[str, Any], ...]:
        """All events so far; event 0 is ``settings``."""
        return self._events

    @property
    def columns(self) -> Columns:
        """What happened to each step, as read-only numpy arrays."""
        arrays = self._core.columns()
        for array in arrays.values():
            array.setflags(write=False)
        return Columns(**arrays)

    def append(self, messages: object) -> None:
        """Appends one message or several; all of them or, on an error, none.

        Raises:
            InputError: as in `Assembler.assemble`.
        """
        # Messages of the clients have a role, their items a type.
        is_one = isinstance(messages, Mapping) or any(
            hasattr(messages, name) for name in ("role", "type")
        )
        several = cast("Iterable[object]", [messages] if is_one else messages)
        core = self._repairs.append(self._core, several)
        if core is not self._core:
            self._core, self._pages = core, (-1, ())

    def apply(self, event: Mapping[str, Any]) -> None:
        """Folds an event at the end of the log, such as ``{"kind": "pin", "index": 3}``.

        ``at`` may be left out; it is the number of messages so far.

        Raises:
            InputError: ``invalid_event``, ``dialect_changed``, ``invalid_value``.
            PageNotFoundError: a ``page_in`` whose pointer has no page.
        """
        event = {"at": len(self), **_plain_event(event, len(self._events))}
        named = self._named_counters((event,))
        if event.get("kind") == "settings" and "counter" in event:
            # Another counter says another number for these too.
            counter = named[0] if named else self._assembler.counter
            event = {**self._fixed_tokens(counter), **event}
        self._core.apply(json.dumps(event), named[0] if named else None)
        self._events = (*self._events, event)
        self._note(event)

    def pin(self, index: int) -> None:
        """Keeps the step of message ``index`` verbatim; brings it back if it was lowered."""
        self.apply({"kind": "pin", "index": index})

    def unpin(self, index: int) -> None:
        """Lets the step of message ``index`` be lowered again."""
        self.apply({"kind": "unpin", "index": index})

    def window(
        self,
        *,
        system: object = _UNSET,
        tools: Sequence[Any] | _Unset | None = _UNSET,
        open_calls: OpenCalls = "raise",
    ) -> Window:
        """The window for the next call.

        Args:
            system: a changed system prompt; becomes an event.
            tools: changed tool definitions; they become an event.
            open_calls: as in `Assembler.assemble`.

        Returns:
            A window within the budget. Until levels fall, each window is the one before it plus
            what was appended.

        Raises:
            BudgetError: ``over_budget``.
            InputError: ``open_calls``, ``counter_failed``, ``invalid_value``.
        """
        if open_calls not in ("raise", "synthesize"):
            message = f"open_calls is {open_calls!r}, must be 'raise' or 'synthesize'"
            raise InputError(message, code="invalid_value")
        if not isinstance(system, _Unset) or not isinstance(tools, _Unset):
            self._change(system, tools)
        messages, figures = self._core.window(synthesize=open_calls == "synthesize")
        tokens, upper, stable, compactions, raw, revision, *levels = figures
        mended = self._repairs.window(messages, revision)
        if mended is not None:
            messages = mended
            tokens, upper = self._count_again(messages)
        if self._pages[0] != revision:
            self._pages = (revision, tuple(Page(*page) for page in self._core.pointers()))
        assembler = self._assembler
        model = self._said.get("model", assembler.model)
        return Window(
            messages=messages,
            system=self._system,
            tools=self._tools,
            events=self._events,
            tokens=tokens,
            tokens_upper=upper,
            exact=self._counter().exact,
            budget=self._said["budget"],
            stable_prefix_tokens=stable,
            report=Report(
                model=model,
                policy=self._said["policy"].get("name", "adaptive"),
                messages=raw,
                steps=dict(zip(_LEVELS, levels, strict=True)),
                compactions=compactions,
                system_tokens=self._said.get("system_tokens", 0),
                tools_tokens=self._said.get("tools_tokens", 0),
            ),
            pages=self._pages[1],
            model=model,
            dialect=assembler.dialect,
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
        _check_text(pointer, "pointer")
        if pattern is not None:
            _check_text(pattern, "pattern")
        if lines is not None:
            given: object = lines
            if (
                not isinstance(given, (tuple, list))
                or len(cast("Sequence[object]", given)) != _PAIR
            ):
                message = "lines must be two line numbers, the first and the last"
                raise InputError(message, code="invalid_value")
            for line in lines:
                _check_whole(line, "a line number", least=1)
            lines = (lines[0], lines[1])
        return self._core.page_in(pointer, pattern=pattern, lines=lines)

    def explain(self, index: int | None = None) -> list[StepReport]:
        """What happened to each step, in order, or only to the step of message ``index``.

        Raises:
            InputError: ``invalid_event`` if there is no such message, ``invalid_value`` if
                ``index`` is no whole number from 0.
        """
        if index is not None:
            _check_whole(index, "index", least=0)
        return [StepReport(*row) for row in self._core.explain(index)]

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
        named = self._named_counters(({"kind": "settings", **self._said},))
        return named[0] if named else self._assembler.counter

    def _count_again(self, messages: list[Any]) -> tuple[int, int]:
        """Tokens of a window that was repaired, and their upper bound."""
        assembler = self._assembler
        counted = self._counter().count_messages(
            messages, system=self._system, tools=self._tools, dialect=assembler.dialect
        )
        budget = self._said["budget"]
        if counted.upper > budget:
            message = f"the repaired window needs {counted.upper} tokens, budget {budget}"
            raise BudgetError(message, code="over_budget", value=counted.upper, limit=budget)
        return counted.total, counted.upper

    def _own_settings(self) -> dict[str, Any]:
        tokens = self._fixed_tokens(self._assembler.counter)
        return self._assembler.settings_event(**tokens)

    def _fixed_tokens(self, counter: Counter) -> dict[str, int]:
        """What system and tools take by ``counter``, as settings say it."""
        if self._system is None and self._tools is None:
            return {"system_tokens": 0, "tools_tokens": 0}
        counted = counter.count_messages(
            [], system=self._system, tools=self._tools, dialect=self._assembler.dialect
        )
        return {"system_tokens": counted.system, "tools_tokens": counted.tools}

    def _change(self, system: object, tools: Sequence[Any] | _Unset | None) -> None:
        before = self._system, self._tools
        self._system = self._system if isinstance(system, _Unset) else system
        self._tools = self._tools if isinstance(tools, _Unset) else tools
        if before == (self._system, self._tools):
            return
        try:
            self._settle(self._fixed_tokens(self._counter()))
        except InputError:
            self._system, self._tools = before
            raise

    def _settle(self, wanted: Mapping[str, Any]) -> None:
        """Makes an event of every wanted setting that differs from the one in force."""
        changed = {
            key: value
            for key, value in wanted.items()
            if key not in ("kind", "at") and self._said.get(key) != value
        }
        if changed:
            self.apply({"kind": "settings", **changed})


def _plain_event(event: Mapping[str, Any], position: int) -> dict[str, Any]:
    """A copy of an event that JSON can carry, so that a caller's later change reaches nothing."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(event)))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"event {position} must be a mapping of JSON values"
        raise InputError(message, code="invalid_event") from error
    return copy


def _check_text(value: object, name: str) -> None:
    """Only text that has a UTF-8 form can be looked for.

    Raises:
        InputError: ``invalid_value``.
    """
    if not isinstance(value, str):
        message = f"{name} must be a str, not {type(value).__name__}"
        raise InputError(message, code="invalid_value")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        message = f"{name} must not hold lone surrogates"
        raise InputError(message, code="invalid_value") from error


def _check_whole(value: object, name: str, *, least: int) -> None:
    """Whole numbers as the core takes them.

    Raises:
        InputError: ``invalid_value``.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        message = f"{name} must be an int, not {type(value).__name__}"
        raise InputError(message, code="invalid_value")
    limit = least if value < least else _MOST
    if not least <= value <= _MOST:
        message = f"{name} is {value}, must be from {least} to {_MOST}"
        raise InputError(message, code="invalid_value", value=value, limit=limit)


def _rebuild_assembler(  # noqa: PLR0917 - private, one for each setting
    model: str, budget: int, policy: Policy, counter: Counter, dialect: str, on_damage: OnDamage
) -> Assembler:
    return Assembler(
        model,
        budget=budget,
        policy=policy,
        counter=counter,
        dialect=dialect,
        on_damage=on_damage,
    )
