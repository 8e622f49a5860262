"""Histories of chat messages, spelled briefly, and what every packed or mended one holds."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import properties
import satchel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from satchel import Window

Message = dict[str, Any]


def words(text: str) -> int:
    """A counter of the caller's own: words between white space."""
    return len(text.split())


class WordEncoder:
    """A tokenizer whose tokens are words, for a model whose messages have no overhead."""

    name = "words"

    @staticmethod
    def encode_ordinary(text: str, /) -> list[int]:
        """A number for each word."""
        return [len(word) for word in text.split()]


def user(text: str) -> Message:
    """A user's message."""
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    """An answer of the assistant."""
    return {"role": "assistant", "content": text}


def system(text: str) -> Message:
    """Instructions."""
    return {"role": "system", "content": text}


def call(*ids: str, arguments: str = "{}", name: str = "query") -> Message:
    """An assistant message with a call for each id."""
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": arguments}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(call_id: str, text: str) -> Message:
    """The result of a call."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def step(call_id: str, text: str) -> list[Message]:
    """A call and its result."""
    return [call(call_id), answer(call_id, text)]


def keep_last(count: int, messages: Sequence[Message], *, model: str = "gpt-4o") -> list[Message]:
    """The window of a policy that keeps the newest messages."""
    policy = satchel.Policy(strategy="sliding-window", max_messages=count)
    packer = satchel.Assembler(model, budget=10_000, policy=policy)
    return packer.assemble(messages, open_calls="synthesize").messages


def within(
    budget: int, messages: Sequence[Message], *, model: str = "gpt-4o", policy: str = "adaptive"
) -> list[Message]:
    """The window within a budget of words, overhead included."""
    packer = satchel.Assembler(model, budget=budget, counter=words, policy=policy)
    window = packer.assemble(messages, open_calls="synthesize")
    assert window.tokens <= budget
    return window.messages


def sound(messages: Sequence[Message]) -> None:
    """Asserts what every window and every repaired history holds."""
    assert properties.unpaired(messages) == []
    assert properties.adjacent(messages) == []
    assert properties.blank(messages) == []


def own(window: Iterable[Message]) -> list[Message]:
    """The messages without the note about what is gone."""
    return [message for message in window if "<satchel-index>" not in json.dumps(message)]


def alternates_visibly(messages: Sequence[Message]) -> bool:
    """Whether user and assistant take turns where calls and results are not counted."""
    views = map(properties.view, messages)
    roles = [
        seen.role
        for seen in views
        if seen.role in {"user", "assistant"} and not seen.calls and not seen.results
    ]
    return all(one != two for one, two in pairwise(roles))


def grows_at_its_end(before: Window, after: Window) -> bool:
    """Whether the earlier request is a prefix of the later one, byte for byte."""
    old, new = (
        json.dumps(window.messages, ensure_ascii=False).removesuffix("]")
        for window in (before, after)
    )
    return new.startswith(old)
