"""Every figure of the README's table, measured in one run.

As a script it prints one Markdown table and the machine it was measured on::

    python benches/python/bench_foundation.py [--json FILE] [--quick] [--only WORD ...]

Times are CPU times of the process with all its threads. Each repetition sees text that nobody has
seen before, unless the measure says otherwise; both sides get strings of their own; what comes out
is compared. Under pytest the satchel side of each measure is a bench for pytest-benchmark, and the
whole table is made once at the smallest size, so that its checks run with the tests.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

import pytest

import counting_lines
import process_lines
import rivals
import satchel
import texts
import window_lines
from effort import FULL, ONCE, QUICK, Effort
from figures import Line, machine, table, to_json
from satchel.testing import generate_chat, require_release

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_P = ParamSpec("_P")
_T = TypeVar("_T")


class Bench(Protocol):
    """The ``benchmark`` fixture: times a call and returns what it returned."""

    def __call__(self, work: Callable[_P, _T], /, *args: _P.args, **options: _P.kwargs) -> _T:
        """Times ``work``."""
        ...


MEASURES: Mapping[str, Callable[[Effort], list[Line]]] = {
    "start": lambda effort: [
        process_lines.import_line(effort),
        *process_lines.start_lines(effort),
    ],
    "count": lambda effort: [
        counting_lines.mixed_line(effort),
        *counting_lines.kind_lines(effort),
        counting_lines.unseen_korean_line(effort),
        process_lines.recorded_line(effort),
        *counting_lines.pathological_lines(effort),
    ],
    "token_window": lambda effort: [window_lines.token_window_line(effort)],
    "working_set": window_lines.working_set_lines,
    "assemble": window_lines.assemble_lines,
    "loop": window_lines.loop_lines,
    "memory": process_lines.memory_lines,
    "wheel": lambda _effort: [process_lines.wheel_line()],
}
"""The measures by name, each a few lines of the table."""


@pytest.mark.parametrize("name", [name for name in MEASURES if name != "wheel"])
def test_measure(name: str) -> None:
    lines = MEASURES[name](ONCE)
    assert lines
    assert all(line.ours.values for line in lines)
    assert table(lines).count("\n") == len(lines) + 1


def test_count_mixed(benchmark: Bench) -> None:
    contents = texts.short_mixed(1_000, seed=0)
    count = satchel.counter("o200k_base").count
    total = benchmark(lambda: sum(count(text) for text in contents))
    assert total > 0


def test_count_many(benchmark: Bench) -> None:
    contents = texts.short_mixed(10_000, seed=0)
    counts = benchmark(satchel.counter("o200k_base").count_many, contents)
    assert len(counts) == len(contents)


def test_token_window(benchmark: Bench) -> None:
    messages = generate_chat(1_000, seed=0)
    window = benchmark(satchel.token_window, messages, 8_000)
    assert 0 < len(window) < len(messages)


def test_agent_loop(benchmark: Bench) -> None:
    messages = generate_chat(300, seed=0)
    windows = benchmark(window_lines.agent_loop, messages, 8_000)
    assert all(window.tokens <= 8_000 for window in windows)


def test_assemble(benchmark: Bench) -> None:
    messages = generate_chat(1_000, seed=0)
    assembler = satchel.Assembler("gpt-4o", budget=8_000)
    window = benchmark(assembler.assemble, messages)
    assert window.tokens <= 8_000


def main() -> None:
    parser = argparse.ArgumentParser(description="Measures every figure of the README's table.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write all values there")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument(
        "--only", nargs="+", choices=MEASURES, default=list(MEASURES), metavar="NAME",
        help=f"only these measures: {', '.join(MEASURES)}",
    )  # fmt: skip
    options = parser.parse_args()
    warnings.simplefilter("always", RuntimeWarning)
    require_release()
    rivals.encoding()  # loaded before anything is timed
    effort = QUICK if options.quick else FULL
    lines: list[Line] = []
    for name in options.only:
        print(f"measuring {name} ...", file=sys.stderr, flush=True)
        lines += MEASURES[name](effort)
    print(f"{machine()}\n\n{table(lines)}")
    if options.json is not None:
        options.json.write_text(json.dumps(to_json(lines), indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
