"""The working set against input that nobody means: typed errors, and no state left half changed."""

from __future__ import annotations

import pickle
from collections import UserDict
from types import MappingProxyType
from typing import Any

import pytest

import satchel

Message = dict[str, Any]


def plain_run(count: int = 30) -> list[Message]:
    """A goal and answers of about 120 tokens each."""
    answers = [
        {"role": "assistant", "content": f"line {number}: all is well\n" * 15}
        for number in range(count)
    ]
    return [{"role": "user", "content": "Watch the log."}, *answers]


@pytest.fixture
def working_set() -> satchel.WorkingSet:
    return satchel.Assembler("gpt-4o", budget=1_000).working_set(plain_run())


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "event",
    [
        None,
        3,
        "pin",
        [],
        {},
        {"kind": "pin", "index": nested(100_000)},
        {"kind": "pin", "index": {1}},
    ],
)
def test_what_is_no_event_is_a_typed_error(working_set: satchel.WorkingSet, event: Any) -> None:
    before = working_set.events
    with pytest.raises(satchel.InputError) as error:
        working_set.apply(event)
    assert error.value.code == "invalid_event"
    assert working_set.events == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"pointer": 3},
        {"pointer": "\ud800"},
        {"pattern": 3},
        {"pattern": "\udfff"},
        {"lines": 5},
        {"lines": ()},
        {"lines": (1,)},
        {"lines": (1, 2, 3)},
        {"lines": "ab"},
        {"lines": ("a", "b")},
        {"lines": (0, 1)},
        {"lines": (1, 2**80)},
        {"lines": (1.5, 2)},
        {"lines": (True, 2)},
    ],
)
def test_what_cannot_be_looked_for_is_a_typed_error(
    working_set: satchel.WorkingSet, arguments: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {"pointer": working_set.window().pages[0].pointer, **arguments}
    with pytest.raises(satchel.InputError) as error:
        working_set.page_in(**asked)
    assert error.value.code == "invalid_value"


def test_lines_may_be_a_list_and_beyond_the_end(working_set: satchel.WorkingSet) -> None:
    index = working_set.window().pages[0].pointer
    whole = working_set.page_in(index)
    assert working_set.page_in(index, lines=[1, 10**6]) == whole  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - JSON has no tuples
    assert working_set.page_in(index, lines=(5, 2)) == ""


@pytest.mark.parametrize("index", [-1, 2**70, "1", 1.0, True])
def test_what_is_no_index_is_a_typed_error(working_set: satchel.WorkingSet, index: Any) -> None:
    with pytest.raises(satchel.InputError):
        working_set.explain(index)
    with pytest.raises(satchel.InputError):
        working_set.pin(index)


@pytest.mark.parametrize("form", [dict, UserDict, MappingProxyType])
def test_one_message_of_any_form_is_appended(form: Any) -> None:
    working_set = satchel.Assembler("gpt-4o", budget=1_000).working_set()
    working_set.append(form({"role": "user", "content": "hello"}))
    assert len(working_set) == 1


def test_settings_that_an_event_changed_stay_changed(working_set: satchel.WorkingSet) -> None:
    working_set.apply({"kind": "settings", "budget": 600})
    window = working_set.window()
    assert window.tokens <= window.budget == 600
    changed = working_set.window(system="Be brief.")
    assert changed.budget == 600
    assert changed.tokens <= 600
    copied: satchel.WorkingSet = pickle.loads(pickle.dumps(working_set))
    assert copied.events == working_set.events
    assert copied.window() == working_set.window()


def test_the_settings_in_force_are_the_ones_reported(working_set: satchel.WorkingSet) -> None:
    policy = satchel.Policy.preset("token-window").model_dump(exclude_none=True)
    working_set.apply({"kind": "settings", "policy": policy, "counter": "chars4", "model": "gpt-4"})
    window = working_set.window()
    assert (window.report.policy, window.report.model, window.model) == (
        "token-window",
        "gpt-4",
        "gpt-4",
    )
    assert not window.exact
    assert window.tokens < window.tokens_upper <= window.budget == 1_000


def test_another_assembler_goes_on_with_its_own_settings(working_set: satchel.WorkingSet) -> None:
    working_set.apply({"kind": "settings", "budget": 600})
    larger = satchel.Assembler("gpt-4o", budget=800)
    window = larger.assemble(working_set.messages, events=working_set.events)
    assert window.budget == 800
    assert window.events[-1] == {"kind": "settings", "at": 31, "budget": 800}
