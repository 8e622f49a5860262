"""How one conversation is written in each dialect, for the strategies of ``satchel.testing``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from satchel._dialects import DIALECTS, Dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "DIALECTS",
    "INSTRUCTED",
    "Content",
    "Dialect",
    "Message",
    "Row",
    "orphan",
    "said",
    "step",
]

Message: TypeAlias = dict[str, Any]
"""One message of a history, as the provider's JSON has it."""

Content: TypeAlias = str | list[str | None]
"""One text, or several parts: texts, and None for an image."""

Row: TypeAlias = tuple[str, str, dict[str, Any], Content]
"""A call and its result: id, name of the tool, arguments, content of the result."""

INSTRUCTED: Final = frozenset({"openai", "openai-responses"})
"""Dialects with instructions among the messages."""

_HEAD: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4"
_PIXEL: Final = _HEAD + "//8/AAX+Av4zEpUUAAAAAElFTkSuQmCC"


def said(dialect: Dialect, role: str, content: Content) -> Message:
    """A message of ``role`` without calls."""
    if dialect == "gemini":
        role = "model" if role == "assistant" else role
        return {"role": role, "parts": _parts(dialect, role, content)}
    return {"role": role, "content": _content(dialect, role, content)}


def step(
    dialect: Dialect,
    rows: Sequence[Row],
    *,
    text: str | None = None,
    thought: str | None = None,
    failed: bool = False,
) -> list[Message]:
    """Calls and their results; ``thought`` and ``failed`` only where the dialect has them."""
    match dialect:
        case "openai":
            return _openai_step(rows, text)
        case "openai-responses":
            return _responses_step(rows, text, thought)
        case "gemini":
            return _gemini_step(rows, text, thought, failed=failed)
        case "anthropic":
            return _anthropic_step(rows, text, thought, failed=failed)
        case "bedrock":
            return _bedrock_step(rows, text, thought, failed=failed)


def orphan(dialect: Dialect, name: str) -> Message:
    """A result whose call is elsewhere or nowhere."""
    match dialect:
        case "openai":
            return {"role": "tool", "tool_call_id": name, "content": "late"}
        case "openai-responses":
            return {"type": "function_call_output", "call_id": name, "output": "late"}
        case "anthropic":
            block = {"type": "tool_result", "tool_use_id": name, "content": "late"}
            return {"role": "user", "content": [block]}
        case "gemini":
            response = {"id": name, "name": "look_up", "response": {"output": "late"}}
            return {"role": "user", "parts": [{"functionResponse": response}]}
        case "bedrock":
            result = {"toolUseId": name, "content": [{"text": "late"}]}
            return {"role": "user", "content": [{"toolResult": result}]}


def _content(dialect: Dialect, role: str, content: Content) -> str | list[Message]:
    """The content where a string stands for one text, if the dialect has that form."""
    if isinstance(content, str) and dialect != "bedrock":
        return content
    return _parts(dialect, role, content)


def _parts(dialect: Dialect, role: str, content: Content) -> list[Message]:
    pieces = [content] if isinstance(content, str) else content
    return [_image(dialect) if text is None else _text(dialect, role, text) for text in pieces]


def _text(dialect: Dialect, role: str, text: str) -> Message:
    match dialect:
        case "openai" | "anthropic":
            return {"type": "text", "text": text}
        case "openai-responses":
            return {"type": "output_text" if role == "assistant" else "input_text", "text": text}
        case "gemini" | "bedrock":
            return {"text": text}


def _image(dialect: Dialect) -> Message:
    """An image part of one white pixel."""
    url = f"data:image/png;base64,{_PIXEL}"
    match dialect:
        case "openai":
            return {"type": "image_url", "image_url": {"url": url}}
        case "openai-responses":
            return {"type": "input_image", "image_url": url}
        case "anthropic":
            source = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
            return {"type": "image", "source": source}
        case "gemini":
            return {"inlineData": {"mimeType": "image/png", "data": _PIXEL}}
        case "bedrock":
            return {"image": {"format": "png", "source": {"bytes": _PIXEL}}}


def _openai_step(rows: Sequence[Row], text: str | None) -> list[Message]:
    calls = [
        {
            "id": name,
            "type": "function",
            "function": {"name": tool, "arguments": json.dumps(item, ensure_ascii=False)},
        }
        for name, tool, item, _ in rows
    ]
    results: list[Message] = [
        {"role": "tool", "tool_call_id": name, "content": _content("openai", "tool", result)}
        for name, _, _, result in rows
    ]
    return [{"role": "assistant", "content": text, "tool_calls": calls}, *results]


def _responses_step(rows: Sequence[Row], text: str | None, thought: str | None) -> list[Message]:
    dialect: Dialect = "openai-responses"
    items: list[Message] = []
    if thought is not None:
        summary = [{"type": "summary_text", "text": thought}]
        items.append({"type": "reasoning", "summary": summary, "encrypted_content": "gAAA"})
    if text is not None:
        content = _parts(dialect, "assistant", text)
        items.append({"type": "message", "role": "assistant", "content": content})
    items += [
        {
            "type": "function_call",
            "call_id": name,
            "name": tool,
            "arguments": json.dumps(item, ensure_ascii=False),
        }
        for name, tool, item, _ in rows
    ]
    items += [
        {
            "type": "function_call_output",
            "call_id": name,
            "output": _content(dialect, "user", result),
        }
        for name, _, _, result in rows
    ]
    return items


def _gemini_step(
    rows: Sequence[Row], text: str | None, thought: str | None, *, failed: bool
) -> list[Message]:
    parts = _parts("gemini", "model", [text] if text else [])
    answers: list[Message] = []
    for at, (name, tool, item, result) in enumerate(rows):
        call: Message = {"functionCall": {"id": name, "name": tool, "args": item}}
        if thought is not None and at == 0:
            parts.insert(0, {"text": thought, "thought": True})
            call["thoughtSignature"] = "c2ln"
        parts.append(call)
        texts = [result] if isinstance(result, str) else [piece for piece in result if piece]
        key = "error" if failed and at == 0 else "output"
        response = {key: texts[0]} if len(texts) == 1 else {key: texts, "count": len(texts)}
        answers.append({"functionResponse": {"id": name, "name": tool, "response": response}})
    return [{"role": "model", "parts": parts}, {"role": "user", "parts": answers}]


def _anthropic_step(
    rows: Sequence[Row], text: str | None, thought: str | None, *, failed: bool
) -> list[Message]:
    blocks = _parts("anthropic", "assistant", [text] if text else [])
    if thought is not None:
        blocks.insert(0, {"type": "thinking", "thinking": thought, "signature": "c2ln"})
    blocks += [
        {"type": "tool_use", "id": name, "name": tool, "input": item}
        for name, tool, item, _ in rows
    ]
    answers: list[Message] = [
        {
            "type": "tool_result",
            "tool_use_id": name,
            "content": _content("anthropic", "user", result),
        }
        for name, _, _, result in rows
    ]
    if failed:
        answers[0]["is_error"] = True
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": answers}]


def _bedrock_step(
    rows: Sequence[Row], text: str | None, thought: str | None, *, failed: bool
) -> list[Message]:
    blocks = _parts("bedrock", "assistant", [text] if text else [])
    if thought is not None:
        reasoning = {"text": thought, "signature": "c2ln"}
        blocks.insert(0, {"reasoningContent": {"reasoningText": reasoning}})
    blocks += [
        {"toolUse": {"toolUseId": name, "name": tool, "input": item}}
        for name, tool, item, _ in rows
    ]
    answers: list[Message] = [
        {"toolResult": {"toolUseId": name, "content": _parts("bedrock", "user", result)}}
        for name, _, _, result in rows
    ]
    if failed:
        answers[0]["toolResult"]["status"] = "error"
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": answers}]


def _said_by_model(block: Message) -> Message:
    return {"role": "assistant", "content": [block]}


ODD: Final[dict[Dialect, tuple[Message, ...]]] = {
    "openai": (
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "look_up", "arguments": "{}"},
        },
        {"role": "function", "name": "look_up", "content": "found"},
        {"role": "assistant", "content": None, "refusal": "I will not."},
        {"role": "assistant", "content": "so", "reasoning_content": "hm"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "call_0", "type": "custom", "custom": {"name": "patch", "input": "x"}}
            ],
        },
        {"role": "user", "content": "hi", "name": "Ada"},
    ),
    "openai-responses": (
        {"type": "item_reference", "id": "msg_1"},
        {"type": "compaction", "encrypted_content": "gAAA"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "id": "msg_1", "role": "assistant", "content": "so"},
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}},
        {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": []},
        {"type": "custom_tool_call", "call_id": "call_0", "name": "patch", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "call_0", "output": "done"},
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c", "action": {"type": "exec"}},
        {"type": "local_shell_call_output", "id": "lsh_1", "output": "done"},
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ),
    "anthropic": (
        _said_by_model({"type": "thinking", "thinking": "hm", "signature": "c2ln"}),
        _said_by_model({"type": "redacted_thinking", "data": "ZGF0YQ=="}),
        _said_by_model({"type": "compaction", "content": "before"}),
        _said_by_model({"type": "compaction", "content": ""}),
        _said_by_model(
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
        ),
        _said_by_model(
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
        ),
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": ""},
        {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {}}]},
    ),
    "gemini": (
        {"role": "model", "parts": [{"text": "hm", "thought": True}]},
        {"role": "model", "parts": [{"text": "", "thoughtSignature": "c2ln"}]},
        {"role": "model", "parts": [{"function_call": {"name": "look_up", "args": {}}}]},
        {"role": "function", "parts": [{"functionResponse": {"name": "look_up", "response": {}}}]},
        {"role": "model", "parts": [{"executableCode": {"language": "PYTHON", "code": "1"}}]},
        {"role": "user", "parts": []},
    ),
    "bedrock": (
        _said_by_model({"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}),
        _said_by_model({"reasoningContent": {"redactedContent": "ZGF0YQ=="}}),
        {"role": "user", "content": [{"cachePoint": {"type": "default"}}]},
        {"role": "user", "content": [{"guardContent": {"text": {"text": "hi"}}}]},
        {"role": "assistant", "content": []},
    ),
}
"""Messages that are seldom seen; some are valid only in the right place, some nowhere."""
