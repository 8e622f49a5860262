"""A session and Anthropic's client: the window goes out, the reply comes back and is recorded.

The client is yours, with its key, its retries and its timeouts, also one of its classes for
Bedrock, Vertex or Foundry; ``anthropic`` itself is not imported before a reply is streamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from satchel.clients import AsyncModel, AsyncReplyStream, Model, Reply, ReplyStream, ToolCall
from satchel.clients.messages import MessagesApi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anthropic import Anthropic, AsyncAnthropic

    from satchel import Session, sync
    from satchel.clients.api import Api

__all__ = ["AsyncMessages", "AsyncReplyStream", "Messages", "Reply", "ReplyStream", "ToolCall"]


class AsyncMessages(AsyncModel):
    """Messages for a `satchel.Session` of the dialect ``anthropic``; see `AsyncModel`.

    Without ``max_tokens`` among the options an answer may have 8,192 tokens, or the model's limit
    if that is less.
    """

    _api: ClassVar[Api] = MessagesApi()

    if TYPE_CHECKING:

        def __init__(
            self,
            client: AsyncAnthropic,
            session: Session,
            *,
            system: object = None,
            tools: Sequence[Any] | None = None,
            **options: Any,  # noqa: ANN401 - the client's own arguments
        ) -> None: ...


class Messages(Model):
    """As `AsyncMessages`, blocking, for a `satchel.sync.Session`."""

    _api: ClassVar[Api] = MessagesApi()

    if TYPE_CHECKING:

        def __init__(
            self,
            client: Anthropic,
            session: sync.Session,
            *,
            system: object = None,
            tools: Sequence[Any] | None = None,
            **options: Any,  # noqa: ANN401 - the client's own arguments
        ) -> None: ...
