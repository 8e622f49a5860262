"""Selection by relevance: the evidence comes back where recency has lost it."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel.policy import Policy
from satchel.testing import generate_chat, histories

if TYPE_CHECKING:
    from satchel.testing import Dialect

Message = dict[str, Any]
DIALECTS: tuple[Dialect, ...] = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
FACTS = {
    "Which city did Mira move to after the flood?": "After the flood Mira moved to Lisbon.",
    "What does the heron on the old bridge eat?": "The heron on our bridge eats eels.",
    "할머니의 생신은 언제인가요?": "할머니의 생신은 음력 삼월 초이틀이에요.",
    "How much was the blue kayak?": "I paid 412 euros for the blue kayak, paddles included.",
}


def dialogue() -> list[Message]:
    """A long conversation with a few facts, each far from its end."""
    history = generate_chat(600, seed=3, chars=300)
    for number, fact in enumerate(FACTS.values()):
        history[100 + 60 * number] = {"role": "user", "content": fact}
    return history


def asked(policy: str | Policy, question: str, dialect: Dialect = "openai") -> satchel.Window:
    packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=6_000, policy=policy)
    return packer.assemble([*dialogue(), {"role": "user", "content": question}])


def texts(window: satchel.Window) -> list[str]:
    return [str(message["content"]) for message in window.messages]


@pytest.mark.parametrize("question", FACTS)
def test_finds_the_evidence_where_recency_does_not(question: str) -> None:
    fact = FACTS[question]
    assert not any(fact in text for text in texts(asked("token-window", question)))
    window = asked("relevant", question)
    assert window.tokens <= window.budget
    shown = texts(window)
    # Right before the question, and the best of it last.
    assert shown[-1] == question
    assert fact in shown[-2]
    assert fact in shown[-2][-400:]


def test_a_query_selects_and_changes_no_level() -> None:
    packer = satchel.Assembler("gpt-4o", budget=6_000, policy="relevant")
    working_set = packer.working_set(dialogue())
    levels: list[list[str]] = []
    for question, fact in FACTS.items():
        window = working_set.window(query=question)
        assert any(fact in text for text in texts(window))
        assert window.tokens <= 6_000
        counted = packer.counter.count_messages(window.messages, dialect="openai")
        assert counted.total == window.tokens
        levels.append([step.level for step in working_set.explain()])
    assert all(one == levels[0] for one in levels)
    plain = satchel.Assembler("gpt-4o", budget=6_000).working_set(dialogue())
    one, other = plain.window(query="kayak"), plain.window()
    assert one.messages == other.messages


@pytest.mark.parametrize("dialect", DIALECTS)
@given(data=st.data())
def test_valid_within_budget_and_equal_to_a_rebuild(dialect: Dialect, data: st.DataObject) -> None:
    messages = data.draw(histories(dialect, max_steps=16))
    before = copy.deepcopy(messages)
    budget = data.draw(st.integers(150, 3_000))
    share = data.draw(st.floats(0.1, 0.9))
    policy = Policy(name="mine", select="relevant", relevant=share)
    packer = satchel.Assembler("gpt-4o", dialect=dialect, budget=budget, policy=policy)
    query = data.draw(st.none() | st.text(max_size=30))
    working_set = packer.working_set()
    window: satchel.Window | None = None
    for message in messages:
        working_set.append(message)
        try:
            window = working_set.window(query=query, open_calls="synthesize")
        except satchel.BudgetError:
            window = None
            continue
        assert window.tokens <= budget
        counted = packer.counter.count_messages(window.messages, dialect=dialect)
        assert counted.total == window.tokens
        found = satchel.lint(window.messages, dialect)
        assert [one.code for one in found if one.severity == "error"] == []
    assert messages == before
    if window is not None:
        rebuilt = packer.assemble(messages, query=query, open_calls="synthesize")
        assert rebuilt.messages == window.messages
