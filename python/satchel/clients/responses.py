"""OpenAI's Responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from satchel.clients.reply import Reading, ToolCall, broken_off, field, parsed
from satchel.errors import ReplyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from satchel.window import Window

__all__ = ["ResponsesApi", "ResponsesCollector"]

_ENDS = ("response.completed", "response.incomplete", "response.failed")
_QUIET = (*_ENDS, "response.created", "response.in_progress", "response.queued", "error")


class ResponsesApi:
    """See `satchel.clients.api.Api`."""

    dialect = "openai-responses"
    owned = frozenset(
        {
            "input",
            "instructions",
            "tools",
            "stream",
            "background",
            "previous_response_id",
            "conversation",
        }
    )

    def create(self, client: Any, /) -> Callable[..., Any]:  # noqa: ANN401 - a client's object
        """The function of the client that asks."""
        found: Callable[..., Any] = client.responses.create
        return found

    def arguments(
        self, window: Window, options: Mapping[str, Any], *, is_streamed: bool
    ) -> dict[str, Any]:
        """The arguments of the call; with ``store=False`` items do not name what is not kept."""
        own = {name: value for name, value in options.items() if name != "store"}
        call = {**window.as_kwargs(store=options.get("store")), **own}
        if options.get("store") is False:
            asked = [*(own.get("include") or ()), "reasoning.encrypted_content"]
            call["include"] = list(dict.fromkeys(asked))
        return {**call, "stream": True} if is_streamed else call

    def collector(self) -> ResponsesCollector:
        """For the events of one stream."""
        return ResponsesCollector()

    def read(self, response: object, /) -> Reading:
        """What is in a response."""
        status = field(response, "status") or "completed"
        output: list[Any] = list(field(response, "output") or ())
        if status not in ("completed", "incomplete"):
            message = f"the provider's response has the status {str(status)[:40]!r}"
            raise ReplyError(message, code="reply_failed")
        reason = field(field(response, "incomplete_details"), "reason")
        texts: list[str] = []
        is_refused = reason == "content_filter"
        for item in output:
            for part in field(item, "content") or () if field(item, "type") == "message" else ():
                is_refused |= field(part, "type") == "refusal"
                if field(part, "type") == "output_text":
                    texts.append(str(field(part, "text")))
        last = field(output[-1], "type") if output else None
        said = [item for item in output if field(item, "type") != "reasoning"]
        calls = tuple(call for item in output for call in self.calls_in(item))
        return Reading(
            text="".join(texts),
            calls=calls,
            stop=str(reason or status),
            is_cut=status == "incomplete" and reason != "content_filter",
            is_refused=is_refused,
            is_empty=not any(field(item, "type") != "message" or _says(item) for item in said),
            ends_in_call=last in _KINDS,
        )

    def calls_in(self, message: object, /) -> tuple[ToolCall, ...]:
        """The call that an item is."""
        return (_call(message),) if field(message, "type") in _KINDS else ()

    def answered_in(self, message: object, /) -> frozenset[str]:
        """The id of the call that an item is the output of."""
        if field(message, "type") not in _OUTPUTS:
            return frozenset()
        return frozenset({str(field(message, "call_id"))})


_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_KINDS = {"function_call": "function", "custom_tool_call": "custom"}


def _call(item: object) -> ToolCall:
    kind = _KINDS[field(item, "type")]
    text = str(field(item, "arguments" if kind == "function" else "input") or "")
    arguments = parsed(text) if kind == "function" else None
    return ToolCall(str(field(item, "call_id")), str(field(item, "name")), arguments, text, kind)


def _says(item: object) -> bool:
    parts = field(item, "content") or ()
    return any(str(field(part, "text") or "").strip() for part in parts)


class ResponsesCollector:
    """See `satchel.clients.api.Collector`."""

    def __init__(self) -> None:
        self._response: Any = None
        self._error: Any = None

    def take(self, event: Any, /) -> bool:  # noqa: ANN401 - a client's object
        """Takes the next event; whether it holds a part of the reply."""
        kind = str(field(event, "type"))
        if kind in _ENDS:
            # It carries all that the events before it said.
            self._response = field(event, "response")
        elif kind == "error":
            self._error = {"code": field(event, "code"), "message": field(event, "message")}
        return kind not in _QUIET

    def whole(self) -> Any:  # noqa: ANN401 - a client's object
        """The response."""
        if self._response is not None:
            return self._response
        if self._error is not None:
            return {"status": "failed", "error": self._error}
        raise broken_off()
