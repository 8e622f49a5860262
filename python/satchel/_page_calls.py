"""Calls of the page-in tool and their results, in the form of each dialect.

Calls are read from what the clients give (their objects, or dicts), by their keys; results are
plain dicts, ready to be appended and sent.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from satchel._page_reading import PAGE_TOOL_NAME
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["Answer", "ToolCall", "calls_in", "parsed", "results_of"]


_DEPTH: Final = 4
"""Lists of lists of pieces that are looked into."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as it stands in a reply.

    Attributes:
        id: its id; None where the dialect may leave it out.
        name: the tool's name.
        arguments: the arguments as they came: an object or its JSON.
        is_legacy: whether it is the single ``function_call`` of an old reply.
    """

    id: object
    name: object
    arguments: object
    is_legacy: bool = False

    @property
    def is_page_call(self) -> bool:
        """Whether it calls the page-in tool."""
        return self.name == PAGE_TOOL_NAME


@dataclass(frozen=True, slots=True)
class Answer:
    """What a call gets: a text, and whether it says that the call failed."""

    text: str
    is_error: bool = False


def calls_in(reply: object, dialect: str, depth: int = 0) -> list[ToolCall] | None:
    """Every call in a reply of ``dialect``, or in a list of its pieces; None if it is none.

    A reply is an assistant message, an item, a block or a call, as a dict or a client's object.
    """
    if isinstance(reply, (list, tuple)):
        # A list may stand in itself.
        if depth == _DEPTH:
            return None
        found: list[ToolCall] = []
        for piece in cast("Sequence[object]", reply):
            calls = calls_in(piece, dialect, depth + 1)
            if calls is None:
                return None
            found += calls
        return found
    if isinstance(reply, (str, bytes)) or reply is None:
        return None
    read = {
        "openai": _chat,
        "openai-responses": _item,
        "anthropic": _block,
        "gemini": _part,
        "bedrock": _tool_use,
    }
    try:
        calls_of = read[dialect](reply)
        return None if calls_of is None else list(calls_of)
    except RecursionError:  # it holds itself
        return None


def results_of(answered: Sequence[tuple[ToolCall, Answer]], dialect: str) -> list[Any]:
    """The results as messages of ``dialect``: one each, or all in one where the dialect asks."""
    if dialect == "openai":
        return [_chat_result(call, answer.text) for call, answer in answered]
    if dialect == "openai-responses":
        return [
            {"type": "function_call_output", "call_id": call.id, "output": answer.text}
            for call, answer in answered
        ]
    if not answered:
        return []
    if dialect == "anthropic":
        blocks = [_result_block(call, answer) for call, answer in answered]
        return [{"role": "user", "content": blocks}]
    if dialect == "gemini":
        return [{"role": "user", "parts": [_response(call, answer) for call, answer in answered]}]
    return [{"role": "user", "content": [_tool_result(call, answer) for call, answer in answered]}]


def _get(holder: object, *names: str) -> Any:  # noqa: ANN401 - a provider's own form
    """A field by the first of its names that there is, of a dict or an object."""
    for name in names:
        if isinstance(holder, Mapping):
            value = cast("Mapping[str, Any]", holder).get(name)
        else:
            value = getattr(holder, name, None)
        if value is not None:
            return value
    return None


def _pieces(holder: object, name: str) -> Sequence[object] | None:
    value = _get(holder, name)
    return cast("Sequence[object]", value) if isinstance(value, (list, tuple)) else None


def _with_id(call: ToolCall) -> ToolCall:
    """The call, whose result must name it.

    Raises:
        InputError: ``invalid_value`` if it has no id, or one longer than any provider gives.
    """
    if call.is_page_call and not (isinstance(call.id, str) and call.id):
        message = "a call needs an id, or no result can be told to be its own"
        raise InputError(message, code="invalid_value")
    if call.is_page_call and isinstance(call.id, str) and len(call.id) > _MOST_ID:
        message = f"the id of a call has {len(call.id)} characters, at most {_MOST_ID}"
        raise InputError(message, code="invalid_value", value=len(call.id), limit=_MOST_ID)
    return call


_MOST_ID: Final = 1_024
"""Characters of an id that a result repeats; providers give some thirty."""


def _chat(reply: object) -> Iterator[ToolCall] | None:
    function = _get(reply, "function")
    if function is not None:
        calls: Sequence[object] = [reply]
    elif _get(reply, "role") is None and _get(reply, "type") is None:
        return None
    else:
        calls = [] if _get(reply, "type") == "custom" else _pieces(reply, "tool_calls") or []
    legacy = _get(reply, "function_call")
    return _chat_calls(calls, legacy)


def _chat_calls(calls: Sequence[object], legacy: object) -> Iterator[ToolCall]:
    for call in calls:
        function = _get(call, "function")
        if function is not None:
            name, arguments = _get(function, "name"), _get(function, "arguments")
            yield _with_id(ToolCall(_get(call, "id"), name, arguments))
    if legacy is not None:
        yield ToolCall(None, _get(legacy, "name"), _get(legacy, "arguments"), is_legacy=True)


def _chat_result(call: ToolCall, text: str) -> dict[str, Any]:
    if call.is_legacy:
        return {"role": "function", "name": PAGE_TOOL_NAME, "content": text}
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def _item(reply: object) -> Iterator[ToolCall] | None:
    output = _pieces(reply, "output")
    if output is not None and _get(reply, "object") == "response":
        return (call for item in output for call in _item(item) or ())
    kind = _get(reply, "type")
    if kind is None and _get(reply, "role") is None:
        return None
    if kind != "function_call":
        return iter(())
    call = ToolCall(_get(reply, "call_id"), _get(reply, "name"), _get(reply, "arguments"))
    return iter([_with_id(call)])


def _block(reply: object) -> Iterator[ToolCall] | None:
    kind = _get(reply, "type")
    if kind == "tool_use":
        call = ToolCall(_get(reply, "id"), _get(reply, "name"), _get(reply, "input"))
        return iter([_with_id(call)])
    if _get(reply, "role") is not None:
        return (call for block in _pieces(reply, "content") or () for call in _block(block) or ())
    return iter(()) if kind is not None else None


def _result_block(call: ToolCall, answer: Answer) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": answer.text}
    return {**block, "is_error": True} if answer.is_error else block


def _part(reply: object) -> Iterator[ToolCall] | None:
    if _get(reply, "role") is not None or _pieces(reply, "parts") is not None:
        return (call for part in _pieces(reply, "parts") or () for call in _part(part) or ())
    call = _get(reply, "functionCall", "function_call")
    if call is None and isinstance(_get(reply, "name"), str):
        call = reply
    if call is None:
        keys = ("text", "thought", "inlineData", "inline_data", "fileData", "file_data")
        return iter(()) if any(_get(reply, key) is not None for key in keys) else None
    return iter([ToolCall(_get(call, "id"), _get(call, "name"), _get(call, "args"))])


def _response(call: ToolCall, answer: Answer) -> dict[str, Any]:
    response: dict[str, Any] = {} if call.id is None else {"id": call.id}
    key = "error" if answer.is_error else "output"
    return {"functionResponse": {**response, "name": call.name, "response": {key: answer.text}}}


def _tool_use(reply: object) -> Iterator[ToolCall] | None:
    if _get(reply, "role") is not None:
        blocks = _pieces(reply, "content") or ()
        return (call for block in blocks for call in _tool_use(block) or ())
    use = _get(reply, "toolUse")
    if use is None and _get(reply, "toolUseId") is not None:
        use = reply
    if use is None:
        return iter(()) if isinstance(reply, Mapping) and reply else None
    call = ToolCall(_get(use, "toolUseId"), _get(use, "name"), _get(use, "input"))
    return iter([_with_id(call)])


def _tool_result(call: ToolCall, answer: Answer) -> dict[str, Any]:
    result = {"toolUseId": call.id, "content": [{"text": answer.text}]}
    return {"toolResult": {**result, "status": "error"} if answer.is_error else result}


def parsed(arguments: object) -> dict[str, Any] | None:
    """The arguments as an object; None for anything else. Never fails on what a model wrote."""
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except (ValueError, RecursionError):
            return None
    if not isinstance(arguments, Mapping):
        return None
    return dict(cast("Mapping[str, Any]", arguments))
