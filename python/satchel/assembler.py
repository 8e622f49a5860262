"""The assembler: settings that are chosen once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from satchel import models
from satchel._arguments import MOST_WHOLE, invalid, name_of_type, optional_text, whole_number
from satchel._damage import OnDamage, checked
from satchel._provider_edits import UNLIMITED, check_provider
from satchel.counting import Counter
from satchel.counting import counter as counter_of
from satchel.errors import InputError
from satchel.policy import Policy, planner_settings
from satchel.window import Columns, Page, Report, Rewrite, StepReport, Window, WindowDiff
from satchel.working_set import WorkingSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from satchel._stakes import Stakes
    from satchel.counting import AnyCounter
    from satchel.working_set import OpenCalls

__all__ = [
    "Assembler",
    "Budget",
    "Columns",
    "Page",
    "Report",
    "Rewrite",
    "StepReport",
    "Window",
    "WindowDiff",
    "WorkingSet",
]


@dataclass(frozen=True, slots=True)
class Budget:
    """Input tokens of a request: a number, or what the model's window leaves.

    Attributes:
        tokens: input tokens of the whole request; None for the model's window less the reserve.
        reserve_tokens: tokens kept for the answer; None for the model's output limit, at most a
            quarter of its window. Only used if ``tokens`` is None.
        memory_tokens: most tokens of the memories that are given for one window; None for a fifth
            of the budget. What they leave goes to the history.

    Raises:
        InputError: ``invalid_value`` for a number below 1 (reserve: below 0) or both given.
    """

    tokens: int | None = None
    reserve_tokens: int | None = None
    memory_tokens: int | None = None

    def __post_init__(self) -> None:
        for name, value, least in (
            ("tokens", self.tokens, 1),
            ("reserve_tokens", self.reserve_tokens, 0),
            ("memory_tokens", self.memory_tokens, 0),
        ):
            if value is not None:
                whole_number(f"budget {name}", value, least=least, most=MOST_WHOLE)
        if self.tokens is not None and self.reserve_tokens is not None:
            message = "give tokens or reserve_tokens: tokens is already without the reserve"
            raise InputError(message, code="invalid_value")

    def resolve(self, model: models.Model) -> int:
        """The input tokens for ``model``."""
        if not isinstance(cast("object", model), models.Model):
            message = f"model must be a satchel.models.Model, not {name_of_type(model)}"
            raise invalid(message)
        if self.tokens is not None:
            return self.tokens
        return model.input_budget(reserve_tokens=self.reserve_tokens)


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
            `WorkingSet.messages`. ``"raise"``: an error says what is wrong, of a window
            ``invalid_message`` with the code of `satchel.lint` in its text.

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
        "_memory_tokens",
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
        optional_text("dialect", dialect)
        sizes = budget if isinstance(budget, Budget) else Budget(budget)
        self._model: Final = model
        self._budget = sizes.resolve(known)
        self._memory_tokens: Final = sizes.memory_tokens
        self._policy: Final = Policy.preset(policy) if isinstance(policy, str) else policy
        if not isinstance(cast("object", self._policy), Policy):
            message = f"policy must be a preset's name or a Policy, not {name_of_type(policy)}"
            raise invalid(message)
        if counter is None:
            self._counter = counter_of(model)
        else:
            self._counter = counter if isinstance(counter, Counter) else Counter(counter)
        self._dialect: Final = dialect if dialect is not None else known.dialect
        if self._policy.server:
            check_provider(self._policy, self._dialect)
            # The history as it is may be larger than what the provider leaves of it.
            self._budget = UNLIMITED
        self._settings: Final[dict[str, Any]] = {
            "model": self._model,
            "dialect": self._dialect,
            "counter": self._counter.name,
            "budget": self._budget,
            "policy": planner_settings(self._policy),
            "prices": known.input_prices(),
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
    def memory_tokens(self) -> int | None:
        """Most tokens of the memories of one window; None for a fifth of the budget."""
        return self._memory_tokens

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
                self._memory_tokens,
            ),
        )

    def assemble(
        self,
        messages: Iterable[Any],
        *,
        events: Iterable[Mapping[str, Any]] = (),
        system: object = None,
        tools: Sequence[Any] | None = None,
        summary: Mapping[str, Any] | None = None,
        memories: Iterable[object] = (),
        query: str | None = None,
        stakes: Stakes = "normal",
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
            summary: a text that stands for a range of the history: a mapping with ``covers`` (index
                of the first message, one past the last) and ``text``. What it covers leaves the
                window and stays behind its pointers.
            memories: what is known from elsewhere: what `Memory.recall` gave, memory items, texts,
                or mappings with ``text`` and ``source``. They come fenced and labelled as data,
                with the newest message, most important first, within `Budget` ``memory_tokens``;
                ``report.memories_left_out`` counts the others. They stay until a compaction.
            query: what the window should answer, where the policy says ``select="relevant"``;
                default: the newest user message. With another ``select`` it changes nothing.
            stakes: ``"high"`` for a step that must not rest on a shortened text: where the newest
                user message or step names something (a path, an id, a symbol, a number) that a
                shortened step holds, its original comes back at the end of the window, as an
                event. What did not fit is in ``report.not_recalled``.
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
        return working_set.window(
            summary=summary, memories=memories, query=query, stakes=stakes, open_calls=open_calls
        )

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
            "system_tokens": whole_number("system_tokens", system_tokens),
            "tools_tokens": whole_number("tools_tokens", tools_tokens),
        }


def _rebuild_assembler(  # noqa: PLR0917 - a pickle calls it by position
    model: str,
    budget: int,
    policy: Policy,
    counter: Counter,
    dialect: str,
    on_damage: OnDamage,
    memory_tokens: int | None = None,
) -> Assembler:
    return Assembler(
        model,
        budget=Budget(budget, memory_tokens=memory_tokens),
        policy=policy,
        counter=counter,
        dialect=dialect,
        on_damage=on_damage,
    )
