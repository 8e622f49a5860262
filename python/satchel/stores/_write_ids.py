"""Ids of writes, so that a session knows a write that is sent again.

A write whose answer was lost is sent again, and by then others may have written any number of
times. So a session does not remember the newest writes but the newest write of each slot: a store
gives every write that is under way a slot of its own, and a slot has one write at a time.
"""

from __future__ import annotations

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

    @contextmanager
    def taken(self) -> Generator[bytes]:
        """The id of a write that lasts as long as the block, however often it is sent."""
        slot, count = self._idle.pop() if self._idle else (secrets.token_bytes(SLOT_BYTES), 0)
        try:
            yield slot + count.to_bytes(ID_BYTES - SLOT_BYTES)
        finally:
            # One that was cancelled is not sent again.
            self._idle.append((slot, (count + 1) % (1 << 8 * (ID_BYTES - SLOT_BYTES))))
