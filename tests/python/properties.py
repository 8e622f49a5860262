"""Properties of histories in any dialect, as small checkers over one plain view of a message.

Each returns what is wrong, so that a failing test says it; an empty list is a pass. The view knows
the five dialects by their keys and nothing of the library.
"""

from __future__ import annotations

import base64
import json
import math
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from satchel import InputError

__all__ = [
    "View",
    "adjacent",
    "anchored",
    "blank",
    "call_after_user",
    "in_order",
    "results_first",
    "says",
    "starts_with_user",
    "unpaired",
    "view",
]

Message = dict[str, Any]


@dataclass
class View:
    """What a message says and does.

    Attributes:
        role: system, developer, user, assistant or tool (nothing but results).
        texts: every text in it, results and arguments included.
        calls: ids of its calls, or ``name:`` and the name where there is no id.
        results: the same of its results.
        shape: per block ``text``, ``call``, ``result``, ``reasoning`` or ``other``, in order.
    """

    role: str
    texts: list[str] = field(default_factory=list[str])
    calls: list[str] = field(default_factory=list[str])
    results: list[str] = field(default_factory=list[str])
    shape: list[str] = field(default_factory=list[str])


def _texts(value: object) -> list[str]:
    """Every string inside a value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        inner = cast("dict[str, object]", value).values()
        return [text for item in inner for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in cast("list[object]", value) for text in _texts(item)]
    return []


def _key(holder: Message, *names: str) -> str:
    found = next((str(holder[name]) for name in names if holder.get(name)), None)
    return found if found is not None else f"name:{holder.get('name')}"


def _see(seen: View, block: Message) -> None:
    use = block.get("toolUse") or block.get("functionCall")
    answer = block.get("toolResult") or block.get("functionResponse")
    kind = block.get("type")
    if kind == "tool_use" or use is not None:
        seen.calls.append(_key(use or block, "id", "toolUseId"))
        seen.shape.append("call")
    elif kind == "tool_result" or answer is not None:
        seen.results.append(_key(answer or block, "id", "tool_use_id", "toolUseId"))
        seen.shape.append("result")
    elif (
        kind in {"thinking", "redacted_thinking"}
        or block.get("thought")
        or "reasoningContent" in block
    ):
        seen.shape.append("reasoning")
    else:
        seen.shape.append("text" if "text" in block else "other")
    seen.texts += _texts(block)


def view(message: Message) -> View:
    """The message as its provider reads it."""
    kind = message.get("type", "message")
    if kind == "reasoning":
        return View("assistant", shape=["reasoning"])
    if kind.endswith("_output"):
        text = _texts(message.get("output"))
        return View("tool", texts=text, results=[_key(message, "call_id")], shape=["result"])
    if kind.endswith("_call"):
        text = _texts([message.get("name"), message.get("arguments")])
        return View("assistant", texts=text, calls=[_key(message, "call_id")], shape=["call"])
    given = cast("str", message["role"])
    role = {"model": "assistant", "function": "tool"}.get(given, given)
    seen = View(role)
    content = message.get("parts", message.get("content"))
    if role == "tool" and "parts" not in message:
        seen.results.append(_key(message, "tool_call_id"))
        seen.shape.append("result")
        seen.texts += _texts(content)
        return seen
    if isinstance(content, str):
        seen.texts.append(content)
        seen.shape.append("text")
    for block in cast("list[Message]", content) if isinstance(content, list) else []:
        _see(seen, block)
    for call in cast("list[Message]", message.get("tool_calls") or []):
        seen.calls.append(_key(call, "id"))
        seen.texts += _texts(call["function"])
        seen.shape.append("call")
    if legacy := message.get("function_call"):
        seen.calls.append(_key(legacy))
        seen.texts += _texts(legacy)
        seen.shape.append("call")
    if seen.results and set(seen.shape) == {"result"}:
        seen.role = "tool"
    return seen


def unpaired(messages: Sequence[Message], *, pending: Iterable[str] = ()) -> list[str]:
    """Results without an open call before them, and calls that nothing answers."""
    wrong: list[str] = []
    open_calls: list[str] = []
    for index, seen in enumerate(map(view, messages)):
        for result in seen.results:
            if result in open_calls:
                open_calls.remove(result)
            else:
                wrong.append(f"message {index}: result {result} has no open call")
        open_calls += seen.calls
    return wrong + [f"call {call} has no result" for call in open_calls if call not in set(pending)]


def adjacent(messages: Sequence[Message]) -> list[str]:
    """Something else than results, or more of the same turn, between calls and their results."""
    wrong: list[str] = []
    open_calls: list[str] = []
    for index, seen in enumerate(map(view, messages)):
        for result in seen.results:
            if result in open_calls:
                open_calls.remove(result)
        if not seen.results and open_calls and seen.role != "assistant":
            wrong.append(f"message {index}: stands between {open_calls} and the results")
        open_calls += seen.calls
    return wrong


def starts_with_user(messages: Sequence[Message]) -> list[str]:
    """The first message besides instructions is not a user's."""
    said = [seen for seen in map(view, messages) if seen.role not in {"system", "developer"}]
    return [] if not said or said[0].role == "user" else [f"starts with {said[0].role}"]


def call_after_user(messages: Sequence[Message]) -> list[str]:
    """Calls behind something else than a user's turn or results."""
    views = [view(message) for message in messages]
    return [
        f"message {index}: calls behind {views[index - 1].role if index else 'nothing'}"
        for index, seen in enumerate(views)
        if seen.calls and (not index or views[index - 1].role not in {"user", "tool"})
    ]


def alternates(messages: Sequence[Message]) -> list[str]:
    """Neighbours with one role; results speak for the user."""
    roles = [view(message).role for message in messages]
    sides = ["user" if role == "tool" else role for role in roles]
    return [
        f"message {at}: {two} again"
        for at, (one, two) in enumerate(pairwise(sides), start=1)
        if one == two
    ]


def results_first(messages: Sequence[Message]) -> list[str]:
    """Results of a turn that are not together, or behind something else."""
    wrong: list[str] = []
    for index, seen in enumerate(map(view, messages)):
        kinds = ["result" if kind == "result" else "other" for kind in seen.shape]
        if kinds != sorted(kinds, reverse=True):
            wrong.append(f"message {index}: {seen.shape}")
    return wrong


def blank(messages: Sequence[Message]) -> list[str]:
    """Messages that say and do nothing; reasoning alone is nothing."""
    views = [view(message) for message in messages]
    return [
        f"message {index} is empty"
        for index, seen in enumerate(views)
        if not (seen.calls or seen.results or "other" in seen.shape)
        and not any(text.strip() for text in seen.texts)
    ]


def says(messages: Sequence[Message], text: str) -> int:
    """How often a text occurs in all messages."""
    return sum(found.count(text) for message in messages for found in view(message).texts)


def in_order(messages: Sequence[Message], originals: Sequence[Message]) -> list[str]:
    """Messages of the caller that changed places."""
    left = iter(json.dumps(message, sort_keys=True) for message in originals)
    known = {json.dumps(message, sort_keys=True) for message in originals}
    mine = [json.dumps(message, sort_keys=True) for message in messages]
    return [found for found in mine if found in known and not any(found == one for one in left)]


def anchored(messages: Sequence[Message], originals: Sequence[Message]) -> list[str]:
    """Instructions and the newest user message, where they are not there word for word."""
    views = [(message, view(message).role) for message in originals]
    needed = [message for message, role in views if role in {"system", "developer"}]
    users = [message for message, role in views if role == "user"]
    return [f"lost: {message}" for message in needed + users[-1:] if message not in messages]


def walk(value: object) -> list[str]:
    """Every string inside a value."""
    return _texts(value)


def refused(error: InputError, messages: Sequence[Message]) -> None:
    """Asserts that the error is one of those that damage may raise, and names its message."""
    assert error.code in {"invalid_message", "dialect_changed", "too_deep"}
    assert error.index is not None
    assert 0 <= error.index < len(messages)


def places(after: Sequence[Message], before: Sequence[Message]) -> list[int]:
    """Where messages that came back as the same objects stood; no results and no instructions.

    Those two go to where the provider wants them.
    """
    index = {id(message): at for at, message in enumerate(before)}
    return [
        index[id(message)] for message in after if id(message) in index and not _may_move(message)
    ]


def _may_move(message: Message) -> bool:
    if message.get("role") in {"system", "developer", "tool", "function"}:
        return True
    marks = ("tool_result", "toolResult", "functionResponse", "_output", "mcp_approval_response")
    return any(mark in json.dumps(message, default=str) for mark in marks)


def nothing_invented(
    after: Sequence[Message], before: Sequence[Message], placeholders: Sequence[str]
) -> None:
    """Asserts that every text is the caller's, is framed and labelled, or is a placeholder."""
    known = json.dumps(_as_sent([before]), ensure_ascii=True)
    spelled = _spelled(known)
    said = [message.get("parts", message.get("content")) for message in after]
    for text in _texts(_without_marks(said)):
        if text in placeholders or not text.strip():
            continue
        framed = text.startswith("<satchel-") and text.endswith(">")
        body = "\n".join(text.split("\n")[1:-1]) if framed else text
        # Quoted JSON is spelled in other ways; its letters are the caller's.
        assert framed or json.dumps(body)[1:-1] in known or _spelled(body) in spelled, text


def _as_sent(value: object) -> object:
    """The value with what JSON cannot say in the form in which it is sent."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value).items()
        return {key: _as_sent(item) for key, item in fields}
    if isinstance(value, list):
        return [_as_sent(item) for item in cast("list[object]", value)]
    return value


_MARKS = frozenset(
    {"type", "id", "call_id", "tool_use_id", "tool_call_id", "toolUseId", "status", "name"}
)
"""Fields that are no content."""


def _without_marks(value: object) -> object:
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value).items()
        return {key: _without_marks(item) for key, item in fields if key not in _MARKS}
    if isinstance(value, list):
        return [_without_marks(item) for item in cast("list[object]", value)]
    return value


def _spelled(text: str) -> str:
    """Only letters and digits of ASCII: what every spelling of JSON keeps."""
    return _OTHER.sub("", text)


_OTHER = re.compile(r"\\+(?:u[0-9A-Fa-f]{4})?|[^0-9A-Za-z\\]+")
