"""What a window says it costs is what counting its request gives, in every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel.testing import histories

if TYPE_CHECKING:
    from satchel.testing import Dialect

DIALECTS: tuple[Dialect, ...] = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
MODELS = {
    "openai": ("gpt-4o", "gpt-4", "gpt-5-mini", "deepseek-chat"),
    "openai-responses": ("gpt-4.1", "gpt-5-mini", "o3"),
    "anthropic": ("claude-sonnet-4-5", "claude-opus-5-5"),
    "gemini": ("gemini-2.5-pro", "gemini-3.1-pro"),
    "bedrock": ("anthropic.claude-sonnet-4-5-20250929-v1:0", "gpt-4o"),
}
SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where to look."},
        "mode": {"type": "string", "enum": ["fast", "deep"]},
    },
    "required": ["path"],
}
TOOLS: dict[str, list[Any]] = {
    "openai": [
        {"type": "function", "function": {"name": "look", "parameters": SCHEMA}},
    ],
    "openai-responses": [{"type": "function", "name": "look", "parameters": SCHEMA}],
    "anthropic": [{"name": "look", "input_schema": SCHEMA}],
    "gemini": [{"functionDeclarations": [{"name": "look", "parameters": SCHEMA}]}],
    "bedrock": [{"toolSpec": {"name": "look", "inputSchema": {"json": SCHEMA}}}],
}
SYSTEMS: dict[str, list[Any]] = {
    "openai": ["Be brief."],
    "openai-responses": ["Be brief."],
    "anthropic": ["Be brief.", [{"type": "text", "text": "Be brief."}]],
    "gemini": ["Be brief.", {"parts": [{"text": "Be brief."}, {"text": "Be kind."}]}],
    "bedrock": [[{"text": "Be brief."}]],
}


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_tokens_are_those_of_the_request(dialect: Dialect, data: st.DataObject) -> None:
    messages = data.draw(histories(dialect, max_steps=14))
    if data.draw(st.booleans()):  # the newest step's calls may be open
        messages = messages[: data.draw(st.integers(0, len(messages)))]
    system = data.draw(st.sampled_from([None, *SYSTEMS[dialect]]))
    tools = data.draw(st.sampled_from([None, TOOLS[dialect]]))
    model = data.draw(st.sampled_from(MODELS[dialect]))
    budget = data.draw(st.integers(60, 5_000))
    packer = satchel.Assembler(model, dialect=dialect, budget=budget)
    refused: list[satchel.BudgetError] = []
    try:
        packer.assemble(messages, system=system, tools=tools, open_calls="synthesize")
    except satchel.BudgetError as error:
        refused.append(error)
    if refused:
        assert (refused[0].code, refused[0].limit) == ("over_budget", budget)
        return
    window = packer.assemble(messages, system=system, tools=tools, open_calls="synthesize")
    counted = packer.counter.count_messages(
        window.messages, system=window.system, tools=window.tools, dialect=dialect
    )
    assert (window.tokens, window.tokens_upper) == (counted.total, counted.upper)
    assert window.tokens_upper <= budget
    assert window.report.system_tokens == counted.system
    assert window.report.tools_tokens == counted.tools
    found = satchel.lint(window.messages, dialect, system=system, tools=tools, model=model)
    # A tool of the history that is not declared is a warning.
    wrong = [str(one) for one in found if one.severity == "error"]
    assert wrong == [] or (dialect == "bedrock" and tools is None)
