"""Rows of the SQLite store: how a session is found, and how contents are packed.

Everything here runs within a transaction, or looks at bytes alone.
"""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, Any, Final

from satchel.stores._sqlite_log import remove_rows
from satchel.stores.base import (
    Lease,
    SessionInfo,
    Value,
    check_payload,
    conflict,
    lease_lost,
    not_found,
)
from satchel.stores.entries import DEFLATED, inflated

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from satchel.stores.base import Entry

__all__ = [
    "INFO",
    "Row",
    "content_of",
    "fresh_places",
    "is_storable",
    "known",
    "names_of",
    "packed",
    "remove",
    "row_of",
    "sweep",
]

_Packed = tuple[int, bytes]

_WORTH_DEFLATING: Final = 2_048
"""Bytes below which a payload stays plain: reading a long log would cost more than the room."""

_INLINE_BYTES: Final = 16_384
"""Payloads with more bytes together are packed in a thread."""

_MOST_SWEPT: Final = 20
"""Sessions past their end that one `open` removes from the file."""

INFO: Final = (
    "session_id, user_id, version, length, created_at, changed_at, expires_at, parent, "
    "number, ttl_s, lease_token, lease_ends"
)
"""The columns of a session, in the order that `Row` takes them."""


class Row:
    """A row of the table of sessions."""

    __slots__ = ("info", "lease_ends", "lease_token", "number", "ttl_s")

    def __init__(self, row: tuple[Any, ...]) -> None:
        self.info = SessionInfo(*row[:8])
        self.number: int
        self.ttl_s: float | None
        self.lease_token: int | None
        self.number, self.ttl_s, self.lease_token, ends = row[8:]
        self.lease_ends: float = ends or 0.0

    def has_ended(self, now: float) -> bool:
        """Whether its time is over."""
        return self.info.expires_at is not None and self.info.expires_at <= now

    def renew(self, connection: sqlite3.Connection, now: float) -> None:
        """Puts its end off."""
        if self.ttl_s is not None:
            connection.execute(
                "UPDATE sessions SET expires_at = ? WHERE number = ?",
                (now + self.ttl_s, self.number),
            )

    def written(
        self, connection: sqlite3.Connection, now: float, steps: int, length: int
    ) -> SessionInfo:
        """Notes a write of the log."""
        old = self.info
        info = SessionInfo(
            old.session_id,
            old.user_id,
            old.version + steps,
            length,
            old.created_at,
            now if steps else old.changed_at,
            old.expires_at if self.ttl_s is None else now + self.ttl_s,
            old.parent,
        )
        if steps or self.ttl_s is not None:
            connection.execute(
                "UPDATE sessions SET version = ?, length = ?, changed_at = ?, expires_at = ? "
                "WHERE number = ?",
                (info.version, length, info.changed_at, info.expires_at, self.number),
            )
        return info


def is_storable(text: str) -> bool:
    """Whether a text can be in the database; what is looked for may be any."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def row_of(connection: sqlite3.Connection, session_id: str) -> Row | None:
    """The row of a session, also of one whose time is over."""
    if not is_storable(session_id):
        return None
    found = connection.execute(
        f"SELECT {INFO} FROM sessions WHERE session_id = ?",  # noqa: S608 - a constant
        (session_id,),
    ).fetchone()
    return None if found is None else Row(found)


def known(
    connection: sqlite3.Connection,
    session_id: str,
    now: float,
    expected_version: int | None = None,
    lease: Lease | None = None,
) -> Row:
    """The row of a session that lives.

    Raises:
        StoreError: ``session_not_found``, ``lease_lost``, ``version_conflict``.
    """
    row = row_of(connection, session_id)
    if row is None or row.has_ended(now):
        raise not_found()
    if lease is not None and (row.lease_token != lease.token or row.lease_ends <= now):
        raise lease_lost()
    if expected_version is not None and expected_version != row.info.version:
        raise conflict(row.info.version, expected_version)
    return row


def fresh_places(connection: sqlite3.Connection, number: int, given: Sequence[Entry]) -> list[int]:
    """The places of the entries whose keys are new."""
    known: set[str] = set()
    chosen: list[int] = []
    for place, entry in enumerate(given):
        if entry.key is not None:
            if (
                entry.key in known
                or connection.execute(
                    "SELECT 1 FROM keys WHERE session = ? AND key = ?", (number, entry.key)
                ).fetchone()
            ):
                continue
            known.add(entry.key)
        chosen.append(place)
    return chosen


def content_of(
    connection: sqlite3.Connection, number: int, is_page: int, name: str
) -> Value | None:
    """A value or a page."""
    if not is_storable(name):
        return None
    found = connection.execute(
        "SELECT form, payload, version FROM contents "
        "WHERE session = ? AND is_page = ? AND name = ?",
        (number, is_page, name),
    ).fetchone()
    if found is None:
        return None
    form, payload, version = found
    return Value(inflated(payload, 0) if form & DEFLATED else payload, version)


def names_of(connection: sqlite3.Connection, row: Row, is_page: int) -> list[str]:
    """The names of a session's values or pages, sorted."""
    found = connection.execute(
        "SELECT name FROM contents WHERE session = ? AND is_page = ? ORDER BY name",
        (row.number, is_page),
    )
    return [name for (name,) in found]


def remove(connection: sqlite3.Connection, number: int) -> None:
    """Removes all of a session."""
    connection.execute("DELETE FROM sessions WHERE number = ?", (number,))
    remove_rows(connection, number)
    connection.execute("DELETE FROM contents WHERE session = ?", (number,))


def sweep(connection: sqlite3.Connection, now: float) -> None:
    """Removes sessions whose time is over; nobody saw them any more."""
    ended = connection.execute(
        "SELECT number FROM sessions WHERE expires_at <= ? LIMIT ?", (now, _MOST_SWEPT)
    ).fetchall()
    for (number,) in ended:
        remove(connection, number)


async def packed(payloads: Iterable[bytes]) -> list[_Packed]:
    """Forms and contents of payloads; large ones are compressed in a thread."""
    given = [check_payload(payload) for payload in payloads]
    large = sum(len(payload) for payload in given if len(payload) >= _WORTH_DEFLATING)
    if large <= _INLINE_BYTES:
        return [deflated(payload) for payload in given]
    return await asyncio.to_thread(lambda: [deflated(payload) for payload in given])


def deflated(payload: bytes) -> _Packed:
    if len(payload) < _WORTH_DEFLATING:
        return 0, payload
    packed = zlib.compress(payload, 1)
    return (DEFLATED, packed) if len(packed) < len(payload) * 7 // 8 else (0, payload)
