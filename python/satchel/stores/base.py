"""What a session store does: the protocol that every backend follows.

A store keeps the log of a session (an ordered list of entries that only grows at its end), a few
named values beside it, and the pages that were taken out of it. It keeps bytes and numbers and
never looks into a message: what entries mean is the business of `satchel.session`. All of a session
lives and dies together.

Order is a sequence number that the store gives, never a clock. Every write moves the session's
``version`` on; a write that names the version it expects is refused if another writer was faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, Protocol

from satchel._arguments import whole_number
from satchel.errors import InputError, StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

__all__ = [
    "MAX_ID_BYTES",
    "Entry",
    "Lease",
    "SessionInfo",
    "SessionStore",
    "Value",
    "check_id",
    "conflict",
    "not_found",
    "wrong_user",
]

MAX_ID_BYTES: Final = 65_536
"""The longest session or user id, in bytes of UTF-8."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a session's log.

    Attributes:
        kind: ``message`` or ``event``.
        payload: its content, as canonical JSON in UTF-8.
        key: what makes it unique in its session; None for nothing. A second entry with the key of
            one that is there is left out.
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
        token: grows with each lease of the session, so that who is late can be told.
    """

    token: int


class SessionStore(Protocol):
    """A backend.

    Every method is safe to call from many tasks of one event loop, and every write is one
    transaction: all of it or nothing. Whatever the backend does wrong is a `StoreError`
    (``store_unavailable`` where trying again may help), without secrets or message text in it.
    """

    @property
    def is_durable(self) -> bool:
        """Whether what was acknowledged survives the process."""
        ...

    async def open(
        self, session_id: str, *, user_id: str | None = None, ttl_s: float | None = None
    ) -> SessionInfo:
        """The session, made if there is none; ``ttl_s`` sets when all of it goes.

        Every write moves that moment on by ``ttl_s`` again.

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
    ) -> SessionInfo:
        """Adds entries at the end, in order and without others between; known keys are left out.

        Raises:
            StoreError: ``version_conflict`` if ``expected_version`` is not the session's;
                ``session_not_found``.
        """
        ...

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Entry]:
        """Entries behind the sequence number ``after``, in order; at most ``limit``.

        Raises:
            StoreError: ``session_not_found``.
        """
        ...

    async def truncate(
        self, session_id: str, length: int, *, expected_version: int | None = None
    ) -> SessionInfo:
        """Cuts the log to its first ``length`` entries; pages stay.

        Raises:
            StoreError: as in `append`.
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

        Raises:
            StoreError: ``session_exists`` for a ``target_id`` that is there;
                ``session_not_found``; ``wrong_user``.
        """
        ...

    async def get_value(self, session_id: str, name: str) -> Value | None:
        """A named value; None if it was never written."""
        ...

    async def put_value(
        self,
        session_id: str,
        name: str,
        payload: bytes,
        *,
        expected_version: int | None = None,
    ) -> int:
        """Writes a named value and returns its new version; 0 is expected of a first write.

        Raises:
            StoreError: ``version_conflict``; ``session_not_found``.
        """
        ...

    async def put_pages(self, session_id: str, pages: Mapping[str, bytes]) -> None:
        """Keeps pages by pointer; one that is there already stays as it is.

        Raises:
            StoreError: ``session_not_found``.
        """
        ...

    async def get_page(self, session_id: str, pointer: str) -> bytes | None:
        """A page of this session; None if it has none with this pointer."""
        ...

    async def list_sessions(
        self, *, user_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[SessionInfo]:
        """Sessions of a user (None: of anybody) by id, those behind ``after``."""
        ...

    async def delete(self, session_id: str) -> bool:
        """Removes all of a session; whether there was one."""
        ...

    def lease(
        self, session_id: str, *, ttl_s: float = 30.0, timeout_s: float = 30.0
    ) -> AbstractAsyncContextManager[Lease]:
        """Waits up to ``timeout_s`` until nobody else has the session's lease, and holds it.

        It ends with the block, or ``ttl_s`` after it began where its holder died.

        Raises:
            StoreError: ``lease_timeout``.
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


def checked_limit(limit: object) -> int | None:
    """The limit, if it is one: None for all, 0 for none.

    Raises:
        InputError: ``invalid_value`` below 0 or for another type.
    """
    return None if limit is None else whole_number("limit", limit)
