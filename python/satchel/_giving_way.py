"""Long loops of Python in a worker thread, that let other threads run in between."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["giving_way"]

_T = TypeVar("_T")

_PAUSE_S = 0.000_05
"""Long enough for a thread that waits for the interpreter to get it."""


def giving_way(items: Iterable[_T], *, every: int = 32) -> Iterator[_T]:
    """The items; after ``every`` of them other threads run, the event loop's first of all.

    The interpreter changes threads only every 5 ms, and with two threads at work an event loop
    waits for several such turns.
    """
    for place, item in enumerate(items, 1):
        yield item
        if place % every == 0:
            time.sleep(_PAUSE_S)
