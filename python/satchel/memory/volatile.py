"""Memories in this process: what ``memory://`` opens, and the plainest of the backends."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from satchel.memory.backend import (
    Candidates,
    Draft,
    Filter,
    Footing,
    Query,
    Scope,
    Selection,
    Statistics,
    id_taken,
    settled,
)
from satchel.memory.namespaces import path_of
from satchel.memory.residents import Residents
from satchel.stores.base import conflict

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from satchel.memory.item import MemoryItem

__all__ = ["VolatileBackend"]


class VolatileBackend:
    """A `MemoryBackend` in memory; it is gone with the process."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int | None, bytes, Draft]] = {}
        self._numbers: dict[str, int] = {}
        self._places: dict[tuple[bytes, str | None], int] = {}
        self._keyed: Final[dict[tuple[bytes, str], list[int]]] = {}
        self._last = 0
        self._footing: Footing | None = None
        self._residents: Final = Residents()
        self._lock: Final = threading.Lock()

    async def footing(self) -> Footing | None:
        """See `MemoryBackend.footing`."""
        return self._footing

    async def settle(self, footing: Footing) -> Footing:
        """See `MemoryBackend.settle`."""
        if self._footing is None or self._footing.dimension is None:
            self._footing = footing
        return self._footing

    async def write(self, drafts: Sequence[Draft]) -> list[MemoryItem]:
        """See `MemoryBackend.write`."""
        return await asyncio.to_thread(self._write, drafts)

    async def find(
        self, selection: Selection, filters: Filter | None, *, after: int, limit: int | None
    ) -> list[tuple[int, MemoryItem]]:
        """See `MemoryBackend.find`."""
        with self._lock:
            found = [
                (number, draft.item)
                for number, (_, path, draft) in self._rows.items()
                if number > after
                and selection.takes(draft.item, path)
                and (filters is None or filters.takes(draft.item))
            ]
        return found if limit is None else found[:limit]

    async def forget(self, selection: Selection) -> int:
        """See `MemoryBackend.forget`."""
        with self._lock:
            gone = {
                number: path
                for number, (_, path, draft) in self._rows.items()
                if selection.takes(draft.item, path)
            }
            for number in gone:
                del self._numbers[self._rows.pop(number)[2].item.id]
            self._residents.drop(gone.values())
        return len(gone)

    async def statistics(self, scope: Scope, terms: Sequence[str]) -> Statistics:
        """See `MemoryBackend.statistics`."""

        def work() -> Statistics:
            with self._lock:
                return self._residents.get(scope, self._load).statistics(terms)

        return await asyncio.to_thread(work)

    async def candidates(self, scope: Scope, filters: Filter, query: Query) -> Candidates:
        """See `MemoryBackend.candidates`."""

        def work() -> Candidates:
            with self._lock:
                return self._residents.get(scope, self._load).candidates(filters, query)

        return await asyncio.to_thread(work)

    async def items(self, numbers: Sequence[int]) -> list[MemoryItem]:
        """See `MemoryBackend.items`."""
        with self._lock:
            found = (self._rows.get(number) for number in numbers)
            return [row[2].item for row in found if row is not None]

    async def vectors(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """See `MemoryBackend.vectors`."""
        with self._lock:
            dimension = (self._footing.dimension if self._footing else None) or 0
            found = np.zeros((len(numbers), dimension), np.float32)
            for place, number in enumerate(numbers):
                row = self._rows.get(number)
                if row is not None and row[2].vector is not None:
                    found[place] = row[2].vector
        return found

    async def renew(self, footing: Footing, drafts: Sequence[Draft]) -> None:
        """See `MemoryBackend.renew`."""
        with self._lock:
            fresh = {self._numbers.get(draft.item.id, 0): draft for draft in drafts}
            if {number: row[2].item for number, row in self._rows.items()} != {
                number: draft.item for number, draft in fresh.items()
            }:
                raise conflict(len(self._rows), len(fresh))
            self._rows = {
                number: (place, path, fresh[number])
                for number, (place, path, _) in self._rows.items()
            }
            self._footing = footing
            self._residents.drop()

    async def close(self) -> None:
        """See `MemoryBackend.close`; what is kept stays."""

    def _write(self, drafts: Sequence[Draft]) -> list[MemoryItem]:
        with self._lock:
            for draft in drafts:
                number = self._numbers.get(draft.item.id)
                if number is not None and self._rows[number][2].item.namespace != (
                    draft.item.namespace
                ):
                    raise id_taken()
            written = [self._put(draft) for draft in drafts]
            # As they stand now: a later draft may have superseded an earlier one.
            return [self._rows[number][2].item for number in written]

    def _put(self, draft: Draft) -> int:
        path = path_of(draft.item.namespace)
        keyed = self._keyed.setdefault((path, draft.item.key or ""), [])
        others = [self._rows[number][2].item for number in keyed if number in self._rows]
        for item in settled(draft.item, others):
            number = self._numbers.get(item.id)
            if item.id != draft.item.id and number is not None:
                place, _, old = self._rows[number]
                self._rows[number] = (place, path, replace(old, item=item))
                self._residents.superseded([number])
                continue
            fresh = replace(draft, item=item)
            if number is not None:
                self._rows[number] = (self._rows[number][0], path, fresh)
                if item.key is not None and number not in keyed:
                    keyed.append(number)
                self._residents.drop([path])
            else:
                self._last += 1
                number = self._last
                self._numbers[item.id] = number
                if item.key is not None:
                    keyed.append(number)
                place = self._next_place(path, item)
                self._rows[number] = (place, path, fresh)
                self._residents.added([(number, place, path, fresh)])
        return self._numbers[draft.item.id]

    def _next_place(self, path: bytes, item: MemoryItem) -> int | None:
        if item.kind != "episodic":
            return None
        group = (path, item.source.session_id)
        self._places[group] = self._places.get(group, -1) + 1
        return self._places[group]

    def _load(self, scope: Scope) -> Iterator[tuple[int, int | None, bytes, Draft]]:
        for number, (place, path, draft) in self._rows.items():
            if scope.holds(path):
                yield number, place, path, draft
