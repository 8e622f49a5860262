"""Policies are data: presets, ranges, TOML."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

import satchel
from samples import load_sample
from satchel.policy import Policy, SalienceWeights

if TYPE_CHECKING:
    from pathlib import Path


def test_presets_have_their_names() -> None:
    for name in ("adaptive", "sliding-window", "token-window"):
        assert Policy.preset(name).name == name
    assert Policy.preset("sliding-window").max_messages == 10
    assert Policy.preset("adaptive") == Policy()


def test_toml_round_trip(tmp_path: Path) -> None:
    policy = Policy(name="mine", trigger=0.9, target=0.5, salience=SalienceWeights(recency=0.25))
    assert Policy.from_toml(policy.to_toml()) == policy
    deque = Policy(name="deque", strategy="sliding-window", max_messages=20)
    path = tmp_path / "policy.toml"
    path.write_text(deque.to_toml(), encoding="utf-8")
    assert Policy.from_toml(path) == deque
    assert Policy.from_toml("") == Policy()


@pytest.mark.parametrize(
    ("toml", "match"),
    [
        ("trigger = 2", "policy trigger"),
        ("target = 0.9\ntrigger = 0.5", "target is 0.9, must be at most trigger"),
        ("strategy = 'sliding-window'", "needs max_messages"),
        ("surprise = 1", "policy surprise"),
        ("trigger = nan", "policy trigger"),
        ("salience = 3", "policy salience"),
        ("[salience]\nhalf_life = 0", "policy salience.half_life"),
        ("trigger =", "no TOML"),
    ],
)
def test_settings_out_of_range_are_named(toml: str, match: str) -> None:
    with pytest.raises(satchel.InputError, match=match) as error:
        Policy.from_toml(toml)
    assert error.value.code == "invalid_value"


def test_a_policy_is_frozen() -> None:
    policy = Policy()
    with pytest.raises(ValidationError):
        setattr(policy, "trigger", 0.5)  # noqa: B010 - the checkers would refuse it as well
    with pytest.raises(ValueError, match="trigger"):
        Policy(trigger=7)


def test_the_fixed_deque_keeps_system_goal_and_the_newest() -> None:
    messages = load_sample("chat.openai.json")["messages"]
    policy = Policy(name="deque", strategy="sliding-window", max_messages=10)
    packer = satchel.Assembler("gpt-4o", policy=policy)
    working_set = packer.working_set()
    window = working_set.window()
    for message in messages:
        working_set.append(message)
        window = working_set.window()
        shown = [other for other in window.messages if other["role"] != "system"]
        notes = [other for other in shown if "<satchel-index" in str(other["content"])]
        assert len(shown) - len(notes) <= 10
        assert window.messages[0] == messages[0]
        assert window.messages[-1] is message
    goal = next(message for message in messages if message["role"] == "user")
    assert goal in window.messages
    assert working_set.explain()[3].reason == "oldest"


def test_the_token_window_drops_the_oldest_first() -> None:
    messages = load_sample("chat.openai.json")["messages"]
    packer = satchel.Assembler("gpt-4o", policy="token-window", budget=900)
    working_set = packer.working_set(messages)
    window = working_set.window()
    assert window.tokens <= 900
    levels = [step.level for step in working_set.explain()]
    dropped = [index for index, level in enumerate(levels) if level == "gone"]
    hard = {"instruction", "goal", "newest user message"}
    reasons = [step.reason for step in working_set.explain()]
    soft = [index for index, reason in enumerate(reasons) if reason not in hard]
    assert dropped == soft[: len(dropped)]
    assert 0 < len(dropped) < len(soft)
