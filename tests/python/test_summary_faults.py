"""Random schedules of faults: whatever goes wrong, in whatever order, nothing is lost or doubled.

Each schedule is a seed: what a summarizer does at each request, what the store does at each write,
what the application does and when a task of it is cancelled. ``SATCHEL_FAULT_SCHEDULES`` says how
many there are.
"""

from __future__ import annotations

import asyncio
import json
import os
from html import unescape
from itertools import pairwise
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast

import pytest

import satchel
from satchel.policy import Policy, SummarySettings
from satchel.stores import MemoryStore
from satchel.summarize import Patience, SuffixRequest, SummaryRequest, SummaryResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

SCHEDULES: Final = int(os.environ.get("SATCHEL_FAULT_SCHEDULES", "1000"))
GROUPS: Final = 20
FAULTS: Final = (
    "answers",
    "answers",
    "answers at length",
    "copies",
    "is unavailable",
    "junk",
    "raises",
    "refuses",
    "says nothing",
    "stalls",
    "takes its time",
)
PATIENCE: Final = Patience(timeout_s=0.004, attempts=2, backoff_s=0.0)
MOST_STEPS: Final = 14


class Unreliable:
    """A summarizer whose faults are drawn; it counts who asks at the same time."""

    name = "unreliable"
    suffix_dialect = "openai"

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self.asked = 0
        self.inside = 0
        self.most_inside = 0

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        return await self._counted(unescape(request.transcript))

    async def summarize_suffix(self, request: SuffixRequest, /) -> SummaryResult:
        return await self._counted(json.dumps(request.call["messages"], ensure_ascii=False))

    async def _counted(self, source: str) -> SummaryResult:
        self.asked += 1
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        try:
            return await self._answer(source)
        finally:
            self.inside -= 1

    async def _answer(self, source: str) -> SummaryResult:
        fault = self._rng.choice(FAULTS)
        if fault == "stalls":
            await asyncio.sleep(30)
        if fault == "takes its time":
            await asyncio.sleep(0.002)
        if fault == "raises":
            message = "a secret of the provider's"
            raise RuntimeError(message)
        if fault in ("refuses", "is unavailable"):
            code = "summary_refused" if fault == "refuses" else "summary_unavailable"
            raise satchel.SummaryError(fault, code=code)
        texts = {
            "says nothing": " \n",
            "copies": source,
            "answers at length": "## Facts\n" + "- A point of no weight at all.\n" * 60,
        }
        if fault == "junk":
            return cast("SummaryResult", {"text": "junk"})
        return SummaryResult(text=texts.get(fault, f"## Progress\n- Tide {self.asked} was noted."))


class Flaky(MemoryStore):
    """A store where some writes fail: before they are done, or after."""

    def __init__(self, rng: Random) -> None:
        super().__init__()
        self._rng = rng
        self.is_sound = False

    async def append(self, *given: Any, **options: Any) -> Any:
        await asyncio.sleep(0)
        fate = 1.0 if self.is_sound else self._rng.random()
        if fate < 0.04:
            raise unavailable()
        info = await super().append(*given, **options)
        await asyncio.sleep(0)
        if fate < 0.08:
            raise unavailable()
        return info


def unavailable() -> satchel.StoreError:
    message = "the store is out of reach"
    return satchel.StoreError(message, code="store_unavailable")


def step(number: int, rng: Random) -> list[dict[str, Any]]:
    """A turn: a remark and an answer, or a remark, a call and its result."""
    remark = {
        "role": "user",
        "content": f"Remark {number}: " + f"tide {number} " * rng.choice((4, 25)),
    }
    if rng.random() < 0.7:
        answer = f"Answer {number}: " + f"pier {number} " * rng.choice((4, 25))
        return [remark, {"role": "assistant", "content": answer}]
    function = {"name": "look", "arguments": json.dumps({"berth": number})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    result = f"Result {number}: " + f"berth {number} " * rng.choice((4, 40))
    return [
        remark,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": result},
    ]


class Run:
    """One schedule: an application that goes on whatever fails, and what must hold meanwhile."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)  # noqa: S311 - not for secrets
        self.store = Flaky(self.rng)
        self.summarizer = Unreliable(self.rng)
        self.messages: list[Any] = []
        self.numbers = 0
        self.ends: list[int] = []
        self.is_rewound = False
        self.handed_on: list[tuple[int, int]] = []
        self.settings = SummarySettings(
            above_messages=self.rng.choice((4, 8)),
            above_share=self.rng.choice((None, 0.3)),
            keep_messages=self.rng.choice((0, 2, 4)),
            cover_messages=self.rng.choice((None, 3)),
            max_tokens=self.rng.choice((30, 80)),
            receipt_tokens=self.rng.choice((0, 60)),
            background=self.rng.random() < 0.6,
            request=self.rng.choice(("separate", "suffix")),
        )

    def opened(self) -> satchel.Session:
        return satchel.open_session(
            self.store,
            session_id="s",
            model="gpt-4o",
            budget=900,
            policy=Policy(name="test", summary=self.settings),
            summarizer=self.summarizer,
            patience=PATIENCE,
            flushed=self.flushed,
        )

    async def flushed(self, part: Any, written: Any) -> None:
        del written
        self.handed_on.append((part.first, part.end))
        if self.rng.random() < 0.2:
            message = "the memory is full"
            raise RuntimeError(message)

    async def go(self) -> None:
        for _ in range(self.rng.choice((1, 2))):
            self.store.is_sound = True
            async with self.opened() as session:
                self.store.is_sound = False
                for _ in range(self.rng.randrange(4, MOST_STEPS)):
                    await self.act(session)
                self.store.is_sound = True
                await self.check(session)
            # What was being written is given up with the session.
            assert self.summarizer.inside == 0
        assert self.summarizer.most_inside <= 1
        self.store.is_sound = True
        async with self.opened() as again:
            await self.check(again)
        assert len(asyncio.all_tasks()) == 1

    async def act(self, session: satchel.Session) -> None:
        draw = self.rng.random()
        if draw < 0.55:
            self.numbers += 1
            new = step(self.numbers, self.rng)
            ids = [f"{self.numbers}-{place}" for place in range(len(new))]
            self.messages += new
            # The application repeats what it does not know the outcome of.
            while not await self.survives(lambda: session.append(new, ids=ids)):
                pass
            self.ends.append(len(self.messages))
        elif draw < 0.85:
            await self.survives(session.window)
        elif draw < 0.9 and self.ends:
            # Also under a summary that is being written, whose part may be gone then.
            del self.ends[self.rng.randrange(len(self.ends)) + 1 :]
            self.messages, self.is_rewound = self.messages[: self.ends[-1]], True
            self.store.is_sound = True
            await session.rewind(len(self.messages))
            self.store.is_sound = False
        elif draw < 0.95:
            await self.survives(lambda: session.compact(force=self.rng.random() < 0.5))
        else:
            both = (session.compact(force=True), session.compact(), session.window())
            await asyncio.gather(*both, return_exceptions=True)
        for _ in range(self.rng.randrange(3)):
            await asyncio.sleep(0)

    async def survives(self, work: Callable[[], Awaitable[object]]) -> bool:
        """Whether it was done; it may be cancelled at any moment, or fail with an error of ours."""

        async def done() -> object:
            return await work()

        task = asyncio.create_task(done())
        if self.rng.random() < 0.25:
            for _ in range(self.rng.randrange(12)):
                await asyncio.sleep(0)
            task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return False
        except satchel.SatchelError as error:
            assert error.code in {  # noqa: PT017 - which of them it is does not matter
                "store_unavailable",
                "summary_failed",
                "nothing_to_compact",
            }
            return False
        return True

    async def check(self, session: satchel.Session) -> None:
        """What holds at any moment; looked at again if a summary came in meanwhile."""
        while True:
            window = await session.window()
            events = await session.events()
            gone = [row for row in await session.explain() if row.level == "gone"]
            if events == await session.events() and window.events == events:
                break
        assert await session.messages() == self.messages
        violations = satchel.lint(window.messages, "openai")
        assert [one for one in violations if one.severity == "error"] == []
        assert window.tokens <= window.budget
        shown = json.dumps(window.messages, ensure_ascii=False)
        texts = [message["content"] for message in self.messages if message["content"]]
        for text in texts:
            assert shown.count(text) <= 1
        if self.messages:
            assert texts[-1] in shown
        assert shown.count("<summary source=") <= 1
        summaries = [event for event in events if event["kind"] == "summary"]
        ends = [event["covers"][1] for event in summaries]
        assert ends == sorted(set(ends))
        counter = satchel.counter("gpt-4o")
        assert all(counter.fits(event["text"], self.settings.max_tokens) for event in summaries)
        assert "secret" not in window.report.model_dump_json()
        # Every step that is out of the window, covered ones above all, is behind a pointer that the
        # index names, and the window names the index.
        named = {place for row in gone for place in range(row.first, row.end)}
        covered = {place for event in summaries for place in range(*event["covers"])}
        # The goal and a request that was the newest then stay, whatever covers them.
        for place in covered - named:
            assert self.messages[place]["role"] == "user"
            assert self.messages[place]["content"] in shown
        index = await session.page_in(window.pages[0].pointer) if gone else ""
        lines = [line.split(" ", 5) for line in index.splitlines() if line[:1].isdigit()]
        assert {int(line[0]) for line in lines} >= named
        for line in lines:
            message = self.messages[int(line[0])]
            whole = message["content"] or message["tool_calls"][0]["function"]["arguments"]
            assert await session.page_in(line[4]) == whole


@pytest.mark.parametrize("group", range(GROUPS))
def test_no_schedule_of_faults_loses_or_doubles_a_message(group: int) -> None:
    async def one(seed: int) -> None:
        async with asyncio.timeout(60):  # nothing goes on for ever
            await Run(seed).go()

    for seed in range(group, SCHEDULES, GROUPS):
        try:
            asyncio.run(one(seed))
        except BaseException as error:
            error.add_note(f"schedule {seed}")
            raise


def test_what_is_covered_is_what_was_handed_on() -> None:
    """Parts follow one another; one whose hook failed comes again when the session opens next."""
    looked_at = 0
    for seed in range(40):
        run = Run(seed)
        asyncio.run(run.go())
        if not run.is_rewound:
            looked_at += len(run.handed_on)
            parts = sorted(set(run.handed_on))
            assert all(end <= first for (_, end), (first, _) in pairwise(parts))
    assert looked_at > 10
