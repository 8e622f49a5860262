"""A second connection for small writes, used where the caller runs instead of in a thread.

The way to a thread and back takes longer than a small append itself. Where a commit does not wait
for the disk, such an append can be done at once: it takes some forty microseconds. Everything that
might take longer goes to the thread: large writes, a session whose pages may not be in memory yet,
a database that somebody else is writing, and the writes that move the log of SQLite into the file.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import SatchelError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LATER", "InlineConnection", "LeftToThreadError"]

_THREADED_EVERY: Final = 400
"""Commits after which two writes go to the thread. With the first it moves SQLite's log, two or
three pages a commit, into the file; the second begins the log anew. Both wait for the disk."""

_COMMIT_BYTES: Final = 16_384
"""What counts as one commit more."""

_IN_A_ROW_S: Final = 0.000_5
"""How long one task may write without letting others have their turn."""

_MOST_WARM: Final = 1_024
"""Sessions that are known to be in memory."""


class LeftToThreadError(Exception):
    """Raised by work that turns out to be too much, before it wrote anything."""


class _Later:
    """Says that the thread has to do it."""


LATER: Final = _Later()


class InlineConnection:
    """The connection, while it may be used.

    Opened, closed and lent by the thread: it holds `lock` while it writes itself.
    """

    def __init__(self) -> None:
        self.lock: Final = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._commits = 0
        self._is_moved = False
        self._warm: dict[str, None] = {}
        self._yielded_at = 0.0

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._connection is not None

    def open(self, connect: Callable[[], sqlite3.Connection]) -> None:
        """Opens it; where that fails, the thread does everything."""
        with suppress(sqlite3.Error, SatchelError):
            connection = connect()
            # Only the thread moves the log into the file: that waits for the disk.
            connection.execute("PRAGMA wal_autocheckpoint = 0")
            self._connection = connection

    def close(self) -> None:
        """Closes it; waits for the write that is under way."""
        with self.lock:
            self._drop()

    def note(self, writes: int, size: int) -> bool:
        """Notes what the thread wrote; whether it is to move the log now. `lock` is held."""
        self._is_moved = False
        self._commits += writes + size // _COMMIT_BYTES
        if self._connection is None or self._commits < _THREADED_EVERY:
            return False
        self._commits, self._is_moved = 0, True
        return True

    def is_warm(self, subject: str) -> bool:
        """Whether the thread was asked about it before; from now on it was, since it is now."""
        if self._connection is None:
            return False
        if subject in self._warm:
            return True
        if len(self._warm) >= _MOST_WARM:
            self._warm.clear()
        self._warm[subject] = None
        return False

    def is_long_since(self) -> bool:
        """Whether the event loop should go round before another write; then it is to do so."""
        now = time.monotonic()
        if now - self._yielded_at < _IN_A_ROW_S:
            return False
        self._yielded_at = now
        return True

    def run(self, work: Callable[[sqlite3.Connection], Any]) -> Any:  # noqa: ANN401 - what the work returns
        """Does ``work`` in a transaction of its own; `LATER` if the thread has to.

        Raises:
            SatchelError: raised by the work.
        """
        try:
            if not self.lock.acquire(blocking=False):
                return LATER
            connection = self._connection
            if connection is None or self._is_moved or self._commits >= _THREADED_EVERY:
                return LATER
            self._commits += 1
            return self._transact(connection, work)
        finally:
            # Told by the lock: a signal's exception may come before any flag of ours is set.
            try:  # noqa: SIM105 - making `suppress` is one more place where it may come
                self.lock.release()
            except RuntimeError:
                pass

    def _transact(
        self, connection: sqlite3.Connection, work: Callable[[sqlite3.Connection], Any]
    ) -> Any:  # noqa: ANN401 - as above
        try:
            try:
                connection.execute("BEGIN IMMEDIATE")
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
        except LeftToThreadError:
            return LATER
        except sqlite3.Error as error:
            # Another writer: he is waited for in the thread. Anything else is seen there again.
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_BUSY:
                self._drop()
            return LATER
        return result

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._warm.clear()
        if connection is not None:
            with suppress(sqlite3.Error):
                connection.close()
