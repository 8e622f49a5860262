"""Sessions in the memory of this process.

For tests, and for what need not outlive the process. The reference for what the other backends do:
the obvious version of each operation, without I/O and so without waiting, but for an append of
many entries, which are put together in pieces.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from satchel._arguments import whole_number
from satchel.stores._memory_log import IN_BLOCK, MemoryLog, block_of_rows, row_of
from satchel.stores.base import (
    Lease,
    SessionInfo,
    Value,
    check_id,
    check_payload,
    checked_entries,
    checked_life,
    checked_limit,
    checked_pages,
    checked_version,
    checked_wait,
    conflict,
    exists,
    held_lease,
    lease_lost,
    not_found,
    sought,
    wrong_user,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from satchel.stores.base import Entry
    from satchel.stores.entries import Block, Entries

__all__ = ["MemoryStore"]

_MOST_SWEPT: Final = 20
"""Sessions past their end that one `open` lets go."""


@dataclass(slots=True)
class _Kept:
    """All of one session."""

    info: SessionInfo
    ttl_s: float | None
    log: MemoryLog = field(default_factory=MemoryLog)
    values: dict[str, Value] = field(default_factory=dict[str, Value])
    pages: dict[str, bytes] = field(default_factory=dict[str, bytes])
    lease: Lease | None = None
    lease_ends: float = 0.0


class MemoryStore:
    """Keeps sessions as long as it lives itself.

    Args:
        clock: gives the time in seconds since 1970; for tests.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._sessions: dict[str, _Kept] = {}
        # When sessions end, as far as it was known when they were opened.
        self._ends: list[tuple[float, str]] = []
        self._tokens = 0
        self._clock: Final = clock

    @property
    def is_durable(self) -> bool:
        """False: it ends with the process."""
        return False

    async def open(
        self, session_id: str, *, user_id: str | None = None, ttl_s: float | None = None
    ) -> SessionInfo:
        """See `SessionStore.open`."""
        check_id("session_id", session_id)
        if user_id is not None:
            check_id("user_id", user_id)
        if ttl_s is not None:
            checked_life("ttl_s", ttl_s)
        kept = self._find(session_id)
        now = self._clock()
        self._sweep(now)
        if kept is None:
            info = SessionInfo(session_id, user_id, 0, 0, created_at=now, changed_at=now)
            kept = self._sessions[session_id] = _Kept(info, ttl_s)
        elif kept.info.user_id != user_id:
            raise wrong_user()
        if ttl_s is not None:
            kept.ttl_s = ttl_s
        info = self._renewed(kept)
        if ttl_s is not None and info.expires_at is not None:
            heapq.heappush(self._ends, (info.expires_at, session_id))
        return info

    async def info(self, session_id: str) -> SessionInfo:
        """See `SessionStore.info`."""
        return self._known(session_id).info

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """See `SessionStore.append`."""
        given = list(entries)
        if len(given) <= IN_BLOCK:
            rows = list(map(row_of, checked_entries(given)))
            kept = self._known(session_id, expected_version, lease)
            return self._written(kept, kept.log.add(rows))
        blocks: list[Block] = []
        for start in range(0, len(given), IN_BLOCK):
            rows = list(map(row_of, checked_entries(given[start : start + IN_BLOCK])))
            blocks.append(block_of_rows(start + 1, rows))
            # Thousands of entries hold up the event loop for 15 ms.
            await asyncio.sleep(0)
        # From here on all of it is one piece.
        kept = self._known(session_id, expected_version, lease)
        return self._written(kept, kept.log.add_blocks(blocks))

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Entry]:
        """See `SessionStore.read`."""
        return (await self.load(session_id, after=after, limit=limit)).listed()

    async def load(self, session_id: str, *, after: int = 0, limit: int | None = None) -> Entries:
        """See `LoadingStore.load`."""
        log = self._known(session_id).log
        start = whole_number("after", after)
        most = checked_limit(limit)
        return log.between(start, len(log) if most is None else min(len(log), start + most))

    async def truncate(
        self,
        session_id: str,
        length: int,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """See `SessionStore.truncate`."""
        whole_number("length", length)
        kept = self._known(session_id, expected_version, lease)
        is_shorter = length < len(kept.log)
        kept.log.cut(length)
        return self._written(kept, 1 if is_shorter else 0)

    async def branch(
        self, session_id: str, target_id: str, *, length: int, user_id: str | None = None
    ) -> SessionInfo:
        """See `SessionStore.branch`."""
        check_id("target_id", target_id)
        whole_number("length", length)
        kept = self._known(session_id)
        if kept.info.user_id != user_id:
            raise wrong_user()
        if self._find(target_id) is not None:
            raise exists()
        log = kept.log.copied(length)
        now = self._clock()
        info = SessionInfo(
            target_id,
            user_id,
            len(log),
            len(log),
            created_at=now,
            changed_at=now,
            parent=session_id,
        )
        branched = _Kept(info, kept.ttl_s, log, pages=dict(kept.pages))
        self._sessions[target_id] = branched
        info = self._renewed(branched)
        if info.expires_at is not None:
            heapq.heappush(self._ends, (info.expires_at, target_id))
        return info

    async def get_value(self, session_id: str, name: str) -> Value | None:
        """See `SessionStore.get_value`."""
        return self._known(session_id).values.get(sought("name", name))

    async def put_value(
        self,
        session_id: str,
        name: str,
        payload: bytes,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """See `SessionStore.put_value`."""
        check_id("name", name)
        check_payload(payload)
        checked_version(expected_version)
        kept = self._known(session_id, lease=lease)
        before = kept.values.get(name)
        version = 0 if before is None else before.version
        if expected_version is not None and expected_version != version:
            raise conflict(version, expected_version)
        kept.values[name] = Value(payload, version + 1)
        self._renewed(kept)
        return version + 1

    async def value_names(self, session_id: str) -> list[str]:
        """See `SessionStore.value_names`."""
        return sorted(self._known(session_id).values)

    async def put_pages(self, session_id: str, pages: Mapping[str, bytes]) -> None:
        """See `SessionStore.put_pages`."""
        given = checked_pages(pages)
        kept = self._known(session_id)
        for pointer, payload in given.items():
            kept.pages.setdefault(pointer, payload)
        self._renewed(kept)

    async def get_page(self, session_id: str, pointer: str) -> bytes | None:
        """See `SessionStore.get_page`."""
        return self._known(session_id).pages.get(sought("pointer", pointer))

    async def page_pointers(self, session_id: str) -> list[str]:
        """See `SessionStore.page_pointers`."""
        return sorted(self._known(session_id).pages)

    async def list_sessions(
        self, *, user_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[SessionInfo]:
        """See `SessionStore.list_sessions`."""
        most = whole_number("limit", limit)
        if user_id is not None:
            sought("user_id", user_id)
        if after is not None:
            sought("after", after)
        found = (self._find(session_id) for session_id in sorted(self._sessions))
        infos = (kept.info for kept in found if kept is not None)
        chosen = (
            info
            for info in infos
            if (user_id is None or info.user_id == user_id)
            and (after is None or info.session_id > after)
        )
        return [info for _, info in zip(range(most), chosen, strict=False)]

    async def delete(self, session_id: str) -> bool:
        """See `SessionStore.delete`."""
        is_there = self._find(session_id) is not None
        self._sessions.pop(session_id, None)
        return is_there

    @asynccontextmanager
    async def lease(
        self,
        session_id: str,
        *,
        ttl_s: float = 30.0,
        timeout_s: float = 30.0,
        renew: bool = True,
    ) -> AsyncGenerator[Lease]:
        """See `SessionStore.lease`."""
        life = checked_life("ttl_s", ttl_s)
        wait = checked_wait("timeout_s", timeout_s)

        async def take() -> Lease | None:
            kept = self._known(session_id)
            if kept.lease is not None and kept.lease_ends > self._clock():
                return None
            self._tokens += 1
            kept.lease, kept.lease_ends = Lease(self._tokens), self._clock() + life
            return kept.lease

        async def keep(lease: Lease) -> bool:
            kept, now = self._known(session_id), self._clock()
            if kept.lease != lease or kept.lease_ends <= now:
                return False
            kept.lease_ends = now + life
            return True

        async def leave(lease: Lease) -> None:
            kept = self._find(session_id)
            if kept is not None and kept.lease == lease:
                kept.lease = None

        async with held_lease(take, keep, leave, ttl_s=life, timeout_s=wait, renew=renew) as lease:
            yield lease

    async def close(self) -> None:
        """See `SessionStore.close`; what is kept stays."""

    def _sweep(self, now: float) -> None:
        """Lets go of sessions whose time is over; nobody saw them any more."""
        for _ in range(_MOST_SWEPT):
            if not self._ends or self._ends[0][0] > now:
                return
            _, session_id = heapq.heappop(self._ends)
            kept = self._find(session_id)
            if kept is not None and kept.info.expires_at is not None:
                heapq.heappush(self._ends, (kept.info.expires_at, session_id))

    def _find(self, session_id: str) -> _Kept | None:
        kept = self._sessions.get(sought("session_id", session_id))
        if kept is None:
            return None
        ends = kept.info.expires_at
        if ends is not None and ends <= self._clock():
            del self._sessions[session_id]
            return None
        return kept

    def _known(
        self,
        session_id: str,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> _Kept:
        expected = checked_version(expected_version)
        kept = self._find(session_id)
        if kept is None:
            raise not_found()
        if lease is not None and (lease != kept.lease or kept.lease_ends <= self._clock()):
            raise lease_lost()
        version = kept.info.version
        if expected is not None and expected != version:
            raise conflict(version, expected)
        return kept

    def _written(self, kept: _Kept, steps: int) -> SessionInfo:
        kept.info = replace(
            kept.info,
            version=kept.info.version + steps,
            length=len(kept.log),
            changed_at=self._clock() if steps else kept.info.changed_at,
        )
        return self._renewed(kept)

    def _renewed(self, kept: _Kept) -> SessionInfo:
        if kept.ttl_s is not None:
            kept.info = replace(kept.info, expires_at=self._clock() + kept.ttl_s)
        return kept.info
