"""Long loops of Python in a worker thread, that let other threads run in between."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["giving_way"]

_T = TypeVar("_T")

_TURN_S = 0.001
_PAUSE_S = 0.000_05
"""Long enough for a thread that waits for the interpreter to get it."""


def giving_way(items: Iterable[_T]) -> Iterator[_T]:
    """The items; every millisecond other threads run in between, the event loop's first of all.

    The interpreter changes threads only every 5 ms, and with two threads at work an event loop
    waits for several such turns.
    """
    began = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - began > _TURN_S:
            time.sleep(_PAUSE_S)
            began = time.perf_counter()
