"""A row per error code: what raises it, as which class, with which context."""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel import _core
from satchel.reading import read_transcripts

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]

USER: Message = {"role": "user", "content": "Which gate does my flight leave from?"}
CALL: Message = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "gate", "arguments": "{}"}}
    ],
}
LONG: Message = {"role": "user", "content": "And the next flight? " * 100}
RESULT: Message = {"role": "tool", "tool_call_id": "call_1", "content": "B12"}


def assemble(*messages: Message, budget: int = 1_000, **options: Any) -> None:
    satchel.Assembler("gpt-4o", budget=budget).assemble(list(messages), **options)


def nested(levels: int) -> Message:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    return {"role": "user", "content": [{"type": "novelty", "value": value}]}


def junk_counter() -> None:
    def count(_text: str) -> Any:
        return "many"

    satchel.Assembler("gpt-4o", budget=1_000, counter=count).assemble([USER])


def two_threads() -> None:
    caught: list[satchel.SatchelError] = []

    def append() -> None:
        try:
            working_set.append([USER])
        except satchel.SatchelError as error:
            caught.append(error)

    def count(text: str) -> int:
        other = threading.Thread(target=append)
        other.start()
        other.join()
        return len(text)

    working_set = satchel.Assembler("gpt-4o", budget=1_000, counter=count).working_set()
    working_set.append([USER])
    raise caught[0]


def strict(*messages: object) -> object:
    return satchel.Assembler("gpt-4o", budget=1_000, on_damage="raise").assemble(messages)


def other_dialect() -> None:
    assembler = satchel.Assembler("gpt-4o", budget=1_000)
    events = assembler.assemble([USER]).events
    change = {"kind": "settings", "at": 1, "dialect": "anthropic"}
    assembler.assemble([USER, CALL, RESULT], events=[*events, change])


@dataclass(frozen=True)
class Row:
    """One way to meet one error."""

    code: str
    cls: type[satchel.SatchelError]
    trigger: Callable[[], object]
    index: int | None = None


ROWS = [
    Row("invalid_message", satchel.InputError, lambda: assemble(USER, {"content": "x"}), 1),
    Row("too_deep", satchel.InputError, lambda: assemble(USER, nested(200)), 1),
    Row("orphan_result", satchel.InputError, lambda: strict(USER, RESULT), 1),
    Row("duplicate_result", satchel.InputError, lambda: strict(USER, CALL, RESULT, RESULT), 3),
    Row("open_calls", satchel.InputError, lambda: assemble(USER, CALL), 1),
    Row("unknown_dialect", satchel.InputError, lambda: satchel.lint([USER], "smoke-signals")),
    Row("dialect_changed", satchel.InputError, other_dialect),
    Row("unknown_model", satchel.InputError, lambda: satchel.models.get("mystery-1")),
    Row(
        "unknown_encoding",
        satchel.InputError,
        lambda: satchel.counter("gpt-4o", tokenizer="o999k_base"),
    ),
    Row("invalid_value", satchel.InputError, lambda: satchel.allocate_budget(-1)),
    Row(
        "invalid_event",
        satchel.InputError,
        lambda: assemble(USER, events=[{"kind": "wish", "at": 0}]),
    ),
    Row("counter_failed", satchel.InputError, junk_counter),
    Row(
        "over_budget",
        satchel.BudgetError,
        lambda: assemble(USER, CALL, RESULT, LONG, budget=100),
        3,
    ),
    Row(
        "page_not_found",
        satchel.PageNotFoundError,
        lambda: satchel.Assembler("gpt-4o").working_set([USER]).page_in("0" * 32),
    ),
    Row("concurrent_use", satchel.UsageError, two_threads),
    Row("invalid_file", satchel.InputError, lambda: list(read_transcripts("no such transcript"))),
]

BUILT_IN: dict[type[satchel.SatchelError], type[Exception]] = {
    satchel.InputError: ValueError,
    satchel.BudgetError: ValueError,
    satchel.PageNotFoundError: LookupError,
    satchel.CompactionError: RuntimeError,
    satchel.EmbeddingError: RuntimeError,
    satchel.EngineError: RuntimeError,
    satchel.ExtractionError: RuntimeError,
    satchel.GuardError: RuntimeError,
    satchel.ReplyError: RuntimeError,
    satchel.StoreError: Exception,
    satchel.SummaryError: RuntimeError,
    satchel.UsageError: RuntimeError,
}


def test_every_code_has_a_row_and_its_class() -> None:
    assert {row.code: row.cls for row in ROWS} == _core.error_codes()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.code)
def test_row(row: Row) -> None:
    with pytest.raises(satchel.SatchelError) as caught:
        row.trigger()
    error = caught.value
    assert (type(error), error.code) == (row.cls, row.code)
    if row.index is not None:
        assert error.index == row.index
        assert str(row.index) in str(error)
    # lower case without a full stop, and none of the conversation's text
    assert str(error)[0].islower()
    assert not str(error).endswith(".")
    assert "flight" not in str(error)


@pytest.mark.parametrize("cls", BUILT_IN)
def test_errors_keep_their_context_and_their_built_in_base(
    cls: type[satchel.SatchelError],
) -> None:
    error = cls("message 7 has 9000 tokens", code="x", index=7, value=9_000, limit=8_192)
    again = pickle.loads(pickle.dumps(error))
    for one in (error, again):
        assert isinstance(one, satchel.SatchelError)
        assert isinstance(one, BUILT_IN[cls])
        assert (type(one), str(one)) == (cls, "message 7 has 9000 tokens")
        assert (one.code, one.index, one.value, one.limit) == ("x", 7, 9_000, 8_192)


def test_the_table_of_classes_is_the_whole_tree() -> None:
    assert set(satchel.SatchelError.__subclasses__()) == set(BUILT_IN)
