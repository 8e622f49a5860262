"""Faults that users met elsewhere: a prompt cache that was lost by rewriting what was sent.

Each test says what must hold where another program failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import satchel
from turns import grows_at_its_end, said, step, system, user, words

if TYPE_CHECKING:
    from satchel import Window


@pytest.mark.parametrize("budget", [100_000, 400])
@pytest.mark.parametrize("policy", ["adaptive", "token-window"])
def test_requests_grow_at_their_end(policy: str, budget: int) -> None:
    """Every call of a loop, results that grow old included; until room has to be made."""
    packer = satchel.Assembler("gpt-4o", budget=budget, counter=words, policy=policy)
    working_set = packer.working_set([user("the goal")])
    before: Window | None = None
    for turn in range(12):
        calls, results = step(f"t{turn}", "row " * 40)
        for part in ([user(f"q {turn}")], [calls, results], [said("a"), user("and?")]):
            working_set.append(part)
            window = working_set.window()
            assert window.tokens <= budget
            if before is not None and before.report.compactions == window.report.compactions:
                assert grows_at_its_end(before, window)
            before = window
        working_set.append(said("b"))
    assert before is not None
    assert (before.report.compactions == 0) == (budget > 1_000)


def test_one_pass_changes_the_prefix_once() -> None:
    """Shortening and dropping happen in one go, which makes room for more than the next call."""
    history = [system("s"), user("a"), *step("p", "row " * 60)]
    for turn in range(8):
        history += [said(f"reply {turn} " * 30), user(f"ask {turn} " * 20)]
    working_set = satchel.Assembler("gpt-4o", budget=300, counter=words).working_set()
    before: Window | None = None
    rewrites = calls = 0
    for message in history:
        if message["role"] == "assistant":  # a reply: the window before it was sent
            window = working_set.window()
            assert window.tokens <= 300
            made = window.report.compactions - (before.report.compactions if before else 0)
            assert made in {0, 1}
            assert before is None or made == 1 or grows_at_its_end(before, window)
            # Asking twice changes nothing.
            twice = working_set.window()
            assert twice.messages == window.messages
            assert twice.report.compactions == window.report.compactions
            rewrites += made
            calls += 1
            before = window
        working_set.append(message)
    assert 0 < rewrites < calls / 2
    assert working_set.window().messages[-1] is history[-1]


def test_a_history_packed_at_once_changes_it_once_too() -> None:
    history = [
        system("s"),
        user("a"),
        *step("p", "row " * 30),
        said("reply " * 60),
        user("ask " * 60),
        said("reply " * 60),
        user("now"),
    ]
    packer = satchel.Assembler("gpt-4o", budget=150, counter=words)
    earlier = packer.assemble(history[:-2])
    window = packer.assemble(history, events=earlier.events)
    assert window.tokens <= 150
    assert window.messages[-1] is history[-1]
    assert window.report.compactions - earlier.report.compactions <= 1
    assert packer.assemble(history).messages == window.messages
