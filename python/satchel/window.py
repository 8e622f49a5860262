"""One rendered window, and what is said about it."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, cast

from pydantic import BaseModel, ConfigDict

from satchel import _core
from satchel._arguments import invalid, name_of_type
from satchel._client_calls import client_call
from satchel._compaction_report import (
    CompactionReport,  # noqa: TC001 - likewise
)
from satchel._frames import arrow_table, pandas_frame, polars_frame

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from satchel._frames import Codes

__all__ = [
    "Columns",
    "Page",
    "Report",
    "Rewrite",
    "StepReport",
    "Window",
    "WindowDiff",
    "window_of",
]


@dataclass(frozen=True, slots=True)
class Page:
    """Removed content that a window points to.

    Attributes:
        pointer: its stable id, for ``WorkingSet.page_in``.
        message: raw index of the message it is from; None for the index of everything gone.
        tokens: tokens of the original; 0 for the index.
    """

    pointer: str
    message: int | None
    tokens: int


@dataclass(frozen=True, slots=True)
class StepReport:
    """What happened to one step.

    Attributes:
        first: raw index of its first message.
        end: one past the raw index of its last message.
        role: role of its first message.
        level: ``verbatim``, ``trimmed``, ``stub`` or ``gone``.
        tokens: tokens it takes in the window.
        original_tokens: tokens of the original.
        salience: how telling it looks by age, role and signals, 0 to 1. It describes the step and
            decides nothing: levels come from what its lines are worth.
        fidelity: ``exact`` or ``approximate``.
        reason: why it has its level, in a few words; `Columns.reason_names` has them all.
        compaction: number of the compaction that decided it, from 1; 0 if none has.
    """

    first: int
    end: int
    role: str
    level: str
    tokens: int
    original_tokens: int
    salience: float
    fidelity: str
    reason: str
    compaction: int


@dataclass(frozen=True, slots=True)
class Columns:
    """A snapshot of what happened to each step; read-only arrays of one length.

    Attributes:
        first: raw index of the step's first message, uint32.
        end: one past the raw index of its last message, uint32.
        level: index into ``level_names``, uint8.
        tokens: tokens in the window, uint32.
        original_tokens: tokens of the original, uint32.
        salience: as in `StepReport`: a description, 0 to 1, float32.
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

    def _table(self) -> tuple[dict[str, NDArray[Any]], dict[str, Codes]]:
        numbers: dict[str, NDArray[Any]] = {
            name: getattr(self, name)
            for name in (
                "first",
                "end",
                "tokens",
                "original_tokens",
                "salience",
                "compaction",
            )
        }
        codes: dict[str, Codes] = {
            "level": (self.level, self.level_names),
            "fidelity": (self.fidelity, self.fidelity_names),
            "reason": (self.reason, self.reason_names),
        }
        return numbers, codes

    def to_arrow(self) -> Any:  # noqa: ANN401 - a package without types
        """A ``pyarrow.Table``, a row for each step; names instead of their numbers.

        Raises:
            ImportError: without pyarrow.
        """
        return arrow_table(*self._table())

    def to_pandas(self) -> Any:  # noqa: ANN401 - an optional package
        """A ``pandas.DataFrame``, a row for each step; names instead of their numbers.

        Raises:
            ImportError: without pandas.
        """
        return pandas_frame(*self._table())

    def to_polars(self) -> Any:  # noqa: ANN401 - an optional package
        """A ``polars.DataFrame``, a row for each step; names instead of their numbers.

        Raises:
            ImportError: without polars.
        """
        return polars_frame(*self._table())


@dataclass(frozen=True, slots=True)
class Rewrite:
    """One compaction, as the prompt cache sees it.

    Attributes:
        at: messages of the history before it.
        cause: ``forced``: the history had outgrown the trigger. ``preset``: the trigger of the
            preset's own. ``priced``: it was expected to pay. ``cold``: the cache was lost, so that
            it was free.
        removed_tokens: R: tokens that left the window; bound reasoning behind the edit included.
        rewritten_tokens: S: tokens behind the first change, which are written to the cache again.
        lost_reasoning_tokens: L: tokens of bound reasoning behind the first change.
        break_even_calls: it pays after more calls than this, by the formula of `Cache`; 0 if it
            was free, infinite if it never does.
        expected_calls: calls that were expected to come.
    """

    at: int
    cause: Literal["forced", "preset", "priced", "cold"]
    removed_tokens: int
    rewritten_tokens: int
    lost_reasoning_tokens: int
    break_even_calls: float
    expected_calls: int

    def __str__(self) -> str:
        """One sentence."""
        lost = self.lost_reasoning_tokens
        and_lost = f" and {lost:,} of reasoning lost" if lost else ""
        return (
            f"{self.cause} at message {self.at}: {self.removed_tokens:,} tokens removed, "
            f"{self.rewritten_tokens:,} rewritten{and_lost}; pays after "
            f"{self.break_even_calls:.1f} calls, {self.expected_calls} expected"
        )


class Report(BaseModel):
    """Figures of one window: a frozen pydantic model, without any text of the conversation.

    Attributes:
        model: the model's name.
        policy: the policy's name.
        messages: messages of the history.
        steps: steps of the history by level; the values add up to all of them.
        compactions: compactions so far, one that this window made included.
        system_tokens: tokens of the system prompt outside the messages.
        tools_tokens: tokens of the tool definitions.
        worth: what the lines are worth that the newest compaction kept, a sum of likelihoods; 0
            before the first.
        worth_bound: what no choice of lines within the same room could exceed, for this history:
            the gap between the two is the most that a perfect choice could gain.
        rewrites: what each of them cost, in order; tells forced, priced and cold ones apart.
        not_recalled: with ``stakes="high"``, pointers of the originals that the next step relies on
            and that did not fit, the most telling first; read them with ``page_in``.
        memories_left_out: how many of the memories given for this window did not fit.
        summary: in a session, what its newest summary came to, with every try that failed; None
            before the first, and outside of sessions.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(
        frozen=True, extra="forbid", ser_json_inf_nan="strings"
    )

    model: str
    policy: str
    messages: int
    steps: Mapping[str, int]
    compactions: int
    system_tokens: int
    tools_tokens: int
    worth: float = 0.0
    worth_bound: float = 0.0
    rewrites: tuple[Rewrite, ...] = ()
    not_recalled: tuple[str, ...] = ()
    memories_left_out: int = 0
    summary: CompactionReport | None = None

    @classmethod
    def of(cls, **figures: object) -> Self:
        """A report of figures that are right already: all fields up to ``rewrites``.

        Every window has a report, and hardly any is read: validating it costs 2.7 us, this 1.2.
        """
        report = cls.__new__(cls)
        figures.update(_FIRST_FIGURES)
        object.__setattr__(report, "__dict__", figures)
        object.__setattr__(report, "__pydantic_fields_set__", set(figures))
        object.__setattr__(report, "__pydantic_extra__", None)
        object.__setattr__(report, "__pydantic_private__", None)
        return report


_FIRST_FIGURES: Final[Mapping[str, object]] = {
    "not_recalled": (),
    "memories_left_out": 0,
    "summary": None,
}
"""What a report says before anybody looked for it."""


@dataclass(frozen=True, slots=True)
class WindowDiff:
    """How one window differs from an earlier one.

    Attributes:
        common: messages at the front that are equal.
        removed: messages of the earlier window behind them.
        added: messages of this window behind them.
    """

    common: int
    removed: tuple[Any, ...]
    added: tuple[Any, ...]


@dataclass(frozen=True, kw_only=True, repr=False)
class Window:
    """The rendered result for one model call.

    Attributes:
        messages: messages in the caller's dialect; unchanged ones are the caller's own objects.
        system: the system prompt as it was given, or None.
        tools: the tool definitions as they were given, or None.
        events: the full list of events to pass next time.
        tokens: input tokens of the whole request, by the counter.
        tokens_upper: the upper estimate; equal to ``tokens`` if ``exact``. Never above ``budget``.
        exact: whether texts are counted by the provider's own tokenizer. Images, files and nested
            tool schemas go by formulas in either case; ``count_messages(...).exact`` tells.
        budget: input tokens that the request may use.
        stable_prefix_tokens: tokens at the front that equal the window at the boundary before.
        report: further figures.
        pages: what the window points to; the index of everything gone comes first.
        model: the model's name, for ``as_kwargs``.
        dialect: the dialect of ``messages``.
        provider_edits: what ``as_kwargs`` asks the provider to edit, where the policy leaves that
            to it: ``context_management`` or ``truncation``.
    """

    messages: list[Any]
    system: Any
    tools: Any
    events: tuple[Mapping[str, Any], ...]
    tokens: int
    tokens_upper: int
    exact: bool
    budget: int
    stable_prefix_tokens: int
    report: Report
    pages: tuple[Page, ...]
    model: str
    dialect: str
    provider_edits: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)

    if not TYPE_CHECKING:  # checkers would take any name for an attribute

        def __getattr__(self, name: str) -> object:
            """The report, when it is read first."""
            if name != "report":
                message = f"{type(self).__name__!r} object has no attribute {name!r}"
                raise AttributeError(message, name=name, obj=self)
            fields = self.__dict__
            if "_figures" not in fields:
                message = f"this {type(self).__name__!r} object was not made whole"
                raise AttributeError(message, name=name, obj=self)
            # Of two threads that ask at once, both get the same.
            return fields.setdefault("report", Report.of(**fields["_figures"]))

    def __repr__(self) -> str:
        """A heading with figures, and the beginning of each message; safe to print."""
        from satchel._window_view import as_text  # noqa: PLC0415 - only where somebody looks

        return as_text(self)

    def _repr_html_(self) -> str:
        """The same as an HTML table, for notebooks; everything is escaped."""
        from satchel._window_view import as_html  # noqa: PLC0415 - only where somebody looks

        return as_html(self)

    @property
    def cache_breakpoints(self) -> tuple[int, ...]:
        """Indices into ``messages`` after which the provider's cache should be written."""
        return (len(self.messages) - 1,) if self.messages else ()

    def as_kwargs(self, *, store: bool | None = None) -> dict[str, Any]:
        """Arguments of the provider's own client call: model, messages, and what was given.

        ======================  ==============================================================
        ``openai``              ``model``, ``messages`` with the system prompt first, ``tools``
        ``openai-responses``    ``model``, ``input``, ``instructions``, ``tools``
        ``anthropic``           ``model``, ``messages``, ``system``, ``tools``
        ``gemini``              ``model``, ``contents``, ``config`` with ``system_instruction``
                                and ``tools``
        ``bedrock``             ``modelId``, ``messages``, ``system``, ``toolConfig``
        ======================  ==============================================================

        For ``anthropic`` and ``bedrock`` the system prompt (else the last tool) and the messages at
        ``cache_breakpoints`` carry cache marks, at most four; marks that the history carries
        already are left out. All of this happens on copies.

        Args:
            store: whether the provider keeps the answer (``openai-responses``; the others keep
                nothing): None for its default. With False items do not name ids that it would look
                up, reasoning comes in encrypted form or not at all, and is asked for in it.

        Raises:
            InputError: ``invalid_value`` for another ``store``.
        """
        if store is not None and not isinstance(cast("object", store), bool):
            message = f"store must be a bool or None, not {name_of_type(store)}"
            raise invalid(message)
        return client_call(self, store=store)

    def diff(self, other: Window) -> WindowDiff:
        """How this window differs from the earlier window ``other``."""
        if not isinstance(cast("object", other), Window):
            message = f"other must be a Window, not {name_of_type(other)}"
            raise invalid(message)
        common = 0
        for mine, theirs in zip(self.messages, other.messages, strict=False):
            if mine is not theirs and mine != theirs:
                break
            common += 1
        return WindowDiff(common, tuple(other.messages[common:]), tuple(self.messages[common:]))


def window_of(figures: Mapping[str, object], **fields: object) -> Window:
    """A window of all its ``fields`` but the report, whose ``figures`` are those of `Report.of`.

    A call of a model wants a window and hardly ever its report, which is made when it is read
    first. Setting each field of a frozen object would take 2 us, this takes 0.5.
    """
    window = Window.__new__(Window)
    fields["_figures"] = figures
    object.__setattr__(window, "__dict__", fields)
    return window
