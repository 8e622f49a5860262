"""Repair of what is wrong inside a message, and of what JSON cannot say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import pytest

import satchel
from satchel.testing import Dialect

if TYPE_CHECKING:
    from collections.abc import Sequence

Message = dict[str, Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def calls(*functions: Message) -> Message:
    """Chat calls that share one id."""
    listed = [{"id": "c", "type": "function", "function": function} for function in functions]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def errors(messages: Sequence[Any], dialect: str) -> list[str]:
    return [one.code for one in satchel.lint(messages, dialect) if one.severity == "error"]


LOOK: Message = {"name": "look", "arguments": "{}"}
FOUND: Message = {"role": "tool", "tool_call_id": "c", "content": "found"}
CUT: Message = {"type": "tool_use", "id": "a", "name": "look", "input": '{"x": '}
DONE: Message = {"type": "tool_result", "tool_use_id": "a", "content": "done"}

SPOILT: list[tuple[Dialect, str, list[Message]]] = [
    (
        "openai",
        "empty_calls",
        [user("hi"), {"role": "assistant", "content": "a", "tool_calls": []}],
    ),
    ("openai", "missing_name", [user("hi"), calls({"arguments": "{}"}), FOUND]),
    ("openai", "invalid_name", [user("hi"), calls({"name": "a b", "arguments": ""}), FOUND]),
    ("openai", "repeated_id", [user("hi"), calls(LOOK, LOOK), FOUND, FOUND]),
    ("openai", "missing_data", [{"role": "user", "content": [{"type": "image_url"}]}, user("hi")]),
    (
        "openai",
        "not_json",
        [user("half \ud800"), {"role": "user", "content": "x", "at": float("nan")}],
    ),
    (
        "anthropic",
        "input_not_object",
        [
            user("hi"),
            {"role": "assistant", "content": [CUT]},
            {"role": "user", "content": [DONE]},
        ],
    ),
    ("anthropic", "missing_data", [{"role": "user", "content": [{"type": "image"}]}, user("hi")]),
    ("gemini", "ge7_empty_part", [{"role": "user", "parts": [{"text": "hi"}, {}]}]),
    ("bedrock", "missing_data", [{"role": "user", "content": [{"text": "hi"}, {}]}]),
]


@pytest.mark.parametrize(("dialect", "code", "messages"), SPOILT)
@pytest.mark.parametrize("mode", ["synthesize", "drop", "flatten"])
def test_the_inside_of_a_message(
    dialect: Dialect, code: str, messages: list[Message], mode: Any
) -> None:
    assert code in errors(messages, dialect)
    repaired = satchel.repair(messages, dialect, mode=mode)
    assert errors(repaired, dialect) == []
    window = satchel.Assembler("gpt-4o", dialect=dialect).assemble(messages)
    assert errors(window.messages, dialect) == []
    strict = satchel.Assembler("gpt-4o", dialect=dialect, on_damage="raise")
    with pytest.raises(satchel.InputError) as caught:
        strict.assemble(messages)
    assert caught.value.code == "invalid_message"
    assert code in str(caught.value)


def test_what_json_cannot_say() -> None:
    messages: list[Message] = [
        {"role": "user", "content": "half \ud83d", "meta": [b"raw", float("inf"), {"k\udfff": 1}]},
        user("whole"),
    ]
    assert [(one.code, one.index) for one in satchel.lint(messages, "openai")] == [("not_json", 0)]
    repaired = satchel.repair(messages, "openai")
    meta = ["cmF3", None, {"k\ufffd": 1}]
    assert repaired[0] == {"role": "user", "content": "half \ufffd", "meta": meta}
    assert repaired[1] is messages[1]
    image = {"image": {"format": "png", "source": {"bytes": b"raw"}}}
    assert errors([{"role": "user", "content": [image]}], "bedrock") == []


def test_arguments_of_gemini_as_text() -> None:
    call = {"functionCall": {"name": "f", "args": '{"a": 1}'}}
    answer = {"functionResponse": {"name": "f", "response": "done"}}
    messages: list[Message] = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [call]},
        {"role": "user", "parts": [answer]},
    ]
    _, asked, told = satchel.repair(messages, "gemini")
    assert asked["parts"][0]["functionCall"]["args"] == {"a": 1}
    assert told["parts"][0]["functionResponse"]["response"] == {"output": "done"}


def test_labels_do_not_carry_ids_of_any_length() -> None:
    late = {"role": "tool", "tool_call_id": "x" * 1_000_000, "content": "row"}
    assert len(satchel.repair([user("hi"), late], "openai")[1]["content"]) < 300


def test_nothing_to_send_yet() -> None:
    for dialect in get_args(Dialect):
        (found,) = satchel.lint([], dialect)
        assert (found.code, found.severity, found.index) == ("no_messages", "warning", None)
        assert satchel.repair([], dialect) == []
