"""A stored conversation: append, ask for windows, and nothing is lost on the way.

A session is a log in a store and the working set over it. Every method appends first to the log and
answers from the working set, which is rebuilt from the log whenever that is not what this object
last saw: after another process wrote, after an error, after a restart. Work that takes time runs in
a thread, so an event loop is never blocked; one session does one thing at a time.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final, Self, cast

from satchel._replies import messages_in
from satchel.assembler import Assembler
from satchel.errors import CompactionError, InputError, SatchelError, StoreError
from satchel.overflow import is_overflow_error, overflow_details
from satchel.stores import open_store
from satchel.stores.base import Entry, check_id
from satchel.stores.codec import decode, encode
from satchel.usage import Calibration, usage_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from satchel._stakes import Stakes
    from satchel.assembler import Budget
    from satchel.counting import AnyCounter
    from satchel.policy import Policy
    from satchel.stores.base import SessionInfo, SessionStore
    from satchel.window import StepReport, Window
    from satchel.working_set import OpenCalls, WorkingSet

__all__ = ["Session", "SessionState", "open_session"]

INLINE_BYTES: Final = 32_768
"""Messages of fewer bytes together are counted where they are: a thread would cost more."""

_ROUNDS: Final = 8
"""How often an append is tried again because another writer was faster."""

_OVERFLOWS: Final = 3
"""How many overflows in a row are answered with a smaller window."""

_SHRINK: Final = 0.9
"""What is left of the budget after an overflow that names no figures."""

_NOTABLE: Final = 0.01
"""Share by which an estimate must change before it is worth an event."""


class _Unset:
    """Stands for an argument that was not given, where None means none."""


_UNSET: Final = _Unset()


def open_session(
    url: str | SessionStore,
    *,
    session_id: str,
    model: str,
    user_id: str | None = None,
    budget: int | Budget | None = None,
    counter: AnyCounter | None = None,
    policy: str | Policy = "adaptive",
    dialect: str | None = None,
    ttl_s: float | None = None,
) -> Session:
    """A session of a store, to be entered with ``async with``; made if there is none.

    Args:
        url: where sessions are kept, see `satchel.stores`; or a store.
        session_id: which one. Any text; it belongs to one user.
        model: the model that windows are for; a change of it becomes an event of the log.
        user_id: whose session it is; None for nobody's.
        budget: as for `Assembler`.
        counter: as for `Assembler`.
        policy: as for `Assembler`.
        dialect: as for `Assembler`.
        ttl_s: seconds after the last write when all of the session goes; None for never.

    Raises:
        InputError: ``unknown_store``, ``unknown_model``, ``unknown_dialect``, ``invalid_value``.
    """
    check_id("session_id", session_id)
    if user_id is not None:
        check_id("user_id", user_id)
    assembler = Assembler(model, budget=budget, counter=counter, policy=policy, dialect=dialect)
    store = open_store(url) if isinstance(url, str) else url
    return Session(
        store,
        session_id=session_id,
        user_id=user_id,
        assembler=assembler,
        ttl_s=ttl_s,
        owns_store=isinstance(url, str),
    )


class SessionState:
    """A value of the application's, kept with a session and read and written as a whole.

    Anything that JSON can say. Made by `Session.state`.
    """

    __slots__ = ("_session_id", "_store")

    def __init__(self, store: SessionStore, session_id: str) -> None:
        self._store: Final = store
        self._session_id: Final = session_id

    async def get(self) -> tuple[Any, int]:
        """The value and its version; ``(None, 0)`` if it was never written."""
        found = await self._store.get_value(self._session_id, "state")
        return (None, 0) if found is None else (decode(found.payload), found.version)

    async def set(self, value: object, *, expected_version: int | None = None) -> int:
        """Writes the value; returns its new version.

        Raises:
            StoreError: ``version_conflict`` if ``expected_version`` is not its version.
            InputError: for what cannot be written as JSON.
        """
        return await self._store.put_value(
            self._session_id, "state", encode(value), expected_version=expected_version
        )


class Session:
    """One stored conversation; made by `open_session`, used within ``async with``.

    Safe to use from several tasks of one event loop: they wait for one another.
    """

    def __init__(
        self,
        store: SessionStore,
        *,
        session_id: str,
        user_id: str | None,
        assembler: Assembler,
        ttl_s: float | None,
        owns_store: bool,
    ) -> None:
        self._store: Final = store
        self._session_id: Final = session_id
        self._user_id: Final = user_id
        self._assembler: Final = assembler
        self._ttl_s: Final = ttl_s
        self._owns_store: Final = owns_store
        self._lock: Final = asyncio.Lock()
        self._set: WorkingSet | None = None
        self._system: Any = None
        self._tools: Sequence[Any] | None = None
        self._version = 0
        self._length = 0
        self._keys: set[str] = set()
        # The log's entries up to here are in the working set.
        self._stored_events = 0
        self._calibration = Calibration()
        self._said_estimate: float | None = None
        self._asked: Window | None = None
        self._overflows = 0

    # --- opening and closing ----------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Opens the session.

        Raises:
            StoreError: ``wrong_user`` if it belongs to somebody else; whatever the store says.
        """
        info = await self._store.open(self._session_id, user_id=self._user_id, ttl_s=self._ttl_s)
        async with self._lock:
            await self._load(info)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends what the session is doing and lets go of the store."""
        if self._owns_store:
            await self._store.close()

    def __repr__(self) -> str:
        return f"<satchel.Session of {self._length} entries>"

    @property
    def session_id(self) -> str:
        """Its id."""
        return self._session_id

    @property
    def user_id(self) -> str | None:
        """Whose it is."""
        return self._user_id

    @property
    def version(self) -> int:
        """The version that this object last saw; for ``expected_version``."""
        return self._version

    @property
    def state(self) -> SessionState:
        """A value of the application's, kept with the session."""
        return SessionState(self._store, self._session_id)

    # --- the log ----------------------------------------------------------------------------------

    async def append(
        self,
        messages: object,
        *,
        ids: Sequence[str | None] | None = None,
        expected_version: int | None = None,
    ) -> int:
        """Appends one message or several, all of them or none.

        Messages of one call stay together. Without ``expected_version``, what other writers
        appended in the meantime comes before; but if calls of theirs wait for results, nothing may
        come between, and the append is refused.

        Args:
            messages: in the session's dialect, as dicts or a client's objects.
            ids: one id a message: what was appended under an id is not appended again. By default
                a message's own ``id``, if it has one.
            expected_version: append only if the session is still at this version.

        Returns:
            The session's version.

        Raises:
            StoreError: ``version_conflict``; ``calls_pending`` where another writer's calls wait
                for results; whatever the store says. Nothing was appended then.
            InputError: as in `WorkingSet.append`.
        """
        given = _listed(messages)
        keys = _keys_of(given, ids)
        entries = [
            Entry("message", encode(message), key)
            for message, key in zip(given, keys, strict=True)
        ]
        async with self._lock:
            await self._append(entries, given, expected_version)
            return self._version

    async def record(self, response: object) -> int:
        """Appends the reply of a model call and learns from the usage that it reports.

        Args:
            response: what the provider's client returned, whole; or the message alone.

        Returns:
            The session's version.

        Raises:
            InputError: ``invalid_message`` if there is no reply in it.
            StoreError: as in `append`.
        """
        working_set = self._working_set
        messages = messages_in(response, working_set.dialect)
        own_id = getattr(response, "id", None)
        if isinstance(response, dict):
            own_id = cast("dict[str, Any]", response).get("id")
        # One call, one reply: recorded again after a crash, it is the same.
        is_named = isinstance(own_id, str) and own_id
        ids = [f"{own_id}/{place}" if is_named else None for place in range(len(messages))]
        asked = self._asked
        version = await self.append(messages, ids=ids)
        self._overflows = 0
        if asked is not None:
            await self._observe(asked, response)
            version = self._version
        return version

    async def messages(self, limit: int | None = None) -> list[Any]:
        """The raw history, oldest first; the newest ``limit`` of it, 0 for none.

        Raises:
            InputError: ``invalid_value`` for a limit below 0.
        """
        async with self._lock:
            await self._refresh()
            found = self._working_set.messages
        if limit is None:
            return found
        if isinstance(limit, bool) or not isinstance(cast("object", limit), int) or limit < 0:
            message = f"limit must be None or an int from 0, not {limit!r:.40}"
            raise InputError(message, code="invalid_value")
        return found[len(found) - min(limit, len(found)) :]

    async def events(self) -> tuple[Mapping[str, Any], ...]:
        """All events of the log."""
        async with self._lock:
            await self._refresh()
            return self._working_set.events

    async def apply(self, event: Mapping[str, Any]) -> None:
        """Appends an event, such as ``{"kind": "pin", "index": 3}``.

        Raises:
            InputError: as in `WorkingSet.apply`.
            PageNotFoundError: likewise.
            StoreError: whatever the store says.
        """
        async with self._lock:
            await self._refresh()
            await self._changing(lambda working_set: working_set.apply(event))

    async def pin(self, index: int) -> None:
        """Keeps the step of message ``index`` verbatim."""
        await self.apply({"kind": "pin", "index": index})

    async def unpin(self, index: int) -> None:
        """Lets the step of message ``index`` be lowered again."""
        await self.apply({"kind": "unpin", "index": index})

    # --- windows ----------------------------------------------------------------------------------

    async def window(
        self,
        *,
        system: object = _UNSET,
        tools: Sequence[Any] | _Unset | None = _UNSET,
        stakes: Stakes = "normal",
        open_calls: OpenCalls = "raise",
    ) -> Window:
        """The window for the next call; arguments as in `WorkingSet.window`.

        Raises:
            BudgetError: ``over_budget``.
            InputError: ``open_calls``, ``counter_failed``, ``invalid_value``.
            StoreError: whatever the store says.
        """
        async with self._lock:
            await self._refresh()
            return await self._window(system, tools, stakes, open_calls)

    async def observe_overflow(self, error: object) -> Window:
        """A smaller window after the provider said that the last one was too long.

        Counts are calibrated by the figures that the error names; where it names none, the budget
        shrinks by a tenth.

        Raises:
            CompactionError: ``overflow_persists`` for the fourth in a row, ``nothing_to_compact``
                if the window cannot become smaller.
            InputError: ``invalid_value`` if the error is none of an overflow.
            BudgetError: ``over_budget`` if what must stay does not fit any more.
        """
        if not is_overflow_error(error):
            message = f"{type(error).__name__} does not say that the request was too long"
            raise InputError(message, code="invalid_value")
        if self._overflows >= _OVERFLOWS:
            message = f"the provider refused {self._overflows} windows in a row as too long"
            raise CompactionError(
                message, code="overflow_persists", value=self._overflows, limit=_OVERFLOWS
            )
        async with self._lock:
            await self._refresh()
            before = self._asked
            self._overflows += 1
            await self._changing(lambda working_set: self._give_way(working_set, error))
            window = await self._window(_UNSET, _UNSET, "normal", "synthesize")
            if before is not None and window.tokens >= before.tokens:
                message = f"the window of {window.tokens} tokens cannot become smaller"
                raise CompactionError(message, code="nothing_to_compact", value=window.tokens)
            return window

    async def explain(self, index: int | None = None) -> list[StepReport]:
        """What happened to each step, or to the step of message ``index``."""
        async with self._lock:
            await self._refresh()
            found = self._working_set.explain(index)
            return found if isinstance(found, list) else [found]

    async def page_in(
        self, pointer: str, *, pattern: str | None = None, lines: tuple[int, int] | None = None
    ) -> str:
        """The content behind a pointer of this session; as `WorkingSet.page_in`.

        Raises:
            PageNotFoundError: ``page_not_found``, for a pointer of another session too.
        """
        async with self._lock:
            await self._refresh()
            working_set = self._working_set
            return await asyncio.to_thread(
                working_set.page_in, pointer, pattern=pattern, lines=lines
            )

    # --- branches ---------------------------------------------------------------------------------

    async def branch(self, at: int, *, session_id: str | None = None) -> Session:
        """A new session of the same user with the first ``at`` messages; this one stays as it is.

        Args:
            at: how many messages the branch begins with.
            session_id: its id; a random one if there is none.

        Returns:
            The branch, to be entered with ``async with``.

        Raises:
            InputError: ``invalid_value`` if there are not as many messages.
            StoreError: ``session_exists``.
        """
        target = secrets.token_urlsafe(16) if session_id is None else session_id
        async with self._lock:
            await self._refresh()
            length = await self._length_of(at)
            await self._store.branch(
                self._session_id, target, length=length, user_id=self._user_id
            )
        return Session(
            self._store,
            session_id=target,
            user_id=self._user_id,
            assembler=self._assembler,
            ttl_s=self._ttl_s,
            owns_store=False,
        )

    async def rewind(self, to: int) -> int:
        """Takes back everything behind the first ``to`` messages; returns the version.

        Raises:
            InputError: ``invalid_value`` if there are not as many messages.
            StoreError: ``version_conflict`` if somebody else writes at the same moment.
        """
        async with self._lock:
            await self._refresh()
            length = await self._length_of(to)
            info = await self._store.truncate(
                self._session_id, length, expected_version=self._version
            )
            await self._load(info)
            return self._version

    # --- inside -----------------------------------------------------------------------------------

    @property
    def _working_set(self) -> WorkingSet:
        if self._set is None:
            message = "the session is not open: use it within `async with`"
            raise InputError(message, code="session_closed")
        return self._set

    async def _load(self, info: SessionInfo) -> None:
        """Rebuilds the working set from the log."""
        entries = await self._store.read(self._session_id)
        self._set = await asyncio.to_thread(self._built, entries)
        self._keys = {entry.key for entry in entries if entry.key is not None}
        self._version, self._length = info.version, len(entries)
        # Event 0 of a new log, and settings that are others than the log's.
        await self._store_events()

    def _built(self, entries: Sequence[Entry]) -> WorkingSet:
        messages = [decode(entry.payload) for entry in entries if entry.kind == "message"]
        events = [decode(entry.payload) for entry in entries if entry.kind == "event"]
        self._stored_events = len(events)
        if not events:
            # Random, so that a pointer of another session finds nothing here.
            key = secrets.token_hex(16)
            first = self._assembler.settings_event(system_tokens=0, tools_tokens=0)
            events = [{**first, "page_key": key}]
        return self._assembler.working_set(
            messages, events=events, system=self._system, tools=self._tools
        )

    async def _refresh(self) -> None:
        """Takes in what other writers did."""
        if self._set is not None and self._version >= 0:
            info = await self._store.info(self._session_id)
            if info.version == self._version:
                return
        else:
            info = await self._store.info(self._session_id)
        await self._load(info)

    async def _append(
        self, entries: Sequence[Entry], given: Sequence[Any], expected_version: int | None
    ) -> None:
        if self._set is None or self._version < 0:
            await self._refresh()
        for _ in range(_ROUNDS):
            fresh = [
                (entry, message)
                for entry, message in zip(entries, given, strict=True)
                if entry.key is None or entry.key not in self._keys
            ]
            wanted = self._version if expected_version is None else expected_version
            if not fresh and expected_version is None:
                return
            try:
                await self._append_at(fresh, wanted)
            except StoreError as error:
                if error.code != "version_conflict" or expected_version is not None:
                    raise
                await self._refresh()
                self._check_pending([message for _, message in fresh])
            else:
                return
        message = f"other writers were faster {_ROUNDS} times"
        raise StoreError(message, code="version_conflict")

    async def _append_at(self, fresh: Sequence[tuple[Entry, Any]], version: int) -> None:
        """Appends to the log and to the working set, or to neither."""
        working_set = self._working_set
        entries = [entry for entry, _ in fresh]
        messages = [message for _, message in fresh]
        if version != self._version:
            # Whoever expects another version than we know is told by the store itself.
            info = await self._store.info(self._session_id)
            if info.version != version:
                raise StoreError(
                    f"the session is at version {info.version}, {version} was expected",
                    code="version_conflict",
                    value=info.version,
                    limit=version,
                )
            await self._refresh()
        is_small = sum(len(entry.payload) for entry in entries) < INLINE_BYTES
        self._version = -1  # until both have it, neither is sure
        if is_small:
            working_set.append(messages)
        else:
            await asyncio.to_thread(working_set.append, messages)
        info = await self._store.append(self._session_id, entries, expected_version=version)
        self._keys.update(entry.key for entry in entries if entry.key is not None)
        self._version, self._length = info.version, info.length

    def _check_pending(self, messages: Sequence[Any]) -> None:
        """Refuses messages that would come between another writer's calls and their results."""
        working_set = self._working_set
        try:
            working_set.window()
        except InputError as error:
            if error.code != "open_calls":
                return
        except SatchelError:
            return
        else:
            return
        if _answers(working_set, messages):
            return
        message = "calls of another writer wait for their results; append those first"
        raise StoreError(message, code="calls_pending")

    async def _changing(self, change: Callable[[WorkingSet], object]) -> None:
        """Does something that makes events, and stores them."""
        working_set = self._working_set
        # What fails here has changed nothing but perhaps settings, which are stored next time.
        await asyncio.to_thread(change, working_set)
        await self._store_events()

    async def _store_events(self) -> None:
        working_set = self._working_set
        new = working_set.events[self._stored_events :]
        if not new:
            return
        entries = [Entry("event", encode(dict(event))) for event in new]
        version, self._version = self._version, -1
        info = await self._store.append(self._session_id, entries, expected_version=version)
        self._version, self._length = info.version, info.length
        self._stored_events += len(new)

    async def _window(
        self,
        system: object,
        tools: Sequence[Any] | _Unset | None,
        stakes: Stakes,
        open_calls: OpenCalls,
    ) -> Window:
        asked: dict[str, Any] = {"stakes": stakes, "open_calls": open_calls}
        if not isinstance(system, _Unset):
            asked["system"] = self._system = system
        if not isinstance(tools, _Unset):
            asked["tools"] = self._tools = tools
        found: list[Window] = []
        await self._changing(lambda working_set: found.append(working_set.window(**asked)))
        self._asked = found[0]
        return found[0]

    async def _observe(self, asked: Window, response: object) -> None:
        """Learns from what the provider says the request cost."""
        try:
            usage = usage_tokens(response)
        except InputError:
            return
        if usage.input <= 0 or asked.tokens <= 0:
            return
        self._calibration = self._calibration.observe(asked.tokens, usage)
        estimate = self._calibration.estimate(asked.tokens) / asked.tokens
        said = 1.0 if self._said_estimate is None else self._said_estimate
        if abs(estimate - said) > _NOTABLE * said:
            self._said_estimate = estimate
            event = self._calibration.event()
            async with self._lock:
                await self._refresh()
                await self._changing(lambda working_set: working_set.apply(event))

    def _give_way(self, working_set: WorkingSet, error: object) -> None:
        """Makes the next window smaller, by what the error says."""
        limit, actual = overflow_details(error) or (None, None)
        asked = self._asked
        if asked is not None and actual is not None and actual > asked.tokens:
            self._calibration = self._calibration.observe(asked.tokens, actual)
            working_set.apply(self._calibration.event())
        budget = asked.budget if asked is not None else self._assembler.budget
        if limit is not None and limit < budget:
            working_set.apply({"kind": "settings", "budget": limit})
        elif actual is None:
            working_set.apply({"kind": "settings", "budget": max(1, int(budget * _SHRINK))})

    async def _length_of(self, messages: int) -> int:
        """Entries of the log up to the first ``messages`` messages and the events before the next."""
        if isinstance(messages, bool) or not isinstance(cast("object", messages), int):
            message = f"a number of messages must be an int, not {type(messages).__name__}"
            raise InputError(message, code="invalid_value")
        entries = await self._store.read(self._session_id)
        ends = [at for at, entry in enumerate(entries) if entry.kind == "message"]
        if not 0 <= messages <= len(ends):
            message = f"the session has {len(ends)} messages, not {messages}"
            raise InputError(message, code="invalid_value", value=messages, limit=len(ends))
        if messages == len(ends):
            return len(entries)
        return ends[messages - 1] + 1 if messages else 1


def _listed(messages: object) -> list[Any]:
    is_one = hasattr(messages, "keys") or any(
        hasattr(messages, name) for name in ("role", "type", "parts")
    )
    if is_one or isinstance(messages, (str, bytes)):
        return [messages]
    try:
        return list(cast("Sequence[Any]", messages))
    except TypeError as error:
        message = f"messages must be a message or several, not {type(messages).__name__}"
        raise InputError(message, code="invalid_message") from error


def _keys_of(messages: Sequence[Any], ids: Sequence[str | None] | None) -> list[str | None]:
    if ids is None:
        found: list[object] = [
            cast("dict[str, Any]", message).get("id")
            if isinstance(message, dict)
            else getattr(message, "id", None)
            for message in messages
        ]
        return [one if isinstance(one, str) and one else None for one in found]
    if len(ids) != len(messages):
        message = f"{len(ids)} ids for {len(messages)} messages"
        raise InputError(message, code="invalid_value", value=len(ids), limit=len(messages))
    return [None if one is None else check_id("an id", one) for one in ids]


def _answers(working_set: WorkingSet, messages: Sequence[Any]) -> bool:
    """Whether these messages begin with results of the newest step's calls."""
    from satchel import _core  # noqa: PLC0415 - only where two writers met

    described = _core.describe_message(messages[0], working_set.dialect)
    return any(part["kind"] == "result" for part in described["parts"])


