"""What a summary covers is handed on, also after a hook failed or its process ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel._outbox import Outbox, note_of
from satchel.memory.flushing import flush_to
from satchel.stores import MemoryStore
from satchel.stores.sqlite import SQLiteStore
from stored import run

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from satchel.compaction import SummaryPart
    from satchel.stores import SessionStore
    from satchel.summarize.writing import Written

    Hook = Callable[[SummaryPart, Written], Awaitable[None]]

POLICY = satchel.Policy.preset("rolling-summary")


def session_of(store: SessionStore, flushed: Hook | None) -> satchel.Session:
    return satchel.open_session(
        store, session_id="s", model="gpt-4o", budget=8_000, policy=POLICY, flushed=flushed
    )


def talk(start: int, count: int = 12) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number in range(start, start + count):
        found.append({"role": "user", "content": f"Question {number}: and then?"})
        found.append({"role": "assistant", "content": f"Remark {number}. " * 20})
    return found


class Heard:
    """A hook that hears, fails or hangs."""

    def __init__(self, *, fails: bool = False, hangs: bool = False) -> None:
        self.fails, self.hangs = fails, hangs
        self.parts: list[tuple[int, int, str]] = []
        self.messages: list[Any] = []
        self.called = asyncio.Event()

    async def __call__(self, part: SummaryPart, written: Written) -> None:
        self.called.set()
        if self.hangs:
            await asyncio.sleep(60)
        if self.fails:
            raise ZeroDivisionError
        self.parts.append((part.first, part.end, written.text))
        self.messages += part.messages
        assert part.dialect == "openai"
        assert written.tokens > 0


async def settled(session: satchel.Session) -> None:
    """Waits for what an opened session does in the background."""
    summaries: object = vars(session)["_summaries"]
    task: asyncio.Task[None] | None = vars(summaries)["_catching_up"]
    if task is not None:
        await asyncio.wait([task])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("how", ["fails", "hangs"])
def test_what_could_not_be_handed_on_is_when_the_session_opens(
    tmp_path: Path, kind: str, how: str
) -> None:
    async def main() -> None:
        store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "x.db")
        bad = Heard(fails=how == "fails", hangs=how == "hangs")
        async with session_of(store, bad) as session:
            await session.append(talk(0))
            compacting = asyncio.create_task(session.compact(force=True))
            await bad.called.wait()
            if how == "fails":
                assert [one.code for one in (await compacting).failures] == ["flush_failed"]
        await asyncio.gather(compacting, return_exceptions=True)
        [event] = await summaries(store)
        assert len(await Outbox(store, "s").notes()) == 1
        # Who opens it without a hook changes nothing.
        async with session_of(store, None) as session:
            await settled(session)
        good = Heard()
        async with session_of(store, good) as session:
            await settled(session)
            first, end = event["covers"]
            assert good.parts == [(first, end, event["text"])]
            assert good.messages == (await session.messages())[first:end]
            await session.append(talk(20))
            await session.compact(force=True)
        assert [part[0] for part in good.parts[1:]] == [good.parts[0][1]]
        assert await Outbox(store, "s").notes() == []
        again = Heard()
        async with session_of(store, again) as session:
            await settled(session)
        assert again.parts == []
        await store.close()

    run(main())


async def summaries(store: SessionStore) -> list[Any]:
    async with session_of(store, None) as session:
        return [event for event in await session.events() if event["kind"] == "summary"]


def test_what_was_taken_back_is_not_handed_on() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with session_of(store, Heard(fails=True)) as session:
            await session.append(talk(0))
            await session.compact(force=True)
            await session.rewind(0)
            await session.append(talk(50))
        # Nor is what was noted by a process that ended before its summary came into the log.
        await Outbox(store, "s").add(note_of({"covers": [0, 3], "text": "never there"}))
        good = Heard()
        async with session_of(store, good) as session:
            await settled(session)
        assert good.parts == []
        assert await Outbox(store, "s").notes() == []

    run(main())


def test_notes_do_not_grow_for_ever_and_many_may_write_them() -> None:
    async def main() -> None:
        store = MemoryStore()
        await store.open("s")
        outbox = Outbox(store, "s")
        notes = [note_of({"covers": [n, n + 1], "text": f"{n}\ud800"}) for n in range(100)]
        for note in notes:
            await outbox.add(note)
        assert await outbox.notes() == notes[-64:]
        await asyncio.gather(*(Outbox(store, "s").strike([one]) for one in notes[-64:-50]))
        assert await outbox.notes() == notes[-50:]

    run(main())


def test_what_is_extracted_twice_is_remembered_once_and_overrides_nothing() -> None:
    async def main() -> None:
        store = MemoryStore()
        here = ("users", "ana")
        said = [*talk(90, 1), {"role": "user", "content": "I live in Ghent."}, *talk(0)[1:]]
        async with satchel.open_memory("memory://", embedder="none") as memory:
            flushed = flush_to(memory, here, session_id="s", user_id="ana")

            async def twice(part: SummaryPart, written: Written) -> None:
                await flushed(part, written)
                [old] = await memory.list(here)
                await memory.remember(here, {"text": "The user lives in Bruges.", "key": old.key})
                await flushed(part, written)

            async with session_of(store, twice) as session:
                await session.append(said)
                report = await session.compact(force=True)
                assert report.is_done
                assert report.failures == ()
            kept = await memory.list(here, include_history=True)
            assert [item.text for item in kept] == [
                "The user lives in Ghent.",
                "The user lives in Bruges.",
            ]
            current = await memory.get(here, kept[0].key)
            assert current is not None
            assert current.text == "The user lives in Bruges."

    run(main())
