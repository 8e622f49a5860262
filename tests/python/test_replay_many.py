"""Replays of very many runs: samples, tables of results, and a page that stays small."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from browser import browser
from commands import run as command
from satchel.errors import InputError
from satchel.replay import ReplayReport, RunResult, run
from satchel.replay.spread import WORST
from satchel.testing import generate_history

if TYPE_CHECKING:
    from pathlib import Path

POLICIES = ("adaptive", "keep-last", "clear-tool-uses-3")
MANY = 10_000
WIDTHS = (1_200, 800, 390)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    for name, first in (("a", 0), ("b", 20)):
        with (made / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for seed in range(first, first + 20):
                line = {"messages": generate_history(14 + 4 * (seed % 9), seed=seed)}
                file.write(json.dumps(line) + "\n")
    return made


@pytest.fixture(scope="module")
def report(folder: Path) -> ReplayReport:
    return run(folder, policies=POLICIES, pictures=2)


@pytest.fixture(scope="module")
def many(report: ReplayReport) -> ReplayReport:
    """Ten thousand runs: those of the report with other costs and references kept."""
    lot = random.Random(4)  # noqa: S311 - a seeded input
    runs: list[RunResult] = []
    for number in range(MANY):
        one = report.runs[number % len(report.runs)]
        outcomes = {
            name: replace(
                found,
                cost=found.cost * (1 if name == "full" else lot.uniform(0.5, 1.3)),
                long_read_in_line=lot.randint(0, found.long_read),
                shots=found.shots if number < len(report.runs) else (),
                worst=found.worst if number < len(report.runs) else (),
            )
            for name, found in one.outcomes.items()
        }
        sizes = one.sizes if number < len(report.runs) else ()
        source = f"archive/2026/transcripts-of-the-service-{number // 50}.jsonl"
        runs.append(replace(one, source=source, index=number % 50, outcomes=outcomes, sizes=sizes))
    return report.of(tuple(runs))


# --- samples --------------------------------------------------------------------------------------


def places(found: ReplayReport) -> list[tuple[str, int]]:
    return [(one.source, one.index) for one in found.runs]


def test_samples_are_by_lot_and_nested(folder: Path, report: ReplayReport) -> None:
    def sampled(sample: Any, seed: int = 0) -> list[tuple[str, int]]:
        return places(run(folder, policies="adaptive", sample=sample, seed=seed, pictures=0))

    few, more = sampled(6), sampled("12")
    assert (len(few), len(more)) == (6, 12)
    assert set(few) < set(more) < set(places(report))
    assert more == [one for one in places(report) if one in set(more)]
    assert sampled(6, seed=1) != few
    half = sampled("50 %")
    assert half == sampled(0.5)
    assert 8 <= len(half) <= 32
    assert sampled(1_000) == sampled(1.0) == places(report)


def test_a_sample_does_not_depend_on_names(folder: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}-moved.jsonl").write_bytes((folder / f"{name}.jsonl").read_bytes())
    here, there = (run(one, policies="adaptive", sample=9) for one in (folder, tmp_path))
    assert [one.index for one in here.runs] == [one.index for one in there.runs]


@pytest.mark.parametrize("sample", [0, -1, 0.0, 1.5, "0", "0%", "120%", "some", True, [3]])
def test_samples_are_checked(folder: Path, sample: Any) -> None:
    with pytest.raises(InputError) as caught:
        run(folder, policies="adaptive", sample=sample)
    assert caught.value.code == "invalid_value"


def test_standard_input_has_no_sample() -> None:
    with pytest.raises(InputError, match="standard input"):
        run("-", sample=3)


# --- results --------------------------------------------------------------------------------------


def test_results_are_rows_of_runs_and_policies(report: ReplayReport, tmp_path: Path) -> None:
    pq: Any = import_module("pyarrow.parquet")
    report.to_parquet(tmp_path / "results.parquet")
    rows = pq.read_table(tmp_path / "results.parquet").to_pylist()
    assert len(rows) == len(report.runs) * len(report.policies)
    for row, (one, policy) in zip(
        rows, ((one, policy) for one in report.runs for policy in report.policies), strict=True
    ):
        outcome = one.outcomes[policy]
        assert (row["source"], row["index"], row["policy"]) == (one.source, one.index, policy)
        assert (row["cost"], row["lost"], row["calls"]) == (outcome.cost, outcome.lost, one.calls)
        assert (row["compactions"], row["repaired"]) == (outcome.compactions, False)
    report.to_parquet(tmp_path / "parts", partition_by=["policy"])
    assert {one.name for one in (tmp_path / "parts").iterdir()} == {
        f"policy={name}" for name in report.policies
    }
    assert pq.read_table(tmp_path / "parts").num_rows == len(rows)
    with pytest.raises(InputError, match="there already"):
        report.to_parquet(tmp_path / "parts", partition_by=["policy"])
    with pytest.raises(InputError, match="no column"):
        report.to_parquet(tmp_path / "others", partition_by=["colour"])
    with pytest.raises(InputError) as caught:
        report.to_parquet(tmp_path / "no" / "such" / "folder.parquet")
    assert caught.value.code == "invalid_file"


def test_the_command_samples_and_writes_results(folder: Path, tmp_path: Path) -> None:
    pq: Any = import_module("pyarrow.parquet")
    out = tmp_path / "results.parquet"
    said = command(
        *("replay", folder, "--policy", "adaptive", "--sample", "5", "--seed", "2"),
        *("--results", out),
    ).out
    assert said.startswith("5 runs")
    assert pq.read_table(out).num_rows == 5 * 4
    command("replay", folder, "--sample", "none", code=2)
    command("replay", folder, "--engine", "none", code=2)


def test_the_command_never_writes_over_a_transcript(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / "run.jsonl"
    own.write_bytes(next(iter(sorted(folder.rglob("*.jsonl")))).read_bytes())
    before = own.read_bytes()
    for option in ("--report", "--results"):
        for given in (own, tmp_path):
            refused = command("replay", given, "--policy", "adaptive", option, own, code=2)
            assert "this is the transcript itself" in refused.err
            assert own.read_bytes() == before
    # Told before the work: what is read does not matter yet.
    lost = command("replay", own, "--results", tmp_path / "no" / "rows.parquet", code=2)
    assert "no such file or directory" in lost.err
    url = command("replay", own, "--results", "http://localhost:9/rows.parquet", code=2)
    assert "for reading only" in url.err
    assert [file.name for file in tmp_path.iterdir()] == ["run.jsonl"]


# --- the page -------------------------------------------------------------------------------------


def test_the_page_of_many_runs_is_small_and_lists_the_worst(many: ReplayReport) -> None:
    text = many.to_html()
    assert len(text.encode()) <= 5_000_000
    data = json.loads(text.partition('id="data">')[2].partition("</script>")[0])
    assert data["runs_in_all"] == MANY
    named = {one["name"] for one in data["runs"]}
    assert len(named) < 1_000
    for policy in many.policies:
        bars = data["spread"][policy]["bars"]
        assert sum(bars) == MANY
        full = many.runs[0].outcomes["full"]
        assert full.cost > 0
        dearest = max(
            many.runs, key=lambda run: run.outcomes[policy].cost / run.outcomes["full"].cost
        )
        assert f"{dearest.source} #{dearest.index}" in named
    worst = sorted(
        many.runs,
        key=lambda run: (
            run.outcomes["adaptive"].long_read_in_line
            / max(1, run.outcomes["adaptive"].long_references)
            if run.outcomes["adaptive"].long_references
            else 2
        ),
    )[:WORST]
    assert all(f"{run.source} #{run.index}" in named for run in worst)


def test_the_page_of_many_runs_in_a_browser(many: ReplayReport, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(many.to_html(), encoding="utf-8")
    with browser() as tab:
        for width in WIDTHS:
            tab.send(
                "Emulation.setDeviceMetricsOverride",
                width=width,
                height=900,
                deviceScaleFactor=1,
                mobile=False,
            )
            tab.open(path)
            assert tab.evaluate("document.documentElement.dataset.drawn") == "yes"
            assert tab.errors == []
            # The page scrolls only down, and nothing in it scrolls by itself.
            assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert tab.evaluate("document.documentElement.scrollHeight > 2 * innerHeight")
            wide = """
                [...document.querySelectorAll('body *')].filter((one) =>
                    !(one instanceof SVGElement) && one.tagName !== 'SELECT' &&
                    one.clientWidth > 0 &&
                    (one.scrollWidth > one.clientWidth + 1
                        || /auto|scroll/.test(getComputedStyle(one).overflow))
                ).map((one) => one.tagName + '#' + one.id)"""
            assert tab.evaluate(wide) == [], width
        policies = len(many.policies)
        assert tab.evaluate("document.querySelectorAll('#spread figure').length") == policies - 1
        assert tab.evaluate("document.querySelectorAll('#spread rect').length") > policies
        assert tab.evaluate("document.querySelectorAll('#costs tr').length") == policies
        assert tab.evaluate("document.querySelectorAll('#runs tbody tr').length") == 25
        tab.evaluate("document.getElementById('more').click()")
        assert tab.evaluate("document.querySelectorAll('#runs tbody tr').length") == 50
        # Each way to be bad puts its worst on top.
        price = """
            (() => { const order = document.getElementById('order');
            order.value = 'price'; order.dispatchEvent(new Event('change'));
            return [...document.querySelectorAll('#runs tbody tr')].map((row) =>
                parseFloat(row.lastElementChild.textContent)); })()"""
        saved = tab.evaluate(price)
        assert saved == sorted(saved)
        # A row leads to its run, and the address alone leads there too.
        tab.evaluate("document.querySelector('#runs a').click()")
        time.sleep(0.2)  # the browser tells the page of its new address a moment later
        name = tab.evaluate("document.querySelector('#runs a').textContent")
        assert tab.evaluate("document.querySelector('#one h3').textContent") == name
        assert tab.evaluate("document.querySelectorAll('#one tbody tr').length") == policies
        assert abs(tab.evaluate("byId('h-one').getBoundingClientRect().top")) < 200
        pictured = tab.evaluate("data.runs.findIndex((run) => run.name === data.pictures[0].name)")
        tab.evaluate(f"location.hash = '#run-{pictured}'")
        time.sleep(0.2)
        assert tab.evaluate("document.querySelector('#one a').getAttribute('href')") == "#h-calls"
        assert tab.errors == []
