"""Sessions in an SQLite file: for one machine, with any number of processes.

The file is in write-ahead mode. A store writes by one thread and reads by another, each with a
connection of its own, so the event loop never waits for the disk; writes that come at the same time
share a transaction. A small append that need not wait for the disk does without the thread.

What ``durability`` promises: ``process``, that an acknowledged write survives the end of the
process, however it ends; ``power``, that it survives a power cut too, which waits for the disk once
a transaction.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from satchel._arguments import fraction, invalid, one_of, whole_number
from satchel.stores._sqlite_inline import LeftToThreadError
from satchel.stores._sqlite_log import add_rows, copy_rows, cut_rows, moves_rows, read_rows
from satchel.stores._sqlite_rows import (
    INFO,
    Row,
    content_of,
    fresh_places,
    is_storable,
    known,
    names_of,
    packed,
    remove,
    row_of,
    sweep,
)
from satchel.stores._sqlite_schema import prepare
from satchel.stores._sqlite_thread import SQLiteThread
from satchel.stores.base import (
    Entry,
    Lease,
    SessionInfo,
    Value,
    check_id,
    checked_entries,
    checked_life,
    checked_limit,
    checked_pages,
    checked_version,
    checked_wait,
    conflict,
    exists,
    held_lease,
    sought,
    wrong_user,
)
from satchel.stores.entries import EVENT, Entries

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
    from pathlib import Path

__all__ = ["Durability", "SQLiteStore"]

Durability = Literal["process", "power"]
"""What an acknowledged write survives."""

_T = TypeVar("_T")

_SYNCHRONOUS: Final = {"process": "NORMAL", "power": "FULL"}

_FEW_ENTRIES: Final = 8
_FEW_BYTES: Final = 16_384
"""What an append may hold that is written without the thread."""

_MOST_LOG_PAGES: Final = 4_000
"""Pages at which SQLite moves its log by itself, should it have grown unseen (a long branch)."""


class SQLiteStore:
    """Keeps sessions in a file.

    Args:
        path: the file; made if there is none. Its folder must exist.
        durability: what an acknowledged write survives.
        busy_timeout_s: how long to wait for other processes that write.
        clock: gives the time in seconds since 1970; for tests.

    Raises:
        InputError: ``invalid_value``.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        durability: Durability = "process",
        busy_timeout_s: float = 10.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        name = str(path)
        self._durability: Final = one_of("durability", durability, _SYNCHRONOUS)
        timeout_s = fraction("busy_timeout_s", busy_timeout_s)
        if timeout_s < 0:
            message = f"busy_timeout_s is {timeout_s:g}, must be at least 0"
            raise invalid(message)
        if not name or "\0" in name or name.startswith(":"):
            message = "path must name a file; for sessions in memory there is memory://"
            raise invalid(message)
        self._clock: Final = clock
        # Not a method: the threads must not keep the store alive.
        connect = partial(_connected, name, self._durability, timeout_s)
        # Where small appends need no thread, the thread moves the log when they make way for it.
        writing = connect
        if self._durability == "process":
            writing = partial(connect, log_pages=_MOST_LOG_PAGES)
        at_once = partial(_connected, name, self._durability, 0.0, any_thread=True)
        self._writer: Final = SQLiteThread(
            writing,
            begin="BEGIN IMMEDIATE",
            name="satchel-sqlite-writer",
            connect_inline=at_once if self._durability == "process" else None,
        )
        self._reader: Final = SQLiteThread(connect, begin="BEGIN", name="satchel-sqlite-reader")

    @classmethod
    def from_url(cls, url: str) -> SQLiteStore:
        """The store of ``sqlite:///file.db`` (four slashes for an absolute path).

        ``?durability=power`` and ``busy_timeout_s=30`` may follow.

        Raises:
            InputError: ``invalid_value``.
        """
        parts = urlsplit(url)
        options: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
        unknown = sorted(options.keys() - {"durability", "busy_timeout_s"})
        if parts.netloc or parts.fragment or not parts.path.startswith("/") or unknown:
            message = (
                "an SQLite URL is sqlite:///file.db or sqlite:////folder/file.db, "
                "with durability and busy_timeout_s as its only options"
            )
            raise invalid(message)
        if "busy_timeout_s" in options:
            try:
                options["busy_timeout_s"] = float(options["busy_timeout_s"])
            except ValueError:
                message = "busy_timeout_s must be a number of seconds"
                raise invalid(message) from None
        return cls(unquote(parts.path[1:]), **options)

    def __repr__(self) -> str:
        return f"<satchel.SQLiteStore, durability {self._durability}>"

    @property
    def is_durable(self) -> bool:
        """True."""
        return True

    async def open(
        self, session_id: str, *, user_id: str | None = None, ttl_s: float | None = None
    ) -> SessionInfo:
        """See `SessionStore.open`."""
        check_id("session_id", session_id)
        if user_id is not None:
            check_id("user_id", user_id)
        if ttl_s is not None:
            checked_life("ttl_s", ttl_s)
        now = self._clock()

        def work(connection: sqlite3.Connection) -> SessionInfo:
            row = row_of(connection, session_id)
            if row is not None and not row.has_ended(now):
                if row.info.user_id != user_id:
                    raise wrong_user()
                life = row.ttl_s if ttl_s is None else ttl_s
            else:
                life = ttl_s
                if row is not None:
                    remove(connection, row.number)
                connection.execute(
                    "INSERT INTO sessions (session_id, user_id, version, length, created_at, "
                    "changed_at) VALUES (?, ?, 0, 0, ?, ?)",
                    (session_id, user_id, now, now),
                )
            sweep(connection, now)
            if life is not None:
                connection.execute(
                    "UPDATE sessions SET ttl_s = ?, expires_at = ? WHERE session_id = ?",
                    (life, now + life, session_id),
                )
            return known(connection, session_id, now).info

        return await self._writer.run(work)

    async def info(self, session_id: str) -> SessionInfo:
        """See `SessionStore.info`."""
        return await self._read(session_id, lambda _, row: row.info)

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """See `SessionStore.append`."""
        given = checked_entries(entries)
        contents = await packed(entry.payload for entry in given)
        forms = [
            form | EVENT if entry.kind == "event" else form
            for entry, (form, _) in zip(given, contents, strict=True)
        ]
        sought("session_id", session_id)
        expected = checked_version(expected_version)
        now = self._clock()

        def work(connection: sqlite3.Connection, *, is_inline: bool = False) -> SessionInfo:
            row = known(connection, session_id, now, expected, lease)
            if is_inline and moves_rows(row.info.length, len(given)):
                raise LeftToThreadError
            chosen = list(range(len(given)))
            if any(entry.key is not None for entry in given):
                chosen = fresh_places(connection, row.number, given)
            rows = [
                (number, forms[index], contents[index][1], given[index].key)
                for number, index in enumerate(chosen, row.info.length + 1)
            ]
            add_rows(connection, row.number, row.info.length, rows)
            return row.written(connection, now, len(chosen), row.info.length + len(chosen))

        size = sum(len(content) for _, content in contents)
        is_small = len(given) <= _FEW_ENTRIES and size <= _FEW_BYTES
        at_once = (session_id, partial(work, is_inline=True)) if is_small else None
        return await self._writer.run(work, at_once=at_once, size=size)

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Entry]:
        """See `SessionStore.read`."""
        start, most = whole_number("after", after), checked_limit(limit)

        def work(connection: sqlite3.Connection, row: Row) -> list[Entry]:
            end = row.info.length if most is None else min(row.info.length, start + most)
            return read_rows(connection, row.number, start, end).listed()

        return await self._read(session_id, work)

    async def load(self, session_id: str, *, after: int = 0, limit: int | None = None) -> Entries:
        """See `LoadingStore.load`."""
        start, most = whole_number("after", after), checked_limit(limit)

        def work(connection: sqlite3.Connection, row: Row) -> Entries:
            end = row.info.length if most is None else min(row.info.length, start + most)
            return read_rows(connection, row.number, start, end)

        return await self._read(session_id, work)

    async def truncate(
        self,
        session_id: str,
        length: int,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """See `SessionStore.truncate`."""
        whole_number("length", length)
        sought("session_id", session_id)
        expected = checked_version(expected_version)
        now = self._clock()

        def work(connection: sqlite3.Connection) -> SessionInfo:
            row = known(connection, session_id, now, expected, lease)
            if length >= row.info.length:
                return row.written(connection, now, 0, row.info.length)
            cut_rows(connection, row.number, length)
            return row.written(connection, now, 1, length)

        return await self._writer.run(work)

    async def branch(
        self, session_id: str, target_id: str, *, length: int, user_id: str | None = None
    ) -> SessionInfo:
        """See `SessionStore.branch`."""
        check_id("target_id", target_id)
        sought("session_id", session_id)
        whole_number("length", length)
        now = self._clock()

        def work(connection: sqlite3.Connection) -> SessionInfo:
            row = known(connection, session_id, now)
            if row.info.user_id != user_id:
                raise wrong_user()
            taken = row_of(connection, target_id)
            if taken is not None:
                if not taken.has_ended(now):
                    raise exists()
                remove(connection, taken.number)
            kept = min(length, row.info.length)
            ends = None if row.ttl_s is None else now + row.ttl_s
            connection.execute(
                "INSERT INTO sessions (session_id, user_id, version, length, created_at, "
                "changed_at, ttl_s, expires_at, parent) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (target_id, user_id, kept, kept, now, now, row.ttl_s, ends, session_id),
            )
            branch = known(connection, target_id, now)
            number = branch.number
            copy_rows(connection, row.number, number, kept)
            connection.execute(
                "INSERT INTO contents SELECT ?, is_page, name, version, form, payload "
                "FROM contents WHERE session = ? AND is_page = 1",
                (number, row.number),
            )
            return branch.info

        return await self._writer.run(work)

    async def get_value(self, session_id: str, name: str) -> Value | None:
        """See `SessionStore.get_value`."""
        sought("name", name)

        def work(connection: sqlite3.Connection, row: Row) -> Value | None:
            return content_of(connection, row.number, 0, name)

        return await self._read(session_id, work)

    async def put_value(
        self,
        session_id: str,
        name: str,
        payload: bytes,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """See `SessionStore.put_value`."""
        check_id("name", name)
        sought("session_id", session_id)
        expected = checked_version(expected_version)
        [(form, content)] = await packed([payload])
        now = self._clock()

        def work(connection: sqlite3.Connection) -> int:
            row = known(connection, session_id, now, lease=lease)
            found = connection.execute(
                "SELECT version FROM contents WHERE session = ? AND is_page = 0 AND name = ?",
                (row.number, name),
            ).fetchone()
            version = 0 if found is None else int(found[0])
            if expected is not None and expected != version:
                raise conflict(version, expected)
            connection.execute(
                "INSERT INTO contents VALUES (?, 0, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "version = excluded.version, form = excluded.form, payload = excluded.payload",
                (row.number, name, version + 1, form, content),
            )
            row.renew(connection, now)
            return version + 1

        return await self._writer.run(work, size=len(content))

    async def value_names(self, session_id: str) -> list[str]:
        """See `SessionStore.value_names`."""
        return await self._read(session_id, lambda connection, row: names_of(connection, row, 0))

    async def put_pages(self, session_id: str, pages: Mapping[str, bytes]) -> None:
        """See `SessionStore.put_pages`."""
        sought("session_id", session_id)
        given = checked_pages(pages)
        contents = await packed(given.values())
        now = self._clock()

        def work(connection: sqlite3.Connection) -> None:
            row = known(connection, session_id, now)
            connection.executemany(
                "INSERT INTO contents VALUES (?, 1, ?, 1, ?, ?) ON CONFLICT DO NOTHING",
                [
                    (row.number, pointer, form, content)
                    for pointer, (form, content) in zip(given, contents, strict=True)
                ],
            )
            row.renew(connection, now)

        await self._writer.run(work, size=sum(len(content) for _, content in contents))

    async def get_page(self, session_id: str, pointer: str) -> bytes | None:
        """See `SessionStore.get_page`."""
        sought("pointer", pointer)

        def work(connection: sqlite3.Connection, row: Row) -> bytes | None:
            found = content_of(connection, row.number, 1, pointer)
            return None if found is None else found.payload

        return await self._read(session_id, work)

    async def page_pointers(self, session_id: str) -> list[str]:
        """See `SessionStore.page_pointers`."""
        return await self._read(session_id, lambda connection, row: names_of(connection, row, 1))

    async def list_sessions(
        self, *, user_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[SessionInfo]:
        """See `SessionStore.list_sessions`."""
        most = whole_number("limit", limit)
        if user_id is not None and not is_storable(sought("user_id", user_id)):
            return []
        # As bytes: what it comes after may be a text that cannot be stored.
        behind = "" if after is None else sought("after", after)
        now = self._clock()
        whose = "" if user_id is None else "user_id = :user AND "

        def work(connection: sqlite3.Connection) -> list[SessionInfo]:
            rows = connection.execute(
                f"SELECT {INFO} FROM sessions WHERE {whose}session_id > CAST(:after AS TEXT) "  # noqa: S608 - constants
                "AND (expires_at IS NULL OR expires_at > :now) ORDER BY session_id LIMIT :most",
                {
                    "user": user_id,
                    "after": behind.encode("utf-8", "surrogatepass"),
                    "now": now,
                    "most": most,
                },
            )
            return [SessionInfo(*row[:8]) for row in rows]

        return await self._reader.run(work)

    async def delete(self, session_id: str) -> bool:
        """See `SessionStore.delete`."""
        sought("session_id", session_id)
        now = self._clock()

        def work(connection: sqlite3.Connection) -> bool:
            row = row_of(connection, session_id)
            if row is None:
                return False
            remove(connection, row.number)
            return not row.has_ended(now)

        return await self._writer.run(work)

    @asynccontextmanager
    async def lease(
        self,
        session_id: str,
        *,
        ttl_s: float = 30.0,
        timeout_s: float = 30.0,
        renew: bool = True,
    ) -> AsyncGenerator[Lease]:
        """See `SessionStore.lease`."""
        sought("session_id", session_id)
        life = checked_life("ttl_s", ttl_s)
        wait = checked_wait("timeout_s", timeout_s)

        def take(connection: sqlite3.Connection) -> Lease | None:
            now = self._clock()
            row = known(connection, session_id, now)
            if row.lease_token is not None and row.lease_ends > now:
                return None
            [token] = connection.execute(
                "UPDATE counters SET value = value + 1 WHERE name = 'lease' RETURNING value"
            ).fetchone()
            connection.execute(
                "UPDATE sessions SET lease_token = ?, lease_ends = ? WHERE number = ?",
                (token, now + life, row.number),
            )
            return Lease(token)

        def put_off(connection: sqlite3.Connection, token: int) -> bool:
            now = self._clock()
            done = connection.execute(
                "UPDATE sessions SET lease_ends = ? "
                "WHERE session_id = ? AND lease_token = ? AND lease_ends > ?",
                (now + life, session_id, token, now),
            )
            return done.rowcount > 0

        def give_back(connection: sqlite3.Connection, token: int) -> None:
            connection.execute(
                "UPDATE sessions SET lease_token = NULL WHERE session_id = ? AND lease_token = ?",
                (session_id, token),
            )

        async with held_lease(
            lambda: self._writer.run(take),
            lambda lease: self._writer.run(partial(put_off, token=lease.token)),
            lambda lease: self._writer.run(partial(give_back, token=lease.token)),
            ttl_s=life,
            timeout_s=wait,
            renew=renew,
        ) as lease:
            yield lease

    async def close(self) -> None:
        """See `SessionStore.close`."""
        await asyncio.gather(self._reader.close(), self._writer.close())

    async def _read(self, session_id: str, work: Callable[[sqlite3.Connection, Row], _T]) -> _T:
        sought("session_id", session_id)
        now = self._clock()
        return await self._reader.run(
            lambda connection: work(connection, known(connection, session_id, now))
        )


def _connected(
    path: str,
    durability: str,
    busy_timeout_s: float,
    *,
    any_thread: bool = False,
    log_pages: int = 1_000,
) -> sqlite3.Connection:
    """A connection with its settings, to a file that has its tables."""
    connection = sqlite3.connect(
        path,
        timeout=busy_timeout_s,
        isolation_level=None,
        check_same_thread=not any_thread,
        cached_statements=64,
    )
    try:
        prepare(connection, timeout_s=busy_timeout_s)
        connection.execute(f"PRAGMA synchronous = {_SYNCHRONOUS[durability]}")
        connection.execute("PRAGMA fullfsync = 1")
        # What was deleted is overwritten, and not left in the file to be found.
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA cache_size = -8000")
        connection.execute(f"PRAGMA wal_autocheckpoint = {log_pages}")
    except BaseException:
        connection.close()
        raise
    return connection
