"""What becomes of a memory: closed, forked, forgotten for good, and no longer than it should be."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import psycopg
import pytest

import satchel
from memory_stores import BACKENDS, fresh_database, memory_of, room
from satchel.errors import StoreError
from satchel.memory.store import Memory
from satchel.memory.volatile import VolatileBackend
from servers import own_postgres
from stored import run

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

PRIVATE = "zanzibar4711"


async def closed(work: Awaitable[object]) -> None:
    with pytest.raises(StoreError) as raised:
        await work
    assert raised.value.code == "store_closed"


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_closed_memory_says_so_and_opens_again(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        memory, here = memory_of(backend, tmp_path), (room(),)
        async with memory:
            [item] = await memory.remember(here, "the boat is green")
        await memory.close()
        for work in (
            memory.remember(here, "the boat is red"),
            memory.recall(here, "boat"),
            memory.get(here, id=item.id),
            memory.list(here),
            memory.update(here, item.id, text="x"),
            memory.forget(here, everything=True),
            memory.reembed(),
        ):
            await closed(work)
        async with memory:
            again = [one.text for one in await memory.list(here)]
        assert again == ["the boat is green"]

    run(main())


def test_a_memory_in_postgres_serves_one_event_loop_after_another() -> None:
    memory, here = satchel.open_memory(fresh_database(), embedder="none"), (room(),)

    async def first() -> None:
        await memory.__aenter__()
        await memory.remember(here, "the boat is green")
        await memory.close()

    async def second() -> list[str]:
        async with memory:
            return [hit.text for hit in await memory.recall(here, "boat")]

    asyncio.run(first())
    assert asyncio.run(second()) == ["the boat is green"]


FORKED = """
import asyncio, os, sys
import satchel

async def write(text):
    await memory.remember(("here",), text)

memory = satchel.open_memory(sys.argv[1], embedder="none")
asyncio.run(write("before"))
child = os.fork()
for number in range(20):
    asyncio.run(write(f"parent {number}" if child else f"child {number}"))
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    os._exit(0)
"""


def test_a_fork_inherits_no_connection(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    # In a process of its own: the suite's has threads.
    subprocess.run(  # noqa: S603 - a script of ours
        [sys.executable, "-c", FORKED, url],
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    async def main() -> None:
        async with satchel.open_memory(url, embedder="none") as memory:
            found = sorted(item.text for item in await memory.list(("here",)))
        wanted = ["before", *(f"{who} {n}" for who in ("parent", "child") for n in range(20))]
        assert found == sorted(wanted)

    run(main())


STARTED = """
import asyncio, sys
import satchel

async def main(url, name):
    async with satchel.open_memory(url, embedder="none") as memory:
        await memory.remember(("here",), name)

asyncio.run(main(*sys.argv[1:]))
"""


def test_several_processes_may_make_the_file_at_once(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    started = [
        subprocess.Popen([sys.executable, "-c", STARTED, url, f"p{n}"], env=environment)  # noqa: S603 - a script of ours
        for n in range(4)
    ]
    assert [one.wait() for one in started] == [0] * 4

    async def main() -> None:
        async with satchel.open_memory(url, embedder="none") as memory:
            assert len(await memory.list(("here",))) == 4

    run(main())


def test_what_is_forgotten_is_not_in_postgres_s_files_after_vacuum() -> None:
    url, server = fresh_database(), own_postgres()

    def files() -> list[str]:
        """Tables and indexes of the database in which the word can be read."""
        with psycopg.connect(url, autocommit=True) as connection:
            # What is only in memory yet is written first.
            connection.execute("CHECKPOINT")
            [(folder,)] = connection.execute(
                "SELECT 'base/' || oid FROM pg_database WHERE datname = current_database()"
            ).fetchall()
            [(data,)] = connection.execute("SHOW data_directory").fetchall()
        base = type(server.folder)(data) / folder
        return [one.name for one in base.iterdir() if PRIVATE.encode() in one.read_bytes()]

    async def main() -> None:
        here = (room(),)
        async with satchel.open_memory(url) as memory:
            await memory.remember(here, [f"note {n} about the harbour" for n in range(20)])
            await memory.remember(
                here,
                {
                    "text": f"the word is {PRIVATE}",
                    "key": f"word-{PRIVATE}",
                    "session_id": f"s-{PRIVATE}",
                    "user_id": f"u-{PRIVATE}",
                    "metadata": {"of": PRIVATE},
                },
            )
            assert [hit.text for hit in await memory.recall(here, PRIVATE, k=1)]
            assert files(), "it is in the files"
            assert await memory.forget(here, user_id=f"u-{PRIVATE}") == 1
            assert PRIVATE not in str(await memory.recall(here, PRIVATE, include_claims=True))
            assert PRIVATE not in str(await memory.list(here, include_history=True))
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "VACUUM FULL satchel_memories, satchel_memory_terms, satchel_memory_sizes"
            )
            # Samples of columns are kept for the planner.
            connection.execute(
                "ANALYZE satchel_memories, satchel_memory_terms, satchel_memory_sizes"
            )
            connection.execute("VACUUM FULL pg_statistic")
        assert files() == []

    run(main())


def test_an_error_of_the_database_does_not_quote_what_is_stored() -> None:
    url = fresh_database()

    async def main() -> None:
        here = (room(),)
        async with satchel.open_memory(url, embedder="none") as memory:
            await memory.remember(here, "the boat is green")
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(
                    "ALTER TABLE satchel_memories ADD CHECK (text NOT LIKE '%zanzibar%')"
                )
            with pytest.raises(StoreError) as raised:
                await memory.remember(here, PRIVATE)
        error = raised.value
        assert error.code == "store_failed"
        assert PRIVATE not in str(error)
        assert error.__cause__ is None
        assert error.__suppress_context__, "a traceback shows nothing else"

    run(main())


def test_a_key_that_is_written_again_and_again_keeps_one_current_item() -> None:
    async def main() -> None:
        backend = VolatileBackend()
        here = (room(),)
        async with Memory(backend, embedder=None) as memory:
            for number in range(300):
                await memory.remember(here, {"text": f"level {number}", "key": "level"})
            await memory.remember(here, [f"said {n}" for n in range(5)])
            current = await memory.get(here, "level")
            assert current is not None
            assert current.text == "level 299"
            assert len(await memory.list(here, include_history=True)) == 305
            held: dict[object, set[int]] = vars(backend)["_keyed"]
            assert [len(one) for one in held.values()] == [1]
            assert await memory.forget(here, key="level") == 300
            assert held == {}
            await memory.remember(here, {"text": "level 0", "key": "level"})
            assert (await memory.get(here, "level")) is not None
            assert await memory.forget(here, everything=True) == 6
            assert held == {}
            assert vars(backend)["_places"] == {}

    run(main())


def test_whoever_waits_for_the_rows_does_not_hold_the_loop() -> None:
    async def main() -> None:
        backend = VolatileBackend()
        async with Memory(backend, embedder=None) as memory:
            [item] = await memory.remember(("here",), "the boat is green")
            lock = vars(backend)["_lock"]
            with lock:
                # Another thread walks all rows: the loop goes on meanwhile.
                waiting = [
                    asyncio.create_task(one)
                    for one in (
                        memory.list(("here",)),
                        memory.get(("here",), id=item.id),
                        memory.recall(("here",), "boat"),
                        memory.remember(("here",), "the boat is red"),
                    )
                ]
                done, _ = await asyncio.wait(waiting, timeout=0.05)
                assert not done
            await asyncio.gather(*waiting)

    run(main())
