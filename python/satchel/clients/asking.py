"""Asking a model: a window out, a reply in, and again with a smaller window if it was too long.

Errors of the client's call (a busy provider, a refused key, a lost connection) come out as the
client raises them, and the session is as it was. Trying those again is the client's business, which
knows how long to wait; only a window that was too long is answered here, since only the session
knows how to make a smaller one. It does so three times in a row at most.

Replies are recorded whatever their id: some servers give the same id again after a few dozen calls,
and a reply that has just come is a new one.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import satchel.session as waiting
from satchel import sync
from satchel._arguments import name_of_type
from satchel.clients.reply import (
    Reply,
    check_refused,
    checked,
    field,
    in_known_form,
    results_of,
)
from satchel.clients.streaming import AsyncReplyStream, ReplyStream
from satchel.errors import InputError
from satchel.overflow import is_overflow_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from satchel._stakes import Stakes
    from satchel.clients.api import Api
    from satchel.clients.reply import ToolCall
    from satchel.window import Window
    from satchel.working_set import OpenCalls

__all__ = ["Asking", "AsyncModel", "Model"]


class Asking:
    """One call: its arguments, and what is made of the response. Sends nothing.

    Raises:
        InputError: ``invalid_value`` for an argument that is the window's to give.
    """

    def __init__(
        self, api: Api, client: object, asked: Mapping[str, Any], options: Mapping[str, Any]
    ) -> None:
        for name in options:
            if name in api.owned:
                message = f"{name} is not an argument here: the window gives it, or the history"
                raise InputError(message, code="invalid_value")
        self.api: Final = api
        self.asked: Final = asked
        self._options: Final = options
        self._create: Final = _function(api, client)
        self.overflows = 0

    def send(self, window: Window, *, is_streamed: bool) -> Any:  # noqa: ANN401 - a client's object
        """Calls the client; what it returns may have to be awaited."""
        return self._create(**self.api.arguments(window, self._options, is_streamed=is_streamed))

    def is_refused(self, error: Exception) -> bool:
        """Whether an error says that the window was too long; counts it then."""
        is_refused = is_overflow_error(error)
        self.overflows += is_refused
        return is_refused

    def reply(self, response: object, window: Window) -> Reply:
        """The reply in a response.

        Raises:
            ReplyError: see `AsyncModel.ask`.
        """
        with in_known_form():
            return Reply.of(checked(self.api.read(response)), response, window, self.overflows)

    def check_dialect(self, dialect: str) -> None:
        """Makes sure that a session speaks the API's dialect.

        Raises:
            InputError: ``invalid_value``.
        """
        if dialect != self.api.dialect:
            message = (
                f"this call speaks {self.api.dialect!r} and the session {dialect!r}: "
                f"open the session with dialect={self.api.dialect!r}"
            )
            raise InputError(message, code="invalid_value")


def _open_calls(api: Api, messages: Sequence[object]) -> tuple[ToolCall, ...]:
    """Calls of the newest step that no message answers."""
    calls: list[ToolCall] = []
    answered: set[str] = set()
    for message in reversed(messages):
        found, results = api.calls_in(message), api.answered_in(message)
        is_aside = field(message, "type") == "reasoning"
        if not (found or results or is_aside) or (results and calls):
            break
        calls[:0] = found
        answered |= results
    return tuple(call for call in calls if call.id not in answered)


def _function(api: Api, client: object) -> Callable[..., Any]:
    try:
        return api.create(client)
    except AttributeError as error:
        message = f"client must be a client of the API, not {name_of_type(client)}"
        raise InputError(message, code="invalid_value") from error


def _check_kind(client: object, *, is_async: bool) -> None:
    """Refuses a client whose calls would block an event loop, or could not be waited for."""
    bases = {base.__name__ for base in type(client).__mro__}
    wrong = "SyncAPIClient" if is_async else "AsyncAPIClient"
    if wrong in bases:
        wanted = "an async client" if is_async else "a client that waits"
        message = f"client must be {wanted}, not {name_of_type(client)}"
        raise InputError(message, code="invalid_value")


class AsyncModel:
    """A model that a session is asked for; base of the classes for each API.

    Args:
        client: the provider's asynchronous client, with a key and retries of its own.
        session: an entered `satchel.Session` of the API's dialect.
        system: the system prompt of every call.
        tools: the tool definitions of every call.
        options: further arguments of every call, such as ``temperature``, or ``model`` where a
            server calls the model by another name than `satchel.models`.

    Raises:
        InputError: ``invalid_value`` for a client or session of another kind.
    """

    _api: ClassVar[Api]

    def __init__(
        self,
        client: Any,  # noqa: ANN401 - subclasses name it
        session: waiting.Session,
        *,
        system: object = None,
        tools: Sequence[Any] | None = None,
        **options: Any,  # noqa: ANN401 - the client's own arguments
    ) -> None:
        _check_kind(client, is_async=True)
        if not isinstance(cast("object", session), waiting.Session):
            message = f"session must be a satchel.Session, not {name_of_type(session)}"
            raise InputError(message, code="invalid_value")
        self._client: Final[Any] = client
        self._session: Final = session
        self._fixed: Final[dict[str, Any]] = {"system": system, "tools": tools}
        self._options: Final = options
        self._asking({}, {})  # a wrong option is found here, not at the first call

    @property
    def session(self) -> waiting.Session:
        """The session."""
        return self._session

    async def ask(
        self,
        *,
        memories: Iterable[object] = (),
        query: str | None = None,
        stakes: Stakes = "normal",
        open_calls: OpenCalls = "raise",
        **options: Any,  # noqa: ANN401 - the client's own arguments
    ) -> Reply:
        """Sends the session's window, and records the reply and what it cost.

        Args:
            memories: as for `Session.window`.
            query: likewise.
            stakes: likewise.
            open_calls: likewise.
            options: arguments of this call, beside and before those of all calls.

        Returns:
            The reply, which is in the session already.

        Raises:
            ReplyError: ``reply_empty``, ``reply_refused``, ``reply_cut`` (in the middle of a call,
                or before it had said anything), ``reply_failed``. Nothing was recorded.
            CompactionError: ``overflow_persists`` or ``nothing_to_compact`` if the provider refuses
                windows that the session can make; its error is the context.
            InputError: as for `Session.window`; ``invalid_value`` for an argument that the window
                gives, and for a session of another dialect.
            BudgetError: as for `Session.window`.
            StoreError: whatever the store says.
        """
        asked = {
            "memories": memories,
            "query": query,
            "stakes": stakes,
            "open_calls": open_calls,
        }
        asking = self._asking(asked, options)
        asking.check_dialect(self._session.dialect)
        window = await self._session.window(**asking.asked)
        while True:
            try:
                response = asking.send(window, is_streamed=False)
                if inspect.isawaitable(response):
                    response = await response
                check_refused(response)
            except Exception as error:
                if not asking.is_refused(error):
                    raise
                window = await self._session.observe_overflow(error)
            else:
                reply = asking.reply(response, window)
                await self._session.record(response, once=False)
                return reply

    def stream(
        self,
        *,
        memories: Iterable[object] = (),
        query: str | None = None,
        stakes: Stakes = "normal",
        open_calls: OpenCalls = "raise",
        **options: Any,  # noqa: ANN401 - the client's own arguments
    ) -> AsyncReplyStream:
        """As `ask`, event by event; to be entered with ``async with``.

        Example::

            async with model.stream() as events:
                async for event in events:
                    show(event)
            reply = events.reply
        """
        asked = {
            "memories": memories,
            "query": query,
            "stakes": stakes,
            "open_calls": open_calls,
        }
        return AsyncReplyStream(self._session, self._asking(asked, options))

    async def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls that still have to be answered: those of a program that ended, say.

        Returns:
            The calls of the newest step that have no result in the session, in order.
        """
        return _open_calls(self._api, await self._session.messages())

    def results(
        self,
        calls: Sequence[ToolCall],
        outputs: Mapping[str, Any] | Iterable[Any],
        *,
        errors: Iterable[str] = (),
    ) -> list[dict[str, Any]]:
        """The messages that answer calls; as `Reply.results`."""
        return results_of(calls, outputs, errors, self._api.dialect)

    def _asking(self, asked: Mapping[str, Any], options: Mapping[str, Any]) -> Asking:
        given = {**self._options, **options}
        return Asking(self._api, self._client, {**self._fixed, **asked}, given)


class Model:
    """As `AsyncModel`, blocking: a client that waits, and a session of `satchel.sync`."""

    _api: ClassVar[Api]

    def __init__(
        self,
        client: Any,  # noqa: ANN401 - subclasses name it
        session: sync.Session,
        *,
        system: object = None,
        tools: Sequence[Any] | None = None,
        **options: Any,  # noqa: ANN401 - the client's own arguments
    ) -> None:
        _check_kind(client, is_async=False)
        if not isinstance(cast("object", session), sync.Session):
            message = f"session must be a satchel.sync.Session, not {name_of_type(session)}"
            raise InputError(message, code="invalid_value")
        self._client: Final[Any] = client
        self._session: Final = session
        self._fixed: Final[dict[str, Any]] = {"system": system, "tools": tools}
        self._options: Final = options
        self._asking({}, {})

    @property
    def session(self) -> sync.Session:
        """The session."""
        return self._session

    def ask(
        self,
        *,
        memories: Iterable[object] = (),
        query: str | None = None,
        stakes: Stakes = "normal",
        open_calls: OpenCalls = "raise",
        **options: Any,  # noqa: ANN401 - the client's own arguments
    ) -> Reply:
        """As `AsyncModel.ask`."""
        asked = {
            "memories": memories,
            "query": query,
            "stakes": stakes,
            "open_calls": open_calls,
        }
        asking = self._asking(asked, options)
        asking.check_dialect(self._session.dialect)
        window = self._session.window(**asking.asked)
        while True:
            try:
                response = asking.send(window, is_streamed=False)
                check_refused(response)
            except Exception as error:
                if not asking.is_refused(error):
                    raise
                window = self._session.observe_overflow(error)
            else:
                reply = asking.reply(response, window)
                self._session.record(response, once=False)
                return reply

    def stream(
        self,
        *,
        memories: Iterable[object] = (),
        query: str | None = None,
        stakes: Stakes = "normal",
        open_calls: OpenCalls = "raise",
        **options: Any,  # noqa: ANN401 - the client's own arguments
    ) -> ReplyStream:
        """As `AsyncModel.stream`; to be entered with ``with``."""
        asked = {
            "memories": memories,
            "query": query,
            "stakes": stakes,
            "open_calls": open_calls,
        }
        return ReplyStream(self._session, self._asking(asked, options))

    def open_calls(self) -> tuple[ToolCall, ...]:
        """As `AsyncModel.open_calls`."""
        return _open_calls(self._api, self._session.messages())

    def results(
        self,
        calls: Sequence[ToolCall],
        outputs: Mapping[str, Any] | Iterable[Any],
        *,
        errors: Iterable[str] = (),
    ) -> list[dict[str, Any]]:
        """The messages that answer calls; as `Reply.results`."""
        return results_of(calls, outputs, errors, self._api.dialect)

    def _asking(self, asked: Mapping[str, Any], options: Mapping[str, Any]) -> Asking:
        given = {**self._options, **options}
        return Asking(self._api, self._client, {**self._fixed, **asked}, given)
