"""Faults that users met elsewhere: calls and results that were torn apart.

Each test says what must hold of a history that broke another program.
"""

from __future__ import annotations

import copy
from typing import Any, Literal

import pytest

import properties
import satchel
from satchel.repairing import PLACEHOLDERS
from turns import Message, answer, call, keep_last, own, said, sound, step, system, user, within

MODES: tuple[Literal["synthesize", "drop", "flatten"], ...] = ("synthesize", "drop", "flatten")


def spoken(role: str, *parts: Message) -> Message:
    """A content of Gemini."""
    return {"role": role, "parts": list(parts)}


# --- where a history is cut -----------------------------------------------------------------------


def test_a_cut_does_not_begin_with_a_result() -> None:
    history = [
        user("reserve a room"),
        *step("r1", "room 12 is free"),
        user("good"),
        said("done"),
        user("and dinner"),
        said("gladly"),
    ]
    for count in range(1, len(history) + 1):
        newest = satchel.sliding_window(history, count)
        assert 0 < len(newest) <= count
        assert properties.unpaired(newest) == []
        assert properties.in_order(newest, history) == []
        assert newest == history[-len(newest) :]
        window = keep_last(count, history)
        sound(window)
        assert window
        assert properties.in_order(own(window), history) == []


def test_a_window_has_no_more_messages_than_its_policy_says() -> None:
    history = [system("brief"), user("audit the module")]
    for number in range(6):
        history += step(str(number), f"finding {number}")
    for count in range(4, len(history) + 1):
        window = keep_last(count, history)
        # What is hard may be more: the goal, the newest step, and the note between them.
        assert len(window) - 1 <= count
        assert (len(own(window)) == len(window)) == (count >= len(history) - 1)
        sound(window)


def test_a_window_of_the_policy_is_used_up() -> None:
    history = [user("audit the module")]
    for number in range(6):
        history += [said(f"finding {number}"), user(f"and {number}?")]
    for count in range(3, len(history)):
        window = keep_last(count, history)
        assert len(window) == count
        assert own(window) == [history[0], *history[len(history) - count + 2 :]]


def test_a_result_of_plain_text_belongs_to_its_call() -> None:
    history = [
        system("be brief"),
        user("look it up"),
        *step("k", "nothing but words"),
        user("so?"),
        said("that is all"),
    ]
    for count in range(1, len(history)):
        for window in (keep_last(count, history), satchel.sliding_window(history, count)):
            assert properties.unpaired(window) == []
            assert window[0] is history[0]
            assert len(window) > 1


def test_a_window_holds_whole_turns() -> None:
    history: list[Message] = []
    for turn in range(4):
        history += [user(f"ask {turn}"), *step(f"q{turn}", f"row {turn}"), said(f"reply {turn}")]
    for count in range(1, len(history)):
        window = keep_last(count, history)
        sound(window)
        assert window
        assert properties.starts_with_user(window) == []
        # The one-call function keeps the newest messages; repaired, its window starts a turn too.
        mended = satchel.repair(satchel.sliding_window(history, count), "openai")
        assert properties.starts_with_user(mended) == []
        assert properties.unpaired(mended) == []


def test_an_unfinished_run_stays() -> None:
    history = [
        system("rules"),
        user("yesterday"),
        said("old reply"),
        user("today"),
        *step("t", "row"),
    ]
    window = keep_last(1, history)
    sound(window)
    assert window[0] is history[0]
    assert window[-3:] == history[-3:]
    assert window[-1] is history[-1]
    assert properties.anchored(window, history) == []


def test_a_run_of_pairs_after_one_request_can_be_shortened() -> None:
    history = [user("audit the module")]
    for number in range(5):
        history += step(str(number), f"finding {number} " * 20)
    for count in (4, 5, 6):
        window = keep_last(count, history)
        sound(window)
        assert len(window) <= count
        assert properties.starts_with_user(window) == []
        assert window[-1] is history[-1]
        mended = satchel.repair(satchel.sliding_window(history, count - 1), "openai")
        sound(mended)
        assert len(mended) <= count
        assert properties.starts_with_user(mended) == []
        assert mended[-1] is history[-1]


def test_parallel_results_move_together() -> None:
    pair = [call("a", "b"), answer("a", "long " * 300), answer("b", "short")]
    history = [user("both, please"), *pair, said("ready"), user("compare them")]
    for budget in range(60, 400, 20):
        for policy in ("adaptive", "token-window"):
            window = within(budget, history, policy=policy)
            sound(window)
            assert properties.anchored(window, history) == []
            ids = [one for message in window for one in properties.view(message).results]
            assert ids in ([], ["a", "b"])


def test_the_old_single_call_is_a_pair() -> None:
    calling = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    history = [
        user("ask"),
        calling,
        {"role": "function", "name": "f", "content": "row"},
        said("so"),
        user("next"),
    ]
    for count in range(1, 6):
        window = keep_last(count, history)
        sound(window)
        assert properties.starts_with_user(window) == []
        mended = satchel.repair(satchel.sliding_window(history, count), "openai")
        sound(mended)
        assert properties.starts_with_user(mended) == []


# --- calls that wait ------------------------------------------------------------------------------


def waiting(pays: str) -> list[Message]:
    """A call that a user has yet to confirm, and chat behind it."""
    return [
        spoken("user", {"text": "pay the rent"}),
        spoken("model", {"functionCall": {"id": pays, "name": "confirm", "args": {"sum": 900}}}),
        spoken("user", {"text": "hold on, how much was it? " * 10}),
        spoken("model", {"text": "nine hundred " * 10}),
        spoken("user", {"text": "hm"}),
        spoken("model", {"text": "shall I?"}),
    ]


def test_a_pinned_call_that_waits_is_never_moved_out() -> None:
    history = waiting("c-7")
    policy = satchel.Policy(strategy="sliding-window", max_messages=2)
    packer = satchel.Assembler("gemini-2.5-pro", budget=10_000, policy=policy)
    working_set = packer.working_set(history)
    working_set.pin(1)
    for turn in range(8):
        working_set.append(spoken("user", {"text": f"wait {turn}"}))
        window = working_set.window().messages
        assert [one for message in window for one in properties.view(message).calls] == ["c-7"]
        assert [one for one in satchel.lint(window, "gemini") if one.severity == "error"] == []
        working_set.append(spoken("model", {"text": "take your time"}))
    assert working_set.window().report.compactions > 0


def test_a_call_that_waits_has_an_answer_in_every_window() -> None:
    history = [
        user("pay it"),
        call("p"),
        user("how much is it?"),
        said("ten"),
        user("hm"),
        said("?"),
    ]
    window = within(400, history)
    sound(window)
    assert [properties.view(message).calls for message in window].count(["p"]) == 1
    assert properties.says(window, PLACEHOLDERS[0]) == 1
    # The newest step's own call may still be answered: it is not made up without being asked for.
    with pytest.raises(satchel.InputError) as caught:
        satchel.Assembler("gpt-4o", budget=400).assemble(history[:2])
    assert caught.value.code == "open_calls"


# --- damaged histories ----------------------------------------------------------------------------


def test_an_orphan_beside_words_leaves_the_words() -> None:
    calling: Message = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "f", "name": "read", "input": {}}],
    }
    mixed = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "f", "content": "the file"},
            {"type": "text", "text": "do not forget the docs"},
        ],
    }
    history: list[Message] = [user("job"), said("first I plan"), calling, mixed, said("fine")]
    assert satchel.repair(history, "anthropic") == history
    del history[2]
    for mode in MODES:
        repaired = satchel.repair(history, "anthropic", mode=mode)
        sound(repaired)
        assert properties.says(repaired, "do not forget the docs") == 1
        assert repaired[:2] == history[:2]
        assert properties.says(repaired, "the file") == (mode != "drop")


def test_broken_pairs_heal_and_good_ones_stay() -> None:
    good = step("good", "fine")
    history = [
        user("one"),
        call("lost"),
        user("two"),
        *good,
        said("second"),
        answer("stranger", "late row"),
        user("three"),
    ]
    before = copy.deepcopy(history)
    for mode in MODES:
        repaired = satchel.repair(history, "openai", mode=mode)
        assert history == before
        sound(repaired)
        assert all(any(one is kept for one in repaired) for kept in good)
        assert satchel.repair(repaired, "openai", mode=mode) == repaired
        assert repaired[-1] is history[-1]
        assert properties.says(repaired, PLACEHOLDERS[0]) == (mode == "synthesize")


def test_nothing_comes_between_a_batch_and_its_results() -> None:
    batch = [call("a", "b"), answer("a", "one"), answer("b", "two")]
    note = user("[note] the user prefers tea")
    history = [user("start"), batch[0], note, *batch[1:], user("and then")]
    repaired = satchel.repair(history, "openai")
    packed = satchel.Assembler("gpt-4o", budget=1_000).assemble(history).messages
    for mended in (repaired, packed):
        sound(mended)
        assert mended[1:4] == batch
        assert any(message is note for message in mended)


@pytest.mark.parametrize("dialect", ["openai", "anthropic"])
def test_every_cut_of_a_history_mends(dialect: str) -> None:
    """Every prefix and suffix of a run with parallel calls, text and thoughts."""
    history: list[Any] = [system("rules"), user("go")]
    for turn in range(3):
        ids = [f"{turn}a", f"{turn}b"]
        history += [call(*ids), *(answer(one, f"row {one}") for one in ids), said("so")]
        history += [user(f"next {turn}")]
    if dialect == "anthropic":
        history = satchel.convert(history, "openai", "anthropic").messages
    for cut in range(len(history)):
        for part in (history[cut:], history[: cut + 1]):
            repaired = satchel.repair(part, dialect)
            found = [one for one in satchel.lint(repaired, dialect) if one.severity == "error"]
            assert found == [], cut
            assert properties.unpaired(repaired) == [], cut
