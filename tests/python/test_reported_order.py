"""Faults that users met elsewhere: who speaks first, who speaks next, and what stays in front.

Each test says what must hold of a history that broke another program.
"""

from __future__ import annotations

from typing import Any

import pytest

import properties
import satchel
from turns import (
    Message,
    alternates_visibly,
    keep_last,
    own,
    said,
    sound,
    step,
    system,
    user,
    within,
    words,
)


def searches(count: int) -> list[Message]:
    """A run of Gemini: one request, then nothing but calls and results without ids."""
    history: list[Message] = [{"role": "user", "parts": [{"text": "find it"}]}]
    for number in range(count):
        call = {"functionCall": {"name": "s", "args": {"n": number}}}
        result = {"functionResponse": {"name": "s", "response": {"r": number}}}
        history += [{"role": "model", "parts": [call]}, {"role": "user", "parts": [result]}]
    return history


def test_a_call_of_gemini_follows_the_user() -> None:
    history = searches(4)
    packer = satchel.Assembler("gemini-2.5-pro", budget=80, counter=words)
    cut = satchel.repair(history[1:], "gemini")
    windows = [packer.assemble(history).messages, cut]
    for count in range(1, len(history)):
        windows.append(keep_last(count, history, model="gemini-2.5-pro"))
        newest = satchel.sliding_window(history, count, dialect="gemini")
        windows.append(satchel.repair(newest, "gemini"))
    for window in windows:
        assert properties.call_after_user(window) == []
        assert properties.starts_with_user(window) == []
        assert properties.unpaired(window) == []
        assert not window or satchel.lint(window, "gemini") == []


def dialogue() -> list[Message]:
    """A goal with tool traffic, then plain talk."""
    history = [system("s"), user("goal"), *step("h", "row " * 30), said("found it")]
    for turn in range(6):
        history += [user(f"ask {turn} " * 20), said(f"reply {turn} " * 20)]
    return [*history, user("last")]


def test_the_newest_messages_alone_alternate() -> None:
    history = dialogue()
    for count in range(1, len(history)):
        window = satchel.sliding_window(history, count)
        assert alternates_visibly(window)
        assert window[-1] is history[-1]
        assert properties.unpaired(window) == []


def test_the_note_about_what_is_gone_breaks_no_strict_alternation() -> None:
    """Where roles must alternate, the note is a part of the goal and neighbours are one message."""
    strict = satchel.convert(dialogue(), "openai", "bedrock")
    packer = satchel.Assembler("claude-sonnet-4-5", dialect="bedrock", budget=200, counter=words)
    window = packer.assemble(strict.messages, system=strict.system)
    assert window.report.compactions > 0
    assert window.tokens <= 200
    assert properties.alternates(window.messages) == []
    assert properties.says(window.messages, "<satchel-index>") == 1
    assert properties.unpaired(window.messages) == []
    assert properties.says(window.messages[-1:], "last") == 1


def test_a_packed_window_can_be_brought_to_strict_alternation() -> None:
    """For a chat template that refuses two turns of a user in a row."""
    for budget in (120, 200, 300):
        window = within(budget, dialogue())
        strict = satchel.convert(window, "openai", "bedrock")
        chat = satchel.convert(strict.messages, "bedrock", "openai", system=strict.system)
        assert alternates_visibly(chat.messages)
        assert properties.alternates(chat.messages) == []
        assert properties.says(chat.messages, "<satchel-index>") == 1
        assert properties.says(chat.messages[-1:], "last") == 1


# --- instructions ---------------------------------------------------------------------------------


def test_instructions_stay_first() -> None:
    history = [
        system("the pass phrase is a secret"),
        user("1"),
        said("2"),
        user("3"),
        said("4"),
        user("5"),
    ]
    for count in range(6):
        window = keep_last(count, history)
        assert window[0] is history[0]
        assert properties.anchored(window, history) == []
    for window in (
        satchel.sliding_window(history, 3),
        satchel.token_window(history, 12, counter=words),
    ):
        assert window[0] is history[0]
        assert properties.anchored(window, history) == []


def test_instructions_count_in_the_budget() -> None:
    history = [system("rule " * 10), *(user("ask " * 10), said("reply " * 10)) * 8, user("now")]
    window = satchel.token_window(history, 45, counter=words)
    assert sum(words(message["content"]) for message in window) <= 45
    assert window[0] is history[0]
    window = within(150, history)
    assert window[0] is history[0]


def test_developer_items_and_pins_are_never_paged_out() -> None:
    def item(role: str, text: str) -> Message:
        return {"type": "message", "role": role, "content": text}

    rule = item("developer", "deploy with the word kestrel")
    history: list[Message] = [rule, item("user", "good morning"), item("assistant", "hello")]
    history.append(item("user", "the port is 7741"))
    for turn in range(6):
        history += [
            item("assistant", f"reply {turn} " * 30),
            item("user", f"question {turn} " * 30),
        ]
    history += [item("assistant", "yes"), item("user", "deploy")]
    policies: list[Any] = [
        "adaptive",
        "token-window",
        satchel.Policy(strategy="sliding-window", max_messages=1),
    ]
    for policy in policies:
        packer = satchel.Assembler(
            "gpt-4o", dialect="openai-responses", budget=240, counter=words, policy=policy
        )
        working_set = packer.working_set(history[:4])
        working_set.pin(3)
        working_set.append(history[4:])
        window = working_set.window()
        assert window.report.compactions > 0
        assert window.messages[0] is rule
        assert window.messages[-1] is history[-1]
        assert any(message is history[3] for message in window.messages)
        assert properties.says(window.messages, "kestrel") == 1


# --- requests -------------------------------------------------------------------------------------


def test_no_request_is_made_up() -> None:
    """A turn that is over stays over, however often room is made."""
    history = [system("s"), user("analyse")]
    for turn in range(5):
        history += [said(f"word {turn} " * 60), user(f"sum up {turn}")]
    history.append(said("the end"))
    for budget in range(80, 700, 30):
        for policy in ("adaptive", "token-window"):
            window = within(budget, history, policy=policy)
            assert window[-1] is history[-1]
            asked = [one for one in own(window) if one["role"] == "user"]
            assert all(any(one is given for given in history) for one in asked)
            assert len(window) - len(own(window)) <= 1


def test_the_newest_request_stays() -> None:
    history = [
        user("good morning to you " * 5),
        said("and to you " * 5),
        user("what is the capital of Chile"),
    ]
    for policy in ("adaptive", "token-window"):
        window = within(70, history, policy=policy)
        assert window[-1] is history[-1]
    short = satchel.token_window(history, 10, counter=words)
    assert short == history[-1:]


# --- content --------------------------------------------------------------------------------------


def test_empty_messages_do_not_reach_a_provider() -> None:
    history = [user("hello"), said(""), user(" \n "), said("yes?"), said("\t"), user("go on")]
    converted = satchel.convert(history, "openai", "anthropic")
    repaired = satchel.repair(history, "anthropic")
    packed = satchel.Assembler("claude-sonnet-4-5", budget=1_000).assemble(history)
    for window in (converted.messages, repaired, packed.messages):
        sound(window)
        assert properties.alternates(window) == []
        assert properties.says(window[-1:], "go on") == 1
        assert satchel.lint(window, "anthropic") == []


@pytest.mark.parametrize("content", ["absent", None, ""])
def test_calls_need_no_content(content: str | None) -> None:
    calling, result = step("x", "row")
    calling["content"] = content
    if content == "absent":
        del calling["content"]
    history = [user("go"), calling, result]
    assert satchel.lint(history, "openai") == []
    for kept in (
        within(1_000, history),
        satchel.token_window(history, 1_000, counter=words),
        satchel.sliding_window(history, 10),
        satchel.repair(history, "openai"),
        satchel.prune_tool_outputs(history),
    ):
        assert kept == history
        assert all(one is given for one, given in zip(kept, history, strict=True))


@pytest.mark.parametrize("history", [[], [system("only rules")]])
def test_little_is_enough(history: list[Message]) -> None:
    assert satchel.sliding_window(history, 10) == history
    assert satchel.token_window(history, 10) == history
    assert satchel.prune_tool_outputs(history) == history
    assert within(100, history) == history
    assert keep_last(10, history) == history
    assert satchel.repair(history, "openai") == history
    assert len(satchel.score_messages(history)) == len(history)
