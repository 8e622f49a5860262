"""The conformance suite of stores: our backends pass it, and broken ones do not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from satchel.stores import MemoryStore
from satchel.stores.sqlite import SQLiteStore
from satchel.testing import store_conformance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.stores import Entry, SessionInfo
    from satchel.testing.stores import Capability, StoreCase, StorePlace


def memory(place: StorePlace) -> MemoryStore:
    return MemoryStore(clock=place.clock)


@pytest.mark.parametrize("case", store_conformance(memory, capabilities=["clock"]), ids=str)
def test_memory(case: StoreCase) -> None:
    case()


def sqlite(place: StorePlace) -> SQLiteStore:
    return SQLiteStore(place.folder / "sessions.db", clock=place.clock)


@pytest.mark.parametrize(
    "case", store_conformance(sqlite, capabilities=["durable", "shared", "clock"]), ids=str
)
def test_sqlite(case: StoreCase) -> None:
    case()


def failures(factory: Any) -> set[str]:
    found: set[str] = set()
    for case in store_conformance(factory, capabilities=["clock"]):
        try:
            case()
        except AssertionError:
            found.add(case.name)
    return found


class Slow(MemoryStore):
    """Waits between reading the version and writing, as if nobody else could come between."""

    async def append(
        self, session_id: str, entries: Sequence[Entry], **options: Any
    ) -> SessionInfo:
        expected = options.pop("expected_version", None)
        info = await self.info(session_id)
        await asyncio.sleep(0)
        if expected is not None and expected != info.version:
            return await super().append(session_id, entries, expected_version=expected, **options)
        return await super().append(session_id, entries, **options)


class Halving(MemoryStore):
    """Writes a batch entry by entry."""

    async def append(
        self, session_id: str, entries: Sequence[Entry], **options: Any
    ) -> SessionInfo:
        info = await super().append(session_id, entries[:1], **options)
        options.pop("expected_version", None)
        for entry in entries[1:]:
            await asyncio.sleep(0)
            info = await super().append(session_id, [entry], **options)
        return info


class Folding(MemoryStore):
    """Takes ids for equal that differ in case."""

    def _find(self, session_id: str) -> Any:
        same = [one for one in self._sessions if one.casefold() == session_id.casefold()]
        return super()._find(same[0] if same else session_id)


@pytest.mark.parametrize(
    ("store", "seen"),
    [
        (Slow, "one_writer_wins_a_version"),
        (Halving, "batches_of_many_tasks_stay_whole"),
        (Folding, "sessions_never_meet"),
    ],
)
def test_a_broken_store_is_seen(store: type[MemoryStore], seen: str) -> None:
    def make(place: StorePlace) -> MemoryStore:
        return store(clock=place.clock)

    assert seen in failures(make)


def test_a_case_runs_in_a_loop_too() -> None:
    [case] = [
        case
        for case in store_conformance(memory, capabilities=["clock"])
        if str(case) == "what_has_a_key_is_there_once"
    ]
    asyncio.run(case.check())


def test_capabilities_choose_the_cases() -> None:
    chosen: tuple[tuple[Capability, ...], ...] = (
        (),
        ("durable",),
        ("durable", "shared", "clock"),
    )
    none, durable, everything = (
        {case.name for case in store_conformance(memory, capabilities=can)} for can in chosen
    )
    assert none < durable < everything
    assert "a_restart_leaves_everything_as_it_was" not in none
    wrong: Any = ["durability"]
    with pytest.raises(ValueError, match="durability"):
        store_conformance(memory, capabilities=wrong)
