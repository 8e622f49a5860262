"""A session of the OpenAI Agents SDK in any store of satchel's.

The log of the stored session is the history: an entry for each item, in the order that the store
gives. Nothing is edited in place. The newest item goes by cutting the log; a stretch is replaced by
one write that says what no longer counts and brings what does, so readers and crashes see either
the old history or the new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, cast

from satchel._arguments import invalid, name_of_type, optional_text
from satchel.assembler import Assembler, Budget
from satchel.errors import StoreError
from satchel.openai_agents.history import History, cut_entry, message_entries, readable
from satchel.openai_agents.items import DIALECT, first_whole
from satchel.stores import open_store
from satchel.stores.base import check_id, checked_limit

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from satchel.counting import AnyCounter
    from satchel.openai_agents.history import Row
    from satchel.policy import Policy
    from satchel.stores.base import SessionInfo, SessionStore
    from satchel.working_set import WorkingSet

__all__ = ["SatchelSession", "Snapshot"]

_T = TypeVar("_T")

_ROUNDS: Final = 64
"""How often a write that others outran is tried again."""

_INLINE_BYTES: Final = 16_384
"""Up to this many bytes of items are read on the event loop: they take 0.03 to 0.2 ms (2026-11)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest items, and a way to replace the end of them; what the SDK's compaction asks for.

    Attributes:
        items: the newest items, oldest first.
        complete: whether nothing older is stored.
        replace_suffix: called with a place in ``items`` and the items to stand there from now on;
            tells whether it was done: not if the stored history ends otherwise by then.
    """

    items: list[Any]
    complete: bool
    replace_suffix: Callable[[int, list[Any]], Awaitable[bool]]


class SatchelSession:
    """A session for ``Runner.run(..., session=...)``, in this process or in a store.

    Nothing is connected before it is used. Safe to use from several tasks of one event loop, and
    by several processes: what one call adds stays together, in an order that the store gives.

    Args:
        session_id: which conversation. Any text; it belongs to one user.
        url: ``memory://``, ``sqlite:///file.db``, ``postgresql://...`` or ``redis://...``, as for
            `satchel.open_session`; or a store, which stays open when this is closed.
        model: the model that `working_set` is for.
        user_id: whose session it is; None for nobody's.
        ttl_s: seconds after the last write when all of it goes; None for never.
        session_settings: the SDK's ``SessionSettings``, or a dict of them: ``limit`` is the number
            of items that `get_items` gives without a limit of its own.

    Raises:
        InputError: ``invalid_value``, ``unknown_store``, ``missing_extra``.
    """

    def __init__(
        self,
        session_id: str,
        url: str | SessionStore = "memory://",
        *,
        model: str | None = None,
        user_id: str | None = None,
        ttl_s: float | None = None,
        session_settings: Any = None,
    ) -> None:
        self.session_id: str = check_id("session_id", session_id)
        self.session_settings: Any = session_settings
        self._limit_of_settings()
        if isinstance(session_settings, Mapping):
            self.session_settings = _settings(cast("Mapping[str, Any]", session_settings))
        self.model: Final = optional_text("model", model)
        self._user_id: Final = None if user_id is None else check_id("user_id", user_id)
        self._ttl_s: Final = ttl_s
        if not isinstance(url, str) and not callable(getattr(cast("object", url), "append", None)):
            message = f"url must be the URL of a store or a store, not {name_of_type(url)}"
            raise invalid(message)
        self._store: Final = open_store(url) if isinstance(url, str) else url
        self._owns_store: Final = isinstance(url, str)
        self._history = History()
        self._is_open = False

    async def __aenter__(self) -> Self:
        """Opens the session; without it, the first call does.

        Raises:
            StoreError: ``wrong_user`` if it belongs to somebody else; whatever the store says.
        """
        await self._opened()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"<satchel.openai_agents.SatchelSession of {len(self._history.rows)} items>"

    async def close(self) -> None:
        """Lets go of the store, if a URL named it; what is stored stays."""
        if self._owns_store:
            await self._store.close()

    # --- the SDK's protocol -----------------------------------------------------------------------

    async def get_items(self, limit: int | None = None, *, wrapper: object = None) -> list[Any]:
        """The newest items that can be read, oldest first.

        Args:
            limit: exactly this many, which is what the SDK relies on when it compares the end of a
                history; 0 for none. None goes by ``session_settings``, whose limit is an upper one:
                the list then begins with a whole step, and may be shorter. Without both, all.
            wrapper: the run's context, which the SDK passes on; not used.

        Raises:
            InputError: ``invalid_value`` for a limit below 0.
            StoreError: whatever the store says.
        """
        del wrapper
        settled = self._limit_of_settings() if limit is None else None
        most = checked_limit(limit) if limit is not None else settled
        rows = await self._rows()
        if most == 0:
            return []
        # With a limit of the settings one looks at all: a call may be far from its output.
        found = await self._read(rows, None if settled is not None else most)
        if settled is None or len(found) <= settled:
            return found
        start = await asyncio.to_thread(first_whole, found, len(found) - settled)
        return found[start:]

    async def add_items(self, items: Sequence[Any], *, wrapper: object = None) -> None:
        """Adds items at the end, all of them or none, without others between.

        Raises:
            InputError: ``invalid_message`` for what cannot be written as JSON.
            StoreError: whatever the store says.
        """
        del wrapper
        if isinstance(cast("object", items), (str, bytes, Mapping)) or not isinstance(
            cast("object", items), Sequence
        ):
            message = f"items must be a list, not {name_of_type(items)}"
            raise invalid(message)
        given = list(items)
        if not given:
            return
        # How much there is of items nobody knows before they are written: never on the event loop.
        entries = await asyncio.to_thread(message_entries, given)
        await self._with_session(lambda: self._store.append(self.session_id, entries))

    async def pop_item(self, *, wrapper: object = None) -> Any:
        """Takes the newest item that can be read off the end and returns it; None if none is left.

        What could not be read behind it goes too.

        Raises:
            StoreError: whatever the store says.
        """
        del wrapper
        for _ in range(_ROUNDS):
            rows = await self._rows()
            place = next((at for at in range(len(rows) - 1, -1, -1) if readable([rows[at]])), None)
            if place is None:
                return None
            [item] = readable([rows[place]])
            try:
                await self._cut(place)
            except StoreError as error:
                if error.code not in {"version_conflict", "session_not_found"}:
                    raise
                # Somebody was faster: the newest is another one now.
            else:
                return item
        raise _outrun()

    async def clear_session(self, *, wrapper: object = None) -> None:
        """Removes all of the session: items, pages, summaries and values.

        Raises:
            StoreError: ``wrong_user`` if it belongs to somebody else; whatever the store says.
        """
        del wrapper
        await self._opened()
        await self._store.delete(self.session_id)
        self._history, self._is_open = History(), False

    async def _get_compaction_snapshot(
        self, limit: int, *, prune_prefix: Callable[[Any], bool] | None = None
    ) -> Snapshot | None:
        """What ``OpenAIResponsesCompactionSession`` asks of its store; None if it cannot be had.

        ``prune_prefix`` says which of the oldest items go as well when the end is replaced.
        """
        rows = await self._rows()
        taken = rows[len(rows) - min(len(rows), checked_limit(limit) or 0) :]
        items = await self._read(taken, None)
        if len(items) != len(taken):
            return None

        async def replace_suffix(start: int, new: list[Any]) -> bool:
            return await self._replace(taken[start:], list(new), prune_prefix)

        return Snapshot(items, len(taken) == len(rows), replace_suffix)

    # --- beyond the SDK ---------------------------------------------------------------------------

    async def working_set(
        self,
        *,
        budget: int | None = None,
        reserve_tokens: int | None = None,
        policy: str | Policy = "adaptive",
        counter: AnyCounter | None = None,
        instructions: str | None = None,
        tools: Sequence[Any] | None = None,
    ) -> WorkingSet:
        """What a call over the stored items would see: windows, pages, and why.

        Settings as for `satchel.Assembler`; equal ones give the windows and pointers that
        `context_filter` gives.

        Raises:
            InputError: ``invalid_value`` without a model; as `satchel.Assembler`.
            StoreError: whatever the store says.
        """
        if self.model is None:
            message = "a working set needs a model: SatchelSession(..., model=...)"
            raise invalid(message)
        assembler = Assembler(
            self.model,
            budget=Budget(budget, reserve_tokens),
            policy=policy,
            counter=counter,
            dialect=DIALECT,
        )
        items = await self._read(await self._rows(), None)
        return await asyncio.to_thread(
            assembler.working_set, items, system=instructions, tools=tools
        )

    # --- the log ----------------------------------------------------------------------------------

    def _limit_of_settings(self) -> int | None:
        settings = self.session_settings
        if isinstance(settings, Mapping):
            found: object = cast("Mapping[str, object]", settings).get("limit")
        else:
            found = getattr(settings, "limit", None)
        return checked_limit(found)

    async def _opened(self) -> SessionInfo:
        """How it stands, made if it is not there; whose it is, the store says each time.

        Where it was removed since, by a clear or by time, somebody else may have taken its id.
        """
        if self._is_open:
            try:
                info = await self._store.info(self.session_id)
            except StoreError as error:
                if error.code != "session_not_found":
                    raise
            else:
                if info.user_id == self._user_id:
                    return info
        info = await self._store.open(self.session_id, user_id=self._user_id, ttl_s=self._ttl_s)
        self._is_open = True
        return info

    async def _with_session(self, work: Callable[[], Awaitable[_T]]) -> _T:
        """Does it; once more where the session was removed since it was opened."""
        await self._opened()
        try:
            return await work()
        except StoreError as error:
            if error.code != "session_not_found":
                raise
        await self._opened()
        return await work()

    async def _rows(self) -> tuple[Row, ...]:
        """What of the log counts, as of now."""
        for _ in range(_ROUNDS):
            info = await self._opened()
            known = self._history
            if known.info == info:
                return known.rows
            if not known.continues_to(info):
                known = History()
            try:
                entries = await known.fetch(self._store, info)
                after = await self._store.info(self.session_id)
            except StoreError as error:
                if error.code != "session_not_found":
                    raise
                continue
            # What was read belongs together only if nothing was cut meanwhile.
            if History(info=info).continues_to(after):
                self._history = known.extended(entries, info)
                return self._history.rows
        raise _outrun()

    async def _read(self, rows: Sequence[Row], most: int | None) -> list[Any]:
        """The newest items that can be read, each made anew."""
        taken = rows if most is None else rows[max(len(rows) - most, 0) :]
        if _is_short(taken):
            return readable(rows, most)
        return await asyncio.to_thread(readable, rows, most)

    async def _cut(self, keep: int) -> None:
        """Leaves the first ``keep`` items, if nobody wrote meanwhile."""
        known = self._history
        if known.info is None:
            raise _outrun()
        version = known.info.version
        if known.last_cut > known.rows[keep].sequence:
            await self._store.append(
                self.session_id, [cut_entry(keep=keep)], expected_version=version
            )
        else:
            await self._store.truncate(
                self.session_id, known.rows[keep].sequence - 1, expected_version=version
            )

    async def _replace(
        self, expected: Sequence[Row], new: list[Any], prune: Callable[[Any], bool] | None
    ) -> bool:
        if not expected:
            return False
        added = await asyncio.to_thread(message_entries, new)
        for _ in range(_ROUNDS):
            rows = await self._rows()
            info = self._history.info
            keep = len(rows) - len(expected)
            if info is None or keep < 0 or tuple(rows[keep:]) != tuple(expected):
                return False
            drop = 0
            while prune is not None and drop < keep:
                oldest = readable([rows[drop]])
                if not oldest or not prune(oldest[0]):
                    break
                drop += 1
            entries = [cut_entry(keep=keep, drop=drop), *added]
            try:
                await self._store.append(self.session_id, entries, expected_version=info.version)
            except StoreError as error:
                if error.code == "session_not_found":
                    return False
                if error.code != "version_conflict":
                    raise
            else:
                return True
        raise _outrun()


def _settings(fields: Mapping[str, Any]) -> Any:
    """The settings as an object, which is how the SDK's runner reads them."""
    from agents import SessionSettings  # noqa: PLC0415 - an optional package

    return SessionSettings(**fields)


def _is_short(rows: Sequence[Row]) -> bool:
    """Whether rows are few bytes; looks at no more of them than it takes to see that."""
    total = 0
    for row in rows:
        total += max(len(row.payload), 1)
        if total > _INLINE_BYTES:
            return False
    return True


def _outrun() -> StoreError:
    message = f"other writers were faster {_ROUNDS} times"
    return StoreError(message, code="version_conflict")
