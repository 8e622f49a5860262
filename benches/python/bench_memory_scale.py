"""Recall from many memories, beside raw queries of the same database on the same rows: a table.

    python benches/python/bench_memory_scale.py [--items 100000] [--namespaces 1000]

Memories of 8 to 30 words, drawn from 20,000 as unevenly as words are; the vectors of
256 numbers follow the words. Two layouts: all in one namespace, and evenly over many, of which
one is asked. The raw query is the cheapest that a program of its own would send: for PostgreSQL the
ten nearest by pgvector's index, for SQLite the ten best by FTS5's BM25, each within the namespace.
`Memory.recall` does both and more, so PostgreSQL is also asked for what any ranking by words and
meaning needs to begin with: the 150 best by text search and the 150 nearest, in one query. Recall's
own embedder is timed with it and costs next to nothing here.
A large namespace of PostgreSQL is read into memory beside the first questions, which do not count.
PostgreSQL is started from its wheel, unless ``--url`` names one; its index of vectors is built when
all rows are there, which takes a tenth of the time. Both the time from question to
answer and processor time are measured: of this process and, for PostgreSQL, of the server's.
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import sys
import tempfile
import time
import zlib
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

import satchel
from figures import Line, Samples, machine, table
from satchel.memory import CallableEmbedder
from satchel.memory.analysis import terms_of
from satchel.memory.backend import Scope
from satchel.memory.namespaces import path_end, path_of
from satchel.memory.postgres_rows import vector_text
from satchel.memory.sqlite_rows import match_of
from satchel.testing import require_release

# Where the servers of the tests are.
sys.path.append(str(Path(__file__).parents[2] / "tests" / "python"))

from servers import PostgresServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from satchel.memory import Memory
    from satchel.memory.postgres_columns import Columns

DIMENSION: Final = 256
VOCABULARY: Final = 20_000
BATCH: Final = 1_000
TEN: Final = 10
MOST: Final = 150
"""Candidates by words, and by meaning: as many as recall looks at."""

BY_BOTH: Final = """
SELECT number, text FROM satchel_memories WHERE number IN (
    (SELECT number FROM satchel_memories WHERE path >= %(start)s AND path < %(end)s
    ORDER BY vector <#> %(vector)s::vector LIMIT %(most)s)
    UNION (SELECT number FROM satchel_memories WHERE path >= %(start)s AND path < %(end)s
    AND terms @@ %(words)s::tsquery ORDER BY ts_rank(terms, %(words)s::tsquery) DESC
    LIMIT %(most)s)
)
"""

MOST_WAITS: Final = 300
WAIT_S: Final = 0.2

WARM: Final = 10
"""Queries that are not counted: by then PostgreSQL has planned a statement as it goes on to."""


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Words with the frequencies of a language, about (Zipf)."""
    ranks = np.minimum(rng.zipf(1.2, count), VOCABULARY)
    return [f"w{rank:x}q" for rank in ranks.tolist()]


def texts_of(items: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(words(rng, int(rng.integers(8, 31)))) for _ in range(items)]


def embedded(texts: list[str]) -> NDArray[np.float32]:
    """Sums of random vectors of the words."""
    rows = [np.sum([_vector(word) for word in text.split()], axis=0) for text in texts]
    return np.array(rows, np.float32).reshape(len(texts), DIMENSION)


_KNOWN: Final[dict[str, NDArray[np.float32]]] = {}


def _vector(word: str) -> NDArray[np.float32]:
    if word not in _KNOWN:
        rng = np.random.default_rng(zlib.crc32(word.encode()))
        _KNOWN[word] = rng.standard_normal(DIMENSION).astype(np.float32)
    return _KNOWN[word]


async def filled(url: str, texts: Sequence[str], namespaces: int) -> Memory:
    """A memory with all texts, evenly over the namespaces."""
    memory = satchel.open_memory(
        url, embedder=CallableEmbedder(embedded, name="words", dimension=DIMENSION), redactor=None
    )
    await memory.__aenter__()
    # Makes the tables.
    await memory.remember(("warm",), texts[:1])
    await memory.forget(("warm",), everything=True)
    definition = await without_index(url)
    per = -(-len(texts) // namespaces)
    for number in range(namespaces):
        own = texts[number * per : (number + 1) * per]
        for start in range(0, len(own), BATCH):
            await memory.remember(("scale", f"n{number}"), own[start : start + BATCH])
    if definition is not None:
        await with_index(url, definition)
    return memory


async def without_index(url: str) -> str | None:
    """Drops PostgreSQL's index of vectors; returns what makes it."""
    if not url.startswith("postgres"):
        return None
    import psycopg  # noqa: PLC0415 - an optional package

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        found = await connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE indexname = 'satchel_memories_vector'"
        )
        row = await found.fetchone()
        assert row is not None
        await connection.execute("DROP INDEX satchel_memories_vector")
    return str(row[0])


async def with_index(url: str, definition: str) -> None:
    import psycopg  # noqa: PLC0415 - an optional package

    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        await connection.execute("SET maintenance_work_mem = '1GB'")
        await connection.execute(definition.encode())
        await connection.execute("ANALYZE")


async def timed(
    ask: Callable[[str], Any],
    queries: Sequence[str],
    clock: Callable[[], float] = time.perf_counter,
) -> list[float]:
    """Seconds of each query by the clock; the first ones warm up."""
    found: list[float] = []
    warm = queries[:WARM]
    for query in [*warm, *queries]:
        begun = clock()
        await ask(query)
        found.append(clock() - begun)
    return found[len(warm) :]


async def processors(connection: Any) -> Callable[[], float]:  # noqa: ANN401 - of an optional package
    """A clock of processor time: of this process and of the server's backends of the database."""
    rows = await connection.execute(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    )
    schedules = [Path(f"/proc/{pid}/schedstat") for (pid,) in await rows.fetchall()]

    def spent() -> float:
        backends = sum(int(path.read_text().split()[0]) for path in schedules)
        return time.process_time() + backends / 1e9

    return spent


def queries_of(texts: Sequence[str], count: int, seed: int = 1) -> list[str]:
    """Five words of a text each."""
    rng = Random(seed)  # noqa: S311 - not for secrets
    return [" ".join(rng.sample(rng.choice(texts).split(), 5)) for _ in range(count)]


async def sqlite_lines(texts: Sequence[str], namespaces: int, queries: int) -> list[Line]:
    where = ("scale", f"n{namespaces // 2}")
    per = -(-len(texts) // namespaces)
    asked = queries_of(texts[namespaces // 2 * per :][:per], queries)
    with tempfile.TemporaryDirectory(prefix="satchel-bench-") as folder:
        path = Path(folder) / "m.db"
        memory = await filled(f"sqlite:///{path}", texts, namespaces)
        connection = sqlite3.connect(path)

        async def raw(query: str) -> None:
            rows = connection.execute(
                "SELECT m.text FROM satchel_memory_terms AS t "
                "JOIN satchel_memories AS m ON m.number = t.rowid "
                "WHERE t.terms MATCH ? ORDER BY t.rank LIMIT 10",
                [match_of(path_of(where), terms_of(query))],
            ).fetchall()
            assert rows

        lines: list[Line] = []
        for kind, clock in (("time", time.perf_counter), ("processor", time.process_time)):
            theirs = await timed(raw, asked, clock)
            ours = await timed(lambda query: memory.recall(where, query, k=TEN), asked, clock)
            lines.append(
                _line(f"sqlite, {kind}", "FTS5, BM25 alone", ours, theirs, (len(texts), namespaces))
            )
        connection.close()
        await memory.close()
    return lines


async def until_held(memory: Memory, where: tuple[str, ...], query: str) -> None:
    """Asks until the namespace has been read beside, as a process that goes on asking does."""
    scopes = cast("Columns", vars(vars(memory)["_backend"])["_scopes"])
    for _ in range(MOST_WAITS):
        await memory.recall(where, query, k=TEN)
        if scopes.get(Scope.of(where)) is not None:
            return
        await asyncio.sleep(WAIT_S)
    message = "the namespace is larger than what is held in memory: the server is measured"
    print(message, file=sys.stderr)


async def postgres_lines(
    url: str, texts: Sequence[str], namespaces: int, queries: int
) -> list[Line]:
    import psycopg  # noqa: PLC0415 - an optional package

    where = ("scale", f"n{namespaces // 2}")
    per = -(-len(texts) // namespaces)
    asked = queries_of(texts[namespaces // 2 * per :][:per], queries)
    memory = await filled(url, texts, namespaces)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:

        async def raw(query: str) -> None:
            path = path_of(where)
            rows = await connection.execute(
                "SELECT text FROM satchel_memories WHERE path >= %s AND path < %s "
                "ORDER BY vector <#> %s::vector LIMIT 10",
                [path, path_end(path), vector_text(_unit(embedded([query])[0]))],
            )
            assert await rows.fetchall()

        async def by_both(query: str) -> None:
            path = path_of(where)
            given = {
                "start": path,
                "end": path_end(path),
                "vector": vector_text(_unit(embedded([query])[0])),
                "words": " | ".join(terms_of(query)),
                "most": MOST,
            }
            rows = await connection.execute(BY_BOTH, given)
            assert await rows.fetchall()

        await until_held(memory, where, asked[0])
        lines: list[Line] = []
        for kind, clock in (
            ("time", time.perf_counter),
            ("processor", await processors(connection)),
        ):
            await connection.execute("RESET hnsw.ef_search")
            theirs = await timed(raw, asked, clock)
            ours = await timed(lambda query: memory.recall(where, query, k=TEN), asked, clock)
            await connection.execute(b"SET hnsw.ef_search = %d" % MOST)
            both = await timed(by_both, asked, clock)
            for rival, seconds in (("pgvector alone", theirs), ("pgvector and ts_rank", both)):
                lines.append(
                    _line(f"postgres, {kind}", rival, ours, seconds, (len(texts), namespaces))
                )
        await connection.execute(
            "DROP TABLE satchel_memories, satchel_memory_terms, satchel_memory_sizes, "
            "satchel_memory_footing"
        )
    await memory.close()
    return lines


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vector / max(float(np.linalg.norm(vector)), 1e-9)
    return found


def _line(
    side: str, rival: str, ours: list[float], theirs: list[float], layout: tuple[int, int]
) -> Line:
    items, namespaces = layout
    what = f"recall of 10, {side}, {items:,} memories in {namespaces:,} namespaces"
    return Line(
        f"memory/{side}/{namespaces}",
        what,
        Samples.of_seconds("ms", ours),
        rival,
        Samples.of_seconds("ms", theirs),
    )


async def measured(
    *,
    items: int,
    namespaces: int,
    queries: int,
    url: str | None,
    backends: Sequence[str],
) -> list[Line]:
    """All lines."""
    texts = texts_of(items)
    lines: list[Line] = []
    for many in (1, namespaces):
        if "sqlite" in backends:
            lines += await sqlite_lines(texts, many, queries)
        if "postgres" in backends and url is not None:
            lines += await postgres_lines(url, texts, many, queries)
    return lines


def bench_memories_are_measured() -> None:
    """Once and small, for the suite: what is measured is right, how long it takes is nobody's."""
    lines = asyncio.run(measured(items=300, namespaces=3, queries=2, url=None, backends=["sqlite"]))
    assert [line.key for line in lines] == [
        f"memory/sqlite, {kind}/{many}" for many in (1, 3) for kind in ("time", "processor")
    ]
    assert all(line.ours.median > 0 for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--namespaces", type=int, default=1_000)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--url", help="of a PostgreSQL database for the purpose")
    parser.add_argument("--backend", action="append", choices=["sqlite", "postgres"])
    chosen = parser.parse_args()
    require_release()
    backends = chosen.backend or ["sqlite", "postgres"]
    server = None
    if "postgres" in backends and chosen.url is None:
        server = PostgresServer().start()
    try:
        lines = asyncio.run(
            measured(
                items=chosen.items,
                namespaces=chosen.namespaces,
                queries=chosen.queries,
                url=server.url() if server is not None else chosen.url,
                backends=backends,
            )
        )
    finally:
        if server is not None:
            server.stop()
    print(machine())
    print()
    print(table(lines))


if __name__ == "__main__":
    main()
