"""The promises, through Python, over random histories and the shipped runs."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from samples import NAMES, load_sample
from satchel import _core
from satchel.testing import histories

if TYPE_CHECKING:
    from satchel.testing import Dialect

Message = dict[str, Any]
DIALECTS: tuple[Dialect, ...] = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
PRESETS = ("observation-masking", "clear-tool-uses", "truncate-oldest", "relevant")


def errors(messages: list[Any], dialect: str) -> list[str]:
    found = satchel.lint(messages, dialect)
    return [violation.code for violation in found if violation.severity == "error"]


def packers(dialect: str) -> st.SearchStrategy[satchel.Assembler]:
    def build(budget: int, policy: str) -> satchel.Assembler:
        return satchel.Assembler("gpt-4o", dialect=dialect, budget=budget, policy=policy)

    policies = st.sampled_from(["adaptive", "sliding-window", "token-window", *PRESETS])
    return st.builds(build, st.integers(40, 4_000), policies)


def dumped(messages: list[Any]) -> str:
    return json.dumps(messages, ensure_ascii=True, sort_keys=True)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_valid_within_budget_untouched(dialect: Dialect, data: st.DataObject) -> None:
    messages = data.draw(histories(dialect, max_steps=16))
    packer = data.draw(packers(dialect))
    before = copy.deepcopy(messages)
    refused: list[satchel.BudgetError] = []
    try:
        packer.assemble(messages)
    except satchel.BudgetError as error:
        refused.append(error)
    assert messages == before
    if refused:
        assert (refused[0].code, refused[0].limit) == ("over_budget", packer.budget)
        return
    window = packer.assemble(messages)
    assert window.tokens <= packer.budget
    counted = packer.counter.count_messages(window.messages, dialect=dialect)
    assert counted.total == window.tokens
    assert errors(window.messages, dialect) == []
    own = {id(message) for message in messages}
    assert all(id(message) in own or message not in before for message in window.messages)
    assert dumped(packer.assemble(messages).messages) == dumped(window.messages)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_incremental_equals_rebuild(dialect: Dialect, data: st.DataObject) -> None:
    messages = data.draw(histories(dialect, max_steps=16))
    packer = data.draw(packers(dialect))
    working_set = packer.working_set()
    for message in messages:
        working_set.append(message)
        if data.draw(st.booleans()):
            try:
                working_set.window(open_calls="synthesize")
            except satchel.BudgetError:
                continue
    try:
        expected = packer.assemble(messages)
    except satchel.BudgetError:
        with pytest.raises(satchel.BudgetError):
            working_set.window()
        return
    assert dumped(working_set.window().messages) == dumped(expected.messages)


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_the_functions_keep_steps_whole(dialect: Dialect, data: st.DataObject) -> None:
    messages = data.draw(histories(dialect, max_steps=16))
    before = copy.deepcopy(messages)
    named = data.draw(st.sampled_from([None, dialect]))
    own = {id(message) for message in messages}
    roomy = satchel.Assembler("gpt-4o", dialect=dialect, budget=1_000_000)
    windows = [
        satchel.sliding_window(messages, data.draw(st.integers(0, 20)), dialect=named),
        satchel.token_window(messages, data.draw(st.integers(0, 2_000)), dialect=named),
        satchel.token_window(
            messages, data.draw(st.integers(0, 2_000)), model="gpt-4o", dialect=dialect
        ),
    ]
    for window in windows:
        assert all(id(message) in own for message in window)
        # Every call has its results, every result its call: nothing is open, nothing refused.
        roomy.assemble(window)
    pruned = satchel.prune_tool_outputs(messages, max_chars=10, keep_last=0)
    assert len(pruned) == len(messages)
    assert satchel.prune_tool_outputs(pruned, max_chars=10, keep_last=0) == pruned
    roomy.assemble(pruned)
    scores = satchel.score_messages(messages)
    assert scores.shape == (len(messages),)
    assert bool(((scores >= 0) & (scores <= 1)).all())
    assert messages == before


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_damage_gives_a_window_or_a_typed_error(dialect: Dialect, data: st.DataObject) -> None:
    messages = data.draw(histories(dialect, damage=True))
    packer = data.draw(packers(dialect))
    before = repr(messages)
    known = set(_core.error_codes())
    try:
        tokens = packer.assemble(messages, open_calls="synthesize").tokens
    except satchel.SatchelError as error:
        known.remove(error.code)  # a KeyError for a code outside the catalogue
        tokens = 0
    assert repr(messages) == before
    assert tokens <= packer.budget


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("share", [0.1, 0.25, 0.5])
def test_shipped_runs_call_by_call(name: str, share: float) -> None:
    sample = load_sample(name)
    dialect, system, tools = sample["dialect"], sample.get("system"), sample.get("tools")
    whole = satchel.Assembler("gpt-4o", dialect=dialect, budget=1_000_000)
    everything = whole.assemble(
        sample["messages"], system=system, tools=tools, open_calls="synthesize"
    )
    packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=int(everything.tokens * share))
    working_set = packer.working_set(system=system, tools=tools)
    windows = 0
    before: satchel.Window | None = None
    for message in sample["messages"]:
        if message["role"] == "assistant":
            try:
                window = working_set.window(open_calls="synthesize")
            except satchel.BudgetError:
                before = None
            else:
                windows += 1
                assert window.tokens <= packer.budget
                assert errors(window.messages, dialect) == []
                if before is not None and before.report.compactions == window.report.compactions:
                    common = window.diff(before).common
                    assert common == len(before.messages)
                before = window
        working_set.append(message)
    if share == 0.5 and not name.startswith("odd"):  # its images alone take more than half
        assert windows > 0
    rebuilt = packer.working_set(sample["messages"], system=system, tools=tools)
    assert rebuilt.explain() == working_set.explain()
