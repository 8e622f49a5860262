"""Faults that users met elsewhere: budgets that were passed, wrong settings, needless cuts.

Each test says what must hold where another program failed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import properties
import satchel
from turns import Message, WordEncoder, said, step, system, user, within, words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def bare_model() -> Iterator[str]:
    """A model of 150 tokens whose messages cost what is in them and their role."""
    satchel.models.register(
        "bare-words",
        window=150,
        encoding="chars4",
        message_overhead=0,
        name_overhead=0,
        request_overhead=0,
    )
    yield "bare-words"
    satchel.models.unregister("bare-words")


def said_words(messages: list[Message]) -> int:
    return sum(words(message["content"]) for message in messages)


# --- what does not fit ----------------------------------------------------------------------------


def test_what_does_not_fit_is_named() -> None:
    history = [system("rule " * 150), user("hello")]
    for policy in ("adaptive", "token-window"):
        with pytest.raises(satchel.BudgetError, match=r"message 0 has .* budget 60") as caught:
            within(60, history, policy=policy)
        assert isinstance(caught.value, ValueError)
        assert caught.value.index == 0
        assert caught.value.value is not None
        assert caught.value.value >= 150
        assert caught.value.limit == 60


def test_where_nothing_can_go_it_is_said_at_once() -> None:
    """A minimal history is no success of a compaction, and asking again changes nothing."""
    history = [system("s"), user("hello " * 20)]
    working_set = satchel.Assembler("gpt-4o", budget=50, counter=words).working_set(history)
    before = working_set.window()
    assert before.report.compactions == 0
    working_set.apply({"kind": "settings", "budget": 15})
    events = working_set.events
    for _ in range(3):
        with pytest.raises(satchel.BudgetError) as caught:
            working_set.window()
        assert caught.value.index == 1
        assert working_set.events == events
    working_set.apply({"kind": "settings", "budget": 50})
    after = working_set.window()
    assert after.messages == before.messages == history
    assert after.report.compactions == 0


def test_the_answer_has_its_reserve() -> None:
    full = satchel.models.get("gpt-4o")
    packer = satchel.Assembler("gpt-4o", budget=satchel.Budget(reserve_tokens=60_000))
    assert packer.budget == full.window - 60_000
    history = [system("s"), user("word " * 40_000), said("word " * 40_000), user("go on")]
    window = packer.assemble(history)
    assert window.tokens <= packer.budget
    assert window.messages[0] is history[0]
    assert properties.anchored(window.messages, history[:1] + history[-1:]) == []


def test_a_small_window_less_its_reserve_is_kept(bare_model: str) -> None:
    counter = satchel.counter(bare_model, tokenizer=WordEncoder())
    packer = satchel.Assembler(
        bare_model, budget=satchel.Budget(reserve_tokens=50), counter=counter
    )
    assert packer.budget == 100
    history = [system("s"), user("ask " * 60), said("reply " * 60), user("go")]
    window = packer.assemble(history)
    assert said_words(window.messages) <= window.tokens <= 100
    assert window.messages[0] is history[0]
    assert window.messages[-1] is history[-1]
    plain = satchel.token_window(history, 90, counter=words)
    assert said_words(plain) <= 90
    assert (plain[0], plain[-1]) == (history[0], history[-1])


def test_a_reserve_as_large_as_the_window_is_refused(bare_model: str) -> None:
    for reserve in (150, 151, 10_000):
        with pytest.raises(satchel.InputError, match="budget is 0, must be at least 1"):
            satchel.Assembler(bare_model, budget=satchel.Budget(reserve_tokens=reserve))


def test_what_fits_is_not_touched(bare_model: str) -> None:
    """Also above every mark that a compaction would go down to."""
    counter = satchel.counter(bare_model, tokenizer=WordEncoder())
    history = [
        user("good evening and how are you"),
        said("very well and what about you"),
        user("tell me which river flows through Lima"),
    ]
    full = counter.count_messages(history).total
    window = satchel.Assembler(bare_model, budget=full, counter=counter).assemble(history)
    assert window.messages == history
    assert window.tokens == full
    assert satchel.token_window(history, said_words(history), counter=words) == history
    tight = satchel.token_window(history, said_words(history) - 1, counter=words)
    assert tight[-1] is history[-1]


def test_impossible_settings_are_refused() -> None:
    nothing: list[Message] = []
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("budget", lambda: satchel.Assembler("gpt-4o", budget=0)),
        ("budget", lambda: satchel.Assembler("gpt-4o", budget=-5)),
        ("tokens", lambda: satchel.Budget(0)),
        ("reserve_tokens", lambda: satchel.Budget(reserve_tokens=-1)),
        (
            "max_messages",
            lambda: satchel.Policy(strategy="sliding-window", max_messages=-1),
        ),
        ("max_messages", lambda: satchel.Policy(strategy="sliding-window")),
        ("trigger", lambda: satchel.Policy(trigger=0.0)),
        ("trigger", lambda: satchel.Policy(trigger=1.5)),
        ("target", lambda: satchel.Policy(trigger=0.5, target=0.9)),
        ("recent_steps", lambda: satchel.Policy(recent_steps=-1)),
        ("max_messages", lambda: satchel.sliding_window(nothing, -1)),
        ("max_tokens", lambda: satchel.token_window(nothing, -1)),
        ("keep_last", lambda: satchel.prune_tool_outputs(nothing, keep_last=-1)),
        ("max_chars", lambda: satchel.prune_tool_outputs(nothing, max_chars=-1)),
    ]
    for field, build in wrong:
        with pytest.raises(ValueError, match=field):
            build()


# --- when room is made ----------------------------------------------------------------------------


def measured(usage: dict[str, Any], counted: int) -> satchel.Calibration:
    return satchel.Calibration().observe(counted, satchel.usage_tokens({"usage": usage}))


def compactions(learnt: satchel.Calibration, budget: int) -> int:
    """How often room is made for the same history, with what the provider reported of it."""
    history = [user("go"), *step("a", "row " * 300), said("reply " * 300), user("and?")]
    packer = satchel.Assembler("gpt-4o", budget=budget, counter=words)
    working_set = packer.working_set(history)
    working_set.apply(learnt.event())
    return working_set.window().report.compactions


COUNTED = 650
"""About what the history of `compactions` counts."""


def test_cached_tokens_are_counted_once() -> None:
    """A server that reports the whole prompt, and beside it how much of it was cached."""
    usage = {
        "prompt_tokens": 700,
        "completion_tokens": 50,
        "timings": {"cache_n": 690, "prompt_n": 10},
    }
    flat = {"prompt_tokens": 700, "completion_tokens": 50, "cache_n": 690, "prompt_n": 10}
    for record in (usage, flat):
        found = satchel.usage_tokens({"usage": record})
        assert (found.input, found.input + found.output) == (700, 750)
        learnt = measured(record, COUNTED)
        assert compactions(learnt, budget=1_000) == 0
        assert compactions(learnt, budget=500) > 0


def test_the_last_call_measures_the_context() -> None:
    """Not the sum over the calls of a tool loop."""

    def usage(read: int) -> dict[str, Any]:
        return {
            "input_tokens": 10,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": 20,
            "output_tokens": 9,
        }

    last = satchel.usage_tokens({"usage": usage(670)})
    assert (last.input, last.input + last.output) == (700, 709)
    learnt = satchel.Calibration()
    for counted, read in ((600, 610), (625, 640), (COUNTED, 670)):
        learnt = learnt.observe(counted, satchel.usage_tokens({"usage": usage(read)}))
    assert learnt.estimate(COUNTED) == 700
    assert compactions(learnt, budget=1_000) == 0
    assert compactions(learnt, budget=500) > 0
