"""A thread with an SQLite connection of its own, and the way there from an event loop.

What waits in the queue of a writing thread becomes one transaction: under load many appends share
one commit. Results are handed out after the commit and never before. One job that fails does not
take the others along: they are done again, each in a transaction of its own.

Nothing is inherited by a forked process: before a fork every thread closes its connection, since
SQLite's locks do not survive one, and opens another when the next job comes.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import weakref
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from satchel.errors import SatchelError, StoreError
from satchel.stores._sqlite_errors import is_broken, told
from satchel.stores._sqlite_inline import LATER, InlineConnection

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SQLiteThread"]

_T = TypeVar("_T")

_MOST_JOBS: Final = 256
"""Jobs of one transaction, so that none of them waits too long for the others."""

_FORK_S: Final = 60.0
"""How long a fork waits for what is being written."""


class _Stop:
    """Ends the thread, after what came before it."""

    def __init__(self, tell: Callable[[], object] | None = None) -> None:
        self.tell: Final = tell


class _Pause:
    """Closes the connection until the fork is over."""

    def __init__(self) -> None:
        self.reached: Final = threading.Event()
        self.over: Final = threading.Event()


class _Job:
    """Something to do with the connection, and who waits for it."""

    __slots__ = ("error", "future", "loop", "result", "size", "work")

    def __init__(
        self,
        work: Callable[[sqlite3.Connection], Any],
        future: asyncio.Future[Any],
        loop: asyncio.AbstractEventLoop,
        size: int,
    ) -> None:
        self.work: Final = work
        self.size: Final = size
        self.future: Final = future
        self.loop: Final = loop
        self.result: Any = None
        self.error: Exception | None = None


_Queue = SimpleQueue["_Job | _Stop | _Pause"]


class SQLiteThread:
    """Does what it is asked to, one thing after the other; started by the first.

    Args:
        connect: opens the connection, within the thread.
        begin: the statement that begins a transaction.
        name: of the thread.
        connect_inline: opens a second connection, that does not wait for others and may be used by
            any thread; None for no work outside the thread.
    """

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        *,
        begin: str,
        name: str,
        connect_inline: Callable[[], sqlite3.Connection] | None = None,
    ) -> None:
        self._connect = connect
        self._connect_inline: Final = connect_inline
        self._inline = InlineConnection()
        self._waiting: set[_Job] = set()
        self._begin: Final = begin
        self._name: Final = name
        self._jobs: _Queue = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._pause: _Pause | None = None
        self._is_closed = False
        self._starting = threading.Lock()
        _THREADS.add(self)

    async def run(
        self,
        work: Callable[[sqlite3.Connection], _T],
        *,
        at_once: tuple[str, Callable[[sqlite3.Connection], _T]] | None = None,
        size: int = 0,
    ) -> _T:
        """Does ``work`` within a transaction.

        It may raise `SatchelError` before it has written anything. Cancelled before it began, it
        does not happen; later it does, and nobody hears of it.

        Args:
            work: what is done with the connection.
            at_once: for work that takes no time where the thread knows its subject: the subject,
                and the same work for the calling thread. That one may raise `LeftToThreadError`.
            size: about how many bytes it writes.

        Raises:
            StoreError: what `told` says about errors of SQLite; ``store_closed``.
        """
        if self._is_closed:
            message = "the store was closed; open it again"
            raise StoreError(message, code="store_closed")
        if self._thread is None:
            self._start()
        inline = self._inline
        # What comes while others wait for the thread comes after them.
        if at_once is not None and not self._waiting and inline.is_warm(at_once[0]):
            found = inline.run(at_once[1])
            if found is not LATER:
                if inline.is_long_since():
                    # Others have their turn, as if the thread had been asked.
                    await asyncio.sleep(0)
                return cast("_T", found)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        job = _Job(work, future, loop, size)
        try:
            self._waiting.add(job)
            self._jobs.put(job)
            return cast("_T", await future)
        finally:
            self._waiting.discard(job)

    async def close(self) -> None:
        """Finishes what was asked for, and closes the connection."""
        was_closed, self._is_closed = self._is_closed, True
        if was_closed or self._thread is None:
            return
        loop = asyncio.get_running_loop()
        done = asyncio.Event()
        self._jobs.put(_Stop(lambda: loop.call_soon_threadsafe(done.set)))
        await done.wait()

    def _start(self) -> None:
        with self._starting:
            if self._thread is not None:  # a loop in another thread was faster
                return
            # The thread does not hold this object, so it ends with it.
            thread = threading.Thread(
                target=_serve,
                args=(self._jobs, self._connect, self._begin, self._inline, self._connect_inline),
                name=self._name,
                daemon=True,
            )
            thread.start()
            weakref.finalize(self, self._jobs.put, _Stop())
            self._thread = thread

    def pause(self) -> None:
        """Closes the connection; to be followed by `go_on` or `begin_anew`."""
        if self._thread is not None and self._thread.is_alive():
            self._pause = _Pause()
            self._jobs.put(self._pause)

    def wait_until_paused(self) -> None:
        """Waits until the connection is closed."""
        if self._pause is not None:
            self._pause.reached.wait(_FORK_S)

    def go_on(self) -> None:
        """Ends the pause."""
        if self._pause is not None:
            self._pause.over.set()
            self._pause = None

    def begin_anew(self) -> None:
        """Forgets the thread, which a forked process does not have."""
        self._jobs, self._thread, self._pause = SimpleQueue(), None, None
        self._starting, self._inline, self._waiting = threading.Lock(), InlineConnection(), set()


_THREADS: Final[weakref.WeakSet[SQLiteThread]] = weakref.WeakSet()


def _before_fork() -> None:
    threads = list(_THREADS)
    for thread in threads:
        thread.pause()
    for thread in threads:
        thread.wait_until_paused()


def _in_parent() -> None:
    for thread in list(_THREADS):
        thread.go_on()


def _in_child() -> None:
    for thread in list(_THREADS):
        thread.begin_anew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


def _serve(
    jobs: _Queue,
    connect: Callable[[], sqlite3.Connection],
    begin: str,
    inline: InlineConnection,
    connect_inline: Callable[[], sqlite3.Connection] | None,
) -> None:
    connection: sqlite3.Connection | None = None
    while True:
        batch, signal = _next(jobs)
        if batch:
            with inline.lock:
                connection = _do(batch, connection, connect, begin)
                if connect_inline is not None and connection is not None and not inline.is_open:
                    inline.open(connect_inline)
                is_due = inline.note(len(batch), sum(job.size for job in batch))
                if is_due and connection is not None:
                    # By itself, SQLite would do so unseen; the next write must be known to wait.
                    with suppress(sqlite3.Error):
                        connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            _deliver(batch)
        if signal is not None:
            inline.close()
            if connection is not None:
                with suppress(sqlite3.Error):
                    connection.close()
                connection = None
            if isinstance(signal, _Stop):
                if signal.tell is not None:
                    with suppress(RuntimeError):  # the loop that asked is closed
                        signal.tell()
                return
            signal.reached.set()
            signal.over.wait()


def _next(jobs: _Queue) -> tuple[list[_Job], _Stop | _Pause | None]:
    batch: list[_Job] = []
    one = jobs.get()
    while True:
        if not isinstance(one, _Job):
            return batch, one
        # Who does not wait any more does not want it any more.
        if not one.future.cancelled():
            batch.append(one)
        if len(batch) == _MOST_JOBS:
            return batch, None
        try:
            one = jobs.get_nowait()
        except Empty:
            return batch, None


def _do(
    batch: list[_Job],
    connection: sqlite3.Connection | None,
    connect: Callable[[], sqlite3.Connection],
    begin: str,
) -> sqlite3.Connection | None:
    """Does the jobs; returns the connection, or None if it is of no use any more."""
    try:
        if connection is None:
            connection = connect()
        _transact(batch, connection, begin)
    except Exception as error:  # noqa: BLE001 - goes to who asked
        if len(batch) > 1:
            for job in batch:
                connection = _do([job], connection, connect, begin)
            return connection
        batch[0].error = told(error) if isinstance(error, sqlite3.Error) else error
        if connection is not None and is_broken(error):
            with suppress(sqlite3.Error):
                connection.close()
            connection = None
    return connection


def _transact(batch: list[_Job], connection: sqlite3.Connection, begin: str) -> None:
    connection.execute(begin)
    try:
        for job in batch:
            try:
                job.result, job.error = job.work(connection), None
            except SatchelError as error:
                # Raised before the job wrote anything, so the others may go on.
                job.error = error
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        raise


def _deliver(batch: list[_Job]) -> None:
    by_loop: dict[int, list[_Job]] = {}
    for job in batch:
        by_loop.setdefault(id(job.loop), []).append(job)
    for jobs in by_loop.values():
        with suppress(RuntimeError):  # that loop is closed: nobody waits
            jobs[0].loop.call_soon_threadsafe(_settle, jobs)


def _settle(jobs: list[_Job]) -> None:
    for job in jobs:
        if job.future.done():
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
