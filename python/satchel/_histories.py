"""Strategies behind ``satchel.testing.histories``: valid histories, and what can break them."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Final, cast

from hypothesis import strategies as st

from satchel._history_forms import (
    DIALECTS,
    INSTRUCTED,
    Content,
    Dialect,
    Message,
    orphan,
    said,
    step,
)

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["history"]


def history(dialect: Dialect, *, max_steps: int, damage: bool) -> SearchStrategy[list[Message]]:
    """The strategy of ``satchel.testing.histories``."""
    if dialect not in DIALECTS:
        msg = f"dialect is {dialect!r}, known are {', '.join(DIALECTS)}"
        raise ValueError(msg)
    return _history(dialect, max_steps, damage)


@st.composite
def _history(draw: DrawFn, dialect: Dialect, max_steps: int, damage: bool) -> list[Message]:  # noqa: FBT001 - private
    shape = draw(st.lists(st.integers(-2, 3), min_size=0, max_size=max_steps))
    messages: list[Message] = []
    if dialect in INSTRUCTED:
        roles = draw(st.lists(st.sampled_from(["system", "developer"]), max_size=2))
        messages += [said(dialect, role, _content(draw)) for role in roles]
    ids = itertools.count()
    # A number below zero is a user turn, zero an answer, otherwise the width of a call step.
    users_turn = True
    for width in shape:
        if users_turn or (width < 0 and dialect in INSTRUCTED):
            messages.append(said(dialect, "user", _content(draw, images=True)))
            users_turn = False
        elif width <= 0:
            messages.append(said(dialect, "assistant", _content(draw)))
            users_turn = True
        else:
            messages += _calls(draw, dialect, [f"call_{next(ids)}" for _ in range(width)])
    if messages and messages[-1].get("role") in {"assistant", "model"}:
        # A prefill, which must not end in white space.
        messages[-1] = said(dialect, "assistant", "yes")
    if damage and messages:
        for _ in range(draw(st.integers(1, 4))):
            _break(draw, messages, dialect)
    return messages


def _content(draw: DrawFn, *, images: bool = False) -> Content:
    if draw(st.booleans()):
        return draw(_TEXT)
    parts: list[str | None] = [*draw(st.lists(_TEXT, min_size=1, max_size=3))]
    if images and draw(st.booleans()):
        parts.append(None)
    return parts


def _calls(draw: DrawFn, dialect: Dialect, ids: list[str]) -> list[Message]:
    values = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _TEXT
    arguments = [draw(st.dictionaries(_TEXT, values, max_size=3)) for _ in ids]
    text = draw(st.none() | _TEXT)
    results = [_content(draw) for _ in ids]
    thought = draw(st.none() | _TEXT)
    return step(dialect, ids, arguments, text, thought, results, draw(st.booleans()))


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


def _break(draw: DrawFn, messages: list[Message], dialect: Dialect) -> None:
    """Break one thing in ``messages``, in place."""
    at = draw(st.integers(0, max(0, len(messages) - 1)))
    kinds = ("drop", "repeat", "swap", "orphan", "ids", "content", "field", "block", "role")
    how = draw(st.sampled_from(kinds))
    if not messages or how == "orphan":
        call_id = draw(st.sampled_from(("call_0", "call_1", "nobody", "")))
        messages.insert(at, orphan(dialect, call_id))
        return
    message = messages[at]
    if how == "drop":
        del messages[at]
    elif how == "repeat":
        messages.insert(draw(st.integers(0, len(messages))), json.loads(json.dumps(message)))
    elif how == "swap":
        other = draw(st.integers(0, len(messages) - 1))
        messages[at], messages[other] = messages[other], message
    else:
        _break_message(draw, message, dialect, how)


def _break_message(draw: DrawFn, message: Message, dialect: Dialect, how: str) -> None:
    content = "parts" if dialect == "gemini" else "content"
    if message.get("type", "message") != "message":
        content = "output" if "output" in message else "arguments"
    if how == "ids":
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
