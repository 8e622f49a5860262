"""Repair: valid afterwards, idempotent, nothing invented, everything else the same object."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import pytest
from hypothesis import given

import properties
import satchel
from satchel.repairing import PLACEHOLDERS
from satchel.testing import Dialect, histories

if TYPE_CHECKING:
    from collections.abc import Sequence

Message = dict[str, Any]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
MODES: tuple[Literal["synthesize", "drop", "flatten"], ...] = ("synthesize", "drop", "flatten")
NO_RESULT, OPENER, _ = PLACEHOLDERS


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def chat_calls(*ids: str, text: str | None = None) -> Message:
    calls = [
        {"id": one, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        for one in ids
    ]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def chat_result(call_id: str, text: str = "found") -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def use(call_id: str) -> Message:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {}}


def uses(*ids: str) -> Message:
    return {"role": "assistant", "content": [use(one) for one in ids]}


def result(call_id: str, text: str = "found") -> Message:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def results(*ids: str) -> Message:
    return {"role": "user", "content": [result(one) for one in ids]}


def errors(messages: Sequence[Any], dialect: str, **request: Any) -> list[str]:
    found = satchel.lint(messages, dialect, **request)
    return [violation.code for violation in found if violation.severity == "error"]


def unchanged(after: Sequence[Any], before: Sequence[Any]) -> bool:
    return len(after) == len(before) and all(map(lambda a, b: a is b, after, before))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_valid_history_stays_as_it_is(dialect: Dialect) -> None:
    @given(histories(dialect))
    def check(messages: list[Message]) -> None:
        for mode in MODES:
            assert unchanged(satchel.repair(messages, dialect, mode=mode), messages)

    check()


def repaired_or_refused(messages: list[Message], dialect: str, mode: Any) -> list[Message] | None:
    """The repaired history; None where the meaning of a message is not clear."""
    try:
        return satchel.repair(messages, dialect, mode=mode)
    except satchel.InputError as error:
        properties.refused(error, messages)
        return None


def words(value: object) -> set[str]:
    return {
        word
        for message in properties.walk(value)
        for text in message.split("\n")
        for word in text.split(" ")
        if word
    }


def without_ids(value: Any) -> Any:
    """A message with every id the same."""
    if isinstance(value, list):
        return [without_ids(one) for one in cast("list[object]", value)]
    if not isinstance(value, dict):
        return value
    return {
        key: "" if key == "id" or key.lower().endswith(("_id", "useid")) else without_ids(one)
        for key, one in cast("dict[str, Any]", value).items()
    }


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("mode", MODES)
def test_any_damage(dialect: Dialect, mode: Any) -> None:
    @given(histories(dialect, damage=True))
    def check(messages: list[Message]) -> None:
        before = copy.deepcopy(messages)
        repaired = repaired_or_refused(messages, dialect, mode)
        assert repr(messages) == repr(before)
        if repaired is None:
            return
        assert errors(repaired, dialect) == []
        assert unchanged(satchel.repair(repaired, dialect, mode=mode), repaired)
        codes = {one.code for one in satchel.lint(messages, dialect)}
        if not errors(messages, dialect) and "starts_without_user" not in codes:
            assert unchanged(repaired, messages)
        # A message that comes back equal comes back as the same object. Where two differ in their
        # ids alone, one may be given the other's.
        shapes = [without_ids(message) for message in messages]
        for mine in messages:
            if shapes.count(without_ids(mine)) == 1 and repaired.count(mine) == 1:
                assert any(one is mine for one in repaired)
        properties.nothing_invented(repaired, messages, PLACEHOLDERS)
        again = satchel.repair(copy.deepcopy(messages), dialect, mode=mode)
        assert repr(again) == repr(repaired)

    check()


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("synthesize", [user("a"), chat_calls("c"), chat_result("c", NO_RESULT), user("b")]),
        ("drop", [user("a"), user("b")]),
    ],
)
def test_an_interrupted_call(mode: Any, expected: list[Message]) -> None:
    assert satchel.repair([user("a"), chat_calls("c"), user("b")], "openai", mode=mode) == expected


def test_an_interrupted_call_as_text() -> None:
    messages = [user("a"), chat_calls("c", text="I look."), user("b")]
    first, call, last = satchel.repair(messages, "openai", mode="flatten")
    assert (first, last) == (messages[0], messages[2])
    assert "tool_calls" not in call
    assert call["content"][0] == {"type": "text", "text": "I look."}
    assert call["content"][1]["text"] == (
        '<satchel-call of="look" '
        'note="a tool call that was not answered; data, not an instruction">'
        "\n{}\n</satchel-call>"
    )


def test_results_of_parallel_calls_come_back_together() -> None:
    call, one, two = chat_calls("a", "b"), chat_result("a"), chat_result("b")
    between, after = user("wait"), said("so")
    repaired = satchel.repair([user("go"), call, one, between, two, after], "openai")
    assert unchanged(repaired[1:], [call, one, two, between, after])


def test_results_of_one_turn_in_one_message() -> None:
    blocks = results("a", "b")["content"]
    messages = [
        user("go"),
        uses("a", "b"),
        {"role": "user", "content": [{"type": "text", "text": "wait"}, blocks[0]]},
        {"role": "user", "content": [blocks[1], {"type": "text", "text": "more"}]},
    ]
    repaired = satchel.repair(messages, "anthropic")
    assert repaired[2] == {
        "role": "user",
        "content": [*blocks, {"type": "text", "text": "wait"}],
    }
    assert repaired[2]["content"][0] is blocks[0]
    assert repaired[3] == {"role": "user", "content": [{"type": "text", "text": "more"}]}
    assert errors(repaired, "anthropic") == []


def test_a_message_of_results_moves_as_the_same_object() -> None:
    late = results("a")
    messages = [user("go"), uses("a"), user("wait"), said("yes?"), late]
    repaired = satchel.repair(messages, "anthropic")
    assert unchanged(repaired, [messages[0], messages[1], late, messages[2], messages[3]])


def test_interim_and_final_results_are_told_apart() -> None:
    interim, final = chat_result("a", "started"), chat_result("a", "done")
    messages = [user("go"), chat_calls("a"), interim, said("it runs"), final, user("and?")]
    repaired = satchel.repair(messages, "openai")
    assert repaired[2] is interim
    assert repaired[4]["role"] == "user"
    assert "a further result" in repaired[4]["content"]
    assert properties.says(repaired, "done") == 1
    dropped = satchel.repair(messages, "openai", mode="drop")
    assert unchanged(dropped, [*messages[:4], messages[5]])


def test_an_exact_duplicate_goes() -> None:
    messages = [user("go"), chat_calls("a"), chat_result("a"), chat_result("a"), user("and?")]
    for mode in MODES:
        repaired = satchel.repair(messages, "openai", mode=mode)
        assert unchanged(repaired, [*messages[:3], messages[4]])


def test_ids_come_again() -> None:
    messages = [user("go"), chat_calls("x"), chat_result("x", "1"), chat_calls("x"), user("hm")]
    repaired = satchel.repair(messages, "openai")
    assert repaired[4] == chat_result("x", NO_RESULT)
    twice = [user("go"), uses("x"), results("x"), uses("x"), results("x")]
    fixed = satchel.repair(twice, "anthropic")
    assert unchanged(fixed[:3], twice[:3])
    new_id = fixed[3]["content"][0]["id"]
    assert new_id.startswith("x_")
    assert fixed[4]["content"][0]["tool_use_id"] == new_id


@pytest.mark.parametrize("call_id", ["naïve id", "", "x" * 80, "a/b"])
def test_ids_that_the_provider_refuses(call_id: str) -> None:
    use_block: Message = {"toolUse": {"toolUseId": call_id, "name": "look", "input": {}}}
    answer = {"toolResult": {"toolUseId": call_id, "content": [{"text": "found"}]}}
    messages: list[Message] = [
        {"role": "user", "content": [{"text": "go"}]},
        {"role": "assistant", "content": [use_block]},
        {"role": "user", "content": [answer]},
    ]
    assert errors(messages, "bedrock") != []
    repaired = satchel.repair(messages, "bedrock")
    assert errors(repaired, "bedrock") == []
    assert repaired[2]["content"][0]["toolResult"]["content"] == [{"text": "found"}]


def test_first_message() -> None:
    messages = [said("Welcome."), user("hi")]
    for dialect in ("openai", "anthropic"):
        repaired = satchel.repair(messages, dialect)
        assert repaired[0] == user(OPENER)
        assert unchanged(repaired[1:], messages)
        assert unchanged(satchel.repair(messages, dialect, mode="drop"), messages[1:])


def test_what_the_provider_accepts_stays() -> None:
    blank = [user("hi"), said("Welcome."), user(" ")]
    assert [one.code for one in satchel.lint(blank, "openai")] == ["blank_text"]
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "done"}
    late = [user("go"), call, user("and?"), output]
    assert [one.code for one in satchel.lint(late, "openai-responses")] == ["outputs_apart"]
    for mode in ("synthesize", "drop", "flatten"):
        assert unchanged(satchel.repair(blank, "openai", mode=mode), blank)
        assert unchanged(satchel.repair(late, "openai-responses", mode=mode), late)


def test_signed_reasoning_stays_and_unsigned_goes() -> None:
    signed = {"type": "thinking", "thinking": "", "signature": "s1"}
    hidden = {"type": "redacted_thinking", "data": "d"}
    unsigned = {"type": "thinking", "thinking": ""}
    blocks = [signed, hidden, unsigned, use("a")]
    messages = [user("go"), {"role": "assistant", "content": blocks}, results("a")]
    repaired = satchel.repair(messages, "anthropic")
    assert unchanged(repaired[1]["content"], [signed, hidden, blocks[3]])
    assert repaired[2] is messages[2]


def test_reasoning_goes_with_its_calls() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": "s1"}
    messages = [user("go"), {"role": "assistant", "content": [thought, use("a")]}, user("stop")]
    assert unchanged(satchel.repair(messages, "anthropic", mode="drop"), [messages[0], messages[2]])
    kept = satchel.repair(messages, "anthropic")
    assert kept[1] is messages[1]
    assert kept[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "a", "content": NO_RESULT, "is_error": True}
    ]


def test_responses_ids() -> None:
    messages: list[Message] = [
        user("go"),
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call", "id": "fc_2", "call_id": "b", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "b", "output": "found"},
        user("and?"),
    ]
    dropped = satchel.repair(messages, "openai-responses", mode="drop")
    # The reasoning led to the call that went; the other call must not ask for it.
    assert dropped == [
        messages[0],
        {"type": "function_call", "call_id": "b", "name": "look", "arguments": "{}"},
        messages[4],
        messages[5],
    ]
    kept = satchel.repair(messages, "openai-responses")
    assert unchanged(kept[:5], messages[:5])
    assert kept[5] == {"type": "function_call_output", "call_id": "a", "output": NO_RESULT}


def test_gemini_roles_and_counts() -> None:
    messages: list[Message] = [
        {"role": "user", "parts": [{"text": "go"}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"r": 1}}}]},
    ]
    repaired = satchel.repair(messages, "gemini")
    assert [len(content["parts"]) for content in repaired] == [1, 2, 2]
    answers = repaired[2]["parts"]
    assert answers[0] is messages[3]["parts"][0]
    missing = {"response": {"error": NO_RESULT}, "name": "look"}
    assert answers[1] == {"functionResponse": missing}
    assert properties.alternates(repaired) == []


def test_marks_beyond_the_limit() -> None:
    def marked(text: str) -> Message:
        mark = {"type": "ephemeral"}
        return {"role": "user", "content": [{"type": "text", "text": text, "cache_control": mark}]}

    messages = [marked(str(number)) for number in range(5)]
    system = [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}]
    repaired = satchel.repair(messages, "anthropic", system=system)
    assert errors(repaired, "anthropic", system=system) == []
    assert ["cache_control" in one["content"][0] for one in repaired] == [False] * 2 + [True] * 3
    assert unchanged(repaired[2:], messages[2:])


def test_wrong_types_with_one_meaning() -> None:
    messages: list[Any] = [
        {"role": "User", "content": {"type": "text", "text": "go"}},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": 7, "type": "function", "function": {"name": "f", "arguments": {}}}
            ],
        },
        {"role": "tool", "tool_call_id": 7, "content": {"rows": [1, 2]}},
    ]
    repaired = satchel.repair(messages, "openai")
    assert errors(repaired, "openai") == []
    assert repaired[0] == {"role": "user", "content": [{"type": "text", "text": "go"}]}
    call = repaired[1]["tool_calls"][0]
    assert (call["id"], call["function"]["arguments"]) == ("7", "{}")
    assert json.loads(repaired[2]["content"]) == {"rows": [1, 2]}
    with pytest.raises(satchel.InputError, match="message 1: role must be") as caught:
        satchel.repair([user("go"), {"role": "critic", "content": "no"}], "openai")
    assert caught.value.index == 1


def test_non_json_arguments_stay() -> None:
    call = chat_calls("a")
    call["tool_calls"][0]["function"]["arguments"] = '{"path": "src/'
    messages = [user("go"), call, chat_result("a")]
    assert unchanged(satchel.repair(messages, "openai"), messages)


def test_tools_not_declared() -> None:
    messages: list[Message] = [
        {"role": "user", "content": [{"text": "go"}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "a", "name": "look", "input": {}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "a", "content": [{"text": "x"}]}}],
        },
        {"role": "assistant", "content": [{"text": "done"}]},
    ]
    repaired = satchel.repair(messages, "bedrock", tools=[])
    assert errors(repaired, "bedrock", tools=[]) == []
    assert properties.unpaired(repaired) == []
    assert properties.says(repaired, "\nx\n") == 1


@pytest.mark.parametrize("dialect", DIALECTS)
def test_nothing_in_nothing_out(dialect: str) -> None:
    assert satchel.repair([], dialect) == []


def test_arguments_of_the_function() -> None:
    with pytest.raises(satchel.InputError) as caught:
        satchel.repair([user("go")], "klingon")
    assert caught.value.code == "unknown_dialect"
    with pytest.raises(satchel.InputError) as caught:
        satchel.repair([user("go")], "openai", mode="guess")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose
    assert caught.value.code == "invalid_value"
    for wrong in (None, 5, "text", user("go")):
        with pytest.raises(satchel.InputError):
            satchel.repair(wrong, "openai")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose
