"""Conversion through Python: objects in, dicts out, every direction, real transcripts."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import convert, errors, lint, read_transcripts
from satchel.converting import Converted, Loss
from satchel.testing import Dialect, histories

DIALECTS: tuple[Dialect, ...] = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
DIRECTIONS = list(itertools.permutations(DIALECTS, 2))

USER = {"role": "user", "content": "hi"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "a", "type": "function", "function": {"name": "look", "arguments": '{"n": 1}'}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "done"}
PNG = b"\x89PNG\r\n\x1a\n"


def broken_rules(messages: list[Any], target: str, **request: Any) -> list[str]:
    found = lint(messages, target, **request)
    return [str(violation) for violation in found if violation.severity == "error"]


def test_a_history_with_its_system_and_tools() -> None:
    tools = [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]
    messages = [
        {"role": "user", "content": "hi"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {"n": 2**80}}],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "no", "is_error": True}
            ],
        },
    ]
    found = convert(messages, "anthropic", "openai", system="Be brief.", tools=tools)
    assert found == Converted(
        messages=[
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "hi"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "a",
                        "type": "function",
                        "function": {"name": "look", "arguments": f'{{"n":{2**80}}}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "a", "content": "no"},
        ],
        system=None,
        tools=[
            {
                "type": "function",
                "function": {
                    "name": "look",
                    "description": "Looks.",
                    "parameters": {"type": "object"},
                },
            }
        ],
        losses=[Loss(2, "error_flag", "tool messages have no such flag")],
    )
    assert str(found.losses[0]) == "message 2: error_flag: tool messages have no such flag"
    assert pickle.loads(pickle.dumps(found)) == found
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(found, "messages", [])  # noqa: B010 - a checker would refuse the plain form
    back = convert(found.messages, "openai", "gemini")
    assert back.system == {"parts": [{"text": "Be brief."}]}
    assert back.messages[1]["parts"][0]["functionCall"]["args"] == {"n": 2**80}


def test_the_same_dialect_gives_the_same_objects() -> None:
    messages, system, tools = [USER, CALL], object(), [object()]
    found = convert(messages, "openai", "openai", system=system, tools=tools)
    assert all(new is old for new, old in zip(found.messages, messages, strict=True))
    assert found.messages is not messages
    assert found.system is system
    assert found.tools is tools
    assert found.losses == []


def test_bytes_go_in_and_out() -> None:
    image = {"image": {"format": "png", "source": {"bytes": PNG}}}
    messages: list[Any] = [
        {"role": "user", "content": [{"text": "Look:"}, image]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "a", "name": "shot", "input": {}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "a", "content": [image]}}],
        },
    ]
    found = convert(messages, "bedrock", "anthropic")
    assert found.losses == []
    assert found.messages[0]["content"][1]["source"]["data"] == "iVBORw0KGgo="
    assert convert(found.messages, "anthropic", "bedrock").messages == messages
    part = {"inline_data": {"mime_type": "image/png", "data": PNG}}
    found = convert([{"role": "user", "parts": [part]}], "gemini", "bedrock")
    assert found.messages == [{"role": "user", "content": [image]}]


def test_base64_that_is_none_stays_text() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "??"}}
    found = convert([{"role": "user", "parts": [image]}], "gemini", "bedrock")
    assert found.messages[0]["content"][0]["image"]["source"] == {"bytes": "??"}


def test_objects_with_fields() -> None:
    @dataclasses.dataclass
    class Message:
        role: str
        content: str

    found = convert((Message(role, "hi") for role in ("system", "user")), "openai", "bedrock")
    assert found.system == [{"text": "hi"}]
    assert found.messages == [{"role": "user", "content": [{"text": "hi"}]}]


def test_half_a_surrogate_pair_is_listed() -> None:
    found = convert([{"role": "user", "content": "a\ud83d"}], "openai", "anthropic")
    assert found.messages[0]["content"] == "a\ufffd"
    assert [loss.kind for loss in found.losses] == ["character"]
    found = convert([{"role": "user", "content": "\ud83d\ude00"}], "openai", "anthropic")
    assert (found.messages[0]["content"], found.losses) == ("\U0001f600", [])


def test_numbers_without_json_form() -> None:
    block = {
        "type": "tool_use",
        "id": "a",
        "name": "look",
        "input": {"n": float("nan"), "m": 1e300},
    }
    result = {"type": "tool_result", "tool_use_id": "a"}
    messages = [
        USER,
        {"role": "assistant", "content": [block]},
        {"role": "user", "content": [result]},
    ]
    found = convert(messages, "anthropic", "bedrock")
    assert found.messages[1]["content"][0]["toolUse"]["input"] == {"n": "NaN", "m": 1e300}
    assert [(loss.index, loss.kind) for loss in found.losses] == [(1, "character")]


def test_empty_and_blank_messages_go_and_roles_alternate() -> None:
    texts = ["hello", "", "  \n", "ok", "next"]
    roles = ["user", "assistant", "user", "assistant", "user"]
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=True)]
    found = convert(messages, "openai", "anthropic")
    assert [message["content"] for message in found.messages] == ["hello", "ok", "next"]
    assert {loss.index for loss in found.losses} == {1, 2}


@pytest.mark.parametrize(
    ("messages", "source", "target", "code", "index"),
    [
        ([USER, {"role": "critic", "content": "x"}], "openai", "gemini", "invalid_message", 1),
        ([{"role": "tool", "content": "x"}], "anthropic", "gemini", "dialect_changed", 0),
        ([USER], "klingon", "gemini", "unknown_dialect", None),
        ([USER], "openai", "klingon", "unknown_dialect", None),
        ("hi", "openai", "gemini", "invalid_value", None),
        (USER, "openai", "openai", "invalid_value", None),
    ],
)
def test_errors(messages: Any, source: str, target: str, code: str, index: int | None) -> None:
    with pytest.raises(errors.InputError) as caught:
        convert(messages, source, target)
    assert (caught.value.code, caught.value.index) == (code, index)


def test_a_cycle_is_an_error() -> None:
    loop: list[Any] = []
    loop.append(loop)
    messages = [{"role": "user", "content": [{"type": "image", "source": loop}]}]
    with pytest.raises(errors.InputError) as caught:
        convert(messages, "anthropic", "openai")
    assert (caught.value.code, caught.value.index) == ("too_deep", 0)


@given(st.data(), st.sampled_from(DIRECTIONS))
def test_valid_histories(data: st.DataObject, direction: tuple[Dialect, Dialect]) -> None:
    source, target = direction
    messages: list[Any] = data.draw(histories(source))
    before = copy.deepcopy(messages)
    found = convert(messages, source, target)
    assert messages == before
    assert broken_rules(found.messages, target, system=found.system) == []
    assert found == convert(messages, source, target)


@given(st.data(), st.sampled_from(DIRECTIONS))
def test_damaged_histories(data: st.DataObject, direction: tuple[Dialect, Dialect]) -> None:
    source, target = direction
    messages: list[Any] = data.draw(histories(source, damage=True))
    try:
        found = convert(messages, source, target)
    except errors.InputError as error:
        assert error.index is not None  # noqa: PT017 - a valid history raises nothing
        return
    assert broken_rules(found.messages, target, system=found.system) == []


def shared_files() -> list[Path]:
    root = os.environ.get("SATCHEL_SHARED")
    roots = [Path(root)] if root else [up / "shared" for up in Path(__file__).resolve().parents]
    folders = [root / "data" / "dev" for root in roots]
    return [path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())]


def test_real_transcripts() -> None:
    folders = [path for path in shared_files() if path.is_dir()]
    if not folders:
        pytest.skip("no shared data: recorded transcripts are not part of the repository")
    count = 0
    for transcript in read_transcripts(folders):
        for target in DIALECTS:
            if target == transcript.dialect:
                continue
            found = convert(
                transcript.messages,
                transcript.dialect,
                target,
                system=transcript.system,
                tools=transcript.tools,
            )
            place = (transcript.source, transcript.index, target)
            broken = broken_rules(found.messages, target, system=found.system, tools=found.tools)
            assert broken == [], place
            # Bytes apart, it can be sent.
            json.dumps(found.messages, default=lambda value: value.decode("latin-1"))
            count += 1
    assert count > 1000
