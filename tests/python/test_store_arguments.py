"""What stores are asked: odd texts find nothing, odd types are refused, by each backend alike."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest

from satchel.errors import InputError
from satchel.stores import MemoryStore, open_store
from satchel.stores._write_ids import WriteIds
from servers import postgres_url, redis_url
from stored import refused, run, said, texts_of

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.stores import SessionStore

PLACES = ("memory", "sqlite", "postgres", "redis")


def store_of(place: str, folder: Path) -> SessionStore:
    if place == "memory":
        return MemoryStore()
    if place == "sqlite":
        return open_store(f"sqlite:///{folder / 'x.db'}")
    return open_store(postgres_url() if place == "postgres" else redis_url())


@pytest.mark.parametrize("place", PLACES)
def test_what_nothing_can_be_stored_under_finds_nothing(tmp_path: Path, place: str) -> None:
    odd = "\ud800"

    async def main() -> None:
        store = store_of(place, tmp_path)
        name = secrets.token_hex(6)
        await store.open(name, user_id=name)
        await refused(store.info(odd), "session_not_found")
        await refused(store.append(odd, said("a")), "session_not_found")
        await refused(store.branch(odd, "b", length=1), "session_not_found")
        assert await store.get_value(name, odd) is None
        assert await store.get_page(name, odd) is None
        assert await store.delete(odd) is False
        assert await store.list_sessions(user_id=odd) == []
        assert await store.list_sessions(user_id=name, after=odd) == []
        assert len(await store.list_sessions(user_id=name, after="")) == 1
        assert len(await store.list_sessions(user_id=name, limit=2**70)) == 1
        assert await store.read(name, after=2**70) == []
        assert await store.read(name, limit=2**70) == []
        assert (await store.truncate(name, 2**70)).length == 0
        await store.delete(name)
        await store.close()

    run(main())


@pytest.mark.parametrize("place", PLACES)
def test_other_types_are_refused(tmp_path: Path, place: str) -> None:
    async def main() -> None:
        store: Any = store_of(place, tmp_path)
        name = secrets.token_hex(6)
        await store.open(name)
        for work in (
            lambda: store.info(5),
            lambda: store.read(None),
            lambda: store.append(b"s", said("a")),
            lambda: store.append(name, ["a"]),
            lambda: store.append(name, said("a"), expected_version="0"),
            lambda: store.append(name, said("a"), expected_version=-1),
            lambda: store.append(name, said("a"), expected_version=True),
            lambda: store.append(name, said("a"), expected_version=2**70),
            lambda: store.truncate(name, "0"),
            lambda: store.truncate(name, 0, expected_version=1.0),
            lambda: store.branch(3, name, length=1),
            lambda: store.get_value(name, 3),
            lambda: store.put_value(name, "v", "text"),
            lambda: store.put_value(name, "v", b"", expected_version="0"),
            lambda: store.get_page(name, None),
            lambda: store.put_pages(name, ["p"]),
            lambda: store.put_pages(name, {"p": "text"}),
            lambda: store.list_sessions(limit=None),
            lambda: store.list_sessions(user_id=3),
            lambda: store.list_sessions(after=3),
            lambda: store.delete(3),
            lambda: store.lease(3).__aenter__(),
        ):
            with pytest.raises(InputError, match="must be"):
                await cast("Any", work)()
        assert (await store.info(name)).version == 0
        await store.delete(name)
        await store.close()

    run(main())


FORKED = """
import asyncio, os, sys
from satchel.stores import Entry, open_store

async def append(text):
    await store.append(name, [Entry("message", text.encode())])

async def begin():
    await store.open(name)
    await append("before")

url, name = sys.argv[1:]
store = open_store(url)
asyncio.run(begin())
# As many writes on each side: an id of one would be the newest of the other.
child = os.fork()
asyncio.run(append("parent" if child else "child"))
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.parametrize("place", ["sqlite", "postgres", "redis"])
def test_a_forked_process_loses_no_write(tmp_path: Path, place: str) -> None:
    name = secrets.token_hex(6)
    urls = {"sqlite": f"sqlite:///{tmp_path / 'x.db'}"}
    url = urls[place] if place in urls else postgres_url() if place == "postgres" else redis_url()
    # In a process of its own: the suite's has threads.
    subprocess.run(  # noqa: S603 - a script of ours
        [sys.executable, "-c", FORKED, url, name],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    async def main() -> None:
        store = open_store(url)
        assert sorted(await texts_of(store, name)) == ["before", "child", "parent"]
        await store.delete(name)
        await store.close()

    run(main())


def test_the_slot_of_a_write_that_was_given_up_is_not_used_again() -> None:
    ids = WriteIds()
    with ids.taken() as first:
        pass
    with ids.taken() as second:
        assert second[:6] == first[:6]
    with pytest.raises(asyncio.CancelledError), ids.taken() as third:
        raise asyncio.CancelledError
    with ids.taken() as fourth:
        assert fourth[:6] != third[:6]


def test_sessions_in_memory_go_when_their_time_is_over() -> None:
    now = 1_000.0

    async def main() -> None:
        nonlocal now
        store = MemoryStore(clock=lambda: now)
        for number in range(500):
            await store.open(f"s{number}", ttl_s=10)
            await store.append(f"s{number}", said("text"))
        kept: dict[str, object] = vars(store)["_sessions"]
        assert len(kept) == 500
        now += 5
        await store.append("s7", said("text"))
        now += 8
        for number in range(40):
            await store.open(f"t{number}")
        assert "s7" in kept
        assert len(kept) == 41
        assert await store.delete("s8") is False
        now += 8
        await store.open("u")
        assert "s7" not in kept

    run(main())
