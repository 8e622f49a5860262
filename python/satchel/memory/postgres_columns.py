"""Scopes of a PostgreSQL database that are held in memory, and kept up with what is written.

A recall goes by the columns as they were last read. With the texts that it found, one statement
reads a marker that every write and every forgetting changes, in one snapshot: if the marker is
another, the columns take in what changed, and the recall begins again. So one way to the server and
back is enough, no write that was acknowledged before a recall is missed, whoever made it, and
nothing that was forgotten is found. Columns hold terms, names and vectors, and no text.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel import _core
from satchel.errors import StoreError
from satchel.memory.backend import Candidates, Footing, Scope, Statistics
from satchel.memory.item import KINDS
from satchel.memory.namespaces import path_end, paths_above

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
    from contextlib import AbstractAsyncContextManager

    from satchel.memory.backend import Filter, Query

    Reading = Callable[[], AbstractAsyncContextManager[Any]]

__all__ = ["MARKER", "MAX_BYTES", "Columns", "Held", "Seen"]

MAX_BYTES: Final = 256 * 2**20
"""Bytes of all columns: with vectors of 256 numbers, enough for about 160,000 memories."""

MARKER: Final = """
    SELECT concat_ws('/', count(*), sum(hashtextextended(xmin::text, 0)),
        (SELECT string_agg(xmin::text, ',') FROM satchel_memory_footing),
        extract(epoch FROM pg_postmaster_start_time()))
    FROM satchel_memory_sizes WHERE path >= %(start)s AND path < %(end)s
"""
"""What changes with every write in a scope: each writes the figures of its namespace, and thereby
the number of its transaction. The server's start tells a database apart that was set back."""

_OVERVIEW: Final = f"""
    SELECT m.marker, extract(epoch FROM pg_postmaster_start_time())::float8, f.analyser,
    f.embedder, f.dimension, s.path, s.items, s.terms, s.xmin::text
    FROM ({MARKER}) AS m (marker) LEFT JOIN satchel_memory_footing AS f ON true
    LEFT JOIN satchel_memory_sizes AS s ON s.path >= %(start)s AND s.path < %(end)s
"""  # noqa: S608 - SQL of ours

_COLUMNS: Final = (
    "m.number, m.path, m.session_id, m.place, m.words, m.label, m.time, m.expires_at, "
    "m.confidence, m.kind, m.status = 'claim', m.superseded_by IS NOT NULL, m.changed"
)

_ROW_BYTES: Final = 180
_PATH_BYTES: Final = 300
_SCOPE_BYTES: Final = 4_000
"""What a row, a namespace and a scope take beside terms and vectors, about."""

_FEW_ITEMS: Final = 2_000
"""Items of a scope that are read at once; more are read beside, once they are asked for again."""

_MOST_ASKED: Final = 1_024
"""Scopes of which it is known that they were asked for."""

_PIECE: Final = 2_000
"""Rows that are taken in at a time."""

_THREAD_FROM: Final = 4_000
"""Rows from which on a search is a thread's work: below, it is done sooner than one starts."""

_KIND_NUMBERS: Final = {kind: number for number, kind in enumerate(KINDS)}


@dataclass(frozen=True, slots=True)
class Seen:
    """What candidates were made from.

    Attributes:
        scope: the scope.
        marker: its marker when it was read.
    """

    scope: Scope
    marker: str


@dataclass(slots=True)
class _Path:
    """A namespace as it was read: its transaction, and the last change that was taken in."""

    transaction: str
    last: int


@dataclass(slots=True, eq=False)
class Held:
    """The columns of a scope.

    Attributes:
        scope: the scope.
        resident: its rows.
        marker: its marker, read before its rows; empty before the first time.
        footing: the footing, likewise.
        started: when the server started: one that did so since may have been set back, and gives
            numbers of transactions out again.
        paths: the namespaces that have rows.
        is_stale: whether this process has written to it since.
        bytes: of memory, about.
        lock: held by whoever takes in rows.
    """

    scope: Scope
    resident: _core.Resident = field(default_factory=_core.Resident)
    marker: str = ""
    footing: Footing | None = None
    started: float = 0.0
    paths: dict[bytes, _Path] = field(default_factory=dict[bytes, _Path])
    is_stale: bool = True
    bytes: int = 0
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def statistics(self, terms: Sequence[str]) -> Statistics:
        """See `MemoryBackend.statistics`."""
        items, length, holding = self.resident.statistics(list(terms))
        return Statistics(items, length, holding, self.footing)

    def knows(self, query: Query) -> bool:
        """Whether the query's vector is of the length of those here."""
        length = 0 if self.footing is None else self.footing.dimension or 0
        return query.vector is None or len(query.vector) == length

    async def candidates(self, filters: Filter, query: Query) -> Candidates:
        """See `MemoryBackend.candidates`."""
        # Before the search: what is taken in meanwhile makes it look older than it is.
        seen = Seen(self.scope, self.marker)
        if len(self.resident) < _THREAD_FROM:
            return self._candidates(filters, query, seen)
        return await asyncio.to_thread(self._candidates, filters, query, seen)

    def _candidates(self, filters: Filter, query: Query, seen: Seen) -> Candidates:
        kinds = KINDS if filters.kinds is None else filters.kinds
        numbers, lexical, dense, previous, following, times, confidences, labels = (
            self.resident.candidates(
                (
                    filters.now,
                    filters.min_confidence,
                    sum(1 << _KIND_NUMBERS[kind] for kind in set(kinds)),
                    filters.with_claims,
                    filters.with_history,
                ),
                terms=list(query.terms),
                weights=query.weights,
                mean_terms=query.mean_terms,
                vector=query.vector,
                most=query.most,
            )
        )
        return Candidates(
            numbers=numbers,
            lexical=lexical,
            dense=dense,
            previous=previous,
            following=following,
            times=times,
            confidences=confidences,
            labels=labels,
            seen=seen,
        )


class Columns:
    """Columns of the scopes that were used last.

    Args:
        reading: gives a connection in autocommit mode.
        max_bytes: bytes of all columns; a scope that needs more is not held.
    """

    def __init__(self, reading: Reading, max_bytes: int) -> None:
        self._reading: Final = reading
        self._max_bytes: Final = max_bytes
        self._held: Final[OrderedDict[Scope, Held]] = OrderedDict()
        self._asked: Final[OrderedDict[Scope, None]] = OrderedDict()
        self._loading: Final[dict[Scope, asyncio.Task[None]]] = {}
        self._bytes = 0
        self._forgotten = 0

    async def ready(self, scope: Scope) -> Held | None:
        """The columns of a scope, if they are here; with all that this process has written."""
        held = self.get(scope)
        if held is not None and held.is_stale:
            await self._take_in(held)
        return self.get(scope)

    def get(self, scope: Scope) -> Held | None:
        """The columns of a scope, if they are here."""
        if scope in self._held:
            self._held.move_to_end(scope)
        return self._held.get(scope)

    async def admitted(self, scope: Scope, figures: Statistics) -> Held | None:
        """The columns of a scope that is not here yet, if they are read by now."""
        if scope in self._loading or self._need(figures.footing, figures, 1) > self._max_bytes:
            return None
        if figures.items <= _FEW_ITEMS:
            await self._load(scope)
            return self.get(scope)
        if scope in self._asked:
            # A process that asks once is answered without.
            task = asyncio.create_task(self._loaded(scope))
            self._loading[scope] = task
            task.add_done_callback(lambda _: self._loading.pop(scope, None))
        self._asked[scope] = None
        self._asked.move_to_end(scope)
        if len(self._asked) > _MOST_ASKED:
            self._asked.popitem(last=False)
        return None

    async def renew(self, seen: Seen) -> None:
        """Takes in what changed since something was seen."""
        held = self.get(seen.scope)
        if held is not None and held.marker == seen.marker:
            await self._take_in(held)

    def check(self, footing: Footing | None) -> None:
        """Lets go of scopes that were read with another footing."""
        for held in list(self._held.values()):
            if held.footing != footing:
                self.drop(held.scope)

    def touch(self, paths: Iterable[bytes]) -> None:
        """Notes that this process has written to these namespaces."""
        for held in self._around(paths):
            held.is_stale = True

    async def let_go(self, paths: Iterable[bytes]) -> None:
        """Lets go at once of what was forgotten in these namespaces."""
        self._forgotten += 1
        around = self._around(paths)
        for held in around:
            held.is_stale = True
        try:
            for held in around:
                await self._take_in(held)
        except BaseException as error:
            # It is forgotten in any case.
            for held in around:
                self.drop(held.scope)
            if not isinstance(error, StoreError):
                raise

    def drop(self, scope: Scope | None = None) -> None:
        """Lets go of a scope, or of all."""
        if scope is None:
            self._held.clear()
            self._bytes = 0
        elif (held := self._held.pop(scope, None)) is not None:
            self._bytes -= held.bytes

    async def close(self) -> None:
        """Lets go of everything, and ends what is still being read."""
        tasks = list(self._loading.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self.forsake()

    def forsake(self) -> None:
        """The same if the event loop of before has ended."""
        self._loading.clear()
        self.drop()

    async def _loaded(self, scope: Scope) -> None:
        # Recall goes on without; whoever asks again tries again.
        with contextlib.suppress(StoreError):
            await self._load(scope)

    async def _load(self, scope: Scope) -> None:
        held = Held(scope)
        forgotten = -1
        while forgotten != self._forgotten:
            # What is forgotten while it is read must not stay.
            forgotten = self._forgotten
            if not await self._taken_in(held):
                return
        self.drop(scope)
        self._held[scope] = held
        self._weigh(held)

    async def _take_in(self, held: Held) -> None:
        can_stay = await self._taken_in(held)
        if self._held.get(held.scope) is held:
            if can_stay:
                self._weigh(held)
            else:
                self.drop(held.scope)

    def _weigh(self, held: Held) -> None:
        """Counts what a scope takes now, and lets go of others if that is too much."""
        before = held.bytes
        held.bytes = held.resident.size() + _PATH_BYTES * len(held.paths) + _SCOPE_BYTES
        self._bytes += held.bytes - before
        while self._bytes > self._max_bytes and self._held:
            self.drop(next(iter(self._held)))

    def _around(self, paths: Iterable[bytes]) -> list[Held]:
        """What is held of the namespaces and of those above."""
        above = sorted({one for path in set(paths) for one in paths_above(path)})
        scopes = (Scope(path, path_end(path)) for path in above)
        return [self._held[scope] for scope in scopes if scope in self._held]

    async def _taken_in(self, held: Held) -> bool:
        """Takes in what changed; whether the scope can still be held."""
        before = held.marker
        async with held.lock:
            if held.marker != before and not held.is_stale:
                return True  # somebody else did, meanwhile
            held.is_stale = False
            try:
                return await self._read_anew(held)
            except BaseException:
                # Part of it may be there, and a thread may still be putting rows into it.
                if self._held.get(held.scope) is held:
                    self.drop(held.scope)
                raise

    async def _read_anew(self, held: Held) -> bool:
        """As `_taken_in`; if it does not end, what is held is of no use any more."""
        scope = {"start": held.scope.start, "end": held.scope.end}
        async with self._reading() as db:
            overview = await _rows(db, _OVERVIEW, scope)
            marker, started, analyser, embedder, dimension = overview[0][:5]
            footing = None if analyser is None else Footing(analyser, embedder, dimension)
            found = {row[5]: row[6:] for row in overview if row[5] is not None}
            items = sum(row[0] for row in found.values())
            terms = sum(row[1] for row in found.values())
            figures = Statistics(items, terms, np.zeros(0, np.int64))
            is_other = (footing, started) != (held.footing, held.started)
            is_large = self._need(footing, figures, len(found)) > self._max_bytes
            if is_large or (held.marker and is_other):
                return False
            held.footing, held.started = footing, started
            gone = [path for path in held.paths if path not in found]
            if gone:
                held.resident.retain(gone, [])
                for path in gone:
                    del held.paths[path]
            changed = {
                path: held.paths.get(path) or _Path("", -1)
                for path, (_, _, transaction) in found.items()
                if path not in held.paths or held.paths[path].transaction != transaction
            }
            if changed:
                since = {path: one.last for path, one in changed.items()}
                pieces = _pieces(db, since, dimension, items - len(held.resident))
                async with contextlib.aclosing(pieces):
                    async for rows in pieces:
                        await _put(held.resident, rows, dimension or 0)
                        for row in rows:
                            one = changed[row[1]]
                            one.last = max(one.last, row[12])
                paths = list(changed)
                counts = zip(paths, held.resident.counts(paths), strict=True)
                fewer = [path for path, count in counts if count != found[path][0]]
                if fewer:
                    sql = "SELECT number FROM satchel_memories WHERE path = ANY(%(paths)s)"
                    left = await _rows(db, sql, {"paths": fewer})
                    held.resident.retain(fewer, [row[0] for row in left])
                    counts = zip(fewer, held.resident.counts(fewer), strict=True)
                    if any(count < found[path][0] for path, count in counts):
                        return False  # which ones, only reading all of them can tell
        for path, one in changed.items():
            one.transaction = found[path][2]
            held.paths[path] = one
        held.marker = marker
        return True

    def _need(self, footing: Footing | None, figures: Statistics, paths: int) -> int:
        dimension = 0 if footing is None else footing.dimension or 0
        row = _ROW_BYTES + 5 * dimension
        return figures.items * row + 8 * figures.terms + _PATH_BYTES * paths + _SCOPE_BYTES


async def _pieces(
    db: Any,  # noqa: ANN401 - a connection
    since: dict[bytes, int],
    dimension: int | None,
    expected: int,
) -> AsyncGenerator[list[Any]]:
    """What changed in namespaces since a change of each: one snapshot, piece by piece."""
    vector = ", vector_send(m.vector)" if dimension else ""
    sql = (
        f"SELECT {_COLUMNS}{vector} FROM unnest(%(paths)s::bytea[], %(since)s::bigint[]) "  # noqa: S608 - columns of ours
        "AS s (path, since) JOIN satchel_memories AS m ON m.path = s.path AND m.changed > s.since "
        "ORDER BY m.number"
    )
    given = {"paths": list(since), "since": list(since.values())}
    if expected <= _PIECE:
        rows = await _rows(db, sql, given)
        for start in range(0, len(rows), _PIECE):
            yield rows[start : start + _PIECE]
        return
    # A cursor of the statement's own ends with the transaction. One of psycopg's asks the server to
    # close it, which fails where the recall was cancelled, and warns of that later.
    async with db.transaction():
        await db.execute(f"DECLARE satchel_rows NO SCROLL CURSOR FOR {sql}", given)
        while rows := await _rows(db, f"FETCH FORWARD {_PIECE} FROM satchel_rows", None):
            yield rows


async def _put(resident: _core.Resident, rows: list[Any], dimension: int) -> None:
    if len(rows) < _PIECE // 10:
        _put_rows(resident, rows, dimension)
    else:
        await asyncio.to_thread(_put_rows, resident, rows, dimension)


def _put_rows(resident: _core.Resident, rows: list[Any], dimension: int) -> None:
    columns = [list(column) for column in zip(*rows, strict=True)]
    numbers, paths, sessions, places, words, labels, times, expiries = columns[:8]
    confidences, kinds, claims, superseded = columns[8:12]
    vectors = np.zeros((len(rows), dimension), np.float32)
    if dimension:
        # As pgvector sends it: four bytes ahead, then the numbers, the highest byte first.
        blank = bytes(4 + 4 * dimension)
        sent = np.frombuffer(b"".join(one or blank for one in columns[13]), np.uint8)
        tails = np.ascontiguousarray(sent.reshape(len(rows), -1)[:, 4:])
        vectors[:] = tails.view(">f4")
    numbered = [_KIND_NUMBERS[kind] for kind in kinds]
    resident.put(
        (numbers, paths, sessions, places, words, labels),
        (times, expiries, confidences, numbered, claims, superseded),
        vectors,
    )


async def _rows(db: Any, sql: str, given: Any) -> list[Any]:  # noqa: ANN401 - a connection and its values
    cursor = await db.cursor(binary=True).execute(sql, given)
    found: list[Any] = await cursor.fetchall()
    return found
