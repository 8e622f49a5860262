"""Summaries of one session: at most one at a time, in the background or waited for.

A summary is written beside the conversation and comes in when it is there. Whatever happens to it,
the history stays as it is: a summary that failed, came too late or was cancelled changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from satchel.compaction import CompactionReport, is_worth_it, part_due, summary_event
from satchel.errors import CompactionError, StoreError, SummaryError
from satchel.policy import SummarySettings
from satchel.summarize.extractive import ExtractiveSummarizer
from satchel.summarize.writing import Attempt, write_summary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from satchel._session_log import SessionLog
    from satchel.compaction import SummaryPart
    from satchel.policy import Policy
    from satchel.summarize.base import Summarizer
    from satchel.summarize.writing import Patience, Written

__all__ = ["Summaries"]

_LOG: Final = logging.getLogger("satchel.session")


class Summaries:
    """What summarises a session.

    Args:
        log: the session's log.
        lock: what its users hold.
        policy: says when.
        chain: who is asked; the extractive one comes last in any case.
        patience: how long answers are waited for.
        flushed: called with each part that left the window, after its summary came in.
    """

    def __init__(
        self,
        log: SessionLog,
        lock: asyncio.Lock,
        policy: Policy,
        *,
        chain: Sequence[Summarizer],
        patience: Patience | None,
        flushed: Callable[[SummaryPart, Written], Awaitable[None]] | None,
    ) -> None:
        self._log: Final = log
        self._lock: Final = lock
        self._settings: Final = policy.summary
        last = (
            ()
            if any(isinstance(one, ExtractiveSummarizer) for one in chain)
            else (ExtractiveSummarizer(),)
        )
        self._chain: Final = (*chain, *last)
        self._patience: Final = patience
        self._flushed: Final = flushed
        self._task: asyncio.Task[CompactionReport] | None = None
        self.newest: CompactionReport | None = None

    async def consider(self) -> None:
        """Begins a summary if one is due and none is being written; the caller holds the lock."""
        settings = self._settings
        if settings is None or (self._task is not None and not self._task.done()):
            return
        part = await asyncio.to_thread(part_due, self._log.working_set, settings)
        if part is None or not is_worth_it(part, settings):
            return
        self._task = asyncio.create_task(self._summarize(part, settings, None))
        self._task.add_done_callback(_retrieved)

    async def settle(self) -> None:
        """Waits for the summary that is being written, where the policy wants that."""
        settings = self._settings
        if settings is not None and not settings.background and self._task is not None:
            await asyncio.wait([self._task])

    async def compact(self, *, force: bool, focus: str | None) -> CompactionReport:
        """Summarises now; waits for a summary that is being written first.

        Raises:
            CompactionError: ``nothing_to_compact`` (with ``force``), ``summary_failed``.
        """
        if self._task is not None and not self._task.done():
            await asyncio.wait([self._task])
        settings = self._settings or SummarySettings()
        async with self._lock:
            await self._log.refresh()
            part = await asyncio.to_thread(part_due, self._log.working_set, settings, force=force)
        if part is None:
            if force:
                message = "nothing is left that a summary could cover"
                raise CompactionError(message, code="nothing_to_compact", value=0)
            return CompactionReport(outcome="nothing_to_compact")
        if not force and not is_worth_it(part, settings):
            return CompactionReport(outcome="not_worth_it", covers=(part.first, part.end))
        task = self._task = asyncio.create_task(self._summarize(part, settings, focus))
        task.add_done_callback(_retrieved)
        report = await task
        if report.outcome == "failed":
            tried = "; ".join(f"{one.summarizer}: {one.message}" for one in report.failures)
            message = f"the history is as it was: no usable summary ({tried})"
            raise CompactionError(message, code="summary_failed", value=report.requests)
        return report

    async def close(self) -> None:
        """Gives up a summary that is being written."""
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _summarize(
        self, part: SummaryPart, settings: SummarySettings, focus: str | None
    ) -> CompactionReport:
        working_set = self._log.working_set
        previous = None if part.previous is None else part.previous["text"]
        try:
            written = await write_summary(
                part.messages,
                part.dialect,
                first=part.first,
                previous=previous,
                chain=self._chain,
                counter=working_set.counter,
                max_tokens=settings.max_tokens,
                focus=focus,
                patience=self._patience,
            )
        except SummaryError as error:
            _LOG.warning("summary failed: %s", error.code)
            self.newest = CompactionReport(
                outcome="failed",
                covers=(part.first, part.end),
                requests=error.value or 0,
                failures=(Attempt(summarizer="all", code=error.code, message=str(error)),),
            )
            return self.newest
        async with self._lock:
            self.newest = await self._apply(part, written, settings)
        if self.newest.is_done and self._flushed is not None:
            await self._flushed(part, written)
        return self.newest

    async def _apply(
        self, part: SummaryPart, written: Written, settings: SummarySettings
    ) -> CompactionReport:
        """Lets the summary into the log, if what it stands for is still there."""
        log = self._log
        report = CompactionReport(
            outcome="overtaken",
            covers=(part.first, part.end),
            summary_tokens=written.tokens,
            summarizer=written.summarizer,
            requests=written.requests,
            failures=written.failures,
            usage=written.usage,
        )
        await log.refresh()
        working_set = log.working_set
        found = part_due(working_set, settings, force=True)
        is_there = (
            found is not None
            and found.first == part.first
            and found.previous == part.previous
            and working_set.messages[part.first : part.end] == list(part.messages)
        )
        if not is_there:
            return report
        before = sum(row.tokens for row in working_set.explain())
        event = await asyncio.to_thread(summary_event, working_set, part, written, settings)
        try:
            await log.change(lambda inside: inside.apply(event))
        except StoreError as error:
            if error.code == "version_conflict":
                return report
            raise
        after = sum(row.tokens for row in log.working_set.explain())
        return CompactionReport(
            outcome="summarized",
            covers=(part.first, part.end),
            freed_tokens=before - after - written.tokens,
            summary_tokens=written.tokens,
            summarizer=written.summarizer,
            requests=written.requests,
            failures=written.failures,
            usage=written.usage,
        )


def _retrieved(task: asyncio.Task[CompactionReport]) -> None:
    """Lets nothing that went wrong in the background be lost without a word."""
    if not task.cancelled() and task.exception() is not None:
        _LOG.error("a background summary failed: %s", type(task.exception()).__name__)
