"""`satchel.allocate_budget`: the founding figures, and what is refused."""

from __future__ import annotations

import dataclasses
import math
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import InputError
from satchel.windows import TokenBudget, allocate_budget

SHARES = {
    "system_prompt": 0.10,
    "memory_summary": 0.10,
    "retrieved_context": 0.20,
    "recent_messages": 0.35,
    "output_reserve": 0.25,
}


def test_the_founding_figures() -> None:
    assert allocate_budget(128_000) == TokenBudget(
        system_prompt=12_800,
        memory_summary=12_800,
        retrieved_context=25_600,
        recent_messages=44_800,
        output_reserve=32_000,
        total=128_000,
    )
    assert allocate_budget(180).recent_messages == 62


@given(st.integers(0, 2**53))
def test_each_section_is_a_floored_float64_product(total: int) -> None:
    sections = dataclasses.asdict(allocate_budget(total))
    assert sections.pop("total") == total
    assert sections == {name: math.floor(total * share) for name, share in SHARES.items()}
    assert sum(sections.values()) <= total


@given(
    st.integers(0, 10**9),
    st.dictionaries(st.sampled_from(sorted(SHARES)), st.floats(0, 0.2)),
)
def test_shares_replace_the_default_by_name(total: int, shares: dict[str, float]) -> None:
    merged = SHARES | shares
    if sum(merged.values()) > 1:
        with pytest.raises(InputError, match="sum"):
            allocate_budget(total, shares=shares)
        return
    budget = allocate_budget(total, shares=shares)
    for name, share in merged.items():
        assert getattr(budget, name) == math.floor(total * share)


def test_frozen_slotted_and_pickled() -> None:
    budget = allocate_budget(1000)
    with pytest.raises(dataclasses.FrozenInstanceError):
        budget.total = 1  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue] - frozen
    assert not hasattr(budget, "__dict__")
    assert pickle.loads(pickle.dumps(budget)) == budget
    assert len({budget, allocate_budget(1000)}) == 1


@pytest.mark.parametrize(
    "shares",
    [
        {"recent_messages": 0.36},
        {"recent_messages": -0.1},
        {"recent_messages": math.nan},
        {"recent_messages": math.inf},
        {"recent_messages": "0.1"},
        {"recent_messages": None},
        {"recent_messages": 10**400},
        {"recent": 0.1},
        {3: 0.1},
        [0.1],
        0.5,
    ],
)
def test_shares_that_are_refused(shares: Any) -> None:
    with pytest.raises(InputError) as caught:
        allocate_budget(1000, shares=shares)
    assert caught.value.code == "invalid_value"


def test_an_unknown_section_is_named() -> None:
    with pytest.raises(InputError, match="'recent'"):
        allocate_budget(1000, shares={"recent": 0.1})


@pytest.mark.parametrize("total", [-1, 1.5, "9", None, True, 2**53 + 1])
def test_totals_that_are_refused(total: Any) -> None:
    with pytest.raises(InputError, match="total") as caught:
        allocate_budget(total)
    assert caught.value.code == "invalid_value"
    if isinstance(total, int) and not isinstance(total, bool):
        assert caught.value.value == total
