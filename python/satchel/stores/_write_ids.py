"""Ids of writes, so that a session knows a write that is sent again.

A write whose answer was lost is sent again, and by then others may have written any number of
times. So a session does not remember the newest writes but the newest write of each slot: a store
gives every write that is under way a slot of its own, and a slot has one write at a time.
"""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["ID_BYTES", "NEW_WRITE", "REMEMBERED", "SLOT_BYTES", "WriteIds"]

ID_BYTES: Final = 8
SLOT_BYTES: Final = 6
"""The first bytes of an id, random; the rest counts the writes of the slot."""

REMEMBERED: Final = 64
"""Slots whose newest write a session remembers: as many writers may be busy at once."""

NEW_WRITE: Final = object()
"""Stands for the id of a write until it is sent."""


class WriteIds:
    """The slots of one store. Used in one thread at a time."""

    def __init__(self) -> None:
        self._idle: list[tuple[bytes, int]] = []
        self._process = os.getpid()

    @contextmanager
    def taken(self) -> Generator[bytes]:
        """The id of a write that lasts as long as the block, however often it is sent."""
        if self._process != os.getpid():
            # A forked process has slots of its own: two writes under one id would be one.
            self._idle, self._process = [], os.getpid()
        slot, count = self._idle.pop() if self._idle else (secrets.token_bytes(SLOT_BYTES), 0)
        yield slot + count.to_bytes(ID_BYTES - SLOT_BYTES)
        # A slot whose write was given up is not used again: the write may still arrive, and would
        # push a later one out of the session's memory.
        self._idle.append((slot, (count + 1) % (1 << 8 * (ID_BYTES - SLOT_BYTES))))
