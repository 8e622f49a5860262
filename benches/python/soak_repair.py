"""The long run of the repair property: random damage, every dialect, every mode.

``python benches/python/soak_repair.py 20000`` takes a while; CI runs the same property small.
"""

from __future__ import annotations

import sys
import time
from typing import Any, get_args

from hypothesis import HealthCheck, Phase, given, seed, settings

import satchel
from satchel.testing import AnyDialect, histories

MODES = ("synthesize", "drop", "flatten")


def soak(dialect: AnyDialect, count: int, start: int) -> tuple[int, int]:
    """Repairs ``count`` damaged histories in every mode; how many were refused, and repaired.

    Raises:
        AssertionError: an error is left, or a second repair changes something.
    """
    figures = [0, 0]

    @seed(start)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(histories(dialect, damage=True))
    def check(messages: list[dict[str, Any]]) -> None:
        for mode in MODES:
            try:
                repaired = satchel.repair(messages, dialect, mode=mode)
            except satchel.InputError as error:
                assert error.index is not None
                figures[0] += 1
                continue
            figures[1] += 1
            found = [one for one in satchel.lint(repaired, dialect) if one.severity == "error"]
            assert not found, (messages, repaired, found)
            again = satchel.repair(repaired, dialect, mode=mode)
            assert len(again) == len(repaired), (messages, repaired, again)
            assert all(map(lambda a, b: a is b, again, repaired)), (messages, repaired, again)

    check()
    return figures[0], figures[1]


def main() -> None:
    """Runs all dialects and prints a line for each."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    for dialect in get_args(AnyDialect):
        start = time.perf_counter()
        refused, repaired = soak(dialect, count, start=7)
        took = time.perf_counter() - start
        print(
            f"{dialect:<18}{repaired:>8} repaired {refused:>8} refused {took:>8.0f} s", flush=True
        )


if __name__ == "__main__":
    main()
