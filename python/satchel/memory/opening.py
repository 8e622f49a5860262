"""The memory behind a URL."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from satchel._arguments import invalid, name_of_type
from satchel.errors import InputError
from satchel.memory.embedders.base import CachedEmbedder, Embedder
from satchel.memory.store import Memory
from satchel.memory.volatile import VolatileBackend

if TYPE_CHECKING:
    from collections.abc import Callable

    from satchel.counting import AnyCounter
    from satchel.memory.backend import MemoryBackend
    from satchel.memory.ranking import Ranking

__all__ = ["embedder_of", "open_memory"]

_IN_MEMORY: Final[dict[str, VolatileBackend]] = {}


def open_memory(
    url: str,
    *,
    embedder: Embedder | str | None = None,
    redactor: object = ...,
    counter: AnyCounter | None = None,
    ranking: Ranking | None = None,
    clock: Callable[[], float] | None = None,
) -> Memory:
    """A long-term memory, to be entered with ``async with``.

    ==================================  =================================================
    ``memory://`` or ``memory://name``  this process; a name is shared by all who name it
    ``sqlite:///file.db``               a file (four slashes for an absolute path)
    ``postgresql://user@host/db``       PostgreSQL with pgvector (extra ``postgres``)
    ==================================  =================================================

    Args:
        url: where memories are kept.
        embedder: what gives texts their meaning; None for the local one if its package (extra
            ``embeddings``) is there, else for words alone; ``"none"`` for words alone.
        redactor: what masks secrets and personal numbers before anything is written: a function of
            a text; ``...`` for `satchel.redact`, None for nothing.
        counter: counts token budgets; None for ``o200k_base``.
        ranking: weights of the ranking.
        clock: gives the time in seconds since 1970; None for the machine's.

    Raises:
        InputError: ``unknown_store``, ``unsupported_store`` for Redis, ``missing_extra``,
            ``invalid_value``.
    """
    backend = _backend_of(url)
    options: dict[str, Any] = {} if clock is None else {"clock": clock}
    return Memory(
        backend,
        embedder=embedder_of(embedder),
        redactor=redactor,
        counter=counter,
        ranking=ranking,
        **options,
    )


def _backend_of(url: object) -> MemoryBackend:
    parts = urlsplit(url) if isinstance(url, str) else urlsplit("")
    if parts.scheme == "memory":
        if not parts.netloc:
            return VolatileBackend()
        return _IN_MEMORY.setdefault(parts.netloc, VolatileBackend())
    if parts.scheme == "sqlite":
        from satchel.memory.sqlite import SqliteMemories  # noqa: PLC0415 - only who uses it pays

        path = unquote(parts.path[1:])
        if parts.netloc or not path:
            message = "a SQLite URL has three slashes and a path: sqlite:///agent.db"
            raise InputError(message, code="unknown_store")
        return SqliteMemories(path)
    if parts.scheme in {"postgresql", "postgres"}:
        from satchel.memory.postgres import PostgresMemories  # noqa: PLC0415 - likewise

        return PostgresMemories(str(url))
    if parts.scheme in {"redis", "rediss", "valkey"}:
        message = (
            "Redis keeps sessions, not memories: open memories with "
            "sqlite:///file.db or postgresql://..."
        )
        raise InputError(message, code="unsupported_store")
    # The URL may hold a password, so only its scheme is repeated.
    message = f"no memory for {parts.scheme[:32]!r} URLs; there are memory, sqlite, postgresql"
    raise InputError(message, code="unknown_store")


def embedder_of(given: object) -> CachedEmbedder | None:
    """The embedder that a caller means; errors as in `open_memory`."""
    if given == "none":
        return None
    if given is None:
        from satchel.memory.embedders.wordllama import WordLlamaEmbedder  # noqa: PLC0415 - optional

        try:
            return CachedEmbedder(WordLlamaEmbedder())
        except InputError:
            return None
    if isinstance(given, CachedEmbedder):
        return given
    if not isinstance(given, Embedder):
        message = f"an embedder needs name, dimension and embed(texts), not {name_of_type(given)}"
        raise invalid(message)
    return CachedEmbedder(given)
