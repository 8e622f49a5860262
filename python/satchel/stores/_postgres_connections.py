"""Connections to PostgreSQL: a pool, a schema that is there, and calls that are sent again.

A call that has no answer by its time ends with its connection, whatever the server does. What the
server says may hold values of rows, so errors tell its code only.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
from typing import TYPE_CHECKING, Any, Final, TypeVar

import psycopg
from psycopg import errors as answers
from psycopg.conninfo import conninfo_to_dict
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from satchel.errors import InputError, StoreError
from satchel.stores import _postgres_sql as sql

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Connection = psycopg.AsyncConnection[tuple[Any, ...]]
    Work = Callable[[Connection], Awaitable["_T"]]

__all__ = ["Connections"]

_T = TypeVar("_T")

_MIGRATION_LOCK: Final = 0x7361_7463_6865_6C00
"""The advisory lock of whoever changes the schema; "satchel" in ASCII."""

_TRY_S: Final = 1.0
"""How long one try to connect is waited for before the next."""

_MOST_DOUBLES: Final = 8
"""How often in a row a key may be added at the same moment."""

_CANCELLED: Final = "57014"

_SAID: Final = (
    (
        # Connections, serialization, shutdown, locks, no connection left, a key added meanwhile.
        ("08", "40", "57P", "55P03", "53300", "23505"),
        "store_unavailable",
        "PostgreSQL cannot be reached, or is too busy: try again later",
    ),
    (
        ("53",),
        "store_full",
        "PostgreSQL has no room left: make room; nothing of this write was kept",
    ),
    (("25006",), "store_read_only", "PostgreSQL lets only read: use the primary server's address"),
    (
        ("28", "42501", "3D"),
        "store_refused",
        "PostgreSQL does not allow it: check user, password, database and rights",
    ),
    (
        ("42", "3F"),
        "schema_unknown",
        "the tables are not as satchel made them: restore a backup, or use another database",
    ),
    (
        ("XX001", "XX002", "58"),
        "store_corrupt",
        "PostgreSQL finds its files damaged: restore a backup",
    ),
)
"""What codes begin with, and what that means; https://www.postgresql.org/docs/current/errcodes-appendix.html."""


class Connections:
    """A pool that opens when it is first used, once an event loop.

    Args:
        url: of the database.
        timeout_s: how long a call may take, tries and waiting for a connection included.
        most: how many connections there are at most.

    Raises:
        InputError: ``invalid_value`` for a URL that cannot be read.
    """

    def __init__(self, url: str, *, timeout_s: float, most: int) -> None:
        try:
            self._settings: Final[dict[str, Any]] = dict(conninfo_to_dict(url))
        except (psycopg.ProgrammingError, UnicodeError):
            # The reason may repeat the URL, and that may hold a password.
            message = "the postgresql:// URL cannot be read"
            raise InputError(message, code="invalid_value") from None
        self._settings.setdefault("connect_timeout", max(1, round(min(10.0, timeout_s))))
        self._settings.setdefault("application_name", "satchel")
        self._timeout_s: Final = timeout_s
        self._most: Final = most
        self._pool: AsyncConnectionPool[Connection] | None = None
        self._is_closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()

    async def call(self, work: Work[_T]) -> _T:
        """What ``work`` returns, given a connection; tried again while that may help.

        Raises:
            StoreError: see `SessionStore`.
        """
        ends = asyncio.get_running_loop().time() + self._timeout_s
        pause, doubles = 0.01, 0
        while True:
            if self._is_closed:
                message = "the store was closed"
                raise StoreError(message, code="store_closed")
            try:
                pool = await self._ready(ends)
                return await self._once(pool, work, ends)
            except (psycopg.Error, OSError, TimeoutError) as error:
                left = ends - asyncio.get_running_loop().time()
                doubles += isinstance(error, answers.UniqueViolation)
                if doubles > _MOST_DOUBLES:
                    message = "entries of the session are not where they belong: restore a backup"
                    raise StoreError(message, code="store_corrupt") from None
                found = _typed(error, self._timeout_s)
                if found.code != "store_unavailable" or left <= pause:
                    raise found from None
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads tries
            pause = min(pause * 2, 1.0)

    async def close(self) -> None:
        """Ends the pool."""
        self._is_closed = True
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            await pool.close(timeout=1.0)

    async def _once(self, pool: AsyncConnectionPool[Connection], work: Work[_T], ends: float) -> _T:
        left = ends - asyncio.get_running_loop().time()
        connection = await pool.getconn(timeout=min(max(0.001, left), 2 * _TRY_S))
        try:
            return await _until(ends, connection, work)
        finally:
            await pool.putconn(connection)

    async def _ready(self, ends: float) -> AsyncConnectionPool[Connection]:
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # What is left of a loop that has ended cannot be closed from here.
            self._pool, self._loop, self._opening = None, loop, asyncio.Lock()
        if self._pool is not None:
            return self._pool
        async with self._opening:
            if self._pool is None:
                await self._prepare(ends)
                pool: AsyncConnectionPool[Connection] = AsyncConnectionPool(
                    kwargs={**self._settings, "autocommit": True},
                    min_size=0,
                    max_size=self._most,
                    open=False,
                    name="satchel",
                    timeout=self._timeout_s,
                    # `call` tries again, and sooner than the pool would.
                    reconnect_timeout=_TRY_S,
                    configure=_configure,
                )
                await pool.open()
                if self._is_closed:
                    # Closed meanwhile, by somebody who found no pool to close.
                    await pool.close()
                    message = "the store was closed"
                    raise StoreError(message, code="store_closed")
                self._pool = pool
            return self._pool

    async def _prepare(self, ends: float) -> None:
        """Makes sure that the schema is the one of this version."""
        async with asyncio.timeout_at(ends):
            connection = await psycopg.AsyncConnection.connect(**self._settings, autocommit=True)
        async with connection:
            await _until(ends, connection, _migrated)


async def _until(ends: float, connection: Connection, work: Work[_T]) -> _T:
    """What ``work`` returns; after ``ends``, or if the caller leaves, the connection ends with it.

    Raises:
        TimeoutError: it took longer.
    """
    task = asyncio.ensure_future(work(connection))
    try:
        left = ends - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait({task}, timeout=max(0.0, left))
        if not done:
            raise TimeoutError
        return task.result()
    finally:
        if not task.done():
            # Asking a server that hangs to cancel would wait for it too.
            _cut(connection)
            await asyncio.wait({task})
            with contextlib.suppress(psycopg.Error, StoreError):
                task.result()


async def _migrated(connection: Connection) -> None:
    """Brings the schema up to date; of several who do so at once, one does."""
    if await _schema_version(connection) == len(sql.STEPS):
        return
    async with connection.transaction():
        # Whoever comes second waits here, and finds nothing left to do.
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", [_MIGRATION_LOCK])
        version = await _schema_version(connection)
        if version < 1:
            await connection.execute(
                "CREATE TABLE IF NOT EXISTS satchel_schema "
                "(part text PRIMARY KEY, version int NOT NULL)"
            )
        for step in sql.STEPS[version:]:
            await connection.execute(step)
        await connection.execute(
            "INSERT INTO satchel_schema VALUES ('sessions', %s) "
            "ON CONFLICT (part) DO UPDATE SET version = excluded.version",
            [len(sql.STEPS)],
        )


async def _schema_version(connection: psycopg.AsyncConnection[Any]) -> int:
    """The version of the tables; 0 if there are none.

    Raises:
        StoreError: ``schema_newer``.
    """
    # Naming a catalog makes the server look at what others have changed in the meantime.
    found = await connection.execute(
        "SELECT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('satchel_schema'))"
    )
    row = await found.fetchone()
    if row is None or not row[0]:
        return 0
    row = await (await connection.execute(sql.VERSION)).fetchone()
    version = 0 if row is None else int(row[0])
    if version > len(sql.STEPS):
        message = (
            f"the database's tables have version {version}, this satchel knows {len(sql.STEPS)}: "
            "use a newer satchel, or another database"
        )
        raise StoreError(message, code="schema_newer", value=version, limit=len(sql.STEPS))
    return version


async def _configure(connection: Connection) -> None:
    # What was acknowledged must outlive a crash of the server.
    await connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false) "
        "WHERE current_setting('synchronous_commit') = 'off'"
    )


def _cut(connection: Connection) -> None:
    """Ends the connection's socket, so that whoever waits for it wakes up."""
    with contextlib.suppress(OSError, psycopg.Error):
        end = socket.socket(fileno=os.dup(connection.fileno()))
        with end:
            end.shutdown(socket.SHUT_RDWR)


def _typed(error: Exception, timeout_s: float) -> StoreError:
    """The error without what the server said."""
    state = getattr(error, "sqlstate", None) or ""
    if isinstance(error, (TimeoutError, PoolTimeout)) or state == _CANCELLED:
        message = f"PostgreSQL gave no answer within {timeout_s:g} s"
        return StoreError(message, code="store_unavailable")
    if not state and isinstance(error, psycopg.OperationalError):
        attempt = error.pgconn
        # A connection that was not made has no code.
        is_refused = attempt is not None and (attempt.needs_password or attempt.used_password)
        state = "28000" if is_refused else "08000"
    for starts, code, message in _SAID:
        if state.startswith(starts):
            return StoreError(f"{message} (SQLSTATE {state})", code=code)
    message = f"PostgreSQL failed ({type(error).__name__}, SQLSTATE {state or 'none'})"
    return StoreError(message, code="store_unavailable")
