"""Short runs of the soak of stores: writers that are killed, and writers that race."""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

import pytest

import soak_stores
from satchel.stores import Entry, open_store

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["process", "power"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'soak.db'}?durability={request.param}"


def test_a_killed_writer_loses_nothing_that_was_acknowledged(url: str) -> None:
    done = soak_stores.crash(url, 6, 5)
    assert done["kills"] == 6
    assert done["acknowledged"] >= 6


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'race.db'}"
    assert soak_stores.race(url, 8, 40)["raced appends"] == 320
    assert soak_stores.race_for_versions(url, 8, 60)["versions"] == 60


def test_nothing_comes_between_a_call_and_its_result(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'tools.db'}"
    assert soak_stores.race_with_tools(url, 4, 6)["shared calls"] == 24


def test_a_torn_batch_is_seen(tmp_path: Path) -> None:
    async def torn() -> list[Entry]:
        store = open_store(f"sqlite:///{tmp_path / 'torn.db'}")
        await store.open("s")
        rng = Random(1)  # noqa: S311 - not for secrets
        whole = [
            Entry("message", soak_stores.payload("w", 0, part, 2, rng), f"0/{part}")
            for part in range(2)
        ]
        await store.append("s", whole)
        await store.truncate("s", 1)
        found = await store.read("s")
        await store.close()
        return found

    with pytest.raises(AssertionError):
        soak_stores.batches_of(asyncio.run(torn()))
