"""The file of the SQLite store: what is in it, and what happens when it fails."""

# The threads inside are given other connections, to see what they do.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import os
import re
import resource
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import satchel
from satchel.errors import StoreError
from satchel.stores import Entry
from satchel.stores import _sqlite_schema as schema
from satchel.stores.sqlite import SQLiteStore
from stored import connected, refused, run, said, texts_of

PACKAGE = Path(satchel.__file__).parents[1]


# --- the file -------------------------------------------------------------------------------------


def test_a_reopened_session_gives_the_same_window(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    options: dict[str, Any] = {"session_id": "s", "model": "gpt-4o", "budget": 2_000}

    async def work() -> None:
        async with satchel.open_session(url, **options) as session:
            for number in range(41):
                role = "assistant" if number % 2 else "user"
                text = f"Remark {number}: " + f"word{number} " * 40
                await session.append({"role": role, "content": text})
                if number % 10 == 0:
                    await session.window()
            await session.pin(6)
            before = await session.window(system="You are patient.")
            index = await session.page_in(before.pages[0].pointer)
            pointer = re.findall(r"p_\d{18}", index)[0]
            content = await session.page_in(pointer)
        async with satchel.open_session(url, **options) as again:
            after = await again.window(system="You are patient.")
            assert after.messages == before.messages
            assert (after.tokens, after.events) == (before.tokens, before.events)
            assert await again.page_in(pointer) == content

    run(work())


def test_large_payloads_are_compressed_and_small_ones_are_not(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    noise = os.urandom(9_000)
    given = [b"short " * 100, b"long " * 9_000, noise]

    async def work() -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", [Entry("message", payload) for payload in given])
        await store.put_pages("s", {"p": b"page " * 2_000})
        assert [entry.payload for entry in await store.read("s")] == given
        assert await store.get_page("s", "p") == b"page " * 2_000
        await store.close()

    run(work())
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT length(payload) FROM entries ORDER BY id").fetchall()
    [page] = connection.execute("SELECT length(payload) FROM contents").fetchone()
    connection.close()
    assert rows[0] == (600,)
    assert rows[1][0] < 2_000
    assert rows[2] == (9_000,)
    assert page < 1_000


def test_what_was_deleted_is_not_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    now = [0.0]

    async def work() -> None:
        store = SQLiteStore(path, clock=lambda: now[0])
        await store.open("kept")
        await store.open("s")
        await store.append("s", said(*(f"a secret remark {number} " * 20 for number in range(50))))
        await store.put_value("s", "v", b"a secret value")
        await store.put_pages("s", {"p": b"a secret page"})
        await store.delete("s")
        await store.open("brief", ttl_s=5)
        await store.append("brief", said("a secret that ends"))
        now[0] = 6.0
        await store.open("kept")
        await store.close()

    run(work())
    found = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"kept" in found
    assert b"secret" not in found


def test_another_program_s_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (text TEXT)")
    connection.close()
    before = path.read_bytes()

    async def work() -> None:
        store = SQLiteStore(path)
        await refused(store.open("s"), "schema_unknown")
        await refused(store.info("s"), "schema_unknown")
        await store.close()

    run(work())
    assert path.read_bytes() == before


def test_schemas_are_brought_up_to_date_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.db"

    async def write(text: str) -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", said(text))
        assert (await texts_of(store))[-1] == text
        await store.close()

    run(write("old"))
    newer = (*schema.STEPS, "ALTER TABLE sessions ADD COLUMN note TEXT;\nCREATE TABLE notes (n);\n")
    monkeypatch.setattr(schema, "STEPS", newer)

    async def together() -> None:
        await asyncio.gather(*(write("new") for _ in range(4)))

    run(together())
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(newer),)
    assert connection.execute("SELECT count(note), count(*) FROM sessions").fetchone() == (0, 1)
    connection.close()

    monkeypatch.undo()

    async def older() -> None:
        store = SQLiteStore(path)
        error = await refused(store.open("s"), "schema_newer")
        assert (error.value, error.limit) == (len(newer), len(newer) - 1)
        await store.close()

    run(older())


def test_a_schema_without_a_number_is_not_guessed(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    SQLiteStore(path)._writer._connect().close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 0")
    connection.close()

    async def work() -> None:
        store = SQLiteStore(path)
        await refused(store.open("s"), "schema_unknown")
        await store.close()

    run(work())


@pytest.mark.parametrize("content", [b"not a database at all " * 400, b"\0" * 8_192])
def test_a_file_that_is_no_database_is_said_to_be(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)

    async def work() -> None:
        store = SQLiteStore(path)
        await refused(store.open("s"), "store_corrupt")
        await store.close()

    run(work())
    assert path.read_bytes() == content


def test_damaged_pages_of_the_file_are_told(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def fill() -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", said(*("secret " * 100 for _ in range(300))))
        await store.close()

    run(fill())
    with path.open("r+b") as file:
        file.seek(20 * 4_096)
        file.write(b"\xff" * 4_096 * 20)

    async def work() -> None:
        store = SQLiteStore(path)
        await refused(store.read("s"), "store_corrupt")
        await store.close()

    run(work())


def test_a_damaged_entry_does_not_hide_the_others(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def fill() -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", said("one", "secret " * 900, "three"))
        await store.close()

    run(fill())
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE entries SET payload = substr(payload, 9) WHERE form = 2")
    connection.close()

    async def work() -> None:
        store = SQLiteStore(path)
        error = await refused(store.read("s"), "corrupt_entry")
        assert error.index == 2
        assert [entry.payload for entry in await store.read("s", limit=1)] == [b"one"]
        assert [entry.payload for entry in await store.read("s", after=2)] == [b"three"]
        await store.truncate("s", 1)
        await store.append("s", said("four"))
        assert await texts_of(store) == ["one", "four"]
        await store.close()

    run(work())


def test_a_missing_entry_is_not_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def fill() -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", said("one", "two", "three"))
        await store.close()

    run(fill())
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM entries WHERE payload = CAST('two' AS BLOB)")
    connection.close()

    async def work() -> None:
        store = SQLiteStore(path)
        await refused(store.read("s"), "store_corrupt")
        await store.close()

    run(work())


# --- no room, no right ----------------------------------------------------------------------------


def test_a_full_database_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    async def work() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        connected(store, lambda connection: connection.execute("PRAGMA max_page_count = 60"))
        await store.open("s")
        acknowledged: list[str] = []
        failure: StoreError | None = None
        while failure is None:
            one = f"{len(acknowledged)} " + "secret " * 200
            try:
                await store.append("s", said(one))
            except StoreError as error:
                failure = error
            else:
                acknowledged.append(one)
        assert failure.code == "store_full"
        assert "secret" not in str(failure)
        assert 50 < len(acknowledged) < 400
        assert await texts_of(store) == acknowledged
        large = Entry("message", os.urandom(99_000))
        done = await asyncio.gather(
            store.append("s", [large]),
            store.put_value("s", "v", b"small"),
            store.append("s", [large]),
            return_exceptions=True,
        )
        assert [getattr(one, "code", one) for one in done] == ["store_full", 1, "store_full"]
        await store.truncate("s", 10)
        await store.append("s", said("there is room again"))
        assert await texts_of(store) == [*acknowledged[:10], "there is room again"]
        await store.close()

    run(work())


def child(program: str, *arguments: str, **options: Any) -> str:
    done: subprocess.CompletedProcess[str] = subprocess.run(  # noqa: S603 - our own code
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(PACKAGE), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


FILL = """
import asyncio, sys
from satchel.errors import StoreError
from satchel.stores import Entry, open_store

async def work():
    store = open_store("sqlite:///" + sys.argv[1])
    for number in range(2_000):
        try:
            await store.open("s")
            await store.append("s", [Entry("message", b"x" * 1_500)])
        except StoreError as error:
            print(error.code, number)
            break
    await store.close()

asyncio.run(work())
"""


def test_a_limit_of_file_sizes_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    limit = (300_000, 300_000)
    code, number = child(
        FILL, str(path), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit)
    ).split()
    assert code in {"store_unavailable", "store_full"}

    async def work() -> None:
        store = SQLiteStore(path)
        assert len(await store.read("s")) == int(number) > 10
        await store.append("s", said("next"))
        await store.close()

    run(work())


def test_a_full_disk_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    folder = tmp_path / "small"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", str(folder)]
    try:
        mounted = subprocess.run(mount, capture_output=True, check=False)  # noqa: S603 - as above
    except OSError:
        pytest.skip("there is no mount here: only the page limit of SQLite was tested")
    if mounted.returncode:
        pytest.skip("no right to mount a small disk: only the page limit of SQLite was tested")
    try:
        path = folder / "x.db"
        code, number = child(FILL, str(path)).split()
        assert code in {"store_full", "store_unavailable"}

        async def work() -> None:
            store = SQLiteStore(path)
            assert len(await store.read("s")) == int(number) > 10
            await store.close()

        run(work())
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S603, S607 - as above


READ_ONLY = """
import asyncio, os, sys
from satchel.errors import StoreError
from satchel.stores import Entry, open_store
store = open_store("sqlite:///" + sys.argv[1])
if os.getuid() == 0:
    os.setgid(65_534)
    os.setuid(65_534)

async def work():
    for attempt in (
        lambda: store.read("s"),
        lambda: store.append("s", [Entry("message", b"x")]),
        lambda: store.open("other"),
        lambda: store.delete("s"),
    ):
        try:
            print(len(await attempt()))
        except StoreError as error:
            print(error.code)
    await store.close()

asyncio.run(work())
"""


def test_a_file_that_may_only_be_read(tmp_path: Path) -> None:
    # The folders above belong to the user of the test, who may be root.
    folder = tmp_path / "theirs"
    folder.mkdir()
    path = folder / "x.db"

    async def fill() -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", said("a", "b"))
        await store.close()

    run(fill())
    path.chmod(0o444)
    folder.chmod(0o777)
    opened: list[tuple[Path, int]] = []
    for above in folder.parents:
        mode = above.stat().st_mode
        if not mode & 0o001 and above.is_relative_to(tmp_path.parents[2]):
            opened.append((above, mode))
            above.chmod(mode | 0o001)
    try:
        found = child(READ_ONLY, str(path)).split()
    finally:
        for above, mode in opened:
            above.chmod(mode)
    assert found == ["2", "store_read_only", "store_read_only", "store_read_only"]


def test_a_missing_folder_is_told(tmp_path: Path) -> None:
    async def work() -> None:
        store = SQLiteStore(tmp_path / "nowhere" / "x.db")
        await refused(store.open("s"), "store_unavailable")
        (tmp_path / "nowhere").mkdir()
        await store.open("s")
        await store.close()

    run(work())
