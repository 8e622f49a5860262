"""Replay: its figures against a plain and slow version, on made-up and on recorded runs."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import replay_oracle as oracle
import satchel
from satchel._core import Counter
from satchel.replay import BASELINES, MEASURES, Outcome, RunResult, Skipped, run
from satchel.testing import generate_chat, generate_history

Message = dict[str, Any]

PRICES = (0.3, 3.75, 15.0)  # of the default model, dollars a million tokens
UNIT = Counter("chars4", exact=True, margin=0.0)
SHARES = (0.25, 0.5)


def written(folder: Path, *runs: list[Message], **fields: Any) -> Path:
    path = folder / "runs.jsonl"
    rows = [json.dumps({"messages": messages, **fields}) for messages in runs]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


def counted(messages: list[Message], dialect: str) -> list[int]:
    return [int(tokens) for tokens in UNIT.count_messages(messages, dialect=dialect).per_message]


def known(transcript: satchel.Transcript) -> oracle.Facts:
    system, tools, dialect = transcript.system, transcript.tools, transcript.dialect
    empty = UNIT.count_messages([], dialect=dialect).total
    base = UNIT.count_messages([], dialect=dialect, tools=tools).total
    if system is not None:
        base += counted([{"role": "user", "content": system}], dialect)[0]
    assert base >= empty
    text = "\n".join(oracle.leaves(system))
    return oracle.facts(transcript.messages, text, counted(transcript.messages, dialect), base)


def same(found: Outcome, expected: oracle.Sums) -> None:
    figures = asdict(found)
    for name, value in asdict(expected).items():
        if name not in {"steady_calls", "stable_calls"}:
            assert figures[name] == pytest.approx(value, rel=1e-9), name


def policy_windows(
    transcript: satchel.Transcript, facts: oracle.Facts, budget: int
) -> list[list[Message]]:
    """The windows that production would send: append, ask, append."""
    assembler = satchel.Assembler("gpt-4o", budget=budget, counter=UNIT, dialect=transcript.dialect)
    working_set = assembler.working_set()
    windows: list[list[Message]] = []
    taken = 0
    for call in facts.calls:
        working_set.append(transcript.messages[taken : call.at])
        taken = call.at
        window = working_set.window(
            system=transcript.system, tools=transcript.tools, open_calls="synthesize"
        )
        windows.append(cast("list[Message]", window.messages))
    return windows


def check_run(transcript: satchel.Transcript, found: RunResult, share: float) -> None:
    adaptive = found.outcomes["adaptive"]
    # A stub is a line. Against a history of a few lines it is no small share of anything.
    if found.tokens >= 1_000:
        assert adaptive.stub_share <= 0.2
    assert 0 <= adaptive.worth <= adaptive.worth_bound
    facts = known(transcript)
    budget = facts.budget(share)
    assert (found.calls, found.budget) == (len(facts.calls), budget)
    assert found.tokens == facts.base_tokens + sum(facts.tokens)

    def measured(windows: list[list[Message]]) -> oracle.Sums:
        return oracle.measure(
            facts,
            windows,
            lambda window: counted(window, transcript.dialect),
            budget=budget,
            prices=PRICES,
        )

    same(found.outcomes["full"], measured(oracle.everything(facts)))
    same(found.outcomes["keep-last"], measured(oracle.keep_last(facts, budget)))
    try:
        windows = policy_windows(transcript, facts, budget)
    except satchel.BudgetError:
        assert found.outcomes["adaptive"].over_budget > 0
    else:
        same(found.outcomes["adaptive"], measured(windows))


# --- made-up runs -----------------------------------------------------------------------------

NAMES = [f"src/part_{number}.py" for number in range(6)] + [f"order-{n}" for n in range(100, 106)]
WORDS = st.sampled_from(["the", "value is", "of", "see", "done:", "then", "12", "a-b"])
LINE = st.lists(st.sampled_from(NAMES) | WORDS, min_size=1, max_size=8).map(" ".join)
TEXT = st.lists(LINE, min_size=1, max_size=12).map("\n".join)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """A task, then calls with results and words between them, which name the same things again."""
    messages: list[Message] = [{"role": "user", "content": draw(TEXT)}]
    if draw(st.booleans()):
        messages.insert(0, {"role": "system", "content": draw(TEXT)})
    for number in range(draw(st.integers(2, 24))):
        kind = draw(st.integers(0, 9))
        if kind == 0:
            messages.append({"role": "user", "content": draw(TEXT)})
        if kind < 3:
            messages.append({"role": "assistant", "content": draw(TEXT)})
            continue
        ids = [f"call_{number}_{part}" for part in range(draw(st.integers(1, 2)))]
        given_arguments = [draw(st.fixed_dictionaries({"path": LINE, "text": TEXT})) for _ in ids]
        calls = [
            {
                "id": one,
                "type": "function",
                "function": {"name": "edit", "arguments": json.dumps(arguments)},
            }
            for one, arguments in zip(ids, given_arguments, strict=True)
        ]
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": one, "content": draw(TEXT)} for one in ids]
    return messages


@given(messages=histories(), share=st.sampled_from(SHARES))
def test_figures_equal_the_plain_version(
    messages: list[Message], share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("runs"), messages)
    report = run(path, policies=["adaptive", "keep-last"], budget=share, min_calls=1, threads=1)
    (transcript,) = satchel.read_transcripts(path)
    for found in report.runs:
        check_run(transcript, found, share)


NOTE: Message = {
    "role": "user",
    "content": "<satchel-index>\nSteps paged out: "
    'page_in("p_000000000000000000"). Not the user\'s words.\n</satchel-index>',
}
"""What satchel says in its own words; the pointer is another one, and as long."""


def check_token_window(transcript: satchel.Transcript, found: RunResult, share: float) -> bool:
    """Whether there was something to compare."""
    policy = satchel.Policy.preset("token-window")
    band = oracle.Band(policy.target, policy.small_target, policy.small_tokens)
    facts = known(transcript)
    budget = facts.budget(share)
    note_tokens = counted([NOTE], "openai")[0]
    try:
        windows = oracle.token_window(facts, budget, band, NOTE, note_tokens)
    except oracle.TooMuchError:
        return False
    expected = oracle.measure(
        facts,
        windows,
        lambda window: counted(window, "openai"),
        budget=budget,
        prices=PRICES,
    )
    same(found.outcomes["token-window"], expected)
    return True


@given(messages=histories(), share=st.sampled_from(SHARES))
def test_windows_of_a_preset_equal_the_plain_version(
    messages: list[Message], share: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(tmp_path_factory.mktemp("runs"), messages)
    report = run(path, policies=["token-window"], budget=share, min_calls=1, threads=1)
    (transcript,) = satchel.read_transcripts(path)
    for found in report.runs:
        check_token_window(transcript, found, share)


def test_windows_of_a_preset_equal_the_plain_version_on_long_runs(tmp_path: Path) -> None:
    compared = 0
    for seed in range(6):
        for generate in (generate_history, generate_chat):
            path = written(tmp_path, generate(160, seed=seed))
            (transcript,) = satchel.read_transcripts(path)
            for share in (0.25, 0.5):
                (found,) = run(path, policies=["token-window"], budget=share, threads=1).runs
                compared += check_token_window(transcript, found, share)
    # Of 24; the others have a newest step that fills the budget.
    assert compared >= 18


# --- recorded runs ----------------------------------------------------------------------------

RECORDED = (
    "swe_agent_traj",
    "claude_code",
    "openhands_events",
    "openai_chat/tau-bench-gpt4o-airline-tasks00-24.json",
)


def recorded(name: str) -> Path:
    root = os.environ.get("SATCHEL_SHARED")
    roots = [Path(root)] if root else [up / "shared" for up in Path(__file__).resolve().parents]
    for found in roots:
        if (path := found / "data" / "dev" / name).exists():
            return path
    pytest.skip("no shared data: recorded runs are not part of the repository")


@pytest.mark.parametrize("name", RECORDED)
def test_figures_equal_the_plain_version_on_recorded_runs(name: str) -> None:
    path = recorded(name)
    report = run(path, policies=["adaptive", "keep-last"], budget=0.25)
    transcripts = {
        (one.source, one.index): one for one in satchel.read_transcripts(path, on_error="skip")
    }
    checked = 0
    for found in report.runs[:4]:
        if found.repaired or found.messages > 120:
            continue
        check_run(transcripts[found.source, found.index], found, 0.25)
        checked += 1
    assert checked


# --- the report -------------------------------------------------------------------------------


def small_run(number: int) -> list[Message]:
    """A key, a lot of other things, and the use of the key."""

    def act(at: int, arguments: Message, output: str) -> list[Message]:
        function = {"name": "run", "arguments": json.dumps(arguments)}
        call = {"id": f"c{at}", "type": "function", "function": function}
        return [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{at}", "content": output},
        ]

    messages: list[Message] = [{"role": "user", "content": f"Begin run {number}."}]
    messages += act(0, {"list": "keys"}, f"the key is vault-{417 + number}\nmore")
    for at in range(1, 9 + number):
        messages += act(at, {"look": at}, f"nothing in file_{at}.txt\n" * 30)
    return messages + act(99, {"use": f"vault-{417 + number}"}, "done")


def test_report_sums_runs_and_names_what_it_skipped(tmp_path: Path) -> None:
    told: list[int] = []
    path = written(tmp_path, small_run(0), [{"role": "user", "content": "Hi"}], small_run(3))
    report = run(path, progress=lambda progress: told.append(progress.runs), pictures=1)
    assert told == [1, 2, 3]
    assert report.policies == ("adaptive", *BASELINES)
    assert [found.index for found in report.runs] == [0, 2]
    assert report.skipped == (Skipped(str(path), 1, "0 calls, at least 2 are needed"),)
    # Only the longest is kept in detail.
    assert [bool(found.sizes) for found in report.runs] == [False, True]
    row = report.totals["keep-last"]
    assert (row["lrr"].value, row["lrr"].part, row["lrr"].whole) == (0, 0, 2)
    assert row["norm"].value == 0
    assert report.totals["oracle-lines"]["norm"].value == 1
    full = report.totals["full"]
    assert full["price"].value == full["lrr_line"].value == full["ns"].value == 1
    assert full["price"].low == full["price"].high == 1
    cost = sum(found.outcomes["keep-last"].cost for found in report.runs)
    everything = sum(found.outcomes["full"].cost for found in report.runs)
    assert row["price"].value == pytest.approx(cost / everything)
    assert row["price"].low <= row["price"].value <= row["price"].high
    only = report.of(report.runs[:1])
    assert only.totals["full"]["lrr"].whole == 1


def test_json_and_markdown_hold_every_measure(tmp_path: Path) -> None:
    report = run(written(tmp_path, small_run(0)), policies="adaptive", pictures=2)
    found = json.loads(report.to_json())
    keys = [measure.key for measure in MEASURES]
    assert [one["key"] for one in found["measures"]] == keys
    assert found["policies"] == ["adaptive", "full", "random", "oracle-lines"]
    assert all(list(row) == keys for row in found["totals"].values())
    outcome = found["runs"][0]["outcomes"]["adaptive"]
    assert outcome["calls"] == report.runs[0].calls
    assert "shots" not in outcome
    lines = report.to_markdown().splitlines()
    assert len(lines) == 2 + len(report.policies)
    assert {line.count("|") for line in lines} == {len(MEASURES) + 2}


def test_same_figures_whatever_the_threads(tmp_path: Path) -> None:
    path = written(tmp_path, *(small_run(number) for number in range(6)))
    alone, together = (run(path, threads=threads).to_json() for threads in (1, 4))
    assert alone == together
    assert run(path, seed=1).to_json() == run(path, seed=1).to_json()


def test_budgets_are_shares_or_tokens(tmp_path: Path) -> None:
    path = written(tmp_path, small_run(0))

    def budget(given_budget: float | str) -> int:
        return run(path, policies="adaptive", budget=given_budget).runs[0].budget

    assert budget("25%") == budget(0.25) == budget(" 25 % ")
    assert budget("900") == budget(900) == 900
    everything = run(path, policies="adaptive", budget=1.0).runs[0]
    assert everything.budget == everything.tokens
    for wrong in (0, -3, 0.0, 1.5, "1.5", "many", "0%", "120%"):
        with pytest.raises(satchel.InputError, match="budget"):
            budget(wrong)


def test_policies_are_named_once_and_known(tmp_path: Path) -> None:
    path = written(tmp_path, small_run(0))
    mine = satchel.Policy(name="mine", target=0.5)
    report = run(path, policies=[mine, "token-window"])
    assert report.policies[:2] == ("mine", "token-window")
    with pytest.raises(satchel.InputError, match="no policy 'nothing'"):
        run(path, policies="nothing")
    with pytest.raises(satchel.InputError, match="same name"):
        run(path, policies=[mine, mine])
    with pytest.raises(satchel.InputError, match="no-such-model"):
        run(path, model="no-such-model")


def test_no_run_is_a_report_too(tmp_path: Path) -> None:
    report = run(written(tmp_path, [{"role": "user", "content": "Hi"}]))
    assert (report.runs, len(report.skipped)) == ((), 1)
    assert all(math.isnan(row["lrr"].value) for row in report.totals.values())
    assert json.loads(report.to_json())["totals"]["full"]["price"]["value"] is None
    assert report.to_html().startswith("<!doctype html>")


def test_damaged_runs_are_repaired_first(tmp_path: Path) -> None:
    messages = small_run(0)
    messages.insert(3, {"role": "tool", "tool_call_id": "nobody", "content": "an orphan"})
    report = run(written(tmp_path, messages), policies="adaptive")
    assert [found.repaired for found in report.runs] == [True]


def test_any_counter_counts(tmp_path: Path) -> None:
    path = written(tmp_path, small_run(0))
    exact = run(path, policies="adaptive", counter="o200k_base").runs[0]
    assert exact.tokens != run(path, policies="adaptive").runs[0].tokens
    assert exact.outcomes["adaptive"].largest_window <= exact.budget
    own = Counter(lambda text: len(text.split()))
    words = run(path, policies="adaptive", counter=own, threads=2).runs[0]
    assert words.tokens < exact.tokens


def test_unreadable_files_are_skipped_with_a_warning(tmp_path: Path) -> None:
    written(tmp_path, small_run(0))
    (tmp_path / "broken.json").write_text('{"messages": [', encoding="utf-8")
    with pytest.warns(satchel.TranscriptWarning, match="broken"):
        report = run(tmp_path, policies="adaptive")
    assert len(report.runs) == 1
    with pytest.raises(satchel.InputError):
        run(tmp_path, policies="adaptive", on_error="raise")


# --- the command ------------------------------------------------------------------------------

COMMAND = Path(sys.executable).with_name("satchel")


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own command
        [COMMAND, "replay", *arguments], capture_output=True, text=True, check=False
    )


def test_command_prints_a_table_and_writes_the_page(tmp_path: Path) -> None:
    path, page = written(tmp_path, small_run(0), small_run(1)), tmp_path / "page.html"
    done = command(path, "--policy", "adaptive", "--policy", "keep-last", "--report", page)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("2 runs, ")
    assert any(line.startswith("keep-last") for line in lines)
    assert lines[-1] == f"report: {page}"
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_command_prints_json_and_takes_a_policy_file(tmp_path: Path) -> None:
    path, policy = written(tmp_path, small_run(0)), tmp_path / "mine.toml"
    policy.write_text(satchel.Policy(name="mine").to_toml(), encoding="utf-8")
    done = command(path, "--policy", policy, "--budget", "50%", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert (found["policies"][0], found["budget"]) == ("mine", "50%")


@pytest.mark.parametrize(
    "options",
    [["--budget", "none"], ["--policy", "nothing"], ["--min-calls", "500"], ["--report", "/"]],
)
def test_command_says_what_is_wrong(options: list[str], tmp_path: Path) -> None:
    done = command(written(tmp_path, small_run(0)), *options)
    assert done.returncode == 2
    assert done.stderr.startswith("satchel: ")
    assert "Traceback" not in done.stderr
