"""What a page says about many runs: how savings are spread, and which runs are the worst.

The size of what is said does not grow with the number of runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.replay.measures import REFERENCE

if TYPE_CHECKING:
    from satchel.replay.outcome import RunResult
    from satchel.replay.report import ReplayReport

__all__ = ["BINS", "WORST", "listed_runs", "spread"]

BINS: Final = 40
"""Bars of the distribution: savings from -100 % (twice the price) to 100 % in steps of 5."""

WORST: Final = 25
"""Runs that are listed for each policy and each way to be bad."""

_LONGEST: Final = 50


def spread(report: ReplayReport) -> dict[str, dict[str, Any]]:
    """By policy: US dollars in all, and the savings of the runs, in bars and quantiles.

    A run's saving is 1 less its price as a multiple of sending everything with a cache. What lies
    below -100 % is in the first bar.
    """
    full = np.array([run.outcomes[REFERENCE].cost for run in report.runs])
    found: dict[str, dict[str, Any]] = {}
    for name in report.policies:
        cost = np.array([run.outcomes[name].cost for run in report.runs])
        saved = 1 - cost[full > 0] / full[full > 0]
        bars, _ = np.histogram(np.clip(saved, -1, 1), bins=BINS, range=(-1, 1))
        marks = np.quantile(saved, [0.05, 0.5, 0.95]) if saved.size else np.zeros(0)
        found[name] = {
            "cost": round(float(cost.sum()), 4),
            "bars": bars.tolist(),
            "marks": [round(float(mark), 4) for mark in marks],
            "dearer": int((saved < 0).sum()),
        }
    return found


def listed_runs(report: ReplayReport) -> list[RunResult]:
    """The runs that a page lists: the worst of each policy, and the longest.

    Worst are those that lost most, those that could read the smallest share of their long
    references on whole lines, and those that cost most beside sending everything.
    """
    runs = report.runs
    chosen = set(sorted(range(len(runs)), key=lambda at: -runs[at].calls)[:_LONGEST])
    for name in report.policies:
        kept = [_kept(run, name) for run in runs]
        price = [_price(run, name) for run in runs]
        lost = [run.outcomes[name].lost for run in runs]
        for values in (kept, [-one for one in price], [-one for one in lost]):
            chosen.update(sorted(range(len(runs)), key=values.__getitem__)[:WORST])
    return [runs[at] for at in sorted(chosen, key=lambda at: -runs[at].calls)]


def _kept(run: RunResult, policy: str) -> float:
    one = run.outcomes[policy]
    return one.long_read_in_line / one.long_references if one.long_references else 2.0


def _price(run: RunResult, policy: str) -> float:
    full = run.outcomes[REFERENCE].cost
    return run.outcomes[policy].cost / full if full else 0.0
