"""The report of a replay: rows by run, totals with intervals, as JSON, Markdown or a page."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from satchel.replay.measures import MEASURES, Figure, Measure, figures

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from satchel.replay.outcome import RunResult, Skipped

__all__ = ["ReplayReport"]

_DETAIL: Final = ("shots", "worst")
_APART: Final = ("outcomes", "sizes")


@dataclass(frozen=True)
class ReplayReport:
    """What a replay found.

    Attributes:
        runs: one result for each run, in the order in which they were read.
        skipped: conversations that were not replayed, and why.
        policies: names of the policies, in the order of tables.
        budget: what a window had, in words.
        counter: name of what counted.
        model: whose prices were used.
        totals: by policy and by key of `MEASURES`: the measure over all runs.
    """

    runs: tuple[RunResult, ...] = field(repr=False)
    skipped: tuple[Skipped, ...] = field(repr=False)
    policies: tuple[str, ...]
    budget: str
    counter: str
    model: str
    totals: dict[str, dict[str, Figure]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "totals", figures(self.runs, self.policies))

    def of(self, runs: tuple[RunResult, ...]) -> ReplayReport:
        """The report of some of the runs."""
        return ReplayReport(
            runs, self.skipped, self.policies, self.budget, self.counter, self.model
        )

    def to_json(self) -> str:
        """Everything as one JSON object; what was not measured is null."""
        runs = [
            {
                **{key: value for key, value in asdict(run).items() if key not in _APART},
                "outcomes": {
                    name: {key: value for key, value in asdict(one).items() if key not in _DETAIL}
                    for name, one in run.outcomes.items()
                },
            }
            for run in self.runs
        ]
        shown = {
            "budget": self.budget,
            "counter": self.counter,
            "model": self.model,
            "policies": list(self.policies),
            "measures": [asdict(measure) for measure in MEASURES],
            "totals": {
                name: {key: _figure_json(figure) for key, figure in row.items()}
                for name, row in self.totals.items()
            },
            "runs": runs,
            "skipped": [asdict(one) for one in self.skipped],
        }
        return json.dumps(shown, allow_nan=False, indent=1)

    def to_arrow(self) -> Any:  # noqa: ANN401 - pyarrow comes without types
        """A ``pyarrow.Table``, a row for each run and policy: the fields of both.

        Raises:
            ImportError: pyarrow is not installed (extra ``batch``).
        """
        from satchel.replay.table import results_table  # noqa: PLC0415 - an extra

        return results_table(self)

    def to_parquet(self, path: str | os.PathLike[str], *, partition_by: Sequence[str] = ()) -> None:
        """Writes `to_arrow` as Parquet.

        Args:
            path: a file or its URL; with ``partition_by`` a folder that is new or empty.
            partition_by: columns whose values become folders, such as ``policy=adaptive``.

        Raises:
            InputError: ``invalid_file`` if it cannot be written, ``invalid_value`` for an unknown
                column.
            ImportError: pyarrow is not installed (extra ``batch``).
        """
        from satchel.replay.table import write_results  # noqa: PLC0415 - an extra

        write_results(self, path, partition_by)

    def to_markdown(self) -> str:
        """The table policy by measure; intervals in brackets."""
        titles = " | ".join(measure.title for measure in MEASURES)
        lines = [f"| policy | {titles} |", "|---|" + "--:|" * len(MEASURES)]
        for name in self.policies:
            row = self.totals[name]
            cells = " | ".join(cell(row[measure.key], measure) for measure in MEASURES)
            lines.append(f"| {name} | {cells} |")
        return "\n".join(lines) + "\n"

    def to_html(self) -> str:
        """A page of its own that needs nothing from elsewhere; all content is escaped."""
        from satchel.replay.page import page  # noqa: PLC0415 - only who wants a page pays for it

        return page(self)


def cell(figure: Figure, measure: Measure) -> str:
    """A figure as tables show it."""
    if math.isnan(figure.value):
        return "-"
    if measure.kind == "count":
        return f"{figure.value:,.0f}"
    value, low, high = (
        short(number, measure) for number in (figure.value, figure.low, figure.high)
    )
    return f"{value} [{low}, {high}]"


def short(number: float, measure: Measure) -> str:
    """A number in the digits that its measure is worth."""
    if math.isnan(number):
        return "-"
    if measure.kind == "count":
        return f"{number:,.0f}"
    if measure.kind == "ratio":
        return f"{number:.2f}"
    shown = f"{number:.3f}"
    return shown[1:] if shown.startswith("0.") else shown


def _figure_json(figure: Figure) -> dict[str, Any]:
    return {key: None if math.isnan(value) else value for key, value in asdict(figure).items()}
