"""The tables of the SQLite store, and how a file comes to have them.

The number of a schema is the file's ``user_version``; its ``application_id`` says whose it is. A
file is brought up to date step by step within one transaction, so that two processes that start at
once do it once.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Final

from satchel.errors import StoreError

__all__ = ["APPLICATION_ID", "STEPS", "prepare", "use_write_ahead_log"]

APPLICATION_ID: Final = 0x5A7C4E10
"""Says that a file is a store of ours."""

# The id of an entry is its session's number times 2**32 and its sequence number, so that a session
# lies together and is read in one sweep. Ids of sessions are text, compared byte by byte.
_FIRST: Final = """
CREATE TABLE sessions (
    number INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL UNIQUE,
    user_id TEXT,
    version INTEGER NOT NULL,
    length INTEGER NOT NULL,
    created_at REAL NOT NULL,
    changed_at REAL NOT NULL,
    ttl_s REAL,
    expires_at REAL,
    parent TEXT,
    lease_token INTEGER,
    lease_ends REAL
);
CREATE INDEX sessions_of_user ON sessions (user_id, session_id) WHERE user_id IS NOT NULL;
CREATE INDEX sessions_that_end ON sessions (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    form INTEGER NOT NULL,
    key TEXT,
    payload BLOB NOT NULL
);
CREATE UNIQUE INDEX entries_with_key ON entries (session, key) WHERE key IS NOT NULL;
CREATE TABLE contents (
    session INTEGER NOT NULL,
    is_page INTEGER NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    form INTEGER NOT NULL,
    payload BLOB NOT NULL,
    UNIQUE (session, is_page, name)
);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO counters VALUES ('lease', 0);
"""

# A chunk is a run of entries that stand in one row, in place of as many rows of `entries`. Its id
# is that of the first of them; `satchel.stores.entries` says how it is laid out. Keys are in a
# table of their own, since an index cannot look into chunks.
_SECOND: Final = """
CREATE TABLE chunks (
    id INTEGER PRIMARY KEY,
    count INTEGER NOT NULL,
    heads BLOB NOT NULL,
    contents BLOB NOT NULL
);
CREATE TABLE keys (
    session INTEGER NOT NULL,
    key TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (session, key)
) WITHOUT ROWID;
INSERT INTO keys SELECT session, key, id & 4294967295 FROM entries WHERE key IS NOT NULL;
DROP INDEX entries_with_key;
"""

STEPS: Final[tuple[str, ...]] = (_FIRST, _SECOND)
"""What leads from each schema to the next; the first from nothing."""

_RETRY_S: Final = 0.005


def prepare(connection: sqlite3.Connection, *, timeout_s: float) -> None:
    """Brings the file up to date.

    Raises:
        StoreError: ``schema_newer``, ``schema_unknown``.
        sqlite3.Error: whatever SQLite says.
    """
    steps = STEPS
    if _version(connection, len(steps)) == len(steps):
        return
    use_write_ahead_log(connection, timeout_s)
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Once more: another process may have been faster.
        for number in range(_version(connection, len(steps)), len(steps)):
            for statement in steps[number].split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, newest: int) -> int:
    """The number of the file's schema, 0 for an empty file."""
    if connection.in_transaction:
        return _read_version(connection, newest)
    # One view for all that is read: another process may make the schema meanwhile.
    connection.execute("BEGIN")
    try:
        return _read_version(connection, newest)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _read_version(connection: sqlite3.Connection, newest: int) -> int:
    """As `_version`, within a transaction."""
    [application_id] = connection.execute("PRAGMA application_id").fetchone()
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if application_id != APPLICATION_ID:
        [tables] = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application_id == 0 and version == 0 and tables == 0:
            return 0
        message = "the file is another program's database; give the store a file of its own"
        raise StoreError(message, code="schema_unknown")
    if version > newest:
        message = (
            f"the database has schema {version}, this satchel knows schemas up to {newest}: "
            "use the newer satchel that wrote it"
        )
        raise StoreError(message, code="schema_newer", value=version, limit=newest)
    if version < 1:
        message = "the database has no schema number: it is damaged; go back to a backup"
        raise StoreError(message, code="schema_unknown")
    return int(version)


def use_write_ahead_log(connection: sqlite3.Connection, timeout_s: float) -> None:
    """Puts the file into write-ahead mode; SQLite does not wait for others there by itself.

    Raises:
        sqlite3.Error: whatever SQLite says.
    """
    ends = time.monotonic() + timeout_s
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > ends:
                raise
            time.sleep(_RETRY_S)
        else:
            return
