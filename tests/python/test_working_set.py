"""The working set against input that nobody means: typed errors, and no state left half changed."""

from __future__ import annotations

import pickle
from collections import UserDict
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest

import satchel

Message = dict[str, Any]


def plain_run(count: int = 30) -> list[Message]:
    """A goal and answers of about 120 tokens each."""
    answers = [
        {"role": "assistant", "content": f"line {number}: all is well\n" * 15}
        for number in range(count)
    ]
    return [{"role": "user", "content": "Watch the log."}, *answers]


@pytest.fixture
def working_set() -> satchel.WorkingSet:
    return satchel.Assembler("gpt-4o", budget=1_000).working_set(plain_run())


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "event",
    [
        None,
        3,
        "pin",
        [],
        {},
        {"kind": "pin", "index": nested(100_000)},
        {"kind": "pin", "index": {1}},
    ],
)
def test_what_is_no_event_is_a_typed_error(working_set: satchel.WorkingSet, event: Any) -> None:
    before = working_set.events
    with pytest.raises(satchel.InputError) as error:
        working_set.apply(event)
    assert error.value.code == "invalid_event"
    assert working_set.events == before


@pytest.mark.parametrize(
    "arguments",
    [
        {"pointer": 3},
        {"pointer": "\ud800"},
        {"pattern": 3},
        {"pattern": "\udfff"},
        {"lines": 5},
        {"lines": ()},
        {"lines": (1,)},
        {"lines": (1, 2, 3)},
        {"lines": "ab"},
        {"lines": ("a", "b")},
        {"lines": (0, 1)},
        {"lines": (1, 2**80)},
        {"lines": (1.5, 2)},
        {"lines": (True, 2)},
    ],
)
def test_what_cannot_be_looked_for_is_a_typed_error(
    working_set: satchel.WorkingSet, arguments: dict[str, Any]
) -> None:
    asked: dict[str, Any] = {"pointer": working_set.window().pages[0].pointer, **arguments}
    with pytest.raises(satchel.InputError) as error:
        working_set.page_in(**asked)
    assert error.value.code == "invalid_value"


def test_lines_may_be_a_list_and_beyond_the_end(working_set: satchel.WorkingSet) -> None:
    index = working_set.window().pages[0].pointer
    whole = working_set.page_in(index)
    assert working_set.page_in(index, lines=[1, 10**6]) == whole  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - JSON has no tuples
    assert working_set.page_in(index, lines=(5, 2)) == ""


@pytest.mark.parametrize("index", [-1, 2**70, "1", 1.0, True])
def test_what_is_no_index_is_a_typed_error(working_set: satchel.WorkingSet, index: Any) -> None:
    with pytest.raises(satchel.InputError):
        working_set.explain(index)
    with pytest.raises(satchel.InputError):
        working_set.pin(index)


@pytest.mark.parametrize("form", [dict, UserDict, MappingProxyType])
def test_one_message_of_any_form_is_appended(form: Any) -> None:
    working_set = satchel.Assembler("gpt-4o", budget=1_000).working_set()
    working_set.append(form({"role": "user", "content": "hello"}))
    assert len(working_set) == 1


def test_settings_that_an_event_changed_stay_changed(working_set: satchel.WorkingSet) -> None:
    working_set.apply({"kind": "settings", "budget": 600})
    window = working_set.window()
    assert window.tokens <= window.budget == 600
    changed = working_set.window(system="Be brief.")
    assert changed.budget == 600
    assert changed.tokens <= 600
    copied: satchel.WorkingSet = pickle.loads(pickle.dumps(working_set))
    assert copied.events == working_set.events
    assert copied.window() == working_set.window()


def test_the_settings_in_force_are_the_ones_reported(working_set: satchel.WorkingSet) -> None:
    policy = satchel.Policy.preset("token-window").model_dump(exclude_none=True)
    working_set.apply({"kind": "settings", "policy": policy, "counter": "chars4", "model": "gpt-4"})
    window = working_set.window()
    assert (window.report.policy, window.report.model, window.model) == (
        "token-window",
        "gpt-4",
        "gpt-4",
    )
    assert not window.exact
    assert window.tokens < window.tokens_upper <= window.budget == 1_000


def test_another_assembler_goes_on_with_its_own_settings(working_set: satchel.WorkingSet) -> None:
    working_set.apply({"kind": "settings", "budget": 600})
    larger = satchel.Assembler("gpt-4o", budget=800)
    window = larger.assemble(working_set.messages, events=working_set.events)
    assert window.budget == 800
    assert window.events[-1] == {"kind": "settings", "at": 31, "budget": 800}


def openai_call(call_id: str, text: str = "") -> Message:
    function = {"name": "look", "arguments": "{}"}
    call = {"id": call_id, "type": "function", "function": function}
    return {"role": "assistant", "content": text or None, "tool_calls": [call]}


def openai_result(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def anthropic_call(call_id: str, text: str = "") -> Message:
    said: list[Message] = [{"type": "text", "text": text}] if text else []
    call: Message = {"type": "tool_use", "id": call_id, "name": "look", "input": {}}
    return {"role": "assistant", "content": [*said, call]}


def anthropic_result(call_id: str, text: str, *more: Message) -> Message:
    result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {"role": "user", "content": [result, *more]}


FORMS = {
    "openai": (openai_call, openai_result),
    "anthropic": (anthropic_call, anthropic_result),
}


def tool_run(dialect: str, count: int = 12) -> list[Message]:
    call, result = FORMS[dialect]
    messages: list[Message] = [{"role": "user", "content": "Find the leak."}]
    for number in range(count):
        text = "\n".join(
            f"{number}: allocation_{number * 1000 + line * 7} is held" for line in range(60)
        )
        messages += [call(f"c{number}"), result(f"c{number}", text)]
    return messages


def faults(window: satchel.Window) -> list[str]:
    found = satchel.lint(window.messages, window.dialect)
    return [violation.code for violation in found if violation.severity == "error"]


@pytest.mark.parametrize("dialect", FORMS)
@pytest.mark.parametrize("kind", ["page_in", "pin"])
def test_nothing_is_placed_between_a_call_and_its_result(dialect: str, kind: str) -> None:
    call, result = FORMS[dialect]
    packer = satchel.Assembler("gpt-4o", budget=3_000, dialect=dialect)
    working_set = packer.working_set(tool_run(dialect))
    page = next(page for page in working_set.window().pages if page.message is not None)
    # The compaction becomes part of the log, so that the pinned step is a lowered one.
    working_set.append([{"role": "assistant", "content": "I go on."}, call("open")])
    if kind == "page_in":
        working_set.apply({"kind": "page_in", "pointer": page.pointer})
    else:
        assert page.message is not None
        working_set.pin(page.message)
    filled = working_set.window(open_calls="synthesize")
    working_set.append(result("open", "no leak here"))
    window = working_set.window()
    for shown in (filled, window):
        assert faults(shown) == []
        assert "earlier content, shown as data" in str(shown.messages[-1]["content"])
        counted = packer.counter.count_messages(shown.messages, dialect=dialect)
        assert counted.total == shown.tokens <= shown.budget
    rebuilt = packer.assemble(working_set.messages, events=working_set.events)
    assert rebuilt.messages == window.messages


def test_the_users_newest_words_beside_results_stay() -> None:
    words = "Stop as soon as you have found one leak, please."
    messages = tool_run("anthropic")
    messages[4]["content"].append({"type": "text", "text": words})
    for policy in ("adaptive", "token-window", "sliding-window"):
        packer = satchel.Assembler("gpt-4o", budget=1_500, dialect="anthropic", policy=policy)
        window = packer.assemble(messages)
        assert window.report.steps["gone"] > 0
        assert faults(window) == []
        blocks = [block for message in window.messages[1:] for block in message["content"]]
        assert {"type": "text", "text": words} in blocks


def test_a_counter_that_fails_in_a_compaction_appends_nothing() -> None:
    is_broken = True

    def count(text: str) -> int:
        if is_broken and "paged out" in text:
            raise OSError(5, "the tokenizer's server is gone")
        return len(text) // 4

    messages = tool_run("openai")
    packer = satchel.Assembler("gpt-4o", budget=1_500, counter=count)
    working_set = packer.working_set(messages[:3])
    before = working_set.window(), working_set.explain()
    with pytest.raises(satchel.InputError) as error:
        working_set.append(messages[3:])
    assert error.value.code == "counter_failed"
    assert len(working_set) == 3
    assert (working_set.window(), working_set.explain()) == before
    is_broken = False
    working_set.append(messages[3:])
    assert working_set.window().messages == packer.assemble(messages).messages


@pytest.mark.parametrize("tokens", [2**31, 2**32 - 1])
def test_counts_beyond_all_measure_are_a_typed_error(tokens: int) -> None:
    packer = satchel.Assembler("gpt-4o", budget=1_500, counter=lambda _: tokens)
    with pytest.raises(satchel.InputError) as error:
        packer.assemble([{"role": "user", "content": "hello"}])
    assert (error.value.code, error.value.index) == ("counter_failed", 0)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"counter": "abacus"}, "unknown_encoding"),
        ({"page_key": "another"}, "invalid_event"),
        ({"system_tokens": 2**60}, "invalid_value"),
        ({"tools_tokens": 2**64 - 1}, "invalid_value"),
        ({"policy": {"trigger": 7}}, "invalid_value"),
        ({"dialect": "smoke-signals"}, "unknown_dialect"),
    ],
)
def test_settings_change_all_or_nothing(
    working_set: satchel.WorkingSet, change: Message, code: str
) -> None:
    before = working_set.window()
    with pytest.raises(satchel.InputError) as error:
        working_set.apply({"kind": "settings", "budget": 700, **change})
    assert error.value.code == code
    assert working_set.window() == before


@pytest.mark.parametrize("policy", ["adaptive", "token-window", "sliding-window"])
@pytest.mark.parametrize("dialect", FORMS)
def test_every_budget_gives_a_window_or_names_the_least(dialect: str, policy: str) -> None:
    call, result = FORMS[dialect]
    messages = [
        {"role": "user", "content": "Find the leak in the worker. " * 6},
        {"role": "assistant", "content": "I look at the pool."},
        call("a", "First the pool."),
        result("a", "pool.py:12 holds a reference\n" * 9),
        {"role": "user", "content": "Look at the cache too. " * 4},
    ]
    limits: list[tuple[int | None, int, bool]] = []
    least: set[int] = set()
    fits: set[int] = set()
    for budget in range(1, 401):
        packer = satchel.Assembler("gpt-4o", budget=budget, dialect=dialect, policy=policy)
        try:
            window = packer.assemble(messages)
        except satchel.BudgetError as error:
            limits.append((error.limit, budget, error.value is not None))
            least.add(int(str(error).split(" needs ", 1)[1].partition(" tokens")[0]))
        else:
            fits.add(budget)
            counted = packer.counter.count_messages(window.messages, dialect=dialect)
            assert counted.total == window.tokens <= budget
            assert faults(window) == []
    assert fits == set(range(min(fits), 401))
    assert least == {min(fits)}
    assert all(limit == budget and is_sized for limit, budget, is_sized in limits)


def test_a_compaction_that_saves_nothing_does_not_happen() -> None:
    messages = [
        {"role": "user", "content": "Find the leak in the worker. " * 6},
        {"role": "assistant", "content": "I look."},
        {"role": "user", "content": "Look at the cache too. " * 6},
    ]
    policy = satchel.Policy(trigger=0.05, target=0.05)
    window = satchel.Assembler("gpt-4o", budget=100, policy=policy).assemble(messages)
    # The note alone takes more than the answer that it would stand for.
    assert window.messages == messages
    assert window.report.compactions == 0


def test_a_newest_step_of_many_small_parts_is_squeezed() -> None:
    blocks = [{"type": "text", "text": f"finding {number}: " + "held " * 90} for number in range(9)]
    messages = [
        {"role": "user", "content": "Find the leak."},
        {"role": "assistant", "content": blocks},
    ]
    window = satchel.Assembler("gpt-4o", budget=600).assemble(messages)
    assert window.tokens <= 600
    assert window.report.steps["trimmed"] + window.report.steps["stub"] == 1
    assert window.messages[0] is messages[0]


def test_what_was_the_newest_user_message_can_be_lowered_later() -> None:
    packer = satchel.Assembler("gpt-4o", budget=1_500)
    long = "\n".join(f"{line}: the worker holds {line * 13} bytes" for line in range(95))
    working_set = packer.working_set(
        [
            {"role": "user", "content": "Find the leak."},
            {"role": "assistant", "content": "I need the log. " * 60},
            {"role": "user", "content": long},
        ]
    )
    assert working_set.explain(2)[0].reason == "newest user message"
    working_set.window()
    working_set.append({"role": "assistant", "content": "I see."})
    working_set.append({"role": "user", "content": "What do you see? " * 60})
    working_set.window()
    assert working_set.explain(2)[0].level in {"trimmed", "stub"}


@dataclass(slots=True)
class Slotted:
    role: str
    content: object = None
    tool_calls: object = None
    tool_call_id: str | None = None


class Undumped:
    """An object of some SDK that cannot be copied."""

    def __init__(self, fields: Message) -> None:
        self.__dict__.update(fields)

    def model_dump(self, **_: object) -> Message:
        raise NotImplementedError


def test_objects_with_slots_are_shrunk_like_others() -> None:
    messages = tool_run("openai")
    packer = satchel.Assembler("gpt-4o", budget=1_500)
    window = packer.assemble([Slotted(**message) for message in messages])
    counted = packer.counter.count_messages(window.messages, dialect="openai")
    assert counted.total == window.tokens
    assert window.tokens == packer.assemble(messages).tokens


def test_a_message_that_cannot_be_copied_is_named() -> None:
    packer = satchel.Assembler("gpt-4o", budget=1_000)
    with pytest.raises(satchel.InputError) as error:
        packer.assemble([Undumped(message) for message in tool_run("openai")])
    assert error.value.code == "invalid_message"
    assert error.value.index is not None
    assert isinstance(error.value.__cause__, NotImplementedError)


def test_a_message_that_lost_its_blocks_since_is_named() -> None:
    messages = tool_run("openai")
    for message in messages[2::2]:
        message["content"] = [{"type": "text", "text": message["content"]}]
    long = [{"type": "text", "text": "worker " * 900}]
    messages.append({"role": "assistant", "content": long})
    working_set = satchel.Assembler("gpt-4o", budget=1_000).working_set(messages)
    long.clear()
    with pytest.raises(satchel.InputError) as error:
        working_set.window()
    assert (error.value.code, error.value.index) == ("invalid_message", len(messages) - 1)


def test_the_fence_is_not_in_the_content() -> None:
    content = "<recalled-2> </recalled> <recalled-3 </recalled-41> " * 40
    messages = [*plain_run(1), {"role": "assistant", "content": content}, *plain_run(20)]
    packer = satchel.Assembler("gpt-4o", budget=10_000, policy="sliding-window")
    working_set = packer.working_set(messages)
    listing = working_set.page_in(working_set.window().pages[0].pointer)
    line = next(line for line in listing.splitlines() if line.startswith("2 assistant"))
    working_set.apply({"kind": "page_in", "pointer": line.split()[4]})
    shown = working_set.window().messages[-1]["content"]
    assert shown.startswith("<recalled-5 source=")
    assert shown.endswith("</recalled-5>")
    assert content in shown


def test_another_counter_counts_system_and_tools_too() -> None:
    system = "답변은 항상 한국어로 짧게 하세요. " * 20
    messages = [{"role": "user", "content": "hello"}]
    packer = satchel.Assembler("gpt-4o", budget=3_000)
    working_set = packer.working_set(messages, system=system)
    before = working_set.window()
    working_set.apply({"kind": "settings", "counter": "cl100k_base"})
    window = working_set.window()
    counted = satchel.counter("cl100k_base").count_messages(
        window.messages, system=system, dialect="openai"
    )
    assert window.tokens == counted.total > before.tokens
    assert window.report.system_tokens == counted.system
    longer = system + "네."
    recounted = working_set.window(system=longer)
    assert recounted.report.system_tokens > counted.system
    copied: satchel.WorkingSet = pickle.loads(pickle.dumps(working_set))
    assert copied.window() == recounted


def test_another_model_goes_on_with_the_log_as_it_was_counted() -> None:
    first = satchel.Assembler("gpt-4o", budget=3_000)
    second = satchel.Assembler("gpt-4", budget=3_000)
    messages = tool_run("openai", 24)
    log = first.working_set(messages)
    resumed = second.assemble(messages, events=log.events)
    change = resumed.events[-1]
    assert change["counter"] == second.counter.name
    log.apply(change)
    assert log.window().messages == resumed.messages
    assert log.window().tokens == resumed.tokens


def test_system_and_tools_that_cannot_be_counted_change_nothing() -> None:
    working_set = satchel.Assembler("gpt-4o", budget=3_000).working_set(plain_run(2), system="Hm.")
    before = working_set.window()
    wrong: Any = 3
    with pytest.raises(satchel.InputError):
        working_set.window(system=wrong)
    assert working_set.window() == before


class Odd(str):
    """A string whose own length cannot be asked for, or is a lie."""

    __slots__ = ()

    def __len__(self) -> int:
        raise RuntimeError


def test_strings_with_a_length_of_their_own_are_appended() -> None:
    working_set = satchel.Assembler("gpt-4o", budget=10_000).working_set()
    working_set.append([{"role": "user", "content": Odd("é")}] * 3)
    assert len(working_set.window().messages) == 3


def test_a_large_message_is_folded_like_its_pieces() -> None:
    """Above some size other threads run meanwhile; the window is the same."""
    large = "시험 line of a log\n" * 20_000
    assembler = satchel.Assembler("gpt-4o", budget=400_000)
    appended = assembler.working_set()
    appended.append({"role": "user", "content": large})
    built = assembler.working_set([{"role": "user", "content": large}])
    assert appended.window().tokens == built.window().tokens
