"""Recall on long conversations: satchel beside BM25, vectors alone, and both fused by rank.

As a program it prints the table; as a test it checks that satchel is best in each column::

    python benches/python/bench_recall.py

Columns: share of the evidence in the first 5 and 10, mean reciprocal rank of the first evidence,
and the tokens one reads until it has come (400 where it is not among the ten).
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

import satchel
from recall_set import conversations
from satchel.memory.analysis import terms_of
from satchel.memory.bm25 import bm25, inverse_frequency
from satchel.memory.embedders.wordllama import WordLlamaEmbedder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recall_set import Conversation

TEN = 10
MISSED_TOKENS = 400
WAYS = ("BM25", "vectors", "rank fusion", "satchel")


@dataclass
class Tally:
    """What one way of recall found, question by question."""

    at_5: list[float] = field(default_factory=list[float])
    at_10: list[float] = field(default_factory=list[float])
    reciprocal: list[float] = field(default_factory=list[float])
    tokens: list[float] = field(default_factory=list[float])

    def add(self, order: Sequence[int], evidence: Sequence[int], tokens: Sequence[int]) -> None:
        """One question: the turns recalled, at most ten, and those that answer it."""
        ranks = [order.index(turn) if turn in order else None for turn in evidence]
        known = [rank for rank in ranks if rank is not None]
        self.at_5.append(sum(rank < 5 for rank in known) / len(ranks))
        self.at_10.append(sum(rank < TEN for rank in known) / len(ranks))
        self.reciprocal.append(1 / (1 + min(known)) if known else 0.0)
        read = sum(tokens[turn] for turn in order[: 1 + min(known)]) if known else MISSED_TOKENS
        self.tokens.append(float(read))

    @property
    def figures(self) -> tuple[float, float, float, float]:
        """R@5, R@10, mean reciprocal rank, tokens."""
        columns = (self.at_5, self.at_10, self.reciprocal, self.tokens)
        at_5, at_10, reciprocal, tokens = (float(np.mean(column)) for column in columns)
        return at_5, at_10, reciprocal, tokens


class Plain:
    """The three usual ways, each as it is usually done."""

    def __init__(self, turns: Sequence[str]) -> None:
        self.counts = [Counter(terms_of(turn)) for turn in turns]
        self.lengths = np.array([sum(one.values()) for one in self.counts], np.float32)
        self.embedder = WordLlamaEmbedder()
        self.vectors = self._embedded(list(turns))

    def words(self, question: str) -> NDArray[np.float64]:
        """BM25 of each turn."""
        found = np.zeros(len(self.counts))
        for term in dict.fromkeys(terms_of(question)):
            counts = np.array([one[term] for one in self.counts])
            weight = inverse_frequency(len(counts), np.array([np.count_nonzero(counts)]))[0]
            found += weight * bm25(counts, self.lengths, float(self.lengths.mean()))
        return found

    def meaning(self, question: str) -> NDArray[np.float64]:
        """Cosine of each turn."""
        found: NDArray[np.float64] = self.vectors @ self._embedded([question])[0]
        return found

    def fused(self, question: str) -> NDArray[np.float64]:
        """Reciprocal rank fusion with the usual 60 (Cormack and others, 2009)."""
        found = np.zeros(len(self.counts))
        for scores in (self.words(question), self.meaning(question)):
            found[np.argsort(-scores, kind="stable")] += 1 / (61 + np.arange(len(scores)))
        return found

    def _embedded(self, texts: list[str]) -> NDArray[np.float64]:
        rows = asyncio.run(self.embedder.embed(texts)).astype(np.float64)
        unit: NDArray[np.float64] = rows / np.maximum(
            np.linalg.norm(rows, axis=1, keepdims=True), 1e-9
        )
        return unit


@lru_cache(maxsize=1)
def tallies() -> dict[tuple[str, str], Tally]:
    """For each language and way, what it found."""
    found: dict[tuple[str, str], Tally] = {}
    counter = satchel.counter("o200k_base")
    for conversation in conversations():
        tokens = counter.count_many(conversation.turns).tolist()
        plain = Plain(conversation.turns)
        ways = (plain.words, plain.meaning, plain.fused)
        recalled = asyncio.run(recalled_by_satchel(conversation))
        for question, mine in zip(conversation.questions, recalled, strict=True):
            orders = [np.argsort(-way(question.text), kind="stable")[:TEN].tolist() for way in ways]
            for way, order in zip(WAYS, [*orders, mine], strict=True):
                tally = found.setdefault((conversation.language, way), Tally())
                tally.add(order, question.evidence, tokens)
    return found


async def recalled_by_satchel(conversation: Conversation) -> list[list[int]]:
    """For each question, the numbers of the ten turns that `Memory.recall` gives."""
    async with satchel.open_memory("memory://") as memory:
        turns = [
            {"text": text, "session_id": f"s{session}", "message": number}
            for number, (text, session) in enumerate(
                zip(conversation.turns, conversation.sessions, strict=True)
            )
        ]
        await memory.remember(("talk",), turns)
        return [
            [
                hit.item.source.message or 0
                for hit in await memory.recall(("talk",), question.text, k=TEN)
            ]
            for question in conversation.questions
        ]


def test_satchel_is_best_in_each_column() -> None:
    found = tallies()
    for language in ("en", "ko"):
        *others, mine = (found[language, way].figures for way in WAYS)
        for other in others:
            assert all(own >= theirs for own, theirs in zip(mine[:3], other[:3], strict=True))
            assert mine[3] <= other[3]


def main() -> int:
    """Prints the table."""
    started = time.perf_counter()
    found = tallies()
    print(f"{'':4}{'':14}{'R@5':>8}{'R@10':>8}{'MRR':>8}{'tokens':>8}")
    for (language, way), tally in found.items():
        at_5, at_10, reciprocal, tokens = tally.figures
        print(f"{language:4}{way:14}{at_5:8.3f}{at_10:8.3f}{reciprocal:8.3f}{tokens:8.0f}")
    questions = sum(len(tally.at_5) for (_, way), tally in found.items() if way == WAYS[0])
    print(f"{questions} questions, {time.perf_counter() - started:.1f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
