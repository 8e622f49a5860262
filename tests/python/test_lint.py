"""Lint through Python: rows become violations, and nothing that a list can hold makes it raise."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any, cast

import pytest
from google.genai import types as genai
from hypothesis import given
from hypothesis import strategies as st

from recorded import exchanges
from satchel import errors
from satchel.linting import RULES, Rule, Violation, lint

if TYPE_CHECKING:
    from collections.abc import Sequence

USER = {"role": "user", "content": "hi"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "a", "function": {"name": "look", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "a", "content": "done"}


def test_a_valid_history_has_no_findings() -> None:
    assert lint([USER, CALL, RESULT, {"role": "assistant", "content": "ok"}], "openai") == []


def test_a_finding() -> None:
    (found,) = lint([USER, CALL], "openai")
    assert found == Violation(
        code="oc1_unanswered_call",
        severity="error",
        index=1,
        message="call 1 of 1 has no tool message right after",
        provider_error="must be followed by tool messages responding to each",
    )
    assert str(found) == f"error oc1_unanswered_call: message 1: {found.message}"
    assert pickle.loads(pickle.dumps(found)) == found


def test_the_catalogue_names_every_code() -> None:
    by_code = {rule.code: rule for rule in RULES}
    assert len(by_code) == len(RULES)
    assert by_code["an3_duplicate_result"] == Rule(
        "an3_duplicate_result",
        "AN3",
        "error",
        "each tool_use has one result",
        "each tool_use must have a single result",
    )
    assert {rule.id for rule in RULES} >= {"OC1", "OC2", "OC4", "AN1", "AN2", "AN3", "AN10", "AN11"}


def test_system_and_tools() -> None:
    (found,) = lint([USER], "anthropic", system=" ")
    assert (found.code, found.index) == ("an11_blank_text", None)
    (found,) = lint([USER, CALL, RESULT], "openai", tools=[{"name": "other"}])
    assert (found.code, found.severity) == ("undeclared_tool", "warning")


@pytest.mark.parametrize("messages", [None, 5, "text", {"role": "user"}, object()])
def test_no_list_at_all(messages: Any) -> None:
    (found,) = lint(messages, "openai")
    assert (found.code, found.index) == ("invalid_message", None)


def test_any_iterable_of_messages() -> None:
    assert lint((USER, CALL, RESULT), "openai") == lint(iter([USER, CALL, RESULT]), "openai") == []


def test_a_broken_message_is_a_finding_without_its_content() -> None:
    loop: list[Any] = []
    loop.append(loop)
    messages = [
        {"role": "secret"},
        ["secret"],
        {"role": "user", "content": [{"type": "new", "loop": loop}]},
        {"role": "user", "content": [{"type": "new", 1: "secret"}]},
        {"role": "user", "content": b"secret"},
    ]
    found = lint(messages, "openai")
    assert [violation.code for violation in found] == [
        "invalid_message", "invalid_message", "too_deep", "invalid_message", "invalid_message",
        "not_json",
    ]  # fmt: skip
    assert not any("secret" in violation.message for violation in found)


@pytest.mark.parametrize("previous", [5, "text", {"role": "user"}])
def test_what_is_no_request_before(previous: Any) -> None:
    with pytest.raises(errors.InputError) as caught:
        lint([USER], "anthropic", previous=previous)
    assert caught.value.code == "invalid_value"


def test_unknown_dialect() -> None:
    with pytest.raises(errors.InputError) as caught:
        lint([USER], "klingon")
    assert caught.value.code == "unknown_dialect"


keys = st.sampled_from(
    [
        "role", "content", "type", "text", "tool_calls", "function", "arguments", "id", "name",
        "tool_call_id", "tool_use_id", "input", "is_error",
    ],
)  # fmt: skip
words = st.sampled_from(["user", "assistant", "tool", "text", "tool_use", "tool_result", "a", ""])
leaves = (
    st.none() | st.booleans() | st.integers() | st.floats() | words | st.text(max_size=4)
    | st.binary(max_size=2) | st.complex_numbers() | st.sampled_from(["\ud800", object(), print])
)  # fmt: skip
things = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(keys | st.integers() | st.none(), inner, max_size=5)
    ),
    max_leaves=25,
)


@given(
    things | st.lists(things, max_size=5), st.sampled_from(["openai", "anthropic"]), things, things
)
def test_never_raises(messages: Any, dialect: str, system: Any, tools: Any) -> None:
    for found in lint(messages, dialect, system=system, tools=tools):
        assert isinstance(found, Violation)


@pytest.mark.parametrize(
    ("dialect", "folder"), [("openai", "openai_chat"), ("anthropic", "anthropic_messages")]
)
def test_requests_that_the_provider_accepted(dialect: str, folder: str) -> None:
    accepted = [exchange for exchange in exchanges(folder) if exchange.status == 200]
    for exchange in accepted:
        request = exchange.request
        found = lint(
            request["messages"], dialect, system=request.get("system"), tools=request.get("tools")
        )
        errors_found = {violation.code for violation in found if violation.severity == "error"}
        # Another vendor's server takes an empty list of calls; the dialect's own does not.
        taken = {"empty_calls"} if "mistral" in exchange.file else set[str]()
        assert errors_found <= taken, exchange.file
    assert len(accepted) > 10


PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}
GEMINI: list[dict[str, Any]] = [
    {"role": "user", "parts": [{"text": "hi"}]},
    {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "look", "response": {}}}]},
]
CLAUDE: list[dict[str, Any]] = [
    USER,
    {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "a", "name": "look", "input": {}}],
    },
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "done"}]},
]
CONVERSE: list[dict[str, Any]] = [
    {"role": "user", "content": [{"text": "hi"}]},
    {
        "role": "assistant",
        "content": [{"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}],
    },
    {"role": "user", "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "x"}]}}]},
]
ITEMS: list[dict[str, Any]] = [
    USER,
    {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": "done"},
]
CHAT = [USER, CALL, RESULT]
DECLARED: list[tuple[str, list[Any], Any]] = [
    ("openai", CHAT, [{"type": "function", "function": {"name": "look"}}]),
    ("openai", CHAT, [{"name": "look"}]),
    ("openai", CHAT, {"type": "function", "function": {"name": "look"}}),
    ("openai-responses", ITEMS, [{"type": "function", "name": "look"}]),
    (
        "openai-responses",
        ITEMS,
        [{"type": "namespace", "name": "files", "tools": [{"type": "function", "name": "look"}]}],
    ),
    ("anthropic", CLAUDE, [{"name": "look", "input_schema": PARAMETERS}]),
    ("gemini", GEMINI, [{"functionDeclarations": [{"name": "look"}]}]),
    ("gemini", GEMINI, [{"googleSearch": {}}, {"function_declarations": [{"name": "look"}]}]),
    ("gemini", GEMINI, {"functionDeclarations": [{"name": "other"}, {"name": "look"}]}),
    (
        "gemini",
        GEMINI,
        [genai.Tool(function_declarations=[genai.FunctionDeclaration(name="look")])],
    ),
    ("bedrock", CONVERSE, [{"toolSpec": {"name": "look", "inputSchema": {"json": PARAMETERS}}}]),
    ("bedrock", CONVERSE, {"tools": [{"toolSpec": {"name": "look"}}]}),
]


@pytest.mark.parametrize(("dialect", "messages", "tools"), DECLARED)
def test_declared_in_every_form(dialect: str, messages: list[Any], tools: Any) -> None:
    assert lint(messages, dialect, tools=tools) == []
    [found] = lint(messages, dialect, tools=renamed(tools))
    assert (found.code, found.severity, found.index) == ("undeclared_tool", "warning", 1)


def renamed(value: Any) -> Any:
    """The definitions with another name in place of ``look``."""
    if isinstance(value, genai.Tool):
        return genai.Tool(function_declarations=[genai.FunctionDeclaration(name="find")])
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: renamed(inner) for key, inner in fields.items()}
    if isinstance(value, (list, tuple)):
        return [renamed(inner) for inner in cast("Sequence[Any]", value)]
    return "find" if value == "look" else value
