"""What PostgreSQL is asked: the tables of sessions, and a statement for each operation.

Ids, keys, names and pointers are ``bytea``, so that they are compared byte by byte and may hold
anything; indexes are over their SHA-256, so that they may be long. A session is one row, whose lock
puts its writers in order. The row remembers the ids of the newest writes: a write that is sent
again because its answer was lost is done once.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "APPEND",
    "BRANCH",
    "CUT",
    "DELETE",
    "GET_PAGE",
    "GET_VALUE",
    "INFO",
    "LEASE",
    "LIST",
    "LIST_OF_USER",
    "LOCK",
    "NOTE_CUT",
    "OPEN",
    "PAGE_POINTERS",
    "PURGE",
    "PUT_PAGES",
    "PUT_VALUE",
    "READ",
    "RELEASE",
    "RENEW",
    "STEPS",
    "VALUE_NAMES",
    "VERSION",
]

_NOW: Final = "extract(epoch FROM clock_timestamp())::float8"
_LIVE: Final = f"(s.expires_at IS NULL OR s.expires_at > {_NOW})"
_THIS: Final = f"sha256(s.session_id) = sha256(%(id)b) AND s.session_id = %(id)b AND {_LIVE}"
_INFO: Final = """
    s.session_id, s.user_id, s.version, s.length, s.created_at, s.changed_at, s.expires_at, s.parent
"""
# Numbers as in `_write_ids`, written out so that statements stay literals: a slot is 6 bytes of an
# id of 8, and 64 are remembered.
_SLOT: Final = "position(substr(%(write)b::bytea, 1, 6) IN s.writes)"
_OTHERS: Final = f"""CASE WHEN {_SLOT} > 0
    THEN overlay(s.writes PLACING ''::bytea FROM {_SLOT} FOR 8) ELSE s.writes END"""
# The newest write of each slot, the newest last.
_NOTED: Final = f"""substr(({_OTHERS}) || %(write)b,
    greatest(1, octet_length({_OTHERS}) - 503))"""
_RENEWED: Final = f"CASE WHEN s.ttl_s IS NULL THEN s.expires_at ELSE {_NOW} + s.ttl_s END"
_LEASED: Final = f"""(%(lease)s::bigint IS NULL
    OR coalesce(s.lease_token = %(lease)s::bigint AND s.lease_ends > {_NOW}, false))"""
_LOCKED: Final = f"""
    SELECT s.*, position(%(write)b IN s.writes) > 0 AS is_done, {_LEASED} AS is_leased
    FROM satchel_sessions s WHERE {_THIS} FOR UPDATE
"""

VERSION: Final = "SELECT version FROM satchel_schema WHERE part = 'sessions'"

STEPS: Final = (
    """
    CREATE SEQUENCE satchel_fence;
    CREATE TABLE satchel_sessions (
        number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        session_id bytea NOT NULL,
        user_id bytea,
        version bigint NOT NULL DEFAULT 0,
        length bigint NOT NULL DEFAULT 0,
        created_at float8 NOT NULL,
        changed_at float8 NOT NULL,
        ttl_s float8,
        expires_at float8,
        parent bytea,
        writes bytea NOT NULL DEFAULT '',
        lease_token bigint,
        lease_holder bytea,
        lease_ends float8
    ) WITH (fillfactor = 70);
    CREATE UNIQUE INDEX satchel_sessions_id ON satchel_sessions (sha256(session_id));
    CREATE INDEX satchel_sessions_order ON satchel_sessions (substr(session_id, 1, 256));
    CREATE INDEX satchel_sessions_user
        ON satchel_sessions (sha256(user_id), substr(session_id, 1, 256));
    CREATE INDEX satchel_sessions_expiry
        ON satchel_sessions (expires_at) WHERE expires_at IS NOT NULL;
    CREATE TABLE satchel_entries (
        session bigint NOT NULL REFERENCES satchel_sessions ON DELETE CASCADE,
        sequence bigint NOT NULL,
        kind smallint NOT NULL CHECK (kind IN (0, 1)),
        key bytea,
        payload bytea NOT NULL,
        PRIMARY KEY (session, sequence)
    );
    CREATE UNIQUE INDEX satchel_entries_key
        ON satchel_entries (session, sha256(key)) WHERE key IS NOT NULL;
    CREATE TABLE satchel_values (
        session bigint NOT NULL REFERENCES satchel_sessions ON DELETE CASCADE,
        name bytea NOT NULL,
        version bigint NOT NULL,
        writer bytea NOT NULL,
        payload bytea NOT NULL
    );
    CREATE UNIQUE INDEX satchel_values_name ON satchel_values (session, sha256(name));
    CREATE TABLE satchel_pages (
        session bigint NOT NULL REFERENCES satchel_sessions ON DELETE CASCADE,
        pointer bytea NOT NULL,
        content bytea NOT NULL
    );
    CREATE UNIQUE INDEX satchel_pages_pointer ON satchel_pages (session, sha256(pointer));
    ALTER TABLE satchel_pages ALTER content SET STORAGE EXTERNAL;
    """,
)
"""One a version of the schema, oldest first: step n makes version n of version n - 1."""

PURGE: Final = (
    f"""
    DELETE FROM satchel_sessions s
    WHERE sha256(s.session_id) = sha256(%(id)b) AND s.session_id = %(id)b AND NOT {_LIVE}
    """,
    f"""
    DELETE FROM satchel_sessions WHERE number IN (
        SELECT s.number FROM satchel_sessions s WHERE s.expires_at <= {_NOW}
        ORDER BY s.expires_at LIMIT 16 FOR UPDATE SKIP LOCKED
    )
    """,
)
"""Removes the session if its time is over, and a few others of that kind."""

OPEN: Final = f"""
    INSERT INTO satchel_sessions AS s
        (session_id, user_id, created_at, changed_at, ttl_s, expires_at)
    SELECT %(id)b, %(user)b, now_s, now_s, %(ttl)s, now_s + %(ttl)s FROM (SELECT {_NOW} AS now_s) t
    ON CONFLICT (sha256(session_id)) DO UPDATE SET
        ttl_s = coalesce(excluded.ttl_s, s.ttl_s),
        expires_at = CASE WHEN coalesce(excluded.ttl_s, s.ttl_s) IS NULL THEN s.expires_at
            ELSE {_NOW} + coalesce(excluded.ttl_s, s.ttl_s) END
    WHERE s.user_id IS NOT DISTINCT FROM excluded.user_id AND {_LIVE}
    RETURNING {_INFO}
"""

INFO: Final = f"SELECT {_INFO} FROM satchel_sessions s WHERE {_THIS}"

APPEND: Final = f"""
    WITH s AS MATERIALIZED ({_LOCKED}),
    due AS MATERIALIZED (
        SELECT * FROM s WHERE NOT is_done AND is_leased
            AND (%(expected)s::bigint IS NULL OR version = %(expected)s::bigint)
    ),
    fresh AS (
        SELECT due.number, due.length + row_number() OVER (ORDER BY given.place) AS sequence,
            given.kind, nullif(given.key, '') AS key, given.payload
        FROM due, unnest(%(kinds)b::smallint[], %(keys)b::bytea[], %(payloads)b::bytea[])
            WITH ORDINALITY AS given (kind, key, payload, place)
        WHERE given.key = '' OR NOT EXISTS (
            SELECT FROM satchel_entries e WHERE e.session = due.number AND e.key IS NOT NULL
                AND sha256(e.key) = sha256(given.key)
        )
    ),
    added AS (
        INSERT INTO satchel_entries (session, sequence, kind, key, payload)
        SELECT number, sequence, kind, key, payload FROM fresh RETURNING 1
    ),
    changed AS (
        UPDATE satchel_sessions AS s SET
            version = due.version + n.added,
            length = due.length + n.added,
            changed_at = CASE WHEN n.added > 0 THEN {_NOW} ELSE s.changed_at END,
            expires_at = {_RENEWED},
            writes = {_NOTED}
        FROM due, (SELECT count(*) AS added FROM added) n
        WHERE s.number = due.number
        RETURNING {_INFO}
    )
    SELECT true, true, changed.* FROM changed
    UNION ALL
    SELECT s.is_done, s.is_leased, {_INFO} FROM s WHERE NOT EXISTS (SELECT FROM changed)
"""
"""Locks the session and adds what is new: whether it is done, whether the lease
holds, and how the session stands.

The check of keys may miss an entry of a writer that was waited for; the index then refuses the row,
and the statement is sent again.
"""

READ: Final = f"""
    SELECT s.length, e.sequence, e.kind, e.payload, e.key
    FROM satchel_sessions s LEFT JOIN satchel_entries e
        ON e.session = s.number AND e.sequence > %(after)s AND e.sequence <= %(last)s
    WHERE {_THIS} ORDER BY e.sequence
"""

LOCK: Final = f"""
    SELECT s.number, s.user_id, s.version, position(%(write)b IN s.writes) > 0, {_LEASED}
    FROM satchel_sessions s WHERE {_THIS} FOR UPDATE
"""
"""For transactions of several statements, each of which sees what is there once it has the lock."""

CUT: Final = "DELETE FROM satchel_entries WHERE session = %(number)s AND sequence > %(length)s"

NOTE_CUT: Final = f"""
    UPDATE satchel_sessions s SET
        version = s.version + (s.length > %(length)s)::int,
        changed_at = CASE WHEN s.length > %(length)s THEN {_NOW} ELSE s.changed_at END,
        length = least(s.length, %(length)s),
        expires_at = {_RENEWED},
        writes = {_NOTED}
    WHERE s.number = %(number)s RETURNING {_INFO}
"""

BRANCH: Final = f"""
    WITH made AS (
        INSERT INTO satchel_sessions (session_id, user_id, version, length, created_at, changed_at,
            ttl_s, expires_at, parent, writes)
        SELECT %(target)b, s.user_id, least(s.length, %(length)s), least(s.length, %(length)s),
            {_NOW}, {_NOW}, s.ttl_s, {_NOW} + s.ttl_s, s.session_id, %(write)b
        FROM satchel_sessions s WHERE s.number = %(number)s
        ON CONFLICT (sha256(session_id)) DO NOTHING RETURNING *
    ),
    entries AS (
        INSERT INTO satchel_entries (session, sequence, kind, key, payload)
        SELECT made.number, e.sequence, e.kind, e.key, e.payload FROM made, satchel_entries e
        WHERE e.session = %(number)s AND e.sequence <= %(length)s
    ),
    pages AS (
        INSERT INTO satchel_pages (session, pointer, content)
        SELECT made.number, p.pointer, p.content FROM made, satchel_pages p
        WHERE p.session = %(number)s
    )
    SELECT {_INFO} FROM made s
"""

GET_VALUE: Final = f"""
    SELECT v.payload, v.version FROM satchel_sessions s LEFT JOIN satchel_values v
        ON v.session = s.number AND sha256(v.name) = sha256(%(name)b)
    WHERE {_THIS}
"""

PUT_VALUE: Final = f"""
    WITH s AS MATERIALIZED ({_LOCKED}),
    put AS (
        INSERT INTO satchel_values AS v (session, name, version, writer, payload)
        SELECT s.number, %(name)b, 1, %(write)b, %(payload)b FROM s
        WHERE NOT s.is_done AND s.is_leased AND (coalesce(%(expected)s::bigint, 0) = 0 OR EXISTS (
            SELECT FROM satchel_values v
            WHERE v.session = s.number AND sha256(v.name) = sha256(%(name)b)
        ))
        ON CONFLICT (session, sha256(name)) DO UPDATE SET
            payload = excluded.payload, writer = excluded.writer, version = v.version + 1
        WHERE %(expected)s::bigint IS NULL OR v.version = %(expected)s::bigint
        RETURNING version
    ),
    noted AS (
        UPDATE satchel_sessions s SET expires_at = {_RENEWED}, writes = {_NOTED}
        FROM s AS locked, put WHERE s.number = locked.number
    )
    SELECT (SELECT version FROM put), v.version, v.writer = %(write)b, s.is_leased
    FROM s LEFT JOIN satchel_values v
        ON v.session = s.number AND sha256(v.name) = sha256(%(name)b)
"""
"""The version that was written; the one before, whether it was this write that wrote it, and
whether the lease holds."""

VALUE_NAMES: Final = f"""
    SELECT v.name FROM satchel_sessions s LEFT JOIN satchel_values v ON v.session = s.number
    WHERE {_THIS}
"""

PUT_PAGES: Final = f"""
    WITH s AS MATERIALIZED (
        SELECT s.number FROM satchel_sessions s WHERE {_THIS} FOR UPDATE
    ),
    put AS (
        INSERT INTO satchel_pages (session, pointer, content)
        SELECT s.number, given.pointer, given.content
        FROM s, unnest(%(pointers)b::bytea[], %(contents)b::bytea[]) AS given (pointer, content)
        ON CONFLICT (session, sha256(pointer)) DO NOTHING
    )
    UPDATE satchel_sessions s SET expires_at = {_RENEWED}
    FROM s AS locked WHERE s.number = locked.number RETURNING 1
"""

GET_PAGE: Final = f"""
    SELECT p.content FROM satchel_sessions s LEFT JOIN satchel_pages p
        ON p.session = s.number AND sha256(p.pointer) = sha256(%(pointer)b)
    WHERE {_THIS}
"""

PAGE_POINTERS: Final = f"""
    SELECT p.pointer FROM satchel_sessions s LEFT JOIN satchel_pages p ON p.session = s.number
    WHERE {_THIS}
"""

_PART: Final = f"""
    {_LIVE} AND (%(after)b::bytea IS NULL OR (
        substr(s.session_id, 1, 256) >= substr(%(after)b, 1, 256) AND s.session_id > %(after)b
    )) ORDER BY substr(s.session_id, 1, 256), s.session_id LIMIT %(limit)s
"""

LIST: Final = f"SELECT {_INFO} FROM satchel_sessions s WHERE {_PART}"

LIST_OF_USER: Final = f"""
    SELECT {_INFO} FROM satchel_sessions s
    WHERE sha256(s.user_id) = sha256(%(user)b) AND s.user_id = %(user)b AND {_PART}
"""

DELETE: Final = f"""
    DELETE FROM satchel_sessions s
    WHERE sha256(s.session_id) = sha256(%(id)b) AND s.session_id = %(id)b RETURNING {_LIVE}
"""

LEASE: Final = f"""
    WITH s AS MATERIALIZED (
        SELECT s.number, s.lease_holder, s.lease_ends FROM satchel_sessions s
        WHERE {_THIS} FOR UPDATE
    ),
    got AS (
        UPDATE satchel_sessions t SET lease_token = nextval('satchel_fence'),
            lease_holder = %(holder)b, lease_ends = {_NOW} + %(ttl)s
        FROM s WHERE t.number = s.number
            AND (s.lease_ends IS NULL OR s.lease_ends <= {_NOW} OR s.lease_holder = %(holder)b)
        RETURNING t.lease_token
    )
    SELECT (SELECT lease_token FROM got) FROM s
"""
"""The token; nothing in its place while another holds the lease."""

RENEW: Final = f"""
    UPDATE satchel_sessions s SET lease_ends = {_NOW} + %(ttl)s
    WHERE {_THIS} AND s.lease_token = %(token)s AND s.lease_ends > {_NOW} RETURNING 1
"""
"""A row if the lease still holds, whose end was put off then."""

RELEASE: Final = """
    UPDATE satchel_sessions SET lease_token = NULL, lease_holder = NULL, lease_ends = NULL
    WHERE sha256(session_id) = sha256(%(id)b) AND session_id = %(id)b AND lease_token = %(token)s
"""
