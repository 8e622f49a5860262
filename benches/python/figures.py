"""Measured values, and the one table they are printed in."""

from __future__ import annotations

import datetime as dt
import gc
import os
import platform
import statistics
import time
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Line", "Samples", "cpu_seconds", "machine", "table", "to_json"]

MANY = 50
"""From this many values on, a spread is between the quartiles."""

_SCALE = {"s": 1.0, "ms": 1e3, "us": 1e6}


@dataclass(frozen=True, slots=True)
class Samples:
    """Values of one quantity, a value a repetition.

    Attributes:
        unit: unit of the values, as printed.
        values: at least one value.
    """

    unit: str
    values: tuple[float, ...]

    @classmethod
    def of_seconds(cls, unit: str, seconds: Sequence[float]) -> Samples:
        """Seconds in the unit ``s``, ``ms`` or ``us``."""
        return cls(unit, tuple(value * _SCALE[unit] for value in seconds))

    @property
    def median(self) -> float:
        """The middle value."""
        return statistics.median(self.values)

    @property
    def bulk(self) -> tuple[float, float]:
        """Least and most; of many values, the quartiles, since each value is then a single act."""
        if len(self.values) < MANY:
            return min(self.values), max(self.values)
        low, _, high = statistics.quantiles(self.values, n=4)
        return low, high

    def __str__(self) -> str:
        low, high = min(self.values), max(self.values)
        if len(self.values) == 1:
            return f"{_digits(low)} {self.unit}"
        return f"{_digits(low)} / {_digits(self.median)} / {_digits(high)} {self.unit}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: a measure, and what it is compared with.

    Attributes:
        key: identifies the line, ``noun/size/rival``.
        measure: what was measured, in words.
        ours: satchel's values.
        rival: name of the rival or of the reference; None for an absolute measure.
        theirs: the rival's values for the same input, in the same unit.
        less_is_better: False for rates.
        note: what else the reader should know.
    """

    key: str
    measure: str
    ours: Samples
    rival: str | None = None
    theirs: Samples | None = None
    less_is_better: bool = True
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times better satchel is, by the medians; below 1 is worse."""
        if self.theirs is None:
            return None
        times = self.theirs.median / self.ours.median
        return times if self.less_is_better else 1 / times

    @property
    def ratio_range(self) -> tuple[float, float] | None:
        """The ratio at its worst and at its best, by the ends of `Samples.bulk`."""
        if self.theirs is None:
            return None
        ours, theirs = self.ours.bulk, self.theirs.bulk
        low, high = theirs[0] / ours[1], theirs[1] / ours[0]
        return (low, high) if self.less_is_better else (1 / high, 1 / low)


def cpu_seconds(work: Callable[[], object]) -> float:
    """CPU seconds of this process, all threads, for one call; garbage is collected before."""
    gc.collect()
    start = time.process_time()
    work()
    return time.process_time() - start


def machine() -> str:
    """Processor, system, versions and date, in one line."""
    model = platform.processor() or platform.machine()
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                model = value.strip()
                break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    versions = ", ".join(
        f"{name} {import_module(name).__version__}"
        for name in ("satchel", "tiktoken", "langchain_core")
    )
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    return (
        f"{model}, {cores} cores{load}; {platform.system()}, "
        f"Python {platform.python_version()}; {versions}; {today}"
    )


def table(lines: Sequence[Line]) -> str:
    """The lines as a Markdown table; values are min / median / max."""
    head = "| measure | satchel | beside it | | ratio (worst to best) | n | note |"
    rows = [head, "|---|---|---|---|---|---|---|"]
    for line in lines:
        ratio, n = "", f"{len(line.ours.values)}"
        if line.theirs is not None and line.ratio is not None and line.ratio_range is not None:
            low, high = line.ratio_range
            ratio = f"**{_digits(line.ratio)}** ({_digits(low)} to {_digits(high)})"
            if len(line.theirs.values) != len(line.ours.values):
                n += f", {len(line.theirs.values)}"
        rows.append(
            f"| {line.measure} | {line.ours} | {line.rival or ''} | {line.theirs or ''} "
            f"| {ratio} | {n} | {line.note} |"
        )
    return "\n".join(rows)


def to_json(lines: Sequence[Line]) -> dict[str, Any]:
    """Everything that was measured, for a file."""
    return {
        "machine": machine(),
        "lines": [{**asdict(line), "ratio": line.ratio} for line in lines],
    }


def _digits(value: float) -> str:
    """Three significant digits, without an exponent."""
    size = abs(value)
    if size >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if size >= 10 else f"{value:.2f}" if size >= 1 else f"{value:.3f}"
