"""Candidates from rows that a database gave: the same figures as from columns in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from satchel.memory.backend import Candidates
from satchel.memory.bm25 import bm25

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.memory.backend import Query

__all__ = ["Fetched", "candidates_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A row of a database, as far as it is ranked.

    Attributes:
        number: what the backend calls it.
        path: its namespace.
        session_id: the session it comes from.
        place: its place in that session; None for none.
        terms: its terms, repeated as often as they occur.
        dense: cosine with the query.
        time: when it was said.
        confidence: how sure it is.
        label: the name that it begins with.
    """

    number: int
    path: bytes
    session_id: str | None
    place: int | None
    terms: Sequence[str]
    dense: float
    time: float
    confidence: float
    label: str | None


def candidates_of(rows: Sequence[Fetched], query: Query) -> Candidates:
    """The rows, which are distinct, as candidates."""
    ordered = sorted(rows, key=lambda row: row.number)
    counts = np.array(
        [[row.terms.count(term) for term in query.terms] for row in ordered], np.int64
    ).reshape(len(ordered), len(query.terms))
    lengths = np.array([len(row.terms) for row in ordered], np.float32)
    lexical = np.zeros(len(ordered), np.float32)
    for column, weight in enumerate(query.weights):
        # One after the other, as with columns in memory: the sums are the same to the last bit.
        holders = np.flatnonzero(counts[:, column])
        held = counts[holders, column]
        lexical[holders] += weight * bm25(held, lengths[holders], query.mean_terms)
    places = {
        (row.path, row.session_id, row.place): at
        for at, row in enumerate(ordered)
        if row.place is not None
    }

    def beside(row: Fetched, step: int) -> int:
        if row.place is None:
            return -1
        return places.get((row.path, row.session_id, row.place + step), -1)

    return Candidates(
        numbers=np.array([row.number for row in ordered], np.int64),
        lexical=lexical,
        dense=np.array([row.dense for row in ordered], np.float32),
        previous=np.array([beside(row, -1) for row in ordered], np.int64),
        following=np.array([beside(row, 1) for row in ordered], np.int64),
        times=np.array([row.time for row in ordered], np.float64),
        confidences=np.array([row.confidence for row in ordered], np.float32),
        labels=[row.label for row in ordered],
    )
