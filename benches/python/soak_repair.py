"""The long run of the repair and window properties: random damage, every dialect, every mode.

``python benches/python/soak_repair.py 20000`` takes a while; ``--dialect`` runs one of the five,
``--seed`` other histories. CI runs the same checks over a few (``test_soak.py``).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Literal, get_args

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "python"))

import properties
import satchel
from satchel._histories import Rolled, make_history
from satchel.repairing import PLACEHOLDERS
from satchel.testing import Dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

Message = dict[str, Any]
Mode = Literal["synthesize", "drop", "flatten"]
MODES: tuple[Mode, ...] = get_args(Mode)
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
BUDGETS = (1, 60, 150, 300, 500, 800, 1_200, 2_000, 4_000, 50_000)
"""Tokens; from where nothing fits to where everything does."""


def check_repair(messages: list[Message], dialect: Dialect, mode: Mode) -> str:
    """Checks one repair; ``repaired``, or ``refused`` if a message cannot be understood.

    Raises:
        AssertionError: the repair breaks a promise.
    """
    before = repr(messages)
    try:
        repaired = satchel.repair(messages, dialect, mode=mode)
    except satchel.InputError as error:
        properties.refused(error, messages)
        return "refused"
    case = (messages, repaired)
    assert repr(messages) == before, case
    codes = {one.code for one in satchel.lint(messages, dialect)}
    if errors(messages, dialect) == [] and "starts_without_user" not in codes:
        assert len(repaired) == len(messages), case
        assert all(map(lambda a, b: a is b, repaired, messages)), case
    assert errors(repaired, dialect) == [], (case, errors(repaired, dialect))
    again = satchel.repair(repaired, dialect, mode=mode)
    assert len(again) == len(repaired), (case, again)
    assert all(map(lambda a, b: a is b, again, repaired)), (case, again)
    properties.nothing_invented(repaired, messages, PLACEHOLDERS)
    places = properties.places(repaired, messages)
    assert places == sorted(places), (case, places)
    return "repaired"


def check_window(messages: list[Message], dialect: Dialect, budget: int) -> str:
    """Checks one window; ``window``, ``refused`` as above, or ``over`` if the hard part is larger.

    Raises:
        AssertionError: the window breaks a promise.
    """
    packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=budget)
    try:
        window = packer.assemble(messages, open_calls="synthesize")
    except satchel.BudgetError:
        return "over"
    except satchel.InputError as error:
        properties.refused(error, messages)
        return "refused"
    case = (budget, messages, window.messages)
    assert window.tokens <= budget, (window.tokens, case)
    assert errors(window.messages, dialect) == [], (errors(window.messages, dialect), case)
    return "window"


def check_convert(messages: list[Message], dialect: Dialect, target: Dialect) -> str:
    """Checks one conversion; ``converted``, or ``refused`` as above.

    Raises:
        AssertionError: the target would refuse the result.
    """
    try:
        found = satchel.convert(messages, dialect, target)
    except satchel.InputError as error:
        properties.refused(error, messages)
        return "refused"
    wrong = errors(found.messages, target)
    # In its own dialect it comes back as it is.
    if dialect != target:
        assert wrong == [], (wrong, target, messages, found.messages)
    return "converted"


def errors(messages: Sequence[Any], dialect: str) -> list[str]:
    """Codes of what the provider would reject."""
    found = satchel.lint(messages, dialect)
    return [one.code for one in found if one.severity == "error"]


def soak(dialect: Dialect, count: int, seed: int) -> Counter[str]:
    """Checks ``count`` damaged histories in every mode, target and in two budgets; how they went.

    Raises:
        AssertionError: a promise is broken.
    """
    figures: Counter[str] = Counter()
    for number in range(count):
        rng = Random(f"{dialect} {seed} {number}")  # noqa: S311 - not for secrets
        messages = make_history(Rolled(rng), dialect, max_steps=8, damage=True)
        figures["histories"] += 1
        for mode in MODES:
            figures[check_repair(messages, dialect, mode)] += 1
        for target in DIALECTS:
            figures[f"conversions {check_convert(messages, dialect, target)}"] += 1
        for budget in rng.sample(BUDGETS, 2):
            figures[f"windows {check_window(messages, dialect, budget)}"] += 1
    return figures


def main() -> None:
    """Runs the dialects and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=1_000)
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--seed", type=int, default=7)
    chosen = parser.parse_args()
    for dialect in chosen.dialect or DIALECTS:
        start = time.perf_counter()
        figures = soak(dialect, chosen.count, chosen.seed)
        took = time.perf_counter() - start
        told = ", ".join(f"{count:,} {kind}" for kind, count in sorted(figures.items()))
        print(f"{dialect}: {told}; {took:,.0f} s", flush=True)


if __name__ == "__main__":
    main()
