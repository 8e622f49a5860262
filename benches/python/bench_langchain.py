"""The drop-ins beside their originals, in one run: a Markdown table.

    python benches/python/bench_langchain.py [SIZES...]

Same input, same budget (a quarter of the history) and same output, which is checked, except for
litellm, whose rules differ. Best of three runs of each side, wall time of this process; the agent
loop runs once. Both sides count each text before the clock starts once.
"""

from __future__ import annotations

import os
import random
import sys
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from unittest.mock import patch

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage, utils

import rivals
import satchel
from satchel import langchain as ours
from satchel.langchain.exact import as_chat
from satchel.litellm import trim_messages as trim_chat
from satchel.testing import generate_chat, require_release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

SIZES = (100, 1_000, 10_000, 100_000)
LOOP = 1_000
CUTS = 10_000
LITELLM_SIZE = 1_000
ESTIMATE: Any = "approximate"
COUNTER = satchel.counter("gpt-4o")
TRIM: Callable[..., list[BaseMessage]] = getattr(utils, "trim_messages")  # noqa: B009 - see rivals


def mixed(size: int) -> list[str]:
    """Texts of about 400 characters."""
    return [str(message["content"]) for message in generate_chat(size)]


def conversation(size: int) -> list[BaseMessage]:
    """A seeded history of tool calls, about 400 characters a message."""
    texts = mixed(size)
    found: list[BaseMessage] = []
    while len(found) < size:
        at = len(found)
        name = f"call_{at}"
        call = {"name": "search", "args": {"query": f"part {at}"}, "id": name}
        found += [
            HumanMessage(texts[at % size]),
            AIMessage("", tool_calls=[call]),
            ToolMessage(texts[(at + 2) % size], tool_call_id=name),
            AIMessage(texts[(at + 3) % size]),
        ]
    return found[:size]


def timed(work: Callable[[], Any], runs: int = 3) -> tuple[float, Any]:
    """Seconds of the best run, and the result."""
    seconds: list[float] = []
    result: Any = None
    for _ in range(runs):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    return min(seconds), result


def same(left: Sequence[Any], right: Sequence[Any]) -> bool:
    return len(left) == len(right) and all(a is b for a, b in zip(left, right, strict=True))


def row(name: str, mine: float, peer: float, note: str = "") -> None:
    print(
        f"| {name} | {mine * 1e3:,.2f} ms | {peer * 1e3:,.1f} ms | {peer / mine:,.0f} | {note} |",
        flush=True,
    )


def tiktoken_counter() -> Callable[[list[BaseMessage]], int]:
    """What LangChain's OpenAI models count with: the chat formula over tiktoken."""
    encode = rivals.encoding().encode_ordinary

    def count(messages: list[BaseMessage]) -> int:
        return 3 + sum(4 + len(encode(str(message.content))) for message in messages)

    return count


def trims(sizes: Sequence[int]) -> None:
    for size in sizes:
        history = conversation(size)
        budget = utils.count_tokens_approximately(history) // 4
        options: dict[str, Any] = {"max_tokens": budget, "token_counter": ESTIMATE}
        mine, found = timed(partial(ours.trim_messages, history, **options))
        peer, expected = timed(partial(TRIM, history, **options), 3 if size < 100_000 else 1)
        assert same(found, expected)
        row(f"trim, approximate, {size:,} messages", mine, peer)
        chat: list[BaseMessage] = [HumanMessage(text) for text in mixed(size)]
        budget = 25 * size
        options = {"max_tokens": budget, "token_counter": COUNTER}
        mine, found = timed(partial(ours.trim_messages, chat, **options))
        options["token_counter"] = tiktoken_counter()
        peer, expected = timed(partial(TRIM, chat, **options), 3 if size < 10_000 else 1)
        assert same(found, expected)
        row(f"trim, exact, {len(chat):,} messages", mine, peer, "tiktoken in LangChain")


def loop(
    trim: Callable[..., list[BaseMessage]], history: list[BaseMessage], **options: object
) -> int:
    """An agent that appends a message and asks for its window, each step; messages it sent."""
    grown: list[BaseMessage] = []
    sent = 0
    for message in history:
        grown.append(message)
        sent += len(trim(grown, **options))
    return sent


def loops() -> None:
    history = conversation(LOOP)
    options: dict[str, Any] = {"max_tokens": 8_000, "token_counter": ESTIMATE}
    mine, found = timed(partial(loop, ours.trim_messages, history, **options))
    peer, expected = timed(partial(loop, TRIM, history, **options), 1)
    assert found == expected
    row(f"agent loop of {LOOP:,} steps, approximate", mine, peer)
    chat: list[BaseMessage] = [HumanMessage(text) for text in mixed(LOOP)]
    options["token_counter"] = COUNTER
    mine, found = timed(partial(loop, ours.trim_messages, chat, **options))
    options["token_counter"] = tiktoken_counter()
    peer, expected = timed(partial(loop, TRIM, chat, **options), 1)
    assert found == expected
    row(f"agent loop of {LOOP:,} steps, exact", mine, peer, "tiktoken in LangChain")


def litellm_trim() -> Callable[..., Any]:
    """The function of litellm; its model list comes with the package, nothing is fetched."""
    with patch.dict(os.environ, {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}):
        import litellm  # noqa: PLC0415 - takes seconds to import
    return cast("Callable[..., Any]", getattr(litellm.utils, "trim_messages"))  # noqa: B009 - untyped


def litellm_row(trim: Callable[..., Any]) -> None:
    chat = [as_chat(message) for message in conversation(LITELLM_SIZE)]
    budget = COUNTER.count_messages(chat, dialect="openai").total // 4
    mine, found = timed(lambda: trim_chat(chat, "gpt-4o", max_tokens=budget))
    peer, expected = timed(lambda: trim(chat, "gpt-4o", max_tokens=budget), 1)
    assert len(found) > 0 < len(expected)
    sizes = [COUNTER.count_messages(each, dialect="openai").total for each in (found, expected)]
    note = f"{sizes[0]:,} tokens of {budget:,}; litellm {sizes[1]:,}"
    row(f"litellm, {LITELLM_SIZE:,} messages", mine, peer, note)


def is_invalid(chat: list[dict[str, Any]]) -> bool:
    return any(each.severity == "error" for each in satchel.lint(chat, "openai"))


def cuts(litellm: Callable[..., Any]) -> None:
    """Windows that a provider refuses, of random cuts of a short tool history."""
    rng = random.Random(11)  # noqa: S311 - budgets need a seed, not a secret
    history = conversation(40)
    total = utils.count_tokens_approximately(history)
    exact = COUNTER.count_messages([as_chat(each) for each in history], dialect="openai").total
    bad = [0, 0, 0, 0, 0]
    litellm_cuts = CUTS // 100
    chat = [as_chat(each) for each in history]
    for number in range(CUTS):
        most = rng.randrange(total)
        options: dict[str, Any] = {"max_tokens": most, "token_counter": ESTIMATE}
        most_exact = rng.randrange(exact)
        bad[0] += is_invalid([as_chat(each) for each in TRIM(history, **options)])
        options["keep_steps"] = True
        bad[1] += is_invalid([as_chat(each) for each in ours.trim_messages(history, **options)])
        options |= {"max_tokens": most_exact, "token_counter": COUNTER}
        bad[2] += is_invalid([as_chat(each) for each in ours.trim_messages(history, **options)])
        with suppress(satchel.BudgetError):  # a typed error is no window
            bad[3] += is_invalid(trim_chat(chat, "gpt-4o", max_tokens=most_exact))
        if number < litellm_cuts:
            bad[4] += is_invalid(litellm(chat, "gpt-4o", max_tokens=most_exact))
    print(
        f"\n| invalid windows of {CUTS:,} random cuts | |\n|---|---|\n"
        f"| LangChain, approximate | {bad[0]:,} |\n"
        f"| satchel.langchain with `keep_steps`, approximate / exact | {bad[1]} / {bad[2]} |\n"
        f"| litellm, of {litellm_cuts} | {bad[4]} |\n"
        f"| satchel.litellm | {bad[3]} |"
    )


def bench_trim_of_100_messages(benchmark: Callable[..., list[BaseMessage]]) -> None:
    history = conversation(100)
    options: dict[str, Any] = {"max_tokens": 2_000, "token_counter": ESTIMATE}
    found = benchmark(ours.trim_messages, history, **options)
    assert same(found, TRIM(history, **options))


def main() -> None:
    require_release()
    sizes = [int(size) for size in sys.argv[1:]] or list(SIZES)
    # Vocabularies and imports are loaded before the clock starts.
    COUNTER.count("hello")
    rivals.encoding()
    print("| measure | satchel | original | ratio | |\n|---|---|---|---|---|")
    trims(sizes)
    loops()
    litellm = litellm_trim()
    litellm_row(litellm)
    cuts(litellm)


if __name__ == "__main__":
    main()
