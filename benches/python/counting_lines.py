"""Exact counting against tiktoken: fresh texts, one core, the same counts on both sides."""

from __future__ import annotations

import statistics
from random import Random
from typing import TYPE_CHECKING

import rivals
import satchel
import texts
from figures import Line, Samples, cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from effort import Effort

__all__ = ["kind_lines", "mixed_line", "pathological_lines", "unseen_korean_line"]


def mixed_line(effort: Effort) -> Line:
    """Short chat messages."""
    count = effort.texts // 150
    return _rate(
        "count/mixed/tiktoken",
        "count: mixed chat messages of 40 to 400 bytes",
        lambda seed: texts.short_mixed(count, seed),
        effort.repetitions,
    )


def kind_lines(effort: Effort) -> list[Line]:
    """Texts of about 2,000 characters, by kind."""

    def line(kind: str) -> Line:
        return _rate(
            f"count/{kind}/tiktoken",
            f"count: {kind}",
            lambda seed: texts.of_kind(kind, effort.texts, seed),
            effort.repetitions,
        )

    return [line(kind) for kind in texts.KINDS]


def unseen_korean_line(effort: Effort) -> Line:
    """Korean without the help of a cache."""
    return _rate(
        "count/korean-unseen/tiktoken",
        "count: korean, words that never come back",
        lambda seed: texts.unseen_korean(effort.texts // 4, seed),
        effort.repetitions,
    )


def _rate(key: str, measure: str, make: Callable[[int], list[str]], repetitions: int) -> Line:
    count = satchel.counter("o200k_base").count
    ours: list[float] = []
    theirs: list[float] = []
    for seed in range(repetitions + 1):
        # A string keeps its UTF-8 once somebody has asked for it: each side has its own strings.
        for_us, for_them = make(seed), make(seed)
        megabytes = texts.total_bytes(list(for_us)) / 1e6
        counts: list[int] = []
        ours_s = cpu_seconds(lambda: counts.append(sum(count(text) for text in for_us)))
        theirs_s = cpu_seconds(lambda: counts.append(rivals.count_alone(for_them)))
        assert counts[0] == counts[1] > 0
        if seed > 0:  # the first repetition warms up
            ours.append(megabytes / ours_s)
            theirs.append(megabytes / theirs_s)
    return Line(
        key,
        measure,
        Samples("MB/s", tuple(ours)),
        "tiktoken",
        Samples("MB/s", tuple(theirs)),
        less_is_better=False,
    )


def pathological_lines(effort: Effort) -> list[Line]:
    """The input on which satchel does worst beside tiktoken, and the one that takes it longest."""
    lines = [
        _pathological(name, make, effort.pathological_bytes, effort.repetitions)
        for name, make in texts.PATHOLOGICAL.items()
    ]
    worst = min(lines, key=lambda line: line.ratio or 0.0)
    slowest = max(lines, key=lambda line: line.ours.median)
    behind = [line.measure for line in lines if (line.ratio or 0.0) < 1 / 1.1]
    note = f"of {len(lines)} inputs; slower than 1.1 times tiktoken: {', '.join(behind) or 'none'}"
    size = f"{effort.pathological_bytes // 1_000} KB"
    return [
        Line(
            "count/pathological/worst",
            f"count: {size} made to be slow, worst beside tiktoken ({worst.measure})",
            worst.ours,
            worst.rival,
            worst.theirs,
            note=note,
        ),
        Line(
            "count/pathological/slowest",
            f"count: {size} made to be slow, slowest ({slowest.measure})",
            slowest.ours,
            slowest.rival,
            slowest.theirs,
            note="ratios of all: "
            + ", ".join(f"{line.measure} {line.ratio or 0.0:.2f}" for line in lines),
        ),
    ]


def _pathological(
    name: str, make: Callable[[Random, int], str], size: int, repetitions: int
) -> Line:
    count = satchel.counter("o200k_base").count
    ours: list[float] = []
    theirs: list[float] = []
    for seed in range(repetitions):
        for_us, for_them = (make(Random(seed), size) for _ in range(2))  # noqa: S311 - no secrets
        counts: list[int] = []
        ours.append(cpu_seconds(lambda: counts.append(count(for_us))))
        theirs.append(cpu_seconds(lambda: counts.append(rivals.count_alone([for_them]))))
        assert counts[0] == counts[1] > 0
    assert statistics.median(ours) > 0
    return Line(
        f"count/pathological/{name}",
        name,
        Samples.of_seconds("ms", ours),
        "tiktoken",
        Samples.of_seconds("ms", theirs),
    )
