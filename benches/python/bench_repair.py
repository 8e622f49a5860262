"""Lint and repair of long histories, beside what `json.loads` needs for the same bytes.

Run as a script for the table; pytest runs it once, untimed.
"""

from __future__ import annotations

import json
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import satchel
from satchel.testing import Dialect, generate_history, require_release

if TYPE_CHECKING:
    from collections.abc import Callable

SIZES = (10_000, 20_000)
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


def damaged(count: int, dialect: Dialect) -> list[Any]:
    """A history of which every fiftieth message is missing."""
    messages = generate_history(count, dialect=dialect)
    return [message for index, message in enumerate(messages) if index % 50 != 7]


def test_bench_repair_is_complete() -> None:
    for dialect in DIALECTS:
        messages = damaged(600, dialect)
        repaired = satchel.repair(messages, dialect)
        assert any(found.severity == "error" for found in satchel.lint(messages, dialect))
        assert all(found.severity != "error" for found in satchel.lint(repaired, dialect))


def timed(run: Callable[[], object], *, rounds: int = 7) -> tuple[float, float]:
    """Median and fastest of several runs, in milliseconds."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return statistics.median(times), min(times)


def main() -> None:
    """Prints the table."""
    require_release()
    print(f"{'history':<28}{'what':<22}{'median':>10}{'fastest':>10}{'of loads':>10}")
    for dialect in DIALECTS:
        for count in SIZES:
            for name, messages in (
                ("valid", generate_history(count, dialect=dialect)),
                ("damaged", damaged(count, dialect)),
            ):
                data = json.dumps(messages)
                label = f"{dialect} {count} {name}"
                base = timed(partial(json.loads, data))

                def lint(messages: list[Any] = messages) -> object:
                    return satchel.lint(messages, dialect)

                def repair(messages: list[Any] = messages) -> object:
                    return satchel.repair(messages, dialect)

                rows = [("json.loads", base), ("lint", timed(lint)), ("repair", timed(repair))]
                both = (rows[1][1][0] + rows[2][1][0], rows[1][1][1] + rows[2][1][1])
                for what, (median, fastest) in [*rows, ("lint + repair", both)]:
                    share = f"{fastest / base[1]:.2f}"
                    print(f"{label:<28}{what:<22}{median:>10.1f}{fastest:>10.1f}{share:>10}")


if __name__ == "__main__":
    main()
