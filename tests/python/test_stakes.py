"""Windows for steps with high stakes: originals come back, or the window says which did not fit."""

from __future__ import annotations

import json
import pickle
from random import Random
from typing import Any

import pytest

import satchel
from page_calls import DIALECTS, MODELS, call, pointer_of, reply
from satchel.testing import generate_history

Message = dict[str, Any]
REPORT = "Audit of the night run.\n" + "".join(
    f"order QX-{number} went to shelf {number * 7 % 50}, checked twice by the night shift\n"
    for number in range(1_000, 1_030)
)


def packer_of(dialect: str, budget: int = 3_000) -> satchel.Assembler:
    # What stays does not depend on what a planner finds worth keeping.
    policy = satchel.Policy.preset("sliding-window").model_copy(update={"max_messages": 6})
    return satchel.Assembler(
        MODELS[dialect], dialect=dialect, budget=budget, policy=policy, counter="o200k_base"
    )


def packed(dialect: str, *, question: str, budget: int = 3_000) -> satchel.WorkingSet:
    """A run with a report that is out of the window by now, room for it, and a newest question."""
    history: list[Message] = [
        {"role": "user", "content": "Keep an eye on the warehouse."},
        *reply("openai", call("openai", {"of": "night"}, name="audit", id="r1")),
        {"role": "tool", "tool_call_id": "r1", "content": REPORT},
    ]
    working_set = packer_of(dialect, budget).working_set(
        satchel.convert(history, "openai", dialect).messages
    )
    for number in range(8):
        answer = {"role": "assistant", "content": f"Round {number}. " + "All quiet. " * 45}
        went_on = {"role": "user", "content": "Carry on."}
        working_set.append(satchel.convert([answer, went_on], "openai", dialect).messages[-2:])
    asked = {"role": "user", "content": question}
    working_set.append(satchel.convert([asked], "openai", dialect).messages)
    return working_set


def shown(window: satchel.Window) -> str:
    """Every text in a window, as it is."""
    left: list[Any] = [window.messages]
    found: list[str] = []
    while left:
        piece = left.pop()
        if isinstance(piece, str):
            found.append(piece)
        elif isinstance(piece, dict):
            left += piece.values()
        elif isinstance(piece, list):
            left += piece
    return "\n".join(found)


def valid(window: satchel.Window) -> None:
    """Asserts that a provider takes the window, within the budget."""
    assert window.tokens_upper <= window.budget
    found = satchel.lint(window.messages, window.dialect)
    assert [str(one) for one in found if one.severity == "error"] == []


def page_of_report(working_set: satchel.WorkingSet) -> str:
    return pointer_of(working_set, "order QX-1017 went")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_original_behind_a_claim_comes_back(dialect: str) -> None:
    working_set = packed(dialect, question="Was QX-1017 checked? We ship it now.")
    normal = working_set.window()
    pointer = page_of_report(working_set)
    assert REPORT not in shown(normal)
    assert normal.report.not_recalled == ()
    high = working_set.window(stakes="high")
    assert REPORT in shown(high).replace("\\n", "\n")
    assert f"page {pointer}" in shown(high)
    assert high.report.not_recalled == ()
    assert high.report.compactions == normal.report.compactions
    assert len(high.events) == len(normal.events) + 1
    valid(high)
    # The same again, from the log alone.
    assert working_set.window(stakes="high").messages == high.messages
    assert working_set.events == high.events
    again = pickle.loads(pickle.dumps(working_set))
    assert again.window().messages == high.messages
    rebuilt = packer_of(dialect).assemble(working_set.messages, events=high.events, stakes="high")
    assert (rebuilt.messages, rebuilt.events) == (high.messages, high.events)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_does_not_fit_is_named_and_can_be_read(dialect: str) -> None:
    working_set = packed(dialect, question="Was QX-1017 checked?", budget=800)
    before = working_set.events
    pointer = page_of_report(working_set)
    high = working_set.window(stakes="high")
    assert working_set.events == before
    assert high.report.not_recalled == (pointer,)
    assert "QX-1017" in working_set.page_in(pointer, pattern="QX-1017")
    valid(high)


def test_what_nobody_names_stays_out() -> None:
    working_set = packed("openai", question="Thank you, and good night.")
    before = working_set.window()
    high = working_set.window(stakes="high")
    assert (high.messages, high.events) == (before.messages, before.events)
    assert high.report.not_recalled == ()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_inside_a_tool_loop_it_stands_in_the_newest_result(dialect: str) -> None:
    working_set = packed(dialect, question="Go through the shelves.")
    loop = [
        *reply("openai", call("openai", {"shelf": 19}, name="look", id="r2")),
        {"role": "tool", "tool_call_id": "r2", "content": "Empty, but QX-1017 should be here."},
    ]
    working_set.append(satchel.convert(loop, "openai", dialect).messages)
    assert REPORT not in shown(working_set.window())
    high = working_set.window(stakes="high")
    assert high.report.not_recalled == ()
    assert "shelf 19, checked" in json.dumps(high.messages[-1])
    valid(high)


def test_while_calls_are_open_nothing_can_come_back() -> None:
    working_set = packed("openai", question="Was QX-1017 checked?")
    pointer = page_of_report(working_set)
    working_set.append(reply("openai", call("openai", {}, name="look", id="r2")))
    events = working_set.events
    high = working_set.window(stakes="high", open_calls="synthesize")
    assert high.report.not_recalled == (pointer,)
    assert working_set.events == events
    valid(high)


def test_after_a_change_of_the_dialect_it_can_only_be_read() -> None:
    working_set = packed("openai", question="Was QX-1017 checked?")
    pointer = page_of_report(working_set)
    working_set.apply({"kind": "settings", "dialect": "anthropic"})
    high = working_set.window(stakes="high")
    assert high.report.not_recalled == (pointer,)
    assert working_set.page_in(pointer) == REPORT
    valid(high)


def test_a_result_of_the_page_tool_brings_back_its_source() -> None:
    working_set = packed("openai", question="Look at the audit.")
    pointer = page_of_report(working_set)
    asked = call("openai", {"pointer": pointer}, id="r9")
    working_set.append(reply("openai", asked))
    working_set.append(working_set.handle_page_call(asked, max_tokens=800))
    for number in range(8):
        text = f"Round {number}. " + "All quiet. " * 30
        working_set.append({"role": "assistant", "content": text})
        working_set.append({"role": "user", "content": "Carry on."})
    working_set.append({"role": "user", "content": "Was QX-1017 checked?"})
    high = working_set.window(stakes="high")
    events = [event["pointer"] for event in high.events if event["kind"] == "page_in"]
    assert set(events) | set(high.report.not_recalled) <= {pointer}
    assert shown(high).count("order QX-1017 went") <= 1
    valid(high)


@pytest.mark.parametrize("stakes", ["High", "", None, 1])
def test_other_stakes_are_a_typed_error(stakes: Any) -> None:
    working_set = packed("openai", question="Hello?")
    with pytest.raises(satchel.InputError) as error:
        working_set.window(stakes=stakes)
    assert error.value.code == "invalid_value"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_windows_of_long_runs_stay_valid_and_say_what_is_missing(dialect: Any) -> None:
    rng = Random(dialect)  # noqa: S311 - not for secrets
    recalled = named = 0
    for seed in range(6):
        history = generate_history(160, seed=seed, dialect=dialect, result_chars=700)
        packer = satchel.Assembler(
            MODELS[dialect], dialect=dialect, budget=rng.choice([3_000, 6_000, 12_000])
        )
        working_set = packer.working_set()
        for start in range(0, len(history), 16):
            working_set.append(history[start : start + 16])
            try:
                normal = working_set.window()
            except (satchel.BudgetError, satchel.InputError):
                continue  # the calls of the newest message have no results yet
            high = working_set.window(stakes="high")
            valid(high)
            fresh = [
                event["pointer"]
                for event in high.events[len(normal.events) :]
                if event["kind"] == "page_in"
            ]
            assert len(fresh) == len(set(fresh))
            recalled += len(fresh)
            named += len(high.report.not_recalled)
            text = shown(high)
            for pointer in fresh:
                assert f"page {pointer}" in text
            for pointer in high.report.not_recalled:
                assert working_set.page_in(pointer)
        rebuilt = packer.working_set(working_set.messages, events=working_set.events)
        assert rebuilt.window(open_calls="synthesize").messages == (
            working_set.window(open_calls="synthesize").messages
        )
    assert recalled + named > 0
