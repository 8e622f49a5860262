"""A session and OpenAI's client: the window goes out, the reply comes back and is recorded.

``AsyncChat`` and ``Chat`` ask chat completions, ``AsyncResponses`` and ``Responses`` the Responses
API; also a server or client class that speaks the same. The client is yours, with its key, its
retries and its timeouts; ``openai`` itself is not imported before a reply is streamed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from satchel.clients import AsyncModel, AsyncReplyStream, Model, Reply, ReplyStream, ToolCall
from satchel.clients.chat import ChatApi
from satchel.clients.responses import ResponsesApi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openai import AsyncOpenAI, OpenAI

    from satchel import Session, sync
    from satchel.clients.api import Api

__all__ = [
    "AsyncChat",
    "AsyncReplyStream",
    "AsyncResponses",
    "Chat",
    "Reply",
    "ReplyStream",
    "Responses",
    "ToolCall",
]


class AsyncChat(AsyncModel):
    """Chat completions for a `satchel.Session` of the dialect ``openai``; see `AsyncModel`."""

    _api: ClassVar[Api] = ChatApi()

    if TYPE_CHECKING:

        def __init__(
            self,
            client: AsyncOpenAI,
            session: Session,
            *,
            system: object = None,
            tools: Sequence[Any] | None = None,
            **options: Any,  # noqa: ANN401 - the client's own arguments
        ) -> None: ...


class AsyncResponses(AsyncModel):
    """Responses for a `satchel.Session` of the dialect ``openai-responses``; see `AsyncModel`.

    With ``store=False`` among the options nothing is kept by OpenAI: items go out without the ids
    that it could not look up, and reasoning comes back encrypted.
    """

    _api: ClassVar[Api] = ResponsesApi()

    if TYPE_CHECKING:

        def __init__(
            self,
            client: AsyncOpenAI,
            session: Session,
            *,
            system: object = None,
            tools: Sequence[Any] | None = None,
            **options: Any,  # noqa: ANN401 - the client's own arguments
        ) -> None: ...


class Chat(Model):
    """As `AsyncChat`, blocking, for a `satchel.sync.Session`."""

    _api: ClassVar[Api] = ChatApi()

    if TYPE_CHECKING:

        def __init__(
            self,
            client: OpenAI,
            session: sync.Session,
            *,
            system: object = None,
            tools: Sequence[Any] | None = None,
            **options: Any,  # noqa: ANN401 - the client's own arguments
        ) -> None: ...


class Responses(Model):
    """As `AsyncResponses`, blocking, for a `satchel.sync.Session`."""

    _api: ClassVar[Api] = ResponsesApi()

    if TYPE_CHECKING:

        def __init__(
            self,
            client: OpenAI,
            session: sync.Session,
            *,
            system: object = None,
            tools: Sequence[Any] | None = None,
            **options: Any,  # noqa: ANN401 - the client's own arguments
        ) -> None: ...
