"""A log that goes on in another dialect: windows, indices, pages, rebuilds."""

from __future__ import annotations

import copy
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel.testing import generate_history, histories

if TYPE_CHECKING:
    from satchel.testing import Dialect

Message = dict[str, Any]
DIALECTS: tuple[Dialect, ...] = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
MODELS = {
    "openai": "gpt-4o",
    "openai-responses": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}


def errors(window: satchel.Window) -> list[str]:
    found = satchel.lint(window.messages, window.dialect, system=window.system, tools=window.tools)
    return [str(violation) for violation in found if violation.severity == "error"]


def dumped(messages: list[Any]) -> str:
    return json.dumps(messages, sort_keys=True, default=repr)


def change(dialect: str) -> Message:
    return {"kind": "settings", "dialect": dialect, "model": MODELS[dialect]}


def text_of(messages: list[Any]) -> str:
    return json.dumps(messages, ensure_ascii=False, default=repr)


@st.composite
def logs(draw: st.DrawFn) -> list[tuple[Dialect, list[Message]]]:
    """Histories of two or three dialects, one behind the other."""
    first: Dialect = draw(st.sampled_from(DIALECTS))
    parts: list[tuple[Dialect, list[Message]]] = [(first, draw(histories(first, max_steps=10)))]
    for _ in range(draw(st.integers(1, 2))):
        others: list[Dialect] = [dialect for dialect in DIALECTS if dialect != parts[-1][0]]
        dialect: Dialect = draw(st.sampled_from(others))
        parts.append((dialect, draw(histories(dialect, max_steps=6))))
    return parts


@given(data=st.data(), parts=logs())
def test_windows_are_valid_and_counted_in_every_dialect(
    data: st.DataObject, parts: list[tuple[Dialect, list[Message]]]
) -> None:
    first = parts[0][0]
    before = copy.deepcopy(parts)
    budget = data.draw(st.integers(150, 4_000))
    packer = satchel.Assembler(MODELS[first], dialect=first, budget=budget)
    working_set = packer.working_set()
    messages: list[Message] = []
    window: satchel.Window | None = None
    for dialect, part in parts:
        if dialect != working_set.dialect:
            working_set.apply(change(dialect))
        messages += part
        for message in part:
            working_set.append(message)
        assert len(working_set) == len(working_set.messages) == len(messages)
        try:
            window = working_set.window()
        except satchel.BudgetError:
            window = None
            continue
        assert window.dialect == dialect
        assert window.report.model == MODELS[dialect]
        assert errors(window) == []
        counted = satchel.counter(MODELS[dialect]).count_messages(
            window.messages, system=window.system, dialect=dialect
        )
        assert (counted.total, counted.upper) == (window.tokens, window.tokens_upper)
        assert window.tokens_upper <= window.budget
        rows = working_set.explain()
        assert [row.first for row in rows[1:]] == [row.end for row in rows[:-1]]
        assert sum(row.end - row.first for row in rows) == len(messages)
        assert sum(window.report.steps.values()) == len(rows)
        for level, steps in window.report.steps.items():
            assert steps == sum(row.level == level for row in rows)
    assert parts == before
    for other in (
        pickle.loads(pickle.dumps(working_set)),
        packer.working_set(messages, events=working_set.events),
    ):
        if other.dialect != working_set.dialect:  # the assembler's own settings hold again
            assert other.dialect == first
            continue
        if window is not None:
            again = other.window()
            assert dumped(again.messages) == dumped(window.messages)
            assert (again.tokens, again.system) == (window.tokens, window.system)
            assert other.explain() == working_set.explain()


@given(source=st.sampled_from(DIALECTS), target=st.sampled_from(DIALECTS), data=st.data())
def test_an_assembler_of_another_model_takes_over_the_log(
    source: Dialect, target: Dialect, data: st.DataObject
) -> None:
    messages = data.draw(histories(source, max_steps=8))
    budget = 1_000_000
    first = satchel.Assembler(MODELS[source], dialect=source, budget=budget).assemble(messages)
    packer = satchel.Assembler(MODELS[target], dialect=target, budget=budget)
    window = packer.assemble(messages, events=first.events)
    assert (window.dialect, errors(window)) == (target, [])
    later = data.draw(histories(target, max_steps=3))
    longer = packer.assemble([*messages, *later], events=window.events)
    assert longer.events == window.events
    assert longer.messages[: len(window.messages)] == window.messages or target in (
        "gemini",
        "bedrock",
    )
    grown = packer.working_set(messages, events=window.events)
    grown.append(later)
    assert dumped(grown.window().messages) == dumped(longer.messages)


def test_foreign_reasoning_does_not_travel() -> None:
    messages: list[Message] = [
        {"role": "user", "content": "Run it."},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Just run it.", "signature": "c2ln"},
                {"type": "tool_use", "id": "t1", "name": "run", "input": {"a": 1}},
            ],
        },
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "It ran."}],
        },
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Thanks."},
    ]
    tools = [{"name": "run", "description": "Runs.", "input_schema": {"type": "object"}}]
    packer = satchel.Assembler("claude-sonnet-4-5", budget=5_000)
    working_set = packer.working_set(messages, system="Be brief.", tools=tools)
    working_set.apply(change("openai"))
    window = working_set.window()
    assert "thinking" not in text_of(window.messages)
    assert "c2ln" not in text_of(window.messages)
    assert window.messages[1]["tool_calls"][0]["function"]["arguments"] == '{"a":1}'
    assert window.messages[2] == {"role": "tool", "tool_call_id": "t1", "content": "It ran."}
    assert window.system == "Be brief."
    assert window.tools[0]["function"]["name"] == "run"
    kwargs = window.as_kwargs()
    assert kwargs["messages"][0] == {"role": "system", "content": "Be brief."}
    assert working_set.messages == messages


def test_instructions_go_where_the_dialect_wants_them_and_come_back() -> None:
    messages = [
        {"role": "system", "content": "Never touch the migrations."},
        {"role": "user", "content": "Find the leak."},
    ]
    working_set = satchel.Assembler("gpt-4o", budget=5_000).working_set(messages)
    working_set.apply(change("anthropic"))
    window = working_set.window(system="Answer in Korean.")
    blocks = [block["text"] for block in window.system]
    assert blocks == ["Never touch the migrations.", "Answer in Korean."]
    assert window.messages == messages[1:]
    assert window.report.system_tokens > 0
    working_set.apply(change("openai"))
    window = working_set.window()
    counted = satchel.counter("gpt-4o").count_messages(
        window.messages, system=window.system, dialect="openai"
    )
    assert counted.total == window.tokens
    assert "Never touch the migrations." in json.dumps(window.as_kwargs())
    assert "Answer in Korean." in json.dumps(window.as_kwargs(), ensure_ascii=False)


def long_log() -> tuple[satchel.WorkingSet, list[Message]]:
    messages = generate_history(120, seed=5)
    packer = satchel.Assembler("gpt-4o", budget=6_000)
    while messages[-1]["role"] == "assistant" and messages[-1].get("tool_calls"):
        messages.pop()
    return packer.working_set(messages), messages


def test_what_was_paged_out_before_can_be_read_after() -> None:
    working_set, messages = long_log()
    before = working_set.window()
    old = {page.pointer: page.message for page in before.pages}
    texts = {pointer: working_set.page_in(pointer) for pointer in old}
    working_set.apply(change("anthropic"))
    after = working_set.window()
    index = after.pages[0]
    assert index.message is None
    listing = working_set.page_in(index.pointer)
    for pointer, message in old.items():
        if message is not None:
            assert working_set.page_in(pointer) == texts[pointer]
    # The index still lists what was gone before.
    assert set(texts[index.pointer].splitlines()) <= set(listing.splitlines())
    some = texts[index.pointer].splitlines()[1].split()[4]
    assert working_set.page_in(index.pointer, pattern=some).count("\n") == 1
    assert working_set.page_in(index.pointer, lines=(1, 1)).count("\n") == 1
    for page in after.pages[1:]:
        assert page.message is not None
        assert page.message < len(messages)
        assert working_set.page_in(page.pointer)
    # Levels only fall.
    rank = {"gone": 0, "stub": 1, "trimmed": 2, "verbatim": 3}
    packer = satchel.Assembler("gpt-4o", budget=6_000)
    rows = packer.working_set(messages).explain()
    for row, now in zip(rows, working_set.explain(), strict=True):
        assert rank[now.level] <= rank[row.level]
        assert (row.first, row.end) == (now.first, now.end)
    columns = working_set.columns
    assert columns.level.tolist() == [
        columns.level_names.index(row.level) for row in working_set.explain()
    ]
    assert columns.tokens.dtype == "uint32"
    assert not columns.tokens.flags.writeable


def test_pins_hold_across_the_change() -> None:
    working_set, messages = long_log()
    rows = working_set.explain()
    gone = next(row for row in rows if row.level == "gone")
    kept = next(row for row in rows if row.level == "verbatim" and row.role == "assistant")
    working_set.pin(gone.first)
    working_set.apply(change("anthropic"))
    working_set.pin(kept.first)
    found = working_set.explain(gone.first)[0]
    assert (found.level, found.first) == ("verbatim", gone.first)
    still_gone = next(row for row in working_set.explain() if row.level == "gone")
    with pytest.raises(satchel.InputError) as error:
        working_set.pin(still_gone.first)
    assert (error.value.code, error.value.index) == ("invalid_event", still_gone.first)
    for _ in range(12):
        working_set.append({"role": "assistant", "content": "Looking on. " * 300})
        working_set.append({"role": "user", "content": "Go on."})
    working_set.window()
    assert working_set.explain(gone.first)[0].level == "verbatim"
    assert working_set.explain(kept.first)[0].level == "verbatim"
    assert working_set.window().report.compactions > 0
    assert len(working_set) == len(messages) + 24
    with pytest.raises(satchel.InputError, match="no message 999"):
        working_set.explain(999)


def test_errors_name_the_callers_index() -> None:
    working_set, messages = long_log()
    working_set.apply(change("anthropic"))
    with pytest.raises(satchel.InputError) as error:
        working_set.append([{"role": "user", "content": "x"}, {"role": "user", "content": 5 + 1j}])
    place = len(messages) + 1
    assert error.value.index == place
    assert f"message {place}" in str(error.value)
    assert len(working_set) == len(messages)
    working_set.append({"role": "user", "content": "word " * 9_000})
    with pytest.raises(satchel.BudgetError) as refused:
        working_set.window()
    assert refused.value.index == len(messages)


CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"dialect": "smoke-signals"}, "unknown_dialect"),
        ({"dialect": 7}, "invalid_event"),
        ({"dialect": "anthropic", "page_key": "another"}, "invalid_event"),
        ({"dialect": "anthropic", "at": 7}, "invalid_event"),
        ({"dialect": "anthropic", "wish": 1}, "invalid_event"),
        ({"dialect": "anthropic", "policy": {"trigger": 7}}, "invalid_value"),
        ({"dialect": "anthropic", "model": "mystery-1"}, "unknown_model"),
        ({"dialect": "anthropic", "counter": "abacus"}, "unknown_encoding"),
    ],
)
def test_a_wrong_change_changes_nothing(event: Message, code: str) -> None:
    working_set = satchel.Assembler("gpt-4o", budget=900).working_set(
        [{"role": "user", "content": "Hello"}], system="Be brief."
    )
    before = working_set.window()
    with pytest.raises(satchel.SatchelError) as error:
        working_set.apply({"kind": "settings", **event})
    assert error.value.code == code
    assert working_set.window() == before
    assert working_set.dialect == "openai"


def test_the_dialect_stays_while_calls_are_open() -> None:
    working_set = satchel.Assembler("gpt-4o", budget=900).working_set(
        [{"role": "user", "content": "Hello"}, CALL]
    )
    with pytest.raises(satchel.InputError) as error:
        working_set.apply(change("anthropic"))
    assert error.value.code == "open_calls"
    working_set.append({"role": "tool", "tool_call_id": "c", "content": "42"})
    working_set.apply(change("anthropic"))
    assert working_set.window().messages[-1]["content"][0]["tool_use_id"] == "c"


def test_a_model_brings_its_counter_and_its_limit() -> None:
    messages = [{"role": "user", "content": "Hello"}]
    working_set = satchel.Assembler("gpt-4.1").working_set(messages)
    working_set.apply({"kind": "settings", "model": "gpt-4"})
    window = working_set.window()
    limit = satchel.models.get("gpt-4").input_budget()
    assert (window.model, window.budget) == ("gpt-4", limit)
    assert window.tokens == satchel.counter("gpt-4").count_messages(messages).total
    own = satchel.Assembler("gpt-4o", counter="chars4", budget=500).working_set(messages)
    own.apply({"kind": "settings", "model": "gpt-4", "budget": 700})
    assert own.window().tokens == satchel.counter("chars4").count_messages(messages).total
    assert own.window().budget == 700


def test_ids_that_come_again_are_told_apart() -> None:
    exchange: list[Message] = [
        {"role": "user", "parts": [{"text": "Look."}]},
        {"role": "model", "parts": [{"functionCall": {"name": "look", "args": {}}}]},
        {
            "role": "user",
            "parts": [{"functionResponse": {"name": "look", "response": {"output": "42"}}}],
        },
        {"role": "model", "parts": [{"text": "42"}]},
    ]
    packer = satchel.Assembler("gemini-2.5-pro", dialect="gemini", budget=9_000)
    packer = satchel.Assembler("gemini-2.5-pro", dialect="gemini", budget=9_000, on_damage="raise")
    working_set = packer.working_set([*copy.deepcopy(exchange), *copy.deepcopy(exchange)])
    working_set.append({"role": "user", "parts": [{"text": "Thanks."}]})
    working_set.apply(change("anthropic"))
    window = working_set.window()
    assert errors(window) == []
    ids: list[str] = [
        block["id"]
        for message in window.messages
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_use"
    ]
    assert len(set(ids)) == len(ids) == 2
