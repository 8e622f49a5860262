"""Strategies behind ``satchel.testing.histories``: valid histories, and what can break them."""

from __future__ import annotations

import copy
import itertools
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from hypothesis import strategies as st

from satchel._history_forms import (
    DIALECTS,
    INSTRUCTED,
    ODD,
    Content,
    Dialect,
    Message,
    orphan,
    said,
    step,
)

if TYPE_CHECKING:
    from collections.abc import Sequence
    from random import Random

    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["Choices", "Drawn", "Rolled", "history", "make_history"]

_T = TypeVar("_T")


class Choices(Protocol):
    """Where the choices of a history come from."""

    def integer(self, low: int, high: int) -> int:
        """A number, both ends included."""
        ...

    def pick(self, options: Sequence[_T]) -> _T:
        """One of them."""
        ...

    def text(self) -> str:
        """A text that is not blank, mostly short."""
        ...


class Drawn:
    """Choices of hypothesis, which can shrink them."""

    def __init__(self, draw: DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, options: Sequence[_T]) -> _T:
        return self._draw(st.sampled_from(options))

    def text(self) -> str:
        return self._draw(_TEXT)


class Rolled:
    """Choices of a seeded generator, some ten times as fast: for long runs."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng

    def integer(self, low: int, high: int) -> int:
        return self._rng.randint(low, high)

    def pick(self, options: Sequence[_T]) -> _T:
        return self._rng.choice(options)

    def text(self) -> str:
        if self._rng.random() < 0.5:  # noqa: PLR2004 - a share
            return self._rng.choice(_TEXTS)
        low, high = self._rng.choice(_ALPHABETS)
        count = self._rng.randint(1, 40)
        found = "".join(chr(self._rng.randint(low, high)) for _ in range(count))
        return "x" if found.isspace() else found


def history(dialect: Dialect, *, max_steps: int, damage: bool) -> SearchStrategy[list[Message]]:
    """The strategy of ``satchel.testing.histories``."""
    if dialect not in DIALECTS:
        msg = f"dialect is {dialect!r}, known are {', '.join(DIALECTS)}"
        raise ValueError(msg)
    return _drawn_history(dialect, max_steps, damage)


@st.composite
def _drawn_history(
    draw: DrawFn,
    dialect: Dialect,
    max_steps: int,
    damage: bool,  # noqa: FBT001 - private
) -> list[Message]:
    return make_history(Drawn(draw), dialect, max_steps=max_steps, damage=damage)


def make_history(
    choices: Choices, dialect: Dialect, *, max_steps: int, damage: bool
) -> list[Message]:
    """A history as these choices make it."""
    messages: list[Message] = []
    if dialect in INSTRUCTED:
        for _ in range(choices.integer(0, 2)):
            role = choices.pick(("system", "developer"))
            messages.append(said(dialect, role, _content(choices)))
    ids = itertools.count()
    # A number below zero is a user turn, zero an answer, otherwise the width of a call step.
    users_turn = True
    for _ in range(choices.integer(0, max_steps)):
        width = choices.integer(-2, 3)
        if users_turn or (width < 0 and dialect in INSTRUCTED):
            messages.append(said(dialect, "user", _content(choices, images=True)))
            users_turn = False
        elif width <= 0:
            messages.append(said(dialect, "assistant", _content(choices)))
            users_turn = True
        else:
            messages += _calls(choices, dialect, [f"call_{next(ids)}" for _ in range(width)])
    if messages and messages[-1].get("role") in {"assistant", "model"}:
        # A prefill, which must not end in white space.
        messages[-1] = said(dialect, "assistant", "yes")
    if damage and messages:
        for _ in range(choices.integer(1, 4)):
            _break(choices, messages, dialect)
    return messages


def _content(choices: Choices, *, images: bool = False) -> Content:
    if _flag(choices):
        return choices.text()
    parts: list[str | None] = [choices.text() for _ in range(choices.integer(1, 3))]
    if images and _flag(choices):
        parts.append(None)
    return parts


def _calls(choices: Choices, dialect: Dialect, ids: list[str]) -> list[Message]:
    arguments = [
        {choices.text(): _value(choices) for _ in range(choices.integer(0, 3))} for _ in ids
    ]
    rows = [
        (name, "look_up", given, _content(choices))
        for name, given in zip(ids, arguments, strict=True)
    ]
    text = choices.text() if _flag(choices) else None
    thought = choices.text() if _flag(choices) else None
    return step(dialect, rows, text=text, thought=thought, failed=_flag(choices))


def _value(choices: Choices) -> object:
    kind = choices.integer(0, 3)
    if kind > 1:
        return choices.text()
    return choices.integer(-(2**53), 2**53) if kind else choices.pick((None, True, False))


def _flag(choices: Choices) -> bool:
    return choices.integer(0, 1) == 1


_TEXTS: Final = (
    "yes",
    "Never touch db-01 without asking.",
    "결정: 내일 오전 9시로 확정",
    "def f(x):\n    return x\n",
    '{"order_id": "AX-1", "items": []}',
    "<|endoftext|> is text",
    "line\n" * 60,
)

_TEXT: Final = st.sampled_from(_TEXTS) | st.text(min_size=1, max_size=40).filter(
    lambda text: not text.isspace()
)

_ALPHABETS: Final = (
    (32, 126),
    (0, 0x2FF),
    (0x300, 0x370),
    (0x2000, 0x206F),
    (0xAC00, 0xD7A3),
    (0x1F300, 0x1FAFF),
)
"""First and last of some ranges of characters: controls, marks, spaces, Hangul, pictures."""

_JUNK: Final[tuple[Any, ...]] = (
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
    b"raw",
    float("nan"),
    {"deep": [float("-inf"), {"\udfff": b"raw"}]},
    [{}],
    [{"type": "image_url"}, {"type": "video_url", "video_url": {"url": "x"}}],
    [{"type": "input_image"}, {"type": "image", "source": {}}],
    [{"image": {"format": "png"}}, {"inlineData": {"mimeType": "image/png"}}],
)
"""A value that no message has in this place, or should not have."""


def _junk(choices: Choices) -> Any:  # noqa: ANN401 - of any type on purpose
    return copy.deepcopy(choices.pick(_JUNK))


def _break(choices: Choices, messages: list[Message], dialect: Dialect) -> None:
    """Break one thing in ``messages``, in place."""
    at = choices.integer(0, max(0, len(messages) - 1))
    kinds = (
        "drop",
        "repeat",
        "swap",
        "orphan",
        "odd",
        "ids",
        "content",
        "field",
        "block",
        "role",
        "call",
    )
    how = choices.pick(kinds)
    if not messages or how == "orphan":
        call_id = choices.pick(("call_0", "call_1", "nobody", ""))
        messages.insert(at, orphan(dialect, call_id))
        return
    if how == "odd":
        messages.insert(at, copy.deepcopy(choices.pick(ODD[dialect])))
        return
    message = messages[at]
    if how == "drop":
        del messages[at]
    elif how == "repeat":
        messages.insert(choices.integer(0, len(messages)), copy.deepcopy(message))
    elif how == "swap":
        other = choices.integer(0, len(messages) - 1)
        messages[at], messages[other] = messages[other], message
    else:
        _break_message(choices, message, dialect, how)


def _break_message(choices: Choices, message: Message, dialect: Dialect, how: str) -> None:
    content = "parts" if dialect == "gemini" else "content"
    if message.get("type", "message") != "message":
        content = "output" if "output" in message else "arguments"
    if how == "ids":
        _rename(message, choices.pick(("call_0", "", "ü " * 30, None, 4)))
    elif how == "call":
        _spoil_call(choices, message)
    elif how == "content":
        message[content] = _junk(choices)
    elif how == "field":
        keys = sorted({*message, content, "tool_calls", "extra"})
        key = choices.pick(keys)
        if _flag(choices):
            message.pop(key, None)
        else:
            message[key] = _junk(choices)
    elif how == "block":
        blocks, more = _listed(message.get(content)), _junk(choices)
        more = _listed(more) or [more]
        message[content] = [*more, *blocks] if _flag(choices) else [*blocks, *more]
    else:
        roles = ("tool", "assistant", "model", "user", "system", "critic", "", None, 3)
        message["role"] = choices.pick(roles)


_SPOILT: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("name", (None, "", "look up!", "look_up" * 30, "l\udcff", 5)),
    ("arguments", (None, "", {"a": 1}, [1], 3)),
    ("input", (None, "", '{"a": 1}', '{"a": ', [1], "x\ud800")),
    ("args", (None, "", '{"a": 1}', '{"a": ', [1])),
    ("response", (None, "text", [1], {"output": float("inf")})),
    ("output", (None, [], [{"type": "input_image"}])),
    ("content", (None, [], [{"type": "image"}], [{}])),
    ("tool_calls", ([],)),
)
"""Fields of calls and results, and what should not be in them."""


def _spoil_call(choices: Choices, message: Message) -> None:
    """Put something into the calls or results of a message that the provider refuses there."""
    name, values = choices.pick(_SPOILT)
    value = choices.pick(values)
    lists = ("tool_calls", "content", "parts")
    blocks = [item for key in lists for item in _listed(message.get(key))]
    holders: list[dict[str, object]] = [message] if name in message else []
    for block in blocks:
        for fields in _held(block):
            holders.append(fields)
            holders += [inner for value in fields.values() for inner in _held(value)]
    for holder in holders:
        if name not in holder or (name == "content" and holder is message):
            continue
        if _flag(choices):
            holder.pop(name)
        else:
            holder[name] = copy.deepcopy(value)
    if blocks and _flag(choices):
        calls = _listed(message.get("tool_calls"))
        calls.extend(copy.deepcopy(calls))


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


def _held(value: object) -> list[dict[str, object]]:
    """The value in a list if it is a dict, else an empty one."""
    return [cast("dict[str, object]", value)] if isinstance(value, dict) else []
