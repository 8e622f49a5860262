"""The measures of a policy over many runs, each with an interval by resampling runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from satchel.replay.outcome import Outcome, RunResult

__all__ = ["LIMIT", "LOT", "MEASURES", "REFERENCE", "Figure", "Measure", "figures"]

REFERENCE: Final = "full"
"""What prices are compared with: sending everything, with a cache."""
LOT: Final = "random"
"""The zero of ``norm``."""
LIMIT: Final = "oracle-lines"
"""The one of ``norm``: a strong reference that knows the future, and no bound."""

_RESAMPLES: Final = 2_000
_AT_ONCE: Final = 100
_LEVEL: Final = 0.95
_SEED: Final = 20_260


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of one policy.

    Attributes:
        value: over all runs together; NaN where there was nothing to measure.
        low: lower end of the interval that holds 95 of 100 resamples of the runs.
        high: its upper end.
        part: the sum above the line, such as references that could be read.
        whole: the sum below it.
    """

    value: float
    low: float
    high: float
    part: float
    whole: float


@dataclass(frozen=True, slots=True)
class Measure:
    """One column of the table.

    Attributes:
        key: its name in code and JSON.
        title: its name in tables.
        meaning: what it says, in a sentence.
        kind: ``share`` of 1, ``ratio`` of prices, ``count`` of calls or references.
        better: whether more or less of it is better.
    """

    key: str
    title: str
    meaning: str
    kind: Literal["share", "ratio", "count"]
    better: Literal["more", "less"]


MEASURES: Final[tuple[Measure, ...]] = (
    Measure(
        "lrr",
        "LRR",
        "long references that could be read: what an action took from a message at least ten"
        " messages back",
        "share",
        "more",
    ),
    Measure(
        "lrr_line",
        "LRR-line",
        "the same, with a whole original line around the identifier",
        "share",
        "more",
    ),
    Measure(
        "tc", "TC", "calls with long references of which every one could be read", "share", "more"
    ),
    Measure("rr", "RR", "all references that could be read, recent ones included", "share", "more"),
    Measure(
        "ns",
        "NS",
        "planted standing instructions that can still be read in the end",
        "share",
        "more",
    ),
    Measure("hit", "HIT", "tokens that came from the prompt cache", "share", "more"),
    Measure(
        "price", "$", "price as a multiple of sending everything with a cache", "ratio", "less"
    ),
    Measure(
        "norm",
        "norm",
        "LRR between eviction by lot (0) and the oracle, a strong reference (1)",
        "share",
        "more",
    ),
    Measure(
        "worth",
        "worth",
        "what compactions kept, as a share of what no choice of lines could exceed",
        "share",
        "more",
    ),
    Measure("fr", "FR", "references that only a pointer in the window leads to", "count", "less"),
    Measure("loss", "LOSS", "references that nothing in the window leads to", "count", "less"),
    Measure("over", "OVER", "calls above the budget", "count", "less"),
)
"""The measures, in the order of tables."""

_SUMS: Final[dict[str, tuple[Callable[[Outcome], float], Callable[[Outcome], float]]]] = {
    "lrr": (lambda one: one.long_read, lambda one: one.long_references),
    "lrr_line": (lambda one: one.long_read_in_line, lambda one: one.long_references),
    "tc": (lambda one: one.long_calls_complete, lambda one: one.long_calls),
    "rr": (lambda one: one.read, lambda one: one.references),
    "ns": (lambda one: one.planted_read, lambda one: one.planted),
    "hit": (lambda one: one.cached_tokens, lambda one: one.input_tokens),
    "worth": (lambda one: one.worth, lambda one: one.worth_bound),
    "fr": (lambda one: one.behind_pointers, lambda one: one.references),
    "loss": (lambda one: one.lost, lambda one: one.references),
    "over": (lambda one: one.over_budget, lambda one: one.calls),
}


def figures(runs: Sequence[RunResult], policies: Sequence[str]) -> dict[str, dict[str, Figure]]:
    """Every measure of every policy; the same runs are drawn for all of them."""
    sums = _Sums(runs, dict.fromkeys([*policies, REFERENCE, LOT, LIMIT]))
    lrr = {name: sums.ratios(name, "lrr") for name in {*policies, LOT, LIMIT}}
    costs = sums.drawn(REFERENCE, _COST)
    found: dict[str, dict[str, Figure]] = {}
    for name in policies:
        row: dict[str, Figure] = {}
        for measure in MEASURES:
            if measure.key == "price":
                cost = sums.drawn(name, _COST)
                row["price"] = _figure(_divide(cost, costs), cost[0], costs[0])
            elif measure.key == "norm":
                part, whole = lrr[name] - lrr[LOT], lrr[LIMIT] - lrr[LOT]
                row["norm"] = _figure(_divide(part, whole), part[0], whole[0])
            else:
                part, whole = (sums.drawn(name, take) for take in _SUMS[measure.key])
                drawn = part if measure.kind == "count" else _divide(part, whole)
                row[measure.key] = _figure(drawn, part[0], whole[0])
        found[name] = row
    return found


_COST: Final[Callable[[Outcome], float]] = lambda one: one.cost  # noqa: E731 - one of the columns


class _Sums:
    """Sums of figures over the runs themselves and over each resample of them.

    The draws are made a few resamples at a time: with all at once their memory would be that of
    two thousand numbers for each run.
    """

    def __init__(self, runs: Sequence[RunResult], policies: Iterable[str]) -> None:
        takes = [_COST, *(take for pair in _SUMS.values() for take in pair)]
        self._places: dict[tuple[str, Callable[[Outcome], float]], int] = {}
        columns: list[NDArray[np.float64]] = []
        for policy in policies:
            outcomes = [run.outcomes[policy] for run in runs if policy in run.outcomes]
            for take in takes:
                if (policy, take) not in self._places and len(outcomes) == len(runs):
                    self._places[policy, take] = len(columns)
                    columns.append(np.array([take(one) for one in outcomes], dtype=np.float64))
        self._drawn = _resampled(np.column_stack(columns))

    def drawn(self, policy: str, take: Callable[[Outcome], float]) -> NDArray[np.float64]:
        """The sum of a figure; the first is that of the runs themselves."""
        return self._drawn[:, self._places[policy, take]]

    def ratios(self, policy: str, key: str) -> NDArray[np.float64]:
        above, below = _SUMS[key]
        return _divide(self.drawn(policy, above), self.drawn(policy, below))


def _resampled(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """The sum of each column, then its sums over resamples of the rows."""
    runs = len(columns)
    parts = [columns.sum(axis=0)[None, :]]
    generator = np.random.default_rng(_SEED)
    for _ in range(0, _RESAMPLES if runs else 0, _AT_ONCE):
        weights = generator.multinomial(runs, np.full(runs, 1 / runs), size=_AT_ONCE)
        parts.append(weights.astype(np.float64) @ columns)
    return np.vstack(parts)


def _divide(part: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    nothing = np.full_like(part, math.nan)
    return np.divide(part, whole, out=nothing, where=whole != 0)


def _figure(drawn: NDArray[np.float64], part: float, whole: float) -> Figure:
    value = float(drawn[0])
    resampled = drawn[1:][~np.isnan(drawn[1:])]
    if math.isnan(value) or not resampled.size:
        return Figure(value, math.nan, math.nan, float(part), float(whole))
    edge = (1 - _LEVEL) / 2
    low, high = np.quantile(resampled, [edge, 1 - edge])
    return Figure(value, float(low), float(high), float(part), float(whole))
