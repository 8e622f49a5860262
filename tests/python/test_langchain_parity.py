"""The functions of `satchel.langchain` do what LangChain's do, on random input."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

import pytest
from langchain_core import messages as theirs
from langchain_core.messages import utils
from langchain_core.prompt_values import ChatPromptValue
from langchain_core.runnables import RunnableLambda

from langchain_cases import (
    CALL_IDS,
    IDS,
    NAMES,
    Traced,
    budget,
    cases,
    counters,
    fresh,
    frozen,
    history,
    outcome,
    splitter,
    types,
)
from satchel import langchain as ours

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

PEER: Any = utils
OURS: Any = ours
ADDED = {
    "keep_steps",
    "pin",
    "tools",
    "reserve_tokens",
    "strict",
    "per_message_counter",
    "forward_counts",
    "keep_blocks",
    "report",
}


def compare(name: str, inputs: list[Any], options: dict[str, Any], note: object) -> None:
    before = frozen(inputs)
    given = {key: fresh(value) for key, value in options.items()}
    expected = outcome(lambda: getattr(PEER, name)(inputs, **options), inputs)
    found = outcome(lambda: getattr(OURS, name)(inputs, **given), inputs)
    assert found == expected, note
    assert frozen(inputs) == before, note


def test_trim_messages_gives_the_same() -> None:
    for number, rng in enumerate(cases("trim")):
        inputs = history(rng)
        make = counters(rng)
        options: dict[str, Any] = {
            "max_tokens": budget(rng, len(inputs)),
            "strategy": rng.choice(["last", "last", "last", "first", "first", "odd"]),
            "allow_partial": rng.random() < 0.4,
            "text_splitter": splitter(rng),
            "include_system": rng.random() < 0.3,
            "end_on": types(rng),
            "start_on": types(rng) if rng.random() < 0.6 else None,
        }
        given = {key: fresh(value) for key, value in options.items()}
        before = frozen(inputs)
        results: list[Any] = []
        for function, chosen in ((PEER, options), (OURS, given)):
            counter = make()
            traced = Traced(counter) if inspect.isfunction(counter) and number % 2 else None
            if traced is not None and not is_list_counter(counter):
                traced = None
            chosen["token_counter"] = traced or counter
            result = outcome(lambda: function.trim_messages(inputs, **chosen), inputs)  # noqa: B023 - run at once
            # What is recognised is counted natively, which nobody sees.
            asked = (
                None
                if traced is None or traced.inner is utils.count_tokens_approximately
                else traced.asked
            )
            results.append((result, asked))
        assert results[1] == results[0], (number, options, inputs)
        assert frozen(inputs) == before, number


def is_list_counter(counter: Callable[..., Any]) -> bool:
    """Whether a function takes a list."""
    parameters = list(inspect.signature(counter).parameters.values())
    return bool(parameters) and parameters[0].annotation is not theirs.BaseMessage


def test_trim_messages_agrees_at_every_budget() -> None:
    for rng in cases("every budget", 20):
        inputs = history(rng, 6)
        options = {
            "token_counter": rng.choice(["approximate", len]),
            "strategy": rng.choice(["last", "first"]),
            "allow_partial": rng.random() < 0.5,
        }
        for most in range(-1, 90, 5):
            compare("trim_messages", inputs, {**options, "max_tokens": most}, (options, most))


def test_count_tokens_approximately_gives_the_same() -> None:
    for number, rng in enumerate(cases("count")):
        inputs = history(rng)
        options: dict[str, Any] = {}
        if rng.random() < 0.5:
            rates = [1, 2.5, 3.3, 4, 10, 0, -4.0, float("nan"), None, "4", True]
            options["chars_per_token"] = rng.choice(rates)
        if rng.random() < 0.5:
            options["extra_tokens_per_message"] = rng.choice([0, 0.1, 0.7, 3, -2, None])
        if rng.random() < 0.3:
            options["count_name"] = rng.choice([True, False, None, 1])
        if rng.random() < 0.3:
            options["tokens_per_image"] = rng.choice([0, 10, 0.5, -3])
        if rng.random() < 0.3:
            options["use_usage_metadata_scaling"] = True
        if rng.random() < 0.3:
            options["tools"] = rng.choice([[], None, [{"name": "f"}], [{"name": "f"}] * 2, [len]])
        compare("count_tokens_approximately", inputs, options, (number, options, inputs))


def test_filter_messages_gives_the_same() -> None:
    for number, rng in enumerate(cases("filter")):
        inputs = history(rng)
        options: dict[str, Any] = {}
        for field, pool in (("names", NAMES), ("ids", IDS)):
            for word in ("include", "exclude"):
                if rng.random() < 0.2:
                    options[f"{word}_{field}"] = collection(rng, pool)
        for word in ("include", "exclude"):
            if rng.random() < 0.3:
                options[f"{word}_types"] = types(rng)
        if rng.random() < 0.5:
            options["exclude_tool_calls"] = rng.choice(
                [True, False, 1, "ab", (), frozenset("a"), collection(rng, CALL_IDS)]
            )
        compare("filter_messages", inputs, options, (number, options, inputs))


def collection(rng: random.Random, pool: tuple[Any, ...]) -> Any:
    chosen = rng.sample(pool, rng.randrange(len(pool)))
    if rng.random() < 0.1:
        return "ann m1"
    return rng.choice([list, tuple, set])(chosen)


def test_merge_message_runs_gives_the_same() -> None:
    for number, rng in enumerate(cases("merge")):
        inputs = history(rng, 8)
        if rng.random() < 0.5:
            # Longer runs: each message comes with its neighbours of the same kind.
            kinds = [each for each in inputs if isinstance(each, theirs.BaseMessage)]
            inputs = sorted(kinds, key=lambda each: each.type)
        options = {"chunk_separator": rng.choice(["\n", "", " | "])} if rng.random() < 0.5 else {}
        compare("merge_message_runs", inputs, options, (number, options, inputs))


@pytest.mark.parametrize("name", ["trim_messages", "filter_messages", "merge_message_runs"])
def test_without_messages_a_runnable(name: str) -> None:
    options: dict[str, Any] = {}
    if name == "trim_messages":
        options = {"max_tokens": 2, "token_counter": len}
    inputs = [theirs.HumanMessage("a"), theirs.HumanMessage("b"), theirs.AIMessage("c")]
    found: Any = getattr(OURS, name)(None, 1, 2, **options)
    assert type(found) is RunnableLambda
    expected: Any = getattr(PEER, name)(**options)
    assert found.get_name() == expected.get_name() == name
    assert cast("Any", found).invoke(inputs) == expected.invoke(inputs)
    with pytest.raises(TypeError):
        getattr(OURS, name)(inputs, 1, **options)
    # Nothing is checked before it is invoked.
    assert getattr(OURS, name)(unknown=1) is not None


@pytest.mark.parametrize(
    "name",
    ["trim_messages", "filter_messages", "merge_message_runs", "count_tokens_approximately"],
)
def test_the_signature_is_theirs_and_ours_after_it(name: str) -> None:
    def parameters(module: Any) -> list[tuple[str, Any, Any]]:
        found = inspect.signature(getattr(module, name)).parameters.values()
        return [(each.name, each.kind, each.default) for each in found]

    peers = parameters(PEER)
    found = parameters(OURS)
    assert found[: len(peers)] == peers
    # A new keyword of theirs must not get the name of one of ours.
    assert {each[0] for each in found[len(peers) :]} == (
        ADDED if name == "trim_messages" else set()
    )


def test_other_forms_of_messages() -> None:
    inputs = [theirs.HumanMessage("a" * 50), theirs.AIMessage("b")]
    prompt = ChatPromptValue(messages=inputs)
    options: dict[str, Any] = {"max_tokens": 8, "token_counter": "approximate"}
    for form in (prompt, iter(inputs), tuple(inputs), "two"):
        given = iter(inputs) if not isinstance(form, (tuple, str, ChatPromptValue)) else form
        assert OURS.trim_messages(given, **options) == PEER.trim_messages(form, **options)
    assert OURS.count_tokens_approximately(inputs) == PEER.count_tokens_approximately(inputs)
