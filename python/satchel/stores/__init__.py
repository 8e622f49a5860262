"""Where sessions are kept: one protocol, and the backends behind a URL.

==================================  =================================================
``memory://`` or ``memory://name``  this process, shared by everybody who names it
``sqlite:///file.db``               a file (four slashes for an absolute path)
``postgresql://user@host/db``       PostgreSQL (extra ``postgres``)
``redis://host:6379/0``             Redis or Valkey (extra ``redis``)
==================================  =================================================
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from satchel.errors import InputError
from satchel.stores.base import Entry, Lease, SessionInfo, SessionStore, Value
from satchel.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "Entry",
    "Lease",
    "MemoryStore",
    "SessionInfo",
    "SessionStore",
    "Value",
    "open_store",
]

_IN_MEMORY: Final[dict[str, MemoryStore]] = {}


def open_store(url: str) -> SessionStore:
    """The store behind a URL; nothing is connected before it is used.

    Raises:
        InputError: ``unknown_store`` for a URL of another kind, ``missing_extra`` where the package
            for it is not installed.
    """
    scheme = urlsplit(url).scheme if isinstance(url, str) else ""
    make = _BACKENDS.get(scheme)
    if make is None:
        # The URL may hold a password, so only its scheme is repeated.
        message = f"no store for {scheme[:32]!r} URLs; there are {', '.join(_BACKENDS)}"
        raise InputError(message, code="unknown_store")
    return make(url)


def _memory(url: str) -> SessionStore:
    return _IN_MEMORY.setdefault(urlsplit(url).netloc, MemoryStore())


def _sqlite(url: str) -> SessionStore:
    # Imported here: whoever keeps sessions elsewhere does not load SQLite.
    from satchel.stores.sqlite import SQLiteStore  # noqa: PLC0415 - as said above

    return SQLiteStore.from_url(url)


def _postgres(url: str) -> SessionStore:
    try:
        from satchel.stores.postgres import PostgresStore  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise _missing(extra="postgres") from error
    return PostgresStore(url)


def _redis(url: str) -> SessionStore:
    try:
        from satchel.stores.redis import RedisStore  # noqa: PLC0415 - an optional package
    except ImportError as error:
        raise _missing(extra="redis") from error
    return RedisStore(url)


def _missing(*, extra: str) -> InputError:
    message = f"sessions in {extra} need a package: install satchel[{extra}]"
    return InputError(message, code="missing_extra")


_BACKENDS: Final[dict[str, Callable[[str], SessionStore]]] = {
    "memory": _memory,
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
    "redis": _redis,
    "rediss": _redis,
    "valkey": _redis,
    "valkeys": _redis,
}
