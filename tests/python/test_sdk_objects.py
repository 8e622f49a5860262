"""Messages as the clients of OpenAI and Anthropic return them: read like dicts, returned as is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import anthropic.types as anthropic_types
import openai.types.responses as responses_types
import pytest
from openai.types.chat import ChatCompletionMessage

import satchel
from satchel import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

OUTPUT = "line of output\n" * 400


def chat_run() -> list[Any]:
    call = {"id": "c1", "type": "function", "function": {"name": "run", "arguments": '{"a": 1}'}}
    reply = {"role": "assistant", "content": "Running it.", "tool_calls": [call]}
    return [
        {"role": "user", "content": "Run it."},
        ChatCompletionMessage.model_validate(reply),
        {"role": "tool", "tool_call_id": "c1", "content": OUTPUT},
        ChatCompletionMessage.model_validate({"role": "assistant", "content": "It ran. " * 99}),
    ]


def responses_run() -> list[Any]:
    text: dict[str, Any] = {"type": "output_text", "text": "Running it.", "annotations": []}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text],
    }
    long: dict[str, Any] = {
        **message,
        "id": "msg_2",
        "content": [{**text, "text": "It ran. " * 99}],
    }
    return [
        {"role": "user", "content": "Run it."},
        responses_types.ResponseReasoningItem(
            id="rs_1", type="reasoning", summary=[], encrypted_content="gAAA"
        ),
        responses_types.ResponseOutputMessage.model_validate(message),
        responses_types.ResponseFunctionToolCall(
            id="fc_1", type="function_call", call_id="c1", name="run", arguments='{"a": 1}'
        ),
        {"type": "function_call_output", "call_id": "c1", "output": OUTPUT},
        responses_types.ResponseOutputMessage.model_validate(long),
    ]


def anthropic_reply(blocks: list[dict[str, Any]]) -> anthropic_types.Message:
    return anthropic_types.Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": blocks,
        }
    )


def anthropic_run() -> list[Any]:
    thinking = {"type": "thinking", "thinking": "Just run it.", "signature": "c2ln"}
    call = {"type": "tool_use", "id": "t1", "name": "run", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": OUTPUT}
    return [
        {"role": "user", "content": "Run it."},
        anthropic_reply([thinking, {"type": "text", "text": "Running it."}, call]),
        {"role": "user", "content": [result]},
        anthropic_reply([{"type": "text", "text": "It ran. " * 99}]),
    ]


RUNS = {
    "openai": chat_run,
    "openai-responses": responses_run,
    "anthropic": anthropic_run,
}


def as_dict(message: Any) -> Any:
    if isinstance(message, dict):
        return cast("dict[str, Any]", message)
    return message.model_dump(exclude_unset=True)


@pytest.mark.parametrize("dialect", RUNS)
def test_read_like_dicts_and_returned_as_they_are(dialect: str) -> None:
    messages = RUNS[dialect]()
    plain = [as_dict(message) for message in messages]
    for message, fields in zip(messages, plain, strict=True):
        found = _core.describe_message(message, dialect)
        expected = _core.describe_message(fields, dialect)
        # The client's models have an order of fields of their own.
        for part in (*found["parts"], *expected["parts"]):
            if part["kind"] not in ("text", "result"):
                part["page"] = json.loads(part["page"])
        assert found == expected
    assert _core.detect_dialect(messages) == dialect
    packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=100_000)
    window = packer.assemble([*messages, {"role": "user", "content": "Thanks."}])
    assert all(mine is theirs for mine, theirs in zip(window.messages, messages, strict=False))
    lone = packer.working_set()
    for message in messages:
        lone.append(message)
    assert len(lone) == len(messages)


@pytest.mark.parametrize("dialect", RUNS)
def test_changed_copies_are_dicts(dialect: str) -> None:
    messages = RUNS[dialect]()
    packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=420)
    window = packer.assemble([*messages, {"role": "user", "content": "Thanks."}])
    assert window.tokens <= window.budget
    changed = [message for message in window.messages if message not in messages]
    assert all(isinstance(message, dict) for message in changed)
    assert window.pages
    for page in window.pages:
        if page.message is not None:
            working_set = packer.working_set(messages)
            assert working_set.page_in(page.pointer)


def test_replies_of_anthropic_are_sent_without_their_usage() -> None:
    messages = anthropic_run()
    packer = satchel.Assembler("claude-sonnet-4-5", budget=100_000)
    sent = packer.assemble(messages).as_kwargs()["messages"]
    assert set(sent[1]) == {"role", "content"}
    assert sent[1]["content"] is messages[1].content


DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")


@pytest.mark.parametrize("dialect", RUNS)
def test_every_function_takes_them_like_dicts(dialect: str) -> None:
    messages = RUNS[dialect]()
    plain = [as_dict(message) for message in messages]
    assert satchel.lint(messages, dialect) == satchel.lint(plain, dialect)
    counter = satchel.counter("gpt-4o")
    mine = counter.count_messages(messages, dialect=dialect)
    theirs = counter.count_messages(plain, dialect=dialect)
    assert mine.per_message.tolist() == theirs.per_message.tolist()
    assert (mine.total, mine.exact) == (theirs.total, theirs.exact)
    for target in DIALECTS:
        if target == dialect:
            continue
        found = satchel.convert(messages, dialect, target)
        expected = satchel.convert(plain, dialect, target)
        assert (found.messages, found.losses) == (expected.messages, expected.losses)
        assert [
            one for one in satchel.lint(found.messages, target) if one.severity == "error"
        ] == []
    scores = satchel.score_messages(messages)
    assert scores.tolist() == satchel.score_messages(plain).tolist()


@pytest.mark.parametrize("mode", ["synthesize", "drop", "flatten"])
@pytest.mark.parametrize("dialect", RUNS)
def test_what_is_right_comes_back_as_the_same_object(dialect: str, mode: Any) -> None:
    messages = [*RUNS[dialect](), {"role": "user", "content": "Thanks."}]
    for made in (
        satchel.repair(messages, dialect, mode=mode),
        satchel.convert(messages, dialect, dialect).messages,
        satchel.sliding_window(messages, 99, dialect=dialect),
        satchel.token_window(messages, 99_000, dialect=dialect),
    ):
        assert len(made) == len(messages)
        assert all(mine is theirs for mine, theirs in zip(made, messages, strict=True))


@pytest.mark.parametrize("mode", ["synthesize", "drop", "flatten"])
@pytest.mark.parametrize("dialect", RUNS)
def test_a_lost_result_is_mended_like_in_dicts(dialect: str, mode: Any) -> None:
    lost = [message for message in RUNS[dialect]() if not has_result(message)]
    messages = [*lost, {"role": "user", "content": "Thanks."}]
    plain = [as_dict(message) for message in messages]
    before = [json.dumps(as_dict(message)) for message in messages]
    found = satchel.repair(messages, dialect, mode=mode)
    expected = satchel.repair(plain, dialect, mode=mode)
    assert bare(found) == expected
    assert [one for one in satchel.lint(found, dialect) if one.severity == "error"] == []
    assert [json.dumps(as_dict(message)) for message in messages] == before
    again = satchel.repair(found, dialect, mode=mode)
    assert all(mine is theirs for mine, theirs in zip(again, found, strict=True))
    packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=100_000)
    assert packer.assemble(messages).messages


def bare(value: Any) -> Any:
    """The same without objects of a client, inside of dicts too."""
    if isinstance(value, (list, tuple)):
        return [bare(inner) for inner in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: bare(inner) for key, inner in fields.items()}
    return value.model_dump(exclude_unset=True) if hasattr(value, "model_dump") else value


def has_result(message: Any) -> bool:
    """Whether it is the result of the run."""
    return isinstance(message, dict) and OUTPUT in json.dumps(message).replace("\\n", "\n")


@pytest.mark.parametrize("dialect", RUNS)
def test_a_log_of_them_goes_on_in_another_dialect(dialect: str) -> None:
    messages = [*RUNS[dialect](), {"role": "user", "content": "Thanks."}]
    working_set = satchel.Assembler("gpt-4o", dialect=dialect, budget=100_000).working_set(messages)
    for target in DIALECTS:
        working_set.apply({"kind": "settings", "dialect": target})
        window = working_set.window()
        assert [
            one for one in satchel.lint(window.messages, target) if one.severity == "error"
        ] == []
    assert all(mine is theirs for mine, theirs in zip(working_set.messages, messages, strict=True))
