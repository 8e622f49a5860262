"""Small appends to SQLite without the thread: as whole, as ordered and as polite as with it."""

# Who wrote is seen by the connections inside.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from satchel.errors import StoreError
from satchel.stores import Entry
from satchel.stores.sqlite import SQLiteStore
from stored import said, texts_of

if TYPE_CHECKING:
    from pathlib import Path


async def warmed(path: Path, **options: Any) -> SQLiteStore:
    """A store whose session ``s`` has an entry."""
    store = SQLiteStore(path, **options)
    await store.open("s")
    await store.append("s", said("first"))
    return store


def seen(store: SQLiteStore) -> list[str]:
    """Statements of the connection without a thread, from now on."""
    statements: list[str] = []
    connection = store._writer._inline._connection
    assert connection is not None
    connection.set_trace_callback(statements.append)
    return statements


def test_a_small_append_needs_no_thread(tmp_path: Path) -> None:
    async def work() -> None:
        store = await warmed(tmp_path / "x.db")
        statements = seen(store)
        for number in range(5):
            await store.append("s", said(str(number)))
        assert statements.count("COMMIT") == 5
        large = [Entry("message", os.urandom(20_000))]
        for given in (large, said(*map(str, range(9)))):
            await store.append("s", given)
        assert statements.count("COMMIT") == 5
        assert (await store.info("s")).length == 16
        await store.close()

    asyncio.run(work())


def test_what_waits_for_the_disk_is_the_thread_s(tmp_path: Path) -> None:
    async def work() -> None:
        store = await warmed(tmp_path / "x.db", durability="power")
        assert not store._writer._inline.is_open
        await store.append("s", said("second"))
        assert await texts_of(store) == ["first", "second"]
        await store.close()

    asyncio.run(work())


def test_rows_are_moved_by_the_thread(tmp_path: Path) -> None:
    async def work() -> None:
        store = await warmed(tmp_path / "x.db")
        statements = seen(store)
        for number in range(300):
            await store.append("s", said(str(number)))
        assert not [one for one in statements if "chunks" in one and "INSERT" in one]
        assert await texts_of(store) == ["first", *map(str, range(300))]
        await store.close()
        with sqlite3.connect(tmp_path / "x.db") as connection:
            [[chunks]] = connection.execute("SELECT count(*) FROM chunks")
        connection.close()
        assert chunks >= 1

    asyncio.run(work())


def test_the_log_of_sqlite_does_not_grow_for_ever(tmp_path: Path) -> None:
    async def work() -> int:
        store = await warmed(tmp_path / "x.db")
        for number in range(30):
            await store.open(f"s{number}")
        most = 0
        for number in range(3_000):
            await store.append(f"s{number % 30}", said("x" * 500))
            most = max(most, (tmp_path / "x.db-wal").stat().st_size)
        await store.close()
        return most

    assert asyncio.run(work()) < 16_000_000


def test_other_tasks_have_their_turn(tmp_path: Path) -> None:
    async def work() -> int:
        store = await warmed(tmp_path / "x.db")
        turns = 0

        async def look() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        looking = asyncio.create_task(look())
        ends = time.monotonic() + 0.1
        while time.monotonic() < ends:
            await store.append("s", said("x"))
        looking.cancel()
        await store.close()
        return turns

    assert asyncio.run(work()) > 10


def test_whoever_comes_first_is_first(tmp_path: Path) -> None:
    async def work() -> None:
        store = await warmed(tmp_path / "x.db")
        given = [[str(number)] * (9 if number % 7 == 3 else 1) for number in range(100)]
        await asyncio.gather(*(store.append("s", said(*texts)) for texts in given))
        assert await texts_of(store) == ["first", *(text for texts in given for text in texts)]
        await store.close()

    asyncio.run(work())


def test_another_writer_is_waited_for_by_the_thread(tmp_path: Path) -> None:
    async def work() -> None:
        store = await warmed(tmp_path / "x.db")
        other = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        waiting = asyncio.create_task(store.append("s", said("second")))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        other.execute("ROLLBACK")
        other.close()
        await waiting
        await store.append("s", said("third"))
        assert await texts_of(store) == ["first", "second", "third"]
        await store.close()

    asyncio.run(work())


def test_errors_are_the_same_without_the_thread(tmp_path: Path) -> None:
    async def work() -> None:
        store = await warmed(tmp_path / "x.db")
        statements = seen(store)
        info = await store.append("s", said("second"), expected_version=1)
        with pytest.raises(StoreError) as caught:
            await store.append("s", said("third"), expected_version=1)
        assert caught.value.code == "version_conflict"
        assert statements.count("ROLLBACK") == 1
        assert info.version == 2
        await store.append("s", said("third"))
        await store.delete("s")
        with pytest.raises(StoreError) as caught:
            await store.append("s", said("fourth"))
        assert caught.value.code == "session_not_found"
        await store.close()
        with pytest.raises(StoreError) as caught:
            await store.append("s", said("fifth"))
        assert caught.value.code == "store_closed"

    asyncio.run(work())


def test_a_failure_without_the_thread_is_told_by_the_thread(tmp_path: Path) -> None:
    async def work() -> None:
        store = await warmed(tmp_path / "x.db")
        inline = store._writer._inline
        assert inline._connection is not None
        inline._connection.close()
        await store.append("s", said("second"))
        assert await texts_of(store) == ["first", "second"]
        # The thread has opened another.
        assert inline.is_open
        await store.append("s", said("third"))
        await store.append("s", said("fourth"))
        assert await texts_of(store) == ["first", "second", "third", "fourth"]
        await store.close()
        assert not inline.is_open

    asyncio.run(work())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_nothing_is_inherited_by_a_forked_process(tmp_path: Path) -> None:
    async def begin() -> SQLiteStore:
        store = await warmed(tmp_path / "x.db")
        await store.append("s", said("second"))
        return store

    store = asyncio.run(begin())
    assert store._writer._inline.is_open
    child = os.fork()
    if child == 0:
        try:
            is_fresh = not store._writer._inline.is_open
            asyncio.run(store.append("s", said("child")))
            asyncio.run(store.append("s", said("child again")))
            os._exit(0 if is_fresh else 1)
        except BaseException:  # noqa: BLE001 - the parent is told
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    asyncio.run(store.append("s", said("parent")))
    assert asyncio.run(texts_of(store)) == ["first", "second", "child", "child again", "parent"]
    asyncio.run(store.close())


INTERRUPTED: Final = """
import asyncio
import random
import signal
import sys

from satchel.stores.base import Entry
from satchel.stores.sqlite import SQLiteStore


class Interrupted(BaseException):
    pass


def interrupt(number, frame):
    raise Interrupted


async def main(path):
    store = SQLiteStore(path)
    await store.open("s")
    acknowledged, interruptions, draw = [], 0, random.Random(7)
    for number in range(800):
        key = f"k{number}"
        append = store.append("s", [Entry("message", b"{}", key)])
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(5e-6, 4e-4))
            try:
                append.send(None)
            except StopIteration:
                acknowledged.append(key)
            signal.setitimer(signal.ITIMER_REAL, 0)
        except Interrupted:
            interruptions += 1
        append.close()
        if number % 50 == 0:
            await asyncio.sleep(0.001)
    await store.append("s", [Entry("message", b"{}", "last")])
    stored = [entry.key for entry in await store.read("s")]
    await store.close()
    assert set(acknowledged) <= set(stored), "lost"
    assert stored[-1] == "last"
    assert len(stored) == len(set(stored)), "doubled"
    told = set(acknowledged)
    assert [key for key in stored if key in told] == acknowledged, "order"
    print(interruptions, len(acknowledged), len(stored))


signal.signal(signal.SIGALRM, interrupt)
asyncio.run(main(sys.argv[1]))
"""


def test_an_append_that_a_signal_breaks_off_is_whole_or_not_there(tmp_path: Path) -> None:
    # A process of its own: elsewhere the signal could meet the test runner.
    command = [sys.executable, "-c", INTERRUPTED, str(tmp_path / "x.db")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603 - this interpreter
    assert done.returncode == 0, done.stderr
    interruptions, acknowledged, stored = map(int, done.stdout.split())
    assert interruptions > 20
    assert acknowledged > 20
    assert stored > acknowledged  # by the last one at least
