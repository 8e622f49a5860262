"""`Window.as_kwargs`: the arguments of each provider's client call, and cache marks."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import satchel

SCHEMA = {"type": "object", "properties": {"path": {"type": "string"}}}


def window(dialect: str, messages: list[Any], model: str = "gpt-4o", **given: Any) -> Any:
    packer = satchel.Assembler(model, dialect=dialect, budget=20_000)
    return packer.assemble(messages, **given)


def test_responses() -> None:
    messages = [{"role": "user", "content": "Hello"}]
    tools = [{"type": "function", "name": "look_up", "parameters": SCHEMA}]
    found = window("openai-responses", messages, system="Be brief.", tools=tools).as_kwargs()
    assert found == {
        "model": "gpt-4o",
        "input": messages,
        "instructions": "Be brief.",
        "tools": tools,
    }
    assert found["input"][0] is messages[0]
    blocks = [{"type": "text", "text": "Be brief."}, {"type": "text", "text": "Be kind."}]
    joined = window("openai-responses", messages, system=blocks).as_kwargs()
    assert joined["instructions"] == "Be brief.\n\nBe kind."


def test_gemini() -> None:
    contents = [{"role": "user", "parts": [{"text": "Hello"}]}]
    tools = [{"functionDeclarations": [{"name": "look_up", "parameters": SCHEMA}]}]
    system = {"parts": [{"text": "Be brief."}]}
    made = window("gemini", contents, "gemini-2.5-pro", system=system, tools=tools)
    assert made.report.system_tokens > 0
    assert made.report.tools_tokens > 0
    assert made.as_kwargs() == {
        "model": "gemini-2.5-pro",
        "contents": contents,
        "config": {"system_instruction": system, "tools": tools},
    }
    bare = window("gemini", contents, "gemini-2.5-pro").as_kwargs()
    assert set(bare) == {"model", "contents"}


def bedrock_run() -> tuple[list[Any], list[Any]]:
    point = {"cachePoint": {"type": "default"}}
    messages = [
        {"role": "user", "content": [{"text": "Hello"}, point]},
        {"role": "assistant", "content": [{"text": "Hi"}]},
        {"role": "user", "content": [{"text": "Go on"}, point]},
    ]
    tools = [{"toolSpec": {"name": "look_up", "inputSchema": {"json": SCHEMA}}}, point]
    return messages, tools


def test_bedrock_marks_what_a_model_caches() -> None:
    messages, tools = bedrock_run()
    before = copy.deepcopy((messages, tools))
    model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
    found = window("bedrock", messages, model, system="Be brief.", tools=tools).as_kwargs()
    point = {"cachePoint": {"type": "default"}}
    assert found == {
        "modelId": model,
        "messages": [
            {"role": "user", "content": [{"text": "Hello"}]},
            messages[1],
            {"role": "user", "content": [{"text": "Go on"}, point]},
        ],
        "system": [{"text": "Be brief."}, point],
        "toolConfig": {"tools": tools[:1]},
    }
    assert found["messages"][1] is messages[1]
    assert (messages, tools) == before
    alone = window("bedrock", messages, model, tools=tools).as_kwargs()
    assert alone["toolConfig"]["tools"] == tools


def test_bedrock_marks_nothing_where_a_point_is_an_error() -> None:
    messages, tools = bedrock_run()
    found = window("bedrock", messages, "gpt-4o", system="Be brief.", tools=tools).as_kwargs()
    assert "cachePoint" not in json.dumps(found)


@pytest.mark.parametrize("given", [{}, {"system": "Be brief."}, {"tools": True}])
def test_marks_of_anthropic_never_pile_up(given: dict[str, Any]) -> None:
    mark = {"cache_control": {"type": "ephemeral"}}
    tools = [{"name": "look_up", "input_schema": SCHEMA, **mark}]
    if "tools" in given:
        given = {"tools": tools}
    result = {"type": "tool_result", "tool_use_id": "t", **mark}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": [{"type": "text", "text": "Hello", **mark}]},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t", "name": "look_up", "input": {}, **mark}],
        },
        {
            "role": "user",
            "content": [{**result, "content": [{"type": "text", "text": "42", **mark}]}],
        },
        {"role": "assistant", "content": "It is 42."},
        {"role": "user", "content": [{"type": "text", "text": "Thanks.", **mark}]},
    ]
    before = copy.deepcopy(messages)
    for _ in range(3):
        found = window("anthropic", messages, "claude-sonnet-4-5", **given).as_kwargs()
        marks = json.dumps(found).count("cache_control")
        assert marks == (2 if given else 1)
        assert found["messages"][3] is messages[3]
        # The next call gets back what this one sent.
        assert messages == before
        messages = found["messages"]
        before = copy.deepcopy(messages)
