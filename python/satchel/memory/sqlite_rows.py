"""The tables of a memory file, and items as their rows."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.memory.backend import Draft, Filter, Scope, Selection
from satchel.memory.item import MemoryItem, Source
from satchel.memory.namespaces import path_of
from satchel.stores.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.memory.namespaces import Namespace

__all__ = [
    "COLUMNS",
    "SCHEMA",
    "draft_of_row",
    "filter_clause",
    "indexed_terms",
    "item_of_row",
    "match_of",
    "row_of",
    "selection_clause",
]

# A term is whatever the analyser says, so no ASCII sign may end one inside the index.
_SIGNS: Final = "!#$%&()*+,-./:;<=>?@[\\]^_`{|}~"

SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS satchel_memory_footing (
    one INTEGER PRIMARY KEY CHECK (one = 1), analyser TEXT NOT NULL, embedder TEXT,
    dimension INTEGER
);
CREATE TABLE IF NOT EXISTS satchel_memories (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, path BLOB NOT NULL,
    namespace TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, confidence REAL NOT NULL,
    "key" TEXT, time REAL NOT NULL, expires_at REAL, session_id TEXT, message INTEGER,
    speaker TEXT, origin TEXT, user_id TEXT, metadata TEXT NOT NULL, created_at REAL NOT NULL,
    superseded_by TEXT, superseded_at REAL, text TEXT NOT NULL, place INTEGER, label TEXT,
    terms TEXT NOT NULL, length INTEGER NOT NULL, vector BLOB
);
CREATE INDEX IF NOT EXISTS satchel_memories_path ON satchel_memories (path, number);
CREATE INDEX IF NOT EXISTS satchel_memories_key ON satchel_memories (path, "key")
    WHERE "key" IS NOT NULL;
CREATE INDEX IF NOT EXISTS satchel_memories_place ON satchel_memories (path, session_id, place);
CREATE VIRTUAL TABLE IF NOT EXISTS satchel_memory_terms USING fts5 (
    terms, content = '', tokenize = "ascii tokenchars '{_SIGNS}'"
);
"""

COLUMNS: Final = (
    "id",
    "path",
    "namespace",
    "kind",
    "status",
    "confidence",
    '"key"',
    "time",
    "expires_at",
    "session_id",
    "message",
    "speaker",
    "origin",
    "user_id",
    "metadata",
    "created_at",
    "superseded_by",
    "superseded_at",
    "text",
    "place",
    "label",
    "terms",
    "length",
    "vector",
)


def row_of(draft: Draft, place: int | None) -> tuple[Any, ...]:
    """The values of a draft, in the order of `COLUMNS`."""
    item = draft.item
    source = item.source
    return (
        item.id,
        path_of(item.namespace),
        json.dumps(item.namespace, ensure_ascii=False),
        item.kind,
        item.status,
        item.confidence,
        item.key,
        item.created_at if item.time is None else item.time,
        item.expires_at,
        source.session_id,
        source.message,
        source.speaker,
        source.origin,
        item.user_id,
        encode(item.metadata).decode("utf-8", "surrogatepass"),
        item.created_at,
        item.superseded_by,
        item.superseded_at,
        item.text,
        place,
        draft.label,
        " ".join(draft.terms),
        len(draft.terms),
        None if draft.vector is None else draft.vector.astype("<f4").tobytes(),
    )


def item_of_row(row: Sequence[Any]) -> MemoryItem:
    """The item of a row whose first values are those of `COLUMNS` up to ``text``."""
    return MemoryItem(
        id=row[0],
        namespace=tuple(json.loads(row[2])),
        kind=row[3],
        status=row[4],
        confidence=row[5],
        key=row[6],
        time=row[7],
        expires_at=row[8],
        source=Source(session_id=row[9], message=row[10], speaker=row[11], origin=row[12]),
        user_id=row[13],
        metadata=decode(row[14].encode("utf-8", "surrogatepass")),
        created_at=row[15],
        superseded_by=row[16],
        superseded_at=row[17],
        text=row[18],
    )


def draft_of_row(row: Sequence[Any]) -> Draft:
    """The draft of a row in the order of `COLUMNS`."""
    return Draft(
        item=item_of_row(row),
        terms=tuple(row[21].split(" ")) if row[21] else (),
        vector=None if row[23] is None else np.frombuffer(row[23], "<f4"),
        label=row[20],
    )


def indexed_terms(draft: Draft) -> str:
    """What the term index gets of a draft: its terms, and every scope that holds it."""
    scopes = (_scope_term(draft.item.namespace[:end]) for end in range(1, _past(draft)))
    return " ".join((*scopes, *draft.terms))


def match_of(namespace_path: bytes, terms: Sequence[str]) -> str:
    """A full-text query: in the scope, and any of the terms."""
    scope = f'"{_digest(namespace_path)}"'
    if not terms:
        return scope
    quoted = " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
    return f"{scope} AND ({quoted})"


def selection_clause(selection: Selection) -> tuple[str, list[Any]]:
    """The condition of a selection, and its values."""
    clauses = ["path = ?" if selection.exact else "path >= ? AND path < ?"]
    values: list[Any] = [selection.scope.start]
    if not selection.exact:
        values.append(selection.scope.end)
    for column, value in (
        ('"key"', selection.key),
        ("session_id", selection.session_id),
        ("user_id", selection.user_id),
    ):
        if value is not None:
            clauses.append(f"{column} = ?")
            values.append(value)
    if selection.ids is not None:
        clauses.append("id IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(selection.ids))
    return " AND ".join(clauses), values


def filter_clause(filters: Filter) -> tuple[str, list[Any]]:
    """The condition of a filter, and its values."""
    clauses = ["(expires_at IS NULL OR expires_at > ?)", "confidence >= ?"]
    values: list[Any] = [filters.now, filters.min_confidence]
    if not filters.with_claims:
        clauses.append("status = 'fact'")
    if not filters.with_history:
        clauses.append("superseded_by IS NULL")
    if filters.kinds is not None:
        clauses.append(f"kind IN ({', '.join('?' * len(filters.kinds))})")
        values += filters.kinds
    return " AND ".join(clauses), values


def scope_clause(scope: Scope) -> tuple[str, list[Any]]:
    """The condition of a scope, and its values."""
    return "path >= ? AND path < ?", [scope.start, scope.end]


def _past(draft: Draft) -> int:
    return len(draft.item.namespace) + 1


def _scope_term(namespace: Namespace) -> str:
    return _digest(path_of(namespace))


def _digest(path: bytes) -> str:
    return "in:" + blake2b(path, digest_size=16).hexdigest()
