"""Guards of an agent loop, over every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.guards import LoopGuard, StepGuard
from satchel.state import AgentState

if TYPE_CHECKING:
    from collections.abc import Callable


def chat(number: int, arguments: str, result: str) -> list[dict[str, Any]]:
    call = {"name": "look_up", "arguments": arguments}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": result},
    ]


def in_dialect(dialect: str, messages: list[dict[str, Any]]) -> list[Any]:
    opening = [{"role": "user", "content": "Find the leak."}]
    return satchel.convert([*opening, *messages], "openai", dialect).messages


DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_third_call_with_the_same_result_is_one_too_many(dialect: str) -> None:
    messages = [one for number in range(3) for one in chat(number, '{"a": 1}', "nothing")]
    guard = LoopGuard(dialect=dialect)
    with pytest.raises(satchel.GuardError, match="'look_up' was called 3 times") as caught:
        guard.check(in_dialect(dialect, messages))
    assert (caught.value.code, caught.value.value, caught.value.limit) == ("repeated_call", 3, 3)


@pytest.mark.parametrize(
    "rounds",
    [
        pytest.param([("{}", "a"), ("{}", "b"), ("{}", "a")], id="another result"),
        pytest.param([("{}", "a"), ('{"x": 1}', "a"), ("{}", "a")], id="other arguments"),
        pytest.param([("{}", "a"), ("{}", "a")], id="only twice"),
    ],
)
def test_calls_that_differ_are_no_loop(rounds: list[tuple[str, str]]) -> None:
    guard = LoopGuard()
    for number, (arguments, result) in enumerate(rounds):
        guard.observe(chat(number, arguments, result))


def test_spelling_of_arguments_makes_no_difference() -> None:
    guard = LoopGuard()
    guard.observe(chat(1, '{"a": 1, "b": 2}', "x"))
    guard.observe(chat(2, '{"b":2,"a":1}', "x"))
    with pytest.raises(satchel.GuardError):
        guard.observe(chat(3, '{ "a": 1, "b": 2 }', "x"))


def test_parallel_calls_repeat_as_a_whole() -> None:
    guard = LoopGuard(repeats=2)
    ids = [("a", "{}"), ("b", '{"page": 2}')]
    calls = [
        {"id": name, "type": "function", "function": {"name": "read", "arguments": arguments}}
        for name, arguments in ids
    ]
    step = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "b", "content": "two"},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
    ]
    guard.observe(step)
    with pytest.raises(satchel.GuardError):
        guard.observe([step[0], step[2], step[1]])


def test_what_a_user_says_begins_the_count_anew() -> None:
    guard = LoopGuard(repeats=2)
    guard.observe(chat(1, "{}", "x"))
    guard.observe({"role": "user", "content": "Try once more."})
    guard.observe(chat(2, "{}", "x"))


def test_a_loop_that_ended_is_no_loop() -> None:
    rounds = [("{}", "x"), ("{}", "x"), ("{}", "x"), ("{}", "y")]
    messages = [one for at, (said, got) in enumerate(rounds) for one in chat(at, said, got)]
    LoopGuard().check(messages)


def test_names_of_tools_are_shown_escaped_and_bounded() -> None:
    guard = LoopGuard(repeats=2)
    name = "x\u001b[31m" + "y" * 500
    call = {"id": "1", "type": "function", "function": {"name": name, "arguments": "{}"}}
    step: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "same"},
    ]
    guard.observe(step)
    with pytest.raises(satchel.GuardError) as caught:
        guard.observe(step)
    assert "\u001b" not in str(caught.value)
    assert len(str(caught.value)) < 300


def test_a_step_beyond_the_limit_is_refused_and_not_counted() -> None:
    guard = StepGuard(max_steps=2)
    assert [guard.step(), guard.step()] == [1, 2]
    with pytest.raises(satchel.GuardError) as caught:
        guard.step()
    assert (caught.value.code, caught.value.value, caught.value.limit) == ("step_limit", 3, 2)
    assert guard.steps == 2


def test_states_advance_to_their_own_limit() -> None:
    state = AgentState(session_id="s", user_id="u", current_step=14)
    last = StepGuard.advance(state)
    assert (state.current_step, last.current_step) == (14, 15)
    with pytest.raises(satchel.GuardError, match="step 16 is beyond the limit of 15"):
        StepGuard.advance(last)


@pytest.mark.parametrize(
    "make",
    [
        lambda: StepGuard(0),
        lambda: StepGuard(max_steps=True),
        lambda: LoopGuard(1),
        lambda: LoopGuard(dialect="klingon"),
    ],
)
def test_settings_out_of_range_are_refused(make: Callable[[], object]) -> None:
    with pytest.raises(satchel.InputError):
        make()
