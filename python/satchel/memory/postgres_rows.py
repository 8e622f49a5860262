"""The tables of memories in PostgreSQL, and items as their rows.

Ids, keys and paths are bytes, so any text can be one and all are compared byte by byte. ``terms``
holds each distinct term, and a mark for every scope that the item lies in: the index meets the
scope and the words before a row is read.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.memory.bm25 import K1, B
from satchel.memory.item import MemoryItem, Source
from satchel.memory.namespaces import path_of
from satchel.stores.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from satchel.memory.backend import Draft, Filter, Query, Scope, Selection

__all__ = [
    "ITEM",
    "STEPS",
    "filter_clause",
    "item_of_row",
    "lexical_order",
    "lexical_values",
    "likely_rows",
    "nearness",
    "row_of",
    "selection_clause",
    "vector_schema",
    "vector_text",
]

_TABLES: Final = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE IF NOT EXISTS satchel_memory_footing (
    one boolean PRIMARY KEY DEFAULT true CHECK (one), analyser text NOT NULL, embedder text,
    dimension integer
);
CREATE TABLE IF NOT EXISTS satchel_memories (
    number bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY, id bytea NOT NULL UNIQUE,
    path bytea NOT NULL, namespace text NOT NULL, kind text NOT NULL, status text NOT NULL,
    confidence double precision NOT NULL, "key" bytea, time double precision NOT NULL,
    expires_at double precision, session_id bytea NOT NULL, message bigint, speaker text,
    origin text, user_id bytea, metadata bytea NOT NULL, created_at double precision NOT NULL,
    superseded_by bytea, superseded_at double precision, text text NOT NULL, place bigint,
    label text, words text NOT NULL, length integer NOT NULL, terms tsvector NOT NULL
);
CREATE INDEX IF NOT EXISTS satchel_memories_path ON satchel_memories (path, number);
CREATE INDEX IF NOT EXISTS satchel_memories_key ON satchel_memories (path, "key")
    WHERE "key" IS NOT NULL;
CREATE INDEX IF NOT EXISTS satchel_memories_place ON satchel_memories (path, session_id, place);
CREATE INDEX IF NOT EXISTS satchel_memories_terms ON satchel_memories USING gin (terms)
    WITH (fastupdate = off);
CREATE TABLE IF NOT EXISTS satchel_memory_sizes (
    path bytea PRIMARY KEY, items bigint NOT NULL, terms bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS satchel_memory_terms (
    term text COLLATE "C" NOT NULL, path bytea NOT NULL, items bigint NOT NULL,
    PRIMARY KEY (term, path)
);
"""

_CHANGES: Final = """
CREATE SEQUENCE IF NOT EXISTS satchel_memory_changes;
ALTER TABLE satchel_memories ADD COLUMN IF NOT EXISTS changed bigint NOT NULL DEFAULT 0;
CREATE INDEX IF NOT EXISTS satchel_memories_changed ON satchel_memories (path, changed);
CREATE OR REPLACE FUNCTION satchel_memory_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.changed := nextval(format('%I.satchel_memory_changes', TG_TABLE_SCHEMA)::regclass);
    RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS satchel_memories_changed ON satchel_memories;
CREATE TRIGGER satchel_memories_changed BEFORE INSERT OR UPDATE ON satchel_memories
    FOR EACH ROW EXECUTE FUNCTION satchel_memory_changed();
"""
# By the server, so that writers which do not know of it number their changes too. Writers of one
# namespace wait for one another, so its numbers rise in the order in which changes are seen.

STEPS: Final = (_TABLES, _CHANGES)
"""One a version of the schema, oldest first: step n makes version n of version n - 1."""

_INDEXED: Final = 2_000
_HALF_INDEXED: Final = 4_000
"""The longest vectors that pgvector 0.8 indexes, in full and in half precision."""

_MOST_WORDS: Final = 8
"""Words of a query that decide which rows are looked at: sets of more would be too many."""

_ENOUGH: Final = 4

ITEM: Final = (
    'id, namespace, kind, status, confidence, "key", time, expires_at, session_id, message, '
    "speaker, origin, user_id, metadata, created_at, superseded_by, superseded_at, text"
)


def vector_schema(dimension: int) -> str:
    """What makes the column of vectors anew, and its index where their length allows one."""
    column = (
        "ALTER TABLE satchel_memories DROP COLUMN IF EXISTS vector;\n"
        f"ALTER TABLE satchel_memories ADD COLUMN vector vector({dimension});\n"
    )
    index = "CREATE INDEX satchel_memories_vector ON satchel_memories USING hnsw "
    if dimension <= _INDEXED:
        return f"{column}{index}(vector vector_ip_ops);"
    if dimension <= _HALF_INDEXED:
        return f"{column}{index}((vector::halfvec({dimension})) halfvec_ip_ops);"
    return column


def nearness(dimension: int) -> str:
    """The expression that the index of vectors sorts by, least first."""
    if _INDEXED < dimension <= _HALF_INDEXED:
        return f"(vector::halfvec({dimension})) <#> %(vector)s::halfvec({dimension})"
    return "vector <#> %(vector)s::vector"


def row_of(draft: Draft, place: int | None) -> dict[str, Any]:
    """The values of a draft, by column."""
    item = draft.item
    source = item.source
    return {
        "id": item.id.encode(),
        "path": path_of(item.namespace),
        "namespace": json.dumps(item.namespace),
        "kind": item.kind,
        "status": item.status,
        "confidence": item.confidence,
        "key": _bytes(item.key),
        "time": item.created_at if item.time is None else item.time,
        "expires_at": item.expires_at,
        "session_id": _bytes(source.session_id) or b"",
        "message": source.message,
        "speaker": source.speaker,
        "origin": source.origin,
        "user_id": _bytes(item.user_id),
        "metadata": encode(item.metadata),
        "created_at": item.created_at,
        "superseded_by": _bytes(item.superseded_by),
        "superseded_at": item.superseded_at,
        "text": item.text,
        "place": place,
        "label": draft.label,
        "words": " ".join(draft.terms),
        "length": len(draft.terms),
        "lexemes": [*_marks(draft), *sorted(set(draft.terms))],
        "vector": None if draft.vector is None else vector_text(draft.vector),
    }


def item_of_row(row: Sequence[Any]) -> MemoryItem:
    """The item of a row whose first values are those of `ITEM`."""
    return MemoryItem(
        id=row[0].decode(),
        namespace=tuple(json.loads(row[1])),
        kind=row[2],
        status=row[3],
        confidence=row[4],
        key=_text(row[5]),
        time=row[6],
        expires_at=row[7],
        source=Source(
            session_id=_text(row[8]) or None, message=row[9], speaker=row[10], origin=row[11]
        ),
        user_id=_text(row[12]),
        metadata=decode(row[13]),
        created_at=row[14],
        superseded_by=_text(row[15]),
        superseded_at=row[16],
        text=row[17],
    )


def selection_clause(selection: Selection) -> tuple[str, dict[str, Any]]:
    """The condition of a selection, and its values."""
    values: dict[str, Any] = {"start": selection.scope.start, "end": selection.scope.end}
    clauses = ["path = %(start)s" if selection.exact else "path >= %(start)s AND path < %(end)s"]
    for column, value in (
        ("key", selection.key),
        ("session_id", selection.session_id),
        ("user_id", selection.user_id),
    ):
        if value is not None:
            clauses.append(f'"{column}" = %({column})s')
            values[column] = value.encode()
    if selection.ids is not None:
        clauses.append("id = ANY(%(ids)s)")
        values["ids"] = [one.encode() for one in selection.ids]
    return " AND ".join(clauses), values


def filter_clause(filters: Filter) -> tuple[str, dict[str, Any]]:
    """The condition of a filter on the table ``m``, and its values."""
    clauses = [
        "(m.expires_at IS NULL OR m.expires_at > %(now)s)",
        "m.confidence >= %(least)s",
    ]
    if not filters.with_claims:
        clauses.append("m.status = 'fact'")
    if not filters.with_history:
        clauses.append("m.superseded_by IS NULL")
    values: dict[str, Any] = {"now": filters.now, "least": filters.min_confidence}
    if filters.kinds is not None:
        clauses.append("m.kind = ANY(%(kinds)s)")
        values["kinds"] = list(filters.kinds)
    return " AND ".join(clauses), values


def _scope_mark(path: bytes) -> str:
    """The lexeme of every item that lies in a scope."""
    return "in:" + blake2b(path, digest_size=16).hexdigest()


def _lexeme(term: str) -> str:
    """A term as it stands in a text query."""
    return "'" + term.replace("\\", "\\\\").replace("'", "''") + "'"


def vector_text(vector: NDArray[np.float32]) -> str:
    """A vector as PostgreSQL reads it; no number loses a digit."""
    return "[" + ",".join(f"{number:.9g}" for number in vector.tolist()) + "]"


def lexical_values(scope: Scope, query: Query) -> dict[str, Any]:
    """The values of a search for words, and of `lexical_order`."""
    terms = [_lexeme(term) for term in query.terms]
    given: dict[str, Any] = {
        "asked": f"{_lexeme(_scope_mark(scope.start))} & ({' | '.join(terms)})",
        "mean": max(query.mean_terms, 1.0),
    }
    for place, (term, weight) in enumerate(zip(terms, query.weights.tolist(), strict=True)):
        given[f"term{place}"] = term
        given[f"weight{place}"] = weight
    return given


def likely_rows(scope: Scope, query: Query) -> str | None:
    """A text query for the rows that hold the most of the words; None to look at all with any.

    Where words are frequent, most rows with one of them hold nothing else of the query, and are
    seldom candidates: only a very short one outweighs a row that holds more. So only rows from some
    sum of weights on are looked at, low enough that there should be `_ENOUGH` times as many as are
    wanted if words came independently of one another. Written as sets of words of which a row holds
    one in full.
    """
    if len(query.shares) != len(query.terms):
        return None
    heaviest = np.argsort(-query.weights, kind="stable")[:_MOST_WORDS]
    weights, shares = query.weights[heaviest].astype(np.float64), query.shares[heaviest]
    sets = (np.arange(1 << len(heaviest))[:, None] >> np.arange(len(heaviest))) & 1
    sums = sets @ weights
    chances = np.prod(np.where(sets == 1, shares, 1.0 - shares), axis=1)
    order = np.argsort(-sums, kind="stable")
    enough = np.flatnonzero(query.items * np.cumsum(chances[order]) >= _ENOUGH * query.most)
    least = sums[order[enough[0]]] if len(enough) else 0.0
    if least <= weights.min():
        return None
    chosen: list[int] = []
    for number in sorted(np.flatnonzero(sums >= least).tolist(), key=int.bit_count):
        if not any(number & known == known for known in chosen):
            chosen.append(number)
    places: list[int] = heaviest.tolist()
    words = [_lexeme(query.terms[place]) for place in places]
    alternatives = [
        f"({' & '.join(word for place, word in enumerate(words) if number >> place & 1)})"
        for number in chosen
    ]
    return (
        f"{_lexeme(_scope_mark(scope.start))} & ({' | '.join(f'({one})' for one in alternatives)})"
    )


def lexical_order(query: Query) -> str:
    """BM25 as if no term came twice: which rows are worth reading, not their order."""
    held = " + ".join(
        f"(m.terms @@ %(term{place})s::tsquery)::int * %(weight{place})s::float8"
        for place in range(len(query.terms))
    )
    base, slope = 1 + K1 * (1 - B), K1 * B
    return f"({held}) / ({base}::float8 + {slope}::float8 * m.length / %(mean)s::float8)"


def _marks(draft: Draft) -> list[str]:
    namespace = draft.item.namespace
    return [_scope_mark(path_of(namespace[:end])) for end in range(1, len(namespace) + 1)]


def _bytes(value: str | None) -> bytes | None:
    return None if value is None else value.encode()


def _text(value: bytes | None) -> str | None:
    return None if value is None else bytes(value).decode()
