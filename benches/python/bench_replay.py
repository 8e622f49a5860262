"""The README's table of policies over recorded runs, and the speed of a replay.

    python benches/python/bench_replay.py FOLDER [--budget 25% 50%] [--policy NAME ...]
    python benches/python/bench_replay.py FOLDER --speed

FOLDER holds transcripts, a folder for each kind of agent. Runs fall into two halves by a hash of
their name: settings are tuned on one, and the other says whether that holds. pytest checks on a
made-up run that the native replay and the plain Python version agree.
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


def compare(folder: Path, budget: str, policies: Sequence[str]) -> dict[str, ReplayReport]:
    """Every set, the two halves, and all of them together."""
    reports: dict[str, ReplayReport] = {}
    for name, pattern in SETS.items():
        files = sorted(path for path in folder.glob(pattern) if path.is_file())
        if files:
            reports[name] = run(
                files, policies=policies, budget=budget, min_calls=MIN_CALLS, pictures=0
            )
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", nargs="+", default=["25%", "50%"])
    parser.add_argument("--policy", nargs="+", default=list(DEFAULT_POLICIES))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--speed", action="store_true")
    options = parser.parse_args()
    require_release()
    if options.speed:
        print_speed(options.folder)
        return
    written: dict[str, Any] = {}
    for budget in options.budget:
        reports = compare(options.folder, budget, options.policy)
        print(f"\n**Windows of {budget}**\n\n{table(reports)}\n\n{checks(reports)}")
        written[budget] = {
            name: json.loads(report.to_json())["totals"] for name, report in reports.items()
        }
    if options.json is not None:
        options.json.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
