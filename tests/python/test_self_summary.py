"""Working memory at the end of answers: read, hidden from users, harmless when malformed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.self_summary import CLOSE, OPEN, BlockStripper, SelfSummary, instruction, parse, strip

if TYPE_CHECKING:
    from satchel.summarize import Language

STATE = SelfSummary(
    goal=("move the archive",), progress=("listed 41 files",), open_points=(), decisions=("keep x",)
)


LANGUAGES: tuple[Language, ...] = ("en", "ko")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_block_is_read_back(language: Language) -> None:
    answer = f"All listed.\n\n{STATE.render(language)}"
    assert parse(answer) == STATE
    assert strip(answer) == "All listed."


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_model_is_told_is_a_block_that_can_be_read(language: Language) -> None:
    told = parse(instruction(language))
    assert told is not None
    assert all((told.goal, told.progress, told.open_points, told.decisions))


@pytest.mark.parametrize(
    "answer",
    [
        "No block at all.",
        f"Cut off {OPEN}\nGoal:\n- never ends",
        f"Empty {OPEN}{CLOSE}",
        f"No headings {OPEN}\nhello\n{CLOSE}",
        f"Far too long {OPEN}\nGoal:\n- {'x' * 9000}\n{CLOSE}",
        f"The wrong way round {CLOSE} Goal: x {OPEN}",
    ],
)
def test_malformed_blocks_change_nothing(answer: str) -> None:
    assert parse(answer, STATE) is STATE
    assert parse(answer) is None


def test_the_last_block_counts_and_all_are_hidden() -> None:
    answer = f"a {OPEN}\nGoal:\n- old\n{CLOSE} b {OPEN}\nGoal:\n- new\n{CLOSE}"
    found = parse(answer)
    assert found is not None
    assert found.goal == ("new",)
    assert strip(answer) == "a  b"


@given(
    st.lists(st.sampled_from(["text ", OPEN, CLOSE, "<", "Goal:\n- x\n", "<working", "\n"])),
    st.data(),
)
def test_streaming_shows_what_the_whole_answer_would(
    pieces: list[str], data: st.DataObject
) -> None:
    answer = "".join(pieces)
    whole = BlockStripper()
    expected = whole.feed(answer) + whole.finish()
    stripper, shown, rest = BlockStripper(), "", answer
    while rest:
        size = data.draw(st.integers(1, len(rest)))
        shown += stripper.feed(rest[:size])
        rest = rest[size:]
    assert shown + stripper.finish() == expected


def test_nothing_of_a_block_is_shown_while_it_streams() -> None:
    stripper = BlockStripper()
    shown = [stripper.feed(letter) for letter in f"Hi {OPEN}secret{CLOSE} there"]
    assert "".join(shown) + stripper.finish() == "Hi  there"
