"""The log of a session: entries in a store, and the working set over them.

Both say the same after every method, or the working set is rebuilt from the store before it is used
again: after an error between the two, and after another process wrote.
"""

# A part of the working set in a file of its own.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import secrets
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satchel import _core
from satchel._arguments import whole_number
from satchel._checkpoints import drop_checkpoint, read_checkpoint, write_checkpoint
from satchel._giving_way import giving_way
from satchel.errors import InputError, StoreError
from satchel.stores.base import Entry, conflict, wrong_user
from satchel.stores.codec import encode
from satchel.stores.entries import load_entries
from satchel.working_set import WorkingSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from satchel.assembler import Assembler
    from satchel.stores.base import SessionInfo, SessionStore
    from satchel.stores.entries import Entries

__all__ = ["SessionLog", "encoded"]

_Result = TypeVar("_Result")

INLINE_BYTES: Final = 32_768
"""Messages of fewer bytes together are counted where they are: a thread would cost more."""

PIECE_MESSAGES: Final = 500
"""Messages that are taken in at a time: about a millisecond in which nobody else runs."""

_ROUNDS: Final = 40
"""How often an append is tried again because another writer was faster."""

_LONGEST_WAIT_S: Final = 0.1

_FEW_ENTRIES: Final = 64
"""Entries of a log that is folded sooner than its checkpoint is read."""


async def encoded(messages: Sequence[Any], keys: Sequence[str | None]) -> list[Entry]:
    """Messages as entries of a log; many of them in a thread.

    Raises:
        InputError: for what cannot be written as JSON.
    """
    if len(messages) <= PIECE_MESSAGES // 10:
        return _entries(messages, keys)
    return await asyncio.to_thread(_entries, messages, keys)


def _entries(messages: Sequence[Any], keys: Sequence[str | None]) -> list[Entry]:
    return [
        Entry("message", encode(message), key)
        for message, key in giving_way(zip(messages, keys, strict=True))
    ]


class SessionLog:
    """The log of one session. One caller at a time: whoever uses it holds a lock.

    Attributes:
        system: the system prompt of the newest window.
        tools: its tools.
        version: the version of the session that both sides are at.
        length: entries in the log.
    """

    def __init__(
        self, store: SessionStore, session_id: str, user_id: str | None, assembler: Assembler
    ) -> None:
        self.store: Final = store
        self.session_id: Final = session_id
        self.user_id: Final = user_id
        self.system: Any = None
        self.tools: Sequence[Any] | None = None
        self._is_request_known = False
        self.version = 0
        self.length = 0
        self._assembler: Final = assembler
        self._working_set: WorkingSet | None = None
        self._is_closed = True
        self._made_at = 0.0
        self._is_certain = False
        self._is_foreign = False
        self._own_end = -1
        self._keys: set[str] = set()
        self._stored_events = 0
        self._checkpointed = 0

    @property
    def working_set(self) -> WorkingSet:
        """The working set.

        Raises:
            InputError: ``session_closed`` before the log was loaded, and after `close`.
        """
        if self._working_set is None or self._is_closed:
            raise _closed()
        return self._working_set

    def open(self) -> None:
        """Lets the log be used; `load` is next."""
        self._is_closed = False

    def close(self) -> None:
        """Lets nobody use it any more, and keeps nothing of what was said."""
        self._is_closed = True
        self._working_set = None
        self._keys = set()

    async def load(self, info: SessionInfo) -> None:
        """Rebuilds the working set from the store, which is at ``info``."""
        for turn in range(_ROUNDS):
            self._is_certain = False
            entries = await load_entries(self.store, self.session_id)
            few = len(entries) < _FEW_ENTRIES
            checkpoint = "" if few else await read_checkpoint(self.store, info)
            built = await asyncio.to_thread(self._built, entries, checkpoint)
            if self._is_closed:
                raise _closed()
            self._working_set, self._keys = built, entries.keys
            self.version, self.length = info.version, len(entries)
            self._made_at = info.created_at
            core = built._era.core  # noqa: SLF001 - as above
            # One that was not used is written again with what is appended next.
            self._checkpointed = 0 if core.resumed() is None else core.checkpointed()
            self._is_certain = self._is_foreign = True
            try:
                # Event 0 of a new log, and settings that are others than the log's.
                await self.store_events()
            except StoreError as error:
                if error.code != "version_conflict":
                    raise
                await _give_way(turn)
                info = await self.info()
            else:
                return
        raise _outrun()

    async def info(self) -> SessionInfo:
        """How the session stands, if it is still this user's.

        Raises:
            StoreError: ``wrong_user`` if it was deleted and is somebody else's now.
            InputError: ``session_closed``.
        """
        if self._is_closed:
            raise _closed()
        info = await self.store.info(self.session_id)
        if info.user_id != self.user_id:
            raise wrong_user()
        return info

    def _built(self, entries: Entries, checkpoint: str) -> WorkingSet:
        messages, events = entries.history()
        self._stored_events = len(events)
        if not events:
            # Random, so that a pointer of another session finds nothing here.
            key = secrets.token_hex(16)
            first = self._assembler.settings_event(system_tokens=0, tools_tokens=0)
            events = [{**first, "page_key": key}]
        # Without settling what system and tools take: nobody has said yet that they changed.
        working_set = WorkingSet._restore(  # noqa: SLF001 - the way back from a log, as a pickle's
            self._assembler,
            messages,
            tuple(events),
            self.system,
            self.tools,
            checkpoint=checkpoint,
        )
        wanted = self._assembler.settings_event(system_tokens=0, tools_tokens=0)
        del wanted["system_tokens"], wanted["tools_tokens"]
        working_set._settle(wanted)  # noqa: SLF001 - as above
        return working_set

    async def refresh(self) -> None:
        """Takes in what other writers did."""
        info = await self.info()
        # A session that was deleted and made again may have come to the same version.
        is_known = info.version == self.version and info.created_at == self._made_at
        if not self._is_certain or not is_known:
            await self.load(info)

    async def append(
        self, entries: Sequence[Entry], given: Sequence[Any], expected_version: int | None
    ) -> None:
        """Appends messages; entry by entry the same as ``given``.

        Raises:
            StoreError: ``version_conflict``, ``calls_pending``; nothing was appended then.
            InputError: as in `WorkingSet.append`; likewise.
        """
        await self._settle_version(expected_version)
        for turn in range(_ROUNDS):
            fresh = [
                (entry, message)
                for entry, message in zip(entries, given, strict=True)
                if entry.key is None or entry.key not in self._keys
            ]
            if not fresh:
                return
            if self._is_foreign and expected_version is None:
                try:
                    self._check_pending(fresh[0][1])
                except StoreError:
                    # The results may have come since.
                    await self.refresh()
                    self._check_pending(fresh[0][1])
                    continue
            try:
                await self._append_fresh(fresh)
            except StoreError as error:
                if error.code != "version_conflict":
                    raise
                if expected_version is None:
                    await _give_way(turn)
                await self.refresh()
                if expected_version is not None:
                    raise
            else:
                return
        raise _outrun()

    async def _settle_version(self, expected_version: int | None) -> None:
        """Makes sure that both sides are at one version, and at the expected one.

        Raises:
            StoreError: ``version_conflict``.
        """
        if not self._is_certain or expected_version not in (None, self.version):
            await self.refresh()
        if expected_version is not None and expected_version != self.version:
            raise conflict(self.version, expected_version)

    async def _append_fresh(self, fresh: Sequence[tuple[Entry, Any]]) -> None:
        """Appends to the working set and to the store."""
        working_set = self.working_set
        entries = [entry for entry, _ in fresh]
        messages = [message for _, message in fresh]
        size = sum(len(entry.payload) for entry in entries)
        core = working_set._era.core  # noqa: SLF001 - as above
        if size < INLINE_BYTES and not core.may_compact_within(size):
            working_set.append(messages)
        else:
            # In pieces: each holds the interpreter while its messages are read. If a later one
            # fails, the working set knows more than the store, and is rebuilt.
            was_certain, self._is_certain = self._is_certain, False
            for start in range(0, len(messages), PIECE_MESSAGES):
                piece = messages[start : start + PIECE_MESSAGES]
                try:
                    await self.run(partial(WorkingSet.append, messages=piece))
                except InputError:
                    # Refused as a whole.
                    self._is_certain = was_certain and start == 0
                    raise
        info = await self._write(entries)
        self._is_foreign, self._own_end = False, len(working_set)
        self._keys.update(entry.key for entry in entries if entry.key is not None)
        await self._keep_checkpoint(info)

    async def _write(self, entries: Sequence[Entry]) -> SessionInfo:
        # Until the store has said yes, the working set may know more than it.
        self._is_certain = False
        before = self.version
        info = await self.store.append(self.session_id, entries, expected_version=before)
        if info.created_at != self._made_at or info.user_id != self.user_id:
            # The session was deleted, and this is another one at the same version.
            length = info.length - (info.version - before)
            await self.store.truncate(self.session_id, length, expected_version=info.version)
            raise conflict(info.version, before)
        self.version, self.length = info.version, info.length
        self._is_certain = True
        return info

    async def _keep_checkpoint(self, info: SessionInfo) -> None:
        """Stores the newest checkpoint, if levels fell since the one before."""
        known = self._checkpointed
        if self._working_set is None or self._is_closed or self.length < _FEW_ENTRIES:
            return
        if self._working_set._era.checkpointed() in (0, known):  # noqa: SLF001 - as above
            return
        found = await self.run(lambda working_set: working_set._era.core.checkpoint(known))  # noqa: SLF001 - as above
        if found is not None:
            self._checkpointed, fold = found
            await write_checkpoint(self.store, info, fold)

    def _check_pending(self, message: object) -> None:
        """Refuses a message that would come between another writer's calls and their results."""
        working_set = self.working_set
        if len(working_set) == self._own_end:
            return
        # No call waits over a change of the dialect.
        newest_first = working_set._era.newest_first()  # noqa: SLF001 - as above
        if not _wait(newest_first, working_set.dialect):
            return
        if "result" in _kinds(message, working_set.dialect):
            return
        text = (
            "calls of another writer wait for their results; append those first, or, if he is "
            "gone, append with expected_version"
        )
        raise StoreError(text, code="calls_pending")

    async def messages(self, limit: int | None) -> list[Any]:
        """The newest ``limit`` messages, for None all; objects that are not there are made.

        In pieces: a thousand of them take a millisecond or more.
        """
        working_set = self.working_set
        era, eras = working_set._era, working_set._eras  # noqa: SLF001 - as above
        if len(eras) > 1:
            every = working_set.messages
            return every if limit is None else every[max(0, len(every) - limit) :]
        end = len(era.core)
        first = 0 if limit is None else max(0, end - limit)
        found: list[Any] = []
        for start in range(first, end, PIECE_MESSAGES):
            if start > first:
                await asyncio.sleep(0)
            found += era.messages_between(start, min(end, start + PIECE_MESSAGES))
        return found

    async def run(self, work: Callable[[WorkingSet], _Result]) -> _Result:
        """Does something with the working set in a thread; not left before that is done.

        A task that is cancelled cannot stop the thread. Whoever comes next must not meet it in the
        working set, so it is waited for; where even that is cut short, the working set is rebuilt.
        """
        done = asyncio.ensure_future(asyncio.to_thread(work, self.working_set))
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            try:
                await asyncio.wait([done])
            except asyncio.CancelledError:
                self._is_certain = False
            if not done.cancelled() and done.done():
                done.exception()  # which is nobody's any more
            raise

    async def change(self, action: Callable[[WorkingSet], object]) -> None:
        """Does something to the working set in a thread, and stores the events that it made.

        Raises:
            StoreError: ``version_conflict`` where another writer was faster; nothing changed then.
        """
        if not self._is_certain:
            await self.refresh()
        await self.run(action)
        await self.store_events()

    async def insist(self, action: Callable[[WorkingSet], object]) -> None:
        """As `change`, and where another writer was faster it is done again.

        Then the working set is another one, that knows what the other writer did.
        """
        for turn in range(_ROUNDS):
            try:
                await self.change(action)
            except StoreError as error:
                if error.code != "version_conflict":
                    raise
                await _give_way(turn)
                await self.refresh()
            else:
                return
        raise _outrun()

    def first_request(self, system: object, tools: Sequence[Any] | None) -> None:
        """Says what requests carry after the log was read back; a change if it takes other room.

        The log holds what system and tools take, not the texts, so the first window after a restart
        says which they are. To be called within `change`; later calls do nothing.
        """
        if self._is_request_known:
            return
        self._is_request_known = True
        working_set = self.working_set
        self.system, self.tools = system, tools
        working_set._system, working_set._tools = system, tools  # noqa: SLF001 - as above
        working_set._settle(working_set._fixed_tokens(working_set.counter))  # noqa: SLF001 - as above

    async def store_events(self) -> None:
        """Stores the events that the store does not have yet."""
        new = self.working_set.events[self._stored_events :]
        if new:
            info = await self._write([Entry("event", encode(dict(event))) for event in new])
            self._stored_events += len(new)
            await self._keep_checkpoint(info)

    async def length_of(self, messages: int) -> int:
        """Entries up to the first ``messages`` messages; with all of them, all entries.

        Raises:
            InputError: ``invalid_value`` if there are not as many.
        """
        whole_number("messages", messages)
        entries = await load_entries(self.store, self.session_id)
        ends = [end for end, kind in enumerate(entries.kinds, 1) if kind == "message"]
        if not 0 <= messages <= len(ends):
            message = f"the session has {len(ends)} messages, not {messages}"
            raise InputError(message, code="invalid_value", value=messages, limit=len(ends))
        if messages == len(ends):
            return len(entries)
        # Event 0 stands before every message.
        return ends[messages - 1] if messages else 1

    async def truncate(self, length: int) -> None:
        """Cuts the log to its first ``length`` entries.

        Raises:
            StoreError: ``version_conflict``.
        """
        # It may quote what is cut.
        await drop_checkpoint(self.store, self.session_id)
        info = await self.store.truncate(self.session_id, length, expected_version=self.version)
        if info.user_id != self.user_id:
            raise wrong_user()
        await self.load(info)


def _closed() -> InputError:
    message = "the session is not open: use it within `async with`"
    return InputError(message, code="session_closed")


async def _give_way(turn: int) -> None:
    """Lets other writers go first, for longer each time and never for as long as they wait."""
    most = min(_LONGEST_WAIT_S, 0.001 * 2 ** min(turn, 10))
    await asyncio.sleep(most * secrets.randbelow(1_000) / 1_000)


def _outrun() -> StoreError:
    message = f"other writers were faster {_ROUNDS} times"
    return StoreError(message, code="version_conflict")


def _wait(newest_first: Iterable[object], dialect: str) -> bool:
    """Whether calls at the end of a history have no results yet."""
    calls = results = 0
    for message in newest_first:
        kinds = _kinds(message, dialect)
        if not {"call", "result"} & set(kinds) or (calls and "call" not in kinds):
            break
        calls += kinds.count("call")
        results += kinds.count("result")
    return calls > results


def _kinds(message: object, dialect: str) -> list[str]:
    return [part["kind"] for part in _core.describe_message(message, dialect)["parts"]]
