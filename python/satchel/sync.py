"""Sessions for programs that do not use ``async``: the same names, and every call waits.

All of it runs on one event loop in a thread of its own, which starts with the first call and ends
with the program. Objects may be shared by threads: their calls take turns, as tasks' do. Calls work
wherever blocking does, also where the calling thread has a running loop, as in a notebook; in
``async`` code use `satchel.open_session`, or nothing else runs meanwhile. Only code that satchel
itself runs on that loop (a summarizer, say) cannot call back into it, and is told so.

Example:
    >>> import satchel.sync
    >>> with satchel.sync.open_session("memory://", session_id="doc", model="gpt-4o") as session:
    ...     version = session.append({"role": "user", "content": "hello"})
    ...     len(session.window().messages)
    1
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import satchel.session as waiting
from satchel._arguments import UNSET, Unset
from satchel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
    from types import TracebackType

    from satchel._stakes import Stakes
    from satchel.assembler import Budget
    from satchel.compaction import CompactionReport, SummaryPart
    from satchel.counting import AnyCounter
    from satchel.policy import Policy
    from satchel.stores.base import SessionStore
    from satchel.summarize.base import Summarizer
    from satchel.summarize.writing import Patience, Written
    from satchel.window import StepReport, Window
    from satchel.working_set import OpenCalls

__all__ = ["Session", "SessionState", "open_session"]

_Result = TypeVar("_Result")


class _Loop:
    """One event loop in one thread."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._over: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], Coroutine[Any, Any, _Result]]) -> _Result:
        """Does it on the loop and waits for the result.

        Raises:
            UsageError: ``blocked_loop`` on the loop's own thread, which would wait for itself.
        """
        loop = self._running()
        if threading.current_thread() is self._thread:
            message = "satchel.sync was called on its own event loop: await satchel's methods there"
            raise UsageError(message, code="blocked_loop")
        done = asyncio.run_coroutine_threadsafe(work(), loop)
        try:
            return done.result()
        except BaseException:
            # An interrupt of the program ends what it waited for as well.
            done.cancel()
            raise

    def forget(self) -> None:
        """Begins anew: after a fork the thread is not there any more."""
        self._guard = threading.Lock()
        self._loop = self._over = self._thread = None

    def stop(self) -> None:
        """Ends the loop and what runs on it."""
        with self._guard:
            loop, over, thread = self._loop, self._over, self._thread
            self._loop = self._over = self._thread = None
        if loop is not None and over is not None and thread is not None:
            loop.call_soon_threadsafe(over.set)
            thread.join()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._guard:
            if self._loop is None:
                begun = threading.Event()
                self._thread = threading.Thread(
                    target=self._serve, args=(begun,), name="satchel.sync", daemon=True
                )
                self._thread.start()
                begun.wait()
            loop = self._loop
        if loop is None:
            message = "the event loop of satchel.sync has ended"
            raise UsageError(message, code="blocked_loop")
        return loop

    def _serve(self, begun: threading.Event) -> None:
        async def serve() -> None:
            self._over = over = asyncio.Event()
            self._loop = asyncio.get_running_loop()
            begun.set()
            await over.wait()

        # Which cancels what is left, and waits for it.
        asyncio.run(serve())


_LOOP: Final = _Loop()
atexit.register(_LOOP.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_LOOP.forget)


def open_session(
    url: str | SessionStore,
    *,
    session_id: str,
    model: str,
    user_id: str | None = None,
    budget: int | Budget | None = None,
    counter: AnyCounter | None = None,
    policy: str | Policy = "adaptive",
    dialect: str | None = None,
    summarizer: Summarizer | Sequence[Summarizer] | None = None,
    patience: Patience | None = None,
    flushed: Callable[[SummaryPart, Written], Awaitable[None] | None] | None = None,
    redactor: Callable[[str], object] | None = None,
    ttl_s: float | None = None,
) -> Session:
    """A session of a store, to be entered with ``with``; as `satchel.open_session`.

    A ``flushed`` that is a plain function is called in a thread.

    Raises:
        InputError: as `satchel.open_session`.
        UsageError: ``blocked_loop`` on the event loop of this module.
    """

    async def opened() -> waiting.Session:
        return waiting.open_session(
            url,
            session_id=session_id,
            model=model,
            user_id=user_id,
            budget=budget,
            counter=counter,
            policy=policy,
            dialect=dialect,
            summarizer=summarizer,
            patience=patience,
            flushed=None if flushed is None else _awaited(flushed),
            redactor=redactor,
            ttl_s=ttl_s,
        )

    return Session(_LOOP.run(opened))


def _awaited(
    flushed: Callable[[SummaryPart, Written], Awaitable[None] | None],
) -> Callable[[SummaryPart, Written], Awaitable[None]]:
    async def call(part: SummaryPart, written: Written) -> None:
        found = await asyncio.to_thread(flushed, part, written)
        if isawaitable(found):
            await found

    return call


class SessionState:
    """As `satchel.session.SessionState`, blocking."""

    __slots__ = ("_state",)

    def __init__(self, state: waiting.SessionState) -> None:
        self._state: Final = state

    def get(self) -> tuple[Any, int]:
        """As `satchel.session.SessionState.get`."""
        return _LOOP.run(self._state.get)

    def set(self, value: object, *, expected_version: int | None = None) -> int:
        """As `satchel.session.SessionState.set`."""
        return _LOOP.run(lambda: self._state.set(value, expected_version=expected_version))


class Session:
    """As `satchel.Session`, blocking; made by `open_session`, used within ``with``.

    Safe to use from several threads: they wait for one another.
    """

    __slots__ = ("_session",)

    def __init__(self, session: waiting.Session) -> None:
        self._session: Final = session

    def __enter__(self) -> Self:
        """Opens the session.

        Raises:
            StoreError: ``wrong_user`` if it belongs to somebody else; whatever the store says.
        """
        _LOOP.run(self._session.__aenter__)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return repr(self._session).replace("satchel.", "satchel.sync.", 1)

    def close(self) -> None:
        """As `satchel.Session.close`."""
        _LOOP.run(self._session.close)

    @property
    def session_id(self) -> str:
        """Its id."""
        return self._session.session_id

    @property
    def user_id(self) -> str | None:
        """Whose it is."""
        return self._session.user_id

    @property
    def version(self) -> int:
        """The version that this object last saw; for ``expected_version``."""
        return self._session.version

    @property
    def state(self) -> SessionState:
        """A value of the application's, kept with the session."""
        return SessionState(self._session.state)

    @property
    def newest_compaction(self) -> CompactionReport | None:
        """As `satchel.Session.newest_compaction`."""
        return self._session.newest_compaction

    def append(
        self,
        messages: object,
        *,
        ids: Sequence[str | None] | None = None,
        expected_version: int | None = None,
    ) -> int:
        """As `satchel.Session.append`."""
        return _LOOP.run(
            lambda: self._session.append(messages, ids=ids, expected_version=expected_version)
        )

    def record(self, response: object, *, once: bool = True) -> int:
        """As `satchel.Session.record`."""
        return _LOOP.run(lambda: self._session.record(response, once=once))

    def messages(self, limit: int | None = None) -> list[Any]:
        """As `satchel.Session.messages`."""
        return _LOOP.run(lambda: self._session.messages(limit))

    @property
    def dialect(self) -> str:
        """As `satchel.Session.dialect`."""
        return self._session.dialect

    def events(self) -> tuple[Mapping[str, Any], ...]:
        """As `satchel.Session.events`."""
        return _LOOP.run(self._session.events)

    def apply(self, event: Mapping[str, Any]) -> None:
        """As `satchel.Session.apply`."""
        return _LOOP.run(lambda: self._session.apply(event))

    def pin(self, index: int) -> None:
        """As `satchel.Session.pin`."""
        return _LOOP.run(lambda: self._session.pin(index))

    def unpin(self, index: int) -> None:
        """As `satchel.Session.unpin`."""
        return _LOOP.run(lambda: self._session.unpin(index))

    def window(
        self,
        *,
        system: object = UNSET,
        tools: Sequence[Any] | Unset | None = UNSET,
        memories: Iterable[object] = (),
        query: str | None = None,
        stakes: Stakes = "normal",
        open_calls: OpenCalls = "raise",
    ) -> Window:
        """As `satchel.Session.window`."""
        return _LOOP.run(
            lambda: self._session.window(
                system=system,
                tools=tools,
                memories=memories,
                query=query,
                stakes=stakes,
                open_calls=open_calls,
            )
        )

    def observe_overflow(self, error: object) -> Window:
        """As `satchel.Session.observe_overflow`."""
        return _LOOP.run(lambda: self._session.observe_overflow(error))

    def explain(self, index: int | None = None) -> list[StepReport]:
        """As `satchel.Session.explain`."""
        return _LOOP.run(lambda: self._session.explain(index))

    def page_in(
        self, pointer: str, *, pattern: str | None = None, lines: tuple[int, int] | None = None
    ) -> str:
        """As `satchel.Session.page_in`."""
        return _LOOP.run(lambda: self._session.page_in(pointer, pattern=pattern, lines=lines))

    def branch(self, at: int, *, session_id: str | None = None) -> Session:
        """As `satchel.Session.branch`; the branch is to be entered with ``with``."""
        return Session(_LOOP.run(lambda: self._session.branch(at, session_id=session_id)))

    def rewind(self, to: int) -> int:
        """As `satchel.Session.rewind`."""
        return _LOOP.run(lambda: self._session.rewind(to))

    def compact(self, *, force: bool = False, focus: str | None = None) -> CompactionReport:
        """As `satchel.Session.compact`."""
        return _LOOP.run(lambda: self._session.compact(force=force, focus=focus))
