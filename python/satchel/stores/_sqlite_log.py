"""The log of a session in SQLite: newest entries in rows of their own, older ones in chunks.

A row for each entry makes an append quick and a long log slow to read. So what no longer changes is
moved, many entries at a time, into one row: a chunk. Large entries stay as they are, for copying
them would cost more than it saves. Everything here runs within a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from satchel.errors import StoreError
from satchel.stores.entries import Block, Entries, block_of, packed_block, unpacked_block

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Iterator, Sequence

    Row = tuple[int, int, bytes, str | None]
    """Sequence number, form, content, key."""

__all__ = [
    "add_rows",
    "copy_rows",
    "cut_rows",
    "moves_rows",
    "read_rows",
    "remove_rows",
    "seal_rows",
]

SEALED_EVERY: Final = 128
"""Entries that an append leaves in rows of their own, at most twice as many."""

MOST_IN_CHUNK: Final = 256
LEAST_IN_CHUNK: Final = 16
_LARGE_BYTES: Final = 8_192
"""Contents above this have a row of their own for good."""

_MOST_SEALED: Final = 1_024
"""Entries that one append moves, so that a log of an older version comes in little by little."""


def add_rows(connection: sqlite3.Connection, number: int, length: int, rows: Sequence[Row]) -> None:
    """Adds entries behind the ``length`` that are there."""
    base = number << 32
    singles = list(rows)
    # A chunk of these would keep older rows, that are still to come, out of chunks for good.
    if len(rows) >= SEALED_EVERY and seal_rows(connection, number, length):
        singles = _write(connection, base, _runs(rows))
    connection.executemany(
        "INSERT INTO entries VALUES (?, ?, ?, ?, ?)",
        [(base + row[0], number, row[1], row[3], row[2]) for row in singles],
    )
    keyed = [(number, row[3], row[0]) for row in rows if row[3] is not None]
    if keyed:
        connection.executemany("INSERT INTO keys VALUES (?, ?, ?)", keyed)
    if len(rows) < SEALED_EVERY and moves_rows(length, len(rows)):
        seal_rows(connection, number, length)


def moves_rows(length: int, added: int) -> bool:
    """Whether `add_rows` moves older rows into chunks, behind ``length`` entries."""
    return length // SEALED_EVERY < (length + added) // SEALED_EVERY


def seal_rows(connection: sqlite3.Connection, number: int, length: int) -> bool:
    """Moves rows of the first ``length`` entries into chunks; whether that was all of them.

    Rows that hold other types, as in a damaged file, stay as they are: reading tells of them.
    """
    base = number << 32
    last = connection.execute(
        "SELECT id + count - 1 FROM chunks WHERE id > ? AND id <= ? ORDER BY id DESC LIMIT 1",
        (base, base + length),
    ).fetchone()
    found = connection.execute(
        "SELECT id - ?, form, payload, key FROM entries WHERE id > ? AND id <= ? "
        "AND length(payload) <= ? AND typeof(payload) = 'blob' AND typeof(key) IN ('text', 'null') "
        "AND typeof(form) = 'integer' AND form BETWEEN 0 AND 255 ORDER BY id LIMIT ?",
        (base, last[0] if last else base, base + length, _LARGE_BYTES, _MOST_SEALED),
    ).fetchall()
    runs = [run for run in _runs(found) if len(run) >= LEAST_IN_CHUNK]
    for run in runs:
        connection.execute(
            "DELETE FROM entries WHERE id >= ? AND id <= ?", (base + run[0][0], base + run[-1][0])
        )
    _write(connection, base, runs)
    return len(found) < _MOST_SEALED or not runs


def read_rows(connection: sqlite3.Connection, number: int, start: int, end: int) -> Entries:
    """The entries behind ``start`` up to ``end``, all of which must be there.

    Raises:
        StoreError: ``store_corrupt``, ``corrupt_entry``.
    """
    if end <= start:
        return Entries([])
    base = number << 32
    blocks: list[Block] = []
    for first, count, heads, contents in connection.execute(
        "SELECT id - ?, count, heads, contents FROM chunks "
        "WHERE id > ? AND id <= ? AND id + count > ? ORDER BY id",
        (base, base + max(0, start - MOST_IN_CHUNK), base + end, base + start + 1),
    ):
        block = unpacked_block(first, count, heads, contents)
        blocks.append(block.cut(max(0, start + 1 - first), min(count, end + 1 - first)))
    rows: list[Row] = connection.execute(
        "SELECT id - ?, form, payload, key FROM entries WHERE id > ? AND id <= ? ORDER BY id",
        (base, base + start, base + end),
    ).fetchall()
    blocks += [block_of(run[0][0], [row[1:] for row in run]) for run in _runs(rows, whole=True)]
    blocks.sort(key=_first)
    expected = start + 1
    for block in blocks:
        if block.first != expected:
            break
        expected += len(block)
    if expected != end + 1:
        found = sum(map(len, blocks))
        message = f"of entries {start + 1} to {end} of the session {found} are there, not all"
        raise StoreError(message, code="store_corrupt")
    return Entries(blocks)


def cut_rows(connection: sqlite3.Connection, number: int, length: int) -> None:
    """Removes the entries behind the first ``length``."""
    base = number << 32
    connection.execute(
        "DELETE FROM entries WHERE id > ? AND id < ?", (base + length, base + (1 << 32))
    )
    connection.execute("DELETE FROM keys WHERE session = ? AND sequence > ?", (number, length))
    kept = _head(connection, base, length)
    connection.execute(
        "DELETE FROM chunks WHERE id > ? AND id < ? AND id + count > ?",
        (base, base + (1 << 32), base + length + 1),
    )
    if kept is not None:
        _put(connection, base, kept)


def copy_rows(connection: sqlite3.Connection, number: int, target: int, length: int) -> None:
    """Gives another session, that has none, the first ``length`` entries of this one."""
    base, other = number << 32, target << 32
    connection.execute(
        "INSERT INTO entries SELECT id + ?, ?, form, key, payload FROM entries "
        "WHERE id > ? AND id <= ?",
        (other - base, target, base, base + length),
    )
    connection.execute(
        "INSERT INTO chunks SELECT id + ?, count, heads, contents FROM chunks "
        "WHERE id > ? AND id + count <= ?",
        (other - base, base, base + length + 1),
    )
    kept = _head(connection, base, length)
    if kept is not None:
        _put(connection, other, kept)
    connection.execute(
        "INSERT INTO keys SELECT ?, key, sequence FROM keys WHERE session = ? AND sequence <= ?",
        (target, number, length),
    )


def remove_rows(connection: sqlite3.Connection, number: int) -> None:
    """Removes all entries."""
    bounds = (number << 32, (number + 1) << 32)
    connection.execute("DELETE FROM entries WHERE id > ? AND id < ?", bounds)
    connection.execute("DELETE FROM chunks WHERE id > ? AND id < ?", bounds)
    connection.execute("DELETE FROM keys WHERE session = ?", (number,))


def _head(connection: sqlite3.Connection, base: int, length: int) -> Block | None:
    """The part up to ``length`` of the chunk that goes beyond it; None if there is none."""
    found = connection.execute(
        "SELECT id - ?, count, heads, contents FROM chunks "
        "WHERE id > ? AND id <= ? AND id + count > ? ORDER BY id DESC LIMIT 1",
        (base, base, base + length, base + length + 1),
    ).fetchone()
    if found is None:
        return None
    block = unpacked_block(*found)
    return block.cut(0, length + 1 - block.first)


def _first(block: Block) -> int:
    return block.first


def _runs(rows: Iterable[Row], *, whole: bool = False) -> Iterator[list[Row]]:
    """Rows whose numbers follow one another; ``whole``, or as they go into chunks."""
    run: list[Row] = []
    for row in rows:
        is_next = bool(run) and run[-1][0] + 1 == row[0]
        if not whole:
            is_next = is_next and len(run) < MOST_IN_CHUNK and len(row[2]) <= _LARGE_BYTES
            is_next = is_next and len(run[-1][2]) <= _LARGE_BYTES
        if run and not is_next:
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _write(connection: sqlite3.Connection, base: int, runs: Iterable[list[Row]]) -> list[Row]:
    """Writes runs as chunks; returns the rows of those that are too short."""
    singles: list[Row] = []
    for run in runs:
        if len(run) < LEAST_IN_CHUNK:
            singles += run
        else:
            _put(connection, base, block_of(run[0][0], [row[1:] for row in run]))
    return singles


def _put(connection: sqlite3.Connection, base: int, block: Block) -> None:
    heads, contents = packed_block(block)
    connection.execute(
        "INSERT INTO chunks VALUES (?, ?, ?, ?)", (base + block.first, len(block), heads, contents)
    )
