"""Edits that are left to the provider, reasoning that is left out, and rules for tools."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

import satchel
from satchel.policy import Clearing, ClearTrigger, Policy, Thinking, ToolRule

Message = dict[str, Any]


def thinking_turns(turns: int, calls: int) -> list[Message]:
    """Turns of a user with so many calls each, and a thought before each."""
    messages: list[Message] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": f"Task {turn}."})
        for call in range(calls):
            name = f"toolu_{turn}_{call}"
            thought = {
                "type": "thinking",
                "thinking": f"thought {turn} {call}",
                "signature": "c2ln",
            }
            use = {"type": "tool_use", "id": name, "name": "look", "input": {"at": call}}
            result = {"type": "tool_result", "tool_use_id": name, "content": f"result {call}"}
            messages.append({"role": "assistant", "content": [thought, use]})
            messages.append({"role": "user", "content": [result]})
        if turn < turns - 1:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": "Done."}]})
    return messages


def thoughts(window: satchel.Window) -> list[str]:
    return [
        block["thinking"]
        for message in window.messages
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "thinking"
    ]


@pytest.mark.parametrize("keep", [1, 2, "all"])
def test_reasoning_stays_in_the_running_turn_and_so_many_before(keep: int | str) -> None:
    messages = thinking_turns(4, 2)
    policy = Policy(name="mine", thinking=Thinking.model_validate({"keep": keep}))
    window = satchel.Assembler("claude-sonnet-4-5", policy=policy).assemble(messages)
    first = 0 if keep == "all" else 4 - 1 - int(keep)
    wanted = [f"thought {turn} {call}" for turn in range(first, 4) for call in range(2)]
    assert thoughts(window) == wanted
    assert [
        one for one in satchel.lint(window.messages, "anthropic") if one.severity == "error"
    ] == []
    whole = satchel.Assembler("claude-sonnet-4-5").assemble(messages)
    assert (window.tokens < whole.tokens) == (first > 0)
    assert len(window.messages) == len(whole.messages)


def test_the_history_keeps_its_reasoning() -> None:
    messages = thinking_turns(3, 1)
    packer = satchel.Assembler("claude-sonnet-4-5", policy="clear-thinking")
    working_set = packer.working_set(messages)
    assert thoughts(working_set.window()) == ["thought 1 0", "thought 2 0"]
    # A thought is never taken out while its loop is running.
    grown = [*thinking_turns(3, 1), *thinking_turns(1, 6)[1:]]
    assert thoughts(packer.assemble(grown))[-6:] == [f"thought 0 {call}" for call in range(6)]
    assert messages == thinking_turns(3, 1)


def test_the_provider_is_asked_and_satchel_does_not_edit_too() -> None:
    messages = thinking_turns(30, 4)
    plain = satchel.Assembler("claude-sonnet-4-5", budget=4_000, policy="clear-tool-uses:server")
    window = plain.assemble(messages)
    assert window.messages == messages
    assert window.report.compactions == 0
    assert window.as_kwargs()["context_management"] == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 100_000},
                "keep": {"type": "tool_uses", "value": 3},
            }
        ]
    }
    own = Policy(
        name="both",
        strategy="clear-tool-uses",
        server=True,
        thinking=Thinking(keep=2),
        clearing=Clearing(
            trigger=ClearTrigger(type="tool_uses", value=5),
            clear_at_least=900,
            exclude_tools=("look",),
            clear_tool_inputs=True,
        ),
    )
    call = satchel.Assembler("claude-sonnet-4-5", policy=own).assemble(messages).as_kwargs()
    thinking, clearing = call["context_management"]["edits"]
    assert thinking == {
        "type": "clear_thinking_20251015",
        "keep": {"type": "thinking_turns", "value": 2},
    }
    assert clearing["trigger"] == {"type": "tool_uses", "value": 5}
    assert clearing["clear_at_least"] == {"type": "input_tokens", "value": 900}
    assert (clearing["exclude_tools"], clearing["clear_tool_inputs"]) == (["look"], True)
    here = satchel.Assembler("claude-sonnet-4-5", policy="clear-tool-uses").assemble(messages)
    assert "context_management" not in here.as_kwargs()


def test_truncation_is_left_to_the_provider() -> None:
    items = [{"role": "user", "content": f"Word {number}. " * 200} for number in range(50)]
    packer = satchel.Assembler(
        "gpt-4o", budget=2_000, policy="truncate-oldest:server", dialect="openai-responses"
    )
    call = packer.assemble(items).as_kwargs()
    assert call["truncation"] == "auto"
    assert call["input"] == items


def test_what_no_provider_does_is_an_error() -> None:
    for policy, dialect in (
        ("clear-tool-uses:server", "openai"),
        ("truncate-oldest:server", "anthropic"),
        ("clear-thinking:server", "openai-responses"),
    ):
        with pytest.raises(satchel.InputError, match="is for"):
            satchel.Assembler("gpt-4o", policy=policy, dialect=dialect)
    with pytest.raises(ValidationError, match="no provider edits as adaptive does"):
        Policy(server=True)


def test_rules_for_tools_are_settings() -> None:
    rules = {
        "read file": ToolRule(supersede_key="path", max_tokens=200),
        "look": ToolRule(protect=True),
    }
    policy = Policy(name="mine", tools=rules)
    assert Policy.from_toml(policy.to_toml()) == policy
    messages: list[Message] = [{"role": "user", "content": "Mend the shop."}]
    for number in range(60):
        name = "look" if number == 0 else "read file"
        function = {"name": name, "arguments": '{"path": "shop"}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        text = "".join(f"line {line} of till_{number}_{line}\n" for line in range(20))
        messages += [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": text},
        ]
    window = satchel.Assembler("gpt-4o", budget=2_400, policy=policy).assemble(messages)
    assert window.tokens <= window.budget
    assert messages[2] in window.messages
    with pytest.raises(ValidationError):
        ToolRule.model_validate({"keep": 3})
