"""The one-call functions against LangChain's `trim_messages` with a tiktoken counter.

Input: plain chat messages of about 400 characters as dicts, budget 25 % of their exact tokens.
Both sides start from the dicts, cache nothing and return the same messages, which is checked.
Run as a script it prints CPU time (min / median / max) and the ratios; under pytest the same
functions are pytest-benchmark benches.
"""

from __future__ import annotations

import statistics
import time
from functools import cache, partial
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pytest
from langchain_core.messages import (
    BaseMessage,
    trim_messages,  # pyright: ignore[reportUnknownVariableType] - one of its options is untyped
)

import rivals
import satchel
from satchel.testing import generate_chat, require_release

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

SIZES = (100, 1_000, 10_000)
SHARE = 4  # the budget is a quarter of all tokens

Message = dict[str, Any]


@cache
def chat(size: int) -> tuple[list[Message], int]:
    """The messages, and the budget in tokens."""
    messages = generate_chat(size, seed=7)
    counts = satchel.counter("o200k_base").count_many([m["content"] for m in messages])
    return messages, int(counts.sum()) // SHARE


def ours(size: int) -> list[Message]:
    messages, budget = chat(size)
    return satchel.token_window(messages, budget)


def ours_for_a_model(size: int) -> list[Message]:
    messages, budget = chat(size)
    return satchel.token_window(messages, budget, model="gpt-4o")


def langchain(size: int) -> list[BaseMessage]:
    messages, budget = chat(size)
    encode = rivals.encoding().encode_ordinary

    def count(window: list[BaseMessage]) -> int:
        return sum(len(encode(m.text)) for m in window)

    trimmed: list[BaseMessage] = trim_messages(
        messages, max_tokens=budget, token_counter=count, strategy="last"
    )
    return trimmed


def tiktoken_alone(size: int) -> int:
    """What counting each message of the window once costs with tiktoken."""
    messages, budget = chat(size)
    encode = rivals.encoding().encode_ordinary
    for kept, message in enumerate(reversed(messages)):
        budget -= len(encode(message["content"]))
        if budget < 0:
            return kept
    return len(messages)


def check(size: int) -> None:
    """The rivals' windows are the same."""
    window = ours(size)
    assert [m["content"] for m in window] == [m.content for m in langchain(size)]
    assert len(window) == tiktoken_alone(size)
    assert 0 < len(window) < size


@pytest.mark.parametrize("size", SIZES)
def bench_token_window(benchmark: BenchmarkFixture, size: int) -> None:
    check(size)
    benchmark.group = f"token_window/{size}"
    benchmark(ours, size)


@pytest.mark.parametrize("size", SIZES)
def bench_token_window_langchain(benchmark: BenchmarkFixture, size: int) -> None:
    check(size)
    benchmark.group = f"token_window/{size}"
    benchmark(langchain, size)


@pytest.mark.parametrize("size", SIZES)
def bench_token_window_model(benchmark: BenchmarkFixture, size: int) -> None:
    benchmark.group = f"token_window/{size}"
    assert benchmark(ours_for_a_model, size)


@pytest.mark.parametrize("size", SIZES)
def bench_sliding_window(benchmark: BenchmarkFixture, size: int) -> None:
    messages, _ = chat(size)
    window = cast("object", benchmark(partial(satchel.sliding_window, messages, 20)))
    assert window == messages[-20:]


@pytest.mark.parametrize("weights", ["keywords", None])
def bench_score_messages(benchmark: BenchmarkFixture, weights: Literal["keywords"] | None) -> None:
    messages, _ = chat(10_000)
    scores = cast("object", benchmark(partial(satchel.score_messages, messages, weights=weights)))
    assert isinstance(scores, np.ndarray)
    assert scores.size == 10_000


def bench_prune_tool_outputs(benchmark: BenchmarkFixture) -> None:
    messages = [{**m, "role": "tool"} for m in chat(10_000)[0]]
    pruned = cast("object", benchmark(partial(satchel.prune_tool_outputs, messages)))
    assert pruned != messages


def cpu_times(runs: int, repeats: int, work: Callable[..., object], *given: Any) -> list[float]:  # noqa: ANN401 - passed on
    """CPU seconds of one call in each of ``runs`` runs, after one to warm up."""
    work(*given)
    found: list[float] = []
    for _ in range(runs):
        start = time.process_time()
        for _ in range(repeats):
            work(*given)
        found.append((time.process_time() - start) / repeats)
    return found


def line(name: str, times: list[float], against: float | None = None) -> None:
    low, middle, high = min(times), statistics.median(times), max(times)
    ratio = "" if against is None else f"{against / middle:10.1f} x"
    print(f"{name:34}{low * 1e3:10.3f}{middle * 1e3:10.3f}{high * 1e3:10.3f}{ratio}")


def compare(size: int) -> None:
    """The rows of one size."""
    check(size)
    few, many = max(1, 1_000 // size), max(1, 10_000 // size)
    print(f"\n{size} messages, window {len(ours(size))}, budget {chat(size)[1]} tokens")
    rival = cpu_times(7, few, langchain, size)
    middle = statistics.median(rival)
    line("langchain trim_messages, tiktoken", rival)
    line("tiktoken, window counted once", cpu_times(7, few, tiktoken_alone, size), middle)
    line("satchel.token_window", cpu_times(15, many, ours, size), middle)
    line("satchel.token_window, model=", cpu_times(15, many, ours_for_a_model, size), middle)


def main() -> None:
    require_release()
    names = ("satchel", "langchain-core", "tiktoken")
    print(*(f"{name} {metadata.version(name)}" for name in names), sep=", ")
    print(f"{'CPU ms per call':34}{'min':>10}{'median':>10}{'max':>10}   times faster")
    for size in SIZES:
        compare(size)
    messages, _ = chat(10_000)
    tools = [{**m, "role": "tool"} for m in messages]
    print("\n10000 messages")
    line("satchel.sliding_window, 20", cpu_times(15, 3, satchel.sliding_window, messages, 20))
    line("satchel.score_messages", cpu_times(15, 1, satchel.score_messages, messages))
    keywords = partial(satchel.score_messages, weights="keywords")
    line("satchel.score_messages, keywords", cpu_times(15, 1, keywords, messages))
    line("satchel.prune_tool_outputs", cpu_times(15, 1, satchel.prune_tool_outputs, tools))


if __name__ == "__main__":
    main()
