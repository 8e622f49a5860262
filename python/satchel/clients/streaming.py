"""A reply event by event, and recorded as one when it is over.

A stream that breaks off looks like a short reply. What counts is whether the provider said that
the reply is over; where it did not, nothing is recorded. Events that carry no part of the reply
yet are held back, so that a window that turns out to be too long can still be made smaller.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, Final, Self

from satchel.clients.reply import broken_off, check_refused, in_known_form
from satchel.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import TracebackType

    import satchel.session as waiting
    from satchel import sync
    from satchel.clients.api import Collector
    from satchel.clients.asking import Asking
    from satchel.clients.reply import Reply
    from satchel.window import Window

__all__ = ["AsyncReplyStream", "ReplyStream"]

_END: Final = object()


class _State:
    """What both kinds of stream know."""

    def __init__(self, asking: Asking) -> None:
        self._asking: Final = asking
        self._stream: Any = None
        self._iterator: Any = None
        self._held: list[Any] = []
        self._collector: Collector = asking.api.collector()
        self._window: Window | None = None
        self._reply: Reply | None = None

    @property
    def reply(self) -> Reply:
        """The reply, once all events were read.

        Raises:
            UsageError: ``reply_pending`` before.
        """
        if self._reply is None:
            message = "the reply is not over: read all events first, or call collect()"
            raise UsageError(message, code="reply_pending")
        return self._reply

    @property
    def window(self) -> Window:
        """What was sent.

        Raises:
            UsageError: ``reply_pending`` before the stream was entered.
        """
        if self._window is None:
            message = "the stream was not entered yet"
            raise UsageError(message, code="reply_pending")
        return self._window

    def _begin(self, stream: Any, iterator: Any) -> None:  # noqa: ANN401 - a client's objects
        self._stream, self._iterator = stream, iterator
        self._held, self._collector = [], self._asking.api.collector()

    def _hold(self, event: object) -> bool:
        """Holds an event back; whether the next ones can be shown."""
        if event is _END:
            check_refused(self._whole())
            return True
        self._held.append(event)
        return self._take(event)

    def _take(self, event: object) -> bool:
        with in_known_form():
            return self._collector.take(event)

    def _whole(self) -> Any:  # noqa: ANN401 - a client's object
        with in_known_form():
            return self._collector.whole()


class AsyncReplyStream(_State):
    """The events of one reply, as the client gives them; made by `AsyncModel.stream`."""

    def __init__(self, session: waiting.Session, asking: Asking) -> None:
        super().__init__(asking)
        self._session: Final = session

    async def __aenter__(self) -> Self:
        """Sends the window, and again a smaller one where it was too long.

        Raises:
            ReplyError: ``reply_broken_off`` if the stream ends before the reply does;
                ``reply_failed`` for an event of another form.
            CompactionError: as `AsyncModel.ask`; InputError, BudgetError and StoreError too.
        """
        self._asking.check_dialect(self._session.dialect)
        self._window = await self._session.window(**self._asking.asked)
        while True:
            try:
                stream = self._asking.send(self.window, is_streamed=True)
                if inspect.isawaitable(stream):
                    stream = await stream
                self._begin(stream, aiter(stream))
                while not self._hold(await self._next()):
                    pass
            except Exception as error:
                await self._close()
                if not self._asking.is_refused(error):
                    raise
                self._window = await self._session.observe_overflow(error)
            except BaseException:
                await self._close()
                raise
            else:
                return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close()

    async def __aiter__(self) -> AsyncIterator[Any]:
        """The client's own events, and the reply is recorded after the last.

        Raises:
            ReplyError: ``reply_broken_off``, and as `AsyncModel.ask`.
        """
        if self._reply is not None:
            return
        while self._held:
            yield self._held.pop(0)
        while (event := await self._next()) is not _END:
            self._take(event)
            yield event
        await self._finish()

    async def collect(self) -> Reply:
        """Reads what is left; the reply."""
        async for _ in self:
            pass
        return self.reply

    async def _next(self) -> object:
        try:
            return await anext(self._iterator, _END)
        except Exception as error:
            raise broken_off() from error

    async def _finish(self) -> None:
        response = self._whole()
        reply = self._asking.reply(response, self.window)
        await self._session.record(response, once=False)
        self._reply = reply

    async def _close(self) -> None:
        close = getattr(self._stream, "close", None)
        self._stream = None
        if callable(close):
            closing = close()
            if inspect.isawaitable(closing):
                await closing


class ReplyStream(_State):
    """As `AsyncReplyStream`, blocking; made by `Model.stream`."""

    def __init__(self, session: sync.Session, asking: Asking) -> None:
        super().__init__(asking)
        self._session: Final = session

    def __enter__(self) -> Self:
        """As `AsyncReplyStream.__aenter__`."""
        self._asking.check_dialect(self._session.dialect)
        self._window = self._session.window(**self._asking.asked)
        while True:
            try:
                stream = self._asking.send(self.window, is_streamed=True)
                self._begin(stream, iter(stream))
                while not self._hold(self._next()):
                    pass
            except Exception as error:
                self._close()
                if not self._asking.is_refused(error):
                    raise
                self._window = self._session.observe_overflow(error)
            except BaseException:
                self._close()
                raise
            else:
                return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def __iter__(self) -> Iterator[Any]:
        """As `AsyncReplyStream.__aiter__`."""
        if self._reply is not None:
            return
        while self._held:
            yield self._held.pop(0)
        while (event := self._next()) is not _END:
            self._take(event)
            yield event
        response = self._whole()
        reply = self._asking.reply(response, self.window)
        self._session.record(response, once=False)
        self._reply = reply

    def collect(self) -> Reply:
        """Reads what is left; the reply."""
        for _ in self:
            pass
        return self.reply

    def _next(self) -> object:
        try:
            return next(self._iterator, _END)
        except Exception as error:
            raise broken_off() from error

    def _close(self) -> None:
        close = getattr(self._stream, "close", None)
        self._stream = None
        if callable(close):
            close()
