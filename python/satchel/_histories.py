"""Strategies behind ``satchel.testing.histories``: valid histories, and what can break them.

Histories grow in the ``openai`` or the ``anthropic`` format and are spelled in another one where
that is asked for; damage comes last, in the format of the result.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Final, cast

from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Callable

    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["history"]

Message = dict[str, Any]

_PIXEL: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4//8/AAX+Av4zEpUUAAAAAElFTkSuQmCC"
)
"""A PNG of one white pixel."""


def history(dialect: str, *, max_steps: int, damage: bool) -> SearchStrategy[list[Message]]:
    """The strategy of ``satchel.testing.histories``."""
    if dialect not in _SPELL:
        msg = f"dialect is {dialect!r}, known are {', '.join(_SPELL)}"
        raise ValueError(msg)
    return _history(dialect, max_steps, damage)  # pyright: ignore[reportCallIssue] - drawn


@st.composite
def _history(draw: DrawFn, dialect: str, max_steps: int, damage: bool) -> list[Message]:  # noqa: FBT001 - private
    grown, spell = _SPELL[dialect]
    steps = draw(st.lists(st.integers(-2, 3), min_size=0, max_size=max_steps))
    messages: list[Message] = []
    if grown == "openai":
        roles = draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
        messages += [{"role": role, "content": _content(draw)} for role in roles]
    ids = itertools.count()
    # A number below zero is a user turn, zero an answer, otherwise the width of a call step.
    users_turn = True
    for step in steps:
        if users_turn or (step < 0 and grown == "openai"):
            messages.append({"role": "user", "content": _content(draw, image=_image(grown))})
            users_turn = False
        elif step <= 0:
            messages.append({"role": "assistant", "content": _content(draw)})
            users_turn = True
        else:
            call_ids = [f"call_{next(ids)}" for _ in range(step)]
            messages += _calls(draw, grown, call_ids)
    messages = spell(messages)
    if damage and messages:
        for _ in range(draw(st.integers(1, 4))):
            _break(draw, messages, dialect)
    return messages


def _content(draw: DrawFn, *, image: Message | None = None) -> str | list[Message]:
    if draw(st.booleans()):
        return draw(_TEXT)
    texts = draw(st.lists(_TEXT, min_size=1, max_size=3))
    parts: list[Message] = [{"type": "text", "text": text} for text in texts]
    if image is not None and draw(st.booleans()):
        parts.append(image)
    return parts


def _calls(draw: DrawFn, grown: str, ids: list[str]) -> list[Message]:
    values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXT
    arguments = [draw(st.dictionaries(_TEXT, values, max_size=3)) for _ in ids]
    said = draw(st.none() | _TEXT)
    results = [_content(draw) for _ in ids]
    if grown == "openai":
        functions = [{"name": "look_up", "arguments": json.dumps(item)} for item in arguments]
        tool_calls = [
            {"id": call_id, "type": "function", "function": function}
            for call_id, function in zip(ids, functions, strict=True)
        ]
        first: Message = {"role": "assistant", "content": said, "tool_calls": tool_calls}
        return [first] + [
            {"role": "tool", "tool_call_id": call_id, "content": result}
            for call_id, result in zip(ids, results, strict=True)
        ]
    blocks: list[Message] = [{"type": "text", "text": said}] if said else []
    if draw(st.booleans()):
        thought = draw(_TEXT)
        blocks.insert(0, {"type": "thinking", "thinking": thought, "signature": "c2ln"})
    blocks += [
        {"type": "tool_use", "id": call_id, "name": "look_up", "input": item}
        for call_id, item in zip(ids, arguments, strict=True)
    ]
    answers: list[Message] = [
        {"type": "tool_result", "tool_use_id": call_id, "content": result}
        for call_id, result in zip(ids, results, strict=True)
    ]
    if draw(st.booleans()):
        answers[0]["is_error"] = True
    return [{"role": "assistant", "content": blocks}, {"role": "user", "content": answers}]


_TEXT: Final = st.sampled_from(
    [
        "yes",
        "Never touch db-01 without asking.",
        "결정: 내일 오전 9시로 확정",
        "def f(x):\n    return x\n",
        '{"order_id": "AX-1", "items": []}',
        "<|endoftext|> is text",
        "line\n" * 60,
    ]
) | st.text(min_size=1, max_size=40).filter(lambda text: not text.isspace())
"""A text that is not blank, mostly short."""


def _image(grown: str) -> Message:
    if grown == "openai":
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{_PIXEL}"}}
    source = {"type": "base64", "media_type": "image/png", "data": _PIXEL}
    return {"type": "image", "source": source}


def _same(messages: list[Message]) -> list[Message]:
    return messages


def _blocks(content: object) -> list[Message]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("list[Message]", content) if isinstance(content, list) else []


def _responses(messages: list[Message]) -> list[Message]:
    """Items: a message, each call and each result is one of its own."""
    items: list[Message] = []
    for number, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role == "tool":
            output = content
            if isinstance(content, list):
                output = [{**block, "type": "input_text"} for block in _blocks(content)]
            call_id = message["tool_call_id"]
            items.append({"type": "function_call_output", "call_id": call_id, "output": output})
            continue
        calls = message.get("tool_calls", [])
        if calls and number % 2:
            items.append({"type": "reasoning", "id": f"rs_{number}", "summary": []})
        if content is not None:
            kind = "output_text" if role == "assistant" else "input_text"
            blocks = [
                {"type": kind, "text": block["text"]}
                if block["type"] == "text"
                else {"type": "input_image", "image_url": block["image_url"]["url"]}
                for block in _blocks(content)
            ]
            said = content if isinstance(content, str) else blocks
            items.append({"type": "message", "role": role, "content": said})
        items += [
            {"type": "function_call", "id": f"fc_{call['id']}", "call_id": call["id"]}
            | call["function"]
            for call in calls
        ]
    return items


def _gemini(messages: list[Message]) -> list[Message]:
    """Contents of parts; the model's calls are signed where it had thoughts."""
    names: dict[str, str] = {}

    def part(block: Message) -> Message:
        if block["type"] == "text":
            return {"text": block["text"]}
        if block["type"] == "thinking":
            return {"text": block["thinking"], "thought": True}
        if block["type"] == "image":
            return {"inlineData": {"mimeType": "image/png", "data": block["source"]["data"]}}
        if block["type"] == "tool_use":
            names[block["id"]] = block["name"]
            call = {"id": block["id"], "name": block["name"], "args": block["input"]}
            return {"functionCall": call}
        call_id = block["tool_use_id"]
        response = {"result": [inner.get("text") for inner in _blocks(block["content"])]}
        name = names.get(call_id, "look_up")
        return {"functionResponse": {"id": call_id, "name": name, "response": response}}

    contents: list[Message] = []
    for message in messages:
        blocks = _blocks(message["content"])
        parts = [part(block) for block in blocks]
        if any(block["type"] == "thinking" for block in blocks):
            first = next(item for item in parts if "functionCall" in item)
            first["thoughtSignature"] = "c2ln"
        role = "model" if message["role"] == "assistant" else "user"
        contents.append({"role": role, "parts": parts})
    return contents


def _bedrock(messages: list[Message]) -> list[Message]:
    """Converse messages: a block is an object of one key."""

    def block(given: Message) -> Message:
        if given["type"] == "text":
            return {"text": given["text"]}
        if given["type"] == "thinking":
            text = {"text": given["thinking"], "signature": given["signature"]}
            return {"reasoningContent": {"reasoningText": text}}
        if given["type"] == "image":
            return {"image": {"format": "png", "source": {"bytes": given["source"]["data"]}}}
        if given["type"] == "tool_use":
            use = {"toolUseId": given["id"], "name": given["name"], "input": given["input"]}
            return {"toolUse": use}
        content = [{"text": inner["text"]} for inner in _blocks(given["content"])]
        status = "error" if given.get("is_error") else "success"
        result = {"toolUseId": given["tool_use_id"], "content": content, "status": status}
        return {"toolResult": result}

    return [
        {"role": message["role"], "content": [block(item) for item in _blocks(message["content"])]}
        for message in messages
    ]


_SPELL: Final[dict[str, tuple[str, Callable[[list[Message]], list[Message]]]]] = {
    "openai": ("openai", _same),
    "openai-responses": ("openai", _responses),
    "anthropic": ("anthropic", _same),
    "gemini": ("anthropic", _gemini),
    "bedrock": ("anthropic", _bedrock),
}
"""In which format a history grows, and how it is spelled afterwards."""


_JUNK: Final[SearchStrategy[Any]] = st.sampled_from(
    [
        None,
        "",
        " \n\t",
        "half \ud83d",
        "\udc00",
        7,
        -0.5,
        True,
        {},
        [],
        [None],
        [[["deep"]]],
        {"type": "text", "text": "not in a list"},
        [{"type": "text", "text": ""}],
        [{"text": " "}],
        [{"type": "text", "text": "half \ud800"}],
        [{"type": "text"}],
        [{"text": "no type"}],
        [{"type": "hologram", "data": {"a": [1, {"b": None}]}}],
        [{"type": "thinking", "thinking": "unsigned"}],
        [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}],
        [{"type": "tool_use", "id": 5, "name": None, "input": "text"}],
        [{"type": "tool_result", "content": [{"type": "text", "text": "whose?"}]}],
        [{"toolUse": {"toolUseId": "call_0", "name": "look_up", "input": {}}}],
        [{"functionResponse": {"name": "look_up", "response": {"result": 1}}}],
        [{"functionCall": {"name": "look_up", "args": {}}}],
        [{"id": "x"}, {"id": "y", "function": None}, 3],
    ]
)
"""A value that no message has in this place, or should not have."""


def _break(draw: DrawFn, messages: list[Message], dialect: str) -> None:
    """Break one thing in ``messages``, in place."""
    at = draw(st.integers(0, max(0, len(messages) - 1)))
    kinds = ("drop", "repeat", "swap", "orphan", "ids", "content", "field", "block", "role")
    how = draw(st.sampled_from(kinds))
    if not messages or how == "orphan":
        call_id = draw(st.sampled_from(("call_0", "call_1", "nobody", "")))
        messages.insert(at, _orphan(dialect, call_id))
        return
    message = messages[at]
    content = "parts" if dialect == "gemini" else "content"
    if message.get("type", "message") != "message":
        content = "output" if "output" in message else "arguments"
    if how == "drop":
        del messages[at]
    elif how == "repeat":
        messages.insert(draw(st.integers(0, len(messages))), json.loads(json.dumps(message)))
    elif how == "swap":
        other = draw(st.integers(0, len(messages) - 1))
        messages[at], messages[other] = messages[other], message
    elif how == "ids":
        _rename(message, draw(st.sampled_from(("call_0", "", "ü " * 30, None, 4))))
    elif how == "content":
        message[content] = draw(_JUNK)
    elif how == "field":
        keys = sorted({*message, content, "tool_calls", "extra"})
        key = draw(st.sampled_from(keys))
        if draw(st.booleans()):
            message.pop(key, None)
        else:
            message[key] = draw(_JUNK)
    elif how == "block":
        blocks, more = _listed(message.get(content)), draw(_JUNK)
        more = _listed(more) or [more]
        message[content] = [*more, *blocks] if draw(st.booleans()) else [*blocks, *more]
    else:
        roles = ("tool", "assistant", "model", "user", "system", "critic", "", None, 3)
        message["role"] = draw(st.sampled_from(roles))


def _orphan(dialect: str, call_id: str) -> Message:
    """A result whose call is elsewhere or nowhere."""
    if dialect == "openai":
        return {"role": "tool", "tool_call_id": call_id, "content": "late"}
    if dialect == "openai-responses":
        return {"type": "function_call_output", "call_id": call_id, "output": "late"}
    if dialect == "gemini":
        response = {"id": call_id, "name": "look_up", "response": {"result": "late"}}
        return {"role": "user", "parts": [{"functionResponse": response}]}
    if dialect == "bedrock":
        result = {"toolUseId": call_id, "content": [{"text": "late"}]}
        return {"role": "user", "content": [{"toolResult": result}]}
    block = {"type": "tool_result", "tool_use_id": call_id, "content": "late"}
    return {"role": "user", "content": [block]}


def _rename(message: Message, call_id: str | int | None) -> None:
    """Give every call and result of a message the same id."""
    names = ("id", "call_id", "tool_call_id", "tool_use_id", "toolUseId")
    lists = ("tool_calls", "content", "parts")
    holders = [message, *(item for key in lists for item in _listed(message.get(key)))]
    for holder in holders:
        if not isinstance(holder, dict):
            continue
        fields = cast("dict[str, object]", holder)
        for inner in (fields, *fields.values()):
            if isinstance(inner, dict):
                held = cast("dict[str, object]", inner)
                held.update(dict.fromkeys(held.keys() & names, call_id))


def _listed(value: object) -> list[object]:
    """The value if it is a list, else an empty one."""
    return cast("list[object]", value) if isinstance(value, list) else []
