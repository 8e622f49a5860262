"""`satchel.score_messages`: the keyword formula to the digit, the default weights by effect."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import _core
from satchel.errors import InputError
from satchel.windows import score_messages

Message = dict[str, Any]
WEIGHTS = [
    "recency",
    "role",
    "references",
    "decision",
    "constraint",
    "error",
    "code",
    "query",
    "brief",
]


def message(role: str, content: object) -> Message:
    return {"role": role, "content": content}


def chars3(text: str) -> int:
    return max(1, len(text) // 3) if text else 0


def oracle(messages: list[Message]) -> list[float]:
    """The founding formula."""
    scores: list[float] = []
    for i, m in enumerate(messages):
        text = m["content"].lower()
        tokens = chars3(m["content"])
        score = 0.3 * (i / len(messages))
        score += 0.2 * {"system": 1.0, "user": 0.8, "assistant": 0.5}.get(m["role"], 0.5)
        if "결정" in text or "확정" in text:
            score += 0.15
        if "중요" in text or "반드시" in text:
            score += 0.10
        if "코드" in text or "```" in text:
            score += 0.10
        if tokens < 10:
            score -= 0.15
        if tokens > 100:
            score += 0.05
        scores.append(max(0.0, min(1.0, score)))
    return scores


pieces = st.sampled_from(
    ["결정", "확정", "중요", "반드시", "코드", "```", "x" * 30, "x" * 270, "결", "정 ", "``", " A "]
)
contents = st.one_of(st.lists(pieces, max_size=5).map("".join), st.text(max_size=40))
roles = st.sampled_from(["system", "developer", "user", "assistant", "tool", "narrator"])
histories = st.lists(st.builds(message, roles, contents), max_size=20)


@given(histories)
def test_keywords_match_the_founding_formula(messages: list[Message]) -> None:
    # A role that is not known makes a message unreadable: its JSON is its text.
    known = [m for m in messages if m["role"] != "narrator"]
    scores = score_messages(known, weights="keywords", counter=_core.Counter("chars3"))
    assert scores.shape == (len(known),)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, oracle(known), rtol=0, atol=1e-6)
    np.testing.assert_array_equal(score_messages(known, weights="keywords", counter=chars3), scores)


@given(histories, st.one_of(st.none(), st.text(max_size=30)))
def test_scores_are_within_bounds_and_inputs_untouched(
    messages: list[Message], query: str | None
) -> None:
    before = copy.deepcopy(messages)
    scores = score_messages(messages, query=query)
    assert scores.shape == (len(messages),)
    assert scores.dtype == np.float32
    assert ((scores >= 0) & (scores <= 1)).all()
    np.testing.assert_array_equal(score_messages(messages, query=query), scores)
    assert messages == before


def test_the_default_counter_is_o200k() -> None:
    # Nine and ten tokens: only the first is short.
    nine = message("user", "one two three four five six seven eight nine")
    ten = message("user", "one two three four five six seven eight nine ten")
    scores = score_messages([nine, ten], weights="keywords")
    np.testing.assert_allclose(scores, [0.16 - 0.15, 0.15 + 0.16], atol=1e-6)


def test_each_weight_alone() -> None:
    history = [
        message("user", "You must keep order ORD-10023 open, that is decided, and nothing else."),
        message(
            "assistant", "```\nprint('a')\n``` is the code that I would run for that order now."
        ),
        message("tool", "the request to the server failed after a while, so nothing was changed"),
        message("assistant", "ok"),
        message("user", "And what about ORD-10023?"),
    ]
    zero = dict.fromkeys(WEIGHTS, 0.0)

    def scores(name: str, **options: Any) -> list[float]:
        found = score_messages(history, weights=zero | {name: 0.5}, **options)
        return [round(float(score), 6) for score in found]

    assert scores("recency") == [0.1, 0.2, 0.3, 0.4, 0.5]
    assert scores("role") == [0.4, 0.25, 0.15, 0.25, 0.4]
    assert scores("references") == [round(0.5 / 3, 6), 0, 0, 0, 0]
    assert scores("decision") == [0.5, 0, 0, 0, 0]
    assert scores("constraint") == [0.5, 0, 0, 0, 0]
    assert scores("error") == [0, 0, 0.5, 0, 0]
    assert scores("code") == [0, 0.5, 0, 0, 0]
    assert scores("brief") == [0, 0, 0, 0.5, 0]
    assert scores("query") == [0, 0, 0, 0, 0]
    assert scores("query", query="Which server?") == [0, 0, 0.5, 0, 0]
    assert score_messages(history, weights=zero).tolist() == [0] * 5


def test_a_constraint_outranks_newer_small_talk() -> None:
    history = [
        message("user", "예산은 반드시 200만원 이하로 잡아 주세요. 예약 번호는 BK-20771 입니다."),
        message("assistant", "알겠습니다."),
        message("user", "고마워요"),
        message("assistant", "천만에요"),
        message("user", "BK-20771 예약을 확인해 주세요"),
    ]
    scores = score_messages(history)
    assert scores[0] > scores[1:4].max()


def test_call_arguments_refer_to_earlier_messages() -> None:
    zero = dict.fromkeys(WEIGHTS, 0.0) | {"references": 1.0}
    arguments = {"path": "src/engine/queue.py"}
    openai = {"name": "read", "arguments": '{"path": "src/engine/queue.py"}'}
    calls: list[Message] = [
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": openai}]},
        message("assistant", [{"type": "tool_use", "id": "a", "name": "read", "input": arguments}]),
    ]
    for call in calls:
        history = [message("user", "Look into src/engine/queue.py, please."), call]
        np.testing.assert_allclose(score_messages(history, weights=zero), [1 / 3, 0], atol=1e-6)


@pytest.mark.parametrize("odd", [None, 5, "text", [], {}, object(), {"role": "user", "content": 7}])
def test_what_cannot_be_read_is_scored(odd: object) -> None:
    for weights in (None, "keywords"):
        options: Any = {"weights": weights}
        scores = score_messages([odd, message("user", "a")], query="a", **options)
        assert scores.shape == (2,)


def test_no_messages() -> None:
    assert score_messages([]).shape == (0,)
    assert score_messages([], weights="keywords").dtype == np.float32


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"weights": "words"}, "invalid_value"),
        ({"weights": {"age": 1.0}}, "invalid_value"),
        ({"weights": {"role": math.nan}}, "invalid_value"),
        ({"weights": {"role": math.inf}}, "invalid_value"),
        ({"weights": {"role": "1"}}, "invalid_value"),
        ({"weights": {5: 1.0}}, "invalid_value"),
        ({"weights": 5}, "invalid_value"),
        ({"query": 5}, "invalid_value"),
        ({"messages": "text"}, "invalid_value"),
        ({"counter": 5}, "invalid_value"),
        ({"model": "morse-1"}, "unknown_model"),
    ],
)
def test_options_that_are_refused(options: dict[str, Any], code: str) -> None:
    messages = options.get("messages", [])
    with pytest.raises(InputError) as caught:
        score_messages(messages, **{k: v for k, v in options.items() if k != "messages"})
    assert caught.value.code == code


def test_an_unknown_weight_is_named() -> None:
    with pytest.raises(InputError, match="'age'"):
        score_messages([], weights={"age": 1.0})
