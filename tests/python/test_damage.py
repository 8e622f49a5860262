"""A damaged history gives a valid window, or an error that says why not; never another one."""

from __future__ import annotations

import copy
import pickle
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import properties
import satchel
from satchel.repairing import PLACEHOLDERS
from satchel.testing import Dialect, histories

Message = dict[str, Any]
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
LATE: Message = {"role": "tool", "tool_call_id": "gone", "content": "late row"}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def errors(messages: list[Any], dialect: str) -> list[str]:
    return [one.code for one in satchel.lint(messages, dialect) if one.severity == "error"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_window_is_valid(dialect: Dialect) -> None:
    @given(histories(dialect, damage=True), st.integers(20, 3_000))
    def check(messages: list[Message], budget: int) -> None:
        packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=budget)
        before = copy.deepcopy(messages)
        try:
            window = packer.assemble(messages, open_calls="synthesize")
        except satchel.BudgetError:
            return
        except satchel.InputError as error:
            properties.refused(error, messages)
            return
        finally:
            assert repr(messages) == repr(before)
        assert window.tokens <= budget
        assert errors(window.messages, dialect) == []

    check()


@pytest.mark.parametrize("dialect", DIALECTS)
def test_one_by_one_is_as_all_at_once(dialect: Dialect) -> None:
    @given(histories(dialect, damage=True, max_steps=6))
    def check(messages: list[Message]) -> None:
        packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=100_000)
        try:
            whole = packer.working_set(messages)
        except satchel.InputError:
            return
        grown = packer.working_set()
        for message in messages:
            try:
                grown.append([message])
            except satchel.InputError:
                return
        assert repr(grown.messages) == repr(whole.messages)

    check()


def test_an_orphan_becomes_text_and_the_rest_stays() -> None:
    packer = satchel.Assembler("gpt-4o", budget=1_000)
    messages = [user("hi"), LATE, user("and?")]
    window = packer.assemble(messages)
    assert window.messages[0] is messages[0]
    assert window.messages[2] is messages[2]
    assert properties.says(window.messages, "late row") == 1
    assert errors(window.messages, "openai") == []


def test_open_calls_of_a_damaged_history_are_still_asked_for() -> None:
    call = {"id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    calling = {"role": "assistant", "content": None, "tool_calls": [call]}
    packer = satchel.Assembler("gpt-4o", budget=1_000)
    working_set = packer.working_set([user("hi"), LATE, user("look"), calling])
    with pytest.raises(satchel.InputError) as caught:
        working_set.window()
    assert caught.value.code == "open_calls"
    assert (
        properties.says(working_set.window(open_calls="synthesize").messages, PLACEHOLDERS[0]) == 1
    )
    working_set.append({"role": "tool", "tool_call_id": "a", "content": "row"})
    window = working_set.window()
    assert window.messages[-1] == {"role": "tool", "tool_call_id": "a", "content": "row"}
    again = pickle.loads(pickle.dumps(working_set))
    assert again.window().messages == window.messages


def test_blank_texts_go_from_the_window() -> None:
    packer = satchel.Assembler("claude-sonnet-4-5", budget=1_000)
    messages = [user("hi"), {"role": "assistant", "content": " "}, user("well?")]
    window = packer.assemble(messages)
    assert window.messages == [messages[0], messages[2]]
    counted = packer.counter.count_messages(window.messages, dialect="anthropic")
    assert window.tokens == counted.total


def test_what_cannot_be_understood_is_named() -> None:
    packer = satchel.Assembler("gpt-4o", budget=1_000)
    with pytest.raises(satchel.InputError, match="message 1") as caught:
        packer.assemble([user("hi"), {"role": "critic", "content": "no"}])
    assert (caught.value.code, caught.value.index) == ("invalid_message", 1)


def test_raise_is_strict() -> None:
    strict = satchel.Assembler("gpt-4o", budget=1_000, on_damage="raise")
    assert strict.on_damage == "raise"
    assert pickle.loads(pickle.dumps(strict)).on_damage == "raise"
    with pytest.raises(satchel.InputError) as caught:
        strict.assemble([user("hi"), LATE])
    assert caught.value.code == "orphan_result"
    with pytest.raises(satchel.InputError) as caught:
        satchel.Assembler("gpt-4o", on_damage="ignore")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType] - wrong on purpose
    assert caught.value.code == "invalid_value"


class Broken:
    role = "user"

    @property
    def content(self) -> str:
        raise RuntimeError


def test_a_message_that_cannot_be_read_is_named_not_dropped() -> None:
    history = [user("first"), Broken(), user("last")]
    packer = satchel.Assembler("gpt-4o", budget=1_000)
    for call in (
        lambda: packer.assemble(history),
        lambda: satchel.repair(history, "openai"),
        lambda: satchel.convert(history, "openai", "anthropic"),
        lambda: satchel.counter("gpt-4o").count_messages(history, dialect="openai"),
    ):
        with pytest.raises(satchel.InputError) as caught:
            call()
        assert caught.value.index == 1
    assert "invalid_message" in errors(history, "openai")
