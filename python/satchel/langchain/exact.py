"""Counting LangChain's messages with a counter of ours: each as the request bills it.

A message is counted as the chat message that LangChain would send for it. Counting goes from the
end that is kept and stops where the budget is met: the cost is that of the window.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, cast

from satchel.langchain.peer import peer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import AIMessage, BaseMessage

    from satchel.counting import Counter

__all__ = ["Exact", "as_chat"]

_MOST = 2**53
"""Any larger budget is this one."""

_FIRST_BATCH = 64
_FEWEST = 4
_TOKEN_CHARS = 4
_FRAMING_CHARS = 16


class Exact:
    """A counter of ours as a counter of lists."""

    __slots__ = ("_counter", "_overhead")

    def __init__(self, counter: Counter) -> None:
        self._counter = counter
        self._overhead: int | None = None

    def count(self, messages: Sequence[BaseMessage]) -> int:
        """Tokens of a request of these messages, its margin included."""
        return self._upper(sum(self._each(messages)) + self._request())

    def tools_tokens(self, tools: Sequence[Any]) -> int:
        """Tokens of the definitions of these tools, its margin included."""
        definitions = [_definition(tool) for tool in tools]
        found = self._counter.count_messages([], tools=definitions, dialect="openai")
        return self._upper(found.total) - self._upper(self._request())

    def fitting(self, messages: list[BaseMessage], budget: object, *, backward: bool) -> int | None:
        """How many messages fit, from the first or the last on; None if the budget is no number."""
        if not isinstance(budget, (int, float)):
            return None
        total = self._request()
        budget = min(budget, _MOST)  # a whole number may be too large for a division
        done, batch = 0, _first_batch(messages, budget - total, backward=backward)
        while done < len(messages):
            if backward:
                end = len(messages) - done
                piece = messages[max(0, end - batch) : end][::-1]
            else:
                piece = messages[done : done + batch]
            for tokens in self._each(piece):
                total += tokens
                if not self._upper(total) <= budget:
                    return done
                done += 1
            # As many as fit if the next are like those so far.
            batch = int(min(2 * batch, (budget - total) * done / total + _FEWEST))
        return done

    def _each(self, messages: Sequence[BaseMessage]) -> list[int]:
        chat = [as_chat(message) for message in messages]
        counts: Any = self._counter.count_messages(chat, dialect="openai").per_message
        return cast("list[int]", counts.tolist())

    def _request(self) -> int:
        if self._overhead is None:
            self._overhead = self._counter.count_messages([], dialect="openai").overhead
        return self._overhead

    def _upper(self, tokens: int) -> int:
        return max(tokens, math.ceil(tokens * (1.0 + self._counter.margin)))


def _first_batch(messages: list[BaseMessage], room: float, *, backward: bool) -> int:
    """About as many messages as fit, by their characters: what does not fit is counted in vain."""
    chars = room * _TOKEN_CHARS
    near = reversed(messages[-_FIRST_BATCH:]) if backward else messages[:_FIRST_BATCH]
    batch = 0
    for batch, message in enumerate(near, start=1):  # noqa: B007 - read after the loop
        chars -= len(message.content) + _FRAMING_CHARS
        if not chars > 0:
            break
    return max(batch, _FEWEST)


def as_chat(message: BaseMessage) -> dict[str, Any]:
    """The chat message (dialect ``openai``) that a message object is sent as, for counting."""
    known = peer()
    kind = known.kinds.get(type(message)) or message.type
    chat: dict[str, Any] = {"role": _ROLES.get(kind, "user"), "content": message.content}
    if message.name:
        chat["name"] = message.name
    if kind == "tool":
        chat["tool_call_id"] = cast("Any", message).tool_call_id
    elif kind == "ai":
        reply = cast("AIMessage", message)
        calls = [
            _call(
                call["id"], call["name"], json.dumps(call["args"], ensure_ascii=False, default=str)
            )
            for call in reply.tool_calls
        ]
        calls += [
            _call(call["id"], call["name"], call["args"] or "") for call in reply.invalid_tool_calls
        ]
        if calls:
            chat["tool_calls"] = calls
    if isinstance(message.content, list):
        repeats = {"tool_use", "tool_call"} if "tool_calls" in chat else set[str]()
        chat["content"] = [
            _block(block)
            for block in cast("list[object]", cast("Any", message).content)
            if _field(block, "type") not in repeats
        ]
    return chat


_ROLES = {
    "human": "user",
    "ai": "assistant",
    "tool": "tool",
    "system": "system",
    "function": "function",
}


def _block(block: object) -> dict[str, Any]:
    """A block as one of the chat format: text, an image, or else its JSON as text."""
    kind = _field(block, "type")
    if isinstance(block, str) or kind == "text":
        text = block if isinstance(block, str) else _field(block, "text")
        return {"type": "text", "text": text if isinstance(text, str) else ""}
    url = _field(_field(block, "image_url"), "url") if kind == "image_url" else None
    if kind == "image":
        data = _field(block, "base64")
        kind = _field(block, "mime_type") or "image/png"
        url = f"data:{kind};base64,{data}" if data else _field(block, "url")
    if isinstance(url, str):
        return {"type": "image_url", "image_url": {"url": url}}
    return {"type": "text", "text": json.dumps(block, ensure_ascii=False, default=str)}


def _field(value: object, name: str) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).get(name)
    return None


def _call(name: object, function: object, arguments: object) -> dict[str, Any]:
    return {
        "id": name,
        "type": "function",
        "function": {"name": function, "arguments": arguments},
    }


def _definition(tool: Any) -> Any:
    if isinstance(tool, dict):
        return cast("Any", tool)
    from langchain_core.utils.function_calling import (  # noqa: PLC0415 - an optional package
        convert_to_openai_tool,
    )

    convert: Callable[[Any], dict[str, Any]] = convert_to_openai_tool
    return convert(tool)
