"""How candidates are ranked: one function of figures, whichever backend they come from.

Three signs, each brought to 0..1 by its largest value (its least is 0: no word in common, nothing
alike), then added up: BM25 with the turn before as context, the cosine of the vectors, and how well
each word of the query is matched by some word of the text. A turn is understood with its
neighbours, so a share of their score is added; and if the query names one of those who speak, what
they say comes first. Ties go to the item written first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from satchel._arguments import fraction, invalid, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from numpy.typing import NDArray

    from satchel.memory.backend import Candidates

__all__ = ["Ranking", "Scores", "diverse_order", "final_scores", "first_scores", "soft_matches"]

_LEAST_MATCH: Final = 0.2
"""Cosine of two words from which on they have something in common."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Weights of a ranking. Defaults by ``benches/python/bench_recall.py``.

    Attributes:
        lexical: weight of the words in common.
        dense: weight of the meaning as a whole; of words alone or meaning alone, the other is 0.
        words: weight of words that mean the same, where the embedder knows single words.
        context: share of the turn before that counts as a turn's own words.
        neighbours: share of the scores of the turns around that is added to a turn's.
        speaker: what is added if the query names who speaks.
        most_frequent: terms in a larger share of the items say nothing and are left out.
        half_life_s: seconds after which an item's age halves what ``recency`` adds.
        recency: what is added for an item of this moment; 0 where age does not matter.
        confidence: what is added for full confidence.
        diversity: 0..1, how much an item loses for being like one above it (maximal marginal
            relevance; Carbonell and Goldstein 1998); 0 for nothing.
        most_candidates: candidates by words, and as many by meaning.
        pool: candidates whose texts are read.
    """

    lexical: float = 0.4
    dense: float = 0.3
    words: float = 0.3
    context: float = 0.5
    neighbours: float = 0.2
    speaker: float = 0.2
    most_frequent: float = 0.3
    half_life_s: float = 30 * 86_400.0
    recency: float = 0.0
    confidence: float = 0.0
    diversity: float = 0.0
    most_candidates: int = 150
    pool: int = 100

    def __post_init__(self) -> None:
        for name in (
            "lexical",
            "dense",
            "words",
            "context",
            "neighbours",
            "speaker",
            "recency",
            "confidence",
        ):
            if not 0.0 <= fraction(name, getattr(self, name)) <= 1e6:  # noqa: PLR2004 - any bound
                message = f"{name} must not be negative"
                raise invalid(message)
        for name in ("most_frequent", "diversity"):
            if not 0.0 <= fraction(name, getattr(self, name)) <= 1.0:
                message = f"{name} must be from 0 to 1"
                raise invalid(message)
        if not fraction("half_life_s", self.half_life_s) > 0.0:
            message = "half_life_s must be above 0"
            raise invalid(message)
        for name in ("most_candidates", "pool"):
            whole_number(name, getattr(self, name), least=1)


@dataclass(frozen=True, slots=True)
class Scores:
    """Scores of candidates, float64 arrays of their length.

    Attributes:
        total: what they are ranked by.
        lexical: the part of the words, 0..1.
        dense: the part of the meaning, 0..1.
    """

    total: NDArray[np.float64]
    lexical: NDArray[np.float64]
    dense: NDArray[np.float64]


def first_scores(candidates: Candidates, ranking: Ranking, names: AbstractSet[str]) -> Scores:
    """Scores by words in common and by meaning; ``names`` are the words of the query."""
    lexical = candidates.lexical.astype(np.float64)
    lexical = _scaled(lexical + ranking.context * _beside(lexical, candidates.previous))
    dense = _scaled(candidates.dense.astype(np.float64))
    both = ranking.lexical * lexical + ranking.dense * dense
    return Scores(_with_rest(both, candidates, ranking, names), lexical, dense)


def final_scores(
    candidates: Candidates,
    ranking: Ranking,
    names: AbstractSet[str],
    matches: NDArray[np.float64],
    now: float,
) -> Scores:
    """Scores with the matches of single words, age and confidence."""
    first = first_scores(candidates, ranking, frozenset())
    matched = _scaled(matches)
    base = ranking.lexical * first.lexical + ranking.dense * first.dense + ranking.words * matched
    total = _with_rest(base, candidates, ranking, names)
    if ranking.recency:
        age = np.maximum(now - candidates.times, 0.0)
        total = total + ranking.recency * np.exp2(-age / ranking.half_life_s)
    if ranking.confidence:
        total = total + ranking.confidence * candidates.confidences
    return Scores(total, first.lexical, first.dense)


def soft_matches(
    query: NDArray[np.float32],
    weights: NDArray[np.float32],
    words: NDArray[np.float32],
    ends: Sequence[int],
) -> NDArray[np.float64]:
    """How well each text holds the words of a query, or words that mean the same.

    Args:
        query: vectors of the query's words, ``(q, d)``, of length 1.
        weights: what each of them is worth, ``(q,)``.
        words: vectors of the words of all texts, one text after the other, ``(n, d)``.
        ends: where each text ends in them.

    Returns:
        For each text, the sum over the query's words of weight times best match.
    """
    found = np.zeros(len(ends), np.float64)
    if not len(words) or not len(query):
        return found
    likeness = np.maximum(words @ query.T - _LEAST_MATCH, 0.0) / (1.0 - _LEAST_MATCH)
    starts = np.concatenate([[0], np.asarray(ends[:-1], np.int64)])
    full = np.flatnonzero(np.asarray(ends, np.int64) > starts)
    best = np.maximum.reduceat(likeness, starts[full], axis=0)
    found[full] = best @ weights
    return found


def diverse_order(
    scores: NDArray[np.float64], vectors: NDArray[np.float32], diversity: float
) -> list[int]:
    """All places, each next the one whose score less its likeness to those before is highest."""
    left = np.argsort(-scores, kind="stable").tolist()
    scaled = _scaled(scores)
    worst = np.zeros(len(scores), np.float64)
    order: list[int] = []
    while left:
        gains = (1.0 - diversity) * scaled[left] - diversity * worst[left]
        chosen = left.pop(int(np.argmax(gains)))
        order.append(chosen)
        worst = np.maximum(worst, vectors @ vectors[chosen])
    return order


def _with_rest(
    base: NDArray[np.float64],
    candidates: Candidates,
    ranking: Ranking,
    names: AbstractSet[str],
) -> NDArray[np.float64]:
    around = _beside(base, candidates.previous) + _beside(base, candidates.following)
    total = base + ranking.neighbours * around
    if ranking.speaker and names:
        named = [label is not None and label in names for label in candidates.labels]
        total = total + ranking.speaker * np.array(named, np.float64)
    return total


def _beside(values: NDArray[np.float64], places: NDArray[np.int64]) -> NDArray[np.float64]:
    """The value at each place, 0 where there is none."""
    return np.where(places >= 0, np.append(values, 0.0)[places], 0.0)


def _scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The values over their largest; what is below 0 is 0."""
    positive = np.maximum(values, 0.0)
    largest = positive.max(initial=0.0)
    scaled: NDArray[np.float64] = positive / largest if largest > 0 else positive
    return scaled
