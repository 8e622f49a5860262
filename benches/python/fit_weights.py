"""Fits the two weight vectors of ``Policy.likelihood`` to recorded runs.

    python benches/python/fit_weights.py FOLDER ... [--every 6] [--penalty 1.0] [--toml FILE]

A row is an identifier before a reply of the model, with the features that the planner sees there.
It counts as used if an action took it at least six messages after its newest copy and before any
other copy. Rows that were not used are drawn, one of ten, and count ten times. It is a logistic
regression with a small L2 penalty, by Newton's method. Half of the runs, by a hash of their name,
is kept apart: the area under the ROC curve there says how well the weights carry over. Both vectors
are printed as TOML that ``Policy.from_toml`` reads. pytest checks that known weights are found
again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

import satchel
from satchel._core import Counter, likelihood_rows
from satchel.policy import Likelihood, Likelihoods, Policy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NAMES: Final = tuple(Likelihood.model_fields)
UNIT: Final = Counter("chars4", exact=True, margin=0.0)
ROUNDS: Final = 30
DONE: Final = 1e-8
LEAST_USED: Final = 30
"""Fewer uses than this say nothing: the default vector stays."""


class Rows(NamedTuple):
    """Rows of several runs: ``(n, 28)`` features, uses, and how many rows each stands for."""

    features: NDArray[np.float64]
    used: NDArray[np.bool_]
    weights: NDArray[np.float64]


def fit(rows: Rows, penalty: float) -> NDArray[np.float64]:
    """The weights of the likeliest logistic function; the first, the bias, is not penalised."""
    size = rows.features.shape[1]
    found = np.zeros(size)
    ridge = np.full(size, penalty)
    ridge[0] = 0.0
    for _ in range(ROUNDS):
        likely = 1 / (1 + np.exp(-np.clip(rows.features @ found, -40, 40)))
        slope = rows.features.T @ (rows.weights * (rows.used - likely)) - ridge * found
        spread = rows.weights * likely * (1 - likely)
        curve = (rows.features * spread[:, None]).T @ rows.features + np.diag(ridge + 1e-9)
        step = np.linalg.solve(curve, slope)
        found += step
        if np.abs(step).max() < DONE:
            break
    return found


def area(rows: Rows, weights: NDArray[np.float64]) -> float:
    """Area under the ROC curve: how often a used row is put before one that was not used."""
    scores = rows.features @ weights
    order = np.argsort(scores, kind="stable")
    ranked, used, counts = scores[order], rows.used[order], rows.weights[order]
    below = np.cumsum(np.where(used, 0.0, counts))
    # Of equals one half counts.
    first = np.searchsorted(ranked, ranked, side="left")
    last = np.searchsorted(ranked, ranked, side="right")
    before = np.concatenate([[0.0], below])
    better = (before[first] + before[last]) / 2
    positives, negatives = counts[used].sum(), below[-1] if len(below) else 0.0
    return float((better * counts)[used].sum() / max(1.0, positives * negatives))


def read(folders: Sequence[Path], every: int) -> dict[str, dict[str, Rows]]:
    """The rows of both kinds of conversation, in two halves of the runs."""
    files = sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())
    found: dict[str, dict[str, list[Rows]]] = {
        kind: {"tuning": [], "checking": []} for kind in ("agent", "dialogue")
    }
    for run in satchel.read_transcripts(files, on_error="skip"):
        name = f"{Path(run.source).name}#{run.index}"
        half = "checking" if hashlib.sha256(name.encode()).digest()[0] % 2 else "tuning"
        try:
            messages = satchel.repair(run.messages, run.dialect)
            features, used, dialogue, weights = likelihood_rows(
                json.dumps(messages), run.dialect, counter=UNIT, every=every
            )
        except satchel.SatchelError:
            continue
        for kind, chosen in (("agent", ~dialogue), ("dialogue", dialogue)):
            found[kind][half].append(Rows(features[chosen], used[chosen], weights[chosen]))
    return {
        kind: {half: joined(rows) for half, rows in halves.items()}
        for kind, halves in found.items()
    }


def joined(rows: Sequence[Rows]) -> Rows:
    """The rows of all runs."""
    if not rows:
        return Rows(np.zeros((0, len(NAMES))), np.zeros(0, bool), np.zeros(0))
    return Rows(*(np.concatenate(columns) for columns in zip(*rows, strict=True)))


def named(weights: NDArray[np.float64]) -> Likelihood:
    """The vector as the policy has it, to two digits."""
    rounded = np.clip(np.round(weights, 2), -100, 100)
    return Likelihood(**dict(zip(NAMES, (float(one) for one in rounded), strict=True)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--every", type=int, default=6)
    parser.add_argument("--penalty", type=float, default=1.0)
    parser.add_argument("--toml", type=Path)
    options = parser.parse_args()
    vectors: dict[str, Likelihood] = {}
    print(
        "| kind | half fitted | rows | used | AUC there | AUC on the other | AUC of the default |"
    )
    print("|---|---|--:|--:|--:|--:|--:|")
    for kind, halves in read(options.folder, options.every).items():
        default = getattr(Likelihoods(), kind)
        now = np.array([getattr(default, name) for name in NAMES])
        tuning, checking = halves["tuning"], halves["checking"]
        vectors[kind] = default
        if min(tuning.used.sum(), checking.used.sum()) >= LEAST_USED:
            vectors[kind] = named(fit(joined([tuning, checking]), options.penalty))
        for half, own, other in (("tuning", tuning, checking), ("checking", checking, tuning)):
            if own.used.sum() < LEAST_USED:
                print(f"| {kind} | {half} | {len(own.used)} | {own.used.sum()} | - | - | - |")
                continue
            weights = fit(own, options.penalty)
            print(
                f"| {kind} | {half} | {len(own.used):,} | {own.used.sum():,} |"
                f" {area(own, weights):.3f} | {area(other, weights):.3f} |"
                f" {area(other, now):.3f} |"
            )
    text = Policy(name="fitted", likelihood=Likelihoods(**vectors)).to_toml()
    start = text.index("[likelihood.agent]")
    end = text.find("\n[", text.index("[likelihood.dialogue]"))
    print(text[start : end if end > 0 else None])
    if options.toml is not None:
        options.toml.write_text(text, encoding="utf-8")


def test_known_weights_are_found_again() -> None:
    lot = np.random.default_rng(7)
    features = np.column_stack([np.ones(20_000), lot.normal(size=(20_000, 3))])
    true = np.array([-2.0, 1.0, -0.5, 0.0])
    used = lot.random(20_000) < 1 / (1 + np.exp(-features @ true))
    rows = Rows(features, used, np.ones(20_000))
    found = fit(rows, 1e-3)
    assert np.abs(found - true).max() < 0.1
    assert area(rows, true) > 0.7
    assert abs(area(rows, np.zeros(4)) - 0.5) < 1e-9


if __name__ == "__main__":
    main()
