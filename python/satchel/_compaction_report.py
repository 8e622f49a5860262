"""What a compaction by summary came to; plain values, which reports of windows hold too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from satchel.usage import Usage  # noqa: TC001 - pydantic reads the annotations

__all__ = ["Attempt", "CompactionReport"]

Outcome = Literal["summarized", "nothing_to_compact", "not_worth_it", "overtaken", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A try that gave no summary.

    Attributes:
        summarizer: its name.
        code: the code of the `SummaryError`.
        message: what happened, without any text of the conversation.
    """

    summarizer: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionReport:
    """What a compaction by summary came to.

    Attributes:
        outcome: ``summarized``; ``nothing_to_compact``; ``not_worth_it`` if a summary would hardly
            be smaller than what it stands for; ``overtaken`` if the log changed there meanwhile;
            ``failed`` if nobody wrote a usable summary.
        covers: first raw message that the summary covers and one past the last; None without one.
        freed_tokens: tokens that left the window, less those of the summary.
        summary_tokens: tokens of the summary.
        summarizer: who wrote it; None if nobody did.
        requests: requests that were made.
        failures: the tries that gave no summary.
        usage: what they cost, as far as providers said.
    """

    outcome: Outcome
    covers: tuple[int, int] | None = None
    freed_tokens: int = 0
    summary_tokens: int = 0
    summarizer: str | None = None
    requests: int = 0
    failures: tuple[Attempt, ...] = ()
    usage: Usage | None = None

    @property
    def is_done(self) -> bool:
        """Whether the window is smaller now."""
        return self.outcome == "summarized"
