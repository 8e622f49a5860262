"""What a trim did, for whoever asks with ``report=``."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["TrimReport"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrimReport:
    """What a trim did.

    Attributes:
        messages: messages that came in.
        kept: indices of those that are in the window, in order; a shortened one is among them.
        partial: index of the message that was shortened, or None.
        tokens: the counter's count of the window, without tools and reserve.
        budget: what the window may have: ``max_tokens`` less tools and reserve.
        overhead: tokens of the tools.
    """

    messages: int
    kept: tuple[int, ...]
    partial: int | None
    tokens: int
    budget: float
    overhead: int
