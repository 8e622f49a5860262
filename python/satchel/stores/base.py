"""What a session store does: the protocol that every backend follows.

A store keeps the log of a session (an ordered list of entries that only grows at its end), a few
named values beside it, and the pages that were taken out of it. It keeps bytes and numbers and
never looks into a message: what entries mean is the business of `satchel.session`. All of a session
lives and dies together.

Order is a sequence number that the store gives, never a clock. Every write of the log moves the
session's ``version`` on; a write that names the version it expects is refused if another writer was
faster. Whoever wants to keep others out for longer takes the session's lease and names it in his
writes: they are refused once it is no longer his.

`satchel.testing.store_conformance` is this page as tests.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, cast

from satchel._arguments import fraction, name_of_type, shown, whole_number
from satchel.errors import InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import (
        AsyncGenerator,
        Awaitable,
        Callable,
        Coroutine,
        Iterable,
        Sequence,
    )
    from contextlib import AbstractAsyncContextManager

__all__ = [
    "CHECKPOINT",
    "MAX_ID_BYTES",
    "Entry",
    "Lease",
    "SessionInfo",
    "SessionStore",
    "Value",
    "check_id",
    "check_payload",
    "checked_entries",
    "checked_life",
    "checked_limit",
    "checked_pages",
    "checked_version",
    "checked_wait",
    "conflict",
    "exists",
    "fresh_entries",
    "held_lease",
    "lease_lost",
    "not_found",
    "sought",
    "wrong_user",
]

MAX_ID_BYTES: Final = 65_536
"""The longest id (of a session or user; a key, a name, a pointer), in bytes of UTF-8."""

_LONGEST_LIFE_S: Final = 1e10
"""About three centuries: all clocks can say a moment that far away."""

_BEATS: Final = 3
"""How often a lease is renewed in the time for which it was taken."""

_GRACE_S: Final = 1.0
"""How long a task that was cancelled waits to learn whether it got the lease."""

_FIRST_WAIT_S: Final = 0.002
_LONGEST_WAIT_S: Final = 0.1

CHECKPOINT: Final = "satchel.checkpoint"
"""The value that sessions keep for themselves; derived from the log, and no part of an export."""


class Entry(NamedTuple):
    """One line of a session's log; a tuple, since thousands are made when a session is opened.

    Attributes:
        kind: ``message`` or ``event``.
        payload: its content, as canonical JSON in UTF-8.
        key: what makes it unique in its session; None for nothing. A second entry with the key of
            one that is there is left out. Any text that `check_id` takes.
        sequence: its place in the log, from 1; 0 before the store has given one.
    """

    kind: Literal["message", "event"]
    payload: bytes
    key: str | None = None
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A stored session.

    Attributes:
        session_id: its id.
        user_id: whom it belongs to; None for nobody.
        version: grows with every write of its log.
        length: entries in its log.
        created_at: when it was made, in seconds since 1970.
        changed_at: when its log was written last, likewise.
        expires_at: when all of it goes, likewise; None for never.
        parent: the session that it was branched from, if any.
    """

    session_id: str
    user_id: str | None
    version: int
    length: int
    created_at: float
    changed_at: float
    expires_at: float | None = None
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Value:
    """A named value of a session.

    Attributes:
        payload: its content.
        version: how many times it was written.
    """

    payload: bytes
    version: int


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write a session for a while.

    Attributes:
        token: greater than that of every lease before, also of the session's former lives.
    """

    token: int


class SessionStore(Protocol):
    """A backend.

    Every method is safe to call from many tasks of one event loop and never blocks it, and every
    write is one transaction: all of it or nothing, also where its task is cancelled. Ids, keys,
    names and pointers are any text that `check_id` takes, compared byte by byte. What a method says
    about a session that is not there, or whose time is over, is ``session_not_found``.

    Whatever the backend does wrong is a `StoreError` without secrets or message text:

    ======================  =======================================================================
    ``store_unavailable``   it cannot be reached or is too busy; trying again may help
    ``store_full``          no room; nothing of this write was kept, all before it was
    ``store_read_only``     it can be read, not written
    ``store_corrupt``       what is there was damaged, or is not a store of ours
    ``corrupt_entry``       one entry, value or page was damaged; the others can be read
    ``schema_newer``        a newer satchel wrote it: use that one
    ``schema_unknown``      its schema is none that this satchel can bring up to date
    ``store_refused``       the server does not let this user in, or not do this
    ``store_closed``        it was closed
    ======================  =======================================================================
    """

    @property
    def is_durable(self) -> bool:
        """Whether what was acknowledged survives the process."""
        ...

    async def open(
        self, session_id: str, *, user_id: str | None = None, ttl_s: float | None = None
    ) -> SessionInfo:
        """The session, made if there is none; ``ttl_s`` sets when all of it goes.

        Every write, of a value or page too, and every `open` moves that moment on by ``ttl_s``
        again; None leaves what an earlier `open` said. When it has come, the session is as if it
        had been deleted: log, keys, values, pages and lease.

        Raises:
            StoreError: ``wrong_user`` if it belongs to somebody else.
        """
        ...

    async def info(self, session_id: str) -> SessionInfo:
        """How the session stands.

        Raises:
            StoreError: ``session_not_found``.
        """
        ...

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """Adds entries at the end, in order and without others between; known keys are left out.

        Each entry that is added moves the version on by one; none, and nothing changes.

        Raises:
            StoreError: ``version_conflict`` if ``expected_version`` is not the session's;
                ``lease_lost`` if ``lease`` is no longer the session's; ``session_not_found``.
        """
        ...

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Entry]:
        """Entries behind the sequence number ``after``, in order; at most ``limit``.

        Sequence numbers are 1, 2, 3 ... without gaps.

        Raises:
            StoreError: ``session_not_found``; ``corrupt_entry``.
            InputError: ``invalid_value`` for numbers below 0.
        """
        ...

    async def truncate(
        self,
        session_id: str,
        length: int,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """Cuts the log to its first ``length`` entries; pages and values stay.

        That moves the version on by one, if anything was cut. Keys of what was cut are free again.

        Raises:
            StoreError: as in `append`.
            InputError: ``invalid_value`` for a length below 0.
        """
        ...

    async def branch(
        self,
        session_id: str,
        target_id: str,
        *,
        length: int,
        user_id: str | None = None,
    ) -> SessionInfo:
        """A new session with the first ``length`` entries of this one, and its pages.

        It has no values, lives as long as this one would (its ``ttl_s``), and does not need it.

        Raises:
            StoreError: ``session_exists`` for a ``target_id`` that is there;
                ``session_not_found``; ``wrong_user``.
        """
        ...

    async def get_value(self, session_id: str, name: str) -> Value | None:
        """A named value; None if it was never written.

        Raises:
            StoreError: ``session_not_found``.
        """
        ...

    async def put_value(
        self,
        session_id: str,
        name: str,
        payload: bytes,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """Writes a named value and returns its new version; 0 is expected of a first write.

        The version of the session stays.

        Raises:
            StoreError: ``version_conflict`` about the value's version; ``lease_lost``;
                ``session_not_found``.
        """
        ...

    async def value_names(self, session_id: str) -> list[str]:
        """The names of the session's values, sorted.

        Raises:
            StoreError: ``session_not_found``.
        """
        ...

    async def put_pages(self, session_id: str, pages: Mapping[str, bytes]) -> None:
        """Keeps pages by pointer; one that is there already stays as it is.

        Raises:
            StoreError: ``session_not_found``.
        """
        ...

    async def get_page(self, session_id: str, pointer: str) -> bytes | None:
        """A page of this session; None if it has none with this pointer.

        Raises:
            StoreError: ``session_not_found``.
        """
        ...

    async def page_pointers(self, session_id: str) -> list[str]:
        """The pointers of the session's pages, sorted.

        Raises:
            StoreError: ``session_not_found``.
        """
        ...

    async def list_sessions(
        self, *, user_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[SessionInfo]:
        """Sessions of a user (None: of anybody) by id, those behind ``after``; at most ``limit``.

        The order is that of the ids' code points, which is that of their UTF-8 too.
        """
        ...

    async def delete(self, session_id: str) -> bool:
        """Removes all of a session; whether there was one."""
        ...

    def lease(
        self,
        session_id: str,
        *,
        ttl_s: float = 30.0,
        timeout_s: float = 30.0,
        renew: bool = True,
    ) -> AbstractAsyncContextManager[Lease]:
        """Waits up to ``timeout_s`` until nobody else has the session's lease, and holds it.

        It ends with the block. Until then it is renewed several times in every ``ttl_s`` while the
        event loop runs; with ``renew=False`` it ends ``ttl_s`` after it began. So a holder that
        died, or hangs, keeps nobody out for longer than that, and one that lost his lease is
        refused (``lease_lost``) if he names it in his writes. Writes that name no lease are not
        held up.

        Raises:
            StoreError: ``lease_timeout``; ``session_not_found``.
            InputError: ``invalid_value`` for a ``ttl_s`` that is not above 0, or a
                ``timeout_s`` below it.
        """
        ...

    async def close(self) -> None:
        """Ends all connections. Closing twice does no harm."""
        ...


def check_id(name: str, value: object) -> str:
    """The id, if it is one.

    Any text will do: ids are compared byte by byte, and nothing in them is a separator or pattern.

    Raises:
        InputError: ``invalid_value`` for another type, an empty or overlong id, or one that is no
            valid Unicode.
    """
    if not isinstance(value, str):
        message = f"{name} must be a str, not {type(value).__name__}"
        raise InputError(message, code="invalid_value")
    try:
        size = len(value.encode())
    except UnicodeEncodeError as error:
        message = f"{name} has a lone surrogate at {error.start}"
        raise InputError(message, code="invalid_value") from None
    if not 1 <= size <= MAX_ID_BYTES:
        message = f"{name} has {size} bytes, must have 1 to {MAX_ID_BYTES}"
        raise InputError(message, code="invalid_value", value=size, limit=MAX_ID_BYTES)
    return value


def check_payload(payload: object) -> bytes:
    """The content of an entry, value or page, if it is one.

    Raises:
        InputError: ``invalid_value`` for anything but bytes.
    """
    if not isinstance(payload, bytes):
        message = f"a payload must be bytes, not {type(payload).__name__}"
        raise InputError(message, code="invalid_value")
    return payload


def checked_entries(entries: Iterable[Entry]) -> list[Entry]:
    """The entries, if all of them can be stored.

    Raises:
        InputError: ``invalid_value``.
    """
    found = list(entries)
    for entry in found:
        if not isinstance(cast("object", entry), Entry):
            message = f"an entry must be an Entry, not {name_of_type(entry)}"
            raise InputError(message, code="invalid_value")
        if entry.kind not in {"message", "event"}:
            message = "the kind of an entry must be message or event"
            raise InputError(message, code="invalid_value")
        check_payload(entry.payload)
        if entry.key is not None:
            check_id("the key of an entry", entry.key)
    return found


def fresh_entries(entries: Iterable[Entry], known: set[str]) -> list[Entry]:
    """The entries whose keys are neither in ``known`` nor on an entry before them."""
    found: list[Entry] = []
    for entry in entries:
        if entry.key is not None:
            if entry.key in known:
                continue
            known.add(entry.key)
        found.append(entry)
    return found


def conflict(version: int, expected: int) -> StoreError:
    """The error of a write that came too late."""
    message = (
        f"the session is at version {version}, {expected} was expected: "
        "somebody else wrote it; read what is new and try again"
    )
    return StoreError(message, code="version_conflict", value=version, limit=expected)


def not_found() -> StoreError:
    """The error of a session that is not there."""
    return StoreError("there is no such session", code="session_not_found")


def wrong_user() -> StoreError:
    """The error of somebody else's session."""
    return StoreError("the session belongs to another user", code="wrong_user")


def exists() -> StoreError:
    """The error of a branch under an id that is taken."""
    return StoreError("there is a session with the id of the branch", code="session_exists")


def lease_lost() -> StoreError:
    """The error of a write under a lease that ended or that somebody else has."""
    message = "the lease of the session ended; take it again and read what is new"
    return StoreError(message, code="lease_lost")


@asynccontextmanager
async def held_lease(
    take: Callable[[], Awaitable[Lease | None]],
    keep: Callable[[Lease], Awaitable[bool]],
    leave: Callable[[Lease], Awaitable[object]],
    *,
    ttl_s: float,
    timeout_s: float,
    renew: bool,
) -> AsyncGenerator[Lease]:
    """Holds a lease for the length of a block; what `SessionStore.lease` of a backend is made of.

    Args:
        take: takes the lease; None while another has it.
        keep: puts its end off by ``ttl_s``; False if it is no longer this one's.
        leave: gives it back, if it is still this one's.
        ttl_s: seconds for which it is taken.
        timeout_s: seconds to wait for it.
        renew: whether it is renewed while the block runs.

    Raises:
        StoreError: ``lease_timeout``; whatever ``take`` says.
    """
    lease = await _wait_for_lease(take, leave, timeout_s)
    beating = asyncio.create_task(_beat(lease, keep, ttl_s)) if renew else None
    try:
        yield lease
    finally:
        await _lasting(_given_back(lease, leave, beating))


async def _given_back(
    lease: Lease, leave: Callable[[Lease], Awaitable[object]], beating: asyncio.Task[None] | None
) -> None:
    if beating is not None:
        beating.cancel()
        await asyncio.wait([beating])
    # Where that fails, the lease ends by itself, and what the block raised is what counts.
    with suppress(StoreError):
        await leave(lease)


_LASTING: Final[set[asyncio.Task[None]]] = set()
"""Tasks that nobody may wait for any more, and that are to be done all the same."""


async def _lasting(work: Coroutine[Any, Any, None]) -> None:
    """Waits for work that goes on where the waiting is cancelled."""
    task = asyncio.create_task(work)
    _LASTING.add(task)
    task.add_done_callback(_LASTING.discard)
    await asyncio.shield(task)


async def _beat(lease: Lease, keep: Callable[[Lease], Awaitable[bool]], ttl_s: float) -> None:
    """Renews a lease until it is lost; a store that is away for a while is asked again."""
    while True:
        await asyncio.sleep(ttl_s / _BEATS)
        try:
            if not await keep(lease):
                return
        except StoreError as error:
            if error.code != "store_unavailable":
                return


async def _wait_for_lease(
    take: Callable[[], Awaitable[Lease | None]],
    leave: Callable[[Lease], Awaitable[object]],
    timeout_s: float,
) -> Lease:
    """Asks again and again, ever more slowly, until there is a lease.

    Raises:
        StoreError: ``lease_timeout`` after ``timeout_s``.
    """
    ends = time.monotonic() + timeout_s
    wait = _FIRST_WAIT_S
    while True:
        taking = asyncio.ensure_future(take())
        try:
            lease = await asyncio.shield(taking)
        except asyncio.CancelledError:
            # It may have been given all the same: nobody would give it back.
            await _lasting(_taken_back(taking, leave))
            raise
        if lease is not None:
            return lease
        left = ends - time.monotonic()
        if left <= 0:
            message = f"another held the session's lease for more than {timeout_s:g} s"
            raise StoreError(message, code="lease_timeout")
        await asyncio.sleep(min(wait, left))
        wait = min(2 * wait, _LONGEST_WAIT_S)


async def _taken_back(
    taking: asyncio.Future[Lease | None], leave: Callable[[Lease], Awaitable[object]]
) -> None:
    await asyncio.wait([taking], timeout=_GRACE_S)
    if not taking.done():
        taking.cancel()
    elif not taking.cancelled() and taking.exception() is None:
        given = taking.result()
        if given is not None:
            with suppress(StoreError):
                await leave(given)


def checked_limit(limit: object) -> int | None:
    """The limit, if it is one: None for all, 0 for none.

    Raises:
        InputError: ``invalid_value`` below 0 or for another type.
    """
    return None if limit is None else whole_number("limit", limit)


def checked_life(name: str, value: object) -> float:
    """A number of seconds that something lives.

    Raises:
        InputError: ``invalid_value`` unless it is above 0 and at most 10,000,000,000.
    """
    seconds = fraction(name, value)
    if not 0 < seconds <= _LONGEST_LIFE_S:
        message = f"{name} is {seconds:g}, must be above 0 and at most {_LONGEST_LIFE_S:.0f}"
        raise InputError(message, code="invalid_value")
    return seconds


def checked_wait(name: str, value: object) -> float:
    """A number of seconds to wait.

    Raises:
        InputError: ``invalid_value`` below 0.
    """
    seconds = fraction(name, value)
    if math.isnan(seconds) or seconds < 0:
        message = f"{name} is {seconds:g}, must be at least 0"
        raise InputError(message, code="invalid_value")
    return seconds


def checked_version(value: object) -> int | None:
    """A version that is expected: None for any.

    Raises:
        InputError: ``invalid_value`` below 0 or for another type.
    """
    return None if value is None else whole_number("expected_version", value, most=2**62)


def checked_pages(pages: object) -> dict[str, bytes]:
    """Pages by pointer, if all of them can be stored.

    Raises:
        InputError: ``invalid_value``.
    """
    if not isinstance(pages, Mapping):
        message = f"pages must be a mapping, not {name_of_type(pages)}"
        raise InputError(message, code="invalid_value")
    given = cast("Mapping[object, object]", pages)
    return {check_id("pointer", name): check_payload(page) for name, page in given.items()}


def sought(name: str, value: object) -> str:
    """What is looked for: any str, also one that nothing can be stored under.

    Raises:
        InputError: ``invalid_value`` for another type.
    """
    if not isinstance(value, str):
        message = f"{name} must be a str, not {shown(value)}"
        raise InputError(message, code="invalid_value")
    return value
