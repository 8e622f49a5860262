"""Earlier reasoning left out of windows, in every dialect that has some."""

from __future__ import annotations

import json
from typing import Any

import pytest

import satchel
from satchel._reasoning import without_reasoning
from satchel.policy import Policy, Thinking

Message = dict[str, Any]

MODELS = {
    "openai": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}


def turn(dialect: str, number: int) -> list[Message]:
    """A request, a thought with a call, its result, and a thought with the answer."""
    name, ask = f"call_{number}", f"Task {number}."
    thought, last = f"thought {number} a", f"thought {number} b"
    arguments = {"at": number}
    if dialect == "openai":
        function = {"name": "look", "arguments": json.dumps(arguments)}
        call = {"id": name, "type": "function", "function": function}
        return [
            {"role": "user", "content": ask},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": thought,
                "tool_calls": [call],
            },
            {"role": "tool", "tool_call_id": name, "content": "seen"},
            {"role": "assistant", "content": "Done.", "reasoning_content": last},
        ]
    if dialect == "openai-responses":
        return [
            {"role": "user", "content": ask},
            {
                "type": "reasoning",
                "id": f"rs_{number}",
                "summary": [],
                "encrypted_content": thought,
            },
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": name,
                "name": "look",
                "arguments": json.dumps(arguments),
            },
            {"type": "function_call_output", "call_id": name, "output": "seen"},
            {"type": "reasoning", "id": f"rs_{number}b", "summary": [], "encrypted_content": last},
            {
                "type": "message",
                "id": f"msg_{number}",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
            },
        ]
    if dialect == "gemini":
        call = {"functionCall": {"name": "look", "args": arguments}, "thoughtSignature": "c2ln"}
        result = {"functionResponse": {"name": "look", "response": {"output": "seen"}}}
        return [
            {"role": "user", "parts": [{"text": ask}]},
            {"role": "model", "parts": [{"text": thought, "thought": True}, call]},
            {"role": "user", "parts": [result]},
            {"role": "model", "parts": [{"text": last, "thought": True}, {"text": "Done."}]},
        ]
    if dialect == "bedrock":

        def thinking(text: str) -> Message:
            return {"reasoningContent": {"reasoningText": {"text": text, "signature": "c2ln"}}}

        use: Message = {"toolUse": {"toolUseId": name, "name": "look", "input": arguments}}
        answer: Message = {"toolResult": {"toolUseId": name, "content": [{"text": "seen"}]}}
        said: Message = {"text": "Done."}
        asked: Message = {"text": ask}
    else:

        def thinking(text: str) -> Message:
            return {"type": "thinking", "thinking": text, "signature": "c2ln"}

        use = {"type": "tool_use", "id": name, "name": "look", "input": arguments}
        answer = {"type": "tool_result", "tool_use_id": name, "content": "seen"}
        said, asked = {"type": "text", "text": "Done."}, {"type": "text", "text": ask}
    return [
        {"role": "user", "content": [asked]},
        {"role": "assistant", "content": [thinking(thought), use]},
        {"role": "user", "content": [answer]},
        {"role": "assistant", "content": [thinking(last), said]},
    ]


def history(dialect: str, turns: int) -> list[Message]:
    """Turns that are over, and one that runs."""
    done = [message for number in range(turns) for message in turn(dialect, number)]
    running = turn(dialect, turns)
    return [*done, *running[: 4 if dialect == "openai-responses" else 3]]


def told(window: satchel.Window) -> list[str]:
    text = json.dumps(window.messages)
    names = [f"thought {number} {which}" for number in range(9) for which in "ab"]
    return [name for name in names if name in text]


@pytest.mark.parametrize("keep", [1, 2, "all"])
@pytest.mark.parametrize("dialect", MODELS)
def test_earlier_reasoning_goes_in_every_dialect(dialect: str, keep: int | str) -> None:
    messages = history(dialect, 4)
    before = json.dumps(messages)
    policy = Policy(name="mine", thinking=Thinking.model_validate({"keep": keep}))
    packer = satchel.Assembler(MODELS[dialect], policy=policy, dialect=dialect)
    window = packer.assemble(messages)
    first = 0 if keep == "all" else 4 - int(keep)
    kept = [f"thought {number} {which}" for number in range(first, 4) for which in "ab"]
    # A chat message with calls must give its reasoning back.
    asked_back = [f"thought {number} a" for number in range(first if dialect == "openai" else 0)]
    assert told(window) == [*asked_back, *kept, "thought 4 a"]
    found = satchel.lint(window.messages, dialect)
    assert [one for one in found if one.severity == "error"] == []
    whole = satchel.Assembler(MODELS[dialect], dialect=dialect).assemble(messages)
    assert told(whole) == [f"thought {n} {which}" for n in range(4) for which in "ab"] + [
        "thought 4 a"
    ]
    assert (window.tokens < whole.tokens) == (first > 0)
    counted = packer.counter.count_messages(window.messages, dialect=dialect)
    assert window.tokens == counted.total
    assert json.dumps(messages) == before


def test_items_that_lost_their_reasoning_lose_the_id_under_which_it_is_looked_for() -> None:
    messages = history("openai-responses", 2)
    policy = Policy(name="mine", thinking=Thinking(keep=1))
    packer = satchel.Assembler("gpt-4o", policy=policy, dialect="openai-responses")
    window = packer.assemble(messages)
    calls = [one for one in window.messages if one.get("type") == "function_call"]
    assert [one.get("id") for one in calls] == [None, "fc_1", "fc_2"]
    assert [one["call_id"] for one in calls] == ["call_0", "call_1", "call_2"]
    assert calls[1] is next(one for one in messages if one.get("id") == "fc_1")


@pytest.mark.parametrize(
    ("model", "turns"),
    [
        ("claude-sonnet-4-5", 1),
        ("claude-sonnet-4-20250514", 1),
        ("claude-sonnet-4-6", 4),
        ("claude-opus-4-5", 4),
        ("claude-3-7-sonnet-latest", 1),
    ],
)
def test_turns_are_kept_as_the_provider_keeps_them(model: str, turns: int) -> None:
    packer = satchel.Assembler(model, policy="clear-thinking")
    window = packer.assemble(history("anthropic", 4))
    kept = [f"thought {number} {which}" for number in range(4 - turns, 4) for which in "ab"]
    assert told(window) == [*kept, "thought 4 a"]


def test_the_provider_is_left_its_own_default() -> None:
    packer = satchel.Assembler("claude-opus-4-5", policy="clear-thinking:server")
    window = packer.assemble(history("anthropic", 2))
    edits = window.as_kwargs()["context_management"]["edits"]
    assert edits == [{"type": "clear_thinking_20251015"}]


def test_windows_with_less_reasoning_stay_valid_while_a_history_grows() -> None:
    for dialect, model in MODELS.items():
        policy = Policy(name="mine", thinking=Thinking(keep=1))
        packer = satchel.Assembler(model, policy=policy, dialect=dialect, budget=600)
        working_set = packer.working_set()
        for message in history(dialect, 12):
            working_set.append(message)
            window = working_set.window(open_calls="synthesize")
            assert window.tokens_upper <= 600
            found = satchel.lint(window.messages, dialect)
            assert [one for one in found if one.severity == "error"] == []
            cold = packer.assemble(
                working_set.messages, events=window.events, open_calls="synthesize"
            )
            assert cold.messages == window.messages


@pytest.mark.parametrize(
    "calls",
    [
        {},
        {
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
            ]
        },
        {"function_call": {"name": "f", "arguments": "{}"}},
    ],
    ids=["no call", "calls", "a single call"],
)
def test_reasoning_beside_the_content_of_a_chat_message_goes(calls: dict[str, Any]) -> None:
    signed = {"type": "thinking", "thinking": "hm", "signature": "s"}
    message = {
        "role": "assistant",
        "content": [signed],
        "reasoning_content": "hm",
        "thinking_blocks": [signed],
        **calls,
    }
    [(_, bare)] = without_reasoning([message])
    if not calls:
        assert bare is None
        return
    # Models that return `reasoning_content` ask for it back with their calls.
    assert bare == {"role": "assistant", "content": None, "reasoning_content": "hm", **calls}
    only = {"role": "assistant", "content": "Yes.", "thinking_blocks": [signed]}
    assert without_reasoning([only]) == [(only, {"role": "assistant", "content": "Yes."})]
