"""Usage records of every provider, and what is learnt from them."""

from __future__ import annotations

import pickle
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel import Calibration, Usage, usage_tokens
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORDS: list[tuple[str, dict[str, Any], Usage]] = [
    (
        "openai chat",
        {
            "prompt_tokens": 1_000,
            "completion_tokens": 50,
            "total_tokens": 1_050,
            "prompt_tokens_details": {"cached_tokens": 896, "audio_tokens": 0},
        },
        Usage(1_000, 896, 0, 50),
    ),
    (
        "openai responses",
        {
            "input_tokens": 1_000,
            "input_tokens_details": {"cached_tokens": 896},
            "output_tokens": 50,
            "output_tokens_details": {"reasoning_tokens": 40},
        },
        Usage(1_000, 896, 0, 50),
    ),
    (
        "anthropic",
        {
            "input_tokens": 4,
            "cache_read_input_tokens": 900,
            "cache_creation_input_tokens": 96,
            "output_tokens": 50,
        },
        Usage(1_000, 900, 96, 50),
    ),
    (
        "anthropic without a cache",
        {
            "input_tokens": 1_000,
            "cache_read_input_tokens": None,
            "cache_creation_input_tokens": None,
            "output_tokens": 50,
        },
        Usage(1_000, 0, 0, 50),
    ),
    (
        "anthropic with compaction",
        {
            "input_tokens": 200,
            "output_tokens": 30,
            "iterations": [
                {"type": "compaction", "input_tokens": 55_000, "output_tokens": 400},
                {
                    "type": "message",
                    "input_tokens": 200,
                    "output_tokens": 30,
                    "cache_read_input_tokens": 10,
                    "cache_creation_input_tokens": 0,
                },
            ],
        },
        Usage(55_210, 10, 0, 430),
    ),
    (
        "gemini",
        {
            "promptTokenCount": 990,
            "toolUsePromptTokenCount": 10,
            "cachedContentTokenCount": 700,
            "candidatesTokenCount": 20,
            "thoughtsTokenCount": 30,
            "totalTokenCount": 1_050,
        },
        Usage(1_000, 700, 0, 50),
    ),
    (
        "gemini's python client",
        {
            "prompt_token_count": 1_000,
            "cached_content_token_count": None,
            "candidates_token_count": 50,
            "thoughts_token_count": None,
        },
        Usage(1_000, 0, 0, 50),
    ),
    (
        "bedrock",
        {
            "inputTokens": 4,
            "cacheReadInputTokens": 900,
            "cacheWriteInputTokens": 96,
            "outputTokens": 50,
            "totalTokens": 1_050,
        },
        Usage(1_000, 900, 96, 50),
    ),
    (
        "deepseek",
        {
            "prompt_tokens": 1_000,
            "completion_tokens": 50,
            "prompt_cache_hit_tokens": 640,
            "prompt_cache_miss_tokens": 360,
        },
        Usage(1_000, 640, 0, 50),
    ),
    (
        "litellm for claude",
        {
            "prompt_tokens": 1_000,
            "completion_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 900, "cache_creation_tokens": 96},
            "cache_read_input_tokens": 900,
            "cache_creation_input_tokens": 96,
        },
        Usage(1_000, 900, 96, 50),
    ),
    (
        "langchain",
        {
            "input_tokens": 1_000,
            "output_tokens": 50,
            "total_tokens": 1_050,
            "input_token_details": {"cache_read": 900, "cache_creation": 96},
        },
        Usage(1_000, 900, 96, 50),
    ),
    (
        "an agent's log",
        {"input": 4, "output": 50, "cacheRead": 900, "cacheWrite": 96},
        Usage(1_000, 900, 96, 50),
    ),
    (
        "another agent's log",
        {"inputOther": 4, "output": 50, "inputCacheRead": 900, "inputCacheCreation": 96},
        Usage(1_000, 900, 96, 50),
    ),
    (
        "a rollout",
        {"input_tokens": 1_000, "cached_input_tokens": 896, "output_tokens": 50},
        Usage(1_000, 896, 0, 50),
    ),
]


def as_object(value: Any) -> Any:
    """The same record as an SDK would hand it over."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return SimpleNamespace(**{key: as_object(inner) for key, inner in fields.items()})
    if isinstance(value, list):
        return [as_object(inner) for inner in cast("Iterable[Any]", value)]
    return value


@pytest.mark.parametrize(
    ("record", "expected"), [row[1:] for row in RECORDS], ids=[r[0] for r in RECORDS]
)
def test_every_provider_s_record(record: dict[str, Any], expected: Usage) -> None:
    assert usage_tokens(record) == expected
    assert usage_tokens(as_object(record)) == expected
    for wrapped in (
        {"id": "r", "usage": record},
        {"usageMetadata": record},
        {"type": "assistant", "message": {"role": "assistant", "usage": record}},
        {"response_metadata": {"token_usage": record}},
    ):
        assert usage_tokens(wrapped) == expected
        assert usage_tokens(as_object(wrapped)) == expected


@pytest.mark.parametrize(
    "nothing",
    [None, {}, "text", 5, [], {"usage": None}, {"usage": {}}, {"usage": {"input_tokens": True}}],
)
def test_no_usage_is_an_error(nothing: object) -> None:
    with pytest.raises(InputError) as caught:
        usage_tokens(nothing)
    assert caught.value.code == "invalid_value"


def test_a_loop_between_objects_ends() -> None:
    message = SimpleNamespace()
    message.message = message
    with pytest.raises(InputError):
        usage_tokens(message)


# --- calibration ----------------------------------------------------------------------------------


def test_the_next_estimate_is_anchored_on_the_last_report() -> None:
    learnt = Calibration()
    for call in range(1, 20):
        learnt = learnt.observe(call * 1_000, 30_000 + call * 1_200)
    assert learnt.n == 19
    assert learnt.estimate(19_000) == 30_000 + 19 * 1_200
    assert learnt.estimate(20_000) == pytest.approx(30_000 + 20 * 1_200, rel=0.001)
    assert learnt.margin is not None


def test_windows_counts_and_usages_are_taken() -> None:
    packer = satchel.Assembler("claude-sonnet-4-5")
    messages = [{"role": "user", "content": "How far is the moon?"}]
    window = packer.assemble(messages)
    counted = packer.counter.count_messages(messages, dialect="anthropic")
    usage = usage_tokens({"input_tokens": 20, "output_tokens": 3})
    expected = Calibration().observe(window.tokens, 20)
    assert Calibration().observe(window, usage) == expected
    assert Calibration().observe(counted, usage) == expected


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, None, "12", object()])
def test_what_is_no_report(wrong: object) -> None:
    for estimated, usage in ((wrong, 5), (5, wrong)):
        with pytest.raises(InputError) as caught:
            Calibration().observe(estimated, usage)
        assert caught.value.code == "invalid_value"


def test_a_calibration_is_a_value() -> None:
    first = Calibration().observe(1_000, 1_200)
    assert pickle.loads(pickle.dumps(first)) == first
    assert hash(pickle.loads(pickle.dumps(first))) == hash(first)
    assert first != Calibration()
    assert Calibration().n == 0
    with pytest.raises(InputError):
        Calibration(factor=float("nan"))


def test_counting_with_a_calibration() -> None:
    own = satchel.counter("claude-sonnet-4-5")
    messages = [{"role": "user", "content": "words " * 500}]
    plain = own.count_messages(messages, dialect="anthropic")
    learnt = Calibration().observe(plain, plain.total + 700)
    scaled = own.count_messages(messages, dialect="anthropic", calibration=learnt)
    assert scaled.total == plain.total + 700
    assert scaled.upper >= scaled.total
    assert not scaled.exact
    assert scaled.per_message.tolist() == plain.per_message.tolist()


def history(calls: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Read the files."}]
    for call in range(calls):
        use = {"type": "tool_use", "id": f"c{call}", "name": "read", "input": {"path": f"f{call}"}}
        result = {
            "type": "tool_result",
            "tool_use_id": f"c{call}",
            "content": "line of text\n" * 60,
        }
        messages += [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    return messages


@given(
    calls=st.integers(0, 12),
    factor=st.floats(0.7, 1.6),
    hidden=st.integers(0, 600),
    budget=st.integers(1_500, 6_000),
)
def test_a_calibrated_budget_holds_in_reported_tokens(
    calls: int, factor: float, hidden: int, budget: int
) -> None:
    """What a provider with other counts and hidden parts would report stays within the budget."""
    packer = satchel.Assembler("claude-sonnet-4-5", budget=budget)
    working_set = packer.working_set()
    learnt = Calibration()
    for message in history(calls):
        if message["role"] == "assistant":
            try:
                window = working_set.window()
            except satchel.BudgetError:
                return
            counted = packer.counter.count_messages(window.messages, dialect="anthropic")
            assert counted.total == window.tokens
            reported = int(window.tokens * factor) + hidden
            if learnt.n:
                assert window.tokens_upper <= budget
                assert learnt.estimate(window.tokens) <= window.tokens_upper
            learnt = learnt.observe(window, reported)
            working_set.apply(learnt.event())
        working_set.append(message)
    rebuilt = packer.working_set(working_set.messages, events=working_set.events)
    assert rebuilt.explain() == working_set.explain()


@pytest.mark.parametrize(
    "event",
    [
        {"kind": "calibration"},
        {"kind": "calibration", "factor": "1", "offset": 0},
        {"kind": "calibration", "factor": 0, "offset": 0},
        {"kind": "calibration", "factor": 1.0, "offset": 0, "margin": -1},
        {"kind": "calibration", "factor": 1.0, "offset": 0, "other": 1},
    ],
)
def test_wrong_calibration_events(event: dict[str, Any]) -> None:
    working_set = satchel.Assembler("gpt-4o").working_set()
    with pytest.raises(InputError) as caught:
        working_set.apply(event)
    assert caught.value.code in ("invalid_event", "invalid_value")
