"""Memories in this process: what ``memory://`` opens, and the plainest of the backends."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Final, TypeVar

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
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from satchel.memory.item import MemoryItem

__all__ = ["VolatileBackend"]

_T = TypeVar("_T")


class VolatileBackend:
    """A `MemoryBackend` in memory; it is gone with the process."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[int | None, bytes, Draft]] = {}
        self._numbers: dict[str, int] = {}
        self._places: dict[tuple[bytes, str | None], int] = {}
        self._keyed: Final[dict[tuple[bytes, str], set[int]]] = {}
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
        return await self._run(lambda: self._write(drafts))

    async def find(
        self, selection: Selection, filters: Filter | None, *, after: int, limit: int | None
    ) -> list[tuple[int, MemoryItem]]:
        """See `MemoryBackend.find`."""

        def work() -> list[tuple[int, MemoryItem]]:
            found = (
                (number, draft.item)
                for number, (_, path, draft) in self._rows.items()
                if number > after
                and selection.takes(draft.item, path)
                and (filters is None or filters.takes(draft.item))
            )
            return list(islice(found, limit))

        return await self._run(work)

    async def forget(self, selection: Selection) -> int:
        """See `MemoryBackend.forget`."""

        def work() -> int:
            gone = {
                number: (path, draft.item)
                for number, (_, path, draft) in self._rows.items()
                if selection.takes(draft.item, path)
            }
            for number, (path, item) in gone.items():
                del self._rows[number], self._numbers[item.id]
                self._let_go(path, item, number)
            if gone:
                kept = {
                    (path, draft.item.source.session_id) for _, path, draft in self._rows.values()
                }
                self._places = {
                    group: last for group, last in self._places.items() if group in kept
                }
            self._residents.drop(path for path, _ in gone.values())
            return len(gone)

        return await self._run(work)

    async def statistics(self, scope: Scope, terms: Sequence[str]) -> Statistics:
        """See `MemoryBackend.statistics`."""

        def work() -> Statistics:
            found = self._residents.get(scope, self._load).statistics(terms)
            return replace(found, footing=self._footing)

        return await self._run(work)

    async def candidates(self, scope: Scope, filters: Filter, query: Query) -> Candidates:
        """See `MemoryBackend.candidates`."""
        return await self._run(
            lambda: self._residents.get(scope, self._load).candidates(filters, query)
        )

    async def items(
        self,
        numbers: Sequence[int],
        seen: object | None = None,  # noqa: ARG002 - candidates are the store's own
    ) -> list[MemoryItem] | None:
        """See `MemoryBackend.items`."""

        def work() -> list[MemoryItem] | None:
            found = (self._rows.get(number) for number in numbers)
            items = [row[2].item for row in found if row is not None]
            return items if len(items) == len(numbers) else None

        return await self._run(work)

    async def vectors(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """See `MemoryBackend.vectors`."""

        def work() -> NDArray[np.float32]:
            dimension = (self._footing.dimension if self._footing else None) or 0
            found = np.zeros((len(numbers), dimension), np.float32)
            for place, number in enumerate(numbers):
                row = self._rows.get(number)
                if row is not None and row[2].vector is not None:
                    found[place] = row[2].vector
            return found

        return await self._run(work)

    async def renew(self, footing: Footing, drafts: Sequence[Draft]) -> None:
        """See `MemoryBackend.renew`."""

        def work() -> None:
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

        await self._run(work)

    async def close(self) -> None:
        """See `MemoryBackend.close`; what is kept stays."""

    async def _run(self, work: Callable[[], _T]) -> _T:
        """Does the work in a thread: it may walk all rows, or wait for another that does."""

        def locked() -> _T:
            with self._lock:
                return work()

        return await asyncio.to_thread(locked)

    def _write(self, drafts: Sequence[Draft]) -> list[MemoryItem]:
        for draft in drafts:
            number = self._numbers.get(draft.item.id)
            if number is not None and self._rows[number][2].item.namespace != (
                draft.item.namespace
            ):
                raise id_taken()
        written = [self._put(draft) for draft in drafts]
        # As they stand now: a later draft may have superseded an earlier one.
        return [self._rows[number][2].item for number in written]

    def _let_go(self, path: bytes, item: MemoryItem, number: int) -> None:
        """Forgets that an item holds under its key."""
        if item.key is not None:
            holding = self._keyed.get((path, item.key), set())
            holding.discard(number)
            if not holding:
                self._keyed.pop((path, item.key), None)

    def _put(self, draft: Draft) -> int:
        path = path_of(draft.item.namespace)
        # What holds now, and not its history: a key may be written any number of times.
        holding = sorted(self._keyed.get((path, draft.item.key or ""), ()))
        for item in settled(draft.item, [self._rows[number][2].item for number in holding]):
            number = self._numbers.get(item.id)
            if item.id != draft.item.id and number is not None:
                place, _, old = self._rows[number]
                self._rows[number] = (place, path, replace(old, item=item))
                self._keyed[path, item.key or ""].discard(number)
                self._residents.superseded([number])
                continue
            fresh = replace(draft, item=item)
            if number is not None:
                place, _, old = self._rows[number]
                if old.item.key is not None:
                    self._keyed.get((path, old.item.key), set()).discard(number)
                self._rows[number] = (place, path, fresh)
                self._residents.drop([path])
            else:
                self._last += 1
                number = self._last
                self._numbers[item.id] = number
                place = self._next_place(path, item)
                self._rows[number] = (place, path, fresh)
                self._residents.added([(number, place, path, fresh)])
            if item.key is not None and item.is_current:
                self._keyed.setdefault((path, item.key), set()).add(number)
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
