"""The window of a history: LangChain's cut, then what the further keywords ask for.

With ``keep_steps`` the cut is LangChain's too, and then rounded inwards to whole steps: where the
cut was valid, nothing changes. Pinned messages are taken out before, with their tokens, and put
back in their places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from satchel.errors import BudgetError, InputError
from satchel.langchain.peer import peer, type_matcher
from satchel.langchain.report import TrimReport
from satchel.langchain.search import Counting, Fit, Window, first_window, split_lines
from satchel.langchain.steps import whole_steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from langchain_core.messages import BaseMessage

    from satchel.langchain.metering import Meter
    from satchel.langchain.options import Options

__all__ = ["window"]


@dataclass(frozen=True, slots=True)
class _Cut:
    """A run of a list: where it starts, its messages, the system message and a shortened one."""

    start: int
    messages: list[BaseMessage]
    system: BaseMessage | None = None
    partial: int | None = None

    def placed(self) -> dict[int, BaseMessage]:
        """The messages by their index."""
        found = dict(enumerate(self.messages, start=self.start))
        return found if self.system is None else {0: self.system, **found}


def window(
    history: list[BaseMessage], meter: Meter, options: Options
) -> Counting[list[BaseMessage]]:
    """The window; yields lists to be counted, reversed for the strategy ``"last"``."""
    if not options.is_plain:
        return (yield from _extended(history, meter, options))
    cut = yield from _cut(history, options.max_tokens, meter, options)
    return cut.messages if cut.system is None else [cut.system, *cut.messages]


def _cut(history: list[BaseMessage], budget: Any, meter: Meter, options: Options) -> Counting[_Cut]:
    """What LangChain keeps."""
    splitter = options.text_splitter
    split: Callable[[str], Any] = splitter or split_lines
    if splitter and hasattr(splitter, "split_text"):
        split = splitter.split_text
    last = options.last
    ends_on = options.start_on if last else options.end_on
    fit = Fit(
        budget=budget,
        ends_on=type_matcher(ends_on) if ends_on else None,
        partial=bool(options.allow_partial),
        split=split,
        backward=last,
        keep_blocks=options.keep_blocks,
    )
    if not last:
        found = yield from _found(history, fit, meter)
        kept = found.messages
        return _Cut(0, kept, partial=len(kept) - 1 if found.whole < len(kept) else None)
    rest = list(history)
    if options.end_on:
        matches = type_matcher(options.end_on)
        while rest and not matches(rest[-1]):
            rest.pop()
    system: BaseMessage | None = None
    if options.include_system and rest and isinstance(rest[0], peer().system):
        system = rest.pop(0)
        tokens = yield [system]
        fit = replace(fit, budget=max(0, budget - tokens))
    found = yield from _found(rest, fit, meter)
    kept = found.messages[::-1]
    start = len(rest) - len(kept) + (system is not None)
    return _Cut(start, kept, system, start if found.whole < len(kept) else None)


def _found(messages: list[BaseMessage], fit: Fit, meter: Meter) -> Counting[Window]:
    """The window at one end of a list; of a long list, only what is near that end is copied."""
    backward = fit.backward
    known: int | None = None
    if meter.fitter is not None and messages:
        known = meter.fitter.fitting(messages, fit.budget, backward=backward)
    if known is not None:
        # One more than fit, for a part of it.
        messages = messages[-known - 1 :] if backward else messages[: known + 1]
    return (yield from first_window(messages[::-1] if backward else messages, fit, known))


def _extended(
    history: list[BaseMessage], meter: Meter, options: Options
) -> Counting[list[BaseMessage]]:
    overhead = meter.tools_tokens(options.tools or ())
    limit = options.max_tokens - options.reserve_tokens - overhead
    pinned = _pinned(history, options)
    places = [index for index in range(len(history)) if index not in pinned]
    budget = limit
    if pinned:
        budget = max(0, limit - (yield _asked([history[at] for at in sorted(pinned)], options)))
    cut = yield from _cut([history[at] for at in places], budget, meter, options)
    chosen = {places[at]: message for at, message in cut.placed().items()}
    fixed = set(pinned)
    if cut.system is not None:
        fixed.add(places[0])
    chosen |= {at: history[at] for at in pinned}
    chosen = dict(sorted(chosen.items()))
    if options.keep_steps:
        chosen = yield from _in_steps(chosen, fixed, limit, meter, options)
    kept = list(chosen.values())
    partial = None if cut.partial is None else places[cut.partial]
    if options.strict:
        if kept:
            _refuse_above(limit, (yield _asked(kept, options)), None)
        if not chosen.keys() - fixed:
            yield from _refuse_empty(history, places, fixed, budget, options)
    if options.report is not None:
        tokens = (yield _asked(kept, options)) if kept else 0
        options.report(
            TrimReport(
                messages=len(history),
                kept=tuple(chosen),
                partial=partial if partial in chosen else None,
                tokens=tokens,
                budget=limit,
                overhead=overhead,
            )
        )
    return kept


def _in_steps(
    chosen: dict[int, BaseMessage],
    fixed: set[int],
    limit: Any,
    meter: Meter,
    options: Options,
) -> Counting[dict[int, BaseMessage]]:
    """The whole steps among the chosen messages that begin and end as asked, and that fit."""
    at = list(chosen)
    steps = [[at[place] for place in step] for step in whole_steps(list(chosen.values()))]
    # From the end that is cut to the other; a step with a fixed message is never dropped.
    loose = [step for step in steps if fixed.isdisjoint(step)]
    starts = _matcher(options.start_on) if options.last else None
    ends = _matcher(options.end_on)

    def trimmed() -> None:
        while loose and ends is not None and not ends(chosen[loose[-1][-1]]):
            loose.pop()
        while loose and starts is not None and not starts(chosen[loose[0][0]]):
            loose.pop(0)

    def kept() -> dict[int, BaseMessage]:
        left = {index for step in loose for index in step}
        left |= {index for step in steps if not fixed.isdisjoint(step) for index in step}
        return {index: message for index, message in chosen.items() if index in left}

    trimmed()
    # The native counters only add up: a part of what fits, fits. Any other may surprise.
    while meter.fitter is None and loose:
        if (yield _asked(list(kept().values()), options)) <= limit:
            break
        loose.pop(0 if options.last else -1)
        trimmed()
    return kept()


def _matcher(types: Any) -> Callable[[BaseMessage], bool] | None:
    return type_matcher(types) if types else None


def _asked(messages: list[BaseMessage], options: Options) -> list[BaseMessage]:
    """A list as counters see it."""
    return messages[::-1] if options.last else messages


def _refuse_above(limit: Any, tokens: Any, index: int | None) -> None:
    """Raises if tokens are above the limit."""
    if tokens <= limit:
        return
    place = "what must stay" if index is None else f"message {index}"
    message = f"{place} has {tokens} tokens, budget {limit}"
    raise BudgetError(
        message, code="over_budget", index=index, value=math.ceil(tokens), limit=math.floor(limit)
    )


def _refuse_empty(
    history: list[BaseMessage],
    places: list[int],
    fixed: set[int],
    budget: Any,
    options: Options,
) -> Counting[None]:
    """Raises if nothing is in the window because the step at the end that is kept is too large."""
    loose = [at for at in places if at not in fixed]
    steps = [[loose[place]] for place in range(len(loose))]
    if options.keep_steps:
        steps = [
            [loose[place] for place in step] for step in whole_steps([history[at] for at in loose])
        ]
    if not steps:
        return
    step = steps[-1 if options.last else 0]
    tokens = yield _asked([history[at] for at in step], options)
    _refuse_above(budget, tokens, step[0])


def _pinned(history: list[BaseMessage], options: Options) -> set[int]:
    """The indices of the pinned messages; with ``keep_steps``, of their whole steps.

    Raises:
        InputError: ``invalid_value`` for a pin that is not there, or one in no whole step.
    """
    pin = options.pin
    found: set[int] = set()
    if callable(pin):
        found = {index for index, message in enumerate(history) if pin(message)}
    else:
        names = [pin] if isinstance(pin, (str, int)) else list(cast("Iterable[Any]", pin))
        for name in names:
            found |= _places(history, name)
    if not options.keep_steps or not found:
        return found
    steps = [set(step) for step in whole_steps(history)]
    whole = {index for step in steps if step & found for index in step}
    if found - whole:
        message = f"pinned message {min(found - whole)} is in no whole step"
        raise InputError(message, code="invalid_value", index=min(found - whole))
    return whole


def _places(history: Sequence[BaseMessage], name: Any) -> set[int]:
    if isinstance(name, int):
        if -len(history) <= name < len(history):
            return {name % len(history)}
        message = f"pin {name} is no index of {len(history)} messages"
        raise InputError(message, code="invalid_value", value=name)
    places = {index for index, message in enumerate(history) if message.id == name}
    if not places:
        message = f"pin {name!r} is the id of no message"
        raise InputError(message, code="invalid_value")
    return places
