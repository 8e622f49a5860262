"""Cost of the messages of a request: sums, exactness, recorded usage."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recorded import exchanges
from satchel import errors
from satchel._core import Counter, MessageTokens

COUNTER = Counter("o200k_base")
WEATHER = [
    {
        "role": "system",
        "content": "You are a helpful assistant that can answer to questions about the weather.",
    },
    {"role": "user", "content": "What's the weather like in San Francisco?"},
]
WEATHER_TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "get_current_weather",
            "description": "Get the current weather in a given location",
            "parameters": {
                "type": "object",
                "properties": {
                    "location": {
                        "type": "string",
                        "description": "The city and state, e.g. San Francisco, CA",
                    },
                    "unit": {
                        "type": "string",
                        "description": "The unit of temperature to return",
                        "enum": ["celsius", "fahrenheit"],
                    },
                },
                "required": ["location"],
            },
        },
    },
]


def by_the_formula(messages: list[dict[str, str]]) -> int:
    """The published formula, spelt out."""
    tokens = 3
    for message in messages:
        tokens += 3 + sum(COUNTER.count(value) for value in message.values())
        tokens += 1 if "name" in message else 0
    return tokens


@pytest.mark.parametrize(("encoding", "expected"), [("o200k_base", 101), ("cl100k_base", 105)])
def test_the_published_example(encoding: str, expected: int) -> None:
    counted = Counter(encoding).count_messages(WEATHER, tools=WEATHER_TOOLS, dialect="openai")
    assert (counted.total, counted.upper, counted.exact) == (expected, expected, True)


plain = st.fixed_dictionaries(
    {"role": st.sampled_from(["system", "user", "assistant"]), "content": st.text(max_size=40)},
    optional={"name": st.text("abc", min_size=1, max_size=5)},
)


@given(st.lists(plain, max_size=6))
def test_plain_text_follows_the_formula(messages: list[dict[str, str]]) -> None:
    before = copy.deepcopy(messages)
    counted = COUNTER.count_messages(messages, dialect="openai")
    assert counted.total == by_the_formula(messages)
    assert counted.exact
    assert messages == before


def test_the_sums_add_up() -> None:
    counted = COUNTER.count_messages(WEATHER, system="Be brief.", tools=WEATHER_TOOLS)
    assert counted.per_message.dtype == np.uint32
    assert counted.per_message.tolist() == [18, 12]
    assert not counted.per_message.flags.writeable
    assert counted.system == 4 + COUNTER.count("Be brief.")
    assert (counted.tools, counted.overhead) == (68, 3)
    assert counted.total == 30 + counted.system + 68 + 3


def test_nothing_at_all() -> None:
    counted = COUNTER.count_messages([])
    assert (counted.total, counted.per_message.shape) == (3, (0,))


def test_estimates_say_so() -> None:
    estimator = Counter("o200k_base", exact=False, margin=0.5)
    counted = estimator.count_messages(WEATHER)
    assert (counted.total, counted.upper, counted.exact) == (33, 50, False)
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}
    assert not COUNTER.count_messages([image]).exact
    assert not COUNTER.count_messages(WEATHER[1:], dialect="anthropic").exact


def test_detection_and_framing_of_anthropic() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}],
        },
    ]
    counted = COUNTER.count_messages(messages, tools=[{"name": "look"}])
    assert counted.overhead == 7
    # 804 is the highest preamble that is published.
    assert counted.tools == 804 + COUNTER.count('{"name":"look"}')


def test_constants_of_gpt4() -> None:
    tools = [{"name": "look", "description": "Look around"}]
    gpt4 = Counter("cl100k_base")
    texts = gpt4.count("look:Look around") - COUNTER.count("look:Look around")
    difference = (
        gpt4.count_messages([], tools=tools).tools - COUNTER.count_messages([], tools=tools).tools
    )
    assert difference == 3 + texts


@dataclass(frozen=True)
class Scale:
    """What a calibration offers."""

    factor: float
    offset: float


def test_calibration() -> None:
    counted = COUNTER.count_messages(WEATHER, calibration=Scale(1.1, 5.0))
    assert (counted.total, counted.exact) == (42, False)
    for wrong in [object(), Scale(float("nan"), 0.0), Scale(-1.0, 0.0), 3]:
        with pytest.raises(errors.InputError) as caught:
            COUNTER.count_messages(WEATHER, calibration=wrong)
        assert caught.value.code == "invalid_value"


def test_a_counter_of_the_callers_own_sees_every_text_once() -> None:
    seen: list[str] = []

    def count(text: str) -> int:
        seen.append(text)
        return len(text)

    counted = Counter(count).count_messages(WEATHER, system="Be brief.")
    texts = [message["content"] for message in WEATHER]
    assert sorted(seen) == sorted([*texts, "Be brief."])
    assert counted.per_message.tolist() == [len(text) + 4 for text in texts]


def test_what_a_counter_raises_comes_through() -> None:
    def count(_text: str) -> int:
        raise LookupError

    with pytest.raises(errors.InputError) as caught:
        Counter(count).count_messages(WEATHER)
    assert caught.value.code == "counter_failed"
    assert isinstance(caught.value.__cause__, LookupError)


@pytest.mark.parametrize(
    ("messages", "code", "index"),
    [
        ([{"role": "user", "content": "x"}, {"role": "user", "content": 5}], "invalid_message", 1),
        ([5], "invalid_message", 0),
        ("text", "invalid_value", None),
        ({"role": "user"}, "invalid_value", None),
        (None, "invalid_value", None),
    ],
)
def test_wrong_messages(messages: Any, code: str, index: int | None) -> None:
    with pytest.raises(errors.InputError) as caught:
        COUNTER.count_messages(messages)
    assert (caught.value.code, caught.value.index) == (code, index)


@pytest.mark.parametrize("text", ["plain " * 50, "안녕 " * 50, "a\ud800b", "\ud83d\ude00", ""])
def test_texts_of_every_kind_count_as_alone(text: str) -> None:
    counted = COUNTER.count_messages([{"role": "user", "content": text}])
    assert counted.per_message.tolist() == [COUNTER.count(text) + 4]


def test_pickles() -> None:
    counted = COUNTER.count_messages(WEATHER, tools=WEATHER_TOOLS)
    again = pickle.loads(pickle.dumps(counted))
    assert isinstance(again, MessageTokens)
    assert repr(again) == repr(counted)
    assert again.per_message.tolist() == counted.per_message.tolist()
    assert not again.per_message.flags.writeable


def test_many_threads_at_once() -> None:
    messages = [{"role": "user", "content": f"{n} 안녕 hello " * 20} for n in range(200)]
    expected = COUNTER.count_messages(messages).total
    with ThreadPoolExecutor(8) as pool:
        counted = list(pool.map(COUNTER.count_messages, [messages] * 32))
    assert [tokens.total for tokens in counted] == [expected] * 32


def test_recorded_usage_of_gpt_4o() -> None:
    compared = 0
    for exchange in exchanges("openai_chat"):
        request = exchange.request
        usage: dict[str, int] = exchange.response.get("usage") or {}
        is_comparable = request.get("model", "").startswith("gpt-4o") and "prompt_tokens" in usage
        # A schema for the response is no part of messages or tools.
        if not is_comparable or "response_format" in request:
            continue
        counted = COUNTER.count_messages(request["messages"], tools=request.get("tools"))
        assert abs(counted.total - usage["prompt_tokens"]) <= (0 if counted.exact else 6)
        compared += 1
    assert compared >= 4
