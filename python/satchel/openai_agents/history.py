"""The items that count in a session's log, kept up to date by reading only what is new.

Every ``message`` entry is an item. An event of our own, ``{"kind": "agents_cut", "keep", "drop"}``,
says that of the items so far only those from ``drop`` up to ``keep`` count. Entries of other kinds
belong to whoever else opens the session, and are passed over.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from satchel.errors import StoreError
from satchel.stores.base import Entry
from satchel.stores.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from satchel.stores.base import SessionInfo, SessionStore

__all__ = ["History", "Row", "cut_entry", "message_entries", "readable"]

_CUT: Final = "agents_cut"
_DAMAGED: Final = b""


class Row(NamedTuple):
    """An item as it is stored.

    Attributes:
        sequence: its place in the log.
        payload: its content; empty if the store could not read it.
    """

    sequence: int
    payload: bytes


@dataclass(frozen=True, slots=True)
class History:
    """What counts of a log at one moment.

    Attributes:
        rows: the items, oldest first.
        info: how the session stood; None before anything was read.
        last_cut: place of the newest event that cut; 0 for none.
    """

    rows: tuple[Row, ...] = ()
    info: SessionInfo | None = None
    last_cut: int = 0

    def continues_to(self, info: SessionInfo) -> bool:
        """Whether the log of ``info`` is this one with more at its end.

        An append moves version and length by as much, a cut only the version, and a session that
        was removed and made again has another birth.
        """
        known = self.info
        return (
            known is not None
            and known.created_at == info.created_at
            and known.length <= info.length
            and known.version - known.length == info.version - info.length
        )

    async def fetch(self, store: SessionStore, info: SessionInfo) -> list[Entry]:
        """The entries between this and ``info``; a damaged one without content.

        Raises:
            StoreError: whatever the store says of more than an entry.
        """
        after = 0 if self.info is None else self.info.length
        found: list[Entry] = []
        while after < info.length:
            try:
                more = await store.read(info.session_id, after=after, limit=info.length - after)
            except StoreError as error:
                if error.code != "corrupt_entry":
                    raise
                more = await _around_damage(store, info, after)
            if not more:
                break
            found += more
            after = more[-1].sequence
        return found

    def extended(self, entries: Iterable[Entry], info: SessionInfo) -> History:
        """The history with these entries behind it."""
        rows = list(self.rows)
        last_cut = self.last_cut
        for entry in entries:
            if entry.kind == "message":
                rows.append(Row(entry.sequence, entry.payload))
                continue
            cut = _cut_of(entry)
            if cut is not None:
                rows = rows[cut[0] : cut[1]]
                last_cut = entry.sequence
        return History(tuple(rows), info, last_cut)


async def _around_damage(store: SessionStore, info: SessionInfo, after: int) -> list[Entry]:
    """Entries behind ``after`` one by one, each that is damaged without its content."""
    found: list[Entry] = []
    for sequence in range(after + 1, info.length + 1):
        try:
            found += await store.read(info.session_id, after=sequence - 1, limit=1)
        except StoreError as error:
            if error.code != "corrupt_entry":
                raise
            found.append(Entry("message", _DAMAGED, None, sequence))
    return found


def readable(rows: Sequence[Row], most: int | None = None) -> list[Any]:
    """The newest ``most`` of the items that can be read, oldest first, each made anew."""
    found: list[Any] = []
    for row in reversed(rows):
        if most is not None and len(found) >= most:
            break
        try:
            found.append(decode(row.payload))
        except StoreError:
            continue  # passed over, as the SDK's own sessions do
    found.reverse()
    return found


def message_entries(items: Iterable[Any]) -> list[Entry]:
    """An entry for each item.

    Raises:
        InputError: ``invalid_message``, ``too_deep``.
    """
    return [Entry("message", encode(item)) for item in items]


def cut_entry(*, keep: int, drop: int = 0) -> Entry:
    """The event that leaves the items from ``drop`` up to ``keep``."""
    return Entry("event", encode({"kind": _CUT, "keep": keep, "drop": drop}))


def _cut_of(entry: Entry) -> tuple[int, int] | None:
    try:
        event: Any = decode(entry.payload)
    except StoreError:
        return None
    if not isinstance(event, dict) or event.get("kind") != _CUT:  # pyright: ignore[reportUnknownMemberType] - any JSON
        return None
    return int(event["drop"]), int(event["keep"])  # pyright: ignore[reportUnknownArgumentType] - our own
