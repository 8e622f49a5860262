"""What summaries took out of a window and nobody was told of yet, kept with the session.

Before a summary enters the log its part is noted here, and struck out when the hook that hands it
on has returned. So a part whose hook failed, or whose process ended in between, is handed on when
the session is opened next: at least once, where a note alone says nothing (the log must have the
summary too).
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import StoreError
from satchel.stores.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from satchel.stores.base import SessionStore

    Note = tuple[int, int, str]
    """First message, the one behind the last, and a digest of the summary's text."""

__all__ = ["Outbox", "note_of"]

_NAME: Final = "to_hand_on"

_MOST: Final = 64
"""Notes that are kept: a hook that never returns must not let them grow for ever."""

_ROUNDS: Final = 20


def note_of(event: Mapping[str, Any]) -> Note:
    """The note of a summary's event."""
    first, end = event["covers"]
    text = str(event["text"]).encode("utf-8", "surrogatepass")
    return int(first), int(end), hashlib.sha256(text).hexdigest()[:32]


class Outbox:
    """The notes of one session.

    Args:
        store: where the session is kept.
        session_id: which one.
    """

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self._store: Final = store
        self._session_id: Final = session_id

    async def notes(self) -> list[Note]:
        """All of them, oldest first.

        Raises:
            StoreError: whatever the store says.
        """
        return (await self._read())[0]

    async def add(self, note: Note) -> None:
        """Notes a part.

        Raises:
            StoreError: whatever the store says.
        """
        await self._change(lambda notes: [*notes, note][-_MOST:])

    async def strike(self, done: Sequence[Note]) -> None:
        """Strikes parts out.

        Raises:
            StoreError: whatever the store says.
        """
        gone = set(done)
        await self._change(lambda notes: [one for one in notes if one not in gone])

    async def _read(self) -> tuple[list[Note], int]:
        found = await self._store.get_value(self._session_id, _NAME)
        if found is None:
            return [], 0
        return [(first, end, digest) for first, end, digest in decode(found.payload)], found.version

    async def _change(self, change: Callable[[list[Note]], list[Note]]) -> None:
        for _ in range(_ROUNDS):
            notes, version = await self._read()
            changed = change(notes)
            if changed == notes:
                return
            try:
                await self._store.put_value(
                    self._session_id, _NAME, encode(changed), expected_version=version
                )
            except StoreError as error:
                if error.code != "version_conflict":
                    raise
            else:
                return
        message = f"other writers were faster {_ROUNDS} times"
        raise StoreError(message, code="version_conflict")
