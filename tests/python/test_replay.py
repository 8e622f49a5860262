"""Replay: its figures against a plain and slow version, on made-up and on recorded runs."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import replay_oracle as oracle
import satchel
from satchel._core import Counter
from satchel.replay import BASELINES, MEASURES, Outcome, ReplayReport, RunResult, run

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
    return oracle.facts(
        transcript.messages, text, counted(transcript.messages, dialect), base
    )


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
    for found in report.runs[:12]:
        if found.repaired or found.messages > 400:
            continue
        check_run(transcripts[found.source, found.index], found, 0.25)
        checked += 1
    assert checked
