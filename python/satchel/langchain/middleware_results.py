"""Tool results when they are produced: long ones are shortened before any request has them.

What was never sent is in no provider's cache, so shortening it then costs nothing later. The whole
result is kept beside the state, behind a pointer that the page-in tool reads.
"""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from langchain_core.messages import ToolMessage
from langgraph.types import Command

from satchel._page_reading import PAGE_TOOL_NAME, Source

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.counting import Counter

__all__ = ["page_source", "shortened"]

_HEAD_SHARE: Final = 2
"""One part in so many of what is kept is the end."""

_DIGITS: Final = 18


def shortened(
    result: ToolMessage | Command[Any], counter: Counter, max_tokens: int
) -> ToolMessage | Command[Any]:
    """The result of a call, with every text of it in at most ``max_tokens``; the same if it is."""
    kept: dict[str, bytes | None] = {}
    if isinstance(result, ToolMessage):
        message = _short(result, counter, max_tokens, kept)
        if not kept:
            return result
        return Command(update={"messages": [message], "satchel_kept": kept})
    update: object = result.update
    # Another graph has no place for what would be kept here.
    if result.graph is not None or not isinstance(update, dict):
        return result
    found = cast("dict[str, Any]", update)
    given: object = found.get("messages")
    if not isinstance(given, list):
        return result
    messages = [
        _short(one, counter, max_tokens, kept) if isinstance(one, ToolMessage) else one
        for one in cast("list[object]", given)
    ]
    if not kept:
        return result
    return replace(result, update={**found, "messages": messages, "satchel_kept": kept})


def page_source(kept: Mapping[str, bytes | None], pointer: str, place: int) -> Source | None:
    """The whole result behind a pointer that `shortened` wrote; None for any other pointer."""
    packed = kept.get(pointer.strip()) if pointer.startswith("p_") else None
    if not packed:
        return None
    text = zlib.decompress(packed).decode("utf-8", "surrogatepass")
    return Source(pointer.strip(), text, place, "tool", "result")


def _short(
    message: ToolMessage, counter: Counter, max_tokens: int, kept: dict[str, bytes | None]
) -> ToolMessage:
    content: Any = cast("Any", message).content
    if isinstance(content, str):
        text = _cut(content, message.tool_call_id, counter, max_tokens, kept)
        return message if text is content else message.model_copy(update={"content": text})
    blocks = cast("list[Any]", content)
    found: list[Any] = []
    for block in blocks:
        given: object = block.get("text") if _is_text(block) else block
        if not isinstance(given, str):
            found.append(block)
            continue
        short = _cut(given, message.tool_call_id, counter, max_tokens, kept)
        if short is given:
            found.append(block)
        else:
            found.append(short if isinstance(block, str) else {**block, "text": short})
    if all(new is old for new, old in zip(found, blocks, strict=True)):
        return message
    return message.model_copy(update={"content": found})


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and cast("Mapping[str, Any]", block).get("type") == "text"


def _cut(
    text: str, call: str, counter: Counter, max_tokens: int, kept: dict[str, bytes | None]
) -> str:
    """The beginning and the end of a text, whole lines where there are any."""
    if counter.fits(text, max_tokens):
        return text
    payload = text.encode("utf-8", "surrogatepass")
    key = hashlib.blake2b(payload, key=call.encode("utf-8", "surrogatepass")[:64]).digest()
    pointer = f"p_{int.from_bytes(key[:8]) % 10**_DIGITS:0{_DIGITS}d}"
    note = (
        f'\n[{counter.count(text)} tokens, the middle is left out: {PAGE_TOOL_NAME}("{pointer}") '
        "reads all of it]\n"
    )
    room = max(0, max_tokens - counter.count(note) - 2)
    tail = counter.truncate(text, room // _HEAD_SHARE // 2, keep="tail")
    head = counter.truncate(text, room - counter.count(tail), keep="head")
    short = _whole_lines(head, tail, note)
    if not counter.fits(text, counter.count(short)):
        kept[pointer] = zlib.compress(payload)
        return short
    return text


def _whole_lines(head: str, tail: str, note: str) -> str:
    ends, starts = head.rfind("\n"), tail.find("\n")
    if ends > len(head) // 2:
        head = head[:ends]
    if 0 <= starts < len(tail) // 2:
        tail = tail[starts + 1 :]
    return f"{head}{note}{tail}"
