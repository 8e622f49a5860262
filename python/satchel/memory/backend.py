"""What a memory backend does: the protocol, and the values that go in and out.

A backend keeps items with their terms and vectors, filters, and gives candidates with the figures
that a ranking needs. It ranks nothing itself, so the same question gets the same answer on each.
Every write is one transaction; every read names a scope, and a row outside of it is never looked
at, let alone ranked.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from satchel.errors import StoreError
from satchel.memory.namespaces import path_end, path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from satchel.memory.item import Kind, MemoryItem
    from satchel.memory.namespaces import Namespace

__all__ = [
    "Candidates",
    "Draft",
    "Filter",
    "Footing",
    "MemoryBackend",
    "Query",
    "Scope",
    "Selection",
    "Statistics",
    "settled",
]


@dataclass(frozen=True, slots=True)
class Scope:
    """A namespace and everything below it, as a range of paths: ``start <= path < end``."""

    start: bytes
    end: bytes

    @classmethod
    def of(cls, namespace: Namespace) -> Scope:
        """The scope of a namespace."""
        path = path_of(namespace)
        return cls(path, path_end(path))

    def holds(self, path: bytes) -> bool:
        """Whether a path lies in it."""
        return self.start <= path < self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which items of a scope may be recalled.

    Attributes:
        now: the moment, in seconds since 1970: what expired before is left out.
        kinds: kinds that count; None for all.
        min_confidence: least confidence.
        with_claims: whether claims count too.
        with_history: whether superseded items count too.
    """

    now: float
    kinds: tuple[Kind, ...] | None = None
    min_confidence: float = 0.0
    with_claims: bool = False
    with_history: bool = False

    def takes(self, item: MemoryItem) -> bool:
        """Whether an item passes."""
        return (
            (self.kinds is None or item.kind in self.kinds)
            and item.confidence >= self.min_confidence
            and (self.with_claims or item.status == "fact")
            and (self.with_history or item.is_current)
            and (item.expires_at is None or item.expires_at > self.now)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which items to list or to forget; what is None does not matter.

    Attributes:
        scope: where they are.
        ids: their ids.
        key: their key.
        session_id: the session they come from.
        user_id: whom they are about.
        exact: the namespace itself, without what is below it.
    """

    scope: Scope
    ids: tuple[str, ...] | None = None
    key: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    exact: bool = False

    def takes(self, item: MemoryItem, path: bytes) -> bool:
        """Whether an item is meant."""
        return (
            (path == self.scope.start if self.exact else self.scope.holds(path))
            and (self.ids is None or item.id in self.ids)
            and (self.key is None or item.key == self.key)
            and (self.session_id is None or item.source.session_id == self.session_id)
            and (self.user_id is None or item.user_id == self.user_id)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """An item to be written, with what recall finds it by.

    Attributes:
        item: the item, with id, namespace and times.
        terms: its terms, in order, repeated as often as they occur.
        vector: what it means, of length 1; None if nobody embeds.
        label: the name that the text begins with, in lower case; None if it begins with none.
    """

    item: MemoryItem
    terms: tuple[str, ...]
    vector: NDArray[np.float32] | None
    label: str | None


@dataclass(frozen=True, slots=True)
class Footing:
    """What terms and vectors of a store were made with.

    Attributes:
        analyser: name of the analyser.
        embedder: name of the embedder; None if nobody embeds.
        dimension: length of a vector; None likewise, or while there is none.
    """

    analyser: str
    embedder: str | None = None
    dimension: int | None = None


@dataclass(frozen=True, slots=True)
class Statistics:
    """Figures of a scope, of all its items whether or not they pass a filter.

    Attributes:
        items: how many there are.
        terms: sum of the lengths of all, in terms.
        holding: items that hold each term that was asked for, in its order; int64.
        footing: what the store's terms and vectors were made with, when these were read.
    """

    items: int
    terms: int
    holding: NDArray[np.int64]
    footing: Footing | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What candidates are wanted for.

    Attributes:
        terms: terms that count, each once.
        weights: what each is worth, float32.
        mean_terms: mean length of an item, in terms.
        vector: what the query means, of length 1; None for words alone.
        most: candidates by words, and as many by meaning.
        shares: the share of all items that holds each term, float64; empty where that is not known.
        items: how many items there are; 0 likewise.
    """

    terms: tuple[str, ...]
    weights: NDArray[np.float32]
    mean_terms: float
    vector: NDArray[np.float32] | None
    most: int
    shares: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0, np.float64))
    items: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Items that may answer, and their neighbours; arrays of one length.

    Attributes:
        numbers: what the backend calls each, ascending, int64.
        lexical: BM25 of each, float32.
        dense: cosine of each with the query, float32; 0 without vectors.
        previous: place of the item before it in its session, int64; -1 if it is not among these.
        following: place of the item after it, likewise.
        times: when each was said, float64.
        confidences: confidence of each, float32.
        labels: the name that each begins with.
        seen: for `MemoryBackend.items`: what these were made from; None if from the store itself.
    """

    numbers: NDArray[np.int64]
    lexical: NDArray[np.float32]
    dense: NDArray[np.float32]
    previous: NDArray[np.int64]
    following: NDArray[np.int64]
    times: NDArray[np.float64]
    confidences: NDArray[np.float32]
    labels: Sequence[str | None]
    seen: object | None = None

    @property
    def vectors_known(self) -> bool:
        """Whether any has a meaning."""
        return bool(np.any(self.dense))


class MemoryBackend(Protocol):
    """A backend. Its methods are safe to call from many tasks of one event loop."""

    async def footing(self) -> Footing | None:
        """What the store's terms and vectors were made with; None for an empty store."""
        ...

    async def settle(self, footing: Footing) -> Footing:
        """Records a footing where there is none yet; returns the one that holds."""
        ...

    async def write(self, drafts: Sequence[Draft]) -> list[MemoryItem]:
        """Writes all or none, superseding as `settled` says; returns the items as they stand.

        A draft with the id of an item of its namespace takes its place.

        Raises:
            StoreError: ``id_taken`` if an id belongs to another namespace.
        """
        ...

    async def find(
        self, selection: Selection, filters: Filter | None, *, after: int, limit: int | None
    ) -> list[tuple[int, MemoryItem]]:
        """Items with their numbers, in the order in which they were written first."""
        ...

    async def forget(self, selection: Selection) -> int:
        """Removes items for good; how many. An item they had superseded does not come back."""
        ...

    async def statistics(self, scope: Scope, terms: Sequence[str]) -> Statistics:
        """Figures of a scope, with the footing; they may be of some moments ago."""
        ...

    async def candidates(self, scope: Scope, filters: Filter, query: Query) -> Candidates:
        """What may answer; everything that passes if the query has neither terms nor vector."""
        ...

    async def items(
        self, numbers: Sequence[int], seen: object | None = None
    ) -> list[MemoryItem] | None:
        """The items with these numbers, in this order.

        Args:
            numbers: of candidates.
            seen: the candidates' own, to hear whether they and the figures before still hold.

        Returns:
            None if one is gone, or what was seen no longer holds: ask for everything again.
        """
        ...

    async def vectors(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """Their vectors, ``(n, d)``; zeros for one without."""
        ...

    async def renew(self, footing: Footing, drafts: Sequence[Draft]) -> None:
        """Sets terms and vectors of all items anew, and the footing with them, or changes nothing.

        Raises:
            StoreError: ``version_conflict`` if the drafts are not the store's items as they stand.
        """
        ...

    async def close(self) -> None:
        """Ends all connections. Closing twice does no harm."""
        ...


def settled(item: MemoryItem, others: Sequence[MemoryItem]) -> list[MemoryItem]:
    """What a new fact changes among the current facts under its key, itself included.

    The newest holds, by the time when it was said; of two from one moment, the one written last. An
    older one that comes late is kept as history. Claims supersede nothing.
    """
    if item.key is None or item.status != "fact" or not item.is_current:
        return [item]
    moment = item.time if item.time is not None else item.created_at
    rivals = [
        other
        for other in others
        if other.id != item.id
        and other.key == item.key
        and other.namespace == item.namespace
        and other.status == "fact"
        and other.is_current
    ]
    newer = [other for other in rivals if (other.time or 0.0) > moment]
    if newer:
        return [replace(item, superseded_by=newer[-1].id, superseded_at=item.created_at)]
    return [
        *(replace(other, superseded_by=item.id, superseded_at=item.created_at) for other in rivals),
        item,
    ]


def id_taken() -> StoreError:
    """The error of an id that is another namespace's."""
    return StoreError("an item of another namespace has this id", code="id_taken")
