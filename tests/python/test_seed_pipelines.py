"""The classic pipelines of rolling summaries, with their exact numbers, beside plain versions.

Each pipeline is written down here in a few lines, as one would without satchel. The preset must
summarise at the same turn, take in the same messages and keep the same ones; in English and Korean.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.policy import Policy
from satchel.stores import MemoryStore
from satchel.summarize import SummaryRequest, SummaryResult

if TYPE_CHECKING:
    from satchel.summarize.base import Language

LANGUAGES: tuple[Language, ...] = ("en", "ko")
SAYINGS = {
    "en": ("I moor at berth {n} tonight, please note it", "Berth {n} is noted for tonight"),
    "ko": (
        "오늘 밤에는 {n}번 선석에 배를 댑니다. 적어 두세요",
        "오늘 밤 {n}번 선석으로 적어 두었습니다",
    ),
}
HEADINGS = {"en": "## Progress", "ko": "## 진행 상황"}


class Notes:
    """A model that notes which messages it was given, after the notes before."""

    name = "notes"

    def __init__(self) -> None:
        self.requests: list[SummaryRequest] = []

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        self.requests.append(request)
        before = request.previous or HEADINGS[request.language]
        return SummaryResult(text=f"{before}\n- part {len(self.requests)}")


def said(number: int, language: Language, more: str = "") -> dict[str, Any]:
    text = SAYINGS[language][number % 2].format(n=number)
    return {"role": "assistant" if number % 2 else "user", "content": f"{text}. {more}".strip()}


def opened(policy: str, notes: Notes, **options: Any) -> satchel.Session:
    wanted: dict[str, Any] = {
        "session_id": "s",
        "model": "gpt-4o",
        "budget": 8_000,
        "policy": policy,
        "summarizer": notes,
        **options,
    }
    return satchel.open_session(MemoryStore(), **wanted)


async def covered(session: satchel.Session) -> list[tuple[int, int]]:
    """The parts that summaries took in; the goal stays in sight, so it is not among them."""
    return [tuple(e["covers"]) for e in await session.events() if e["kind"] == "summary"]


def held_after(messages: int, parts: list[tuple[int, int]]) -> int:
    return messages - (parts[-1][1] if parts else 0)


@pytest.mark.parametrize("language", LANGUAGES)
def test_summary_memory(language: Language) -> None:
    """More than 10 messages: the oldest 8 and the summary before become the new summary."""

    async def work() -> None:
        notes = Notes()
        parts: list[tuple[int, int]] = []
        held, rounds = 0, 0
        async with opened("rolling-summary", notes) as session:
            for number in range(40):
                await session.append(said(number, language))
                await session.compact()
                # The plain version.
                held += 1
                if held > 10:
                    held, rounds = held - 8, rounds + 1
                parts = await covered(session)
                assert (len(parts), held_after(number + 1, parts)) == (rounds, held)
                window = await session.window()
                shown = json.dumps(window.messages, ensure_ascii=False)
                for recent in range(number + 1 - held, number + 1):
                    assert said(recent, language)["content"] in shown
                assert shown.count("<summary source=") == (1 if rounds else 0)
        assert rounds == 4
        assert [end for _, end in parts] == [8, 16, 24, 32]
        assert {request.max_tokens for request in notes.requests} == {300}
        assert {request.language for request in notes.requests} == {language}
        # Each goes on from the one before.
        assert [request.previous is None for request in notes.requests] == [
            True,
            False,
            False,
            False,
        ]
        assert notes.requests[1].previous == f"{HEADINGS[language]}\n- part 1"

    asyncio.run(work())


@pytest.mark.parametrize("language", LANGUAGES)
def test_rotation_in_a_graph(language: Language) -> None:
    """More than 8 messages: all but 2 go into the summary; 11 turns, as a graph takes them."""

    async def work() -> None:
        before: list[int] = []
        after: list[int] = []
        parts: list[tuple[int, int]] = []
        async with opened("rolling-summary:graph", Notes()) as session:
            for turn in range(11):
                parts = await covered(session)
                before.append(held_after(2 * turn + 2, parts))
                await session.append([said(2 * turn, language), said(2 * turn + 1, language)])
                await session.compact()
                parts = await covered(session)
                after.append(held_after(2 * turn + 2, parts))
        assert after == [2, 4, 6, 8, 2, 4, 6, 8, 2, 4, 6]
        assert max(before) == 10
        assert [end for _, end in parts] == [8, 16]

    asyncio.run(work())


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_first_turn_said_is_known_at_the_eleventh(language: Language) -> None:
    async def work() -> None:
        fact = {
            "en": "We decided: the Alma has berth B-17.",
            "ko": "결정했습니다. 알마호는 B-17입니다.",
        }
        async with satchel.open_session(
            MemoryStore(),
            session_id="s",
            model="gpt-4o",
            budget=8_000,
            policy="rolling-summary:graph",
        ) as session:
            await session.append({"role": "user", "content": "안녕" if language == "ko" else "Hi"})
            await session.append({"role": "assistant", "content": fact[language]})
            for turn in range(1, 11):
                await session.append([said(2 * turn, language), said(2 * turn + 1, language)])
                await session.compact()
            summaries = [e for e in await session.events() if e["kind"] == "summary"]
            assert len(summaries) == 2
            assert "B-17" in summaries[-1]["text"]
            await session.append(said(22, language))
            assert "B-17" in json.dumps((await session.window()).messages)

    asyncio.run(work())


def plain_manager(
    history: list[dict[str, Any]], start: int, summary: str, system: str
) -> tuple[int, int]:
    """The memory manager's step: tokens it counts, and how many messages leave (0 for none)."""

    def chars3(text: str) -> int:
        return max(1, len(text) // 3) if text else 0

    held = history[start:]
    texts = [
        message["content"][:150]
        if message["role"] == "tool" and len(held) - place > 3
        else message["content"] or ""
        for place, message in enumerate(held)
    ]
    tokens = chars3(system) + chars3(summary) + sum(chars3(text) for text in texts)
    leaves = len(held) - 10 if tokens > int(4_000 * 0.8) and len(held) > 10 else 0
    return tokens, leaves


@pytest.mark.parametrize("language", LANGUAGES)
def test_memory_manager(language: Language) -> None:
    """Budget 4,000, window 10, outputs pruned to 150 characters, above int(budget * 0.8)."""

    async def work() -> None:
        notes = Notes()
        flushed: list[tuple[int, int]] = []

        async def keep(part: Any, summary: Any) -> None:
            assert summary.text
            flushed.append((part.first, part.end))

        system = {"en": "You are the harbour master.", "ko": "당신은 항만장입니다."}[language]
        history: list[dict[str, Any]] = []
        start, summary = 0, ""
        counter = satchel.counter("gpt-4o", tokenizer="chars3")
        tokens = 0
        ends: list[int] = []
        async with opened(
            "rolling-summary:manager", notes, budget=4_000, counter=counter, flushed=keep
        ) as session:
            await session.window(system=system, open_calls="synthesize")
            for number in range(60):
                new = [said(2 * number, language, "tide " * 40)]
                if number % 3 == 0:
                    function = {"name": "log", "arguments": "{}"}
                    call = {"id": f"c{number}", "type": "function", "function": function}
                    new += [
                        {"role": "assistant", "content": None, "tool_calls": [call]},
                        {
                            "role": "tool",
                            "tool_call_id": f"c{number}",
                            "content": f"entry {number} " + "of the log " * 90,
                        },
                    ]
                new.append(said(2 * number + 1, language, "pier " * 40))
                history += new
                await session.append(new)
                report = await session.compact()
                tokens, leaves = plain_manager(history, start, summary, system)
                assert report.is_done == (leaves > 0), (number, tokens)
                if leaves:
                    parts = await covered(session)
                    # Steps are kept whole: a call at the edge stays with its result.
                    assert 0 <= start + leaves - parts[-1][1] <= 1
                    start = parts[-1][1]
                    ends.append(start)
                    events = await session.events()
                    summary = [e for e in events if e["kind"] == "summary"][-1]["text"]
                window = await session.window()
                assert window.tokens <= 4_000
                assert satchel.lint(window.messages, "openai") == []
        assert len(ends) == 3
        # What left the window was handed on once, part by part (the goal stays in sight).
        assert [end for _, end in flushed] == ends
        assert all(first == end for (first, _), end in zip(flushed[1:], ends, strict=False))

    asyncio.run(work())


def test_the_presets_have_the_numbers_of_the_articles() -> None:
    memory = Policy.preset("rolling-summary").summary
    manager = Policy.preset("rolling-summary:manager").summary
    graph = Policy.preset("rolling-summary:graph").summary
    assert memory is not None
    assert manager is not None
    assert graph is not None
    assert (memory.above_messages, memory.cover_messages, memory.max_tokens) == (10, 8, 300)
    assert (manager.above_messages, manager.keep_messages) == (10, 10)
    assert (manager.above_share, manager.count_pruned_to) == (0.8, 150)
    assert (graph.above_messages, graph.keep_messages, graph.max_tokens) == (8, 2, 200)
    assert (memory.background, manager.background, graph.background) == (True, True, False)
