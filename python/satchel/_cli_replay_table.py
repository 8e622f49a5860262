"""The table of a replay, for people."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from satchel._cli_text import printable
from satchel.replay.measures import LIMIT, MEASURES, REFERENCE
from satchel.replay.report import short

if TYPE_CHECKING:
    from satchel.replay import Figure, Measure, ReplayReport

__all__ = ["print_replay"]

_PIPE_WIDTH: Final = 160  # cells, where there is no terminal to ask
_WIDE: Final = 156  # cells; a narrower terminal gets fewer columns
_NARROW: Final = 108  # cells; a narrower one gets no intervals
_FIRST: Final = frozenset({"lrr_line", "tc", "ns", "hit", "price", "loss", "over"})
_LIMITS: Final = frozenset({REFERENCE, "oracle", LIMIT})


def print_replay(report: ReplayReport) -> None:
    """One row for each policy, the interval below each figure; then what the columns mean."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=_PIPE_WIDTH)
    measures = [one for one in MEASURES if console.width >= _WIDE or one.key in _FIRST]
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("policy", no_wrap=True)
    for measure in measures:
        table.add_column(measure.title, justify="right", no_wrap=True)
    for name in report.policies:
        style = "bright_black" if name in _LIMITS else ""
        row = report.totals[name]
        cells = [
            _cell(row[measure.key], measure, intervals=console.width >= _NARROW)
            for measure in measures
        ]
        table.add_row(Text(printable(name), style=style), *cells, style=style)
    calls = sum(run.calls for run in report.runs)
    console.print(
        Text(
            f"{len(report.runs):,} runs, {calls:,} calls, windows of {report.budget}, counted with "
            f"{printable(report.counter)}, prices of {printable(report.model)}\n"
        )
    )
    console.print(table)
    for measure in measures:
        meaning = Text(f"{measure.title:>8}  ", style="bold")
        console.print(meaning.append(measure.meaning, style="not bold bright_black"))
    if report.skipped:
        console.print(Text(f"\n{len(report.skipped):,} conversations were not replayed"))


def _cell(figure: Figure, measure: Measure, *, intervals: bool) -> Text:
    cell = Text(short(figure.value, measure))
    if intervals and measure.kind != "count" and not math.isnan(figure.low):
        # An en dash, since numbers may be negative.
        interval = f"\n{figure.low:.2f}\u2013{figure.high:.2f}"
        cell.append(interval, style="bright_black")
    return cell
