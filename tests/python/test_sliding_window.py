"""`satchel.sliding_window` against a slow obvious version, and its rules one by one."""

from __future__ import annotations

import copy
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import InputError
from satchel.windows import sliding_window

Message = dict[str, Any]


def message(role: str, content: object = "text", **fields: object) -> Message:
    return {"role": role, "content": content, **fields}


def call(*ids: str) -> Message:
    calls = [
        {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for name in ids
    ]
    return message("assistant", None, tool_calls=calls)


def result(name: str) -> Message:
    return message("tool", "found", tool_call_id=name)


def use(*ids: str) -> Message:
    blocks: list[Message] = [
        {"type": "tool_use", "id": name, "name": "look", "input": {}} for name in ids
    ]
    return message("assistant", blocks)


def tool_results(*ids: str) -> Message:
    blocks = [{"type": "tool_result", "tool_use_id": name, "content": "found"} for name in ids]
    return message("user", blocks)


def seed_rule(messages: list[Message], max_messages: int) -> list[Message]:
    """The founding rule, for histories without tools."""
    system = [m for m in messages if m["role"] in {"system", "developer"}]
    others = [m for m in messages if m["role"] not in {"system", "developer"}]
    return system + (others[-max_messages:] if max_messages > 0 else [])


def steps_of(messages: list[Message]) -> list[list[Message]]:
    steps: list[list[Message]] = []
    takes_results = False
    for m in messages:
        if m["role"] in {"system", "developer"}:
            continue
        if is_result(m) and takes_results:
            steps[-1].append(m)
        else:
            steps.append([m])
            takes_results = has_calls(m)
    return steps


def has_calls(m: Message) -> bool:
    return bool(m.get("tool_calls")) or "tool_use" in block_types(m)


def is_result(m: Message) -> bool:
    return m["role"] == "tool" or "tool_result" in block_types(m)


def block_types(m: Message) -> list[str]:
    content = m["content"]
    blocks = cast("list[Message]", content) if isinstance(content, list) else []
    return [block["type"] for block in blocks]


def oracle(messages: list[Message], max_messages: int) -> list[Message]:
    """Newest whole steps while they fit; results at the cut never remain alone."""
    steps = steps_of(messages)
    kept: list[list[Message]] = []
    while steps and sum(map(len, kept)) + len(steps[-1]) <= max_messages:
        kept.insert(0, steps.pop())
    while steps and kept and is_result(kept[0][0]):
        kept.pop(0)
    system = [m for m in messages if m["role"] in {"system", "developer"}]
    return system + [m for step in kept for m in step]


def same_objects(left: list[Any], right: list[Any]) -> bool:
    return [id(m) for m in left] == [id(m) for m in right]


plain_histories = st.lists(
    st.builds(message, st.sampled_from(["system", "developer", "user", "assistant"]), st.text()),
    max_size=30,
)
tool_histories = st.lists(
    st.one_of(
        st.builds(message, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=5)),
        st.builds(call, st.sampled_from("ab")),
        st.builds(result, st.sampled_from("ab")),
        st.builds(use, st.sampled_from("ab")),
        st.builds(tool_results, st.sampled_from("ab")),
    ),
    max_size=30,
)


@given(plain_histories, st.integers(0, 40))
def test_without_tools_it_is_the_founding_rule(messages: list[Message], limit: int) -> None:
    assert same_objects(sliding_window(messages, limit), seed_rule(messages, limit))


@given(tool_histories, st.integers(0, 40))
def test_matches_oracle(messages: list[Message], limit: int) -> None:
    before = copy.deepcopy(messages)
    window = sliding_window(messages, limit)
    assert same_objects(window, oracle(messages, limit))
    assert messages == before
    assert sum(m["role"] != "system" for m in window) <= limit


@given(tool_histories, st.integers(0, 40))
def test_idempotent(messages: list[Message], limit: int) -> None:
    window = sliding_window(messages, limit)
    assert same_objects(sliding_window(window, limit), window)


def test_parallel_results_stay_with_their_calls() -> None:
    history = [message("user"), call("a", "b"), result("b"), result("a"), message("assistant")]
    assert sliding_window(history, 4) == history[1:]
    assert sliding_window(history, 3) == history[4:]


def test_anthropic_steps_stay_whole() -> None:
    history = [message("user"), use("a"), tool_results("a"), message("assistant")]
    assert sliding_window(history, 3) == history[1:]
    assert sliding_window(history, 2) == history[3:]
    assert sliding_window(history, 2, dialect="anthropic") == history[3:]


def test_another_dialect_sees_no_calls() -> None:
    history = [message("user"), use("a"), tool_results("a"), message("assistant")]
    assert sliding_window(history, 2, dialect="openai") == history[2:]


def test_an_open_call_is_a_step() -> None:
    history = [message("user"), call("a")]
    assert sliding_window(history, 1) == history[1:]


def test_legacy_function_calls_are_steps() -> None:
    history = [
        message("user"),
        message("assistant", None, function_call={"name": "look", "arguments": "{}"}),
        message("function", "found", name="look"),
    ]
    assert sliding_window(history, 1) == []
    assert sliding_window(history, 2) == history[1:]


def test_all_system_messages_come_first() -> None:
    history = [message("user"), message("system"), message("assistant"), message("developer")]
    assert sliding_window(history, 1) == [history[1], history[3], history[2]]
    assert sliding_window(history, 0) == [history[1], history[3]]


@pytest.mark.parametrize(
    "odd",
    [
        None,
        5,
        "text",
        [],
        {},
        object(),
        {"role": 3, "content": "a"},
        {"role": "narrator", "content": "a"},
        {"content": "a"},
        {"role": "user"},
        {"role": "user", "content": 7},
        {"role": "assistant", "content": None, "tool_calls": "no list"},
    ],
)
def test_what_cannot_be_read_is_a_plain_message(odd: object) -> None:
    history: list[object] = [message("user"), message("system"), odd, message("user")]
    assert sliding_window(history, 2) == [history[1], odd, history[3]]


def test_any_iterable_of_messages() -> None:
    history = [message("user"), message("user")]
    assert same_objects(sliding_window(tuple(history), 1), history[1:])
    assert same_objects(sliding_window(iter(history), 5), history)
    window = sliding_window(history, 5)
    assert window is not history


def test_a_huge_limit_keeps_all() -> None:
    history = [message("user")]
    assert sliding_window(history, 10**40) == history


@pytest.mark.parametrize("limit", [-1, -(10**30)])
def test_a_negative_limit(limit: int) -> None:
    with pytest.raises(InputError, match="max_messages") as caught:
        sliding_window([], limit)
    assert caught.value.code == "invalid_value"
    assert caught.value.value == limit


@pytest.mark.parametrize("limit", ["3", 3.0, None, True, []])
def test_a_limit_of_the_wrong_type(limit: Any) -> None:
    with pytest.raises(InputError, match="max_messages") as caught:
        sliding_window([], limit)
    assert caught.value.code == "invalid_value"


@pytest.mark.parametrize("messages", ["text", b"bytes", {"role": "user"}, 5, None])
def test_messages_of_the_wrong_type(messages: Any) -> None:
    with pytest.raises(InputError, match="messages") as caught:
        sliding_window(messages, 3)
    assert caught.value.code == "invalid_value"


def test_a_dialect_that_is_not_known() -> None:
    with pytest.raises(InputError) as caught:
        sliding_window([], 3, dialect="morse")
    assert caught.value.code == "unknown_dialect"
    wrong_type: Any = 5
    with pytest.raises(InputError, match="dialect") as caught:
        sliding_window([], 3, dialect=wrong_type)
    assert caught.value.code == "invalid_value"
