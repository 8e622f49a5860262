"""Lint of growing lists: what it accepts is right as a whole, and it goes on from where it was."""

from __future__ import annotations

import itertools
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel import _core
from satchel.testing import Dialect, histories

Message = dict[str, Any]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)


def has_errors(messages: list[Message], dialect: str) -> bool:
    return any(one.severity == "error" for one in satchel.lint(messages, dialect))


@pytest.mark.parametrize("damage", [False, True], ids=["sound", "damaged"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_it_accepts_has_no_error(dialect: Dialect, damage: bool) -> None:
    @given(histories(dialect, damage=damage), st.integers(1, 4))
    def check(messages: list[Message], stride: int) -> None:
        progress = _core.LintProgress(dialect, [])
        for count in range(1, len(messages) + 1, stride):
            grown = messages[:count]
            if progress.is_valid(grown, None, None):
                assert not has_errors(grown, dialect)
            else:
                # Nothing is given up without a reason where no id and no mark is at stake.
                assert damage or has_errors(grown, dialect)

    check()


def test_an_id_of_long_ago_is_remembered() -> None:
    def turn(call_id: str) -> list[Message]:
        use: Message = {"type": "tool_use", "id": call_id, "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": "row"}
        return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]

    messages = [{"role": "user", "content": "go"}]
    progress = _core.LintProgress("anthropic", [])
    for number in range(9):
        messages += turn(f"call_{number}")
        assert progress.is_valid(messages, None, None)
    messages += turn("call_0")
    assert not progress.is_valid(messages, None, None)
    assert has_errors(messages, "anthropic")


def test_a_server_tool_that_waits_holds_the_check_back() -> None:
    server: Message = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    use: Message = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "row"}
    messages: list[Message] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [server, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "so"},
    ]
    progress = _core.LintProgress("anthropic", [])
    assert progress.is_valid(messages, None, None) is not has_errors(messages, "anthropic")
    messages.append({"role": "user", "content": "and now?"})
    assert not progress.is_valid(messages, None, None)
    assert has_errors(messages, "anthropic")


def test_windows_of_a_damaged_history_are_checked_as_a_whole() -> None:
    packer = satchel.Assembler("claude-sonnet-4-5", budget=5_000)
    working_set = packer.working_set([{"role": "user", "content": "go"}])
    blank = {"role": "assistant", "content": [{"type": "text", "text": " "}]}
    for number, message in zip(
        range(6), itertools.cycle([blank, {"role": "user", "content": "x"}])
    ):
        working_set.append(message)
        window = working_set.window()
        assert not has_errors(window.messages, "anthropic"), number


def test_a_server_tool_that_is_answered_later_does_not_hold_it_back() -> None:
    server: Message = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    found: Message = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    use: Message = {"type": "tool_use", "id": "a", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "row"}
    said = {"type": "text", "text": "so"}
    messages: list[Message] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [server, use]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [found, said]},
        {"role": "user", "content": "and now?"},
        {"role": "assistant", "content": "well"},
    ]
    progress = _core.LintProgress("anthropic", [])
    assert progress.is_valid(messages, None, None)
    assert progress.start == 5
