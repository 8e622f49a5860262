"""The state of an agent: updates by field, and never a change in place."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest

import satchel
from satchel.state import (
    AgentMessage,
    AgentState,
    AgentStateDict,
    RemoveMessage,
    append_messages,
    reduce,
)


def start(**fields: Any) -> AgentState:
    return AgentState(session_id="s", user_id="u", **fields)


def said(state: AgentState) -> list[tuple[str, str | None]]:
    return [(message.id, message.content) for message in state.messages]


def test_defaults_are_those_of_a_new_run() -> None:
    state = start()
    assert (state.current_step, state.max_steps, state.is_completed) == (0, 15, False)
    assert (state.messages, state.scratchpad) == ((), {})


@pytest.mark.parametrize(
    "fields", [{"current_step": -1}, {"max_steps": 0}, {"messages": ["hello"]}, {"mood": "good"}]
)
def test_fields_out_of_range_cannot_be_built(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(fields))):
        start(**fields)


def test_messages_are_appended_replaced_in_place_and_removed_by_id() -> None:
    state = reduce(
        start(),
        {
            "messages": [
                {"id": "a", "role": "user", "content": "one"},
                {"id": "b", "role": "assistant", "content": "two"},
            ]
        },
    )
    state = reduce(state, {"messages": {"id": "a", "role": "user", "content": "1"}})
    assert said(state) == [("a", "1"), ("b", "two")]
    state = reduce(state, {"messages": [RemoveMessage(id="a"), {"role": "user", "content": "3"}]})
    assert [content for _, content in said(state)] == ["two", "3"]
    assert all(message.id for message in state.messages)


def test_each_field_has_its_own_rule() -> None:
    state = start(scratchpad={"a": 1, "b": 1}, current_step=3)
    after = reduce(state, {"scratchpad": {"b": 2, "c": 3}, "current_step": 4, "is_completed": True})
    assert dict(after.scratchpad) == {"a": 1, "b": 2, "c": 3}
    assert (after.current_step, after.is_completed) == (4, True)


def test_the_state_before_is_as_it_was() -> None:
    message = AgentMessage(role="user", content="one")
    state = start(messages=(message,), scratchpad={"a": 1})
    before = state.model_copy(deep=True)
    after = reduce(state, {"messages": {"role": "user", "content": "x"}, "scratchpad": {"a": 2}})
    assert state == before
    assert after.messages[0] is message
    with pytest.raises(ValueError, match="frozen"):
        setattr(state, "current_step", 5)  # noqa: B010 - both checkers refuse the plain form


@pytest.mark.parametrize(
    ("update", "code"),
    [
        ({"mood": "good"}, "invalid_value"),
        ({"current_step": -1}, "invalid_value"),
        ({"messages": {"role": "narrator", "content": "x"}}, "invalid_message"),
        ({"messages": "hello"}, "invalid_message"),
        ({"messages": RemoveMessage(id="nobody")}, "message_not_found"),
    ],
)
def test_updates_that_cannot_be_are_refused(update: dict[str, Any], code: str) -> None:
    with pytest.raises(satchel.InputError) as caught:
        reduce(start(), update)
    assert caught.value.code == code


def test_the_typed_dict_carries_the_same_reducers() -> None:
    hints = get_type_hints(AgentStateDict, include_extras=True)
    assert set(hints) == set(AgentState.model_fields)
    assert hints["messages"].__metadata__ == (append_messages,)
    assert hints["scratchpad"].__metadata__[0]({"a": 1}, {"b": 2}) == {"a": 1, "b": 2}
