"""A window as an object: its report is made when it is read, which nobody can tell."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, fields, replace

import pytest

import satchel
from satchel.testing import generate_chat


def window() -> satchel.Window:
    """A window after some compactions."""
    working_set = satchel.Assembler("gpt-4o", budget=6000).working_set(generate_chat(300))
    return working_set.window()


def test_report_is_made_once() -> None:
    one = window()
    assert one.report is one.report
    assert one.report.messages == 300
    assert one.report.compactions == len(one.report.rewrites) > 0


def test_report_is_that_of_its_own_window() -> None:
    working_set = satchel.Assembler("gpt-4o", budget=6000).working_set(generate_chat(300))
    first = working_set.window()
    working_set.append(generate_chat(400)[300:])
    second = working_set.window()
    assert (first.report.messages, second.report.messages) == (300, 400)
    assert first.report.compactions < second.report.compactions
    assert first.report.rewrites == second.report.rewrites[: len(first.report.rewrites)]
    assert sum(first.report.steps.values()) == 300


@pytest.mark.parametrize("is_read", [False, True])
def test_copies_are_equal(is_read: bool) -> None:
    one = window()
    if is_read:
        assert one.report.model == "gpt-4o"
    for other in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert other == one
        assert other.report == one.report
    changed = replace(one, tokens=1)
    assert changed != one
    assert changed.report is one.report


def test_every_field_is_there() -> None:
    one = window()
    for name in (field.name for field in fields(one)):
        assert getattr(one, name) is getattr(replace(one), name)


def test_nothing_else_is_there_and_nothing_can_be_set() -> None:
    one = window()
    with pytest.raises(AttributeError, match="'Window' object has no attribute 'reports'"):
        getattr(one, "reports")  # noqa: B009 - a checker would refuse it
    with pytest.raises(FrozenInstanceError):
        one.tokens = 1  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] - refused
    with pytest.raises(FrozenInstanceError):
        one.report = one.report  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] - refused
