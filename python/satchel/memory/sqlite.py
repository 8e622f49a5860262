"""Memories in a file: SQLite from the standard library, its full-text index fed with our terms.

A scope of up to `RESIDENT` items is searched in memory, exactly; a larger one through the full-text
index for its words and in stripes of vectors for its meaning, exactly too, with bounded memory.
What is forgotten is overwritten: deleted cells are zeroed, the index is merged, the file is written
anew and the write-ahead log emptied before `forget` returns.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import threading
import weakref
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import numpy as np

from satchel.errors import StoreError
from satchel.memory.backend import (
    Candidates,
    Draft,
    Filter,
    Footing,
    Query,
    Scope,
    Selection,
    Statistics,
    id_taken,
    settled,
)
from satchel.memory.fetched import Fetched, candidates_of
from satchel.memory.namespaces import path_of
from satchel.memory.residents import Residents
from satchel.memory.sqlite_rows import (
    COLUMNS,
    SCHEMA,
    draft_of_row,
    filter_clause,
    indexed_terms,
    item_of_row,
    match_of,
    row_of,
    scope_clause,
    selection_clause,
)
from satchel.stores._sqlite_schema import use_write_ahead_log
from satchel.stores.base import conflict

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from numpy.typing import NDArray

    from satchel.memory.item import MemoryItem

__all__ = ["RESIDENT", "SqliteMemories"]

RESIDENT: Final = 200_000
"""Items of a scope that are held in memory; 256 numbers each, this takes about 300 MB."""

_STRIPE: Final = 8_192
_BUSY_S: Final = 30.0
_ALL: Final = ", ".join(COLUMNS)
_ITEM: Final = ", ".join(COLUMNS[: COLUMNS.index("text") + 1])
_RANKED: Final = "number, path, session_id, place, terms, vector, time, confidence, label"

_T = TypeVar("_T")


class SqliteMemories:
    """A `MemoryBackend` in a file.

    Args:
        path: of the file; made if there is none.
        resident: items of a scope that are held in memory.
    """

    def __init__(self, path: str, *, resident: int = RESIDENT) -> None:
        self._path: Final = path
        self._resident: Final = resident
        self._residents: Final = Residents(2 * resident)
        self._lock: Final = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._seen = -1
        _MEMORIES.add(self)

    def before_fork(self) -> None:
        """Closes the connection, which a forked process must not have; `after_fork` must follow."""
        self._lock.acquire()
        self._let_go()

    def after_fork(self) -> None:
        """Lets work go on, with another connection."""
        self._lock.release()

    async def footing(self) -> Footing | None:
        """See `MemoryBackend.footing`."""
        return await self._run(_footing)

    async def settle(self, footing: Footing) -> Footing:
        """See `MemoryBackend.settle`."""

        def work(db: sqlite3.Connection) -> Footing:
            with _transaction(db):
                found = _footing(db)
                if found is None or found.dimension is None:
                    _set_footing(db, footing)
                    return footing
                return found

        return await self._run(work)

    async def write(self, drafts: Sequence[Draft]) -> list[MemoryItem]:
        """See `MemoryBackend.write`."""
        return await self._run(lambda db: self._write(db, drafts))

    async def find(
        self, selection: Selection, filters: Filter | None, *, after: int, limit: int | None
    ) -> list[tuple[int, MemoryItem]]:
        """See `MemoryBackend.find`."""
        clause, values = selection_clause(selection)
        if filters is not None:
            more, others = filter_clause(filters)
            clause, values = f"{clause} AND {more}", [*values, *others]
        sql = (
            f"SELECT {_ITEM}, number FROM satchel_memories WHERE {clause} AND number > ? "  # noqa: S608 - columns and clauses of ours
            "ORDER BY number LIMIT ?"
        )
        bounds = [after, -1 if limit is None else limit]
        rows = await self._run(lambda db: db.execute(sql, [*values, *bounds]).fetchall())
        return [(row[-1], item_of_row(row)) for row in rows]

    async def forget(self, selection: Selection) -> int:
        """See `MemoryBackend.forget`."""
        return await self._run(lambda db: self._forget(db, selection))

    async def statistics(self, scope: Scope, terms: Sequence[str]) -> Statistics:
        """See `MemoryBackend.statistics`."""

        def work(db: sqlite3.Connection) -> Statistics:
            footing = _footing(db)
            if self._fits(db, scope):
                resident = self._residents.get(scope, lambda one: _load(db, one))
                return replace(resident.statistics(terms), footing=footing)
            clause, values = scope_clause(scope)
            sql = f"SELECT count(*), total(length) FROM satchel_memories WHERE {clause}"  # noqa: S608 - a clause of ours
            items, length = db.execute(sql, values).fetchone()
            counted = "SELECT count(*) FROM satchel_memory_terms WHERE terms MATCH ?"
            holding = [
                db.execute(counted, [match_of(scope.start, [term])]).fetchone()[0] for term in terms
            ]
            return Statistics(items, int(length), np.array(holding, np.int64), footing)

        return await self._run(work)

    async def candidates(self, scope: Scope, filters: Filter, query: Query) -> Candidates:
        """See `MemoryBackend.candidates`."""

        def work(db: sqlite3.Connection) -> Candidates:
            if self._fits(db, scope):
                resident = self._residents.get(scope, lambda one: _load(db, one))
                return resident.candidates(filters, query)
            return _searched(db, scope, filters, query)

        return await self._run(work)

    async def items(
        self,
        numbers: Sequence[int],
        seen: object | None = None,  # noqa: ARG002 - candidates are the store's own
    ) -> list[MemoryItem] | None:
        """See `MemoryBackend.items`."""
        found = await self._run(lambda db: _picked(db, f"number, {_ITEM}", numbers))
        by_number = {row[0]: item_of_row(row[1:]) for row in found}
        if len(by_number) < len(numbers):
            return None
        return [by_number[number] for number in numbers]

    async def vectors(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """See `MemoryBackend.vectors`."""
        found = await self._run(lambda db: _picked(db, "number, vector", numbers))
        known = {row[0]: np.frombuffer(row[1], "<f4") for row in found if row[1] is not None}
        dimension = max((len(row) for row in known.values()), default=0)
        nothing = np.zeros(dimension, np.float32)
        rows = [known.get(number, nothing) for number in numbers]
        return np.array(rows, np.float32).reshape(len(numbers), dimension)

    async def renew(self, footing: Footing, drafts: Sequence[Draft]) -> None:
        """See `MemoryBackend.renew`."""

        def work(db: sqlite3.Connection) -> None:
            with _transaction(db):
                stored = {
                    row[0]: item_of_row(row)
                    for row in db.execute(f"SELECT {_ITEM} FROM satchel_memories")  # noqa: S608 - columns of ours
                }
                if stored != {draft.item.id: draft.item for draft in drafts}:
                    raise conflict(len(stored), len(drafts))
                for draft in drafts:
                    _replace_row(db, draft)
                _set_footing(db, footing)
            self._residents.drop()
            _purge(db)

        await self._run(work)

    async def close(self) -> None:
        """See `MemoryBackend.close`."""

        def work() -> None:
            with self._lock:
                self._let_go()

        await asyncio.to_thread(work)

    def _let_go(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        self._residents.drop()
        self._seen = -1

    async def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        """Does the work in a thread, one piece after the other.

        Raises:
            StoreError: ``store_unavailable`` where the file is locked for too long or full;
                ``store_failed`` for whatever else SQLite says.
        """

        def locked() -> _T:
            with self._lock:
                try:
                    return work(self._opened())
                except sqlite3.OperationalError as error:
                    # Not from the error: SQLite's own words may quote a query.
                    raise StoreError(_said(error), code="store_unavailable") from None
                except sqlite3.Error as error:
                    raise StoreError(_said(error), code="store_failed") from None

        return await asyncio.to_thread(locked)

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            db = sqlite3.connect(
                self._path, timeout=_BUSY_S, isolation_level=None, check_same_thread=False
            )
            db.execute("PRAGMA secure_delete = ON")
            use_write_ahead_log(db, _BUSY_S)
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(SCHEMA)
            self._connection = db
        [[seen]] = self._connection.execute("PRAGMA data_version")
        if seen != self._seen:  # another connection wrote
            self._residents.drop()
            self._seen = seen
        return self._connection

    def _fits(self, db: sqlite3.Connection, scope: Scope) -> bool:
        clause, values = scope_clause(scope)
        sql = f"SELECT 1 FROM satchel_memories WHERE {clause} LIMIT 1 OFFSET ?"  # noqa: S608 - a clause of ours
        return self._residents.holds(scope) or (
            db.execute(sql, [*values, self._resident]).fetchone() is None
        )

    def _write(self, db: sqlite3.Connection, drafts: Sequence[Draft]) -> list[MemoryItem]:
        added: list[tuple[int, int | None, bytes, Draft]] = []
        superseded: list[int] = []
        changed: set[bytes] = set()
        with _transaction(db):
            for draft in drafts:
                _put(db, draft, added, superseded, changed)
            ids = json.dumps([draft.item.id for draft in drafts])
            rows = db.execute(
                f"SELECT {_ITEM} FROM satchel_memories "  # noqa: S608 - columns of ours
                "WHERE id IN (SELECT value FROM json_each(?))",
                [ids],
            ).fetchall()
        self._residents.added(added)
        self._residents.superseded(superseded)
        self._residents.drop(changed)
        items = {row[0]: item_of_row(row) for row in rows}
        return [items[draft.item.id] for draft in drafts]

    def _forget(self, db: sqlite3.Connection, selection: Selection) -> int:
        clause, values = selection_clause(selection)
        with _transaction(db):
            rows = db.execute(
                f"SELECT number, {_ALL} FROM satchel_memories WHERE {clause}",  # noqa: S608 - columns and clauses of ours
                values,
            ).fetchall()
            for row in rows:
                _unindex(db, row[0], draft_of_row(row[1:]))
            db.execute(f"DELETE FROM satchel_memories WHERE {clause}", values)  # noqa: S608 - a clause of ours
        self._residents.drop(row[2] for row in rows)
        if rows:
            _purge(db)
        return len(rows)


_MEMORIES: Final[weakref.WeakSet[SqliteMemories]] = weakref.WeakSet()
_PAUSED: Final[list[SqliteMemories]] = []
"""Those that wait for a fork to be over."""


def _before_fork() -> None:
    for memories in list(_MEMORIES):
        memories.before_fork()
        _PAUSED.append(memories)


def _after_fork() -> None:
    while _PAUSED:
        _PAUSED.pop().after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork
    )


def _said(error: sqlite3.Error) -> str:
    # SQLite's own words may quote a value; its name for the kind never does.
    return f"the memory file failed: {error.sqlite_errorname}"


@contextmanager
def _transaction(db: sqlite3.Connection) -> Generator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        # A full disk has ended it already, and its error is the one to see.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")


def _purge(db: sqlite3.Connection) -> None:
    """Takes what was deleted out of the index, the file and the log."""
    db.execute("INSERT INTO satchel_memory_terms (satchel_memory_terms) VALUES ('optimize')")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.execute("VACUUM")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def _footing(db: sqlite3.Connection) -> Footing | None:
    row = db.execute("SELECT analyser, embedder, dimension FROM satchel_memory_footing").fetchone()
    return None if row is None else Footing(*row)


def _set_footing(db: sqlite3.Connection, footing: Footing) -> None:
    db.execute(
        "INSERT OR REPLACE INTO satchel_memory_footing VALUES (1, ?, ?, ?)",
        [footing.analyser, footing.embedder, footing.dimension],
    )


def _put(
    db: sqlite3.Connection,
    draft: Draft,
    added: list[tuple[int, int | None, bytes, Draft]],
    superseded: list[int],
    changed: set[bytes],
) -> None:
    path = path_of(draft.item.namespace)
    found = db.execute("SELECT path FROM satchel_memories WHERE id = ?", [draft.item.id]).fetchone()
    if found is not None and found[0] != path:
        raise id_taken()
    others: dict[str, int] = {}
    rivals: list[MemoryItem] = []
    if draft.item.key is not None:
        rows = db.execute(
            f'SELECT {_ITEM}, number FROM satchel_memories WHERE path = ? AND "key" = ? '  # noqa: S608 - columns of ours
            "AND superseded_by IS NULL ORDER BY number",
            [path, draft.item.key],
        ).fetchall()
        others = {row[0]: row[-1] for row in rows}
        rivals = [item_of_row(row) for row in rows]
    for item in settled(draft.item, rivals):
        if item.id != draft.item.id:
            db.execute(
                "UPDATE satchel_memories SET superseded_by = ?, superseded_at = ? WHERE id = ?",
                [item.superseded_by, item.superseded_at, item.id],
            )
            superseded.append(others[item.id])
            continue
        fresh = replace(draft, item=item)
        if found is not None:
            _replace_row(db, fresh)
            changed.add(path)
            continue
        place = _next_place(db, path, item)
        cursor = db.execute(
            f"INSERT INTO satchel_memories ({_ALL}) "  # noqa: S608 - columns of ours
            f"VALUES ({', '.join('?' * len(COLUMNS))})",
            row_of(fresh, place),
        )
        number = cursor.lastrowid or 0
        _index(db, number, fresh)
        added.append((number, place, path, fresh))


def _replace_row(db: sqlite3.Connection, draft: Draft) -> None:
    """Writes a draft over the row with its id; the place stays."""
    row = db.execute(
        f"SELECT number, {_ALL} FROM satchel_memories WHERE id = ?",  # noqa: S608 - columns of ours
        [draft.item.id],
    ).fetchone()
    _unindex(db, row[0], draft_of_row(row[1:]))
    db.execute(
        f"UPDATE satchel_memories SET {', '.join(f'{name} = ?' for name in COLUMNS)} "  # noqa: S608 - columns of ours
        "WHERE number = ?",
        [*row_of(draft, row[1 + COLUMNS.index("place")]), row[0]],
    )
    _index(db, row[0], draft)


def _index(db: sqlite3.Connection, number: int, draft: Draft) -> None:
    db.execute(
        "INSERT INTO satchel_memory_terms (rowid, terms) VALUES (?, ?)",
        [number, indexed_terms(draft)],
    )


def _unindex(db: sqlite3.Connection, number: int, draft: Draft) -> None:
    db.execute(
        "INSERT INTO satchel_memory_terms (satchel_memory_terms, rowid, terms) "
        "VALUES ('delete', ?, ?)",
        [number, indexed_terms(draft)],
    )


def _next_place(db: sqlite3.Connection, path: bytes, item: MemoryItem) -> int | None:
    if item.kind != "episodic":
        return None
    row = db.execute(
        "SELECT max(place) FROM satchel_memories WHERE path = ? AND session_id IS ?",
        [path, item.source.session_id],
    ).fetchone()
    return 0 if row[0] is None else int(row[0]) + 1


def _picked(db: sqlite3.Connection, columns: str, numbers: Sequence[int]) -> list[Any]:
    return db.execute(
        f"SELECT {columns} FROM satchel_memories "  # noqa: S608 - columns of ours
        "WHERE number IN (SELECT value FROM json_each(?))",
        [json.dumps(list(numbers))],
    ).fetchall()


def _load(db: sqlite3.Connection, scope: Scope) -> Iterator[tuple[int, int | None, bytes, Draft]]:
    clause, values = scope_clause(scope)
    rows = db.execute(
        f"SELECT {_ALL}, number FROM satchel_memories WHERE {clause} ORDER BY number",  # noqa: S608 - columns and clauses of ours
        values,
    )
    place, path = COLUMNS.index("place"), COLUMNS.index("path")
    for row in rows:
        yield row[-1], row[place], row[path], draft_of_row(row)


def _searched(db: sqlite3.Connection, scope: Scope, filters: Filter, query: Query) -> Candidates:
    """Candidates without columns in memory."""
    inside, bounds = scope_clause(scope)
    passing, values = filter_clause(filters)
    clause, values = f"{inside} AND {passing}", [*bounds, *values]
    chosen: set[int] = set()
    if query.terms:
        sql = (
            "SELECT m.number FROM satchel_memory_terms AS t "  # noqa: S608 - clauses of ours
            f"JOIN satchel_memories AS m ON m.number = t.rowid WHERE t.terms MATCH ? AND {clause} "
            "ORDER BY t.rank, m.number LIMIT ?"
        )
        asked = [match_of(scope.start, query.terms), *values, query.most]
        chosen.update(row[0] for row in db.execute(sql, asked))
    if query.vector is not None:
        chosen.update(_nearest(db, clause, values, query.vector, query.most))
    if not query.terms and query.vector is None:
        sql = f"SELECT number FROM satchel_memories WHERE {clause}"  # noqa: S608 - clauses of ours
        chosen.update(row[0] for row in db.execute(sql, values))
    found = {row[0]: row for row in _picked(db, _RANKED, sorted(chosen))}
    for row in list(found.values()):
        if row[3] is not None:
            sql = (
                f"SELECT {_RANKED} FROM satchel_memories WHERE path = ? AND session_id IS ? "  # noqa: S608 - columns and clauses of ours
                f"AND place IN (?, ?) AND {passing}"
            )
            beside = [row[1], row[2], row[3] - 1, row[3] + 1, *values[len(bounds) :]]
            found.update({one[0]: one for one in db.execute(sql, beside)})
    return candidates_of([_fetched(row, query.vector) for row in found.values()], query)


def _nearest(
    db: sqlite3.Connection,
    clause: str,
    values: Sequence[Any],
    vector: NDArray[np.float32],
    most: int,
) -> list[int]:
    """The rows whose vectors are nearest, stripe by stripe."""
    rows = db.execute(
        f"SELECT number, vector FROM satchel_memories WHERE {clause} AND vector IS NOT NULL",  # noqa: S608 - clauses of ours
        list(values),
    )
    numbers = np.zeros(0, np.int64)
    scores = np.zeros(0, np.float32)
    while stripe := rows.fetchmany(_STRIPE):
        matrix = np.frombuffer(b"".join(row[1] for row in stripe), "<f4")
        near = matrix.reshape(len(stripe), -1) @ vector
        scores = np.concatenate([scores, near])
        numbers = np.concatenate([numbers, np.array([row[0] for row in stripe], np.int64)])
        if len(scores) > most:
            best = np.argpartition(-scores, most - 1)[:most]
            numbers, scores = numbers[best], scores[best]
    found: list[int] = numbers.tolist()
    return found


def _fetched(row: Sequence[Any], vector: NDArray[np.float32] | None) -> Fetched:
    number, path, session_id, place, terms, blob, time, confidence, label = row
    dense = 0.0
    if vector is not None and blob is not None:
        dense = float(np.frombuffer(cast("bytes", blob), "<f4") @ vector)
    return Fetched(
        number=number,
        path=path,
        session_id=session_id,
        place=place,
        words=terms,
        dense=dense,
        time=time,
        confidence=confidence,
        label=label,
    )
