"""Candidates from rows that a database gave: the same figures as from columns in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from satchel import _core
from satchel.memory.backend import Candidates
from satchel.memory.bm25 import bm25

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from satchel.memory.backend import Query

__all__ = ["Fetched", "candidates_of"]


class Fetched(NamedTuple):
    """A row of a database, as far as it is ranked; a tuple, since a recall makes hundreds.

    Attributes:
        number: what the backend calls it.
        path: its namespace.
        session_id: the session it comes from, as the backend says it.
        place: its place in that session; None for none.
        words: its terms with blanks between them, repeated as often as they occur.
        dense: cosine with the query.
        time: when it was said.
        confidence: how sure it is.
        label: the name that it begins with.
    """

    number: int
    path: bytes
    session_id: str | bytes | None
    place: int | None
    words: str
    dense: float
    time: float
    confidence: float
    label: str | None


def candidates_of(rows: Sequence[Fetched], query: Query) -> Candidates:
    """The rows, which are distinct, as candidates."""
    ordered = sorted(rows)  # by their numbers
    numbers, paths, sessions, steps, words, dense, times, confidences, labels = (
        zip(*ordered, strict=True) if ordered else ((),) * len(Fetched._fields)
    )
    counts, terms = _core.term_counts(list(words), list(query.terms))
    lengths = terms.astype(np.float32)
    lexical = np.zeros(len(ordered), np.float32)
    for column, weight in enumerate(query.weights):
        # One after the other, as with columns in memory: the sums are the same to the last bit.
        holders = np.flatnonzero(counts[:, column])
        held = counts[holders, column]
        lexical[holders] += weight * bm25(held, lengths[holders], query.mean_terms)
    places = {
        key: at
        for at, key in enumerate(zip(paths, sessions, steps, strict=True))
        if key[2] is not None
    }

    def beside(step: int) -> NDArray[np.int64]:
        found = [
            -1 if place is None else places.get((path, session, place + step), -1)
            for path, session, place in zip(paths, sessions, steps, strict=True)
        ]
        return np.array(found, np.int64)

    return Candidates(
        numbers=np.array(numbers, np.int64),
        lexical=lexical,
        dense=np.array(dense, np.float32),
        previous=beside(-1),
        following=beside(1),
        times=np.array(times, np.float64),
        confidences=np.array(confidences, np.float32),
        labels=list(labels),
    )
