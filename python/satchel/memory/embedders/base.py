"""What turns texts into vectors: the protocol, and what every caller of one checks."""

from __future__ import annotations

import asyncio
import inspect
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol, cast, runtime_checkable

import numpy as np

from satchel._arguments import invalid, name_of_type, plain_text, whole_number
from satchel.errors import EmbeddingError, SatchelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from numpy.typing import NDArray

__all__ = ["CachedEmbedder", "CallableEmbedder", "Embedder", "Vectors", "word_vectors_of"]

Vectors = Any
"""What an embedder gives: rows of numbers, as an array or as lists."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors of one length."""

    @property
    def name(self) -> str:
        """Model and everything else that makes its vectors incomparable with others'."""
        ...

    @property
    def dimension(self) -> int | None:
        """Length of a vector; None if that is known only after the first."""
        ...

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """A vector for each text, in order.

        Raises:
            EmbeddingError: the provider refused, or cannot be reached.
        """
        ...


class CallableEmbedder:
    """An embedder around a function, which may be a coroutine function.

    Args:
        function: list of texts -> a vector for each.
        name: what is recorded with the vectors; change it whenever the function changes.
        dimension: length of a vector; None to learn it from the first.
    """

    def __init__(
        self,
        function: Callable[[list[str]], Vectors | Awaitable[Vectors]],
        *,
        name: str,
        dimension: int | None = None,
    ) -> None:
        if not callable(cast("object", function)):
            message = f"an embedding function must be callable, not {name_of_type(function)}"
            raise invalid(message)
        self._function: Final = function
        self._name: Final = plain_text("name", name)
        self._dimension: Final = (
            None if dimension is None else whole_number("dimension", dimension, least=1)
        )

    @property
    def name(self) -> str:
        """See `Embedder.name`."""
        return self._name

    @property
    def dimension(self) -> int | None:
        """See `Embedder.dimension`."""
        return self._dimension

    async def embed(self, texts: Sequence[str], /) -> Vectors:
        """See `Embedder.embed`; a plain function runs in a thread."""
        if inspect.iscoroutinefunction(self._function):
            return await self._function(list(texts))
        found = await asyncio.to_thread(self._function, list(texts))
        return await found if inspect.isawaitable(found) else found


class CachedEmbedder:
    """Asks an embedder in batches, once for each text, and checks what it gives.

    Args:
        inner: who is asked.
        batch_size: most texts of one request.
        most_cached: vectors that are kept, the last used.
    """

    def __init__(self, inner: Embedder, *, batch_size: int = 256, most_cached: int = 4_096) -> None:
        self.inner: Final = inner
        self._batch_size: Final = whole_number("batch_size", batch_size, least=1)
        self._most_cached: Final = whole_number("most_cached", most_cached)
        self._cache: Final[dict[bytes, NDArray[np.float32]]] = {}
        self._dimension: int | None = inner.dimension

    @property
    def name(self) -> str:
        """See `Embedder.name`."""
        return self.inner.name

    @property
    def dimension(self) -> int | None:
        """See `Embedder.dimension`."""
        return self._dimension

    def clear(self) -> None:
        """Forgets all vectors."""
        self._cache.clear()

    async def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """Vectors of length 1 (of length 0 where there is nothing to say), ``(n, d)`` float32.

        Raises:
            EmbeddingError: ``embedding_failed`` if the embedder raises or gives something else than
                one finite vector of its dimension for each text; what it raises of satchel's own
                comes out as it is.
        """
        keys = [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        found = {key: self._cache[key] for key in keys if key in self._cache}
        wanted = list(dict.fromkeys(key for key in keys if key not in found))
        text_of = dict(zip(keys, texts, strict=True))
        for start in range(0, len(wanted), self._batch_size):
            batch = wanted[start : start + self._batch_size]
            rows = await self._asked([text_of[key] for key in batch])
            found.update(zip(batch, rows, strict=True))
        self._keep(found)
        if not keys:
            return np.zeros((0, self._dimension or 0), np.float32)
        return np.stack([found[key] for key in keys])

    async def _asked(self, texts: list[str]) -> NDArray[np.float32]:
        try:
            given = await self.inner.embed(texts)
            rows = np.asarray(given, np.float32)
        except SatchelError:
            raise
        except Exception as error:
            message = f"the embedder {self.name!r} failed: {name_of_type(error)}"
            raise EmbeddingError(message, code="embedding_failed") from error
        wanted = (len(texts), self._dimension or (rows.shape[-1] if rows.ndim else 0))
        if rows.shape != wanted or not wanted[1]:
            message = f"the embedder {self.name!r} gave {rows.shape}, {wanted} was expected"
            raise EmbeddingError(message, code="embedding_failed")
        if not np.isfinite(rows).all():
            message = f"the embedder {self.name!r} gave numbers that are not finite"
            raise EmbeddingError(message, code="embedding_failed")
        self._dimension = wanted[1]
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: NDArray[np.float32] = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
        return unit

    def _keep(self, found: dict[bytes, NDArray[np.float32]]) -> None:
        for key, row in found.items():
            self._cache.pop(key, None)
            self._cache[key] = row
        for key in list(self._cache)[: max(0, len(self._cache) - self._most_cached)]:
            del self._cache[key]


def word_vectors_of(embedder: CachedEmbedder, words: Sequence[str]) -> NDArray[np.float32] | None:
    """Vectors of single words, ``(n, d)``, if the embedder knows them; else None.

    An embedder that does has a method ``word_vectors(words)``, and the vector of a text is then in
    the direction of the sum of its words'.
    """
    known: Any = getattr(embedder.inner, "word_vectors", None)
    if known is None:
        return None
    return np.asarray(known(list(words)), np.float32)
