"""pydantic-ai's messages as drafts that the planner reads, and back.

A draft is a message of the same parts in the one dialect whose shape is theirs: a request is a
user's message, a response an assistant's, with all that belongs to it as blocks. Drafts exist to be
counted and decided about; they are never sent. Each says which message, part and piece it is of, so
that a decision finds its way back: parts that were shortened are copied, all others stay the same
objects.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import TYPE_CHECKING, Any, Final, cast

from pydantic_ai.messages import (
    BinaryContent,
    CachePoint,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_core import to_jsonable_python

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_ai.messages import ModelMessage

__all__ = ["DIALECT", "drafted", "is_bound", "restored"]

DIALECT: Final = "anthropic"
"""The shape of drafts, whatever model they are for: parts of a message stay in one message."""

_AT: Final = "at"
_SIGNED: Final = "signed"
_RETRY: Final = "retry-prompt"
_RETRIES: Final = frozenset({_RETRY, "retry-feedback"})
"""By kind: the class of the first is going away, and that of the second is young."""
_ORDINARY: Final = frozenset(
    {"user-prompt", "tool-return", "retry-prompt", "retry-feedback", "speech"}
)

_Block = dict[str, Any]
_Place = tuple[int, int]


def is_bound(message: ModelMessage) -> bool:
    """Whether a message holds what must stay: instructions, and notes of the framework's own.

    What a capability or a change of the tools put into the history is the anchor of later changes.
    """
    if isinstance(message, ModelResponse):
        return any(part.part_kind == "compaction" for part in message.parts)
    return any(part.part_kind not in _ORDINARY for part in message.parts)


def drafted(message: ModelMessage, number: int, calls: dict[str, list[str]]) -> _Block | None:
    """The draft of a message; None for one without anything to count.

    Args:
        message: the message.
        number: its number in the history.
        calls: what calls without a result are named in drafts, by their id; kept up to date. Names
            of ours, since ids repeat, and need not be what a provider takes.
    """
    blocks: list[_Block] = []
    if isinstance(message, ModelResponse):
        for at, part in enumerate(message.parts):
            name = f"call_{number}_{at}"
            if isinstance(part, ToolCallPart):
                calls.setdefault(part.tool_call_id, []).append(name)
            blocks += _said(part, at, name)
        return {"role": "assistant", "content": blocks, _AT: number} if blocks else None
    results: list[_Block] = []
    for at, asked in enumerate(message.parts):
        if isinstance(asked, ToolReturnPart) or _is_retry_of_call(asked):
            results.append(_result(asked, at, calls))
        else:
            blocks += _asked(asked, at)
    # The order that providers want, and that the framework's own adapters bring about.
    content = [*results, *blocks]
    return {"role": "user", "content": content, _AT: number} if content else None


def restored(draft: _Block, message: ModelMessage | None, before: _Block | None) -> ModelMessage:
    """The message that a draft of a window stands for.

    Args:
        draft: the draft as it is in the window.
        message: the message that it was made of; None for one that the planner put in.
        before: its draft as it was made.

    Returns:
        The message itself if its draft is as it was, else a copy.
    """
    if message is None or before is None:
        return ModelRequest(parts=[UserPromptPart(content=_joined(draft["content"]))])
    if draft is before:
        return message
    old = {_place(block): block for block in before["content"]}
    new: dict[_Place, _Block] = {}
    added: list[Any] = []
    for block in draft["content"]:
        if _AT in block:
            new[_place(block)] = block
        elif block["type"] == "text":
            # Any other is a result that the planner missed, where two calls have one id.
            added.append(UserPromptPart(content=block["text"]))
    parts: list[Any] = []
    for at, part in enumerate(message.parts):
        places = [place for place in old if place[0] == at]
        if places and all(place not in new for place in places):
            continue  # reasoning that the window goes without
        changed = {
            place[1]: new[place] for place in places if place in new and new[place] != old[place]
        }
        parts.append(_shortened(part, changed) if changed else part)
    copied: Any = dataclasses.replace(cast("Any", message), parts=[*parts, *added])
    return cast("ModelMessage", copied)


def _place(block: _Block) -> _Place:
    return block[_AT][0], block[_AT][1]


def _said(part: Any, at: int, name: str) -> Iterable[_Block]:
    """Blocks of a part of a response."""
    place = [at, 0]
    if isinstance(part, TextPart):
        return _text(part.content, place)
    if isinstance(part, ThinkingPart):
        signature = part.signature or _SIGNED
        return [{"type": "thinking", "thinking": part.content, "signature": signature, _AT: place}]
    if isinstance(part, ToolCallPart):
        arguments = json.loads(part.args_as_json_str())
        return [
            {"type": "tool_use", "id": name, "name": part.tool_name, "input": arguments}
            | {_AT: place}
        ]
    return [_opaque(part, place)]


def _asked(part: Any, at: int) -> Iterable[_Block]:
    """Blocks of a part of a request that is no result."""
    if isinstance(part, SystemPromptPart):
        return _text(part.content, [at, 0])
    if part.part_kind in _RETRIES:
        return _text(part.model_response(), [at, 0])
    if not isinstance(part, UserPromptPart):
        return [_opaque(part, [at, 0])]
    if isinstance(part.content, str):
        return _text(part.content, [at, 0])
    found: list[_Block] = []
    for number, piece in enumerate(part.content):
        found += _piece(piece, [at, number])
    return found


def _piece(piece: Any, place: list[int]) -> Iterable[_Block]:
    if isinstance(piece, str):
        return _text(piece, place)
    if isinstance(piece, TextContent):
        return _text(piece.content, place)
    if isinstance(piece, CachePoint):
        return []
    if isinstance(piece, ImageUrl):
        return [{"type": "image", "source": {"type": "url", "url": piece.url}, _AT: place}]
    if isinstance(piece, BinaryContent) and piece.is_image:
        source = {
            "type": "base64",
            "media_type": piece.media_type,
            "data": base64.b64encode(piece.data).decode(),
        }
        return [{"type": "image", "source": source, _AT: place}]
    return [_opaque(piece, place)]


def _result(part: Any, at: int, calls: dict[str, list[str]]) -> _Block:
    is_retry = part.part_kind == _RETRY
    text = part.model_response() if is_retry else part.model_response_str(wrap_if_error=False)
    names = calls.get(part.tool_call_id) or [part.tool_call_id]
    block: _Block = {
        "type": "tool_result",
        "tool_use_id": names.pop(0),
        "content": text,
        _AT: [at, 0],
    }
    files = [] if is_retry else list(part.files)
    if files:
        pieces = [one for number, file in enumerate(files) for one in _piece(file, [at, number])]
        block["content"] = [*({"type": "text", "text": text},) * bool(text), *pieces]
    return block


def _is_retry_of_call(part: Any) -> bool:
    return part.part_kind == _RETRY and part.tool_name is not None


def _text(text: str, place: list[int]) -> Iterable[_Block]:
    # One without a visible character is sent by nobody, and refused where it is.
    return [{"type": "text", "text": text, _AT: place}] if text.strip() else []


def _opaque(part: Any, place: list[int]) -> _Block:
    """A block that is counted by what it says, and kept or left out with its message."""
    said = to_jsonable_python(part, bytes_mode="base64", serialize_unknown=True)
    return {"type": "opaque", "data": said, _AT: place}


def _shortened(part: Any, changed: dict[int, _Block]) -> Any:
    """A copy of the part with the text of its changed blocks."""
    if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
        content: list[Any] = list(part.content)
        for number, block in changed.items():
            piece = content[number]
            text = block["text"]
            is_text = isinstance(piece, TextContent)
            content[number] = dataclasses.replace(piece, content=text) if is_text else text
        return dataclasses.replace(part, content=content)
    [block] = changed.values()
    if isinstance(part, ToolCallPart):
        return dataclasses.replace(cast("Any", part), args=block["input"])
    if isinstance(part, ToolReturnPart):
        return _shortened_result(part, block)
    if part.part_kind in _RETRIES:
        text = block["content"] if block["type"] == "tool_result" else block["text"]
        return dataclasses.replace(part, content=_joined(text))
    return dataclasses.replace(part, content=block["text"])


def _shortened_result(part: Any, block: _Block) -> Any:
    content = block["content"]
    text = _joined(content)
    kept = set[int]()
    if not isinstance(content, str):
        kept = {piece[_AT][1] for piece in content if _AT in piece}
    files = [file for number, file in enumerate(part.files) if number in kept]
    return dataclasses.replace(part, content=[text, *files] if files else text)


def _joined(content: Any) -> str:
    if isinstance(content, str):
        return content
    pieces = cast("Sequence[_Block]", content)
    return "\n".join(piece["text"] for piece in pieces if piece.get("type") == "text")
