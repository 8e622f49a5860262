"""LangGraph's store over the backends of satchel's memory: one URL for both.

Items lie under a namespace of their own, so that no recall of a memory meets them. A batch reads
first and writes then, all of its puts in one transaction. Search by meaning is exact: every item of
the prefix that passes the filter is compared, and a page follows where the page before ended.
"""

# Parts of the package that are not its public face.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import base64
import copy
import hashlib
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Self, cast

import numpy as np
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    PutOp,
    SearchItem,
    SearchOp,
    TTLConfig,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
)

from satchel._arguments import fraction, invalid, name_of_type, shown, whole_number
from satchel.errors import EmbeddingError
from satchel.langgraph.store_matching import matches, passes
from satchel.memory.backend import Draft, Filter, Scope, Selection
from satchel.memory.item import MemoryItem
from satchel.memory.opening import _backend_of
from satchel.stores.base import check_id
from satchel.stores.codec import encode, plain
from satchel.sync import _LOOP

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable, Sequence
    from types import TracebackType

    from langgraph.store.base import Op, Result

    from satchel.memory.backend import MemoryBackend

    Place = tuple[tuple[str, ...], str]

__all__ = ["MemoryStore"]

_ROOT: Final = "langgraph.store"
"""The first segment of all namespaces; no label of LangGraph's has a full stop."""

_PAGE: Final = 500
_MINUTE_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class _Found:
    """An item with what only this store knows of it."""

    item: MemoryItem
    number: int

    @property
    def namespace(self) -> tuple[str, ...]:
        return self.item.namespace[1:]

    @property
    def key(self) -> str:
        return cast("str", self.item.metadata["key"])

    @property
    def value(self) -> dict[str, Any]:
        return cast("dict[str, Any]", self.item.metadata["value"])

    @property
    def minutes(self) -> float | None:
        return cast("float | None", self.item.metadata.get("ttl"))

    def fields(self) -> dict[str, Any]:
        """The arguments of LangGraph's items; the value is the caller's own."""
        return {
            "namespace": self.namespace,
            "key": self.key,
            "value": copy.deepcopy(self.value),
            "created_at": datetime.fromtimestamp(self.item.created_at, UTC),
            "updated_at": datetime.fromtimestamp(self.item.metadata["updated"], UTC),
        }

    def vectors(self) -> list[list[float]]:
        """What its texts mean."""
        packed = cast("dict[str, str]", self.item.metadata.get("vectors") or {})
        return [np.frombuffer(base64.b64decode(one), "<f4").tolist() for one in packed.values()]


class MemoryStore(BaseStore):
    """LangGraph's long-term store over ``memory://``, ``sqlite:///`` or ``postgresql://``.

    Works in ``graph.compile(store=...)`` and ``create_agent(store=...)``, from threads and from any
    event loop; ``with`` or ``async with`` closes it. Expired items are never shown, swept or not;
    reading one sets its time anew, as LangGraph has it.

    Args:
        url: as for `satchel.open_memory`; or a backend of satchel's memory.
        index: what gives texts their meaning, as for LangGraph's own stores: ``embed``, ``fields``.
            Without it ``query`` is not looked at, and no item has a score.
        ttl: as for LangGraph's own stores: ``default_ttl`` in minutes, ``refresh_on_read``.
        clock: gives the time in seconds since 1970; None for the machine's.

    Raises:
        InputError: as `satchel.open_memory`; ``invalid_value``.
    """

    __slots__ = ("_backend", "_clock", "_embeddings", "_fields", "_writing", "ttl_config")

    supports_ttl = True

    def __init__(
        self,
        url: str | MemoryBackend = "memory://",
        *,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        for name, given in (("index", index), ("ttl", ttl)):
            if given is not None and not isinstance(cast("object", given), Mapping):
                message = f"{name} must be a dict, not {name_of_type(given)}"
                raise invalid(message)
        if clock is not None and not callable(clock):
            message = f"clock must be callable, not {name_of_type(clock)}"
            raise invalid(message)
        is_backend = not isinstance(url, str) and hasattr(url, "candidates")
        self._backend: Final[MemoryBackend] = (
            cast("MemoryBackend", url) if is_backend else _backend_of(url)
        )
        self._embeddings: Any = None if index is None else ensure_embeddings(index.get("embed"))
        self._fields: Final = list((index or {}).get("fields") or ["$"])
        _minutes("default_ttl", (ttl or {}).get("default_ttl"))
        self.ttl_config: TTLConfig | None = ttl
        self._clock: Final = time.time if clock is None else clock
        self._writing: tuple[asyncio.AbstractEventLoop, asyncio.Lock] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def close(self) -> None:
        """Ends all connections; what is kept stays."""
        _LOOP.run(self._backend.close)

    async def aclose(self) -> None:
        """As `close`."""
        await asyncio.to_thread(self.close)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Does all reads, then all writes; results in the order of the operations.

        Raises:
            InputError: ``invalid_value`` for a label, key, value or time that cannot be kept.
            StoreError: whatever the backend says; nothing was written then.
            EmbeddingError: the embedder failed, or gave no vectors of finite numbers; likewise.
        """
        given = list(ops)
        return _LOOP.run(lambda: self._batch(given))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As `batch`, off the event loop."""
        given = list(ops)
        return await asyncio.to_thread(_LOOP.run, lambda: self._batch(given))

    def sweep_ttl(self) -> int:
        """Removes what has expired; how many items. They are not shown before either."""
        return _LOOP.run(self._sweep)

    async def asweep_ttl(self) -> int:
        """As `sweep_ttl`."""
        return await asyncio.to_thread(self.sweep_ttl)

    # --- reading ----------------------------------------------------------------------------------

    async def _batch(self, ops: Sequence[Op]) -> list[Result]:
        writing = self._lock()
        puts: dict[Place, PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                puts[_place(op.namespace, op.key)] = op
                if op.value is not None and not isinstance(cast("object", op.value), Mapping):
                    message = f"a value must be a mapping, not {name_of_type(op.value)}"
                    raise invalid(message)
                _minutes("ttl", op.ttl)
            elif not isinstance(cast("object", op), (GetOp, SearchOp, ListNamespacesOp)):
                message = f"an operation of this store is needed, not {name_of_type(op)}"
                raise invalid(message)
        # What is read and written again must not change in between.
        async with writing:
            results, read = await self._read(ops)
            await self._refresh([one for one in read.values() if one.item.id not in _ids(puts)])
            await self._write(puts)
        return results

    def _lock(self) -> asyncio.Lock:
        """What a batch holds; made anew on another loop, as after a fork."""
        loop = asyncio.get_running_loop()
        if self._writing is None or self._writing[0] is not loop:
            self._writing = (loop, asyncio.Lock())
        return self._writing[1]

    async def _read(self, ops: Sequence[Op]) -> tuple[list[Result], dict[str, _Found]]:
        """The results, and the items that count as read."""
        wanted = [_id_of(*_place(op.namespace, op.key)) for op in ops if isinstance(op, GetOp)]
        got = await self._with_ids(wanted)
        read: dict[str, _Found] = {}
        results: list[Any] = []
        meanings = await self._meanings(ops)
        for op in ops:
            if isinstance(op, GetOp):
                one = got.get(_id_of(*_place(op.namespace, op.key)))
                results.append(None if one is None else Item(**one.fields()))
                if one is not None and op.refresh_ttl:
                    read[one.item.id] = one
            elif isinstance(op, SearchOp):
                hits = await self._search(op, meanings)
                results.append([SearchItem(**one.fields(), score=score) for one, score in hits])
                if op.refresh_ttl:
                    read |= {one.item.id: one for one, _ in hits}
            elif isinstance(op, ListNamespacesOp):
                results.append(await self._namespaces(op))
            else:
                results.append(None)
        return results, read

    async def _with_ids(self, ids: Sequence[str]) -> dict[str, _Found]:
        if not ids:
            return {}
        selection = Selection(scope=Scope.of((_ROOT,)), ids=tuple(dict.fromkeys(ids)))
        rows = await self._backend.find(selection, self._now(), after=0, limit=None)
        return {item.id: _Found(item, number) for number, item in rows}

    async def _search(
        self, op: SearchOp, meanings: Mapping[str, list[float]]
    ) -> list[tuple[_Found, float | None]]:
        offset = whole_number("offset", op.offset)
        limit = whole_number("limit", op.limit)
        meaning = meanings.get(op.query) if op.query else None
        most = None if meaning is not None else offset + limit
        found: list[_Found] = []
        async for one in self._all(op.namespace_prefix):
            if most is not None and len(found) >= most:
                break
            if passes(one.value, op.filter):
                found.append(one)
        if meaning is None:
            return [(one, None) for one in found[offset : offset + limit]]
        return _ranked(found, meaning)[offset : offset + limit]

    async def _all(self, prefix: tuple[str, ...]) -> AsyncIterator[_Found]:
        """Every item below a prefix, in the order in which they came, page by page."""
        scope = Scope.of((_ROOT, *_segments(prefix)))
        after = 0
        while True:
            rows = await self._backend.find(
                Selection(scope=scope), self._now(), after=after, limit=_PAGE
            )
            for number, item in rows:
                yield _Found(item, number)
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    async def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        offset = whole_number("offset", op.offset)
        limit = whole_number("limit", op.limit)
        conditions = op.match_conditions or ()
        seen: set[tuple[str, ...]] = set()
        async for one in self._all(()):
            namespace = one.namespace
            if namespace not in seen and all(matches(each, namespace) for each in conditions):
                seen.add(namespace)
        if op.max_depth is not None:
            depth = whole_number("max_depth", op.max_depth)
            seen = {namespace[:depth] for namespace in seen}
        return sorted(seen)[offset : offset + limit]

    async def _meanings(self, ops: Sequence[Op]) -> dict[str, list[float]]:
        queries = {op.query for op in ops if isinstance(op, SearchOp) and op.query}
        if self._embeddings is None or not queries:
            return {}
        ordered = sorted(queries)
        try:
            vectors = [await self._embeddings.aembed_query(query) for query in ordered]
        except Exception as error:
            raise _failed(error) from error
        return {
            query: cast("list[float]", _row(vector).tolist())
            for query, vector in zip(ordered, vectors, strict=True)
        }

    # --- writing ----------------------------------------------------------------------------------

    async def _write(self, puts: Mapping[Place, PutOp]) -> None:
        gone = [_id_of(*place) for place, op in puts.items() if op.value is None]
        kept = {place: op for place, op in puts.items() if op.value is not None}
        if kept:
            before = await self._with_ids([_id_of(*place) for place in kept])
            vectors = await self._vectors(kept)
            drafts = [
                self._draft(place, op, before.get(_id_of(*place)), vectors.get(place))
                for place, op in kept.items()
            ]
            await self._put(drafts)
        if gone:
            selection = Selection(scope=Scope.of((_ROOT,)), ids=tuple(gone))
            await self._backend.forget(selection)

    async def _put(self, drafts: Sequence[MemoryItem]) -> None:
        # Which also makes sure that the tables are there.
        await self._backend.footing()
        await self._backend.write(
            [Draft(item=item, terms=(), vector=None, label=None) for item in drafts]
        )

    def _draft(
        self, place: Place, op: PutOp, before: _Found | None, vectors: dict[str, str] | None
    ) -> MemoryItem:
        now = self._clock()
        minutes = _minutes("ttl", op.ttl)
        if minutes is None:
            minutes = _minutes("default_ttl", (self.ttl_config or {}).get("default_ttl"))
        namespace, key = place
        metadata = {"key": key, "value": plain(dict(op.value or {})), "updated": now}
        if minutes is not None:
            metadata["ttl"] = minutes
        if vectors:
            metadata["vectors"] = vectors
        return MemoryItem(
            text="",
            kind="semantic",
            id=_id_of(namespace, key),
            namespace=(_ROOT, *namespace),
            created_at=now if before is None else before.item.created_at,
            expires_at=None if minutes is None else now + _MINUTE_S * minutes,
            metadata=metadata,
        )

    async def _vectors(self, puts: Mapping[Place, PutOp]) -> dict[Place, dict[str, str]]:
        """What the texts of the items mean, by place and path; packed."""
        if self._embeddings is None:
            return {}
        texts: list[str] = []
        owners: list[tuple[Place, str]] = []
        for place, op in puts.items():
            if op.index is False:
                continue
            for path in self._fields if op.index is None else op.index:
                found = get_text_at_path(op.value, path if path == "$" else tokenize_path(path))
                for at, text in enumerate(found):
                    texts.append(text)
                    owners.append((place, path if len(found) == 1 else f"{path}.{at}"))
        if not texts:
            return {}
        try:
            vectors = await self._embeddings.aembed_documents(texts)
        except Exception as error:
            raise _failed(error) from error
        rows = _rows(vectors, len(texts))
        packed: dict[Place, dict[str, str]] = {}
        for (place, path), row in zip(owners, rows, strict=True):
            packed_row = base64.b64encode(row.astype("<f4").tobytes()).decode()
            packed.setdefault(place, {})[path] = packed_row
        return packed

    async def _refresh(self, read: Sequence[_Found]) -> None:
        """Sets the time of what was read anew."""
        if (self.ttl_config or {}).get("refresh_on_read") is False:
            return
        now = self._clock()
        fresh = [
            replace(one.item, expires_at=now + _MINUTE_S * one.minutes)
            for one in read
            if one.minutes is not None
        ]
        if fresh:
            await self._put(fresh)

    async def _sweep(self) -> int:
        everything = Selection(scope=Scope.of((_ROOT,)))
        rows = await self._backend.find(everything, None, after=0, limit=None)
        now = self._clock()
        gone = tuple(
            item.id for _, item in rows if item.expires_at is not None and item.expires_at <= now
        )
        if not gone:
            return 0
        return await self._backend.forget(replace(everything, ids=gone))

    def _now(self) -> Filter:
        return Filter(now=self._clock())


def _ranked(found: Sequence[_Found], meaning: Sequence[float]) -> list[tuple[_Found, float | None]]:
    """By the nearest of an item's texts, the nearest first; behind them what has no vector."""
    asked = np.asarray(meaning, np.float64)
    scored: list[tuple[_Found, float]] = []
    rest: list[tuple[_Found, float | None]] = []
    for one in found:
        vectors = [row for row in one.vectors() if len(row) == len(asked)]
        if vectors:
            scored.append((one, _nearest(np.asarray(vectors, np.float64), asked)))
        else:
            rest.append((one, None))
    scored.sort(key=lambda hit: (-hit[1], hit[0].number))
    return [*scored, *rest]


def _nearest(rows: np.ndarray[Any, Any], asked: np.ndarray[Any, Any]) -> float:
    """The highest cosine of a row with the vector; 0 with one of length 0."""
    lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(asked)
    products = rows @ asked
    cosines = np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)
    return float(cosines.max())


def _place(namespace: object, key: object) -> Place:
    """The namespace and the key, if they can be kept.

    Raises:
        InvalidNamespaceError: of LangGraph, for labels that it does not take.
        InputError: ``invalid_value``.
    """
    segments = _segments(namespace)
    if not segments:
        message = "a namespace has at least one label"
        raise InvalidNamespaceError(message)
    return segments, check_id("a key", key)


def _segments(namespace: object) -> tuple[str, ...]:
    if isinstance(namespace, str) or not isinstance(namespace, (tuple, list)):
        message = f"a namespace must be a tuple of str, not {name_of_type(namespace)}"
        raise InvalidNamespaceError(message)
    segments = tuple(cast("Sequence[object]", namespace))
    return tuple(check_id("a label of a namespace", one) for one in segments)


def _id_of(namespace: tuple[str, ...], key: str) -> str:
    """The id of an item: of this place and no other."""
    return "lg_" + hashlib.blake2b(encode([*namespace, key]), digest_size=24).hexdigest()


def _ids(puts: Mapping[Place, PutOp]) -> set[str]:
    return {_id_of(*place) for place in puts}


def _minutes(name: str, value: object) -> float | None:
    """A time to live in minutes; None for no end.

    Raises:
        InputError: ``invalid_value`` for what is no number, or ends at no time that there is.
    """
    if value is None:
        return None
    minutes = fraction(name, value)
    if not math.isfinite(minutes * _MINUTE_S):
        message = f"{name} must be a finite number of minutes, got {shown(value)}"
        raise invalid(message)
    return minutes


def _rows(vectors: object, count: int) -> list[np.ndarray[Any, Any]]:
    """The vectors of so many texts.

    Raises:
        EmbeddingError: ``embedding_failed``.
    """
    try:
        given = list(cast("Iterable[object]", vectors))
    except TypeError as error:
        message = f"the embedder gave {name_of_type(vectors)}, not a list of vectors"
        raise EmbeddingError(message, code="embedding_failed") from error
    if len(given) != count:
        message = f"the embedder gave {len(given)} vectors for {count} texts"
        raise EmbeddingError(message, code="embedding_failed")
    return [_row(vector) for vector in given]


def _row(vector: object) -> np.ndarray[Any, Any]:
    """A vector as ``(d,)`` float64, each number one that float32 can hold.

    Raises:
        EmbeddingError: ``embedding_failed``.
    """
    try:
        row = np.asarray(vector, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"the embedder gave {name_of_type(vector)}, not a vector of numbers"
        raise EmbeddingError(message, code="embedding_failed") from error
    most = float(np.finfo(np.float32).max)
    if row.ndim != 1 or not row.size or not bool((np.abs(row) <= most).all()):
        message = f"the embedder gave no vector of finite numbers, but the shape {row.shape}"
        raise EmbeddingError(message, code="embedding_failed")
    return row


def _failed(error: Exception) -> EmbeddingError:
    message = f"the embedder raised {type(error).__name__}"
    return EmbeddingError(message, code="embedding_failed")
