"""Anthropic's messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from satchel.clients.reply import (
    Reading,
    ToolCall,
    as_fields,
    as_items,
    broken_off,
    field,
    fields_of,
)
from satchel.errors import ReplyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from satchel.window import Window

__all__ = ["MessagesApi", "MessagesCollector"]

MOST_ANSWER: Final = 8_192
"""Tokens of an answer where the caller names no ``max_tokens``, or the model's limit if it is less.

More than about 21,000 are refused by Anthropic's own client outside of streams (it estimates the
answer at ten minutes). Source: ``anthropic`` 2.14.0, the client's timeout rule.
"""

_CUT: Final = ("max_tokens", "model_context_window_exceeded")
_REASONING: Final = ("thinking", "redacted_thinking")


class MessagesApi:
    """See `satchel.clients.api.Api`."""

    dialect = "anthropic"
    owned = frozenset({"messages", "system", "tools", "stream"})

    def create(self, client: Any, /) -> Callable[..., Any]:  # noqa: ANN401 - a client's object
        """The function of the client that asks."""
        found: Callable[..., Any] = client.messages.create
        return found

    def arguments(
        self, window: Window, options: Mapping[str, Any], *, is_streamed: bool
    ) -> dict[str, Any]:
        """The arguments of the call."""
        from satchel import models  # noqa: PLC0415 - read on first use, it opens a file

        call = {**window.as_kwargs(), **options}
        if "max_tokens" not in call:
            call["max_tokens"] = min(MOST_ANSWER, models.get(window.model).output_limit)
        return {**call, "stream": True} if is_streamed else call

    def collector(self) -> MessagesCollector:
        """For the events of one stream."""
        return MessagesCollector()

    def read(self, response: object, /) -> Reading:
        """What is in a message."""
        content = field(response, "content")
        if content is None:
            message = "the provider's response has no content in it"
            raise ReplyError(message, code="reply_failed")
        blocks: list[Any] = list(content)
        stop = str(field(response, "stop_reason") or "")
        text = "".join(
            str(field(block, "text")) for block in blocks if field(block, "type") == "text"
        )
        calls = self.calls_in(response)
        said = [block for block in blocks if field(block, "type") not in _REASONING]
        return Reading(
            text=text,
            calls=calls,
            stop=stop,
            is_cut=stop in _CUT,
            is_refused=stop == "refusal",
            is_empty=all(field(block, "type") == "text" for block in said) and not text.strip(),
            ends_in_call=bool(said) and field(said[-1], "type") == "tool_use",
        )

    def calls_in(self, message: object, /) -> tuple[ToolCall, ...]:
        """The calls in one message of a history."""
        return tuple(
            _call(block) for block in _blocks(message) if field(block, "type") == "tool_use"
        )

    def answered_in(self, message: object, /) -> frozenset[str]:
        """The ids of the calls that one message of a history has results of."""
        results = [block for block in _blocks(message) if field(block, "type") == "tool_result"]
        return frozenset(str(field(block, "tool_use_id")) for block in results)


def _blocks(message: object) -> list[Any]:
    content: object = field(message, "content")
    return [] if content is None or isinstance(content, str) else as_items(content)


def _call(block: object) -> ToolCall:
    given = field(block, "input")
    text = json.dumps(given, ensure_ascii=False)
    arguments = cast("dict[str, Any]", given) if isinstance(given, dict) else None
    return ToolCall(str(field(block, "id")), str(field(block, "name")), arguments, text)


class MessagesCollector:
    """See `satchel.clients.api.Collector`."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self._is_over = False

    def take(self, event: Any, /) -> bool:  # noqa: ANN401 - a client's object
        """Takes the next event; whether it holds a part of the reply."""
        found = fields_of(event)
        match found.get("type"):
            case "message_start":
                self._message = dict(found["message"])
            case "content_block_start":
                self._blocks[found["index"]] = dict(found["content_block"])
            case "content_block_delta":
                self._add(found["index"], found["delta"])
            case "message_delta":
                usage = dict(as_fields(self._message.get("usage") or {}))
                # Totals: what is not said again stays as it was.
                for name, value in as_fields(found.get("usage") or {}).items():
                    usage[name] = usage.get(name) if value is None else value
                self._message |= {**found["delta"], "usage": usage}
            case "message_stop":
                self._is_over = True
            case _:
                pass
        return str(found.get("type")).startswith("content_block")

    def _add(self, index: int, delta: Mapping[str, Any]) -> None:
        block = self._blocks.setdefault(index, {})
        match delta.get("type"):
            case "input_json_delta":
                self._inputs.setdefault(index, []).append(delta["partial_json"])
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
            case _:
                for name, value in delta.items():
                    if name == "type":
                        continue
                    before = block.get(name)
                    if isinstance(before, str) and isinstance(value, str):
                        block[name] = before + value
                    else:
                        block[name] = value

    def whole(self) -> Any:  # noqa: ANN401 - a client's object
        """The message."""
        from anthropic.types import Message  # noqa: PLC0415 - an optional package

        if not self._is_over:
            raise broken_off()
        for index, pieces in self._inputs.items():
            try:
                self._blocks[index]["input"] = json.loads("".join(pieces) or "{}")
            except ValueError as error:
                if self._message.get("stop_reason") not in _CUT:
                    raise broken_off() from error
        content = [self._blocks[index] for index in sorted(self._blocks)]
        build = cast("Callable[..., Any]", Message.construct)
        return build(**{**self._message, "content": content})
