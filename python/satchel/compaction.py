"""What a summary covers, whether it is worth asking for, and the event that it becomes.

Pure decisions over a working set: nothing here waits, asks a model or writes to a store. That is
`satchel.session`.
"""

# A part of the working set in a file of its own.
# pyright: reportPrivateUsage=false

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

# Loaded with the session: in the middle of a run it would hold the interpreter for 30 ms.
import numpy as np

from satchel import _core
from satchel._compaction_report import CompactionReport
from satchel.errors import SummaryError
from satchel.summarize.receipts import receipts_of
from satchel.summarize.writing import Written

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from satchel.counting import Counter
    from satchel.policy import SummarySettings
    from satchel.working_set import WorkingSet

__all__ = ["CompactionReport", "SummaryPart", "part_due", "part_summarized", "summary_event"]

_RECENT_OUTPUTS: Final = 3
"""Places from the end within which tool outputs are never pruned; that of `prune_tool_outputs`."""

_LEAST_GAIN: Final = 1.5
"""How many times its own tokens a summary must free, or it is not worth a request."""


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
    # Without its answer the newest request would be answered once more.
    found = era.summary_range(max(1, settings.keep_messages))
    if found is None:
        return None
    first, end = found
    # A summary covers what came in one dialect.
    first = max(first, era.start)
    held_from = _held_from(working_set, first)
    if not force and settings.above_messages is not None:
        held = len(working_set) - held_from
        if held <= settings.above_messages:
            return None
    # Asked before every window, so without an object for each step.
    columns = working_set.columns
    if not force and settings.above_share is not None:
        said = working_set.events
        if settings.count_pruned_to is None:
            fixed = sum(_in_force(said, name) for name in ("system_tokens", "tools_tokens"))
            used = fixed + int(columns.tokens.sum(dtype=np.uint64))
        else:
            used = _content_tokens(working_set, held_from, settings.count_pruned_to)
        if used <= int(settings.above_share * _in_force(said, "budget")):
            return None
    inside = (columns.first >= first) & (columns.end <= end)
    firsts, ends = columns.first[inside], columns.end[inside]
    if not len(firsts):
        return None
    steps = len(firsts)
    if settings.cover_messages is not None:
        # The oldest steps that together have at most so many messages, at least one.
        steps = max(1, int((ends <= held_from + settings.cover_messages).sum()))
    first, end = int(firsts[0]), int(ends[steps - 1])
    offset = era.start
    return SummaryPart(
        first=first,
        end=end,
        messages=era.messages_between(first - offset, end - offset),
        dialect=era.dialect,
        shown_tokens=int(columns.tokens[inside][:steps].sum(dtype=np.uint64)),
        previous=era.summary,
    )


def is_worth_it(part: SummaryPart, settings: SummarySettings) -> bool:
    """Whether a summary of these settings could free more than it costs.

    Settings that count messages want few messages, whatever that frees.
    """
    if settings.above_messages is not None:
        return True
    return part.shown_tokens >= _LEAST_GAIN * (settings.max_tokens + settings.receipt_tokens)


def redacted(
    written: Written, redactor: Callable[[str], object], counter: Counter, max_tokens: int
) -> Written:
    """The summary as its redactor leaves it, within its limit.

    Raises:
        SummaryError: ``summary_failed`` if the redactor fails: what was not looked at is not used.
    """
    text = counter.truncate(_redacted(written.text, redactor), max_tokens)
    return replace(written, text=text, tokens=counter.count(text))


def _redacted(text: str, redactor: Callable[[str], object]) -> str:
    try:
        found = redactor(text)
        found = getattr(found, "text", found)
    except Exception as error:
        message = f"the redactor raised {type(error).__name__}"
        raise SummaryError(message, code="summary_failed") from error
    if not isinstance(found, str):
        message = f"the redactor returned {type(found).__name__}, not a text"
        raise SummaryError(message, code="summary_failed")
    return found


def part_summarized(
    working_set: WorkingSet, event: Mapping[str, Any]
) -> tuple[SummaryPart, Written]:
    """What a summary of the log covers, and the summary, as far as the log tells.

    Tokens of the part, requests and usage are not in the log: they are 0 and None.
    """
    first, end = event["covers"]
    summaries = [one for one in working_set.events if one["kind"] == "summary"]
    before = [one for one in summaries if one["covers"][1] <= first]
    eras = [era for era in working_set._eras if era.start <= first]  # noqa: SLF001 - as above
    part = SummaryPart(
        first=first,
        end=end,
        messages=working_set.messages[first:end],
        dialect=eras[-1].dialect if eras else working_set.dialect,
        shown_tokens=0,
        previous=before[-1] if before else None,
    )
    written = Written(
        text=event["text"],
        summarizer="log",
        tokens=working_set.counter.count(event["text"]),
        source_tokens=0,
        requests=0,
        failures=(),
        usage=None,
    )
    return part, written


def summary_event(
    working_set: WorkingSet,
    part: SummaryPart,
    written: Written,
    settings: SummarySettings,
    redactor: Callable[[str], object] | None = None,
) -> dict[str, Any]:
    """The event by which the summary stands for its part.

    Receipts are quoted as they stand in the log or not at all: of what the redactor would change
    there is none.

    Raises:
        SummaryError: ``summary_failed`` if the redactor fails.
    """
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
        "receipts": [
            one
            for one in receipts
            if one["text"] not in written.text
            and (redactor is None or _redacted(one["text"], redactor) == one["text"])
        ],
    }


def _in_force(said: Sequence[Mapping[str, Any]], name: str) -> int:
    """What the newest settings say that say it; 0 if none do."""
    return next((event[name] for event in reversed(said) if name in event), 0)


def _held_from(working_set: WorkingSet, first: int) -> int:
    """The first message that counts as held beside the summary, where ``first`` may be covered.

    The goal stays in the window whatever covers it; before the first summary it is one of the
    messages that the summary goes on from.
    """
    era = working_set._era  # noqa: SLF001 - a part of the working set in a file of its own
    if era.summary is not None or first <= era.start:
        return first
    goal = _core.describe_message(era.messages[first - 1 - era.start], era.dialect)
    return first - 1 if goal["role"] == "user" else first


def _content_tokens(working_set: WorkingSet, held_from: int, most_chars: int) -> int:
    """Tokens of system prompt, summary and held texts, old tool outputs as if they were pruned.

    Only content counts, as in `token_window` with a counter.
    """
    era, counter = working_set._era, working_set.counter  # noqa: SLF001 - as above
    summary = "" if era.summary is None else era.summary["text"]
    system = working_set._system  # noqa: SLF001 - as above
    texts = [summary, system if isinstance(system, str) else ""]
    messages = era.messages[: held_from - era.start] if era.summary is None else []
    # Instructions in the history count always, the rest from where it is held.
    for message in messages:
        texts += _texts_of(message, era.dialect)
    held = era.messages_between(held_from - era.start, len(era.core))
    for place, message in enumerate(held):
        is_old = len(held) - place > _RECENT_OUTPUTS
        texts += _texts_of(message, era.dialect, most_chars if is_old else None)
    return int(counter.count_many(texts).sum())


def _texts_of(message: object, dialect: str, most_chars: int | None = None) -> list[str]:
    found: list[str] = []
    for part in _core.describe_message(message, dialect)["parts"]:
        if part["kind"] in ("text", "result"):
            text = bytes(part["page"]).decode("utf-8", "replace")
            is_cut = part["kind"] == "result" and most_chars is not None and len(text) > most_chars
            # The note that pruning leaves behind is not counted, as by its author.
            found.append(text[:most_chars] if is_cut else text)
    return found
