"""A stored conversation: append, ask for windows, and nothing is lost on the way.

A session is a log in a store and the working set over it. Every method appends first to the log and
answers from the working set, which is rebuilt from the log whenever that is not what this object
last saw: after another process wrote, after an error, after a restart. Work that takes time runs in
a thread, so an event loop is never blocked; one session does one thing at a time.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Self, cast

from satchel._arguments import UNSET, Unset, listed
from satchel._replies import messages_in
from satchel._session_log import SessionLog, encoded
from satchel._summaries import Summaries
from satchel.assembler import Assembler
from satchel.errors import CompactionError, InputError
from satchel.overflow import is_overflow_error, overflow_details
from satchel.stores import open_store
from satchel.stores.base import check_id, checked_life, checked_limit, wrong_user
from satchel.stores.codec import decode, encode
from satchel.summarize.base import Summarizer
from satchel.telemetry import observed_window
from satchel.usage import Calibration, usage_tokens

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from types import TracebackType

    from satchel._stakes import Stakes
    from satchel.assembler import Budget
    from satchel.compaction import CompactionReport, SummaryPart
    from satchel.counting import AnyCounter
    from satchel.policy import Policy
    from satchel.stores.base import SessionStore
    from satchel.summarize.writing import Patience, Written
    from satchel.window import StepReport, Window
    from satchel.working_set import OpenCalls, WorkingSet

__all__ = ["Session", "SessionState", "open_session"]

_OVERFLOWS: Final = 3
"""How many overflows in a row are answered with a smaller window."""

_SHRINK: Final = 0.9
"""What is left of the window's tokens after an overflow that names no figures."""

_NOTABLE: Final = 0.01
"""Share by which an estimate must change before it is worth an event."""


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
    summarizer: Summarizer | Sequence[Summarizer] | None = None,
    patience: Patience | None = None,
    flushed: Callable[[SummaryPart, Written], Awaitable[None]] | None = None,
    redactor: Callable[[str], object] | None = None,
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
        summarizer: who writes summaries, if ``policy.summary`` asks for them; several are asked one
            after the other. The extractive one, which needs no model, comes last in any case.
        patience: how long summaries are waited for.
        flushed: called with each part that a summary took out of the window, and the summary; for
            what should be remembered beyond the session. One that failed, or was cut off by the end
            of its process, is called again when the session is opened next with a ``flushed``.
        redactor: what every summary passes before it is stored or shown: a function of a text that
            gives a text, or something with a ``text``. Messages are stored as they are appended.
        ttl_s: seconds after the last write when all of the session goes; None for never.

    Raises:
        InputError: ``unknown_store``, ``unknown_model``, ``unknown_dialect``, ``invalid_value``.
    """
    check_id("session_id", session_id)
    if user_id is not None:
        check_id("user_id", user_id)
    if ttl_s is not None:
        checked_life("ttl_s", ttl_s)
    assembler = Assembler(model, budget=budget, counter=counter, policy=policy, dialect=dialect)
    store = open_store(url) if isinstance(url, str) else url
    return Session(
        store,
        session_id=session_id,
        user_id=user_id,
        assembler=assembler,
        ttl_s=ttl_s,
        owns_store=isinstance(url, str),
        chain=_chain_of(summarizer),
        patience=patience,
        flushed=flushed,
        redactor=redactor,
    )


class SessionState:
    """A value of the application's, kept with a session and read and written as a whole.

    Anything that JSON can say. Made by `Session.state`.
    """

    __slots__ = ("_session_id", "_store", "_user_id")

    def __init__(self, store: SessionStore, session_id: str, user_id: str | None) -> None:
        self._store: Final = store
        self._session_id: Final = session_id
        self._user_id: Final = user_id

    async def get(self) -> tuple[Any, int]:
        """The value and its version; ``(None, 0)`` if it was never written.

        Raises:
            StoreError: ``wrong_user`` if the session was deleted and is somebody else's now.
        """
        await self._check()
        found = await self._store.get_value(self._session_id, "state")
        return (None, 0) if found is None else (decode(found.payload), found.version)

    async def set(self, value: object, *, expected_version: int | None = None) -> int:
        """Writes the value; returns its new version.

        Raises:
            StoreError: ``version_conflict`` if ``expected_version`` is not its version;
                ``wrong_user``.
            InputError: for what cannot be written as JSON.
        """
        await self._check()
        return await self._store.put_value(
            self._session_id, "state", encode(value), expected_version=expected_version
        )

    async def _check(self) -> None:
        if (await self._store.info(self._session_id)).user_id != self._user_id:
            raise wrong_user()


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
        chain: Sequence[Summarizer] = (),
        patience: Patience | None = None,
        flushed: Callable[[SummaryPart, Written], Awaitable[None]] | None = None,
        redactor: Callable[[str], object] | None = None,
    ) -> None:
        self._store: Final = store
        self._session_id: Final = session_id
        self._user_id: Final = user_id
        self._assembler: Final = assembler
        self._ttl_s: Final = ttl_s
        self._owns_store: Final = owns_store
        self._lock: Final = asyncio.Lock()
        self._log: Final = SessionLog(store, session_id, user_id, assembler)
        self._summaries: Final = Summaries(
            self._log,
            self._lock,
            assembler.policy,
            chain=chain,
            patience=patience,
            flushed=flushed,
            redactor=redactor,
        )
        self._chain: Final = tuple(chain)
        self._patience: Final = patience
        self._flushed: Final = flushed
        self._redactor: Final = redactor
        self._calibration = Calibration()
        self._said_estimate = 1.0
        self._asked: Window | None = None
        self._overflows = 0

    # --- opening and closing ----------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """Opens the session.

        Raises:
            StoreError: ``wrong_user`` if it belongs to somebody else; whatever the store says.
        """
        try:
            info = await self._store.open(
                self._session_id, user_id=self._user_id, ttl_s=self._ttl_s
            )
            async with self._lock:
                self._log.open()
                self._summaries.open()
                await self._log.load(info)
            self._summaries.catch_up()
        except BaseException:
            # Nobody leaves what could not be entered: connections would stay open.
            await self.close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends what the session is doing and lets go of the store; twice does no harm."""
        await self._summaries.close()
        self._log.close()
        if self._owns_store:
            await self._store.close()

    def __repr__(self) -> str:
        return f"<satchel.Session of {self._log.length} entries>"

    @property
    def session_id(self) -> str:
        """Its id."""
        return self._session_id

    @property
    def user_id(self) -> str | None:
        """Whose it is."""
        return self._user_id

    @property
    def dialect(self) -> str:
        """The dialect of its messages; of an opened session."""
        return self._log.working_set.dialect

    @property
    def version(self) -> int:
        """The version that this object last saw; for ``expected_version``."""
        return self._log.version

    @property
    def state(self) -> SessionState:
        """A value of the application's, kept with the session."""
        return SessionState(self._store, self._session_id, self._user_id)

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
        appended in the meantime comes before; but if calls of theirs wait for results (those of a
        process that ended, too), nothing may come between, and the append is refused.

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
        entries = await encoded(given, keys)
        async with self._lock:
            await self._log.append(entries, given, expected_version)
            return self._log.version

    async def record(self, response: object, *, once: bool = True) -> int:
        """Appends the reply of a model call and learns from the usage that it reports.

        Args:
            response: what the provider's client returned, whole; or the message alone.
            once: whether a reply with the id of one that was recorded is that one, and left out;
                False for a reply that has just come, of a server that gives an id twice.

        Returns:
            The session's version.

        Raises:
            InputError: ``invalid_message`` if there is no reply in it.
            StoreError: as in `append`.
        """
        working_set = self._log.working_set
        messages = messages_in(response, working_set.dialect)
        [own_id] = _keys_of([response], None) if once else [None]
        # One call, one reply: recorded again after a crash, it is the same.
        ids = [None if own_id is None else f"{own_id}/{place}" for place in range(len(messages))]
        asked = self._asked
        version = await self.append(messages, ids=ids)
        self._overflows = 0
        if asked is not None:
            await self._observe(asked, response)
            version = self._log.version
        return version

    async def messages(self, limit: int | None = None) -> list[Any]:
        """The raw history, oldest first; the newest ``limit`` of it, 0 for none.

        Raises:
            InputError: ``invalid_value`` for a limit below 0.
        """
        most = checked_limit(limit)
        async with self._lock:
            await self._log.refresh()
            return await self._log.messages(most)

    async def events(self) -> tuple[Mapping[str, Any], ...]:
        """All events of the log."""
        async with self._lock:
            await self._log.refresh()
            return self._log.working_set.events

    async def apply(self, event: Mapping[str, Any]) -> None:
        """Appends an event, such as ``{"kind": "pin", "index": 3}``.

        Raises:
            InputError: as in `WorkingSet.apply`.
            PageNotFoundError: likewise.
            StoreError: whatever the store says.
        """
        async with self._lock:
            await self._log.refresh()
            await self._log.insist(lambda working_set: working_set.apply(event))

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
        system: object = UNSET,
        tools: Sequence[Any] | Unset | None = UNSET,
        memories: Iterable[object] = (),
        query: str | None = None,
        stakes: Stakes = "normal",
        open_calls: OpenCalls = "raise",
    ) -> Window:
        """The window for the next call; arguments as in `WorkingSet.window`.

        Raises:
            BudgetError: ``over_budget``.
            InputError: ``open_calls``, ``counter_failed``, ``invalid_value``.
            StoreError: whatever the store says.
        """
        asked: dict[str, Any] = {"query": query, "stakes": stakes, "open_calls": open_calls}
        # A window that is asked for anew, after another writer's append, asks for them again.
        asked["memories"] = listed("memories", memories, of="items or texts")
        with observed_window(self._session_id) as given:
            async with self._lock:
                await self._log.refresh()
                await self._summaries.consider(self._asked)
            await self._summaries.settle()
            async with self._lock:
                given.append(await self._window(system, tools, asked))
        return given[-1]

    async def observe_overflow(self, error: object) -> Window:
        """A smaller window after the provider said that the last one was too long.

        Counts are calibrated by the figures that the error names; where it names none, the budget
        becomes nine tenths of what was refused.

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
            await self._log.refresh()
            before = self._asked
            self._overflows += 1
            await self._log.insist(lambda working_set: self._give_way(working_set, error))
            window = await self._window(UNSET, UNSET, {"open_calls": "synthesize"})
            if before is not None and window.tokens >= before.tokens:
                message = f"the window of {window.tokens} tokens cannot become smaller"
                raise CompactionError(message, code="nothing_to_compact", value=window.tokens)
            return window

    async def explain(self, index: int | None = None) -> list[StepReport]:
        """What happened to each step, or to the step of message ``index``."""
        async with self._lock:
            await self._log.refresh()
            found = await self._log.run(lambda working_set: working_set.explain(index))
            return found if isinstance(found, list) else [found]

    async def page_in(
        self, pointer: str, *, pattern: str | None = None, lines: tuple[int, int] | None = None
    ) -> str:
        """The content behind a pointer of this session; as `WorkingSet.page_in`.

        Raises:
            PageNotFoundError: ``page_not_found``, for a pointer of another session too.
        """
        async with self._lock:
            await self._log.refresh()
            return await self._log.run(
                lambda working_set: working_set.page_in(pointer, pattern=pattern, lines=lines)
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
            await self._log.refresh()
            length = await self._log.length_of(at)
            await self._store.branch(self._session_id, target, length=length, user_id=self._user_id)
        return Session(
            self._store,
            session_id=target,
            user_id=self._user_id,
            assembler=self._assembler,
            ttl_s=self._ttl_s,
            owns_store=False,
            chain=self._chain,
            patience=self._patience,
            flushed=self._flushed,
            redactor=self._redactor,
        )

    async def rewind(self, to: int) -> int:
        """Takes back everything behind the first ``to`` messages; returns the version.

        Raises:
            InputError: ``invalid_value`` if there are not as many messages.
            StoreError: ``version_conflict`` if somebody else writes at the same moment.
        """
        async with self._lock:
            await self._log.refresh()
            length = await self._log.length_of(to)
            await self._log.truncate(length)
            return self._log.version

    # --- summaries --------------------------------------------------------------------------------

    async def compact(self, *, force: bool = False, focus: str | None = None) -> CompactionReport:
        """Summarises the older part of the history now, if the policy finds it due.

        What a summary covers leaves the window and stays behind its pointers; what must stay exact
        is quoted beside it. Where a summary is being written already, it is waited for first.

        Args:
            force: also where the policy finds nothing due.
            focus: what the summary should dwell on.

        Returns:
            What came of it.

        Raises:
            CompactionError: ``nothing_to_compact`` with ``force``; ``summary_failed``. The history
                is as it was.
        """
        return await self._summaries.compact(force=force, focus=focus, asked=self._asked)

    @property
    def newest_compaction(self) -> CompactionReport | None:
        """What the newest summary came to, also in the background; None before the first."""
        return self._summaries.newest

    # --- inside -----------------------------------------------------------------------------------

    async def _window(
        self,
        system: object,
        tools: Sequence[Any] | Unset | None,
        asked: dict[str, Any],
    ) -> Window:
        log, found = self._log, list["Window"]()
        if not isinstance(system, Unset):
            asked["system"] = system
        if not isinstance(tools, Unset):
            asked["tools"] = tools

        def ask(working_set: WorkingSet) -> None:
            if "system" in asked or "tools" in asked:
                log.first_request(asked.get("system"), asked.get("tools"))
                log.system = asked.get("system", log.system)
                log.tools = asked.get("tools", log.tools)
            found.append(working_set.window(**asked))

        await log.insist(ask)
        # The newest, if it had to be made again after another writer's append.
        window = self._asked = found[-1]
        if self._summaries.newest is None:
            return window
        report = window.report.model_copy(update={"summary": self._summaries.newest})
        return replace(window, report=report)

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
        if abs(estimate - self._said_estimate) > _NOTABLE * self._said_estimate:
            self._said_estimate = estimate
            event = self._calibration.event()
            async with self._lock:
                await self._log.refresh()
                await self._log.insist(lambda working_set: working_set.apply(event))

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
            # What was refused may have been well within the budget.
            least = budget if asked is None else min(budget, asked.tokens)
            working_set.apply({"kind": "settings", "budget": max(1, int(least * _SHRINK))})


def _chain_of(summarizer: Summarizer | Sequence[Summarizer] | None) -> tuple[Summarizer, ...]:
    found = (
        ()
        if summarizer is None
        else (summarizer,)
        if isinstance(summarizer, Summarizer)
        else tuple(summarizer)
    )
    for one in found:
        if not isinstance(cast("object", one), Summarizer):
            message = f"a summarizer needs a name and summarize(request), not {type(one).__name__}"
            raise InputError(message, code="invalid_value")
    return found


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


def _is_id(text: str) -> bool:
    try:
        check_id("an id", text)
    except InputError:
        # What a message carries need not be fit for a key; the message is kept all the same.
        return False
    return True


def _keys_of(messages: Sequence[Any], ids: Sequence[str | None] | None) -> list[str | None]:
    if ids is None:
        found: list[object] = [
            cast("dict[str, Any]", message).get("id")
            if isinstance(message, dict)
            else getattr(message, "id", None)
            for message in messages
        ]
        return [one if isinstance(one, str) and _is_id(one) else None for one in found]
    if len(ids) != len(messages):
        message = f"{len(ids)} ids for {len(messages)} messages"
        raise InputError(message, code="invalid_value", value=len(ids), limit=len(messages))
    return [None if one is None else check_id("an id", one) for one in ids]
