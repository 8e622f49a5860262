"""Sessions in PostgreSQL, for several processes and machines.

The tables are made on first use, in the schema that comes first in the search path; ids are stored
as they are and compared byte by byte. Each write is one statement or one transaction under the lock
of its session's row, and may be sent again after a lost connection without being done twice.
"""

from __future__ import annotations

import asyncio
import secrets
import zlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, Literal

from satchel._arguments import whole_number
from satchel.errors import StoreError
from satchel.stores import _postgres_sql as sql
from satchel.stores._postgres_connections import Connections
from satchel.stores._write_ids import NEW_WRITE, WriteIds
from satchel.stores.base import (
    Entry,
    Lease,
    SessionInfo,
    Value,
    check_id,
    check_payload,
    checked_entries,
    checked_life,
    checked_limit,
    checked_pages,
    checked_version,
    checked_wait,
    conflict,
    exists,
    fresh_entries,
    held_lease,
    lease_lost,
    not_found,
    sought,
    wrong_user,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence

    from satchel.stores._postgres_connections import Connection

__all__ = ["PostgresStore"]

_KINDS: Final[tuple[Literal["message", "event"], ...]] = ("message", "event")
_MOST: Final = 2**62


class PostgresStore:
    """Keeps sessions in a PostgreSQL database.

    Args:
        url: ``postgresql://user:password@host:port/database?...``, as libpq reads it.
        timeout_s: how long a call may take, tries after a lost connection included.
        max_connections: of this store's pool.

    Raises:
        InputError: ``invalid_value`` for a URL that cannot be read.
    """

    def __init__(self, url: str, *, timeout_s: float = 30.0, max_connections: int = 10) -> None:
        self._connections: Final = Connections(url, timeout_s=timeout_s, most=max_connections)
        self._write_ids: Final = WriteIds()

    @property
    def is_durable(self) -> bool:
        """True: the server has written what it acknowledged."""
        return True

    async def open(
        self, session_id: str, *, user_id: str | None = None, ttl_s: float | None = None
    ) -> SessionInfo:
        """See `SessionStore.open`."""
        check_id("session_id", session_id)
        user = None if user_id is None else _bytes(check_id("user_id", user_id))
        life = None if ttl_s is None else checked_life("ttl_s", ttl_s)
        given = {"id": _bytes(session_id), "user": user, "ttl": life}
        while True:
            for statement in sql.PURGE:
                await self._rows(statement, given)
            rows = await self._rows(sql.OPEN, given)
            if rows:
                return _info(rows[0])
            if await self._rows(sql.INFO, given):
                raise wrong_user()
            # It has just ended; another is made in its place.

    async def info(self, session_id: str) -> SessionInfo:
        """See `SessionStore.info`."""
        return _info(_found(await self._rows(sql.INFO, {"id": _bytes(session_id)})))

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """See `SessionStore.append`."""
        fresh = fresh_entries(checked_entries(entries), set())
        given = {
            "id": _bytes(session_id),
            "expected": checked_version(expected_version),
            "lease": None if lease is None else lease.token,
            "write": NEW_WRITE,
            "kinds": [_KINDS.index(entry.kind) for entry in fresh],
            # No key is empty.
            "keys": [b"" if entry.key is None else _bytes(entry.key) for entry in fresh],
            "payloads": [entry.payload for entry in fresh],
        }
        is_done, is_leased, *found = _found(await self._rows(sql.APPEND, given))
        info = _info(found)
        if not is_done:
            raise lease_lost() if not is_leased else conflict(info.version, expected_version or 0)
        return info

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Entry]:
        """See `SessionStore.read`.

        Raises:
            StoreError: ``store_corrupt`` if entries are missing in the database.
        """
        whole_number("after", after)
        checked_limit(limit)
        last = _MOST if limit is None else after + limit
        rows = await self._rows(sql.READ, {"id": _bytes(session_id), "after": after, "last": last})
        length: int = _found(rows)[0]
        wanted = max(0, min(length, last) - after)
        found = [row for row in rows if row[1] is not None]
        if len(found) != wanted or (found and found[-1][1] != after + wanted):
            message = (
                f"the log has {len(found)} of {wanted} entries behind {after}: the database was "
                "changed by something else; restore it from a backup, or rewind the session"
            )
            raise StoreError(message, code="store_corrupt", value=len(found), limit=wanted)
        return [_entry(row) for row in found]

    async def truncate(
        self,
        session_id: str,
        length: int,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """See `SessionStore.truncate`."""
        given = {
            "id": _bytes(session_id),
            "length": min(whole_number("length", length), _MOST),
            "lease": None if lease is None else lease.token,
            "write": secrets.token_bytes(8),
        }
        expected = checked_version(expected_version)

        async def work(connection: Connection) -> SessionInfo:
            async with connection.transaction():
                found = _found(await _all(connection, sql.LOCK, given))
                number, _, version, is_done, is_leased = found
                if not is_done:
                    if not is_leased:
                        raise lease_lost()
                    if expected not in (None, version):
                        raise conflict(version, expected)
                    await connection.execute(sql.CUT, {**given, "number": number})
                    await connection.execute(sql.NOTE_CUT, {**given, "number": number})
                return _info(_found(await _all(connection, sql.INFO, given)))

        return await self._connections.call(work)

    async def branch(
        self, session_id: str, target_id: str, *, length: int, user_id: str | None = None
    ) -> SessionInfo:
        """See `SessionStore.branch`."""
        check_id("target_id", target_id)
        kept = min(whole_number("length", length), _MOST)
        user = None if user_id is None else _bytes(user_id)
        target = _bytes(target_id)
        write = secrets.token_bytes(8)
        given = {"target": target, "write": write, "length": kept, "lease": None}

        async def work(connection: Connection) -> SessionInfo:
            async with connection.transaction():
                source = {**given, "id": _bytes(session_id)}
                number, owner, *_ = _found(await _all(connection, sql.LOCK, source))
                if owner != user:
                    raise wrong_user()
                await connection.execute(sql.PURGE[0], {"id": target})
                rows = await _all(connection, sql.BRANCH, {**given, "number": number})
                if rows:
                    return _info(rows[0])
                there = await _all(connection, sql.LOCK, {**given, "id": target})
                if there and there[0][3]:
                    return _info(_found(await _all(connection, sql.INFO, {"id": target})))
            raise exists()

        return await self._connections.call(work)

    async def get_value(self, session_id: str, name: str) -> Value | None:
        """See `SessionStore.get_value`."""
        given = {"id": _bytes(session_id), "name": _bytes(name)}
        payload, version = _found(await self._rows(sql.GET_VALUE, given))
        return None if version is None else Value(payload, version)

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
        given = {
            "id": _bytes(session_id),
            "name": _bytes(check_id("name", name)),
            "payload": check_payload(payload),
            "expected": checked_version(expected_version),
            "lease": None if lease is None else lease.token,
            "write": NEW_WRITE,
        }
        found = _found(await self._rows(sql.PUT_VALUE, given))
        written, before, is_ours, is_leased = found
        if written is not None:
            return int(written)
        if is_ours:
            return int(before)
        raise conflict(before or 0, expected_version or 0) if is_leased else lease_lost()

    async def value_names(self, session_id: str) -> list[str]:
        """See `SessionStore.value_names`."""
        return await self._texts(sql.VALUE_NAMES, session_id)

    async def put_pages(self, session_id: str, pages: Mapping[str, bytes]) -> None:
        """See `SessionStore.put_pages`."""
        plain = checked_pages(pages)
        given = {
            "id": _bytes(session_id),
            "pointers": [_bytes(pointer) for pointer in plain],
            "contents": await asyncio.to_thread(lambda: list(map(zlib.compress, plain.values()))),
        }
        _found(await self._rows(sql.PUT_PAGES, given))

    async def get_page(self, session_id: str, pointer: str) -> bytes | None:
        """See `SessionStore.get_page`.

        Raises:
            StoreError: ``corrupt_entry`` if it cannot be read back.
        """
        given = {"id": _bytes(session_id), "pointer": _bytes(pointer)}
        [content] = _found(await self._rows(sql.GET_PAGE, given))
        if content is None:
            return None
        try:
            return await asyncio.to_thread(zlib.decompress, content)
        except zlib.error:
            message = f"a page of {len(content)} bytes cannot be read: restore it from a backup"
            raise StoreError(message, code="corrupt_entry", value=len(content)) from None

    async def page_pointers(self, session_id: str) -> list[str]:
        """See `SessionStore.page_pointers`."""
        return await self._texts(sql.PAGE_POINTERS, session_id)

    async def list_sessions(
        self, *, user_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[SessionInfo]:
        """See `SessionStore.list_sessions`."""
        given: dict[str, Any] = {
            "after": None if after is None else _bytes(after),
            "limit": whole_number("limit", limit),
        }
        if user_id is None:
            return [_info(row) for row in await self._rows(sql.LIST, given)]
        given["user"] = _bytes(user_id)
        return [_info(row) for row in await self._rows(sql.LIST_OF_USER, given)]

    async def delete(self, session_id: str) -> bool:
        """See `SessionStore.delete`."""
        rows = await self._rows(sql.DELETE, {"id": _bytes(session_id)})
        return bool(rows and rows[0][0])

    @asynccontextmanager
    async def lease(
        self,
        session_id: str,
        *,
        ttl_s: float = 30.0,
        timeout_s: float = 30.0,
        renew: bool = True,
    ) -> AsyncGenerator[Lease]:
        """See `SessionStore.lease`; tokens grow over all sessions of the database."""
        life = checked_life("ttl_s", ttl_s)
        wait = checked_wait("timeout_s", timeout_s)
        given = {"id": _bytes(session_id), "holder": secrets.token_bytes(16), "ttl": life}

        async def take() -> Lease | None:
            [token] = _found(await self._rows(sql.LEASE, given))
            return None if token is None else Lease(token)

        async def keep(lease: Lease) -> bool:
            return bool(await self._rows(sql.RENEW, {**given, "token": lease.token}))

        async def leave(lease: Lease) -> None:
            await self._rows(sql.RELEASE, {"id": given["id"], "token": lease.token})

        async with held_lease(take, keep, leave, ttl_s=life, timeout_s=wait, renew=renew) as lease:
            yield lease

    async def close(self) -> None:
        """See `SessionStore.close`."""
        await self._connections.close()

    async def _texts(self, statement: Any, session_id: str) -> list[str]:  # noqa: ANN401 - see `_rows`
        rows = await self._rows(statement, {"id": _bytes(session_id)})
        _found(rows)
        return sorted(_text(row[0]) for row in rows if row[0] is not None)

    async def _rows(self, statement: Any, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:  # noqa: ANN401 - psycopg's own type of a literal
        if given.get("write") is not NEW_WRITE:
            return await self._connections.call(lambda one: _all(one, statement, given))
        with self._write_ids.taken() as write:
            said = {**given, "write": write}
            return await self._connections.call(lambda one: _all(one, statement, said))


async def _all(
    connection: Connection,
    statement: Any,  # noqa: ANN401 - as above
    given: Mapping[str, Any],
) -> list[tuple[Any, ...]]:
    async with connection.cursor(binary=True) as cursor:
        await cursor.execute(statement, given)
        return await cursor.fetchall() if cursor.description else []


def _found(rows: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    if not rows:
        raise not_found()
    return rows[0]


def _info(row: Sequence[Any]) -> SessionInfo:
    session_id, user, version, length, created_at, changed_at, expires_at, parent = row
    return SessionInfo(
        _text(session_id),
        None if user is None else _text(user),
        version,
        length,
        created_at=created_at,
        changed_at=changed_at,
        expires_at=expires_at,
        parent=None if parent is None else _text(parent),
    )


def _entry(row: Sequence[Any]) -> Entry:
    _, sequence, kind, payload, key = row
    return Entry(_KINDS[int(kind)], payload, None if key is None else _text(key), sequence)


def _bytes(text: str) -> bytes:
    # What is looked for may be any text; what is kept was checked.
    return sought("an id", text).encode("utf-8", "surrogatepass")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
