"""The SQLite store: its URL, its thread, and who shares it."""

# The threads inside are given other connections, to see what they do.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import satchel
from satchel.errors import InputError, StoreError
from satchel.stores import Entry, open_store
from satchel.stores.sqlite import SQLiteStore
from stored import connected, refused, run, said, texts_of

PACKAGE = Path(satchel.__file__).parents[1]


# --- urls and options -----------------------------------------------------------------------------


def test_urls_name_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a folder").mkdir()

    async def use(url: str) -> None:
        store = open_store(url)
        await store.open("s")
        await store.close()

    for url, path in (
        ("sqlite:///near.db", "near.db"),
        (f"sqlite:///{tmp_path}/far.db", "far.db"),
        ("sqlite:///a%20folder/x.db?durability=power&busy_timeout_s=2.5", "a folder/x.db"),
    ):
        run(use(url))
        assert (tmp_path / path).is_file()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite://host/file.db",
        "sqlite:file.db",
        "sqlite:///file.db?durability=none",
        "sqlite:///file.db?mode=ro",
        "sqlite:///file.db?busy_timeout_s=soon",
        "sqlite:///file.db?busy_timeout_s=-1",
        "sqlite:///file.db#part",
        "sqlite:///fi%00le.db",
    ],
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(InputError) as caught:
        open_store(url)
    assert caught.value.code == "invalid_value"


@pytest.mark.parametrize(("durability", "level"), [("process", 1), ("power", 2)])
def test_durability_is_sqlite_s_own(tmp_path: Path, durability: Any, level: int) -> None:
    connection = SQLiteStore(tmp_path / "x.db", durability=durability)._writer._connect()
    assert connection.execute("PRAGMA synchronous").fetchone() == (level,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


# --- the thread -----------------------------------------------------------------------------------


def test_appends_that_come_together_share_a_commit(tmp_path: Path) -> None:
    statements: list[str] = []

    async def work() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        connected(store, lambda connection: connection.set_trace_callback(statements.append))
        await store.open("s")
        statements.clear()
        await asyncio.gather(*(store.append("s", said(str(number))) for number in range(100)))
        assert statements.count("COMMIT") < 25
        assert await texts_of(store) == [str(number) for number in range(100)]
        await store.close()

    run(work())


def test_one_that_fails_does_not_take_the_others_along(tmp_path: Path) -> None:
    async def work() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        await store.open("s")

        def fails(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE sessions SET length = 99")
            connection.execute("INSERT INTO entries VALUES (1, 2, 3)")

        done = await asyncio.gather(
            store.append("s", said("a")),
            store._writer.run(fails),
            store.append("s", said("b"), expected_version=7),
            store.append("s", said("c")),
            return_exceptions=True,
        )
        codes = [one.code if isinstance(one, StoreError) else None for one in done]
        assert codes == [None, "store_unavailable", "version_conflict", None]
        assert await texts_of(store) == ["a", "c"]
        assert (await store.info("s")).length == 2
        await store.close()

    run(work())


def test_the_loop_goes_on_while_the_database_is_locked(tmp_path: Path) -> None:
    async def work() -> None:
        path = tmp_path / "x.db"
        store = SQLiteStore(path)
        await store.open("s")
        other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        other.execute("BEGIN IMMEDIATE")
        append = asyncio.create_task(store.append("s", said("a")))
        await asyncio.sleep(0.05)
        assert await texts_of(store) == []  # reading does not wait
        assert not append.done()
        other.execute("COMMIT")
        await append
        assert await texts_of(store) == ["a"]
        other.close()
        await store.close()

    run(work())


def test_a_database_that_stays_locked_is_unavailable(tmp_path: Path) -> None:
    async def work() -> None:
        path = tmp_path / "x.db"
        store = SQLiteStore(path, busy_timeout_s=0.05)
        await store.open("s")
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        await refused(store.append("s", said("secret")), "store_unavailable")
        other.execute("COMMIT")
        other.close()
        await store.append("s", said("a"))
        assert await texts_of(store) == ["a"]
        await store.close()

    run(work())


def test_two_hundred_sessions_of_one_loop(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"

    async def work() -> None:
        store = open_store(url)

        async def talk(number: int) -> None:
            async with satchel.open_session(
                store, session_id=f"s{number}", model="gpt-4o", user_id=f"u{number % 7}"
            ) as session:
                for turn in range(3):
                    await session.append({"role": "user", "content": f"{number}: ask {turn}"})
                    await session.append({"role": "assistant", "content": f"{number}: say {turn}"})
                window = await session.window()
                assert len(window.messages) == 6
                assert all(
                    message["content"].startswith(f"{number}: ") for message in window.messages
                )

        await asyncio.gather(*(talk(number) for number in range(200)))
        assert len(await store.list_sessions(limit=1_000)) == 200
        await store.close()

    run(work())


def test_loops_of_several_threads_share_a_store(tmp_path: Path) -> None:
    store = SQLiteStore(tmp_path / "x.db")

    async def begin() -> None:
        await store.open("s")

    run(begin())
    again = SQLiteStore(tmp_path / "x.db")
    ready = threading.Barrier(6)

    async def write(writer: int) -> None:
        for number in range(15):
            await again.append("s", said(f"{writer}-{number}"))

    def loop(writer: int) -> None:
        ready.wait()
        asyncio.run(write(writer))

    threads = [threading.Thread(target=loop, args=(writer,)) for writer in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def check() -> None:
        found = await texts_of(again)
        for writer in range(6):
            own = [text for text in found if text.startswith(f"{writer}-")]
            assert own == [f"{writer}-{number}" for number in range(15)]
        await again.close()
        await store.close()

    run(check())


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        await store.open("s")
        late = asyncio.create_task(store.append("s", said("a")))
        await asyncio.sleep(0)
        await store.close()
        await late  # asked for before the store was closed
        await store.close()
        await refused(store.info("s"), "store_closed")
        again = SQLiteStore(tmp_path / "x.db")
        assert await texts_of(again) == ["a"]
        await again.close()

    run(work())


def test_no_thread_outlives_its_store(tmp_path: Path) -> None:
    def threads() -> list[str]:
        return [thread.name for thread in threading.enumerate() if "sqlite" in thread.name]

    async def work() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        await store.open("s")
        await store.read("s")
        assert len(threads()) == 2

    run(work())
    ends = time.monotonic() + 30
    while threads() and time.monotonic() < ends:
        time.sleep(0.01)
    assert threads() == []


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_inherits_no_connection(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    store = SQLiteStore(path)

    async def write(name: str, count: int) -> None:
        for number in range(count):
            await store.append("s", said(f"{name}{number}"))

    async def parent() -> int:
        await store.open("s")
        writing = asyncio.create_task(write("before", 30))
        await asyncio.sleep(0.005)
        child = os.fork()
        if child == 0:  # without the parent's loop, which is still marked as running here
            status = 1
            try:
                thread = threading.Thread(target=lambda: asyncio.run(write("child", 20)))
                thread.start()
                thread.join()
                status = 0
            finally:
                os._exit(status)
        await writing
        await write("after", 20)
        return child

    child = asyncio.run(parent())
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0

    async def check() -> None:
        found = await texts_of(store)
        for name, count in (("before", 30), ("child", 20), ("after", 20)):
            own = [text for text in found if text.startswith(name)]
            assert own == [f"{name}{number}" for number in range(count)]
        await store.close()

    run(check())
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


# --- isolation ------------------------------------------------------------------------------------

NAMES = st.text(
    st.characters(codec="utf-8") | st.sampled_from("*?%_[]'\";:/|\\\x00-"), min_size=1, max_size=8
)


@settings(max_examples=25)
@given(st.lists(NAMES, min_size=2, max_size=6, unique=True), st.data())
def test_sessions_never_meet(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str], data: Any
) -> None:
    path = tmp_path_factory.mktemp("isolated") / "x.db"
    gone = data.draw(st.sampled_from(ids))

    async def work() -> None:
        store = SQLiteStore(path)
        for one in ids:
            await store.open(one, user_id=one)
            await store.append(one, [Entry("message", one.encode(), one)])
            await store.put_pages(one, {one: one.encode()})
            await store.put_value(one, one, one.encode())
        assert await store.delete(gone)
        left = [one for one in ids if one != gone]
        for one in left:
            assert await texts_of(store, one) == [one]
            assert await store.page_pointers(one) == [one]
            assert await store.get_page(one, gone) is None
            assert await store.value_names(one) == [one]
            listed = await store.list_sessions(user_id=one)
            assert [info.session_id for info in listed] == [one]
        everybody = await store.list_sessions()
        assert [info.session_id for info in everybody] == sorted(left)
        await refused(store.read(gone), "session_not_found")
        await store.close()

    run(work())
