"""The log of a session in memory: newest entries as rows, older ones in blocks.

A garbage collector walks every tuple and list there is, at each of its full runs. Ten thousand
entries of five fields each held up an event loop for 10 ms; blocks are a few objects without
anything to walk in.
"""

from __future__ import annotations

from array import array
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from satchel.stores.entries import EVENT, Block, Entries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.stores.base import Entry

    Row = tuple[int, bytes, str | None]
    """Form, payload, key."""

__all__ = ["IN_BLOCK", "MemoryLog", "block_of_rows", "row_of"]

IN_BLOCK: Final = 256
"""Entries that are put together."""


def row_of(entry: Entry) -> Row:
    """What is kept of an entry; its number is its place."""
    return (EVENT if entry.kind == "event" else 0, entry.payload, entry.key)


class MemoryLog:
    """Entries in order, the first of which has the number 1."""

    __slots__ = ("_blocks", "_rows", "_sealed", "keys")

    def __init__(self) -> None:
        self._blocks: list[Block] = []
        self._sealed = 0
        self._rows: list[Row] = []
        self.keys: set[str] = set()

    def __len__(self) -> int:
        return self._sealed + len(self._rows)

    def add(self, rows: Sequence[Row]) -> int:
        """Adds entries, those without whose key is there; how many that are."""
        known, before = self.keys, len(self)
        for row in rows:
            key = row[2]
            if key is not None:
                if key in known:
                    continue
                known.add(key)
            self._rows.append(row)
        added = len(self) - before
        while len(self._rows) >= IN_BLOCK:
            self._seal(IN_BLOCK)
        return added

    def add_blocks(self, blocks: Sequence[Block]) -> int:
        """As `add`, of entries that were put together before; their numbers do not count."""
        keys = [key for block in blocks for key in block.keys or () if key is not None]
        new = set(keys)
        if len(new) < len(keys) or not self.keys.isdisjoint(new):
            return self.add([row for block in blocks for row in _rows_of(block)])
        self.keys |= new
        before = len(self)
        self._seal(len(self._rows))
        for block in blocks:
            self._blocks.append(replace(block, first=self._sealed + 1))
            self._sealed += len(block)
        return len(self) - before

    def _seal(self, count: int) -> None:
        """Puts the oldest rows together."""
        if count:
            self._blocks.append(block_of_rows(self._sealed + 1, self._rows[:count]))
            self._sealed += count
            del self._rows[:count]

    def between(self, start: int, end: int) -> Entries:
        """The entries from place ``start`` up to ``end``."""
        blocks = [*self._blocks, block_of_rows(self._sealed + 1, self._rows)]
        return Entries(
            block.cut(max(0, start + 1 - block.first), min(len(block), end + 1 - block.first))
            for block in blocks
            if block.first <= end and start + 1 < block.first + len(block)
        )

    def cut(self, length: int) -> None:
        """Lets go of the entries behind the first ``length``, and of their keys."""
        if length >= len(self):
            return
        self.keys -= self.between(length, len(self)).keys
        del self._rows[max(0, length - self._sealed) :]
        while self._blocks and self._sealed > length:
            last = self._blocks.pop()
            self._sealed = last.first - 1
            if self._sealed < length:
                self._rows = _rows_of(last.cut(0, length - self._sealed))

    def copied(self, length: int) -> MemoryLog:
        """Another log of the first ``length`` entries."""
        found = MemoryLog()
        found._blocks, found._rows = list(self._blocks), list(self._rows)
        found._sealed, found.keys = self._sealed, set(self.keys)
        found.cut(length)
        return found


def _rows_of(block: Block) -> list[Row]:
    keys = block.keys or [None] * len(block)
    return list(zip(block.forms, block.contents(), keys, strict=True))


def block_of_rows(first: int, rows: Sequence[Row]) -> Block:
    """The rows as one run, the first of which has this number."""
    keys = [row[2] for row in rows]
    has_keys = any(key is not None for key in keys)
    return Block(
        first,
        bytes(row[0] for row in rows),
        array("Q", map(len, (row[1] for row in rows))),
        keys if has_keys else None,
        b",".join([row[1] for row in rows]),
    )
