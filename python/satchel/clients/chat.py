"""OpenAI's chat completions, and what speaks their format.

Servers differ in how they stream: some repeat ids and names in every piece, some leave the index
of a call out, some send fields of their own (reasoning, signatures). Pieces are put together by
these rules: texts are joined, what identifies stays as it came first, lists go by their index.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from satchel.clients.reply import (
    Reading,
    ToolCall,
    as_fields,
    as_items,
    broken_off,
    field,
    fields_of,
    parsed,
)
from satchel.errors import ReplyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from satchel.window import Window

__all__ = ["ChatApi", "ChatCollector"]

_STREAMED: Final[dict[str, Any]] = {"stream_options": {"include_usage": True}}
_FIRST: Final = frozenset({"id", "type", "role", "name", "index"})
"""Fields of a piece that are said once, or again and again in the same words."""


class ChatApi:
    """See `satchel.clients.api.Api`."""

    dialect = "openai"
    owned = frozenset({"messages", "tools", "stream", "n"})

    def create(self, client: Any, /) -> Callable[..., Any]:  # noqa: ANN401 - a client's object
        """The function of the client that asks."""
        found: Callable[..., Any] = client.chat.completions.create
        return found

    def arguments(
        self, window: Window, options: Mapping[str, Any], *, is_streamed: bool
    ) -> dict[str, Any]:
        """The arguments of the call; with ``stream_options=None`` a stream does without them."""
        call = {**window.as_kwargs(), **options}
        if not is_streamed:
            return call
        call = {**_STREAMED, **call, "stream": True}
        if call["stream_options"] is None:
            del call["stream_options"]
        return call

    def collector(self) -> ChatCollector:
        """For the chunks of one stream."""
        return ChatCollector()

    def read(self, response: object, /) -> Reading:
        """What is in a completion; the first choice counts."""
        choices = field(response, "choices")
        if not choices:
            message = "the provider's response has no choice in it"
            raise ReplyError(message, code="reply_failed")
        message, stop = field(choices[0], "message"), field(choices[0], "finish_reason")
        refusal: object = field(message, "refusal")
        calls = self.calls_in(message)
        text = _text(field(message, "content"))
        return Reading(
            text=text,
            calls=calls,
            stop=str(stop or ""),
            is_cut=stop == "length",
            is_refused=bool(refusal) or stop == "content_filter",
            is_empty=not calls and not text.strip() and not field(message, "function_call"),
            ends_in_call=bool(calls),
        )

    def calls_in(self, message: object, /) -> tuple[ToolCall, ...]:
        """The calls in one message of a history."""
        return tuple(_call(call) for call in field(message, "tool_calls") or ())

    def answered_in(self, message: object, /) -> frozenset[str]:
        """The id of the call that a message of the role ``tool`` answers."""
        if field(message, "role") != "tool":
            return frozenset()
        return frozenset({str(field(message, "tool_call_id"))})


def _text(content: object) -> str:
    """The text of a content, which some servers give in parts."""
    if isinstance(content, list):
        parts = as_items(cast("object", content))
        texts = [field(part, "text") for part in parts if field(part, "type") == "text"]
        return "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def _call(call: object) -> ToolCall:
    if (custom := field(call, "custom")) is not None:
        text = str(field(custom, "input") or "")
        return ToolCall(str(field(call, "id")), str(field(custom, "name")), None, text, "custom")
    function = field(call, "function")
    text = str(field(function, "arguments") or "")
    return ToolCall(str(field(call, "id")), str(field(function, "name")), parsed(text), text)


class ChatCollector:
    """See `satchel.clients.api.Collector`."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._reason: str | None = None
        self._usage: Any = None
        self._error: Any = None

    def take(self, event: Any, /) -> bool:  # noqa: ANN401 - a client's object
        """Takes the next chunk; whether it holds a part of the reply."""
        chunk = fields_of(event)
        for name in ("id", "created", "model", "service_tier", "system_fingerprint"):
            if chunk.get(name) is not None:
                self._head.setdefault(name, chunk[name])
        # The chunk with the usage has no choice.
        self._usage = chunk.get("usage") or self._usage
        self._error = chunk.get("error") or self._error
        is_shown = False
        for choice in chunk.get("choices") or ():
            if choice.get("index"):
                continue
            delta = as_fields(choice.get("delta") or {})
            _merge(self._message, delta)
            is_shown |= any(value for name, value in delta.items() if name != "role")
            self._reason = choice.get("finish_reason") or self._reason
        return is_shown

    def whole(self) -> Any:  # noqa: ANN401 - a client's object
        """The completion."""
        from openai.types.chat import ChatCompletion  # noqa: PLC0415 - an optional package

        if self._reason is None and self._error is None:
            raise broken_off()
        fields: dict[str, Any] = {"object": "chat.completion", **self._head, "choices": []}
        if self._usage is not None:
            fields["usage"] = self._usage
        if self._error is not None:
            fields["error"] = self._error
        if self._reason is not None:
            message = {"role": "assistant", "content": None, **self._message}
            for call in message.get("tool_calls", ()):
                call.pop("index", None)
            fields["choices"] = [{"index": 0, "finish_reason": self._reason, "message": message}]
        # As the client does it: what a server of another vendor says is not refused.
        build = cast("Callable[..., Any]", ChatCompletion.construct)
        return build(**fields)


def _merge(into: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Adds one piece to what came before."""
    for name, value in delta.items():
        before, kind = into.get(name), type(value).__name__
        if value is None or (name in _FIRST and before):
            into.setdefault(name, value)
        elif kind == "dict":
            inner = as_fields(before or {})
            _merge(inner, as_fields(value))
            into[name] = inner
        elif kind == "list" and name == "tool_calls":
            calls: list[dict[str, Any]] = into.setdefault(name, [])
            for piece in as_items(value):
                _merge(_place(calls, piece), piece)
        elif kind == "list":
            into[name] = [*(before or ()), *as_items(value)]
        elif isinstance(value, str) and isinstance(before, str):
            into[name] = before + value
        else:
            into[name] = value


def _place(calls: list[dict[str, Any]], piece: Mapping[str, Any]) -> dict[str, Any]:
    """The call that a piece goes on with; a new one where it begins another."""
    index, name = piece.get("index"), piece.get("id")
    call: dict[str, Any]
    for call in reversed(calls):
        is_same = not name or call.get("id") in (None, "", name)
        if is_same and (index is None or call.get("index") == index):
            return call
    begun: dict[str, Any] = {}
    calls.append(begun)
    return begun
