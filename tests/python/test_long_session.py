"""A thousand turns: the summary stays small, and no planted fact is out of reach."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any, Final

import pytest

import satchel
from satchel.policy import Policy, SummarySettings
from satchel.stores import MemoryStore
from satchel.summarize import SummaryRequest, SummaryResult

TURNS: Final = 1_000
EVERY: Final = 9
BUDGET: Final = 6_000
SETTINGS: Final = SummarySettings(
    above_share=0.6, keep_messages=12, max_tokens=300, receipt_tokens=200, background=False
)


class Rambling:
    """A model whose notes hold none of the facts, and grow at each request."""

    name = "rambling"

    def __init__(self) -> None:
        self._asked = 0

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        assert request.transcript or request.previous
        self._asked += 1
        before = request.previous or "## Progress"
        return SummaryResult(
            text=f"{before}\n- Round {self._asked} of the talks went well, they say."
        )


def turn(number: int, rng: Random) -> tuple[list[dict[str, Any]], str | None]:
    """The messages of a turn, and the fact that is planted in it, if any."""
    fact = None
    asked = f"Question {number}: what about lot {rng.randrange(10**4)}?"
    told = f"Lot {number} is like the others. " + "It was looked at. " * rng.randrange(2, 12)
    if number % EVERY == 0:
        secret = f"{rng.randrange(10**9):09d}-{rng.choice('ABCDEF')}"
        fact = f"The seal of lot {number} is {secret}."
        kind = number // EVERY % 3
        if kind == 0:
            asked = f"{asked}\nRemember: {fact}"
        elif kind == 1:
            told = f"{told}\n{fact}"
        else:
            call = {
                "id": f"call_{number}",
                "type": "function",
                "function": {"name": "inspect", "arguments": json.dumps({"lot": number})},
            }
            report = "\n".join(
                [*(f"line {row}: nothing of note" for row in range(30)), fact, "end of report"]
            )
            return [
                {"role": "user", "content": asked},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"call_{number}", "content": report},
                {"role": "assistant", "content": told},
            ], fact
    return [{"role": "user", "content": asked}, {"role": "assistant", "content": told}], fact


@pytest.mark.parametrize("summarizer", [None, Rambling()], ids=["extractive", "a model"])
def test_every_fact_of_a_thousand_turns_can_be_read(summarizer: Any) -> None:
    async def work() -> None:
        rng = Random(11)  # noqa: S311 - not for secrets
        policy = Policy(name="test", summary=SETTINGS)
        counter = satchel.counter("gpt-4o")
        facts: list[str] = []
        async with satchel.open_session(
            MemoryStore(),
            session_id="s",
            model="gpt-4o",
            budget=BUDGET,
            policy=policy,
            summarizer=summarizer,
        ) as session:
            for number in range(TURNS):
                messages, fact = turn(number, rng)
                facts += [fact] if fact else []
                await session.append(messages[:-1])
                window = await session.window()
                assert window.tokens <= BUDGET
                await session.append(messages[-1])
            await session.append({"role": "user", "content": "Which seals were there?"})
            window = await session.window()
            assert satchel.lint(window.messages, "openai") == []
            summaries = [one for one in await session.events() if one["kind"] == "summary"]
            assert len(summaries) > 5
            assert all(counter.fits(one["text"], SETTINGS.max_tokens) for one in summaries)
            receipts = [
                sum(counter.count(receipt["text"]) for receipt in one["receipts"])
                for one in summaries
            ]
            assert max(receipts) <= SETTINGS.receipt_tokens

            readable = json.dumps(window.messages, ensure_ascii=False)
            # What the window names, and what the index names that the window points to.
            pointers = [page.pointer for page in window.pages]
            assert pointers[0] in readable
            index = await session.page_in(pointers[0])
            named = [line.split(" ", 5)[4] for line in index.splitlines() if line[:1].isdigit()]
            pages = [await session.page_in(pointer) for pointer in {*pointers[1:], *named}]
            everything = "\n".join([readable, *pages])
            missing = [fact for fact in facts if fact not in everything]
            assert missing == []
            assert len(facts) == TURNS // EVERY + 1
            # Most are out of the window, so that this says something.
            assert sum(fact in readable for fact in facts) < len(facts) / 2

    asyncio.run(work())
