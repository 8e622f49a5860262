"""What `satchel.langchain` does beyond LangChain: whole steps, pins, overhead, strictness."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
    utils,
)
from langchain_core.messages.utils import count_tokens_approximately

import satchel
from langchain_cases import cases, history, step, types
from satchel.langchain import TrimReport, atrim_messages, trim_messages
from satchel.langchain.exact import as_chat
from satchel.langchain.steps import whole_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTER = satchel.counter("gpt-4o")
ESTIMATE: Any = "approximate"
TRIM: Any = trim_messages
peer_trim: Any = getattr(utils, "trim_messages")  # noqa: B009 - its type is not known


def tool_run(calls: int = 3) -> list[BaseMessage]:
    found: list[BaseMessage] = [SystemMessage("rules"), HumanMessage("goal", id="goal")]
    for number in range(calls):
        call = {"name": "f", "args": {"n": number}, "id": f"c{number}"}
        found.append(AIMessage("", tool_calls=[call]))
        found.append(ToolMessage(f"result {number} " * 10, tool_call_id=f"c{number}"))
    return found


def is_whole(messages: Sequence[BaseMessage]) -> bool:
    return sum(map(len, whole_steps(messages))) == len(messages)


def exact_count(messages: Sequence[BaseMessage]) -> int:
    chat = [as_chat(message) for message in messages]
    return COUNTER.count_messages(chat, dialect="openai").total


def test_whole_steps_are_what_lint_accepts() -> None:
    for rng in cases("lint", 300):
        messages = convert_to_messages(
            [each for _ in range(rng.randrange(1, 7)) for each in step(rng)]
        )
        if rng.random() < 0.6:
            del messages[rng.randrange(len(messages))]
        chat = [as_chat(message) for message in messages]
        errors = [
            each
            for each in satchel.lint(chat, "openai")
            if each.severity == "error" and each.code != "not_json"
        ]
        assert is_whole(messages) == (errors == []), (messages, errors)


def _squared(messages: Any) -> int:
    return len(messages) ** 2


def _jagged(messages: Any) -> int:
    return (len(messages) * 7) % 5 + len(messages)


def test_keep_steps_is_whole_fits_and_is_the_plain_window_where_that_is_whole() -> None:
    same = 0
    for number, rng in enumerate(cases("steps", 3 * 300)):
        is_tidy = rng.random() < 0.7
        steps = [each for _ in range(rng.randrange(9)) for each in step(rng)]
        inputs = steps if is_tidy else [m for m in history(rng) if isinstance(m, BaseMessage)]
        # What LangChain cannot count, nobody trims.
        inputs = [each for each in inputs if each.type != "remove" and "None}" not in str(each)]
        counter = rng.choice([len, "approximate", COUNTER, _squared, _jagged])
        options: dict[str, Any] = {
            "max_tokens": rng.randrange(1, 20) if rng.random() < 0.5 else rng.randrange(400),
            "token_counter": counter,
            "strategy": rng.choice(["last", "first"]),
            "end_on": rng.choice([None, "human", ("human", "tool"), types(rng)]),
            "allow_partial": rng.random() < 0.3,
        }
        if options["strategy"] == "last":
            options["start_on"] = rng.choice([None, "human", "ai"])
            options["include_system"] = rng.random() < 0.4
        for name in ("end_on", "start_on"):
            if not isinstance(options.get(name), (str, type, tuple, list)):
                options[name] = None
        plain = TRIM(inputs, **options)
        kept = TRIM(inputs, **options, keep_steps=True)
        note = (number, options, inputs)
        assert is_whole(kept), note
        has_system = options.get("include_system") and kept[:1] == inputs[:1]
        known: dict[Any, Any] = {ESTIMATE: count_tokens_approximately, COUNTER: exact_count}
        count: Any = known.get(counter, counter)
        if not has_system:
            assert not kept or count(kept) <= options["max_tokens"], note
        if is_whole(plain) and (not plain or count(plain) <= options["max_tokens"]):
            assert kept == plain, note
            same += 1
    assert same > 300


def test_our_counter_keeps_as_much_as_fits() -> None:
    for rng in cases("exact", 200):
        inputs = [each for _ in range(rng.randrange(1, 12)) for each in step(rng)]
        most = rng.randrange(exact_count(inputs) + 20)
        for strategy in ("last", "first"):
            kept = TRIM(inputs, max_tokens=most, token_counter=COUNTER, strategy=strategy)
            size = len(kept)
            assert not kept or exact_count(kept) <= most
            if size < len(inputs):
                more = inputs[: size + 1] if strategy == "first" else inputs[-size - 1 :]
                assert exact_count(more) > most
            expected = inputs[:size] if strategy == "first" else inputs[len(inputs) - size :]
            assert all(one is other for one, other in zip(kept, expected, strict=True))


def test_an_estimate_s_margin_is_within_the_budget() -> None:
    claude = satchel.counter("claude-sonnet-4-5")
    inputs = tool_run(20)
    kept = trim_messages(inputs, max_tokens=300, token_counter=claude)
    found = claude.count_messages([as_chat(each) for each in kept], dialect="openai")
    assert found.total < found.upper <= 300


def is_goal(message: BaseMessage) -> bool:
    return message.id == "goal"


def test_pins_stay_with_their_steps() -> None:
    inputs = tool_run()
    pins: list[Any] = [["goal"], [1], "goal", is_goal]
    for pin in pins:
        kept = TRIM(inputs, max_tokens=4, token_counter=len, keep_steps=True, pin=pin)
        assert kept == [inputs[1], *inputs[-2:]]
    kept = TRIM(inputs, max_tokens=4, token_counter=len, keep_steps=True, pin=[-5])
    assert kept == [inputs[2], inputs[3], *inputs[-2:]]
    both = TRIM(
        inputs, max_tokens=4, token_counter=len, include_system=True, keep_steps=True, pin=["goal"]
    )
    assert both == [*inputs[:2], *inputs[-2:]]


@pytest.mark.parametrize("pin", [[99], ["nobody"]])
def test_a_pin_that_is_not_there(pin: list[Any]) -> None:
    with pytest.raises(satchel.InputError, match="pin"):
        TRIM(tool_run(), max_tokens=4, token_counter=len, pin=pin)


def test_a_pinned_result_without_its_call() -> None:
    inputs = tool_run()[3:]
    with pytest.raises(satchel.InputError, match="pinned message 0 is in no whole step"):
        TRIM(inputs, max_tokens=4, token_counter=len, pin=[0], keep_steps=True)


def test_tools_and_reserve_come_off_the_budget() -> None:
    inputs = tool_run(9)
    tools: list[Any] = [{"name": "f", "description": "does much " * 5, "parameters": {}}]
    overhead = count_tokens_approximately([], tools=tools)
    kept = trim_messages(inputs, max_tokens=200 + overhead, token_counter=ESTIMATE, tools=tools)
    assert kept == trim_messages(inputs, max_tokens=200, token_counter=ESTIMATE)
    kept = trim_messages(inputs, max_tokens=200, token_counter=ESTIMATE, reserve_tokens=50)
    assert kept == trim_messages(inputs, max_tokens=150, token_counter=ESTIMATE)
    definition: Any = {"type": "function", "function": {"name": "f", "parameters": {}}}
    reports: list[TrimReport] = []
    kept = trim_messages(
        inputs, max_tokens=200, token_counter=COUNTER, tools=[definition], report=reports.append
    )
    chat = [as_chat(each) for each in kept]
    whole = COUNTER.count_messages(chat, tools=[definition], dialect="openai").total
    assert whole == reports[0].tokens + reports[0].overhead <= 200
    with pytest.raises(satchel.InputError, match="len counts messages"):
        trim_messages(inputs, max_tokens=20, token_counter=len, tools=tools)


def test_strict_refuses_what_cannot_fit() -> None:
    inputs = tool_run()
    with pytest.raises(satchel.BudgetError) as caught:
        TRIM(inputs, max_tokens=1, token_counter=len, keep_steps=True, strict=True)
    assert (caught.value.index, caught.value.value, caught.value.limit) == (6, 2, 1)
    with pytest.raises(satchel.BudgetError, match="what must stay has 3 tokens, budget 2"):
        TRIM(inputs, max_tokens=2, token_counter=len, pin=[0, 1, 2], strict=True)
    with pytest.raises(satchel.BudgetError, match="budget 0"):
        TRIM(inputs, max_tokens=0, token_counter=len, include_system=True, strict=True)
    assert len(TRIM(inputs, max_tokens=3, token_counter=len, strict=True)) == 3


def test_report_tells_what_is_kept() -> None:
    inputs = [HumanMessage("a\n" * 50), HumanMessage("b")]
    found: list[TrimReport] = []
    kept = trim_messages(
        inputs,
        max_tokens=20,
        token_counter=ESTIMATE,
        allow_partial=True,
        report=found.append,
    )
    assert len(kept) == 2
    tokens = count_tokens_approximately(kept)
    assert found == [
        TrimReport(messages=2, kept=(0, 1), partial=0, tokens=tokens, budget=20, overhead=0)
    ]


def test_counters_as_told_not_as_guessed() -> None:
    def count_one(message: Any) -> int:
        assert isinstance(message, BaseMessage)
        return 1

    inputs = tool_run()
    kept = TRIM(inputs, max_tokens=3, token_counter=count_one, per_message_counter=True)
    assert kept == inputs[-3:]
    seen: list[list[BaseMessage]] = []

    def count_all(messages: Any) -> int:
        seen.append(list(messages))
        return len(messages)

    kept = TRIM(inputs, max_tokens=3, token_counter=count_all, forward_counts=True)
    assert kept == inputs[-3:]
    orders = [[inputs.index(each) for each in asked] for asked in seen]
    assert all(order == sorted(order) for order in orders)


def test_keep_blocks_keeps_a_list() -> None:
    block = {"type": "text", "text": "one\ntwo\nthree\nfour " * 3, "cache_control": {"type": "x"}}
    inputs = [HumanMessage([block])]
    options: dict[str, Any] = {
        "max_tokens": 12,
        "token_counter": "approximate",
        "allow_partial": True,
    }
    plain = TRIM(inputs, **options)[0].content
    kept = TRIM(inputs, **options, keep_blocks=True)[0].content
    assert isinstance(plain, str)
    assert kept == [{**block, "text": plain}]
    assert inputs[0].content == [block]


def test_the_async_twin() -> None:
    inputs = tool_run()

    async def count_all(messages: Any) -> int:
        await asyncio.sleep(0)
        return len(messages)

    async def count_one(message: Any) -> int:
        assert isinstance(message, BaseMessage)
        return 1

    async def run() -> None:
        plain = trim_messages(inputs, max_tokens=3, token_counter=len)
        assert await atrim_messages(inputs, max_tokens=3, token_counter=len) == plain
        assert await atrim_messages(inputs, max_tokens=3, token_counter=count_all) == plain
        assert (
            await atrim_messages(
                inputs, max_tokens=3, token_counter=count_one, per_message_counter=True
            )
            == plain
        )
        with pytest.raises(ValueError, match="strategy"):
            await atrim_messages(inputs, max_tokens=3, token_counter=count_all, strategy="odd")

    asyncio.run(run())


def test_a_long_history_costs_few_counts() -> None:
    asked = 0

    def count(messages: Any) -> int:
        nonlocal asked
        asked += 1
        return len(messages)

    TRIM(tool_run(500), max_tokens=30, token_counter=count, keep_steps=True)
    assert asked <= 13


def test_import_needs_no_langchain_and_its_absence_names_the_extra() -> None:
    program = (
        "import sys; import satchel.langchain; "
        "assert 'langchain_core' not in sys.modules; "
        "sys.modules['langchain_core'] = None\n"
        "try: satchel.langchain.trim_messages([], max_tokens=1, token_counter=len)\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run(  # noqa: S603 - the program is written here
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "extra langchain" in done.stdout


def test_random_cuts_of_a_tool_history_are_never_invalid() -> None:
    rng = random.Random(5)  # noqa: S311 - budgets need a seed, not a secret
    inputs = tool_run(40)
    for _ in range(300):
        most = rng.randrange(1, 90)
        kept = TRIM(inputs, max_tokens=most, token_counter=len, keep_steps=True)
        chat = [as_chat(each) for each in kept]
        assert [v for v in satchel.lint(chat, "openai") if v.severity == "error"] == []


# --- the short way --------------------------------------------------------------------------------


def test_counts_follow_what_a_message_says_now() -> None:
    messages: Any = [*tool_run(30), HumanMessage("the newest")]
    options: dict[str, Any] = {"max_tokens": 200, "token_counter": ESTIMATE}
    changes: list[Any] = [
        lambda: setattr(messages[-1], "content", "longer " * 40),
        lambda: setattr(messages[-2], "content", [{"type": "text", "text": "in blocks"}]),
        lambda: messages[-2].content.append("and more " * 20),
        lambda: messages[-3].tool_calls[0]["args"].update(n="x" * 200),
        lambda: messages.append(AIMessage("done")),
        lambda: messages.pop(0),
        lambda: messages.__setitem__(5, HumanMessage("another")),
    ]
    for change in [lambda: None, *changes]:
        change()
        found = TRIM(messages, **options)
        expected = peer_trim(messages, **options)
        assert len(found) == len(expected) > 0
        assert all(a is b for a, b in zip(found, expected, strict=True))


def outcome(trim: Any, messages: list[BaseMessage], **options: Any) -> Any:
    """The window as positions, or what was raised."""
    try:
        found = trim(messages, **options)
    except Exception as error:  # noqa: BLE001 - whatever LangChain raises
        return type(error)
    return [next(at for at, one in enumerate(messages) if one is each) for each in found]


@pytest.mark.parametrize("content", [None, 7, [{"type": "text", "text": None}], "goal"])
@pytest.mark.parametrize("anew", [False, True])
def test_a_message_far_away_that_cannot_be_counted_is_noticed(content: Any, anew: bool) -> None:
    messages = tool_run(30)
    options: dict[str, Any] = {"max_tokens": 60, "token_counter": ESTIMATE}
    before = TRIM(messages, **options)
    assert before
    fields: dict[str, Any] = dict(vars(messages[1]), content=content)
    if anew:
        # What was remembered of the message is not the message any more.
        object.__setattr__(messages[1], "__dict__", fields)
    else:
        cast("Any", messages[1]).content = content
    expected = outcome(peer_trim, messages, **options)
    assert outcome(TRIM, messages, **options) == expected
    assert isinstance(expected, list) or content != "goal"


ARGUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), ARGUMENTS, max_size=4))
def test_calls_count_as_they_write_themselves(args: dict[str, Any]) -> None:
    calls = [{"name": "f", "args": args, "id": "c"}]
    messages: list[BaseMessage] = [HumanMessage("goal"), AIMessage("text", tool_calls=calls)]
    count = count_tokens_approximately(messages)
    for budget in (count - 1, count):
        options: dict[str, Any] = {"max_tokens": budget, "token_counter": ESTIMATE}
        assert TRIM(messages, **options) == peer_trim(messages, **options)


def test_a_budget_beyond_all_measure_holds_everything() -> None:
    messages = [HumanMessage("a"), HumanMessage("b")]
    counter = satchel.counter("gpt-4o")
    assert trim_messages(messages, max_tokens=10**400, token_counter=counter) == messages
