"""Summaries of one session: at most one at a time, in the background or waited for.

A summary is written beside the conversation and comes in when it is there. Whatever happens to it,
the history stays as it is: a summary that failed, came too late or was cancelled changes nothing.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel._outbox import Outbox, note_of
from satchel.compaction import (
    CompactionReport,
    is_worth_it,
    part_due,
    part_summarized,
    redacted,
    summary_event,
)
from satchel.errors import CompactionError, StoreError, SummaryError
from satchel.policy import SummarySettings
from satchel.summarize.extractive import ExtractiveSummarizer
from satchel.summarize.writing import Attempt, LivePrefix, Written, write_summary
from satchel.telemetry import observed_compaction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from satchel._compaction_report import Outcome
    from satchel._session_log import SessionLog
    from satchel.compaction import SummaryPart
    from satchel.policy import Policy
    from satchel.summarize.base import Summarizer
    from satchel.summarize.writing import Patience
    from satchel.window import Window
    from satchel.working_set import WorkingSet

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
        redactor: what a summary passes before anybody sees it.
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
        redactor: Callable[[str], object] | None,
    ) -> None:
        self._redactor: Final = redactor
        self._log: Final = log
        self._lock: Final = lock
        self._settings: Final = policy.summary
        has_own = any(isinstance(one, ExtractiveSummarizer) for one in chain)
        falls_back = policy.summary is None or policy.summary.fallback or not chain
        last = (ExtractiveSummarizer(),) if falls_back and not has_own else ()
        self._chain: Final = (*chain, *last)
        self._patience: Final = patience
        self._flushed: Final = flushed
        self._outbox: Final = Outbox(log.store, log.session_id)
        self._task: asyncio.Task[CompactionReport] | None = None
        self._catching_up: asyncio.Task[None] | None = None
        self._is_closed = False
        # The part that nobody could summarise.
        self._gave_up: tuple[int, int] | None = None
        self.newest: CompactionReport | None = None

    @property
    def _is_writing(self) -> bool:
        return self._task is not None and not self._task.done()

    async def consider(self, asked: Window | None) -> None:
        """Begins a summary if one is due and none is being written; the caller holds the lock.

        Args:
            asked: the newest window that was given out.
        """
        settings = self._settings
        if settings is None or self._is_writing or self._is_closed:
            return
        part = await self._log.run(lambda working_set: part_due(working_set, settings))
        if part is None or not is_worth_it(part, settings):
            return
        if (part.first, part.end) == self._gave_up:
            return  # until there is more to say
        self._begin(part, settings, None, asked)

    def _begin(
        self,
        part: SummaryPart,
        settings: SummarySettings,
        focus: str | None,
        asked: Window | None,
    ) -> asyncio.Task[CompactionReport]:
        """Begins a summary; the caller holds the lock, and none is being written."""
        self._task = asyncio.create_task(self._summarize(part, settings, focus, asked))
        self._task.add_done_callback(_retrieved)
        return self._task

    async def settle(self) -> None:
        """Waits for the summary that is being written, where the policy wants that."""
        settings = self._settings
        if settings is not None and not settings.background and self._task is not None:
            await asyncio.wait([self._task])

    async def compact(
        self, *, force: bool, focus: str | None, asked: Window | None
    ) -> CompactionReport:
        """Summarises now; waits for a summary that is being written first.

        Raises:
            CompactionError: ``nothing_to_compact`` (with ``force``), ``summary_failed``.
        """
        settings = self._settings or SummarySettings()
        while True:
            if self._is_writing and self._task is not None:
                await asyncio.wait([self._task])
            async with self._lock:
                if self._is_writing:
                    continue  # somebody who waited as well was faster
                await self._log.refresh()
                part = await self._log.run(
                    lambda working_set: part_due(working_set, settings, force=force)
                )
                if part is None and force:
                    message = "nothing is left that a summary could cover"
                    raise CompactionError(message, code="nothing_to_compact", value=0)
                if part is None:
                    return CompactionReport(outcome="nothing_to_compact")
                if not force and not is_worth_it(part, settings):
                    return CompactionReport(outcome="not_worth_it", covers=(part.first, part.end))
                task = self._begin(part, settings, focus, asked)
                break
        report = await task
        if report.outcome == "failed":
            tried = "; ".join(f"{one.summarizer}: {one.message}" for one in report.failures)
            message = f"the history is as it was: no usable summary ({tried})"
            raise CompactionError(message, code="summary_failed", value=report.requests)
        return report

    def open(self) -> None:
        """Lets summaries be begun."""
        self._is_closed = False

    async def close(self) -> None:
        """Gives up a summary that is being written; none is begun after this."""
        self._is_closed = True
        for task in (self._task, self._catching_up):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.wait([task])

    def catch_up(self) -> None:
        """Hands on, in the background, what an earlier process could not; after the log is open."""
        if self._flushed is not None:
            self._catching_up = asyncio.create_task(self._hand_on_what_is_left())
            self._catching_up.add_done_callback(_retrieved)

    async def _hand_on_what_is_left(self) -> None:
        notes = await self._outbox.notes()
        if not notes or self._flushed is None:
            return
        async with self._lock:
            await self._log.refresh()
            events = {
                note_of(event): event
                for event in self._log.working_set.events
                if event["kind"] == "summary"
            }
            # A note without its summary is of one that did not come into the log, or left it.
            await self._outbox.strike([note for note in notes if note not in events])
            left = [(note, events[note]) for note in notes if note in events]
            parts = await self._log.run(
                lambda inside: [(note, *part_summarized(inside, event)) for note, event in left]
            )
        for note, part, written in parts:
            await self._flushed(part, written)
            await self._outbox.strike([note])

    async def _summarize(
        self,
        part: SummaryPart,
        settings: SummarySettings,
        focus: str | None,
        asked: Window | None,
    ) -> CompactionReport:
        """Has a part summarised, and tells what came of it."""
        before = self.newest
        with observed_compaction(self._log.session_id) as reports:
            try:
                return await self._write(part, settings, focus, asked)
            finally:
                if self.newest is not None and self.newest is not before:
                    reports.append(self.newest)

    async def _write(
        self,
        part: SummaryPart,
        settings: SummarySettings,
        focus: str | None,
        asked: Window | None,
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
                live=_live_prefix(part, settings, asked),
            )
            if self._redactor is not None:
                written = await asyncio.to_thread(
                    redacted, written, self._redactor, working_set.counter, settings.max_tokens
                )
        except SummaryError as error:
            self._gave_up = (part.first, part.end)
            self.newest = CompactionReport(
                outcome="failed",
                covers=(part.first, part.end),
                requests=error.value or 0,
                failures=(Attempt(summarizer="all", code=error.code, message=str(error)),),
            )
            return self.newest
        try:
            async with self._lock:
                self.newest, event = await self._apply(part, written, settings)
        except (StoreError, SummaryError) as error:
            is_store = isinstance(error, StoreError)
            name = "store" if is_store else "redactor"
            failure = Attempt(summarizer=name, code=error.code, message=str(error))
            report = _reported("failed", part, written)
            self.newest = replace(report, failures=(*written.failures, failure))
            if is_store:
                raise
            self._gave_up = (part.first, part.end)
            return self.newest
        if self.newest.is_done and self._flushed is not None:
            try:
                await self._flushed(part, written)
                await self._outbox.strike([note_of(event)])
            except Exception as error:  # noqa: BLE001 - a hook of the caller's may raise anything
                # The summary is in the log all the same.
                _LOG.error("handing on what a summary covers failed: %s", type(error).__name__)
                message = f"it raised {type(error).__name__}"
                failure = Attempt(summarizer="flushed", code="flush_failed", message=message)
                failures = (*self.newest.failures, failure)
                self.newest = replace(self.newest, failures=failures)
        return self.newest

    async def _apply(
        self, part: SummaryPart, written: Written, settings: SummarySettings
    ) -> tuple[CompactionReport, Mapping[str, Any]]:
        """Lets the summary into the log, if what it stands for is still there; with its event."""
        log = self._log
        report = _reported("overtaken", part, written)
        await log.refresh()
        if not await log.run(lambda inside: _is_there(inside, part, settings)):
            return report, {}
        before = await log.run(_shown_tokens)
        event = await log.run(
            lambda inside: summary_event(inside, part, written, settings, self._redactor)
        )
        if self._flushed is not None:
            await self._outbox.add(note_of(event))
        try:
            await log.change(lambda inside: inside.apply(event))
        except StoreError as error:
            if error.code == "version_conflict":
                return report, {}
            raise
        after = await log.run(_shown_tokens)
        freed = before - after - written.tokens
        return replace(report, outcome="summarized", freed_tokens=freed), event


def _reported(outcome: Outcome, part: SummaryPart, written: Written) -> CompactionReport:
    return CompactionReport(
        outcome=outcome,
        covers=(part.first, part.end),
        summary_tokens=written.tokens,
        summarizer=written.summarizer,
        requests=written.requests,
        failures=written.failures,
        usage=written.usage,
    )


def _live_prefix(
    part: SummaryPart, settings: SummarySettings, asked: Window | None
) -> LivePrefix | None:
    """The newest request, if a summary of the part may be asked for at its end."""
    if settings.request != "suffix" or asked is None or asked.dialect != part.dialect:
        return None
    kept = asked.report.messages - part.end
    return (
        LivePrefix(call=asked.as_kwargs(), dialect=part.dialect, kept=kept) if kept >= 0 else None
    )


def _is_there(working_set: WorkingSet, part: SummaryPart, settings: SummarySettings) -> bool:
    """Whether the log still has the part, and no other summary of it."""
    found = part_due(working_set, settings, force=True)
    return (
        found is not None
        and found.first == part.first
        # After a rewind the newest of them may be what is to be kept now.
        and found.end >= part.end
        and found.previous == part.previous
        and list(found.messages)[: part.end - part.first] == list(part.messages)
    )


def _shown_tokens(working_set: WorkingSet) -> int:
    return int(working_set.columns.tokens.sum(dtype=np.uint64))


def _retrieved(task: asyncio.Task[Any]) -> None:
    """Lets nothing that went wrong in the background be lost without a word."""
    if not task.cancelled() and task.exception() is not None:
        _LOG.error(
            "work on a summary in the background failed: %s", type(task.exception()).__name__
        )
