"""What a rewrite would do, told from a sample: the interval holds the truth as often as it says."""

from __future__ import annotations

import gzip
import json
import random
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from commands import run, written
from satchel.batch import Forecast, forecast, rewrite
from satchel.batch.forecast import extrapolated
from satchel.errors import InputError
from satchel.testing import generate_history

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.batch import Summary

OPTIONS: dict[str, Any] = {"model": "gpt-4o", "budget": 3_000, "policy": "token-window"}
COUNTS = ("conversations", "windows", "rejected", "tokens_before", "tokens_after")


@pytest.fixture(scope="module")
def transcripts(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Summary, int]:
    """Transcripts of very different lengths, a broken line now and then, and what is true."""
    folder = tmp_path_factory.mktemp("runs")
    path, lot = folder / "runs.jsonl", random.Random(3)  # noqa: S311 - a seeded input
    lengths = [6 + int(min(250, lot.lognormvariate(3, 1))) for _ in range(30)]
    lines = [
        json.dumps({"messages": generate_history(length, seed=seed)})
        for seed, length in enumerate(lengths)
    ]
    with path.open("w", encoding="utf-8") as file:
        for _ in range(420):
            file.write(lot.choice(lines) + "\n")
            if lot.random() < 0.1:
                file.write('{"broken\n')
    out = folder / "out" / "windows.jsonl"
    out.parent.mkdir()
    return path, rewrite(path, out, **OPTIONS), out.stat().st_size


def truths(done: Summary, output_bytes: int) -> dict[str, int]:
    return {name: getattr(done, name) for name in COUNTS} | {"output_bytes": output_bytes}


def test_intervals_hold_the_truth(transcripts: tuple[Path, Summary, int]) -> None:
    """Samples of a fifth, drawn again and again."""
    path, done, output_bytes = transcripts
    wanted = truths(done, output_bytes)
    found = [forecast(path, sample=16, seed=seed, **OPTIONS) for seed in range(30)]
    assert found[0].units > 2 * 16
    assert all(one.sampled == 16 for one in found)
    for name, truth in wanted.items():
        estimates = [getattr(one, name) for one in found]
        held = sum(one.low <= truth <= one.high for one in estimates)
        # 95 of 100 are promised: with fewer than 24 of 30 that would be one chance in 10,000.
        assert held >= 24, (name, held)
        middle = sum(one.value for one in estimates) / len(estimates)
        assert middle == pytest.approx(truth, rel=0.15), name
    widths = [one.tokens_before.high - one.tokens_before.low for one in found]
    assert max(widths) < 0.5 * done.tokens_before


def test_intervals_hold_the_truth_by_simulation() -> None:
    """The estimate alone: 2,000 samples from skewed units whose totals are known."""
    lot = np.random.default_rng(5)
    sizes = np.minimum(lot.lognormal(12, 0.8, 400), 2e6)
    values = sizes * lot.normal(0.3, 0.05, 400) + lot.exponential(5e3, 400)
    rare = (lot.random(400) < sizes / sizes.sum() * 40).astype(np.float64)
    for totals, count, is_count in ((values, 16, False), (values, 30, False), (rare, 30, True)):
        held = 0
        for _ in range(2_000):
            drawn = lot.choice(400, count, replace=False)
            one = extrapolated(
                totals[drawn], sizes[drawn], 400, float(sizes.sum()), is_count=is_count
            )
            held += bool(one.low <= totals.sum() <= one.high)
        assert held / 2_000 >= 0.93
        assert is_count or held / 2_000 <= 0.98


def test_everything_in_the_sample_is_the_truth(
    transcripts: tuple[Path, Summary, int], tmp_path: Path
) -> None:
    path, done, output_bytes = transcripts
    (tmp_path / "runs.jsonl.gz").write_bytes(gzip.compress(path.read_bytes(), 1))
    for given in (path, tmp_path):
        found = forecast(given, sample=1_000, **OPTIONS)
        assert found.sampled == found.units
        assert found.input_bytes == path.stat().st_size
        for name, truth in truths(done, output_bytes).items():
            one = getattr(found, name)
            same = one.value == one.low == one.high
            # Records name their file, and one of the two has a longer path.
            assert same
            assert one.value == (
                truth if name != "output_bytes" else pytest.approx(truth, rel=0.05)
            )
        assert found.cost_before.value == pytest.approx(done.tokens_before * 2.5e-6, rel=1e-6)
        assert found.cpu_s.value > 0


def test_equal_seeds_draw_equal_samples(transcripts: tuple[Path, Summary, int]) -> None:
    path, _, _ = transcripts

    def told(seed: int, threads: int) -> list[Any]:
        found = forecast(path, sample=6, seed=seed, threads=threads, **OPTIONS)
        return [getattr(found, name) for name in COUNTS]

    assert told(1, 1) == told(1, 3) != told(2, 1)


def test_nothing_to_read_is_a_forecast_too(tmp_path: Path) -> None:
    found = forecast(tmp_path, **OPTIONS)
    assert (found.units, found.sampled, found.conversations.high) == (0, 0, 0)
    assert isinstance(found, Forecast)
    gone = forecast(tmp_path / "nothing.jsonl", **OPTIONS)
    assert gone.rejected.value == 1


def test_options_are_checked(tmp_path: Path) -> None:
    for wrong in ({"sample": 1}, {"sample": "many"}, {"seed": -1}, {"threads": 0}):
        given: Any = OPTIONS | wrong
        with pytest.raises(InputError) as caught:
            forecast(tmp_path, **given)
        assert caught.value.code == "invalid_value"


def test_redaction_is_part_of_the_estimate(tmp_path: Path) -> None:
    text = " ".join(f"write to anna.berg{number}@mailhost.org" for number in range(200))
    given = written(tmp_path / "in.json", [{"role": "user", "content": text}])
    plain, redacted = (
        forecast(given, model="gpt-4o", redact=redact).tokens_after.value
        for redact in (False, True)
    )
    done = rewrite(given, tmp_path / "out.jsonl", model="gpt-4o", redact=True)
    assert redacted == done.tokens_after != plain
    said = run("rewrite", given, "--model", "gpt-4o", "--dry-run", "--redact", "--json").json
    assert said["tokens_after"]["value"] == redacted


def test_the_command_writes_nothing(tmp_path: Path) -> None:
    given = written(tmp_path / "in.json", generate_history(60))
    options = ["--model", "gpt-4o", "--budget", "25%", "--dry-run"]
    said = run("rewrite", given, "--out", tmp_path / "out.jsonl", *options, "--threads", "1").out
    assert said.startswith("estimated from 1 of 1 parts")
    assert "nothing was written" in said
    assert "tokens after" in said
    assert "time on 1 core " in said
    found = run("rewrite", given, *options, "--json").json
    assert found["windows"] == {"value": 1, "low": 1, "high": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["in.json"]
    missing = run("rewrite", given, "--model", "gpt-4o", code=2)
    assert "--out" in missing.err
    wrong = run("rewrite", given, "--out", tmp_path / "o", *options[:2], "--engine", "x", code=2)
    assert "--engine must be local or ray" in wrong.err
