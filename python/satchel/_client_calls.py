"""What a window becomes in the provider's own client call: names of arguments, cache marks.

Marks stand on copies only. Marks that are in the history already are taken off first: a provider
takes four in a request, and those of earlier calls would pile up.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from satchel.window import Window

__all__ = ["client_call"]

MOST_MARKS: Final = 4
"""Cache marks in a request. Source: Anthropic, prompt caching page, read 2026-08-21."""

_BYTES: Final = ("bytes", "redactedContent")
_MARK: Final = {"type": "ephemeral"}
_POINT: Final = {"cachePoint": {"type": "default"}}
_MARKABLE: Final = frozenset({"text", "image", "document", "tool_use", "tool_result"})


def client_call(window: Window, *, store: bool | None = None) -> dict[str, Any]:
    """The arguments of the client call for ``window``."""
    match window.dialect:
        case "openai-responses":
            call = _responses(window)
            return call if store is None else _with_store(call, is_stored=store)
        case "anthropic":
            return _anthropic(window)
        case "gemini":
            return _gemini(window)
        case "bedrock":
            return _bedrock(window)
        case _:
            return _openai(window)


def _openai(window: Window) -> dict[str, Any]:
    messages = window.messages
    if window.system is not None:
        messages = [{"role": "system", "content": window.system}, *messages]
    call = {"model": window.model, "messages": messages}
    return call if window.tools is None else {**call, "tools": window.tools}


def _responses(window: Window) -> dict[str, Any]:
    call: dict[str, Any] = {
        "model": window.model,
        "input": window.messages,
        **window.provider_edits,
    }
    if window.system is not None:
        call["instructions"] = _joined(window.system)
    return call if window.tools is None else {**call, "tools": window.tools}


def _with_store(call: dict[str, Any], *, is_stored: bool) -> dict[str, Any]:
    """The call with ``store``; where nothing is stored, items of answers do not name their ids.

    An id makes the server look for what it kept. Reasoning and what came with it name each other by
    their ids, so all go, and reasoning that is not there in encrypted form goes with them. Ids of
    calls (``call_id``) are the conversation's own and stay.
    """
    if is_stored:
        return {**call, "store": True}
    items = [_without_id(_as_sent(item)) for item in call["input"]]
    return {
        **call,
        "input": [item for item in items if item is not None],
        "store": False,
        "include": ["reasoning.encrypted_content"],
    }


def _without_id(item: Any) -> Any:  # noqa: ANN401 - as the caller wrote it
    if hasattr(item, "model_dump"):
        item = item.model_dump(mode="json", exclude_unset=True)
    if not isinstance(item, dict):
        return item
    known = cast("dict[str, Any]", item)
    if known.get("type") == "item_reference":
        return None
    if known.get("type") == "reasoning" and not known.get("encrypted_content"):
        return None
    return {key: value for key, value in known.items() if key != "id"} if "id" in known else known


def _gemini(window: Window) -> dict[str, Any]:
    config: dict[str, Any] = {}
    if window.system is not None:
        config["system_instruction"] = window.system
    if window.tools is not None:
        config["tools"] = window.tools
    call: dict[str, Any] = {"model": window.model, "contents": window.messages}
    return {**call, "config": config} if config else call


def _anthropic(window: Window) -> dict[str, Any]:
    messages = [_unmarked_message(_as_sent(message)) for message in window.messages]
    call: dict[str, Any] = {
        "model": window.model,
        "messages": messages,
        **window.provider_edits,
    }
    left = MOST_MARKS
    if window.tools is not None:
        tools = [_unmarked(tool) for tool in window.tools]
        if window.system is None and tools and isinstance(tools[-1], dict):
            # The system prompt's mark holds the tools before it too.
            tools[-1] = {**tools[-1], "cache_control": _MARK}
            left -= 1
        call["tools"] = tools
    if window.system is not None:
        system = _unmarked_content(window.system)
        call["system"] = marked = _marked_content(system)
        left -= marked is not system
    for index in window.cache_breakpoints[-left:]:
        messages[index] = _marked_message(messages[index])
    return call


def _bedrock(window: Window) -> dict[str, Any]:
    messages = [_with_bytes(_without_points(message)) for message in window.messages]
    call: dict[str, Any] = {"modelId": window.model, "messages": messages}
    left = _bedrock_marks(window.model)
    if window.tools is not None:
        tools = _pointless(window.tools)
        if window.system is None and left and tools:
            tools = [*tools, _POINT]
            left -= 1
        call["toolConfig"] = {"tools": tools}
    if window.system is not None:
        system = _bedrock_system(window.system)
        if left and system:
            system = [*system, _POINT]
            left -= 1
        call["system"] = system
    for index in window.cache_breakpoints[-left:] if left else ():
        messages[index] = _with_point(messages[index])
    return call


def _bedrock_marks(model: str) -> int:
    """Cache points that the model takes: one that does not cache rejects them."""
    from satchel import models  # noqa: PLC0415 - read on first use, it opens a file

    return min(MOST_MARKS, models.get(model).cache.breakpoints)


def _bedrock_system(system: object) -> list[Any]:
    if isinstance(system, str):
        return [{"text": system}] if system.strip() else []
    return _pointless(cast("Sequence[Any]", system))


def _joined(system: object) -> object:
    """Instructions are one string; blocks are joined with an empty line between."""
    if not isinstance(system, (list, tuple)):
        return system
    blocks = cast("Sequence[Mapping[str, Any] | str]", system)
    return "\n\n".join(block if isinstance(block, str) else str(block["text"]) for block in blocks)


def _pointless(blocks: Sequence[Any]) -> list[Any]:
    """The blocks without cache points."""
    return [block for block in blocks if not (isinstance(block, dict) and "cachePoint" in block)]


def _without_points(message: Any) -> Any:  # noqa: ANN401 - a message is whatever the caller has
    if not isinstance(message, dict):
        return message
    fields = cast("dict[str, Any]", message)
    content = fields.get("content")
    if not isinstance(content, (list, tuple)):
        return fields
    blocks = cast("Sequence[Any]", content)
    kept = _pointless(blocks)
    return fields if len(kept) == len(blocks) else {**fields, "content": kept}


def _with_bytes(value: Any) -> Any:  # noqa: ANN401 - likewise
    """A copy in which ``bytes`` are bytes, as the client wants them, where JSON had base64."""
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        kept = [_with_bytes(item) for item in items]
        return items if all(a is b for a, b in zip(kept, items, strict=True)) else kept
    if not isinstance(value, dict):
        return value
    fields = cast("dict[str, Any]", value)
    changed: dict[str, Any] = {}
    for key, inner in fields.items():
        # What a tool is given and what it returns is data of its own.
        if key in _BYTES and isinstance(inner, str):
            changed[key] = _decoded(inner)
        elif key not in ("input", "json", "text"):
            found = _with_bytes(inner)
            if found is not inner:
                changed[key] = found
    return {**fields, **changed} if changed else fields


def _decoded(text: str) -> bytes | str:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return text


def _with_point(message: Any) -> Any:  # noqa: ANN401 - likewise
    if not isinstance(message, dict):
        return message
    fields = cast("dict[str, Any]", message)
    content = fields.get("content")
    if not isinstance(content, (list, tuple)) or not content:
        return fields
    # Reasoning takes no mark behind it.
    blocks = cast("Sequence[Any]", content)
    if isinstance(blocks[-1], dict) and "reasoningContent" in blocks[-1]:
        return fields
    return {**fields, "content": [*blocks, _POINT]}


def _as_sent(message: Any) -> Any:  # noqa: ANN401 - likewise
    """A reply as the client returned it carries its usage, which the API does not take back."""
    if isinstance(message, dict) or not hasattr(message, "usage"):
        return cast("Any", message)
    return {"role": message.role, "content": message.content}


def _unmarked_message(message: Any) -> Any:  # noqa: ANN401 - likewise
    """The message without cache marks; the same object where it has none."""
    if not isinstance(message, dict):
        return message
    fields = cast("dict[str, Any]", message)
    content = fields.get("content")
    unmarked = _unmarked_content(content)
    return fields if unmarked is content else {**fields, "content": unmarked}


def _unmarked_content(content: Any) -> Any:  # noqa: ANN401 - likewise
    if not isinstance(content, (list, tuple)):
        return content
    blocks = cast("Sequence[Any]", content)
    kept = [_unmarked(block) for block in blocks]
    is_same = all(mine is theirs for mine, theirs in zip(kept, blocks, strict=True))
    return blocks if is_same else kept


def _unmarked(block: Any) -> Any:  # noqa: ANN401 - likewise
    if not isinstance(block, dict):
        return block
    fields = cast("dict[str, Any]", block)
    inner = fields.get("content")
    unmarked = _unmarked_content(inner)
    if "cache_control" not in fields and unmarked is inner:
        return fields
    kept = {key: value for key, value in fields.items() if key != "cache_control"}
    return kept if unmarked is inner else {**kept, "content": unmarked}


def _marked_message(message: Any) -> Any:  # noqa: ANN401 - likewise
    """A copy of a message whose last block carries a cache mark, where blocks can carry one."""
    if not isinstance(message, dict):
        return message
    fields = cast("dict[str, Any]", message)
    content = fields.get("content")
    marked = _marked_content(content)
    return fields if marked is content else {**fields, "content": marked}


def _marked_content(content: Any) -> Any:  # noqa: ANN401 - likewise
    if isinstance(content, str):
        if not content.strip():
            return content
        return [{"type": "text", "text": content, "cache_control": _MARK}]
    if not isinstance(content, (list, tuple)) or not content:
        return cast("object", content)
    blocks = cast("Sequence[Any]", content)
    last = blocks[-1]
    if not isinstance(last, dict):
        return blocks
    block = cast("dict[str, Any]", last)
    if block.get("type") not in _MARKABLE:
        return blocks
    return [*blocks[:-1], {**block, "cache_control": _MARK}]
