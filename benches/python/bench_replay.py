"""The README's table of policies over recorded runs, and the speed of a replay.

    python benches/python/bench_replay.py FOLDER [--budget 25% 50%] [--policy NAME ...]
    python benches/python/bench_replay.py FOLDER --readme
    python benches/python/bench_replay.py FOLDER --speed

FOLDER holds transcripts, a folder for each kind of agent. Runs fall into two halves by a hash of
their name: settings are tuned on one, and the other says whether that holds. After each table it
says whether a baseline that knows no more than ``adaptive`` and stays within the budget shows more
of the long references in whole lines and costs less. pytest checks on a made-up run that the native
replay and the plain Python version agree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import satchel
from satchel._core import Counter, replay_run
from satchel.replay import BASELINES, DEFAULT_POLICIES, MEASURES, ReplayReport, run
from satchel.replay.report import cell
from satchel.testing import generate_history, require_release

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "python"))
import replay_oracle as oracle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.replay import RunResult

SETS: Final = {
    "pi": "pi_session/**/*",
    "Claude Code": "claude_code/**/*",
    "Codex": "codex_rollout/**/*",
    "OpenHands": "openhands_events/**/*",
    "SWE-agent": "swe_agent_traj/**/*",
    "tau-bench": "openai_chat/tau-bench*",
}
MIN_CALLS: Final = 6
SHARE: Final = 0.25
LONGEST_PLAIN: Final = 200
PRICES: Final = (0.3, 3.75, 15.0)
UNIT: Final = Counter("chars4", exact=True, margin=0.0)
OURS: Final = "adaptive"
SHOWN: Final = ("lrr", "lrr_line", "tc", "ns", "hit", "price", "over")
COLUMNS: Final = ("lrr", "lrr_line", "tc", "ns", "hit", "price", "fr", "loss", "over")


def half(found: RunResult) -> str:
    """Which half a run is in: the same on every machine."""
    name = f"{Path(found.source).name}#{found.index}"
    return "checking" if hashlib.sha256(name.encode()).digest()[0] % 2 else "tuning"


def table(reports: dict[str, ReplayReport]) -> str:
    """A row for each set of runs and policy, with intervals by resampling the runs."""
    measures = [one for one in MEASURES if one.key in COLUMNS]
    lines = [
        "| runs | policy | " + " | ".join(one.title for one in measures) + " |",
        "|---|---|" + "--:|" * len(measures),
    ]
    for name, report in reports.items():
        calls = sum(one.calls for one in report.runs)
        label = f"{name}: {len(report.runs)} runs, {calls} calls"
        for policy in report.policies:
            row = report.totals[policy]
            cells = " | ".join(cell(row[one.key], one) for one in measures)
            lines.append(f"| {label} | {policy} | {cells} |")
            label = ""
    return "\n".join(lines)


def checks(reports: dict[str, ReplayReport]) -> str:
    """What must hold for satchel's own policies, run by run."""
    lines = [
        "| runs | policy | compactions / bound | runs above | stable / steady calls | stubs |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for name, report in reports.items():
        for policy in (one for one in report.policies if one not in BASELINES):
            found = [one.outcomes[policy] for one in report.runs]
            made = sum(one.compactions or 0 for one in found)
            bound = sum(one.compactions_bound for one in found)
            above = sum((one.compactions or 0) > one.compactions_bound for one in found)
            stable = sum(one.stable_calls for one in found)
            steady = sum(one.steady_calls for one in found)
            stubs = max((one.stub_share for one in found), default=0.0)
            lines.append(
                f"| {name} | {policy} | {made} / {bound} | {above} | {stable} / {steady} |"
                f" {stubs:.3f} |"
            )
    return "\n".join(lines)


def is_rival(policy: str) -> bool:
    """Whether a policy is a baseline that knows only the past."""
    return policy in BASELINES and policy != "full" and not policy.startswith("oracle")


def better(reports: dict[str, ReplayReport], policy: str = OURS) -> list[str]:
    """Rivals within budget that have both a higher LRR-line and a lower price, by runs."""
    found: list[str] = []
    for name, report in reports.items():
        own = report.totals[policy]
        for rival in filter(is_rival, report.policies):
            row = report.totals[rival]
            is_within = row["over"].value == 0
            reads_more = row["lrr_line"].value > own["lrr_line"].value
            if is_within and reads_more and row["price"].value < own["price"].value:
                found.append(f"{name}: {rival}")
    return found


def verdict(reports: dict[str, ReplayReport]) -> str:
    """One sentence about the baselines."""
    found = better(reports)
    rivals = sorted(
        {rival for one in reports.values() for rival in one.policies if is_rival(rival)}
    )
    if found:
        return f"Both more LRR-line and a lower price than {OURS}: {'; '.join(found)}."
    return (
        f"No causal baseline within budget ({', '.join(rivals)}) has both a higher LRR-line and a "
        f"lower price than {OURS}. Looked at: {', '.join(reports)}."
    )


def readme(by_budget: dict[str, dict[str, ReplayReport]]) -> str:
    """The README's tables: every policy over all runs, and ours by kind of run."""
    measures = [one for one in MEASURES if one.key in SHOWN]
    lines: list[str] = []
    for budget, reports in by_budget.items():
        report = reports["all"]
        calls = sum(one.calls for one in report.runs)
        titles = " | ".join(one.title for one in measures)
        lines += [
            f"Windows of {budget}, {len(report.runs)} runs, {calls:,} calls:",
            "",
            f"| policy | {titles} |",
            "|---|" + "--:|" * len(measures),
        ]
        for policy in report.policies:
            row = report.totals[policy]
            cells = " | ".join(cell(row[one.key], one) for one in measures)
            lines.append(f"| `{policy}` | {cells} |")
        lines += ["", verdict(reports), ""]
    lines += [
        f"`{OURS}` by kind of run, LRR-line / $ with their intervals:",
        "",
        "| runs | " + " | ".join(by_budget) + " |",
        "|---|" + "---|" * len(by_budget),
    ]
    kinds = [one for one in MEASURES if one.key in {"lrr_line", "price"}]
    for name, some in next(iter(by_budget.values())).items():
        pairs = [
            " / ".join(cell(reports[name].totals[OURS][one.key], one) for one in kinds)
            for reports in by_budget.values()
        ]
        lines.append(f"| {name} ({len(some.runs)}) | {' | '.join(pairs)} |")
    return "\n".join(lines)


def compare(folder: Path, budget: str, policies: Sequence[str]) -> dict[str, ReplayReport]:
    """Every set, the two halves, and all of them together."""
    reports: dict[str, ReplayReport] = {}
    for name, pattern in SETS.items():
        files = sorted(path for path in folder.glob(pattern) if path.is_file())
        if not files:
            continue
        report = run(files, policies=policies, budget=budget, min_calls=MIN_CALLS, pictures=0)
        if report.runs:
            reports[name] = report
    if not reports:
        message = f"no recorded runs in {folder}"
        raise SystemExit(message)
    runs = tuple(found for report in reports.values() for found in report.runs)
    some = next(iter(reports.values()))
    for which in ("tuning", "checking"):
        reports[f"{which} half"] = some.of(tuple(found for found in runs if half(found) == which))
    reports["all"] = some.of(runs)
    return reports


# --- speed ----------------------------------------------------------------------------------------


class Speed(NamedTuple):
    """Milliseconds a call on one run: reading its messages, every window and every figure."""

    calls: int
    native: float
    plain: float


def native(messages: list[Any], dialect: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        replay_run(
            json.dumps(messages),
            dialect,
            system=None,
            tools=None,
            contenders=["keep-last"],
            counter=UNIT,
            share=SHARE,
            tokens=None,
            prices=PRICES,
            seed=0,
            trace=False,
            worst=0,
        )
    )
    return found


def plain(messages: list[Any], dialect: str) -> tuple[int, oracle.Sums]:
    counts = UNIT.count_messages(messages, dialect=dialect)
    base = UNIT.count_messages([], dialect=dialect).total
    known = oracle.facts(messages, "", [int(one) for one in counts.per_message], base)
    budget = known.budget(SHARE)
    # Counts are looked up, not made again: the windows hold the run's own messages.
    tokens = {id(one): count for one, count in zip(messages, known.tokens, strict=True)}
    sums = oracle.measure(
        known,
        oracle.keep_last(known, budget),
        lambda window: [tokens[id(one)] for one in window],
        budget=budget,
        prices=PRICES,
    )
    return len(known.calls), sums


def same(messages: list[Any], dialect: str) -> None:
    [found] = native(messages, dialect)["outcomes"]
    _, expected = plain(messages, dialect)
    for name in ("references", "long_references", "long_read_in_line", "input_tokens"):
        assert found[name] == getattr(expected, name), name
    assert oracle.close(found["cost"], expected.cost)


def speed(messages: list[Any], dialect: str, rounds: int) -> Speed:
    def timed(work: Callable[[list[Any], str], object]) -> float:
        begin = time.process_time()
        work(messages, dialect)
        return time.process_time() - begin

    calls = int(native(messages, dialect)["calls"])
    fast = statistics.median(timed(native) for _ in range(rounds))
    # Seconds to minutes: once says enough.
    return Speed(calls, 1e3 * fast / calls, 1e3 * timed(plain) / calls)


def print_speed(folder: Path) -> None:
    print(f"{'run':<36}{'calls':>7}{'native ms':>12}{'plain ms':>12}{'times':>8}")
    runs: list[tuple[str, list[Any], str]] = [
        ("generated, 200 messages", list(generate_history(200, seed=3)), "openai")
    ]
    for name, pattern in SETS.items():
        files = sorted(path for path in folder.glob(pattern) if path.is_file())
        found = [one for one in satchel.read_transcripts(files, on_error="skip") if not one.system]
        known = [one for one in found if one.dialect in {"openai", "anthropic"}]
        # The plain version takes hours for the longest runs.
        known = [one for one in known if len(one.messages) <= LONGEST_PLAIN]
        if known:
            longest = max(known, key=lambda one: len(one.messages))
            runs.append((name, longest.messages, longest.dialect))
    for name, messages, dialect in runs:
        took = speed(messages, dialect, rounds=9)
        print(
            f"{name:<36}{took.calls:>7,}{took.native:>12.4f}{took.plain:>12.3f}"
            f"{took.plain / took.native:>8.0f}"
        )


def test_native_and_plain_replay_agree() -> None:
    same(list(generate_history(120, seed=5)), "openai")


def test_a_better_baseline_would_be_named(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text(json.dumps(generate_history(120, seed=5)), encoding="utf-8")
    found = {"made up": run([path], policies=[OURS, "keep-last"], pictures=0)}
    report = found["made up"]
    rows = {name: dict(report.totals[name]) for name in (OURS, "keep-last")}
    assert ("keep-last" in verdict(found)) or not is_rival("keep-last")
    reads_more = rows["keep-last"]["lrr_line"].value > rows[OURS]["lrr_line"].value
    is_cheaper = rows["keep-last"]["price"].value < rows[OURS]["price"].value
    assert bool(better(found)) == (reads_more and is_cheaper)
    # Seen from the other side one of the two may win.
    assert better(found, "random") == [
        f"made up: {name}"
        for name in filter(is_rival, report.policies)
        if report.totals[name]["over"].value == 0
        and report.totals[name]["lrr_line"].value > report.totals["random"]["lrr_line"].value
        and report.totals[name]["price"].value < report.totals["random"]["price"].value
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", nargs="+", default=["25%", "50%"])
    parser.add_argument("--policy", nargs="+", default=list(DEFAULT_POLICIES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--readme", action="store_true", help="only the tables of the README")
    options = parser.parse_args()
    require_release()
    if options.speed:
        print_speed(options.folder)
        return
    if options.readme:
        by_budget = {one: compare(options.folder, one, options.policy) for one in options.budget}
        print(readme(by_budget))
        return
    written: dict[str, Any] = {}
    for budget in options.budget:
        reports = compare(options.folder, budget, options.policy)
        print(f"\n**Windows of {budget}**\n\n{table(reports)}\n\n{checks(reports)}")
        if OURS in options.policy:
            print(f"\n{verdict(reports)}")
        written[budget] = {
            name: json.loads(report.to_json())["totals"] for name, report in reports.items()
        }
    if options.json is not None:
        options.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
