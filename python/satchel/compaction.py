"""What a summary covers, whether it is worth asking for, and the event that it becomes.

Pure decisions over a working set: nothing here waits, asks a model or writes to a store. That is
`satchel.session`.
"""

# A part of the working set in a file of its own.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from satchel.summarize.receipts import receipts_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from satchel.policy import SummarySettings
    from satchel.summarize.writing import Attempt, Written
    from satchel.usage import Usage
    from satchel.working_set import WorkingSet

__all__ = ["CompactionReport", "SummaryPart", "part_due", "summary_event"]

Outcome = Literal["summarized", "nothing_to_compact", "not_worth_it", "overtaken", "failed"]

_LEAST_GAIN: Final = 1.5
"""How many times its own tokens a summary must free, or it is not worth a request."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryPart:
    """A part of a history that is to be summarised.

    Attributes:
        first: raw index of its first message.
        end: one past the raw index of its last.
        messages: the messages.
        dialect: their dialect.
        shown_tokens: what they take in the window.
        previous: the summary before; None if there is none.
    """

    first: int
    end: int
    messages: Sequence[Any]
    dialect: str
    shown_tokens: int
    previous: Mapping[str, Any] | None


def part_due(
    working_set: WorkingSet, settings: SummarySettings, *, force: bool = False
) -> SummaryPart | None:
    """The part that is to be summarised now; None if there is none.

    With ``force`` the settings' triggers do not count, only what they keep.
    """
    era = working_set._era  # noqa: SLF001 - a part of the working set in a file of its own
    found = era.summary_range(settings.keep_messages)
    if found is None:
        return None
    first, end = found
    messages = working_set.messages
    # A summary covers what came in one dialect.
    first = max(first, era.start)
    if not force and settings.above_messages is not None:
        held = len(messages) - first
        if held <= settings.above_messages:
            return None
    rows = [row for row in working_set.explain() if first <= row.first and row.end <= end]
    if settings.cover_messages is not None:
        rows = _oldest(rows, first, settings.cover_messages)
    if not rows:
        return None
    if not force and settings.above_share is not None:
        all_rows = working_set.explain()
        fixed = sum(
            working_set.events[0].get(name, 0) for name in ("system_tokens", "tools_tokens")
        )
        used = fixed + sum(row.tokens for row in all_rows)
        budget = next(
            event["budget"] for event in reversed(working_set.events) if "budget" in event
        )
        if used <= int(settings.above_share * budget):
            return None
    end = rows[-1].end
    offset = era.start
    return SummaryPart(
        first=rows[0].first,
        end=end,
        messages=era.messages[rows[0].first - offset : end - offset],
        dialect=era.dialect,
        shown_tokens=sum(row.tokens for row in rows),
        previous=era.summary,
    )


def is_worth_it(part: SummaryPart, settings: SummarySettings) -> bool:
    """Whether a summary of these settings could free more than it costs.

    Settings that count messages want few messages, whatever that frees.
    """
    if settings.above_messages is not None:
        return True
    return part.shown_tokens >= _LEAST_GAIN * (settings.max_tokens + settings.receipt_tokens)


def summary_event(
    working_set: WorkingSet, part: SummaryPart, written: Written, settings: SummarySettings
) -> dict[str, Any]:
    """The event by which the summary stands for its part."""
    previous = part.previous or {}
    receipts = receipts_of(
        part.messages,
        part.dialect,
        first=part.first,
        before=previous.get("receipts", ()),
        counter=working_set.counter,
        max_tokens=settings.receipt_tokens,
    )
    return {
        "kind": "summary",
        "covers": [part.first, part.end],
        "text": written.text,
        # What the summary quotes itself is not said twice.
        "receipts": [one for one in receipts if one["text"] not in written.text],
    }


def _oldest(rows: Sequence[Any], first: int, most: int) -> list[Any]:
    """The first of these steps that together have at most ``most`` messages, at least one."""
    found = [row for row in rows if row.end - first <= most]
    return found or list(rows[:1])
