"""What goes into an extractor, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from satchel.memory.item import Kind

__all__ = ["Finding", "Said"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One message of a conversation, as far as an extractor reads it.

    Attributes:
        role: who said it.
        text: what was said.
        index: raw index of the message in its session.
        time: when, in seconds since 1970; None for now.
    """

    role: Literal["user", "assistant"]
    text: str
    index: int
    time: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something worth keeping.

    Attributes:
        text: what is so, in a sentence that can be understood alone.
        quote: the words of the message that say it.
        message: raw index of that message.
        confidence: how sure the extractor is, 0 to 1.
        kind: as in `MemoryItem`.
        key: what it is the value of, such as ``name``; None if a newer one is no contradiction.
        speaker: who said it.
        time: when it was said, in seconds since 1970; None for now.
    """

    text: str
    quote: str
    message: int
    confidence: float
    kind: Kind = "semantic"
    key: str | None = None
    speaker: str = "user"
    time: float | None = None
