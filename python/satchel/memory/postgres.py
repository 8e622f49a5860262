"""Memories in PostgreSQL: words by text search, meaning by pgvector's HNSW index.

A scope that is not too large is searched in memory (`postgres_columns`), any other by the server.
Scope and filters are part of every search, so nothing outside of them is ranked; the index of
vectors goes on until enough rows pass. The figures that a ranking needs (how many items a namespace
has, and how many of them hold a term) are kept in tables of their own, in the same transactions.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.errors import InputError, StoreError
from satchel.memory.backend import Footing, Statistics, id_taken, settled
from satchel.memory.fetched import Fetched, candidates_of
from satchel.memory.namespaces import path_of
from satchel.memory.postgres_columns import MARKER, MAX_BYTES, Columns, Seen
from satchel.memory.postgres_rows import (
    ITEM,
    STEPS,
    filter_clause,
    item_of_row,
    lexical_order,
    lexical_values,
    likely_rows,
    nearness,
    row_of,
    selection_clause,
    vector_schema,
    vector_text,
)
from satchel.stores.base import conflict

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from satchel.memory.backend import Candidates, Draft, Filter, Query, Scope, Selection
    from satchel.memory.item import MemoryItem

__all__ = ["PostgresMemories"]

_MOST_CONNECTIONS: Final = 8
_PATIENCE_S: Final = 30.0
_SCHEMA_LOCK: Final = 5_178_320_004
_SESSIONS_LOCK: Final = 0x7361_7463_6865_6C00
"""What sessions hold while they make their tables, one of which is the same."""

_SETTINGS: Final = (
    "SELECT set_config('hnsw.ef_search', %s, true), "
    "set_config('hnsw.iterative_scan', 'relaxed_order', true), "
    "set_config('plan_cache_mode', 'force_custom_plan', true), "
    "set_config('jit', 'off', true), set_config('enable_seqscan', 'off', true), "
    "set_config('max_parallel_workers_per_gather', '0', true)"
)
"""For a search: planned for its own words, which PostgreSQL takes to be cheaper to look up in every
row than they are; and without other processes, which take longer to start than most searches do."""

_FEW_ROWS: Final = 300
"""Candidates whose figures are worked out at once: a thread would cost more."""

_LONGEST_SCAN: Final = 40
"""Least ``hnsw.ef_search``; pgvector's own default."""


class PostgresMemories:
    """A `MemoryBackend` in a PostgreSQL database; its tables are made on first use.

    Args:
        url: as libpq reads it.
        max_bytes: most memory for columns of scopes; 0 leaves every search to the server.

    Raises:
        InputError: ``missing_extra`` without the packages.
    """

    def __init__(self, url: str, *, max_bytes: int = MAX_BYTES) -> None:
        try:
            import psycopg  # noqa: PLC0415 - an optional package
            import psycopg_pool  # noqa: PLC0415 - likewise
        except ImportError as error:
            message = "PostgreSQL needs the package psycopg: install satchel with extra postgres"
            raise InputError(message, code="missing_extra") from error
        self._psycopg: Final[Any] = psycopg
        self._pools: Final[Any] = psycopg_pool
        self._url: Final = url
        self._pool: Any = None
        self._opening = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._dimension: int | None = None
        self._scopes: Final = Columns(self._reading, max_bytes)

    async def footing(self) -> Footing | None:
        """See `MemoryBackend.footing`."""
        async with self._reading() as db:
            found = await self._footing(db)
        self._scopes.check(found)
        return found

    async def settle(self, footing: Footing) -> Footing:
        """See `MemoryBackend.settle`."""
        async with self._connection() as db:
            await db.execute("SELECT pg_advisory_xact_lock(%s)", [_SCHEMA_LOCK])
            found = await self._footing(db)
            if found is not None and (found.dimension or not footing.dimension):
                return found
            await self._set_footing(db, footing)
        return footing

    async def write(self, drafts: Sequence[Draft]) -> list[MemoryItem]:
        """See `MemoryBackend.write`."""
        ids = [draft.item.id.encode() for draft in drafts]
        stored = f"SELECT {ITEM} FROM satchel_memories WHERE id = ANY(%(ids)s)"  # noqa: S608 - columns of ours
        async with self._connection() as db:
            await self._lock(db, {path_of(draft.item.namespace) for draft in drafts})
            found = await _rows(
                db, "SELECT id, path, words FROM satchel_memories WHERE id = ANY(%s)", [ids]
            )
            known = {row[0].decode(): (row[1], row[2].split()) for row in found}
            if any(
                known.get(draft.item.id, (path_of(draft.item.namespace),))[0]
                != path_of(draft.item.namespace)
                for draft in drafts
            ):
                raise id_taken()
            pending, superseded = _resolved(drafts, await self._rivals(db, drafts))
            await self._count(db, [known[one] for one in pending if one in known], -1)
            await self._insert(db, [one for name, one in pending.items() if name not in known])
            await self._set_rows(db, [one for name, one in pending.items() if name in known])
            async with db.cursor() as cursor:
                await cursor.executemany(
                    "UPDATE satchel_memories SET superseded_by = %s, superseded_at = %s "
                    "WHERE id = %s",
                    [
                        ((one.superseded_by or "").encode(), one.superseded_at, one.id.encode())
                        for one in superseded
                    ],
                )
            fresh = [(path_of(one.item.namespace), one.terms) for one in pending.values()]
            await self._count(db, fresh, 1)
            items = {
                item.id: item for item in map(item_of_row, await _rows(db, stored, {"ids": ids}))
            }
        self._scopes.touch(path for path, _ in fresh)
        return [items[draft.item.id] for draft in drafts]

    async def find(
        self, selection: Selection, filters: Filter | None, *, after: int, limit: int | None
    ) -> list[tuple[int, MemoryItem]]:
        """See `MemoryBackend.find`."""
        clause, values = selection_clause(selection)
        if filters is not None:
            more, others = filter_clause(filters)
            clause, values = f"{clause} AND {more}", {**values, **others}
        sql = (
            f"SELECT {ITEM}, number FROM satchel_memories AS m "  # noqa: S608 - columns and clauses of ours
            f"WHERE {clause} AND number > %(after)s ORDER BY number LIMIT %(limit)s"
        )
        async with self._reading() as db:
            rows = await _rows(db, sql, {**values, "after": after, "limit": limit})
        return [(row[-1], item_of_row(row)) for row in rows]

    async def forget(self, selection: Selection) -> int:
        """See `MemoryBackend.forget`; VACUUM takes the dead rows out of the tables' files."""
        clause, values = selection_clause(selection)
        async with self._connection() as db:
            found = f"SELECT DISTINCT path FROM satchel_memories WHERE {clause}"  # noqa: S608 - a clause of ours
            await self._lock(db, [row[0] for row in await _rows(db, found, values)])
            rows = await _rows(
                db,
                f"DELETE FROM satchel_memories WHERE {clause} RETURNING path, words",  # noqa: S608 - a clause of ours
                values,
            )
            await self._count(db, [(row[0], row[1].split()) for row in rows], -1)
        await self._scopes.let_go(row[0] for row in rows)
        return len(rows)

    async def statistics(self, scope: Scope, terms: Sequence[str]) -> Statistics:
        """See `MemoryBackend.statistics`."""
        held = await self._scopes.ready(scope)
        if held is None:
            figures = await self._statistics(scope, terms)
            held = await self._scopes.admitted(scope, figures)
            if held is None:
                return figures
        return held.statistics(terms)

    async def _statistics(self, scope: Scope, terms: Sequence[str]) -> Statistics:
        """The same from the tables."""
        sql = (
            "SELECT NULL, (SELECT coalesce(sum(items), 0)::bigint FROM satchel_memory_sizes AS s "
            "WHERE s.path >= %(start)s AND s.path < %(end)s), "
            "(SELECT coalesce(sum(terms), 0)::bigint FROM satchel_memory_sizes AS s "
            "WHERE s.path >= %(start)s AND s.path < %(end)s), f.analyser, f.embedder, f.dimension "
            "FROM (SELECT true) AS one (one) LEFT JOIN satchel_memory_footing AS f USING (one) "
            "UNION ALL SELECT term, sum(items)::bigint, 0, NULL, NULL, NULL "
            "FROM satchel_memory_terms WHERE term = ANY(%(terms)s) AND path >= %(start)s "
            "AND path < %(end)s GROUP BY term"
        )
        given = {"start": scope.start, "end": scope.end, "terms": list(terms)}
        async with self._reading() as db:
            rows = await _rows(db, sql, given)
        holding = {row[0]: row[1] for row in rows if row[0] is not None}
        [[items, length, *made]] = [row[1:] for row in rows if row[0] is None]
        footing = None if made[0] is None else Footing(*made)
        self._dimension = None if footing is None else footing.dimension
        return Statistics(
            items, length, np.array([holding.get(term, 0) for term in terms], np.int64), footing
        )

    async def candidates(self, scope: Scope, filters: Filter, query: Query) -> Candidates:
        """See `MemoryBackend.candidates`."""
        held = self._scopes.get(scope)
        if held is not None and held.knows(query):
            return await held.candidates(filters, query)
        passing, values = filter_clause(filters)
        given: dict[str, Any] = {
            **values,
            "start": scope.start,
            "end": scope.end,
            "most": query.most,
        }
        inside = "m.path >= %(start)s AND m.path < %(end)s"
        parts: list[str] = []
        # The settings go with the query: one way to the server and back.
        async with self._reading() as db, db.pipeline(), db.transaction():
            dense = "0::float8"
            least = _LONGEST_SCAN
            if query.vector is not None and self._dimension is not None:
                given["vector"] = vector_text(query.vector)
                dense = "coalesce(-(m.vector <#> %(vector)s::vector), 0)::float8"
                least = min(1_000, max(_LONGEST_SCAN, query.most))
                near = nearness(self._dimension).replace("vector <#>", "m.vector <#>")
                near = near.replace("(vector::", "(m.vector::")
                parts.append(
                    f"(SELECT m.number FROM satchel_memories AS m WHERE {inside} AND {passing} "  # noqa: S608 - clauses of ours
                    f"AND m.vector IS NOT NULL ORDER BY {near} LIMIT %(most)s)"
                )
            likely = ""
            if query.terms:
                given.update(lexical_values(scope, query))
                words = (
                    "(SELECT m.number FROM satchel_memories AS m WHERE "  # noqa: S608 - clauses of ours
                    f"m.terms @@ %(asked)s::tsquery AND {passing} "
                    f"ORDER BY {lexical_order(query)} DESC, m.number LIMIT %(most)s)"
                )
                if (found := likely_rows(scope, query)) is not None:
                    # All rows with any of the words only where those with the most do not suffice.
                    given["likely"] = found
                    first = words.replace("%(asked)s", "%(likely)s")
                    likely = f"likely AS MATERIALIZED ({first}), "
                    parts.append("SELECT number FROM likely")
                    words = words.replace(
                        "AND ", "AND (SELECT count(*) FROM likely) < %(most)s AND ", 1
                    )
                parts.append(words)
            if not parts:
                parts.append(f"(SELECT m.number FROM satchel_memories AS m WHERE {inside})")  # noqa: S608 - clauses of ours
            await db.execute(_SETTINGS, [str(least)])
            sql = f"""
                WITH {likely}chosen AS MATERIALIZED ({" UNION ".join(parts)}),
                beside AS MATERIALIZED (
                    SELECT near.number FROM chosen JOIN satchel_memories AS c USING (number)
                    JOIN satchel_memories AS near ON near.path = c.path
                    AND near.session_id = c.session_id AND near.place IN (c.place - 1, c.place + 1)
                )
                SELECT m.number, m.path, m.session_id, m.place, m.words, {dense}, m.time,
                    m.confidence, m.label FROM satchel_memories AS m
                WHERE m.number = ANY(
                    ARRAY(SELECT number FROM chosen UNION SELECT number FROM beside)
                )
                AND {passing}
            """  # noqa: S608 - columns and clauses of ours
            rows = await _rows(db, sql, given)
        fetched = list(map(Fetched._make, rows))
        if len(fetched) <= _FEW_ROWS:
            return candidates_of(fetched, query)
        return await asyncio.to_thread(candidates_of, fetched, query)

    async def items(
        self, numbers: Sequence[int], seen: object | None = None
    ) -> list[MemoryItem] | None:
        """See `MemoryBackend.items`; one snapshot shows the items and whether all still holds."""
        given: dict[str, Any] = {"numbers": list(numbers)}
        sql = f"SELECT {ITEM}, number FROM satchel_memories WHERE number = ANY(%(numbers)s)"  # noqa: S608 - columns of ours
        if isinstance(seen, Seen):
            given.update(start=seen.scope.start, end=seen.scope.end)
            sql = (
                f"SELECT found.*, now.marker FROM ({MARKER}) AS now (marker) "  # noqa: S608 - SQL of ours
                f"LEFT JOIN ({sql}) AS found ON true"
            )
        async with self._reading() as db:
            rows = await _rows(db, sql, given)
        if isinstance(seen, Seen):
            if rows[0][-1] != seen.marker:
                await self._scopes.renew(seen)
                return None
            rows = [row[:-1] for row in rows if row[0] is not None]
            if len(rows) < len(numbers):
                # Somebody deleted rows and told nobody.
                self._scopes.drop(seen.scope)
        known = {row[-1]: item_of_row(row) for row in rows}
        return [known[number] for number in numbers] if len(known) == len(numbers) else None

    async def vectors(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """See `MemoryBackend.vectors`."""
        async with self._reading() as db:
            dimension = self._dimension or 0
            found = np.zeros((len(numbers), dimension), np.float32)
            if not dimension:
                return found
            sql = (
                "SELECT number, vector::real[] FROM satchel_memories "
                "WHERE number = ANY(%(numbers)s) AND vector IS NOT NULL"
            )
            rows = await _rows(db, sql, {"numbers": list(numbers)})
        known = dict(rows)
        for place, number in enumerate(numbers):
            if number in known:
                found[place] = known[number]
        return found

    async def renew(self, footing: Footing, drafts: Sequence[Draft]) -> None:
        """See `MemoryBackend.renew`; other writers wait."""
        async with self._connection() as db:
            await db.execute("SELECT pg_advisory_xact_lock(%s)", [_SCHEMA_LOCK])
            await db.execute("LOCK TABLE satchel_memories IN EXCLUSIVE MODE")
            rows = await _rows(db, f"SELECT {ITEM} FROM satchel_memories", {})  # noqa: S608 - columns of ours
            stored = {item.id: item for item in map(item_of_row, rows)}
            if stored != {draft.item.id: draft.item for draft in drafts}:
                raise conflict(len(stored), len(drafts))
            await self._set_footing(db, footing)
            await db.execute("DELETE FROM satchel_memory_sizes")
            await db.execute("DELETE FROM satchel_memory_terms")
            await self._set_rows(db, drafts)
            await self._count(db, [(path_of(one.item.namespace), one.terms) for one in drafts], 1)
        self._scopes.drop()

    async def close(self) -> None:
        """See `MemoryBackend.close`."""
        pool, self._pool = self._pool, None
        if pool is not None and self._loop is asyncio.get_running_loop():
            await self._scopes.close()
            await pool.close()

    @asynccontextmanager
    async def _connection(self) -> AsyncGenerator[Any]:
        """A connection in a transaction; errors as `_reading`."""
        async with self._reading() as db, db.transaction():
            yield db

    @asynccontextmanager
    async def _reading(self) -> AsyncGenerator[Any]:
        """A connection for statements that stand alone.

        Raises:
            StoreError: ``store_unavailable`` where trying again may help, else ``store_failed``.
        """
        try:
            pool = await self._opened()
            async with pool.connection(timeout=_PATIENCE_S) as db:
                yield db
        except (self._psycopg.OperationalError, self._pools.PoolTimeout) as error:
            message = f"PostgreSQL cannot be used now: {type(error).__name__}"
            # Not from the error: what the server says may quote a row.
            raise StoreError(message, code="store_unavailable") from None
        except self._psycopg.Error as error:
            message = f"PostgreSQL refused: {type(error).__name__}"
            raise StoreError(message, code="store_failed") from None

    async def _opened(self) -> Any:  # noqa: ANN401 - a pool of an optional package
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            # What is left of a loop that has ended cannot be closed from here.
            self._pool, self._loop, self._opening = None, loop, asyncio.Lock()
            self._scopes.forsake()
        async with self._opening:
            if self._pool is None:
                pool = self._pools.AsyncConnectionPool(
                    self._url,
                    kwargs={"autocommit": True},
                    min_size=0,
                    max_size=_MOST_CONNECTIONS,
                    open=False,
                )
                await pool.open()
                try:
                    async with pool.connection(timeout=_PATIENCE_S) as db:
                        await _migrated(db)
                        await self._footing(db)
                except BaseException:
                    await pool.close()
                    raise
                self._pool = pool
            return self._pool

    async def _footing(self, db: Any) -> Footing | None:  # noqa: ANN401 - a connection
        sql = "SELECT analyser, embedder, dimension FROM satchel_memory_footing"
        rows = await _rows(db, sql, {})
        if not rows:
            return None
        found = Footing(*rows[0])
        self._dimension = found.dimension
        return found

    async def _set_footing(self, db: Any, footing: Footing) -> None:  # noqa: ANN401 - a connection
        if footing.dimension is None:
            await db.execute("ALTER TABLE satchel_memories DROP COLUMN IF EXISTS vector")
        else:
            await db.execute(vector_schema(footing.dimension))
        await db.execute("DELETE FROM satchel_memory_footing")
        await db.execute(
            "INSERT INTO satchel_memory_footing (analyser, embedder, dimension) "
            "VALUES (%s, %s, %s)",
            [footing.analyser, footing.embedder, footing.dimension],
        )
        self._dimension = footing.dimension

    async def _lock(self, db: Any, paths: Iterable[bytes]) -> None:  # noqa: ANN401 - a connection
        """Holds the writers of these namespaces off until the transaction ends."""
        # One order for everybody, so that nobody waits in a circle.
        for path in sorted(set(paths)):
            await db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 8))", [path.hex()])

    async def _rivals(self, db: Any, drafts: Sequence[Draft]) -> list[MemoryItem]:  # noqa: ANN401 - a connection
        """What holds now under the keys of the drafts."""
        keyed = [draft.item for draft in drafts if draft.item.key is not None]
        if not keyed:
            return []
        sql = (
            f'SELECT {ITEM} FROM satchel_memories WHERE path = ANY(%(paths)s) AND "key" = '  # noqa: S608 - columns of ours
            "ANY(%(keys)s) AND superseded_by IS NULL ORDER BY number"
        )
        given = {
            "paths": list({path_of(item.namespace) for item in keyed}),
            "keys": list({(item.key or "").encode() for item in keyed}),
        }
        return [item_of_row(row) for row in await _rows(db, sql, given)]

    async def _insert(self, db: Any, drafts: Sequence[Draft]) -> None:  # noqa: ANN401 - a connection
        """Adds rows, each at the end of its session."""
        groups = sorted({_group(draft) for draft in drafts if draft.item.kind == "episodic"})
        last: dict[tuple[bytes, bytes], int] = {}
        if groups:
            rows = await _rows(
                db,
                "SELECT g.path, g.session, max(m.place) FROM unnest(%(paths)s::bytea[], "
                "%(sessions)s::bytea[]) AS g (path, session) JOIN satchel_memories AS m "
                "ON m.path = g.path AND m.session_id = g.session GROUP BY 1, 2",
                {"paths": [path for path, _ in groups], "sessions": [one for _, one in groups]},
            )
            last = {(row[0], row[1]): row[2] for row in rows if row[2] is not None}
        given: list[dict[str, Any]] = []
        for draft in drafts:
            place = None
            if draft.item.kind == "episodic":
                place = last[_group(draft)] = last.get(_group(draft), -1) + 1
            given.append(row_of(draft, place))
        if given:
            columns = self._columns(given[0])
            names = ", ".join(f'"{name}"' for name in columns)
            sql = f"INSERT INTO satchel_memories ({names}) VALUES ({', '.join(columns.values())})"  # noqa: S608 - columns of ours
            async with db.cursor() as cursor:
                await cursor.executemany(sql, given)

    async def _set_rows(self, db: Any, drafts: Sequence[Draft]) -> None:  # noqa: ANN401 - a connection
        """Writes drafts over the rows with their ids; the places stay."""
        given = [row_of(draft, None) for draft in drafts]
        if given:
            columns = self._columns(given[0])
            del columns["place"]
            sets = ", ".join(f'"{name}" = {value}' for name, value in columns.items())
            sql = f"UPDATE satchel_memories SET {sets} WHERE id = %(id)s"  # noqa: S608 - columns of ours
            async with db.cursor() as cursor:
                await cursor.executemany(sql, given)

    def _columns(self, given: Mapping[str, Any]) -> dict[str, str]:
        columns = {name: f"%({name})s" for name in given if name not in {"lexemes", "vector"}}
        columns["terms"] = "array_to_tsvector(%(lexemes)s::text[])"
        if self._dimension is not None:
            columns["vector"] = "%(vector)s::vector"
        return columns

    async def _count(
        self,
        db: Any,  # noqa: ANN401 - a connection
        rows: Iterable[tuple[bytes, Sequence[str]]],
        sign: int,
    ) -> None:
        """Adds rows to the figures of their namespaces, or takes them away."""
        sizes: Counter[bytes] = Counter()
        lengths: Counter[bytes] = Counter()
        holding: Counter[tuple[str, bytes]] = Counter()
        for path, terms in rows:
            sizes[path] += sign
            lengths[path] += sign * len(terms)
            for term in set(terms):
                holding[term, path] += sign
        for path in sorted(sizes):
            await db.execute(
                "INSERT INTO satchel_memory_sizes AS s VALUES (%s, %s, %s) ON CONFLICT (path) DO "
                "UPDATE SET items = s.items + excluded.items, terms = s.terms + excluded.terms",
                [path, sizes[path], lengths[path]],
            )
        if not sizes:
            return
        ordered = sorted(holding)
        given = {
            "terms": [term for term, _ in ordered],
            "paths": [path for _, path in ordered],
            "items": [holding[one] for one in ordered],
        }
        await db.execute(
            "INSERT INTO satchel_memory_terms AS t SELECT * FROM unnest(%(terms)s::text[], "
            "%(paths)s::bytea[], %(items)s::bigint[]) ON CONFLICT (term, path) DO "
            "UPDATE SET items = t.items + excluded.items",
            given,
        )
        if sign < 0:
            await db.execute(
                "DELETE FROM satchel_memory_terms WHERE items <= 0 AND path = ANY(%(paths)s)", given
            )
            await db.execute(
                "DELETE FROM satchel_memory_sizes WHERE items <= 0 AND path = ANY(%(paths)s)", given
            )


def _resolved(
    drafts: Sequence[Draft], rivals: Sequence[MemoryItem]
) -> tuple[dict[str, Draft], list[MemoryItem]]:
    """The drafts as they are to be written, by id, and stored items that they supersede."""
    pending: dict[str, Draft] = {}
    stored = {item.id: item for item in rivals}
    superseded: dict[str, MemoryItem] = {}
    for draft in drafts:
        others = [one.item for one in pending.values() if draft.item.key is not None]
        for item in settled(draft.item, [*stored.values(), *others]):
            if item.id == draft.item.id:
                pending[item.id] = replace(draft, item=item)
            elif item.id in pending:
                pending[item.id] = replace(pending[item.id], item=item)
            else:
                superseded[item.id] = item
            stored.pop(item.id, None)
    return pending, list(superseded.values())


async def _migrated(db: Any) -> None:  # noqa: ANN401 - a connection
    """Brings the tables up to date; of several who do so at once, one does."""
    if await _version(db) == len(STEPS):
        return
    async with db.transaction():
        # Whoever comes second waits here, and finds nothing left to do.
        await db.execute("SELECT pg_advisory_xact_lock(%s)", [_SCHEMA_LOCK])
        await db.execute("SET LOCAL client_min_messages = warning")
        await db.execute("SELECT pg_advisory_xact_lock(%s)", [_SESSIONS_LOCK])
        await db.execute(
            "CREATE TABLE IF NOT EXISTS satchel_schema "
            "(part text PRIMARY KEY, version int NOT NULL)"
        )
        for step in STEPS[await _version(db) :]:
            await db.execute(step)
        await db.execute(
            "INSERT INTO satchel_schema VALUES ('memories', %s) "
            "ON CONFLICT (part) DO UPDATE SET version = excluded.version",
            [len(STEPS)],
        )


async def _version(db: Any) -> int:  # noqa: ANN401 - a connection
    """The version of the tables; 0 if there are none, or none is noted.

    Raises:
        StoreError: ``schema_newer``.
    """
    # Naming a catalog makes the server look at what others have changed in the meantime.
    tables = (
        "SELECT count(*) FROM pg_class "
        "WHERE oid IN (to_regclass('satchel_schema'), to_regclass('satchel_memories'))"
    )
    [[found]] = await _rows(db, tables, {})
    if found < 2:  # noqa: PLR2004 - both
        return 0
    rows = await _rows(db, "SELECT version FROM satchel_schema WHERE part = 'memories'", {})
    version = int(rows[0][0]) if rows else 0
    if version > len(STEPS):
        message = (
            f"the tables of memories have version {version}, this satchel knows {len(STEPS)}: "
            "use a newer satchel, or another database"
        )
        raise StoreError(message, code="schema_newer", value=version, limit=len(STEPS))
    return version


def _group(draft: Draft) -> tuple[bytes, bytes]:
    return path_of(draft.item.namespace), (draft.item.source.session_id or "").encode()


async def _rows(db: Any, sql: str, given: Any) -> list[Any]:  # noqa: ANN401 - a connection and its values
    # Bytes and numbers travel as they are, not as text.
    cursor = await db.cursor(binary=True).execute(sql, given)
    found: list[Any] = await cursor.fetchall()
    return found
