"""Presets that clear tool uses: the documented rules, the budget, and what a rewrite costs."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import satchel
from satchel import models
from satchel.policy import Cache, Clearing, ClearTrigger, Policy
from satchel.testing import generate_history, histories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.testing import Dialect

Message = dict[str, Any]
DIALECTS: tuple[Dialect, ...] = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
PRESETS = (
    "observation-masking",
    "clear-tool-uses",
    "clear-tool-uses:langchain",
    "truncate-oldest",
    "clear-thinking",
)


def errors(messages: list[Any], dialect: str) -> list[str]:
    found = satchel.lint(messages, dialect)
    return [violation.code for violation in found if violation.severity == "error"]


def clearing(**settings: object) -> Policy:
    own = Clearing.model_validate(settings)
    return Policy(name="mine", strategy="clear-tool-uses", clearing=own)


def documented(messages: Sequence[Message], rules: Clearing) -> set[int]:
    """Results that the documented rule clears, by raw index: oldest first, all but the newest."""
    tools = {
        call["id"]: call["function"]["name"]
        for message in messages
        for call in message.get("tool_calls", ())
    }
    results = [at for at, message in enumerate(messages) if message["role"] == "tool"]
    old = results[: max(0, len(results) - rules.keep)]
    return {at for at in old if tools[messages[at]["tool_call_id"]] not in rules.exclude_tools}


def test_presets_by_name() -> None:
    for name in PRESETS:
        policy = Policy.preset(name)
        assert policy.name == name
        assert Policy.from_toml(policy.to_toml()) == policy
    anthropic = Policy.preset("clear-tool-uses").clearing
    assert anthropic == Clearing(trigger=ClearTrigger(type="input_tokens", value=100_000), keep=3)
    assert Policy.preset("clear-tool-uses:langchain").clearing.clear_at_least_as == "stop"
    assert Policy.preset("observation-masking").clearing.keep == 10


def test_settings_as_toml() -> None:
    policy = Policy.from_toml(
        'strategy = "clear-tool-uses"\n[clearing]\nkeep = 1\nexclude_tools = ["memory"]\n'
        'clear_tool_inputs = ["write"]\n[clearing.trigger]\ntype = "tool_uses"\nvalue = 4\n'
        "[cache]\npriced = true\nremaining_calls = 7\n"
    )
    assert policy.clearing.exclude_tools == ("memory",)
    assert policy.clearing.clear_tool_inputs == ("write",)
    assert (policy.cache.priced, policy.cache.remaining_calls) == (True, 7)
    assert Policy.from_toml(policy.to_toml()) == policy
    with pytest.raises(satchel.InputError, match=r"clearing\.keep"):
        Policy.from_toml("[clearing]\nkeep = -1")
    with pytest.raises(ValidationError):
        Clearing.model_validate({"trigger": {"type": "messages"}})
    with pytest.raises(ValidationError):
        Cache(read=-1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "rules",
    [
        Clearing(trigger=ClearTrigger(value=9_000)),
        Clearing(trigger=ClearTrigger(type="tool_uses", value=10), keep=10),
        Clearing(trigger=ClearTrigger(value=6_000), keep=1, exclude_tools=("read_file", "search")),
    ],
)
def test_clears_what_is_documented(rules: Clearing, seed: int) -> None:
    history = generate_history(120, seed=seed, result_chars=900)
    packer = satchel.Assembler("gpt-4o", policy=clearing(**rules.model_dump()))
    working_set = packer.working_set()
    before = working_set.window()
    wanted: set[int] = set()
    fired = 0
    fresh: list[Message] = []
    whole: set[int] = set()
    for at, message in enumerate(history):
        working_set.append(message)
        fresh.append(message)
        if at + 1 < len(history) and history[at + 1]["role"] != "assistant":
            continue
        window = working_set.window()
        added = packer.counter.count_messages(fresh, dialect="openai").per_message.sum()
        whole |= {i for i in range(at + 1) if history[i]["role"] == "tool"} - wanted
        trigger = rules.trigger
        amount = before.tokens + int(added) if trigger.type == "input_tokens" else len(whole)
        due = documented(history[: at + 1], rules)
        if amount > trigger.value and not due <= wanted:
            wanted |= due
            fired += 1
        whole -= wanted
        shown = {i for i, one in enumerate(window.messages) if one is not history[i]}
        assert shown == wanted
        assert window.report.compactions == fired
        before, fresh = window, []
    assert fired > 1
    cleared = min(wanted)
    [pointer] = [page.pointer for page in before.pages if page.message == cleared]
    assert f'page_in("{pointer}")' in before.messages[cleared]["content"]
    assert working_set.page_in(pointer) == history[cleared]["content"]


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_valid_stable_and_within_budget(dialect: Dialect, data: st.DataObject) -> None:
    messages = data.draw(histories(dialect, max_steps=16))
    own = clearing(
        trigger=data.draw(
            st.builds(
                ClearTrigger,
                type=st.sampled_from(["input_tokens", "tool_uses"]),
                value=st.integers(0, 600),
            )
        ),
        keep=data.draw(st.integers(0, 4)),
        clear_at_least=data.draw(st.integers(0, 200)),
        clear_at_least_as=data.draw(st.sampled_from(["gate", "stop"])),
        clear_tool_inputs=data.draw(st.booleans()),
    )
    policy = data.draw(st.sampled_from([own, *map(Policy.preset, PRESETS)]))
    budget = data.draw(st.integers(200, 4_000))
    packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=budget, policy=policy)
    working_set = packer.working_set()
    windows = [working_set.window()]
    refused = 0
    for message in messages:
        working_set.append(message)
        try:
            windows.append(working_set.window(open_calls="synthesize"))
        except satchel.BudgetError:
            refused += 1
    for window in windows:
        assert window.tokens <= budget
        assert errors(window.messages, dialect) == []
        assert len(window.report.rewrites) == window.report.compactions
    try:
        rebuilt = packer.assemble(messages, open_calls="synthesize")
    except satchel.BudgetError:
        assert refused > 0
        return
    assert rebuilt.messages == windows[-1].messages
    for page in rebuilt.pages:
        assert working_set.page_in(page.pointer)


def test_between_two_clearings_the_window_only_grows() -> None:
    history = generate_history(160, seed=7, result_chars=700)
    policy = clearing(trigger={"type": "tool_uses", "value": 15}, keep=5)
    working_set = satchel.Assembler("gpt-4o", policy=policy).working_set()
    windows: list[satchel.Window] = []
    for at, message in enumerate(history):
        working_set.append(message)
        if at + 1 == len(history) or history[at + 1]["role"] == "assistant":
            windows.append(working_set.window())
    changed = 0
    for before, after in pairwise(windows):
        if before.report.compactions == after.report.compactions:
            assert after.messages[: len(before.messages)] == before.messages
        else:
            changed += 1
    assert 0 < changed < len(windows) / 4


def test_hard_parts_survive_every_preset() -> None:
    history = generate_history(200, seed=11)
    goal = next(message for message in history if message["role"] == "user")
    newest = next(message for message in reversed(history) if message["role"] == "user")
    for name in PRESETS:
        window = satchel.Assembler("gpt-4o", budget=9_000, policy=name).assemble(
            history, open_calls="synthesize"
        )
        assert window.tokens <= 9_000
        for hard in (history[0], goal, newest):
            assert any(message is hard for message in window.messages), name
        assert {one.cause for one in window.report.rewrites} <= {"forced", "preset"}


def test_truncation_drops_only_from_the_beginning() -> None:
    history = generate_history(200, seed=5, result_chars=500)
    working_set = satchel.Assembler("gpt-4o", budget=9_000, policy="truncate-oldest").working_set(
        history
    )
    window = working_set.window(open_calls="synthesize")
    hard = {"instruction", "goal", "newest user message"}
    levels = [step.level for step in working_set.explain() if step.reason not in hard]
    gone = levels.count("gone")
    assert levels == ["gone"] * gone + ["verbatim"] * (len(levels) - gone)
    # The next older step would not have fitted.
    steps = [step for step in working_set.explain() if step.level == "gone"]
    assert window.tokens + steps[-1].original_tokens > 9_000


def test_a_cold_cache_is_an_event() -> None:
    history = generate_history(120, seed=2, result_chars=600)
    packer = satchel.Assembler("claude-sonnet-4-5", dialect="openai")
    whole = packer.assemble(history).tokens_upper
    packer = satchel.Assembler("claude-sonnet-4-5", dialect="openai", budget=int(whole * 1.1))
    working_set = packer.working_set(history)
    assert working_set.window().report.rewrites == ()
    working_set.apply({"kind": "cache", "cold": True})
    window = working_set.window()
    [rewrite] = window.report.rewrites
    assert (rewrite.cause, rewrite.break_even_calls) == ("cold", 0)
    assert rewrite.removed_tokens > 0
    assert str(rewrite).startswith(f"cold at message {len(history)}: ")
    assert packer.assemble(history, events=window.events).messages == window.messages
    with pytest.raises(satchel.InputError, match="cold"):
        working_set.apply({"kind": "cache"})


def test_another_model_has_a_cold_cache() -> None:
    history = generate_history(120, seed=2, result_chars=600)
    whole = satchel.Assembler("gpt-4o").assemble(history).tokens
    working_set = satchel.Assembler("gpt-4o", budget=int(whole * 1.1)).working_set(history)
    assert working_set.window().report.compactions == 0
    working_set.apply({"kind": "settings", "model": "gpt-4o-mini"})
    assert [one.cause for one in working_set.window().report.rewrites] == ["cold"]


def test_prices_are_the_models() -> None:
    for name in ("claude-sonnet-4-5", "gpt-4o", "claude-opus-5-5", "gpt-4"):
        model = models.get(name)
        prices = model.input_prices()
        assert satchel.Assembler(name).working_set().events[0]["prices"] == prices
        assert prices["read"] == model.cache.read
        assert prices["write"] == (model.cache.write or (1.0,))[0]
        assert prices["binds_reasoning"] is model.prefix_bound


def test_a_priced_compaction_says_why() -> None:
    history = generate_history(300, seed=4, result_chars=600)
    whole = satchel.Assembler("gpt-4o").assemble(history).tokens
    cache = Cache(priced=True, remaining_calls=100_000, read=0.1, write=1.25)
    packer = satchel.Assembler("gpt-4o", budget=whole, policy=Policy(name="priced", cache=cache))
    window = packer.assemble(history)
    assert {one.cause for one in window.report.rewrites} == {"priced"}
    for one in window.report.rewrites:
        expected = 1.15 * one.rewritten_tokens / (0.1 * one.removed_tokens)
        assert one.break_even_calls == pytest.approx(expected)
        assert one.break_even_calls < one.expected_calls == 100_000
