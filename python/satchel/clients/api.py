"""What the rest of this package knows of one provider's API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from satchel.clients.reply import Reading, ToolCall
    from satchel.window import Window

__all__ = ["Api", "Collector"]


class Collector(Protocol):
    """Puts the events of one stream together."""

    def take(self, event: Any, /) -> bool:  # noqa: ANN401 - a client's object
        """Takes the next event; whether it holds a part of the reply."""
        ...

    def whole(self) -> Any:  # noqa: ANN401 - a client's object
        """What the client returns where it does not stream.

        Raises:
            ReplyError: ``reply_broken_off`` if no event said that the reply is over.
        """
        ...


class Api(Protocol):
    """One API: which call is made with which arguments, and what comes back."""

    @property
    def dialect(self) -> str:
        """The dialect of its messages."""
        ...

    @property
    def owned(self) -> frozenset[str]:
        """Arguments of the call that a caller does not give.

        The window gives them, or they would take the history out of the session's hands.
        """
        ...

    def create(self, client: Any, /) -> Callable[..., Any]:  # noqa: ANN401 - as above
        """The function of the client that asks."""
        ...

    def arguments(
        self, window: Window, options: Mapping[str, Any], *, is_streamed: bool
    ) -> dict[str, Any]:
        """The arguments of the call."""
        ...

    def collector(self) -> Collector:
        """For the events of one stream."""
        ...

    def read(self, response: object, /) -> Reading:
        """What is in a response.

        Raises:
            ReplyError: ``reply_failed`` if there is no reply in it.
        """
        ...

    def calls_in(self, message: object, /) -> tuple[ToolCall, ...]:
        """The calls in one message of a history."""
        ...

    def answered_in(self, message: object, /) -> frozenset[str]:
        """The ids of the calls that one message of a history answers."""
        ...
