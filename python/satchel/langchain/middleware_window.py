"""A window as LangChain's messages, and what of it the state should keep.

Windows are planned over chat messages that carry their place in the log; what did not change in the
window is the message object of the log, what changed is a copy with its id.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)

from satchel.langchain.exact import as_chat
from satchel.langchain.middleware_log import digest_of, name_of, pack

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from satchel.counting import Counter
    from satchel.langchain.middleware_log import Log

    _Pair = tuple[Any, Any]

__all__ = ["Edits", "chat_of", "edits_of", "excess_of", "message_of", "rendered", "with_others"]

_PLACE: Final = "id"
_CALLS: Final = frozenset({"tool_use", "tool_call"})
_TEXTS: Final = frozenset({"text"})


def chat_of(messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
    """The messages as chat messages to plan with, each with its place.

    Blocks of a kind that the chat format does not have (reasoning with its signature, say) stay as
    they are, so that they are kept whole or go with their step.
    """
    found: list[dict[str, Any]] = []
    for at, message in enumerate(messages):
        chat = as_chat(message)
        content: Any = cast("Any", message).content
        if isinstance(content, list):
            chat["content"] = [
                made if made["type"] != "text" or _is_text(block) else block
                for block, made in zip(
                    _kept_blocks(cast("list[object]", content), chat), chat["content"], strict=True
                )
            ]
        found.append({**chat, _PLACE: str(at)})
    return found


def rendered(
    window: Sequence[dict[str, Any]], chat: Sequence[dict[str, Any]], log: Log
) -> list[tuple[int | None, BaseMessage]]:
    """The messages of a window, each with its place in the log; None for one that is not in it."""
    found: list[tuple[int | None, BaseMessage]] = []
    for message in window:
        place = message.get(_PLACE)
        at = int(place) if isinstance(place, str) and place.isdigit() else None
        if at is None or at >= len(chat):
            found.append((None, message_of(message)))
        elif message is chat[at] or message == chat[at]:
            original, held = log.messages[at], log.shown[at]
            found.append((at, original if held is original else original.model_copy()))
        else:
            found.append((at, _edited(log.messages[at], chat[at], message)))
    return found


def excess_of(
    window: Sequence[dict[str, Any]],
    shown: Sequence[BaseMessage],
    counter: Counter,
) -> int:
    """Tokens that shortened arguments take above what was planned, since LangChain spaces JSON.

    Args:
        window: the messages of the window.
        shown: the same as LangChain's messages.
        counter: what counts.
    """
    planned: list[dict[str, Any]] = []
    sent: list[dict[str, Any]] = []
    for before, message in zip(window, shown, strict=True):
        after = as_chat(message)
        if before.get("tool_calls") and before["tool_calls"] != after.get("tool_calls"):
            calls = {"role": "assistant", "content": None}
            planned.append({**calls, "tool_calls": before["tool_calls"]})
            sent.append({**calls, "tool_calls": after["tool_calls"]})
    if not sent:
        return 0
    first = counter.count_messages(planned, dialect="openai")
    return max(0, counter.count_messages(sent, dialect="openai").upper - first.upper)


def with_others(
    window: Sequence[tuple[int | None, BaseMessage]],
    others: Sequence[tuple[int, BaseMessage]],
) -> list[BaseMessage]:
    """The window with messages of this call only, each behind the place that it stood behind.

    None of them comes between calls and their results.
    """
    found: list[BaseMessage] = []
    waiting = list(others)
    done = -1
    for at, message in window:
        if not isinstance(message, ToolMessage):
            while waiting and waiting[0][0] <= done:
                found.append(waiting.pop(0)[1])
        found.append(message)
        done = done if at is None else at
    return [*found, *(message for _, message in waiting)]


@dataclass(frozen=True, slots=True)
class Edits:
    """What the state should change.

    Attributes:
        messages: copies with the id of what they replace, and removals.
        kept: originals by their name; None for one that nobody needs any more.
        edited: as in `Record`.
    """

    messages: list[BaseMessage]
    kept: dict[str, bytes | None]
    edited: dict[str, str]


def edits_of(
    log: Log,
    window: Sequence[tuple[int | None, BaseMessage]],
    kept: Mapping[str, bytes | None],
) -> Edits:
    """What makes the state's messages those of the window.

    A message without an id, or with one that occurs twice, cannot be named and stays.
    """
    by_place = {at: message for at, message in window if at is not None}
    counts: dict[str, int] = {}
    for message in log.messages:
        counts[message.id or ""] = counts.get(message.id or "", 0) + 1
    edits = Edits([], dict.fromkeys(log.dropped), {})
    for at, (original, shown) in enumerate(zip(log.messages, log.shown, strict=True)):
        name = original.id
        if shown is None or not name or counts[name] > 1:
            continue
        wanted = by_place.get(at)
        is_edited = wanted is not None and digest_of(wanted) != digest_of(original)
        if (wanted is None or is_edited) and name_of(name) not in kept:
            edits.kept[name_of(name)] = pack(original)
        if wanted is None:
            edits.messages.append(RemoveMessage(id=name))
            continue
        if is_edited:
            edits.edited[name] = digest_of(wanted)
        if digest_of(wanted) != digest_of(shown):
            edits.messages.append(wanted)
    return edits


def _is_text(block: object) -> bool:
    return isinstance(block, str) or _kind(block) in _TEXTS


def _kind(block: object) -> object:
    return cast("dict[str, object]", block).get("type") if isinstance(block, dict) else None


def _kept_blocks(content: list[object], chat: Mapping[str, Any]) -> list[object]:
    """The blocks that stand in the chat message: those of its calls stand there by themselves."""
    repeats = _CALLS if "tool_calls" in chat else frozenset[str]()
    return [block for block in content if _kind(block) not in repeats]


def _edited(
    original: BaseMessage, before: Mapping[str, Any], after: Mapping[str, Any]
) -> BaseMessage:
    """A copy of a message of the log that says what the window says."""
    changed: dict[str, Any] = {}
    pairs: list[_Pair] = []
    if before.get("tool_calls") != after.get("tool_calls") and isinstance(original, AIMessage):
        calls: list[Any] = [*original.tool_calls, *original.invalid_tool_calls]
        pairs = _paired(calls, after.get("tool_calls") or [])
        count = len(original.tool_calls)
        changed["tool_calls"] = [_call(*pair) for pair in pairs[:count] if pair[1] is not None]
        changed["invalid_tool_calls"] = [
            _call(*pair) for pair in pairs[count:] if pair[1] is not None
        ]
        # Some integrations keep the calls as they came a second time.
        extra = cast("dict[str, Any]", cast("Any", original).additional_kwargs)
        changed["additional_kwargs"] = {
            name: value for name, value in extra.items() if name != "tool_calls"
        }
    if before.get("tool_call_id") != after.get("tool_call_id"):
        changed["tool_call_id"] = after.get("tool_call_id")
    if before["content"] != after["content"]:
        changed["content"] = after["content"]
    content: object = cast("Any", original).content
    if isinstance(content, list):
        changed["content"] = _blocks(cast("list[object]", content), before, after, pairs)
    return original.model_copy(update=changed)


def _paired(calls: Sequence[Any], given: Sequence[Any]) -> list[_Pair]:
    """Each call with what the window has for it; None for one that the window does not have.

    By order, since the ids of a repaired window are others; by id if calls are missing.
    """
    if len(calls) == len(given):
        return list(zip(calls, given, strict=True))
    left = list(given)
    found: list[_Pair] = []
    for call in calls:
        at = next((at for at, one in enumerate(left) if one["id"] == call["id"]), None)
        found.append((call, None if at is None else left.pop(at)))
    return found


def _call(call: Any, given: Any) -> dict[str, Any]:
    """A call under the id and the name, and with the arguments, of the window."""
    function = given["function"]
    text = function["arguments"]
    arguments = _arguments(text, call["args"]) if isinstance(call["args"], dict) else text
    return {**call, "id": given["id"], "name": function["name"], "args": arguments}


def _blocks(
    content: list[Any],
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    pairs: Sequence[_Pair],
) -> list[Any]:
    """The blocks of an edited message; those of its calls as the calls of the window."""
    blocks = _kept_blocks(list[Any](content), before)
    made: Any = after["content"]
    if isinstance(made, str):
        made = [{"type": "text", "text": made}] if made else []
    found: list[Any] = []
    for block in made or ():
        place = next((at for at, one in enumerate(before["content"]) if one == block), None)
        found.append(block if place is None else blocks[place])
    left = list(pairs)
    for block in content:
        if _kind(block) not in _CALLS or "tool_calls" not in before:
            continue
        named: dict[str, Any] = dict(block)
        at = next((at for at, (call, _) in enumerate(left) if call["id"] == named.get("id")), None)
        if at is not None:
            call, given = left.pop(at)
            if given is None:
                continue
            said = _call(call, given)
            named |= {"id": said["id"], "name": said["name"]}
            if isinstance(said["args"], dict):
                named["input" if named["type"] == "tool_use" else "args"] = said["args"]
        found.append(named)
    return found


def _arguments(text: object, before: dict[str, Any]) -> dict[str, Any]:
    found = _parsed(text)
    return before if found is None else found


def _parsed(text: object) -> dict[str, Any] | None:
    if not isinstance(text, str):
        return None
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def message_of(chat: Mapping[str, Any]) -> BaseMessage:
    """The message that a chat message (dialect ``openai``) says."""
    content: Any = chat.get("content") or ""
    role = chat.get("role")
    named: dict[str, Any] = {"name": chat["name"]} if chat.get("name") else {}
    if role == "tool":
        return ToolMessage(content, tool_call_id=chat["tool_call_id"], **named)
    if role in {"system", "developer"}:
        return SystemMessage(content, **named)
    if role != "assistant":
        return HumanMessage(content, **named)
    calls: list[dict[str, Any]] = []
    broken: list[dict[str, Any]] = []
    for call in chat.get("tool_calls") or ():
        function = call["function"]
        made = {"id": call["id"], "name": function["name"]}
        arguments = _parsed(function["arguments"])
        if arguments is None:
            broken.append({**made, "args": function["arguments"], "error": "no JSON object"})
        else:
            calls.append({**made, "args": arguments})
    return AIMessage(content, tool_calls=calls, invalid_tool_calls=broken, **named)
