"""The log of the SQLite store: rows and chunks say the same, and files of older versions open."""

from __future__ import annotations

import asyncio
import sqlite3
from itertools import pairwise
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import StoreError
from satchel.stores import Entry, MemoryStore, _sqlite_schema
from satchel.stores.codec import decode, encode
from satchel.stores.entries import Entries, load_entries
from satchel.stores.sqlite import SQLiteStore
from stored import refused, run, said

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MANY = 700
"""Entries of more than two chunks, and of some rows."""


def numbered(start: int, end: int, *, size: int = 10) -> list[Entry]:
    return [
        Entry(
            "event" if number % 5 == 0 else "message",
            encode({"n": number, "text": "x" * size}),
            f"k{number}" if number % 3 == 0 else None,
        )
        for number in range(start, end)
    ]


def shown(log: Sequence[Entry]) -> list[tuple[str, bytes, str | None]]:
    return [(entry.kind, entry.payload, entry.key) for entry in log]


def chunks(path: Path) -> list[tuple[int, int]]:
    """First sequence number and count of each chunk."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT id & 4294967295, count FROM chunks ORDER BY id").fetchall()
    connection.close()
    return [(int(first), int(count)) for first, count in found]


@pytest.mark.parametrize("at_once", [1, 7, 127, 128, 129, MANY])
def test_a_long_log_is_the_same_however_it_was_written(tmp_path: Path, at_once: int) -> None:
    async def main() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        await store.open("s")
        wanted = numbered(0, MANY)
        for start in range(0, MANY, at_once):
            await store.append("s", wanted[start : start + at_once])
        log = await store.read("s")
        assert shown(log) == shown(wanted)
        assert [entry.sequence for entry in log] == list(range(1, MANY + 1))
        for after, limit in ((0, 1), (127, 2), (255, 300), (256, None), (650, 9), (MANY, 5)):
            part = await store.read("s", after=after, limit=limit)
            assert part == log[after : None if limit is None else after + limit]
            loaded = await store.load("s", after=after, limit=limit)
            assert loaded == part
            assert loaded.values() == [decode(entry.payload) for entry in part]
        await store.append("s", numbered(0, MANY + 1)[::3])
        assert (await store.info("s")).length == MANY, "every third key is known"
        await store.close()

    run(main())
    assert chunks(tmp_path / "x.db"), "older entries share rows"


def test_newest_entries_have_rows_of_their_own(tmp_path: Path) -> None:
    async def main() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        await store.open("s")
        for entry in numbered(0, 300):
            await store.append("s", [entry])
        large = Entry("message", encode(token_hex(20_000)))
        await store.append("s", [large] * 150)
        assert len(await store.read("s")) == 450
        await store.close()

    run(main())
    found = chunks(tmp_path / "x.db")
    assert found[0] == (1, 127)
    assert all(first + count == after for (first, count), (after, _) in pairwise(found))
    assert sum(count for _, count in found) == 300, "large ones are not copied"


@pytest.mark.parametrize("length", [0, 1, 100, 127, 128, 256, 257, 500, MANY - 1])
def test_logs_are_cut_and_branched_within_a_chunk(tmp_path: Path, length: int) -> None:
    async def main() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        await store.open("s")
        wanted = numbered(0, MANY)
        await store.append("s", wanted[:400])
        for entry in wanted[400:]:
            await store.append("s", [entry])
        await store.branch("s", "b", length=length)
        await store.truncate("s", length)
        for name in ("s", "b"):
            assert shown(await store.read(name)) == shown(wanted[:length])
            info = await store.append(name, wanted)
            assert info.length == len(wanted) + sum(one.key is None for one in wanted[:length])
            await store.truncate(name, length)
            await store.append(name, said("other"))
            assert shown(await store.read(name)) == shown([*wanted[:length], *said("other")])
        assert await store.delete("s")
        assert shown(await store.read("b")) == shown([*wanted[:length], *said("other")])
        assert await store.delete("b")
        await store.close()

    run(main())
    connection = sqlite3.connect(tmp_path / "x.db")
    for table in ("entries", "chunks", "keys"):
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)  # noqa: S608 - names of ours
    connection.close()


STEP = st.one_of(
    st.tuples(st.just("append"), st.integers(1, 400)),
    st.tuples(st.just("one by one"), st.integers(1, 140)),
    st.tuples(st.just("truncate"), st.integers(0, 600)),
    st.tuples(st.just("branch"), st.integers(0, 600)),
)


@given(steps=st.lists(STEP, max_size=6))
def test_it_does_what_the_store_in_memory_does(steps: list[tuple[str, int]]) -> None:
    async def main(folder: str) -> None:
        stores = (MemoryStore(), SQLiteStore(f"{folder}/x.db"))
        for store in stores:
            await store.open("s")
        written = branches = 0
        for what, number in steps:
            batch = numbered(written, written + number, size=written % 2_500)
            written += number if "append" in what or "one" in what else 0
            branches += what == "branch"
            for store in stores:
                if what == "append":
                    await store.append("s", batch)
                elif what == "one by one":
                    await asyncio.gather(*(store.append("s", [entry]) for entry in batch))
                elif what == "truncate":
                    await store.truncate("s", number)
                else:
                    await store.branch("s", f"b{branches}", length=number)
        one, two = stores
        for name in ("s", *(f"b{number}" for number in range(1, branches + 1))):
            assert await one.read(name) == await two.read(name)
            assert await one.info(name) is not None
            assert (await load_entries(one, name)).values() == (await two.load(name)).values()
        await two.close()

    with TemporaryDirectory() as folder:
        asyncio.run(main(folder))


def old_log(path: Path, wanted: list[Entry]) -> None:
    """A file of the first version with one session."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript(_sqlite_schema.STEPS[0])
    connection.execute(f"PRAGMA application_id = {_sqlite_schema.APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    connection.execute(
        "INSERT INTO sessions (number, session_id, version, length, created_at, changed_at) "
        "VALUES (7, 's', ?, ?, 1.0, 2.0)",
        (len(wanted), len(wanted)),
    )
    connection.execute("BEGIN")
    connection.executemany(
        "INSERT INTO entries VALUES (?, 7, ?, ?, ?)",
        [
            ((7 << 32) + at, int(one.kind == "event"), one.key, one.payload)
            for at, one in enumerate(wanted, 1)
        ],
    )
    connection.execute("COMMIT")
    connection.close()


def test_a_file_of_the_first_version_opens(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    wanted = numbered(0, 2_000)
    old_log(path, wanted)

    async def main() -> None:
        store = SQLiteStore(path)
        assert shown(await store.read("s")) == shown(wanted)
        info = await store.append("s", wanted[:4])
        assert info.length == 2_002, "what was there under a key is known"
        for entry in numbered(3_000, 3_400):
            await store.append("s", [entry])
        assert shown(await store.read("s"))[:2_000] == shown(wanted)
        assert (await store.info("s")).length == 2_402
        await store.close()

    run(main())
    found = chunks(path)
    assert found[0][0] == 1
    assert sum(count for _, count in found) > 2_000, "old entries came into chunks"


def test_a_damaged_chunk_is_told_and_hides_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def write() -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", numbered(0, 1_000))
        await store.close()

    run(write())
    found = chunks(path)
    first, count = found[1]
    connection = sqlite3.connect(path)
    connection.execute(
        "UPDATE chunks SET contents = substr(contents, 2) WHERE id & 4294967295 = ?", (first,)
    )
    connection.commit()
    connection.close()

    async def read() -> None:
        store = SQLiteStore(path)
        error = await refused(store.read("s"), "corrupt_entry")
        assert error.index == first
        assert len(await store.read("s", limit=first - 1)) == first - 1
        rest = await store.read("s", after=first + count - 1)
        assert shown(rest) == shown(numbered(0, 1_000)[first + count - 1 :])
        await store.close()

    run(read())


def test_a_damaged_entry_in_a_chunk_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.db"

    async def main() -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", numbered(0, 300))
        connection = sqlite3.connect(path)
        connection.execute(
            "UPDATE chunks SET contents = CAST(replace(CAST(contents AS TEXT), '\"n\":41,', "
            "'\"n\"_41,') AS BLOB)"
        )
        connection.commit()
        connection.close()
        loaded = await store.load("s")
        assert len(loaded) == 300
        with pytest.raises(StoreError, match="entry 42 of") as raised:
            loaded.values()
        assert (raised.value.code, raised.value.index) == ("corrupt_entry", 42)
        await store.close()

    run(main())


@pytest.mark.parametrize("odd", [{"$bytes": "x"}, {"$a": 1}, "\ud800", float("nan"), [[[1]]], ""])
def test_values_are_parsed_as_one_by_one(tmp_path: Path, odd: object) -> None:
    async def main() -> None:
        store = SQLiteStore(tmp_path / "x.db")
        await store.open("s")
        entries = numbered(0, 400)
        entries[333] = Entry("message", encode(odd))
        await store.append("s", entries)
        loaded = await store.load("s")
        assert repr(loaded.values()) == repr([decode(entry.payload) for entry in entries])
        await store.close()

    run(main())


def test_entries_are_a_sequence() -> None:
    log = [Entry("message", b"1", "a", 1), Entry("event", b"2", None, 2)]
    entries = Entries.of(log)
    assert (list(entries), len(entries), entries[1], entries[:1]) == (log, 2, log[1], log[:1])
    assert entries == log
    assert entries != log[:1]
    assert entries != "ab"
    assert entries.keys == {"a"}
    assert entries.kinds == ["message", "event"]
    assert repr(entries) == "<satchel.stores.Entries, 2>"
    assert Entries([]) == []


DAMAGES = {
    "form": "UPDATE entries SET form = 999 WHERE id & 4294967295 = ?",
    "a form in letters": "UPDATE entries SET form = 'abc' WHERE id & 4294967295 = ?",
    "payload": "UPDATE entries SET payload = 'secret' WHERE id & 4294967295 = ?",
    "a number": "UPDATE entries SET payload = 7 WHERE id & 4294967295 = ?",
    "key": "UPDATE entries SET key = x'ff' WHERE id & 4294967295 = ?",
    "count": "UPDATE chunks SET count = '9abc' WHERE id & 4294967295 = ?",
    "heads": "UPDATE chunks SET heads = 7 WHERE id & 4294967295 = ?",
    "contents": "UPDATE chunks SET contents = CAST(contents AS TEXT) WHERE id & 4294967295 = ?",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_row_of_another_type_is_a_damaged_entry(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "x.db"
    is_chunk = "chunks" in DAMAGES[damage]
    at = 1 if is_chunk else 205

    async def main() -> None:
        store = SQLiteStore(path)
        await store.open("s")
        await store.append("s", numbered(0, 200))
        await store.append("s", numbered(200, 210))
        connection = sqlite3.connect(path)
        assert connection.execute(DAMAGES[damage], (at,)).rowcount == 1
        connection.commit()
        connection.close()
        for reading in (store.read("s"), store.load("s")):
            assert (await refused(reading, "corrupt_entry")).index == at
        # Sealing goes round it, and the entries beside it can be read.
        for start in (300, 400):
            await store.append("s", numbered(start, start + 100))
        if not is_chunk:
            assert (await refused(store.read("s"), "corrupt_entry")).index == at
            assert len(await store.read("s", limit=at - 1)) == at - 1
        assert len(await store.read("s", after=max(at, 200))) == 410 - max(at, 200)
        await store.close()

    run(main())


def test_an_old_log_comes_into_chunks_whatever_is_appended(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    old_log(path, numbered(0, 5_000))

    async def main() -> None:
        store = SQLiteStore(path)
        for start in range(5_000, 7_000, 200):
            await store.append("s", numbered(start, start + 200))
        assert shown(await store.read("s")) == shown(numbered(0, 7_000))
        await store.close()

    run(main())
    found = chunks(path)
    assert found[0][0] == 1
    assert all(first + count == after for (first, count), (after, _) in pairwise(found))
    assert sum(count for _, count in found) > 6_700
