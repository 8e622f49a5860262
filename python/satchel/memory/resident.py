"""The rows of a scope in memory, as columns: what the embedded backends search.

Postings, lengths and vectors stay in arrays, so BM25 and the cosine of every item are exact and
take a few additions each. One matrix product a query is the cost: 256 multiplications an item.
"""

from __future__ import annotations

from array import array
from collections import Counter
from typing import TYPE_CHECKING, Final

import numpy as np

from satchel.memory.backend import Candidates, Statistics
from satchel.memory.bm25 import bm25
from satchel.memory.item import KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from satchel.memory.backend import Draft, Filter, Query

__all__ = ["Resident"]

_NEVER: Final = np.inf


class Resident:
    """Columns of a scope; grows with what is written, and is thrown away when rows change."""

    def __init__(self) -> None:
        self._numbers: Final = array("q")
        self._lengths: Final = array("q")
        self._times: Final = array("d")
        self._expires: Final = array("d")
        self._confidences: Final = array("d")
        self._kinds: Final = array("b")
        self._claims: Final = array("b")
        self._superseded: Final = array("b")
        self._labels: Final[list[str | None]] = []
        self._postings: Final[dict[str, tuple[array[int], array[int]]]] = {}
        self._at: Final[dict[int, int]] = {}
        self._places: Final[dict[tuple[bytes, str | None, int], int]] = {}
        self._previous: Final = array("q")
        self._following: Final = array("q")
        self._vectors: NDArray[np.float32] = np.zeros((0, 0), np.float32)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def last(self) -> int:
        """The highest number in it; 0 for none."""
        return self._numbers[-1] if self._numbers else 0

    def add(self, rows: Iterable[tuple[int, int | None, bytes, Draft]]) -> None:
        """Adds rows with ascending numbers: number, place in the session, path, draft."""
        for number, place, path, draft in rows:
            item = draft.item
            at = len(self._numbers)
            self._numbers.append(number)
            self._at[number] = at
            self._lengths.append(len(draft.terms))
            self._times.append(item.time if item.time is not None else item.created_at)
            self._expires.append(_NEVER if item.expires_at is None else item.expires_at)
            self._confidences.append(item.confidence)
            self._kinds.append(KINDS.index(item.kind))
            self._claims.append(item.status == "claim")
            self._superseded.append(not item.is_current)
            self._labels.append(draft.label)
            for term, times in Counter(draft.terms).items():
                holders, counts = self._postings.setdefault(term, (array("q"), array("q")))
                holders.append(at)
                counts.append(times)
            self._add_vector(at, draft.vector)
            self._previous.append(-1)
            self._following.append(-1)
            if place is not None:
                self._join((path, item.source.session_id), place, at)

    def supersede(self, numbers: Iterable[int]) -> None:
        """Marks rows as superseded."""
        for number in numbers:
            if number in self._at:
                self._superseded[self._at[number]] = 1

    def statistics(self, terms: Sequence[str]) -> Statistics:
        """See `MemoryBackend.statistics`."""
        nothing: tuple[array[int], array[int]] = (array("q"), array("q"))
        holding = [len(self._postings.get(term, nothing)[0]) for term in terms]
        return Statistics(len(self), sum(self._lengths), np.array(holding, np.int64))

    def candidates(self, filters: Filter, query: Query) -> Candidates:
        """See `MemoryBackend.candidates`."""
        allowed = self._allowed(filters)
        lexical = self._lexical(query)
        dense = np.zeros(len(self), np.float32)
        if query.vector is not None and self._vectors.shape[1]:
            dense = self._vectors[: len(self)] @ query.vector
        if not query.terms and query.vector is None:
            chosen = np.flatnonzero(allowed)
        else:
            chosen = _best(lexical, allowed & (lexical > 0), query.most)
            if query.vector is not None:
                chosen = _union(chosen, _best(dense, allowed, query.most))
        previous = np.array(self._previous, np.int64)
        following = np.array(self._following, np.int64)
        beside = np.concatenate([previous[chosen], following[chosen]])
        beside = beside[beside >= 0]
        rows = _union(chosen, beside[allowed[beside]])
        place = np.full(len(self) + 1, -1, np.int64)  # one more: -1 leads to the last
        place[rows] = np.arange(len(rows))
        at: list[int] = rows.tolist()
        return Candidates(
            numbers=np.array(self._numbers, np.int64)[rows],
            lexical=lexical[rows],
            dense=dense[rows],
            previous=place[previous[rows]],
            following=place[following[rows]],
            times=np.array(self._times, np.float64)[rows],
            confidences=np.array(self._confidences, np.float32)[rows],
            labels=[self._labels[row] for row in at],
        )

    def vectors(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """See `MemoryBackend.vectors`."""
        found = np.zeros((len(numbers), self._vectors.shape[1]), np.float32)
        for row, number in zip(found, numbers, strict=True):
            if number in self._at:
                row[:] = self._vectors[self._at[number]]
        return found

    def _allowed(self, filters: Filter) -> NDArray[np.bool_]:
        allowed: NDArray[np.bool_] = np.array(self._expires, np.float64) > filters.now
        if filters.min_confidence > 0:
            allowed &= np.array(self._confidences, np.float64) >= filters.min_confidence
        if not filters.with_claims:
            allowed &= np.array(self._claims, np.int8) == 0
        if not filters.with_history:
            allowed &= np.array(self._superseded, np.int8) == 0
        if filters.kinds is not None:
            wanted = [KINDS.index(kind) for kind in filters.kinds]
            allowed &= np.isin(np.array(self._kinds, np.int8), wanted)
        return allowed

    def _lexical(self, query: Query) -> NDArray[np.float32]:
        found = np.zeros(len(self), np.float32)
        lengths = np.array(self._lengths, np.float32)
        for term, weight in zip(query.terms, query.weights, strict=True):
            if term in self._postings:
                holders, counts = (np.array(one, np.int64) for one in self._postings[term])
                found[holders] += weight * bm25(counts, lengths[holders], query.mean_terms)
        return found

    def _add_vector(self, at: int, vector: NDArray[np.float32] | None) -> None:
        dimension = self._vectors.shape[1] or (0 if vector is None else len(vector))
        if at >= len(self._vectors) or dimension != self._vectors.shape[1]:
            grown = np.zeros((max(64, 2 * at), dimension), np.float32)
            if self._vectors.shape[1]:
                grown[:at] = self._vectors[:at]
            self._vectors = grown
        if vector is not None:
            self._vectors[at] = vector

    def _join(self, group: tuple[bytes, str | None], place: int, at: int) -> None:
        self._places[*group, place] = at
        before = self._places.get((*group, place - 1), -1)
        after = self._places.get((*group, place + 1), -1)
        self._previous[at] = before
        self._following[at] = after
        if before >= 0:
            self._following[before] = at
        if after >= 0:
            self._previous[after] = at


def _best(scores: NDArray[np.float32], allowed: NDArray[np.bool_], most: int) -> NDArray[np.int64]:
    """Places of the highest scores among those allowed."""
    places = np.flatnonzero(allowed)
    if len(places) <= most:
        return places
    return places[np.argpartition(-scores[places], most)[:most]]


def _union(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """All places, ascending, each once."""
    found: NDArray[np.int64] = np.unique(np.concatenate([left, right]))
    return found
