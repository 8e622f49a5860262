"""One recall: from a question to items in order, whichever backend holds them."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Final

import numpy as np

from satchel.memory.analysis import terms_of
from satchel.memory.backend import Query
from satchel.memory.bm25 import inverse_frequency
from satchel.memory.embedders.base import word_vectors_of
from satchel.memory.item import Recalled
from satchel.memory.labels import names, said_text
from satchel.memory.ranking import diverse_order, final_scores, first_scores, soft_matches

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from numpy.typing import NDArray

    from satchel.counting import Counter
    from satchel.memory.backend import Candidates, Filter, Footing, MemoryBackend, Scope
    from satchel.memory.embedders.base import CachedEmbedder
    from satchel.memory.item import MemoryItem
    from satchel.memory.ranking import Ranking, Scores

__all__ = ["Recall"]

_WORD: Final = re.compile(r"\S+")
_PLAIN: Final = ".,;:!?\"'()[]{}<>…“”\u2018\u2019«»。、\uff1f\uff01"
_UNKNOWN_WORD: Final = 1.0
"""What a word without terms (a stop word) is worth in the meaning of a query."""

_MORE: Final = 4
"""Times as many items are read if those before were too much alike, or too long."""

_MOST_ATTEMPTS: Final = 3
"""Attempts of which the last takes what the backend has read anew as it is."""

_LEAST_ITEMS: Final = 20
"""Items from which on it can be said that a term is too frequent."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A query, word by word."""

    words: list[str]
    weights: NDArray[np.float32]
    telling: list[bool]


class Recall:
    """What recall works with: a backend, an embedder, and how to rank."""

    def __init__(
        self,
        backend: MemoryBackend,
        embedder: CachedEmbedder | None,
        ranking: Ranking,
        check: Callable[[Footing | None], Awaitable[None]],
    ) -> None:
        self._backend: Final = backend
        self._embedder: Final = embedder
        self._ranking: Final = ranking
        self._check: Final = check

    async def run(
        self,
        scope: Scope,
        filters: Filter,
        query: str,
        *,
        k: int,
        budget: int | None,
        counter: Counter,
    ) -> list[Recalled]:
        """At most ``k`` items of the scope that pass, the best first, within the budget."""
        for attempt in count(1):
            # What was read anew since the question came is new enough: others who write all the
            # time must not keep it from being answered.
            must_hold = bool(attempt % _MOST_ATTEMPTS)
            found = await self._once(
                scope, filters, query, must_hold, k=k, budget=budget, counter=counter
            )
            if found is not None:
                return found
        raise AssertionError  # there is no last number

    async def _once(
        self,
        scope: Scope,
        filters: Filter,
        query: str,
        must_hold: bool,  # noqa: FBT001 - within this class
        *,
        k: int,
        budget: int | None,
        counter: Counter,
    ) -> list[Recalled] | None:
        """As `run`; None if something was forgotten or, if it must hold, changed meanwhile."""
        ranking = self._ranking
        wanted, asked = await self._query(scope, query)
        candidates = await self._backend.candidates(scope, filters, wanted)
        if not must_hold:
            candidates = replace(candidates, seen=None)
        is_seen = candidates.seen is not None
        if self._ranking.diversity and is_seen and await self._items(candidates, []) is None:
            return None  # vectors are read as they are now, which may not be what was searched
        if not len(candidates.numbers):
            # That there is nothing must still hold too.
            holds = candidates.seen is None or await self._items(candidates, []) is not None
            return [] if holds else None
        named = frozenset(
            label for label in set(candidates.labels) if label and names(query, label)
        )
        first = first_scores(candidates, ranking, named)
        is_blank = not wanted.terms and wanted.vector is None
        # Nothing asked: the newest come first.
        order = candidates.times if is_blank else first.total
        pool = np.sort(_highest(order, max(ranking.pool, k)))
        if is_blank or not self._knows_words:
            best = first
            if not is_blank:
                nothing = np.zeros(len(candidates.numbers), np.float64)
                best = final_scores(candidates, ranking, named, nothing, filters.now)
            places = await self._ordered(
                candidates, pool, best, candidates.times if is_blank else None
            )
            return await self._first(candidates, places, best, k=k, budget=budget, counter=counter)
        at: list[int] = pool.tolist()
        items = await self._items(candidates, at)
        if items is None:
            return None
        texts = [item.text for item in items]
        spread = np.zeros(len(candidates.numbers), np.float64)
        spread[pool] = await asyncio.to_thread(self._matches, asked, texts)
        best = final_scores(candidates, ranking, named, spread, filters.now)
        places = await self._ordered(candidates, pool, best, None)
        of_place = dict(zip(at, items, strict=True))
        chosen = [(of_place[place], place) for place in places]
        return await _fitting(chosen, best, k, budget, counter)

    async def _items(self, candidates: Candidates, places: list[int]) -> list[MemoryItem] | None:
        """The items at these places; None as `MemoryBackend.items`."""
        numbers: list[int] = candidates.numbers[places].tolist() if places else []
        return await self._backend.items(numbers, candidates.seen)

    @property
    def _knows_words(self) -> bool:
        """Whether the words of the texts themselves are looked at."""
        return (
            self._embedder is not None
            and bool(self._ranking.words)
            and word_vectors_of(self._embedder, []) is not None
        )

    async def _first(
        self,
        candidates: Candidates,
        places: list[int],
        scores: Scores,
        *,
        k: int,
        budget: int | None,
        counter: Counter,
    ) -> list[Recalled] | None:
        """The first ``k``, without reading more items than it takes; None if one is gone."""
        most = k
        while True:
            part = places[:most]
            items = await self._items(candidates, part)
            if items is None:
                return None
            chosen = list(zip(items, part, strict=True))
            found = await _fitting(chosen, scores, k, budget, counter)
            if len(found) == k or most >= len(places):
                return found
            most *= _MORE

    async def _query(self, scope: Scope, query: str) -> tuple[Query, _Asked]:
        words = _WORD.findall(query)
        terms_of_words = [terms_of(word) for word in words]
        terms = tuple(dict.fromkeys(terms_of(query)))
        known = tuple(dict.fromkeys((*terms, *(one for some in terms_of_words for one in some))))
        figures = await self._backend.statistics(scope, known)
        await self._check(figures.footing)
        share = figures.holding / max(figures.items, 1)
        frequent = {
            term
            for term, one in zip(known, share, strict=True)
            if figures.items >= _LEAST_ITEMS and one > self._ranking.most_frequent
        }
        worth = dict(
            zip(known, inverse_frequency(figures.items, figures.holding).tolist(), strict=True)
        )
        held = dict(zip(known, share.tolist(), strict=True))
        kept = tuple(term for term in terms if term not in frequent) or terms
        telling = [not some or not frequent.issuperset(some) for some in terms_of_words]
        if not any(telling):
            telling = [True] * len(words)
        weights = [max((worth[one] for one in some), default=0.0) for some in terms_of_words]
        asked = _Asked(words, np.array(weights, np.float32), telling)
        vector = await self._vector(query, asked) if words else None
        return (
            Query(
                terms=kept,
                weights=np.array([worth[term] for term in kept], np.float32),
                mean_terms=figures.terms / max(figures.items, 1),
                vector=vector,
                most=self._ranking.most_candidates,
                shares=np.array([held[term] for term in kept], np.float64),
                items=figures.items,
            ),
            asked,
        )

    async def _vector(self, query: str, asked: _Asked) -> NDArray[np.float32] | None:
        """What the query means without the words that say nothing here; None for nothing."""
        if self._embedder is None or not self._ranking.dense:
            return None
        kept = [word for word, tells in zip(asked.words, asked.telling, strict=True) if tells]
        vectors = word_vectors_of(self._embedder, kept)
        if vectors is None:
            text = query if len(kept) == len(asked.words) else " ".join(kept)
            vector = (await self._embedder.embed([text]))[0]
        else:
            weights = asked.weights[np.array(asked.telling)]
            vector = np.where(weights > 0, weights, _UNKNOWN_WORD) @ vectors
        norm = float(np.linalg.norm(vector))
        return (vector / norm).astype(np.float32) if norm > 0 else None

    def _matches(self, asked: _Asked, texts: list[str]) -> NDArray[np.float64]:
        """How well each text holds the query's words or their like."""
        nothing = np.zeros(len(texts), np.float64)
        if self._embedder is None or not self._ranking.words:
            return nothing
        pairs = [
            (word.strip(_PLAIN).lower(), weight)
            for word, weight, tells in zip(
                asked.words, asked.weights.tolist(), asked.telling, strict=True
            )
            if tells and weight > 0
        ]
        split = [
            [one for word in _WORD.findall(said_text(text)) if (one := word.strip(_PLAIN).lower())]
            for text in texts
        ]
        distinct = sorted({word for words in split for word in words} | {one for one, _ in pairs})
        vectors = word_vectors_of(self._embedder, distinct)
        if vectors is None or not pairs:
            return nothing
        norms = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors = np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
        place = {word: at for at, word in enumerate(distinct)}
        flat = np.array([place[word] for words in split for word in words], np.int64)
        query = vectors[[place[word] for word, _ in pairs]]
        weights = np.array([weight for _, weight in pairs], np.float32)
        ends = np.cumsum([len(words) for words in split]).tolist()
        return soft_matches(query, weights, vectors[flat], ends)

    async def _ordered(
        self,
        candidates: Candidates,
        pool: NDArray[np.int64],
        scores: Scores,
        times: NDArray[np.float64] | None,
    ) -> list[int]:
        """Places among the candidates, the best first."""
        values = scores.total[pool] if times is None else times[pool]
        if times is not None:  # of one moment, the one written last
            places = pool[::-1][np.argsort(-values[::-1], kind="stable")]
        elif self._ranking.diversity:
            vectors = await self._backend.vectors(candidates.numbers[pool].tolist())
            places = pool[diverse_order(values, vectors, self._ranking.diversity)]
        else:
            places = pool[np.argsort(-values, kind="stable")]
        found: list[int] = places.tolist()
        return found


async def _fitting(
    chosen: list[tuple[MemoryItem, int]],
    scores: Scores,
    k: int,
    budget: int | None,
    counter: Counter,
) -> list[Recalled]:
    """As `_within`; counted in a thread."""
    if budget is None:
        return _within(chosen, scores, k, None, counter)
    return await asyncio.to_thread(_within, chosen, scores, k, budget, counter)


def _highest(scores: NDArray[np.float64], most: int) -> NDArray[np.int64]:
    """Places of the highest scores; of equal ones, those written first."""
    return np.argsort(-scores, kind="stable")[:most]


def _within(
    chosen: list[tuple[MemoryItem, int]],
    scores: Scores,
    k: int,
    budget: int | None,
    counter: Counter,
) -> list[Recalled]:
    """The first ``k`` that differ; what does not fit into the budget any more is left out."""
    found: list[Recalled] = []
    seen: set[str] = set()
    left = budget
    for item, place in chosen:
        if len(found) == k:
            break
        same = " ".join(item.text.split()).casefold()
        if same in seen:
            continue
        tokens = 0
        if left is not None:
            tokens = counter.count(item.text)
            if tokens > left:
                continue
            left -= tokens
        seen.add(same)
        found.append(
            Recalled(
                item=item,
                score=float(scores.total[place]),
                lexical=float(scores.lexical[place]),
                dense=float(scores.dense[place]),
                tokens=tokens,
            )
        )
    return found
