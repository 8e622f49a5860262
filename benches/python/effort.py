"""How much work a run of the benches does."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FULL", "ONCE", "QUICK", "Effort"]


@dataclass(frozen=True, slots=True)
class Effort:
    """Sizes and repetitions.

    Attributes:
        texts: characters of text a repetition counts.
        messages: messages of a long history.
        longest: messages of the longest history.
        appends: single appends that are timed on a long history.
        loop: messages of the agent loop.
        repetitions: of what takes milliseconds.
        slow_repetitions: of what takes seconds on the rival's side.
        processes: new processes started for one figure.
        memory_messages: messages whose memory is measured; growth is taken to twice as many.
        pathological_bytes: size of an input made to be slow.
    """

    texts: int
    messages: int
    longest: int
    appends: int
    loop: int
    repetitions: int
    slow_repetitions: int
    processes: int
    memory_messages: int
    pathological_bytes: int


FULL = Effort(
    texts=2_000_000,
    messages=10_000,
    longest=100_000,
    appends=1_000,
    loop=1_000,
    repetitions=9,
    slow_repetitions=5,
    processes=15,
    memory_messages=50_000,
    pathological_bytes=100_000,
)

QUICK = Effort(
    texts=300_000,
    messages=2_000,
    longest=10_000,
    appends=100,
    loop=100,
    repetitions=3,
    slow_repetitions=2,
    processes=3,
    memory_messages=5_000,
    pathological_bytes=20_000,
)

ONCE = Effort(
    texts=40_000,
    messages=300,
    longest=600,
    appends=5,
    loop=20,
    repetitions=1,
    slow_repetitions=1,
    processes=1,
    memory_messages=500,
    pathological_bytes=2_000,
)
"""For the test suite, which runs every bench once and looks at no time."""
