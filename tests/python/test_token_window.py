"""`satchel.token_window` against a slow obvious version, and its rules one by one."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import _core
from satchel.errors import InputError
from satchel.windows import token_window

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]


UNREADABLE: list[object] = [
    None,
    12345,
    [],
    {"role": "narrator", "content": "가나다"},
    {"content": [1, None, {"a": True}]},
    {"role": "user", "content": 17},
    {"role": "user", "content": [{"type": "text"}]},
]


def message(role: str, content: object) -> Message:
    return {"role": role, "content": content}


def call(name: str, content: str | None = None) -> Message:
    function = {"name": "look", "arguments": '{"at": "the far end of the list"}'}
    calls = [{"id": name, "type": "function", "function": function}]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result(name: str, content: str) -> Message:
    return {"role": "tool", "tool_call_id": name, "content": content}


def chars3(text: str) -> int:
    return max(1, len(text) // 3) if text else 0


def as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def content_text(m: Message) -> list[str]:
    """The content text as the documentation defines it, for the messages made here."""
    content = m["content"]
    if content is None:
        return []
    if isinstance(content, str):
        return [content]
    texts: list[str] = []
    for block in content:
        if block["type"] == "text":
            texts.append(block["text"])
        elif block["type"] == "tool_result":
            inner = block["content"]
            texts += (
                [inner] if isinstance(inner, str) else [b["text"] for b in inner if "text" in b]
            )
    return texts


def tokens(m: Message) -> int:
    return sum(map(chars3, content_text(m)))


def seed_rule(messages: list[Message], max_tokens: int) -> list[Message]:
    """The founding rule, for histories without tools."""
    system = [m for m in messages if m["role"] == "system"]
    budget = max_tokens - sum(map(tokens, system))
    kept: list[Message] = []
    used = 0
    for m in reversed([m for m in messages if m["role"] != "system"]):
        if used + tokens(m) > budget:
            break
        kept.insert(0, m)
        used += tokens(m)
    return system + kept


def block_types(m: Message) -> list[str]:
    content = m["content"]
    blocks = cast("list[Message]", content) if isinstance(content, list) else []
    return [block["type"] for block in blocks]


def is_result(m: Message) -> bool:
    return m["role"] == "tool" or "tool_result" in block_types(m)


def has_calls(m: Message) -> bool:
    return "tool_calls" in m or "tool_use" in block_types(m)


def oracle(messages: list[Message], max_tokens: int) -> list[Message]:
    """The founding rule over whole steps; results at the cut never remain alone."""
    system = [m for m in messages if m["role"] == "system"]
    budget = max_tokens - sum(map(tokens, system))
    steps: list[list[Message]] = []
    for m in messages:
        if m["role"] == "system":
            continue
        if is_result(m) and steps and has_calls(steps[-1][0]):
            steps[-1].append(m)
        else:
            steps.append([m])
    kept: list[list[Message]] = []
    while steps and sum(map(tokens, steps[-1])) <= budget:
        kept.insert(0, steps.pop())
        budget -= sum(map(tokens, kept[0]))
    while steps and kept and is_result(kept[0][0]):
        kept.pop(0)
    return system + [m for step in kept for m in step]


def same_objects(left: list[Any], right: list[Any]) -> bool:
    return [id(m) for m in left] == [id(m) for m in right]


def text_block(text: str) -> Message:
    return {"type": "text", "text": text}


def result_block(content: object) -> Message:
    return {"type": "tool_result", "tool_use_id": "a", "content": content}


def named(role: str, content: str, name: str) -> Message:
    return {"role": role, "content": content, "name": name}


IMAGE: Message = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
USE: Message = {"type": "tool_use", "id": "a", "name": "look", "input": {"at": "the far end"}}
texts = st.text(max_size=30)
roles = st.sampled_from(["system", "user", "assistant"])
blocks = st.lists(st.one_of(st.builds(text_block, texts), st.just(IMAGE)), max_size=3)
results = st.builds(result_block, st.one_of(texts, blocks))
plain_histories = st.lists(st.builds(message, roles, st.one_of(texts, blocks)), max_size=20)
tool_histories = st.lists(
    st.one_of(
        st.builds(message, roles, texts),
        st.builds(call, st.just("a"), st.one_of(st.none(), texts)),
        st.builds(result, st.just("a"), texts),
        st.just([USE]).map(lambda parts: message("assistant", parts)),
        st.lists(results, min_size=2, max_size=2).map(lambda parts: message("user", parts)),
    ),
    max_size=20,
)


@given(plain_histories, st.integers(0, 120))
def test_without_tools_it_is_the_founding_rule(messages: list[Message], limit: int) -> None:
    window = token_window(messages, limit, counter=_core.Counter("chars3"))
    assert same_objects(window, seed_rule(messages, limit))


@given(tool_histories, st.integers(0, 120))
def test_matches_oracle(messages: list[Message], limit: int) -> None:
    before = copy.deepcopy(messages)
    window = token_window(messages, limit, counter=_core.Counter("chars3"))
    assert same_objects(window, oracle(messages, limit))
    assert messages == before


@given(tool_histories, st.integers(0, 120))
def test_a_callable_counts_alike(messages: list[Message], limit: int) -> None:
    window = token_window(messages, limit, counter=_core.Counter("chars3"))
    assert same_objects(token_window(messages, limit, counter=chars3), window)


@given(tool_histories, st.integers(0, 120))
def test_idempotent(messages: list[Message], limit: int) -> None:
    window = token_window(messages, limit, counter=chars3)
    assert same_objects(token_window(window, limit, counter=chars3), window)


@pytest.mark.parametrize("count", [1, 31, 32, 33, 95, 96, 97, 3000])
def test_batches_do_not_show(count: int) -> None:
    history = [message("user", "x" * (3 + index % 40)) for index in range(count)]
    for limit in (0, 7, count, 3 * count, 20 * count):
        window = token_window(history, limit, counter=_core.Counter("chars3"))
        assert same_objects(window, seed_rule(history, limit))


@pytest.mark.parametrize("count", [31, 32, 33, 34])
def test_a_step_across_batches_stays_whole(count: int) -> None:
    history = [message("user", "abc"), call("a"), *[result("a", "abc")] * count]
    for counter in (chars3, _core.Counter("chars3")):
        assert token_window(history, count - 1, counter=counter) == []
        assert token_window(history, count, counter=counter) == history[1:]
        assert token_window(history, count + 1, counter=counter) == history


def test_it_stops_at_the_first_that_does_not_fit() -> None:
    history = [message("user", "a"), message("user", "b" * 300), message("user", "c" * 9)]
    assert token_window(history, 10, counter=chars3) == history[2:]


def test_system_messages_stay_even_above_the_limit() -> None:
    history = [message("user", ""), message("system", "s" * 300), message("user", "")]
    assert token_window(history, 99, counter=chars3) == [history[1]]
    assert token_window(history, 100, counter=chars3) == [history[1], history[0], history[2]]
    assert token_window(history, 0, counter=chars3) == [history[1]]


def test_counting_stops_with_the_window() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return 1

    history = [message("user", str(index)) for index in range(10_000)]
    assert token_window(history, 5, counter=count) == history[-5:]
    assert len(asked) < 100


def test_the_default_is_content_text_in_o200k() -> None:
    # "one two three": three tokens; roles, calls and overhead do not count.
    history = [message("user", "one two three"), call("a"), result("a", "one two three")]
    assert token_window(history, 3) == history[1:]
    assert token_window(history, 2) == []
    assert token_window(history, 6) == history


def test_a_counter_can_be_named() -> None:
    name: Any = "chars4"
    history = [message("user", "12345678")]
    assert token_window(history, 1, counter=name) == []
    assert token_window(history, 2, counter=name) == history


def test_a_message_that_cannot_be_read_counts_as_its_json() -> None:
    class Odd:
        __slots__ = ()

        def __str__(self) -> str:
            return "x" * 30

    class Broken:
        __slots__ = ()

        def __str__(self) -> str:
            raise RuntimeError

    cyclic: dict[str, object] = {"content": 5}
    cyclic["self"] = cyclic
    odd: object
    for odd, text in [
        *[(value, as_json(value)) for value in UNREADABLE],
        ("some text", "some text"),
        (Odd(), "x" * 30),
        (Broken(), ""),
        (cyclic, str(cyclic)),
    ]:
        history = [message("user", "x"), odd]
        assert token_window(history, len(text), counter=len) == [odd]
        assert token_window(history, len(text) + 1, counter=len) == history
        if text:
            assert token_window(history, len(text) - 1, counter=len) == []


def test_lone_surrogates_are_counted() -> None:
    history = [message("user", "a\ud800b")]
    assert token_window(history, 1000) == history


@pytest.mark.parametrize("limit", [-1, -(10**30)])
def test_a_negative_limit(limit: int) -> None:
    with pytest.raises(InputError, match="max_tokens") as caught:
        token_window([], limit)
    assert caught.value.code == "invalid_value"
    assert caught.value.value == limit


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"max_tokens": "9"}, "invalid_value"),
        ({"max_tokens": 9.0}, "invalid_value"),
        ({"messages": "text"}, "invalid_value"),
        ({"dialect": "morse"}, "unknown_dialect"),
        ({"dialect": 5}, "invalid_value"),
        ({"counter": 5}, "invalid_value"),
        ({"counter": "morse"}, "unknown_encoding"),
        ({"model": 5}, "invalid_value"),
        ({"model": "morse-1"}, "unknown_model"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], code: str) -> None:
    named_options = dict(options)
    messages, limit = named_options.pop("messages", []), named_options.pop("max_tokens", 9)
    with pytest.raises(InputError) as caught:
        token_window(messages, limit, **named_options)
    assert caught.value.code == code


def test_a_counter_that_fails() -> None:
    def count(text: str) -> int:
        raise KeyError(text)

    with pytest.raises(InputError) as caught:
        token_window([message("user", "a")], 9, counter=count)
    assert caught.value.code == "counter_failed"
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_huge_limit_keeps_all() -> None:
    history = [message("system", "a"), message("user", "b")]
    assert token_window(history, 10**40) == history


def chat_tokens(m: Message, count: Callable[[str], int]) -> int:
    """The chat formula for plain text: 3 a message, the role, the content, 1 for a name."""
    total: int = 3 + 1 + count(m["content"])
    if "name" in m:
        total += 1 + count(m["name"])
    return total


@given(
    st.lists(
        st.one_of(
            st.builds(message, roles, texts),
            st.builds(named, roles, texts, st.text(min_size=1, max_size=9)),
        ),
        max_size=20,
    ),
    st.integers(0, 200),
)
def test_a_model_counts_by_the_chat_formula(messages: list[Message], limit: int) -> None:
    count = _core.Counter("o200k_base").count
    system = [m for m in messages if m["role"] == "system"]
    left = limit - sum(chat_tokens(m, count) for m in system)
    kept: list[Message] = []
    for m in reversed([m for m in messages if m["role"] != "system"]):
        left -= chat_tokens(m, count)
        if left < 0:
            break
        kept.insert(0, m)
    assert same_objects(token_window(messages, limit, model="gpt-4o"), system + kept)


def test_a_model_counts_calls_and_a_counter_replaces_its_encoding() -> None:
    history = [message("user", "hi"), call("a"), result("a", "x" * 30)]
    by_content = token_window(history, 30, counter=len)
    assert by_content == history[1:]
    assert token_window(history, 30, model="gpt-4o", counter=len) == []
    assert token_window(history, 1000, model="gpt-4o", counter=len) == history


def test_a_model_of_another_dialect_reads_the_messages_it_gets() -> None:
    history = [message("user", "hi"), call("a"), result("a", "done"), message("user", "bye")]
    for model in ("claude-sonnet-4-5", "gpt-4o"):
        windows = [token_window(history, limit, model=model) for limit in range(60)]
        found = [len(window) for window in windows]
        assert found == sorted(found)
        # All, without the question, the last message, nothing: never half of the step.
        assert set(found) == {4, 3, 1, 0}


@pytest.mark.parametrize("odd", [*UNREADABLE, object()])
def test_a_model_counts_what_cannot_be_read(odd: object) -> None:
    history = [message("user", "x"), odd, message("user", "y")]
    window = token_window(history, 10_000, model="gpt-4o")
    assert sorted(map(id, window)) == sorted(map(id, history))
    assert token_window(history, 5, model="gpt-4o")[-1:] == history[2:]


def test_batches_do_not_show_with_a_model() -> None:
    history = [message("user", "word " * (index % 7)) for index in range(300)]
    count = _core.Counter("o200k_base").count
    costs = [chat_tokens(m, count) for m in history]
    for first in (0, 1, 150, 204, 205, 268, 269, 299):
        limit = sum(costs[first:])
        assert token_window(history, limit, model="gpt-4o") == history[first:]
        assert token_window(history, limit, model="gpt-4o", counter=count) == history[first:]
