"""Random histories, counters and arguments for comparing with LangChain's own functions."""

from __future__ import annotations

import copy
import os
import random
from functools import partial
from typing import TYPE_CHECKING, Any

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    HumanMessageChunk,
    RemoveMessage,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)
from langchain_core.messages.utils import count_tokens_approximately

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

# Cases of each comparison; SATCHEL_PARITY_CASES=20000 before a release.
CASES = int(os.environ.get("SATCHEL_PARITY_CASES", "600"))

TYPES = ("human", "ai", "tool", "system", "function", "chat", "AIMessageChunk", "unknown")
CLASSES = (HumanMessage, AIMessage, ToolMessage, SystemMessage, BaseMessage, HumanMessageChunk)
NAMES = (None, None, None, "ann", "", "bob")
IDS = (None, None, "m1", "m2", "lc_run-1", "lc_run--2", "lc_x", "resp_9")
CALL_IDS = ("a", "b", "c")
TEXTS = (
    "",
    "word",
    "two words",
    "line one\nline two\nline three",
    "carriage\r\nreturn\r\n",
    "\n\n",
    "한국어 문장입니다",
    "emoji 🎉🎉",
    "half \ud83c of a pair",
    "long " * 40,
)


class Customer(HumanMessage):
    """A class of the caller's own."""


class Robot(AIMessage):
    """Another one."""


def text(rng: random.Random) -> str:
    return rng.choice(TEXTS)


def block(rng: random.Random) -> Any:
    kinds: list[Any] = [
        text(rng),
        {"type": "text", "text": text(rng)},
        {"type": "text", "text": text(rng)},
        {"type": "text"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
        {"type": "tool_use", "id": rng.choice(CALL_IDS), "name": "f", "input": {"x": 1}},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "audio", "base64": "BBBB"},
        {"odd": 1},
        {"type": "reasoning", "reasoning": text(rng)},
    ]
    if rng.random() < 0.01:
        return {"type": "text", "text": None}
    return rng.choice(kinds)


def content(rng: random.Random) -> Any:
    if rng.random() < 0.65:
        return text(rng)
    return [block(rng) for _ in range(rng.randrange(5))]


def calls(rng: random.Random) -> list[dict[str, Any]]:
    chosen = rng.sample(CALL_IDS, rng.randrange(1, 4))
    return [{"name": "f", "args": {"q": text(rng)}, "id": name} for name in chosen]


def made(classes: Sequence[Any], rng: random.Random, fields: dict[str, Any]) -> BaseMessage:
    found: BaseMessage = rng.choice(classes)(**fields)
    return found


def message(rng: random.Random) -> BaseMessage:  # noqa: C901, PLR0911 - a branch a class
    shared: dict[str, Any] = {
        "content": content(rng),
        "name": rng.choice(NAMES),
        "id": rng.choice(IDS),
    }
    if rng.random() < 0.1:
        shared["additional_kwargs"] = {rng.choice("kl"): rng.choice([1, "text", {"n": "s"}])}
    if rng.random() < 0.15:
        shared["response_metadata"] = {"model_provider": rng.choice("pq"), "finish": "stop"}
    draw = rng.random()
    if draw < 0.3:
        return made([HumanMessage, HumanMessage, HumanMessageChunk, Customer], rng, shared)
    if draw < 0.65:
        if rng.random() < 0.5:
            shared["tool_calls"] = calls(rng)
        if rng.random() < 0.05:
            broken = {"name": "f", "args": "{", "id": "a", "error": None}
            shared["invalid_tool_calls"] = [broken]
        if rng.random() < 0.3:
            tokens = rng.randrange(200)
            shared["usage_metadata"] = {
                "input_tokens": tokens,
                "output_tokens": 2,
                "total_tokens": tokens + 2,
            }
        return made([AIMessage, AIMessage, AIMessage, AIMessageChunk, Robot], rng, shared)
    if draw < 0.82:
        shared["tool_call_id"] = rng.choice(CALL_IDS)
        return made([ToolMessage, ToolMessage, ToolMessageChunk], rng, shared)
    if draw < 0.92:
        if rng.random() < 0.2:
            shared["additional_kwargs"] = {"__openai_role__": "developer"}
        return made([SystemMessage, SystemMessage, SystemMessageChunk], rng, shared)
    if draw < 0.95:
        shared["name"] = rng.choice("fg")
        return FunctionMessage(**shared)
    if draw < 0.99:
        return ChatMessage(role=rng.choice(["critic", "user"]), **shared)
    return RemoveMessage(id="m1")


def loose(rng: random.Random) -> Any:
    """A message in one of the other forms; seldom one that is none."""
    forms: list[Any] = [
        "plain",
        ("human", text(rng)),
        ("ai", text(rng)),
        ["system", text(rng)],
        {"role": "user", "content": text(rng)},
        {"role": "developer", "content": "rules"},
        {"type": "ai", "content": None},
        {"role": "tool", "content": "r", "tool_call_id": "a"},
        {
            "lc": 1,
            "type": "constructor",
            "id": ["langchain", "schema", "HumanMessage"],
            "kwargs": {"content": text(rng)},
        },
    ]
    if rng.random() < 0.03:
        forms = [
            {"content": "no role"},
            ("nobody", "x"),
            ("a", "b", "c"),
            7,
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{"}}],
            },
        ]
    return rng.choice(forms)


def history(rng: random.Random, most: int = 12) -> list[Any]:
    """A list of messages; valid steps, damaged ones and other forms mixed."""
    found: list[Any] = []
    is_tidy = rng.random() < 0.4
    if rng.random() < 0.4:
        found.append(SystemMessage(text(rng)))
    for _ in range(rng.randrange(most)):
        if is_tidy:
            found += step(rng)
        else:
            found.append(loose(rng) if rng.random() < 0.06 else message(rng))
    if found and rng.random() < 0.1:
        found.append(rng.choice(found))
    return found


def step(rng: random.Random) -> list[BaseMessage]:
    """A valid step."""
    draw = rng.random()
    if draw < 0.35:
        blocks: list[Any] = [{"type": "text", "text": text(rng)}, "more"]
        chosen: Any = rng.choice([text(rng), blocks])
        return [HumanMessage(chosen, name=rng.choice(NAMES))]
    if draw < 0.6:
        return [AIMessage(text(rng) or "ok")]
    made = AIMessage(text(rng), tool_calls=calls(rng))
    results = [
        ToolMessage(text(rng), tool_call_id=str(call["id"]))
        for call in rng.sample(made.tool_calls, len(made.tool_calls))
    ]
    return [made, *results]


def types(rng: random.Random) -> Any:
    """A fresh value for ``start_on`` and the like."""
    pool: list[Any] = [*TYPES, *CLASSES]
    draw = rng.random()
    if draw < 0.45:
        return None
    if draw < 0.65:
        return rng.choice(pool)
    chosen = rng.sample(pool, rng.randrange(4))
    if draw < 0.7:
        return iter(chosen)
    return rng.choice([list, tuple])(chosen)


class Model:
    """A model: its own method counts, although it can be called too."""

    def get_num_tokens_from_messages(self, messages: list[BaseMessage]) -> int:
        return sum(len(str(message.content)) for message in messages) + 3

    def __call__(self, _: Any) -> int:
        raise AssertionError


def _each(message: BaseMessage) -> int:
    return len(str(message.content)) + 1


# The annotation as an object, which the future import of this file would make a string.
_each.__annotations__["message"] = BaseMessage


def _characters(messages: Any) -> int:
    return sum(len(str(each.content)) for each in messages)


def _nothing(_: Any) -> None:
    return None


def _superadditive(messages: Any) -> int:
    return len(messages) ** 2


def _jagged(messages: Any) -> int:
    return (len(messages) * 7) % 5 + len(messages) // 2


def _fraction(messages: Any) -> float:
    return 1.5 * len(messages)


def _no_empty(messages: Any) -> int:
    if not messages:
        raise LookupError
    return 10 * len(messages)


def _failing(after: int) -> Callable[[Any], int]:
    asked = 0

    def count(messages: Any) -> int:
        nonlocal asked
        asked += 1
        if asked > after:
            raise OSError(after)
        return 5 * len(messages)

    return count


def counters(rng: random.Random) -> Callable[[], Any]:
    """A factory of one counter, so that each side gets a fresh one."""
    after = rng.randrange(1, 6)
    estimate: dict[str, Any] = {}
    if rng.random() < 0.5:
        estimate["chars_per_token"] = rng.choice([1, 2.5, 3.3, 4, 0, -4.0, float("nan")])
    if rng.random() < 0.5:
        estimate["extra_tokens_per_message"] = rng.choice([0, 0.1, 0.7, 3, -2])
    if rng.random() < 0.3:
        estimate["count_name"] = rng.choice([False, None, 1])
    if rng.random() < 0.3:
        estimate["tokens_per_image"] = rng.choice([0, 10, 0.5])
    if rng.random() < 0.15:
        estimate["use_usage_metadata_scaling"] = True
    if rng.random() < 0.2:
        estimate["tools"] = [{"name": "f", "description": "does"}]
    if rng.random() < 0.02:
        estimate["unknown"] = 1
    made: list[Callable[[], Any]] = [
        lambda: len,
        lambda: "approximate",
        lambda: "approximate",
        lambda: count_tokens_approximately,
        lambda: partial(count_tokens_approximately, **estimate),
        lambda: partial(count_tokens_approximately, **estimate),
        lambda: _each,
        Model,
        lambda: _superadditive,
        lambda: _jagged,
        lambda: _fraction,
        lambda: _no_empty,
        lambda: _failing(after),
        lambda: _characters,
    ]
    if rng.random() < 0.03:
        made = [lambda: "exact", lambda: 5, lambda: lambda: 0, lambda: _nothing]
    return rng.choice(made)


class Traced:
    """A list counter that remembers what it was asked about."""

    def __init__(self, inner: Callable[[Any], Any]) -> None:
        self.inner = inner
        self.asked: list[list[tuple[int, str]]] = []

    def __call__(self, messages: Sequence[BaseMessage]) -> Any:
        self.asked.append([(id(type(each)), str(each.content)) for each in messages])
        return self.inner(messages)


def budget(rng: random.Random, size: int) -> Any:
    return rng.choice(
        [0, -1, 1, 2.5, rng.randrange(1, 40), rng.randrange(1, 40 * size + 2), size, 10**6]
    )


def splitter(rng: random.Random) -> Any:
    def words(given: str) -> list[str]:
        return [word + " " for word in given.split(" ")]

    return rng.choice([None, None, None, words, list])


def outcome(call: Callable[[], Any], inputs: Sequence[Any]) -> tuple[Any, ...]:
    """What a call gives: its error, or for each message which input it is, or what it holds."""
    try:
        found = call()
    except Exception as error:  # noqa: BLE001 - the exception is what is compared
        return type(error), str(error).partition("\n")[0]
    if isinstance(found, (int, float)):
        return type(found), found
    return ("list", *(described(each, inputs) for each in found))


def described(each: BaseMessage, inputs: Sequence[Any]) -> Any:
    place = next((at for at, given in enumerate(inputs) if given is each), None)
    if place is not None:
        return place
    shares = any(
        isinstance(given, BaseMessage)
        and isinstance(given.content, list)
        and given.content is each.content
        for given in inputs
    )
    return type(each), repr(sorted(each.__dict__.items(), key=repr)), shares


def frozen(inputs: Sequence[Any]) -> str:
    return repr(inputs)


def cases(name: str, count: int = CASES) -> Iterator[random.Random]:
    """A generator of random numbers for each case; the same on every run."""
    for number in range(count):
        yield random.Random(f"{name} {number}")  # noqa: S311 - a case needs a seed, not a secret


def fresh(value: Any) -> Any:
    """A copy of an argument, iterators included; their rest is not touched."""
    return copy.copy(value)
