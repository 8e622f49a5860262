"""Windows and scores on columns: what slow obvious versions say, and the same as on messages."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel import arrays
from satchel.errors import InputError

ROLE = {"system": 1.0, "developer": 1.0, "user": 0.8, "assistant": 0.5, "tool": 0.3}
WEIGHTS = {
    "recency": 0.25,
    "role": 0.25,
    "decision": 0.15,
    "constraint": 0.15,
    "error": 0.10,
    "code": 0.05,
    "brief": -0.20,
}

rows = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.booleans(),
        st.integers(0, len(arrays.ROLES) - 1),
        st.integers(0, sum(arrays.SIGNALS.values())),
    ),
    max_size=30,
)


@st.composite
def columns(draw: st.DrawFn) -> tuple[list[Any], list[int]]:
    found = draw(rows)
    cuts = draw(st.lists(st.integers(0, len(found)), min_size=1, max_size=6))
    return found, sorted(cuts)


def slow_window(tokens: list[int], protected: list[bool], limit: int, start: int) -> list[int]:
    """Every suffix of the others is tried, the longest that fits wins."""
    others = [at for at, kept in enumerate(protected) if not kept]
    always = [at for at, kept in enumerate(protected) if kept]
    for first in range(len(others) + 1):
        chosen = sorted(always + others[first:])
        if first == len(others) or sum(tokens[at] for at in chosen) <= limit:
            return [start + at for at in chosen]
    raise AssertionError


def slow_score(roles: list[int], tokens: list[int], signals: list[int]) -> list[float]:
    found: list[float] = []
    for at, (role, count, bits) in enumerate(zip(roles, tokens, signals, strict=True)):
        score = WEIGHTS["recency"] * (at + 1) / len(roles)
        score += WEIGHTS["role"] * ROLE[arrays.ROLES[role]]
        score += sum(WEIGHTS[name] for name, bit in arrays.SIGNALS.items() if bits & bit)
        score += WEIGHTS["brief"] if count < 10 and not bits else 0
        found.append(min(1.0, max(0.0, score)))
    return found


def slow_keywords(roles: list[int], tokens: list[int], signals: list[int]) -> list[float]:
    found: list[float] = []
    for at, (role, count, bits) in enumerate(zip(roles, tokens, signals, strict=True)):
        score = 0.3 * at / len(roles)
        score += 0.2 * {"system": 1.0, "user": 0.8}.get(arrays.ROLES[role], 0.5)
        points = {"decision": 0.15, "constraint": 0.1, "code": 0.1}
        score += sum(more for name, more in points.items() if bits & arrays.SIGNALS[name])
        score += (-0.15 if count < 10 else 0) + (0.05 if count > 100 else 0)
        found.append(min(1.0, max(0.0, score)))
    return found


@given(columns(), st.data())
def test_windows_match_the_oracle(given_rows: tuple[list[Any], list[int]], data: Any) -> None:
    found, offsets = given_rows
    tokens = [row[0] for row in found]
    protected = [row[1] for row in found]
    limits = [data.draw(st.integers(0, 200)) for _ in offsets[1:]]
    wanted: list[int] = []
    for (start, end), limit in zip(pairwise(offsets), limits, strict=True):
        wanted += slow_window(tokens[start:end], protected[start:end], limit, start)
    flags = np.array(protected, dtype=np.bool_)
    if len(limits) != 1:
        got = arrays.token_window(tokens, flags, limits, offsets=offsets)
    else:
        got = arrays.token_window(tokens, flags, limits[0], offsets=offsets)
    assert got.dtype == np.int64
    assert got.tolist() == wanted


@given(columns())
def test_scores_match_the_oracle(given_rows: tuple[list[Any], list[int]]) -> None:
    found, offsets = given_rows
    tokens = [row[0] * 3 for row in found]
    roles, signals = [row[2] for row in found], [row[3] for row in found]
    slow = {None: slow_score, "keywords": slow_keywords}
    for weights in (None, "keywords"):
        wanted = np.zeros(len(found))
        for start, end in pairwise(offsets):
            wanted[start:end] = slow[weights](
                roles[start:end], tokens[start:end], signals[start:end]
            )
        got = arrays.score(roles, tokens, signals, weights=weights, offsets=offsets)
        assert got.dtype == np.float32
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-6)


@given(st.lists(st.sampled_from(["system", "user", "assistant"]), max_size=12), st.integers(0, 60))
def test_as_on_messages(names: list[str], limit: int) -> None:
    counter = satchel.counter("gpt-4o")
    messages = [{"role": name, "content": "word " * (at * 3 % 11)} for at, name in enumerate(names)]
    tokens = counter.count_many([message["content"] for message in messages])
    protected = np.array([name == "system" for name in names], dtype=np.bool_)
    got = arrays.token_window(tokens, protected, limit)
    kept = satchel.token_window(messages, limit, counter=counter)
    places = {id(message): at for at, message in enumerate(messages)}
    assert got.tolist() == sorted(places[id(message)] for message in kept)
    roles = [arrays.ROLES.index(name) for name in names]
    scores = arrays.score(roles, tokens, np.zeros(len(names), np.uint8), weights="keywords")
    assert scores.tolist() == satchel.score_messages(messages, weights="keywords").tolist()


def test_weights_replace_the_default_ones() -> None:
    got = arrays.score([2, 2], [50, 50], [0, 0], weights={"recency": 0, "role": 0.5})
    assert got.tolist() == pytest.approx([0.4, 0.4])
    assert arrays.score([], [], [], weights=None).tolist() == []


# What the checkers would not let through.
window: Any = arrays.token_window
score: Any = arrays.score


@pytest.mark.parametrize(
    "call",
    [
        lambda: window([1, 2], [True], 5),
        lambda: window([-1], [True], 5),
        lambda: window([1 << 32], [True], 5),
        lambda: window([1.5], [True], 5),
        lambda: window([[1]], [True], 5),
        lambda: window([1], [1], 5),
        lambda: window([1], [True], -5),
        lambda: window([1], [True], [5, 6]),
        lambda: window([1], [True], 5, offsets=[0, 2]),
        lambda: window([1], [True], 5, offsets=[1, 0]),
        lambda: window([1], [True], 5, offsets=[-1, 1]),
        lambda: window([1], [True], 5, offsets=[]),
        lambda: window(["x"], [True], 5),
        lambda: window([1, [2]], [True], 5),
        lambda: score([5], [1], [0], weights=None),
        lambda: score([0], [1], [16], weights=None),
        lambda: score([0], [1, 2], [0], weights=None),
        lambda: score([0], [1], [0], weights={"query": 1}),
        lambda: score([0], [1], [0], weights={"luck": 1}),
        lambda: score([0], [1], [0], weights={"role": float("nan")}),
        lambda: score([0], [1], [0], weights="words"),
    ],
)
def test_what_is_no_column_is_refused(call: Any) -> None:
    with pytest.raises(InputError) as caught:
        call()
    assert caught.value.code == "invalid_value"


def test_other_threads_run_meanwhile() -> None:
    size = 2_000_000
    tokens, protected = np.ones(size, np.uint32), np.zeros(size, np.bool_)
    offsets = np.arange(0, size + 1, 100)
    found: list[int] = []

    def work() -> None:
        found.append(len(arrays.token_window(tokens, protected, 7, offsets=offsets)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [7 * (size // 100)] * 4
