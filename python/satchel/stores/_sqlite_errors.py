"""What SQLite says, as errors of ours: what it is, and what to do about it."""

from __future__ import annotations

import sqlite3
from typing import Final

from satchel.errors import StoreError

__all__ = ["is_broken", "told"]

_PRIMARY: Final = 0xFF
"""An extended result code ends with the primary one; https://www.sqlite.org/rescode.html."""

_TOLD: Final = {
    sqlite3.SQLITE_BUSY: (
        "store_unavailable",
        "the database is locked by another process for longer than busy_timeout_s; try again",
    ),
    sqlite3.SQLITE_LOCKED: ("store_unavailable", "the database is locked; try again"),
    sqlite3.SQLITE_FULL: (
        "store_full",
        (
            "no room for the database: free some on its disk, then write again; "
            "what was acknowledged is there"
        ),
    ),
    sqlite3.SQLITE_READONLY: (
        "store_read_only",
        "the database cannot be written: make the file and its folder writable for this process",
    ),
    sqlite3.SQLITE_PERM: (
        "store_read_only",
        "the database may not be used: make the file and its folder writable for this process",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "store_unavailable",
        "the database cannot be opened: its folder must exist and be writable for this process",
    ),
    sqlite3.SQLITE_IOERR: (
        "store_unavailable",
        "the disk failed, or a limit of file sizes was met; what was acknowledged is there",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "store_corrupt",
        (
            "the database is damaged: keep a copy, see what `sqlite3 FILE .recover` finds, or "
            "go back to a backup"
        ),
    ),
    sqlite3.SQLITE_NOTADB: ("store_corrupt", "the file is no SQLite database; is the path right?"),
    sqlite3.SQLITE_TOOBIG: ("store_full", "a payload is too large for SQLite"),
}


def told(error: Exception) -> StoreError:
    """The error for the caller; SQLite's own words are left out, they may quote what was stored."""
    code = getattr(error, "sqlite_errorcode", None)
    found = _TOLD.get(code & _PRIMARY) if isinstance(code, int) else None
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if found is None:
        return StoreError(f"SQLite refused the work ({name})", code="store_unavailable")
    kind, message = found
    return StoreError(f"{message} ({name})", code=kind)


def is_broken(error: Exception) -> bool:
    """Whether the connection should not be used again."""
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & _PRIMARY in {
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_NOTADB,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_READONLY,
    }
