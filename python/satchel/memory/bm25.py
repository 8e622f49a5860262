"""BM25: what a term in a text is worth.

Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009),
with the inverse document frequency that Lucene uses, which is never negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["K1", "B", "bm25", "inverse_frequency"]

K1: Final = 1.2
"""How soon a term that is repeated counts no more."""

B: Final = 0.75
"""How much a long text must hold more."""


def bm25(
    counts: NDArray[Any], lengths: NDArray[np.float32], mean_length: float
) -> NDArray[np.float32]:
    """The saturated frequency of a term: how often in each text, whose lengths are in terms."""
    norm = 1.0 - B + B * lengths / max(mean_length, 1.0)
    found: NDArray[np.float32] = (counts * (K1 + 1.0) / (counts + K1 * norm)).astype(np.float32)
    return found


def inverse_frequency(items: int, holding: NDArray[np.int64]) -> NDArray[np.float32]:
    """What terms are worth that ``holding`` of ``items`` texts hold."""
    rare: NDArray[np.float64] = np.log1p((items - holding + 0.5) / (holding + 0.5))
    return rare.astype(np.float32)
