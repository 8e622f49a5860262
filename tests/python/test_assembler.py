"""The assembler and the working set: what each argument does, and what every error says."""

from __future__ import annotations

import copy
import json
import pickle
import re
import threading
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import satchel
from samples import load_sample
from satchel.assembler import Budget

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]


def look(number: int, result: str, *, call_id: str = "same") -> list[Message]:
    """One call step in the openai dialect; ids repeat on purpose."""
    function = {"name": "look", "arguments": json.dumps({"path": f"src/part_{number}.py"})}
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": call_id, "type": "function", "function": function}],
        },
        {"role": "tool", "tool_call_id": call_id, "content": result},
    ]


def long_run(steps: int = 40) -> list[Message]:
    messages: list[Message] = [
        {"role": "system", "content": "You repair programs. Never delete a test."},
        {"role": "user", "content": "The parser drops the last field. Find out why."},
    ]
    for number in range(steps):
        lines = [f"{number:03}: value_{number * line} = read(field_{line})" for line in range(40)]
        messages += look(number, "\n".join(lines))
    return messages


@pytest.fixture
def packer() -> satchel.Assembler:
    return satchel.Assembler("gpt-4o", budget=3_000)


def test_a_history_that_fits_comes_back_as_it_is(packer: satchel.Assembler) -> None:
    messages = long_run(3)
    window = packer.assemble(messages)
    assert all(mine is theirs for mine, theirs in zip(window.messages, messages, strict=True))
    assert window.tokens == window.tokens_upper <= window.budget == 3_000
    assert window.exact
    assert window.pages == ()
    assert window.report.steps == {"verbatim": 5, "trimmed": 0, "stub": 0, "gone": 0}


def test_a_long_history_is_packed_and_nothing_is_lost() -> None:
    # Too little for a line of every step, and enough for the newest result to stay whole.
    packer = satchel.Assembler("gpt-4o", budget=1_600)
    messages = long_run()
    before = copy.deepcopy(messages)
    working_set = packer.working_set(messages)
    window = working_set.window()
    assert window.tokens <= 1_600
    assert messages == before
    assert window.messages[:2] == messages[:2]
    assert window.messages[-1] is messages[-1]
    assert satchel.lint(window.messages, "openai") == []
    assert window.report.steps["gone"] > 0
    assert sum(window.report.steps.values()) == len(working_set.explain()) == 42
    # The note after the goal leads to the index, the index to every page.
    index = window.pages[0]
    assert index.message is None
    note = window.messages[2]
    assert note["role"] == "user"
    assert index.pointer in note["content"]
    listing = working_set.page_in(index.pointer)
    for step in working_set.explain():
        if step.level != "gone":
            continue
        result = messages[step.end - 1]
        line = next(line for line in listing.splitlines() if line.startswith(f"{step.end - 1} "))
        pointer = line.split()[4]
        assert working_set.page_in(pointer) == result["content"]
    for page in window.pages[1:]:
        assert page.message is not None
        assert page.pointer in json.dumps(window.messages)
        assert working_set.page_in(page.pointer) == messages[page.message]["content"]


def test_pages_can_be_searched(packer: satchel.Assembler) -> None:
    working_set = packer.working_set(long_run())
    page = next(page for page in working_set.window().pages if page.message is not None)
    assert page.message is not None
    text = working_set.messages[page.message]["content"]
    lines = text.splitlines(keepends=True)
    assert working_set.page_in(page.pointer, lines=(2, 3)) == "".join(lines[1:3])
    assert working_set.page_in(page.pointer, pattern="field_7)") == lines[7]
    assert working_set.page_in(page.pointer, pattern=".*") == ""
    for pointer in ("p_000000000000000000", "p_12", "", "nonsense", page.pointer[:-1]):
        with pytest.raises(satchel.PageNotFoundError) as error:
            working_set.page_in(pointer)
        assert error.value.code == "page_not_found"


def test_content_with_lone_surrogates_comes_back_exactly() -> None:
    strange = "start \ud83d middle \udc00 end\n" * 200
    messages: list[Message] = [
        {"role": "user", "content": "Read the file."},
        *look(0, strange),
        *look(1, "short"),
        *look(2, "b " * 600),
    ]
    working_set = satchel.Assembler("gpt-4o", budget=1_000).working_set(messages)
    window = working_set.window()
    listing = working_set.page_in(window.pages[0].pointer)
    pointers = [word for word in listing.split() if word.startswith("p_")]
    pointers += [page.pointer for page in window.pages]
    assert strange in [working_set.page_in(pointer) for pointer in pointers]


def test_structured_content_comes_back_as_canonical_json() -> None:
    content = [{"type": "text", "text": "één " * 400}, {"type": "text", "text": "two"}]
    messages: list[Message] = [
        {"role": "user", "content": "Read."},
        *look(0, "x"),
        *look(1, "y" * 900),
    ]
    messages[2]["content"] = content
    working_set = satchel.Assembler("gpt-4o", budget=400).working_set(messages)
    index, *pages = working_set.window().pages
    listed = re.findall(r"p_\d{18}", working_set.page_in(index.pointer))
    pointers = [*listed, *(page.pointer for page in pages)]
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    assert text in [working_set.page_in(pointer) for pointer in pointers]


def test_appending_equals_assembling(packer: satchel.Assembler) -> None:
    messages = long_run()
    working_set = packer.working_set()
    events: tuple[Any, ...] = ()
    for end in range(2, len(messages) + 1, 2):
        working_set.append(messages[end - 2 : end])
        window = working_set.window()
        stateless = packer.assemble(messages[:end], events=events)
        assert stateless.messages == window.messages
        assert stateless.tokens == window.tokens
        assert packer.assemble(messages[:end]).messages == window.messages
        events = stateless.events


def test_windows_extend_each_other_between_compactions(packer: satchel.Assembler) -> None:
    messages = long_run()
    working_set = packer.working_set(messages[:2])
    before = working_set.window()
    extended = 0
    for start in range(2, len(messages), 2):
        working_set.append(messages[start : start + 2])
        window = working_set.window()
        difference = window.diff(before)
        if window.report.compactions == before.report.compactions:
            assert difference.removed == ()
            assert difference.common == len(before.messages)
            assert window.stable_prefix_tokens >= before.tokens - 10
            extended += 1
        else:
            assert difference.removed != ()
            assert window.stable_prefix_tokens < before.tokens
        before = window
    assert extended > before.report.compactions > 0


def test_pins_survive_and_are_events(packer: satchel.Assembler) -> None:
    messages = long_run()
    working_set = packer.working_set(messages[:10])
    working_set.pin(5)
    working_set.append(messages[10:])
    window = working_set.window()
    assert messages[5] in window.messages
    assert messages[4] in window.messages
    assert [event["kind"] for event in window.events] == ["settings", "pin"]
    assert window.events[1] == {"kind": "pin", "at": 10, "index": 5}
    again = packer.assemble(messages, events=window.events)
    assert again.messages == window.messages
    assert working_set.explain(5)[0].reason == "pinned"
    working_set.unpin(5)
    assert working_set.events[-1] == {"kind": "unpin", "at": 82, "index": 5}


def test_a_lowered_step_that_is_pinned_comes_back() -> None:
    # Too little for a line of every step.
    packer = satchel.Assembler("gpt-4o", budget=1_200)
    messages = long_run()
    working_set = packer.working_set(messages)
    working_set.append({"role": "assistant", "content": "I see a pattern."})
    gone = next(step for step in working_set.explain() if step.level == "gone")
    working_set.append({"role": "user", "content": "Which one?"})
    working_set.pin(gone.end - 1)
    window = working_set.window()
    assert messages[gone.end - 1]["content"] in "".join(
        str(message["content"]) for message in window.messages
    )
    assert window.tokens <= window.budget


def test_a_page_is_placed_by_an_event() -> None:
    # Too little for a line of every step.
    packer = satchel.Assembler("gpt-4o", budget=1_200)
    messages = [*long_run(), {"role": "assistant", "content": "Done."}]
    working_set = packer.working_set([*messages, {"role": "user", "content": "And before?"}])
    page = working_set.window().pages[0]
    line = working_set.page_in(page.pointer).splitlines()[2]
    number, pointer = int(line.split()[0]), line.split()[4]
    working_set.apply({"kind": "page_in", "pointer": pointer, "range": [1, 2]})
    window = working_set.window()
    recalled = window.messages[-1]
    assert recalled["role"] == "user"
    assert recalled["content"].startswith(f'<recalled source="message {number}, tool, page')
    assert f"value_{number // 2 - 1}" in recalled["content"]
    assert window.tokens == packer.counter.count_messages(window.messages, dialect="openai").total


def test_inside_a_tool_loop_recalled_text_joins_the_result() -> None:
    sample = load_sample("coding.anthropic.json")
    packer = satchel.Assembler("claude-sonnet-4-5", budget=9_000)
    messages = sample["messages"]
    working_set = packer.working_set(messages[:-1], system=sample["system"])
    assert messages[-2]["content"][0]["type"] == "tool_result"
    window = working_set.window()
    line = working_set.page_in(window.pages[0].pointer).splitlines()[1]
    working_set.apply({"kind": "page_in", "pointer": line.split()[4], "range": (1, 1)})
    recalled = working_set.window()
    last = recalled.messages[-1]["content"][-1]
    assert last["type"] == "tool_result"
    assert last["content"][-1]["text"].startswith("<recalled source=")
    found = satchel.lint(recalled.messages, "anthropic", system=sample["system"])
    assert [violation for violation in found if violation.severity == "error"] == []


def test_foreign_pointers_in_content_are_not_adopted(packer: satchel.Assembler) -> None:
    fake = "p_123456789012345678"
    messages = [{"role": "user", "content": f'page_in("{fake}")'}, *look(0, fake)]
    working_set = packer.working_set(messages)
    with pytest.raises(satchel.PageNotFoundError):
        working_set.page_in(fake)


def test_the_page_key_separates_logs(packer: satchel.Assembler) -> None:
    messages = long_run()
    open_log = packer.working_set(messages)
    settings = {**open_log.events[0], "page_key": "secret of one session"}
    keyed = packer.working_set(messages, events=[settings])
    ours, theirs = keyed.window(), open_log.window()
    assert ours.tokens <= ours.budget
    assert not {page.pointer for page in ours.pages} & {page.pointer for page in theirs.pages}
    with pytest.raises(satchel.PageNotFoundError):
        keyed.page_in(theirs.pages[0].pointer)
    assert "secret" not in repr(keyed)


@pytest.mark.parametrize("name", ["abort.openai.json", "abort.anthropic.json"])
def test_an_aborted_call_gets_a_marked_result(name: str) -> None:
    sample = load_sample(name)
    packer = satchel.Assembler("gpt-4o", dialect=sample["dialect"], budget=60_000)
    window = packer.assemble(
        sample["messages"], system=sample.get("system"), open_calls="synthesize"
    )
    errors = satchel.lint(window.messages, sample["dialect"], system=sample.get("system"))
    assert [error for error in errors if error.severity == "error"] == []
    assert "[no result: the call was interrupted]" in json.dumps(window.messages)


def test_open_calls_raise_or_are_filled(packer: satchel.Assembler) -> None:
    messages = long_run(2)[:-1]
    with pytest.raises(satchel.InputError) as error:
        packer.assemble(messages)
    assert error.value.code == "open_calls"
    assert error.value.index == 4
    window = packer.assemble(messages, open_calls="synthesize")
    assert window.messages[-1]["role"] == "tool"
    assert window.messages[-1]["tool_call_id"] == "same"
    with pytest.raises(satchel.InputError, match="open_calls is 'ignore'"):
        packer.working_set(messages).window(open_calls="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - refused


def test_what_cannot_fit_names_message_size_and_limit(packer: satchel.Assembler) -> None:
    messages = [*long_run(2), {"role": "user", "content": "word " * 5_000}]
    with pytest.raises(satchel.BudgetError) as error:
        packer.assemble(messages)
    assert error.value.code == "over_budget"
    assert error.value.index == 6
    assert error.value.limit == 3_000
    assert error.value.value == 5_005
    assert str(error.value).startswith("message 6 has 5005 tokens, budget 3000")
    assert "word" not in str(error.value)
    tools = [{"type": "function", "function": {"name": "f", "description": "word " * 5_000}}]
    with pytest.raises(satchel.BudgetError) as error:
        packer.assemble(long_run(1), tools=tools)
    assert error.value.index is None
    assert str(error.value).startswith("system, tools and overhead have 50")


def test_many_small_messages_blame_none_of_them(packer: satchel.Assembler) -> None:
    orders = [{"role": "system", "content": f"Rule {number}."} for number in range(1_000)]
    question = {"role": "user", "content": "Which rule is the longest? " * 20}
    with pytest.raises(satchel.BudgetError) as error:
        packer.assemble([*orders, question])
    assert error.value.index is None
    assert error.value.limit == 3_000
    found = re.match(r"what must stay has (\d+) tokens, budget 3000: ", str(error.value))
    assert found is not None
    assert error.value.value == int(found[1])
    assert "3 for system, tools and overhead, the rest for 1001 messages" in str(error.value)
    assert re.search(r"the largest is message 1000 with \d+, framing takes 4004$", str(error.value))


def test_a_huge_newest_result_is_trimmed_to_fit(packer: satchel.Assembler) -> None:
    huge = "".join(f"{number}: {'data ' * 8}\n" for number in range(20_000))
    messages = [*long_run(2), *look(2, huge)]
    working_set = packer.working_set(messages)
    window = working_set.window()
    assert window.tokens <= 3_000
    last = window.messages[-1]["content"]
    assert last.startswith("0: data")
    assert last.endswith(f"19999: {'data ' * 8}\n")
    assert " lines left out; page_in(" in last
    assert window.tokens > 1_000
    pointer = next(page.pointer for page in window.pages if page.message == len(messages) - 1)
    assert working_set.page_in(pointer) == huge


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ([{"role": "tool", "tool_call_id": "?", "content": "lost"}], "orphan_result"),
        ([look(9, "a")[1]], "duplicate_result"),
        ([{"content": "no role"}], "invalid_message"),
        ([{"role": "user", "content": 7}], "invalid_message"),
        ([{"role": "user", "content": [{"type": "text", "text": None}]}], "invalid_message"),
        (["just text"], "invalid_message"),
        ([None], "invalid_message"),
    ],
)
def test_damage_is_a_typed_error_and_changes_nothing(
    packer: satchel.Assembler, damage: list[Any], code: str
) -> None:
    messages = long_run(2)
    strict = satchel.Assembler(packer.model, budget=packer.budget, on_damage="raise")
    working_set = strict.working_set(messages)
    before = working_set.window()
    with pytest.raises(satchel.InputError) as error:
        working_set.append([*damage, {"role": "user", "content": "fine"}])
    assert error.value.code == code
    assert error.value.index == len(messages)
    assert len(working_set) == len(messages)
    assert working_set.window().messages == before.messages


def test_system_and_tools_are_counted_and_changes_are_events() -> None:
    sample = load_sample("service.anthropic.json")
    packer = satchel.Assembler("claude-sonnet-4-5", budget=30_000)
    working_set = packer.working_set(
        sample["messages"][:3], system=sample["system"], tools=sample["tools"]
    )
    window = working_set.window()
    alone = packer.assemble(sample["messages"][:3])
    report = window.report
    assert window.tokens == alone.tokens + report.system_tokens + report.tools_tokens
    assert report.system_tokens > 0
    assert report.tools_tokens > 0
    assert not window.exact
    assert window.tokens < window.tokens_upper
    changed = working_set.window(system="Be brief.")
    assert changed.system == "Be brief."
    assert changed.tokens < window.tokens
    assert [event["kind"] for event in changed.events] == ["settings", "settings"]
    assert set(changed.events[1]) == {"kind", "at", "system_tokens"}
    assert working_set.window(system="Be brief.").events == changed.events
    kwargs = changed.as_kwargs()
    assert kwargs["model"] == "claude-sonnet-4-5"
    assert kwargs["tools"] == sample["tools"]
    marked = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    assert kwargs["system"] == [marked]
    assert "cache_control" in json.dumps(kwargs["messages"][-1])
    assert "cache_control" not in json.dumps(changed.messages)


def test_openai_kwargs_carry_the_system_prompt_in_front(packer: satchel.Assembler) -> None:
    messages = [{"role": "user", "content": "Hello"}]
    window = packer.assemble(messages, system="Be brief.")
    kwargs = window.as_kwargs()
    assert kwargs == {
        "model": "gpt-4o",
        "messages": [{"role": "system", "content": "Be brief."}, messages[0]],
    }
    assert packer.counter.count_messages(kwargs["messages"]).total == window.tokens


def test_changed_settings_go_on_with_the_log() -> None:
    messages = long_run()
    first = satchel.Assembler("gpt-4o", budget=6_000).assemble(messages[:60])
    smaller = satchel.Assembler("gpt-4o", budget=2_000)
    window = smaller.assemble(messages, events=first.events)
    assert window.tokens <= 2_000
    assert [event["kind"] for event in window.events] == ["settings", "settings"]
    assert window.events[1] == {"kind": "settings", "at": 82, "budget": 2_000}
    other_counter = satchel.Assembler("gpt-4", budget=6_000)
    window = other_counter.assemble(messages, events=first.events)
    counted = other_counter.counter.count_messages(window.messages, dialect="openai")
    assert window.tokens == counted.total <= 6_000
    anthropic = satchel.Assembler("claude-sonnet-4-5", budget=6_000)
    window = anthropic.assemble(messages, events=first.events)
    assert (window.dialect, window.events[1]["dialect"]) == ("anthropic", "anthropic")
    assert window.tokens_upper <= 6_000


@pytest.mark.parametrize("wrong", [None, 5])
def test_what_is_no_list_is_refused(packer: satchel.Assembler, wrong: Any) -> None:
    working_set = packer.working_set()
    for call in (
        lambda: packer.assemble(wrong),
        lambda: packer.assemble([], events=wrong),
        lambda: working_set.page_in(wrong),
        lambda: working_set.page_in("p_000000000000000000", lines=(-1, 3)),
    ):
        with pytest.raises(satchel.InputError) as error:
            call()
        assert error.value.code == "invalid_value"


@pytest.mark.parametrize(
    "events",
    [
        [{"kind": "pin", "at": 0, "index": 0}],
        [{"kind": "settings", "at": 0}],
        [{"no": "kind"}],
        ["text"],
        [{"kind": "settings", "at": 0, "budget": -1}],
        [{"kind": "settings", "at": 0, "surprise": 1}],
        [{"kind": {1, 2}}],
    ],
)
def test_broken_events_are_named(packer: satchel.Assembler, events: list[Any]) -> None:
    with pytest.raises(satchel.InputError) as error:
        packer.assemble(long_run(1), events=events)
    assert error.value.code == "invalid_event"


def test_events_out_of_place_are_named(packer: satchel.Assembler) -> None:
    messages = long_run(1)
    settings = packer.working_set().events[0]
    for late in ({"kind": "pin", "at": 9, "index": 0}, {"kind": "pin", "at": 1, "index": 3}):
        with pytest.raises(satchel.InputError) as error:
            packer.assemble(messages, events=[settings, late])
        assert error.value.code == "invalid_event"


class Words:
    """A counter of the caller's own, which remembers how it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def count(self, text: str) -> int:
        self.calls += 1
        return len(text.split())


def test_a_counter_of_the_callers_own() -> None:
    words = Words()
    packer = satchel.Assembler("gpt-4o", budget=400, counter=words)
    working_set = packer.working_set(long_run(6))
    window = working_set.window()
    assert window.tokens <= 400
    before = words.calls
    working_set.window()
    assert words.calls == before, "a text is counted once"
    by_callable = satchel.Assembler("gpt-4o", budget=400, counter=lambda text: len(text.split()))
    assert by_callable.assemble(long_run(6)).messages == window.messages


@pytest.mark.parametrize("answer", [-1, 2.5, None, "7"])
def test_a_counter_that_lies_is_named(answer: Any) -> None:
    def count(text: str) -> Any:
        return answer if "field" in text else 1

    packer = satchel.Assembler("gpt-4o", budget=400, counter=count)
    with pytest.raises(satchel.InputError) as error:
        packer.assemble(long_run(1))
    assert error.value.code == "counter_failed"


def test_a_counter_that_raises_is_the_cause() -> None:
    def count(text: str) -> int:
        raise OSError(5, "the tokenizer's server is gone", text[:0])

    packer = satchel.Assembler("gpt-4o", budget=400, counter=count)
    with pytest.raises(satchel.InputError) as error:
        packer.assemble(long_run(1))
    assert error.value.code == "counter_failed"
    assert isinstance(error.value.__cause__, OSError)


def test_columns_are_snapshots(packer: satchel.Assembler) -> None:
    messages = long_run()
    working_set = packer.working_set(messages)
    working_set.window()
    columns = working_set.columns
    steps = working_set.explain()
    assert len(columns.level) == len(steps)
    assert [columns.level_names[level] for level in columns.level] == [step.level for step in steps]
    assert [columns.reason_names[reason] for reason in columns.reason] == [
        step.reason for step in steps
    ]
    assert [columns.fidelity_names[value] for value in columns.fidelity] == [
        step.fidelity for step in steps
    ]
    assert columns.salience.dtype == np.float32
    assert columns.tokens.dtype == np.uint32
    assert float(columns.salience.min()) >= 0
    assert float(columns.salience.max()) <= 1
    with pytest.raises(ValueError, match="read-only"):
        columns.tokens[0] = 7
    kept = columns.tokens.copy()
    working_set.append({"role": "assistant", "content": "ok"})
    assert np.array_equal(columns.tokens, kept)


def test_everything_pickles(packer: satchel.Assembler) -> None:
    messages = long_run()
    working_set = packer.working_set(messages, system="Be brief.")
    working_set.pin(5)
    window = working_set.window()
    copied: satchel.WorkingSet = pickle.loads(pickle.dumps(working_set))
    assert copied.window() == window
    assert copied.page_in(window.pages[0].pointer) == working_set.page_in(window.pages[0].pointer)
    same: satchel.Assembler = pickle.loads(pickle.dumps(packer))
    assert same.assemble(messages).messages == packer.assemble(messages).messages
    assert pickle.loads(pickle.dumps(window)) == window
    assert pickle.loads(pickle.dumps(packer.policy)) == packer.policy


def test_a_working_set_says_that_it_is_in_use() -> None:
    inside, leave = threading.Event(), threading.Event()

    def count(text: str) -> int:
        if text == "wait here":
            inside.set()
            leave.wait(10)
        return 1

    working_set = satchel.Assembler("gpt-4o", budget=400, counter=count).working_set()
    message = {"role": "user", "content": "wait here"}
    thread = threading.Thread(target=working_set.append, args=(message,))
    thread.start()
    try:
        assert inside.wait(10)
        with pytest.raises(satchel.UsageError) as error:
            working_set.window()
        assert error.value.code == "concurrent_use"
    finally:
        leave.set()
        thread.join()
    assert len(working_set) == 1
    assert working_set.window().tokens > 0


def test_an_assembler_is_shared_between_threads(packer: satchel.Assembler) -> None:
    messages = long_run()
    expected = packer.assemble(messages).messages
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda: found.append(packer.assemble(messages).messages))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: satchel.Assembler("gpt-4o", budget=0), "budget tokens is 0"),
        (lambda: satchel.Assembler("gpt-4o", budget=-5), "budget tokens is -5"),
        (lambda: satchel.Assembler("gpt-4o", budget=1.5), "must be an int"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - refused
        (lambda: satchel.Assembler("gpt-4o", budget=True), "must be an int"),
        (lambda: satchel.Assembler("gpt-4o", policy="oldest"), "no policy 'oldest'"),
        (lambda: satchel.Assembler("gpt-4o", policy=3), "policy must be"),  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType] - refused
        (lambda: satchel.Assembler("gpt-4o", dialect="cobol"), "no dialect"),
        (lambda: satchel.Assembler("mystery-9000"), "mystery-9000"),
        (lambda: Budget(10, reserve_tokens=5), "give tokens or reserve_tokens"),
        (lambda: Budget(reserve_tokens=-1), "reserve_tokens is -1"),
    ],
)
def test_settings_that_cannot_be_are_refused(make: Callable[[], object], match: str) -> None:
    with pytest.raises(satchel.InputError, match=match):
        make()


def test_the_default_budget_is_the_window_less_the_reserve() -> None:
    model = satchel.models.get("gpt-4o")
    assert satchel.Assembler("gpt-4o").budget == model.window - model.output_limit
    reserved = satchel.Assembler("gpt-4o", budget=Budget(reserve_tokens=4_000))
    assert reserved.budget == model.window - 4_000


def test_reprs_say_what_they_are(packer: satchel.Assembler) -> None:
    assert repr(packer) == (
        "Assembler('gpt-4o', budget=3000, policy='adaptive', counter='gpt-4o', dialect='openai')"
    )
    assert repr(packer.working_set(long_run(1))) == "<satchel.WorkingSet of 4 messages, 1 events>"
