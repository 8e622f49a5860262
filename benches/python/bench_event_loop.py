"""The largest gap of a ticker while one event loop serves windows and summaries are being written.

A session over a long history, a summarizer that takes its time, compactions by the planner and by
summaries, and a task that wants to run every 5 ms. Whatever holds the loop, or the interpreter's
lock in another thread, shows as a gap. On a machine with other work to do, so does every moment in
which the process did not run: the second figure is of gaps without those, counted by the processor
time that the process had meanwhile; it can be too high (work in other threads that holds nothing),
not too low. A control shows what the machine does to a loop that is idle. A run of the garbage
collector stops every thread and walks all that the program holds, its modules and the caller's
10,000 messages first of all: those are set aside once they are loaded (``gc.freeze()``), as
`docs/sessions.md` advises. ``--no-freeze`` leaves them to the collector; then its longest run is
the gap, and the third figure, without it, is satchel's. Run as a script.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import statistics
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import satchel
from satchel.policy import Policy, SummarySettings
from satchel.stores import MemoryStore
from satchel.summarize import Patience, SummaryRequest, SummaryResult
from satchel.testing import generate_history, require_release

if TYPE_CHECKING:
    from collections.abc import Sequence

TICK_S: Final = 0.005
TARGET_MS: Final = 25.0


@dataclass
class Ticker:
    """Wakes every 5 ms and notes how late it was, and what was going on then.

    Attributes:
        gaps_ms: from one wake-up to the next.
        own_ms: the same, but at most 5 ms more than the processor time of the process meanwhile.
        less_ms: the same without the time of the garbage collector.
        during: what was going on at its end.
        now: what is going on.
    """

    gaps_ms: list[float] = field(default_factory=list[float])
    own_ms: list[float] = field(default_factory=list[float])
    less_ms: list[float] = field(default_factory=list[float])
    during: list[str] = field(default_factory=list[str])
    now: str = ""

    async def run(self) -> None:
        """Ticks until it is cancelled."""
        last, last_cpu, last_pause = time.perf_counter(), time.process_time(), 0.0
        while True:
            await asyncio.sleep(TICK_S)
            now, cpu, pause = time.perf_counter(), time.process_time(), COLLECTOR.so_far_s()
            gap = now - last
            own = min(gap, TICK_S + cpu - last_cpu)
            self.gaps_ms.append(gap * 1_000)
            self.own_ms.append(own * 1_000)
            self.less_ms.append(max(0.0, own - (pause - last_pause)) * 1_000)
            self.during.append(self.now)
            last, last_cpu, last_pause = now, cpu, pause


@dataclass
class Collector:
    """How long the garbage collector stopped everything.

    Attributes:
        done_s: the time of its runs that are over.
        longest_ms: that of its longest run.
    """

    done_s: float = 0.0
    longest_ms: float = 0.0
    _began: float | None = None

    def note(self, phase: str, info: dict[str, int]) -> None:
        """A callback of ``gc``."""
        del info
        if phase == "start":
            self._began = time.perf_counter()
        elif self._began is not None:
            took = time.perf_counter() - self._began
            self._began = None
            self.done_s += took
            self.longest_ms = max(self.longest_ms, took * 1_000)

    def so_far_s(self) -> float:
        """Its time, with the run whose end another thread has yet to note."""
        began = self._began
        return self.done_s + (0.0 if began is None else time.perf_counter() - began)


COLLECTOR: Final = Collector()


async def idle(seconds: float) -> Ticker:
    """The same ticker with nothing else to do."""
    ticker = Ticker()
    task = asyncio.create_task(ticker.run())
    await asyncio.sleep(seconds)
    task.cancel()
    return ticker


class Slow:
    """A summarizer that takes as long as a model does."""

    name = "slow"

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.asked = 0

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        """See `Summarizer.summarize`."""
        del request
        self.asked += 1
        await asyncio.sleep(self._seconds)
        return SummaryResult(text=f"## Progress\n- Part {self.asked} of the work is done.")


async def serve(messages: Sequence[Any], options: argparse.Namespace) -> Ticker:
    """Opens a session over the history, then runs turns until the summaries have come in."""
    ticker = Ticker()
    task = asyncio.create_task(ticker.run())
    half = len(messages) - options.turns * 2
    policy = Policy(name="bench", summary=SummarySettings(above_share=0.5, keep_messages=20))
    slow = Slow(options.seconds)
    store = MemoryStore()
    ticker.now = "opening"
    session = satchel.open_session(
        store,
        session_id="s",
        model="gpt-4o",
        budget=options.budget,
        policy=policy,
        summarizer=slow,
        patience=Patience(timeout_s=options.seconds + 60),
    )
    windows = compactions = 0
    async with session:
        ticker.now = "appending the history"
        await session.append(messages[:half])
        until = time.perf_counter() + options.seconds * options.summaries + 2
        place = half
        while place < len(messages) or time.perf_counter() < until:
            if place < len(messages):
                ticker.now = "append"
                await session.append(messages[place : place + 2])
                place += 2
            ticker.now = "window"
            window = await session.window(open_calls="synthesize")
            windows, compactions = windows + 1, window.report.compactions
            ticker.now = "idle"
            await asyncio.sleep(0.002)
        done = session.newest_compaction
    ticker.now = "opening again"
    async with satchel.open_session(
        store, session_id="s", model="gpt-4o", budget=options.budget, policy=policy
    ) as again:
        await again.window(open_calls="synthesize")
    await asyncio.sleep(0.05)
    task.cancel()
    outcome = "none" if done is None else done.outcome
    print(
        f"{len(messages):,} messages, {windows:,} windows, {compactions} compactions, "
        f"{slow.asked} summaries asked for, the newest: {outcome}"
    )
    return ticker


def report(name: str, ticker: Ticker) -> float:
    """Prints the gaps; returns the largest one that is the process's own."""
    gaps = sorted(ticker.gaps_ms)
    own, less = max(ticker.own_ms), max(ticker.less_ms)
    print(
        f"{name}: {len(gaps):,} ticks, median {statistics.median(gaps):.1f} ms, "
        f"99 % {gaps[int(0.99 * len(gaps))]:.1f}, largest {gaps[-1]:.1f}, "
        f"largest of its own {own:.1f}, without the collector {less:.1f}"
    )
    works = sorted(set(ticker.during))
    rows = list(zip(ticker.during, ticker.gaps_ms, ticker.own_ms, ticker.less_ms, strict=True))
    for work in works:
        inside = [row for row in rows if row[0] == work]
        if work:
            print(
                f"  {work}: largest {max(row[1] for row in inside):.1f} ms, "
                f"of its own {max(row[2] for row in inside):.1f}, "
                f"without the collector {max(row[3] for row in inside):.1f}"
            )
    return own


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--budget", type=int, default=60_000)
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30.0, help="what a summary takes")
    parser.add_argument("--summaries", type=int, default=2)
    parser.add_argument("--no-freeze", dest="freeze", action="store_false")
    options = parser.parse_args()
    require_release()
    messages = generate_history(options.messages, seed=7)
    satchel.counter("gpt-4o").count("warm")
    gc.collect()
    if options.freeze:
        gc.freeze()
    gc.callbacks.append(COLLECTOR.note)
    ticker = asyncio.run(serve(messages, options))
    gc.callbacks.remove(COLLECTOR.note)
    own = report("served", ticker)
    print(f"longest run of the garbage collector: {COLLECTOR.longest_ms:.1f} ms")
    report("control, an idle loop", asyncio.run(idle(5.0)))
    print(f"target {TARGET_MS:.0f} ms: {'met' if own < TARGET_MS else 'missed'}")
    return 0 if own < TARGET_MS else 1


if __name__ == "__main__":
    sys.exit(main())
