"""Satchel's memory over any store of LangGraph: what an application has already is enough.

A store of LangGraph keeps JSON under labels, and finds by label and equality: a write asks it for
the rows under the same key or of the same session, a look-up for those that are meant. Every row is
looked at again for whether it lies in the scope. Words and vectors are ranked in this process: a
recall reads its scope, page by page, and keeps it in columns until somebody writes, which each
write says in one small item of its own; that suits some ten thousand memories a namespace.
"""

# Parts of the package that are not its public face.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import base64
import hashlib
import time
from collections import OrderedDict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote
from uuid import uuid4

import numpy as np
from langgraph.store.base import BaseStore, GetOp, PutOp, SearchOp

from satchel._arguments import invalid, name_of_type
from satchel.errors import StoreError
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
from satchel.memory.item import MemoryItem, Source
from satchel.memory.namespaces import path_of
from satchel.memory.opening import embedder_of
from satchel.memory.resident import Resident
from satchel.memory.store import Memory
from satchel.stores.base import conflict
from satchel.stores.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from satchel.counting import AnyCounter
    from satchel.memory.embedders.base import Embedder
    from satchel.memory.namespaces import Namespace
    from satchel.memory.ranking import Ranking

__all__ = ["StoreMemories", "open_memory"]

_ROOT: Final = ("satchel", "memories")
_IDS: Final = ("satchel", "ids")
_ABOUT: Final = ("satchel", "about")
_STAMP: Final = "stamp"
_PAGE: Final = 500
_MOST_KNOWN: Final = 100_000
_MOST_RESIDENT: Final = 8
"""Scopes that are kept in columns."""


def open_memory(
    store: BaseStore,
    *,
    embedder: Embedder | str | None = None,
    redactor: object = ...,
    counter: AnyCounter | None = None,
    ranking: Ranking | None = None,
    clock: Callable[[], float] | None = None,
) -> Memory:
    """A long-term memory in a store of LangGraph, to be entered with ``async with``.

    Args:
        store: any ``BaseStore``; it is not closed with the memory.
        embedder: as for `satchel.open_memory`.
        redactor: likewise.
        counter: likewise.
        ranking: likewise.
        clock: likewise.

    Raises:
        InputError: ``invalid_value``.
    """
    options: dict[str, Any] = {} if clock is None else {"clock": clock}
    return Memory(
        StoreMemories(store),
        embedder=embedder_of(embedder),
        redactor=redactor,
        counter=counter,
        ranking=ranking,
        **options,
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """A memory as it is kept."""

    number: int
    place: int | None
    draft: Draft

    @property
    def path(self) -> bytes:
        return path_of(self.draft.item.namespace)

    def columns(self) -> tuple[int, int | None, bytes, Draft]:
        return self.number, self.place, self.path, self.draft


class StoreMemories:
    """A `satchel.memory.backend.MemoryBackend` over a ``BaseStore``.

    Each write is one batch: as whole as the store keeps batches. Two processes that write under one
    key at the same time may both stay current, since a ``BaseStore`` has no transactions.

    Args:
        store: where memories are kept, below the label ``satchel``.

    Raises:
        InputError: ``invalid_value`` for anything else than a ``BaseStore``.
    """

    def __init__(self, store: BaseStore) -> None:
        if not isinstance(cast("object", store), BaseStore):
            message = f"store must be a BaseStore of LangGraph, not {name_of_type(store)}"
            raise invalid(message)
        self._store: Final = store
        self._lock: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._last = 0
        self._is_sync = False
        # Where the rows are that were seen last, by their number.
        self._known: Final[dict[int, tuple[Namespace, str]]] = {}
        # Scopes as they were read, with the stamp that stood before.
        self._residents: Final[OrderedDict[bytes, tuple[object, Resident]]] = OrderedDict()

    async def footing(self) -> Footing | None:
        """See `MemoryBackend.footing`."""
        [found] = await self._do([GetOp(_ABOUT, "footing")])
        return None if found is None else Footing(**found.value)

    async def settle(self, footing: Footing) -> Footing:
        """See `MemoryBackend.settle`."""
        async with self._writing():
            found = await self.footing()
            if found is not None and found.dimension is not None:
                return found
            await self._do([PutOp(_ABOUT, "footing", asdict(footing), index=False)])
            return footing

    async def write(self, drafts: Sequence[Draft]) -> list[MemoryItem]:
        """See `MemoryBackend.write`."""
        async with self._writing():
            asked = [GetOp(_IDS, draft.item.id) for draft in drafts]
            for draft, found in zip(drafts, await self._do(asked), strict=True):
                if found is not None and tuple(found.value["at"]) != draft.item.namespace:
                    raise id_taken()
            rows = await self._touched(drafts)
            changed: dict[str, _Row] = {}
            for draft in drafts:
                self._settle_one(draft, rows, changed)
            await self._put(changed.values())
            return [rows[draft.item.id].draft.item for draft in drafts]

    async def find(
        self, selection: Selection, filters: Filter | None, *, after: int, limit: int | None
    ) -> list[tuple[int, MemoryItem]]:
        """See `MemoryBackend.find`."""
        found = [
            (row.number, row.draft.item)
            for row in await self._selected(selection)
            if row.number > after
            and selection.takes(row.draft.item, row.path)
            and (filters is None or filters.takes(row.draft.item))
        ]
        return found if limit is None else found[:limit]

    async def forget(self, selection: Selection) -> int:
        """See `MemoryBackend.forget`."""
        async with self._writing():
            gone = [
                row
                for row in await self._selected(selection)
                if selection.takes(row.draft.item, row.path)
            ]
            ops: list[PutOp] = []
            for row in gone:
                item = row.draft.item
                ops.append(PutOp(_labels(item.namespace), _key(item.id), None))
                ops.append(PutOp(_IDS, item.id, None))
                self._known.pop(row.number, None)
            if ops:
                await self._do([*ops, _stamped()])
            return len(gone)

    async def statistics(self, scope: Scope, terms: Sequence[str]) -> Statistics:
        """See `MemoryBackend.statistics`."""
        found = (await self._resident(scope)).statistics(terms)
        return replace(found, footing=await self.footing())

    async def candidates(self, scope: Scope, filters: Filter, query: Query) -> Candidates:
        """See `MemoryBackend.candidates`."""
        resident = await self._resident(scope)
        return await asyncio.to_thread(resident.candidates, filters, query)

    async def items(
        self,
        numbers: Sequence[int],
        seen: object | None = None,  # noqa: ARG002 - candidates are the store's own
    ) -> list[MemoryItem] | None:
        """See `MemoryBackend.items`."""
        rows = await self._numbered(numbers)
        if len(rows) < len(numbers):
            return None
        return [rows[number].draft.item for number in numbers]

    async def vectors(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """See `MemoryBackend.vectors`."""
        rows = await self._numbered(numbers)
        known = {
            number: row.draft.vector for number, row in rows.items() if row.draft.vector is not None
        }
        dimension = max(map(len, known.values()), default=0)
        found = np.zeros((len(numbers), dimension), np.float32)
        for at, number in enumerate(numbers):
            if number in known:
                found[at] = known[number]
        return found

    async def renew(self, footing: Footing, drafts: Sequence[Draft]) -> None:
        """See `MemoryBackend.renew`."""
        async with self._writing():
            rows = {row.draft.item.id: row for row in await self._rows(None)}
            fresh = {draft.item.id: draft for draft in drafts}
            if {name: row.draft.item for name, row in rows.items()} != {
                name: draft.item for name, draft in fresh.items()
            }:
                raise conflict(len(rows), len(fresh))
            await self._put(
                [replace(row, draft=fresh[name]) for name, row in rows.items()],
                [PutOp(_ABOUT, "footing", asdict(footing), index=False)],
            )

    async def close(self) -> None:
        """See `MemoryBackend.close`; the store stays open, it is its owner's to close."""

    # --- rows -------------------------------------------------------------------------------------

    def _writing(self) -> asyncio.Lock:
        """What one writer of this process holds; a lock belongs to one event loop."""
        loop = asyncio.get_running_loop()
        if self._lock is None or self._loop is not loop:
            self._lock, self._loop = asyncio.Lock(), loop
        return self._lock

    async def _do(self, ops: Sequence[Any]) -> list[Any]:
        if not ops:
            return []
        try:
            if not self._is_sync:
                try:
                    return await self._store.abatch(ops)
                except NotImplementedError:
                    self._is_sync = True  # as LangGraph's own SqliteStore
            return await asyncio.to_thread(self._store.batch, ops)
        except Exception as error:
            # Its own words may quote a value.
            message = f"the store of LangGraph raised {type(error).__name__}"
            raise StoreError(message, code="store_failed") from error

    async def _rows(self, scope: Scope | None, equal: dict[str, str] | None = None) -> list[_Row]:
        """The rows of a scope by their number; of all without one.

        ``equal`` has fields of `_value_of` that the store is to compare.
        """
        prefix = _ROOT if scope is None else _labels(_namespace_of(scope.start))
        found: dict[int, _Row] = {}
        offset = 0
        while True:
            op = SearchOp(
                prefix, filter=equal or None, limit=_PAGE, offset=offset, refresh_ttl=False
            )
            [page] = await self._do([op])
            # Reading a page of rows takes milliseconds.
            for row in await asyncio.to_thread(_rows_of, page):
                # Some stores take the beginning of a label for the label.
                if scope is None or scope.holds(row.path):
                    found[row.number] = row
            if len(page) < _PAGE:
                break
            offset += len(page)
        self._note(found.values())
        return [found[number] for number in sorted(found)]

    def _note(self, rows: Iterable[_Row]) -> None:
        for row in rows:
            self._known[row.number] = (row.draft.item.namespace, row.draft.item.id)
        while len(self._known) > _MOST_KNOWN:
            del self._known[next(iter(self._known))]

    async def _selected(self, selection: Selection) -> list[_Row]:
        """The rows that may be meant, as few as the store can tell."""
        if selection.ids is not None:
            named = await self._do([GetOp(_IDS, name) for name in selection.ids])
            places = [
                (tuple(cast("list[str]", found.value["at"])), name)
                for name, found in zip(selection.ids, named, strict=True)
                if found is not None
            ]
            return await self._at(dict.fromkeys(places))
        equal = {
            name: _digest(told)
            for name, told in (
                ("key", selection.key),
                ("session", selection.session_id),
                ("user", selection.user_id),
            )
            if told is not None
        }
        return await self._rows(selection.scope, equal)

    async def _at(self, places: Iterable[tuple[Namespace, str]]) -> list[_Row]:
        """The rows at these places that are there, by their number."""
        asked = [GetOp(_labels(where), _key(name), refresh_ttl=False) for where, name in places]
        found = _rows_of(one for one in await self._do(asked) if one is not None)
        self._note(found)
        return sorted(found, key=lambda row: row.number)

    async def _touched(self, drafts: Sequence[Draft]) -> dict[str, _Row]:
        """The rows that these drafts replace, supersede or follow, by their id."""
        items = [draft.item for draft in drafts]
        rows = await self._at(dict.fromkeys((item.namespace, item.id) for item in items))
        wanted: dict[tuple[Namespace, str, str], None] = {}
        for item in items:
            if item.key is not None:
                wanted[item.namespace, "key", item.key] = None
            if item.kind == "episodic":
                wanted[item.namespace, "session", item.source.session_id or ""] = None
        for namespace, name, told in wanted:
            scope = Scope.of(namespace)
            rows += [
                row
                for row in await self._rows(scope, {name: _digest(told)})
                if row.path == scope.start
            ]
        return {row.draft.item.id: row for row in rows}

    async def _numbered(self, numbers: Sequence[int]) -> dict[int, _Row]:
        if any(number not in self._known for number in numbers):
            await self._rows(None)
        places = [self._known[number] for number in numbers if number in self._known]
        rows = {row.number: row for row in await self._at(places)}
        if any(number not in rows for number in numbers):
            # Some went without a word, as by the store's own time to live: scopes are read anew.
            self._residents.clear()
        return rows

    async def _resident(self, scope: Scope) -> Resident:
        """The scope in columns: as it was read last, if nobody wrote since."""
        # Asked before the rows are read: what is written meanwhile brings another one.
        [found] = await self._do([GetOp(_ABOUT, _STAMP)])
        stamp: object = None if found is None else found.value["token"]
        known = self._residents.pop(scope.start, None)
        if known is None or stamp is None or known[0] != stamp:
            rows = await self._rows(scope)

            def made() -> Resident:
                resident = Resident()
                resident.add(row.columns() for row in rows)
                return resident

            known = stamp, await asyncio.to_thread(made)
        self._residents[scope.start] = known
        while len(self._residents) > _MOST_RESIDENT:
            self._residents.popitem(last=False)
        return known[1]

    def _settle_one(self, draft: Draft, rows: dict[str, _Row], changed: dict[str, _Row]) -> None:
        others = [
            row.draft.item
            for row in rows.values()
            if row.draft.item.namespace == draft.item.namespace
        ]
        others.sort(key=lambda item: rows[item.id].number)
        for item in settled(draft.item, others):
            old = rows.get(item.id)
            if item.id != draft.item.id and old is not None:
                row = replace(old, draft=replace(old.draft, item=item))
            elif old is not None:
                row = replace(old, draft=replace(draft, item=item))
            else:
                row = _Row(self._next_number(), _next_place(item, rows), replace(draft, item=item))
            rows[item.id] = changed[item.id] = row

    def _next_number(self) -> int:
        """A number above all before: time, and one more where the clock stands still."""
        self._last = max(self._last + 1, time.time_ns())
        return self._last

    async def _put(self, rows: Iterable[_Row], more: Sequence[PutOp] = ()) -> None:
        ops: list[PutOp] = []
        for row in rows:
            item = row.draft.item
            where = _labels(item.namespace)
            ops.append(PutOp(where, _key(item.id), _value_of(row), index=False))
            ops.append(PutOp(_IDS, item.id, {"at": list(item.namespace)}, index=False))
        # Last, so that no reader finds it before the rows.
        await self._do([*ops, *more, _stamped()])


def _stamped() -> PutOp:
    """What tells readers that somebody wrote."""
    return PutOp(_ABOUT, _STAMP, {"token": uuid4().hex}, index=False)


def _digest(told: str) -> str:
    """A text as a store of any kind can compare it."""
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _rows_of(items: Iterable[Any]) -> list[_Row]:
    return [_row_of(item.value) for item in items]


def _next_place(item: MemoryItem, rows: dict[str, _Row]) -> int | None:
    if item.kind != "episodic":
        return None
    taken = [
        row.place
        for row in rows.values()
        if row.place is not None
        and row.draft.item.namespace == item.namespace
        and row.draft.item.source.session_id == item.source.session_id
    ]
    return max(taken, default=-1) + 1


def _labels(namespace: Namespace) -> tuple[str, ...]:
    """A namespace as labels of LangGraph, which have no full stop."""
    return (*_ROOT, *(quote(one, safe="").replace(".", "%2E") for one in namespace))


def _key(name: str) -> str:
    return quote(name, safe="")


def _namespace_of(path: bytes) -> Namespace:
    """The namespace whose path this is."""
    parts = path.split(b"\x00\x01")[:-1]
    return tuple(part.replace(b"\x00\xff", b"\x00").decode() for part in parts)


def _value_of(row: _Row) -> dict[str, Any]:
    draft = row.draft
    vector = draft.vector
    fields = asdict(draft.item)
    item = draft.item
    return {
        "number": row.number,
        "place": row.place,
        # What a store is asked to compare.
        "key": None if item.key is None else _digest(item.key),
        "session": _digest(item.source.session_id or ""),
        "user": None if item.user_id is None else _digest(item.user_id),
        # As text, so that whatever the store does to JSON does nothing to it.
        "item": base64.b64encode(encode(fields)).decode(),
        "terms": base64.b64encode(encode(list(draft.terms))).decode(),
        "vector": None
        if vector is None
        else base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode(),
        "label": None
        if draft.label is None
        else base64.b64encode(draft.label.encode("utf-8", "surrogatepass")).decode(),
    }


def _row_of(value: dict[str, Any]) -> _Row:
    """The row of a value.

    Raises:
        StoreError: ``corrupt_entry``.
    """
    try:
        fields: dict[str, Any] = decode(base64.b64decode(value["item"]))
        source = Source(**fields.pop("source"))
        fields["namespace"] = tuple(fields["namespace"])
        item = MemoryItem(**fields, source=source)
        vector = value["vector"]
        label = value["label"]
        draft = Draft(
            item=item,
            terms=tuple(decode(base64.b64decode(value["terms"]))),
            vector=None
            if vector is None
            else np.frombuffer(base64.b64decode(vector), "<f4").astype(np.float32),
            label=None
            if label is None
            else base64.b64decode(label).decode("utf-8", "surrogatepass"),
        )
        return _Row(int(value["number"]), value["place"], draft)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = "a memory in the store of LangGraph cannot be read"
        raise StoreError(message, code="corrupt_entry") from error
