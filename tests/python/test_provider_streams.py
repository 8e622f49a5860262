"""However a server cuts a reply into events, what is collected is the reply."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import model_wire
import satchel
from model_wire import STREAMED, WHOLE, Say
from provider_models import CLASSES, DIALECTS

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
VALUES = st.recursive(st.none() | st.booleans() | st.integers() | TEXTS, st.lists, max_leaves=4)
ARGUMENTS = st.dictionaries(TEXTS, VALUES, max_size=3)
EACH = pytest.mark.parametrize("dialect", DIALECTS)


@st.composite
def answers(draw: st.DrawFn) -> Say:
    """A text, or calls, or both; at least a letter."""
    count = draw(st.integers(0, 3))
    calls = tuple((f"call_{at}", "read", draw(ARGUMENTS)) for at in range(count))
    return Say(draw(TEXTS) + ("" if calls else "a"), calls)


def events_of(answer: Say, dialect: str, piece: int) -> Iterator[Any]:
    """The events as dicts, in pieces of so many characters."""
    before, model_wire.PIECE = model_wire.PIECE, piece
    try:
        text = "".join(STREAMED[dialect](answer))
    finally:
        model_wire.PIECE = before
    for line in text.split("\n"):
        if line.startswith("data: {"):
            yield json.loads(line.removeprefix("data: "))


@EACH
@given(answer=answers(), piece=st.integers(1, 50))
def test_what_is_collected_is_the_reply(dialect: str, answer: Say, piece: int) -> None:
    api = CLASSES[dialect, True]._api
    collector = api.collector()
    for event in events_of(answer, dialect, piece):
        collector.take(event)
    streamed, whole = api.read(collector.whole()), api.read(WHOLE[dialect](answer))
    assert streamed == whole
    assert streamed.text == answer.text
    assert [(call.id, call.name, call.arguments) for call in streamed.calls] == list(answer.calls)


@EACH
@given(answer=answers(), piece=st.integers(1, 50), share=st.floats(0, 1))
def test_no_part_of_a_stream_is_taken_for_all_of_it(
    dialect: str, answer: Say, piece: int, share: float
) -> None:
    api = CLASSES[dialect, True]._api
    events = list(events_of(answer, dialect, piece))
    shown = events[: int(len(events) * share)]
    collector = api.collector()
    for event in shown:
        collector.take(event)
    # Only the figures of the usage, and the line that says that all is said, may be missing.
    end = {"openai": 2, "openai-responses": 1, "anthropic": 1}[dialect]
    if len(shown) > len(events) - end:
        assert api.read(collector.whole()) == api.read(WHOLE[dialect](answer))
        return
    with pytest.raises(satchel.ReplyError) as caught:
        collector.whole()
    assert caught.value.code == "reply_broken_off"


@EACH
def test_open_calls_are_those_without_a_result(dialect: str) -> None:
    api = CLASSES[dialect, True]._api
    answer = Say("", (("a", "read", {}), ("b", "read", {})))
    with satchel.sync.open_session(
        "memory://", session_id=f"open {dialect}", model="gpt-4o", dialect=dialect
    ) as session:
        session.append({"role": "user", "content": "Read."})
        session.record(WHOLE[dialect](answer))
        messages = session.messages()
    found = [call.id for message in messages for call in api.calls_in(message)]
    assert found == ["a", "b"]
    assert [api.answered_in(message) for message in messages] == [frozenset()] * len(messages)
