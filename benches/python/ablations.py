"""What each part of the planner is worth: the replay without it.

    python benches/python/ablations.py FOLDER [--budget 25%]

FOLDER holds transcripts as for ``bench_replay.py``, whose halves it shares. Prints a row for each
part that is taken away and each set of runs: LRR, LRR-line, price. pytest checks that each variant
is a policy that the planner reads.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final, Literal

from bench_replay import MIN_CALLS, SETS, half
from satchel.policy import Likelihood, Likelihoods, Policy
from satchel.replay import run
from satchel.testing import generate_history, require_release


class Ablated(Policy):
    """A policy whose choice does without something; the planner reads the further setting."""

    without: tuple[Literal["coverage", "newest", "opening"], ...] = ()


EQUAL: Final = Likelihood(**dict.fromkeys(Likelihood.model_fields, 0.0) | {"bias": -3.0})

VARIANTS: Final[dict[str, Policy]] = {
    "all": Policy(name="all"),
    "no coverage discount": Ablated(name="no coverage discount", without=("coverage",)),
    "any copy counts": Ablated(name="any copy counts", without=("newest",)),
    "every identifier equal": Policy(
        name="every identifier equal", likelihood=Likelihoods(agent=EQUAL, dialogue=EQUAL)
    ),
    "no recall": Policy(name="no recall", recall=0.0),
    "no fragments": Policy(name="no fragments", fragment=0.0),
    "opening cost ignored": Ablated(name="opening cost ignored", without=("opening",)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", default="25%")
    options = parser.parse_args()
    require_release()
    agents = [pattern for name, pattern in SETS.items() if name != "tau-bench"]
    sets = {"agents": agents, "tau-bench": [SETS["tau-bench"]], "all": list(SETS.values())}
    files = {
        name: sorted(
            path for one in patterns for path in options.folder.glob(one) if path.is_file()
        )
        for name, patterns in sets.items()
    }
    whole = run(
        files["all"],
        policies=list(VARIANTS.values()),
        budget=options.budget,
        min_calls=MIN_CALLS,
        pictures=0,
    )
    of = {name: {str(path) for path in paths} for name, paths in files.items()}
    reports = {
        name: whole.of(tuple(one for one in whole.runs if one.source in paths))
        for name, paths in of.items()
    }
    for which in ("tuning", "checking"):
        reports[which] = whole.of(tuple(one for one in whole.runs if half(one) == which))
    print("| variant | " + " | ".join(reports) + " |")
    print("|---|" + "---|" * len(reports))
    for variant in VARIANTS:
        cells: list[str] = []
        for report in reports.values():
            row = report.totals[variant]
            figures = (row["lrr"].value, row["lrr_line"].value)
            cells.append(
                " / ".join(f"{one:.3f}" for one in figures) + f" / {row['price'].value:.2f}"
            )
        print(f"| {variant} | " + " | ".join(cells) + " |")


def test_every_variant_is_a_policy(tmp_path: Path) -> None:
    import json  # noqa: PLC0415 - the script needs none

    path = tmp_path / "run.openai.json"
    path.write_text(json.dumps(generate_history(60, seed=11)), encoding="utf-8")
    report = run([path], policies=list(VARIANTS.values()), budget="30%", min_calls=2)
    assert set(VARIANTS) <= set(report.totals)
    assert all(
        one.over_budget == 0 for one in report.runs[0].outcomes.values() if one.policy in VARIANTS
    )


if __name__ == "__main__":
    main()
