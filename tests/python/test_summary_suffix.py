"""Summaries asked for at the end of the live conversation, and in the background."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.policy import Policy, SummarySettings
from satchel.stores import MemoryStore
from satchel.summarize import (
    AnthropicSummarizer,
    OpenAISummarizer,
    Patience,
    SummaryRequest,
    SummaryResult,
)
from satchel.summarize.prompts import SECTIONS, has_heading, suffix_instruction

if TYPE_CHECKING:
    from satchel.summarize import Summarizer

NOTES = "## Progress\n- Berth 4 was measured."
SETTINGS = SummarySettings(
    above_messages=8,
    above_share=None,
    keep_messages=4,
    max_tokens=120,
    receipt_tokens=60,
    background=False,
    request="suffix",
)
TOOLS: dict[str, list[Any]] = {
    "openai": [{"type": "function", "function": {"name": "look", "parameters": {}}}],
    "anthropic": [{"name": "look", "input_schema": {"type": "object"}}],
}


class Replies:
    """A client whose calls are kept and answered from a list, the last one for ever."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)
        self.calls: list[dict[str, Any]] = []
        self.completions = self.chat = self.messages = self

    async def create(self, **arguments: Any) -> Any:
        self.calls.append(arguments)
        text = self.texts.pop(0) if len(self.texts) > 1 else self.texts[0]
        return _reply(text, is_chat="system" not in arguments)


class _Reply:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


def _reply(text: str, *, is_chat: bool) -> Any:
    if not is_chat:
        block = _Reply(type="text", text=text)
        return _Reply(content=[block], stop_reason="end_turn")
    message = _Reply(content=text, refusal=None, tool_calls=None)
    return _Reply(choices=[_Reply(message=message, finish_reason="stop")])


def said(number: int) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    text = f"Remark {number} about berth {number * 7 + 100}. " + f"Tide table {number}. " * 12
    return {"role": role, "content": text}


def summarizer_of(dialect: str, replies: Any) -> Summarizer:
    if dialect == "openai":
        return OpenAISummarizer("gpt-4o-mini", client=replies)
    return AnthropicSummarizer("claude-haiku-4-5", client=replies)


def opened(dialect: str, replies: Replies, **options: Any) -> satchel.Session:
    wanted: dict[str, Any] = {
        "session_id": "s",
        "model": "gpt-4o" if dialect == "openai" else "claude-sonnet-4-5",
        "budget": 4_000,
        "policy": Policy(name="test", summary=SETTINGS),
        "summarizer": summarizer_of(dialect, replies),
        "patience": Patience(backoff_s=0),
        **options,
    }
    return satchel.open_session(MemoryStore(), **wanted)


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_the_request_begins_with_the_one_before_it(dialect: str) -> None:
    async def work() -> None:
        replies = Replies(NOTES)
        async with opened(dialect, replies) as session:
            await session.append([said(number) for number in range(8)])
            before = await session.window(system="Be brief.", tools=TOOLS[dialect])
            assert replies.calls == []
            await session.append([said(number) for number in range(8, 10)])
            after = await session.window()
        [call] = replies.calls
        live = before.as_kwargs()
        asked = call["messages"][-1]
        assert call["messages"][:-1] == live["messages"]
        assert asked["role"] == "user"
        text = asked["content"] if dialect == "openai" else asked["content"][0]["text"]
        # Of the 8 messages that were there, 6 are covered; what came later was not sent.
        assert "except the newest 2;" in text
        others = {"messages", "max_tokens", "max_completion_tokens"}
        assert {name: call[name] for name in call if name not in others} == {
            name: live[name] for name in live if name != "messages"
        }
        report = after.report.summary
        assert report is not None
        assert (report.requests, report.failures) == (1, ())
        assert "Berth 4 was measured" in json.dumps(after.messages)

    asyncio.run(work())


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        ("The berth is free until noon, as you asked.", "summary_malformed"),
        ("  ", "summary_empty"),
        ("## Progress\n" + "- again and again\n" * 900, "summary_not_smaller"),
    ],
)
def test_what_is_no_summary_is_asked_for_by_a_request_of_its_own(reply: str, code: str) -> None:
    async def work() -> None:
        replies = Replies(reply, NOTES)
        async with opened("openai", replies) as session:
            await session.append([said(number) for number in range(8)])
            await session.window()
            await session.append([said(number) for number in range(8, 10)])
            window = await session.window()
        report = window.report.summary
        assert report is not None
        assert [one.code for one in report.failures] == [code]
        assert report.failures[0].summarizer.endswith("at the end of the conversation")
        assert (report.summarizer, report.requests) == ("openai:gpt-4o-mini", 2)
        assert len(replies.calls[1]["messages"]) == 2
        assert "Berth 4 was measured" in json.dumps(window.messages)

    asyncio.run(work())


def test_without_a_window_before_the_request_is_one_of_its_own() -> None:
    async def work() -> None:
        replies = Replies(NOTES)
        async with opened("openai", replies) as session:
            await session.append([said(number) for number in range(15)])
            await session.window()
        assert [len(call["messages"]) for call in replies.calls] == [2]

    asyncio.run(work())


def test_instructions_name_the_headings_that_are_looked_for() -> None:
    for language in ("en", "ko"):
        text = suffix_instruction(language, kept=4, max_tokens=120, focus="prices")
        assert all(heading in text for heading in SECTIONS[language])
        assert "4" in text
        assert "prices" in text
    assert has_heading("## 목표\n- x")
    assert has_heading("\n# Goal:\n- x")
    assert not has_heading("Goal\n- x")
    assert not has_heading("## Sure, here is the answer\n## Goal")


class Gated:
    """A summarizer that answers when it is let."""

    name = "gated"

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.asked = 0

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        assert request.transcript
        self.asked += 1
        await self.gate.wait()
        return SummaryResult(text=NOTES)


def test_no_turn_waits_for_a_summary_and_it_comes_in_at_a_boundary() -> None:
    async def work() -> None:
        gated = Gated()
        settings = SETTINGS.model_copy(
            update={"background": True, "above_messages": None, "above_share": 0.5}
        )
        policy = Policy(name="test", summary=settings)
        async with opened("openai", Replies(""), policy=policy, summarizer=gated) as session:
            windows: list[satchel.Window] = []
            for number in range(0, 60, 2):
                await session.append([said(number)])
                # The gate is shut: only a window that waits for nothing can be here in time.
                windows.append(await asyncio.wait_for(session.window(), 20))
                await session.append([said(number + 1)])
            assert gated.asked == 1
            # It was asked for when half the budget was used, before anything had to go.
            assert windows[0].report.compactions == 0
            first = next(at for at, one in enumerate(windows) if one.tokens > 0.5 * one.budget)
            assert windows[first].report.compactions == 0
            assert not any("<summary" in json.dumps(one.messages) for one in windows)
            await session.append([said(60)])
            shown = await session.window()
            gated.gate.set()
            await session.compact()  # waits for the one that is being written
            # What was given out stays as it is; the next window has the summary.
            assert "<summary" not in json.dumps(shown.messages)
            await session.append([said(61), said(62)])
            later = await session.window()
            assert json.dumps(later.messages).count("<summary source=") == 1
            assert satchel.lint(later.messages, "openai") == []

    asyncio.run(work())
