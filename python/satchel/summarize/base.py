"""What a summarizer is asked and what it answers: the protocol, and nothing else.

A summarizer only writes prose. Which steps a summary covers, what must stay word for word, whether
an answer is good enough and what happens if it is not, is decided elsewhere, so a summarizer can be
a few lines around any model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.counting import Counter
    from satchel.usage import Usage

__all__ = [
    "Language",
    "SuffixRequest",
    "SuffixSummarizer",
    "Summarizer",
    "SummaryRequest",
    "SummaryResult",
]

Language = Literal["en", "ko"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryRequest:
    """What is to be summarised.

    Attributes:
        transcript: the part of the conversation, as text: one element a message, with its number
            and role; content is escaped, so none of it can end its element or begin another.
        previous: the summary of everything before, which the new one goes on from; None if there
            is none.
        max_tokens: the most tokens of the answer, by ``counter``.
        language: the language of instructions and answer.
        focus: what the answer should dwell on, in the caller's words; None for nothing.
        counter: counts the answer.
    """

    transcript: str
    previous: str | None
    max_tokens: int
    language: Language
    focus: str | None
    counter: Counter


@dataclass(frozen=True, slots=True, kw_only=True)
class SuffixRequest:
    """A summary asked for at the end of the live conversation, whose prefix the provider caches.

    Attributes:
        call: arguments of the newest request, as ``Window.as_kwargs`` gave them; a call that begins
            with them unchanged is read from the cache.
        dialect: their dialect.
        instruction: what to say at the end, as the user.
        max_tokens: the most tokens of the answer, by the caller's counter.
    """

    call: Mapping[str, Any]
    dialect: str
    instruction: str
    max_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryResult:
    """What a summarizer wrote.

    Attributes:
        text: the summary.
        usage: what the provider says it cost; None if nothing was asked of one.
    """

    text: str
    usage: Usage | None = None


@runtime_checkable
class Summarizer(Protocol):
    """Writes summaries. May also have ``input_tokens``: the most tokens that a request may take."""

    @property
    def name(self) -> str:
        """What reports call it."""
        ...

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        """The summary of ``request.transcript``, and of what ``request.previous`` says.

        Raises:
            SummaryError: the provider refused, or answered with something else.
        """
        ...


@runtime_checkable
class SuffixSummarizer(Protocol):
    """A summarizer that can also ask at the end of the live conversation.

    It asks the conversation's own model, by its own client: another model has nothing cached.
    """

    @property
    def suffix_dialect(self) -> str:
        """The dialect of the conversations that it can go on with."""
        ...

    async def summarize_suffix(self, request: SuffixRequest, /) -> SummaryResult:
        """The summary that ``request.instruction`` asks for.

        Raises:
            SummaryError: the provider refused, or answered with something else.
        """
        ...
