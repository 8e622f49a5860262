"""Faults that users met elsewhere, as small cases: what a history went through, what must hold.

Each test is named after the property that was broken. The reports, with their own inputs, are
shared data; those inputs run too where they are present (the last test of this file).
"""

from __future__ import annotations

import copy
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

import properties
import satchel
from satchel.repairing import PLACEHOLDERS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Message = dict[str, Any]


def words(text: str) -> int:
    return len(text.split())


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def system(text: str) -> Message:
    return {"role": "system", "content": text}


def call(*ids: str, arguments: str = "{}", name: str = "query") -> Message:
    calls = [
        {"id": one, "type": "function", "function": {"name": name, "arguments": arguments}}
        for one in ids
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def answer(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def step(call_id: str, text: str) -> list[Message]:
    return [call(call_id), answer(call_id, text)]


def keep_last(count: int, messages: Sequence[Message], budget: int = 10_000) -> list[Message]:
    """The window of a policy that keeps the newest messages."""
    policy = satchel.Policy(strategy="sliding-window", max_messages=count)
    packer = satchel.Assembler("gpt-4o", budget=budget, policy=policy)
    return packer.assemble(messages, open_calls="synthesize").messages


def within(budget: int, messages: Sequence[Message], **options: Any) -> list[Message]:
    """The window within a budget of words, overhead included."""
    packer = satchel.Assembler("gpt-4o", budget=budget, counter=words, **options)
    window = packer.assemble(messages, open_calls="synthesize")
    assert window.tokens <= budget
    return window.messages


def sound(messages: Sequence[Message]) -> None:
    """What every window and every repaired history holds."""
    assert properties.unpaired(messages) == []
    assert properties.adjacent(messages) == []
    assert properties.blank(messages) == []


# --- pairs stay whole where a history is cut ------------------------------------------------------


def test_a_cut_does_not_begin_with_a_result() -> None:
    history = [
        user("reserve a room"),
        *step("r1", "room 12 is free"),
        user("good"),
        said("done"),
        user("and dinner"),
        said("gladly"),
    ]
    for count in range(1, 8):
        window = keep_last(count, history)
        sound(window)
        assert window
        assert properties.in_order(window, history) == []


def test_a_result_of_plain_text_belongs_to_its_call() -> None:
    history = [
        system("be brief"),
        user("look it up"),
        *step("k", "nothing but words"),
        user("so?"),
        said("that is all"),
    ]
    window = keep_last(3, history)
    sound(window)
    assert window[0] is history[0]


def test_a_window_holds_whole_turns() -> None:
    history: list[Message] = []
    for turn in range(4):
        history += [user(f"ask {turn}"), *step(f"q{turn}", f"row {turn}"), said(f"reply {turn}")]
    for count in range(1, len(history)):
        window = keep_last(count, history)
        sound(window)
        assert properties.starts_with_user(window) == []


def test_an_unfinished_run_stays() -> None:
    history = [
        system("rules"),
        user("yesterday"),
        said("old reply"),
        user("today"),
        *step("t", "row"),
    ]
    window = keep_last(1, history)
    sound(window)
    assert window[-1] is history[-1]
    assert properties.anchored(window, history) == []


def test_instructions_stay_first() -> None:
    history = [
        system("the pass phrase is a secret"),
        user("1"),
        said("2"),
        user("3"),
        said("4"),
        user("5"),
    ]
    window = keep_last(3, history)
    assert window[0] is history[0]
    assert properties.anchored(window, history) == []


def test_a_run_of_pairs_after_one_request_can_be_shortened() -> None:
    history = [user("audit the module")]
    for number in range(5):
        history += step(str(number), f"finding {number} " * 20)
    window = keep_last(5, history)
    sound(window)
    assert properties.starts_with_user(window) == []
    assert window[-1] is history[-1]
    assert len(window) < len(history)


def test_parallel_results_move_together() -> None:
    pair = [call("a", "b"), answer("a", "long " * 300), answer("b", "short")]
    history = [user("both, please"), *pair, said("ready"), user("compare them")]
    window = within(120, history)
    sound(window)
    assert properties.anchored(window, history) == []


@pytest.mark.parametrize("content", ["absent", None, ""])
def test_calls_need_no_content(content: str | None) -> None:
    calling = call("x")
    calling["content"] = content
    if content == "absent":
        del calling["content"]
    history = [user("go"), calling, answer("x", "row")]
    assert satchel.lint(history, "openai") == []
    assert within(1_000, history) == history


@pytest.mark.parametrize("history", [[], [system("only rules")]])
def test_little_is_enough(history: list[Message]) -> None:
    assert satchel.sliding_window(history, 10) == history
    assert satchel.token_window(history, 10) == history
    assert within(100, history) == history
    assert satchel.repair(history, "openai") == history


def test_the_old_single_call_is_a_pair() -> None:
    calling = {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "f", "arguments": "{}"},
    }
    history = [
        user("ask"),
        calling,
        {"role": "function", "name": "f", "content": "row"},
        said("so"),
        user("next"),
    ]
    for count in range(1, 6):
        window = keep_last(count, history)
        sound(window)
        assert properties.starts_with_user(window) == []


# --- budgets --------------------------------------------------------------------------------------


def test_what_does_not_fit_is_named() -> None:
    history = [system("rule " * 150), user("hello")]
    with pytest.raises(satchel.BudgetError, match="message 0") as caught:
        within(60, history)
    assert caught.value.index == 0
    assert caught.value.value is not None
    assert caught.value.value >= 150
    assert caught.value.limit == 60


def test_the_answer_has_its_reserve() -> None:
    full = satchel.models.get("gpt-4o")
    packer = satchel.Assembler("gpt-4o", budget=satchel.Budget(reserve_tokens=60_000))
    assert packer.budget == full.window - 60_000
    history = [system("s"), user("word " * 40_000), said("word " * 40_000), user("go on")]
    window = packer.assemble(history)
    assert window.tokens <= packer.budget
    assert properties.anchored(window.messages, history[:1] + history[-1:]) == []


def test_impossible_settings_are_refused() -> None:
    wrong: list[Callable[[], object]] = [
        lambda: satchel.Assembler("gpt-4o", budget=0),
        lambda: satchel.Budget(reserve_tokens=-1),
        lambda: satchel.Policy(strategy="sliding-window", max_messages=-1),
        lambda: satchel.Policy(trigger=0.0),
        lambda: satchel.Policy(trigger=0.5, target=0.9),
    ]
    for build in wrong:
        with pytest.raises(ValueError, match=r"\d"):
            build()


# --- dropped, pending, injected, carried over -----------------------------------------------------


def test_a_call_that_still_waits_is_not_dropped() -> None:
    history = [
        user("pay it"),
        call("p"),
        user("how much is it?"),
        said("ten"),
        user("hm"),
        said("?"),
    ]
    window = within(400, history)
    sound(window)
    assert any(properties.view(message).calls == ["p"] for message in window)


def test_an_orphan_beside_words_leaves_the_words() -> None:
    calling: Message = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "f", "name": "read", "input": {}}],
    }
    mixed = {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "f", "content": "the file"},
            {"type": "text", "text": "do not forget the docs"},
        ],
    }
    history: list[Message] = [user("job"), said("first I plan"), calling, mixed, said("fine")]
    assert satchel.repair(history, "anthropic") == history
    del history[2]
    for mode in ("synthesize", "drop", "flatten"):
        repaired = satchel.repair(history, "anthropic", mode=cast("Any", mode))
        sound(repaired)
        assert properties.says(repaired, "do not forget the docs") == 1
        assert repaired[:2] == history[:2]
        assert properties.says(repaired, "the file") == (mode != "drop")


def test_broken_pairs_heal_and_good_ones_stay() -> None:
    good = step("good", "fine")
    history = [
        user("one"),
        call("lost"),
        user("two"),
        *good,
        said("second"),
        answer("stranger", "late row"),
        user("three"),
    ]
    before = copy.deepcopy(history)
    repaired = satchel.repair(history, "openai")
    assert history == before
    sound(repaired)
    assert all(any(one is kept for one in repaired) for kept in good)
    assert satchel.repair(repaired, "openai") == repaired
    assert repaired[-1] is history[-1]
    assert properties.says(repaired, PLACEHOLDERS[0]) == 1


def test_signed_thoughts_without_words_stay() -> None:
    signed = {"type": "thinking", "thinking": "", "signature": "zz9"}
    blocks: list[Message] = [
        signed,
        {"type": "redacted_thinking", "data": "x"},
        {"type": "thinking", "thinking": ""},
        {"type": "tool_use", "id": "u", "name": "read", "input": {}},
    ]
    result = {"type": "tool_result", "tool_use_id": "u", "content": "row"}
    history: list[Message] = [
        user("go"),
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [result]},
    ]
    repaired = satchel.repair(history, "anthropic")
    assert repaired[1]["content"] == [blocks[0], blocks[1], blocks[3]]
    assert repaired[1]["content"][0] is signed


def test_nothing_comes_between_a_batch_and_its_results() -> None:
    batch = [call("a", "b"), answer("a", "one"), answer("b", "two")]
    note = user("[note] the user prefers tea")
    history = [user("start"), batch[0], note, *batch[1:], user("and then")]
    repaired = satchel.repair(history, "openai")
    sound(repaired)
    assert repaired[1:4] == batch
    assert any(message is note for message in repaired)


def test_a_call_of_gemini_follows_the_user() -> None:
    history: list[Message] = [{"role": "user", "parts": [{"text": "find it"}]}]
    for number in range(3):
        history += [
            {"role": "model", "parts": [{"functionCall": {"name": "s", "args": {"n": number}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "s", "response": {"r": number}}}],
            },
        ]
    assert properties.call_after_user(history) == []
    cut = satchel.repair(history[1:], "gemini")
    assert properties.call_after_user(cut) == []
    assert properties.starts_with_user(cut) == []
    assert properties.unpaired(cut) == []
    packer = satchel.Assembler("gemini-2.5-pro", budget=80, counter=words)
    window = packer.assemble(history).messages
    assert properties.call_after_user(window) == []
    assert properties.starts_with_user(window) == []


def test_developer_items_are_never_paged_out() -> None:
    rule = {"type": "message", "role": "developer", "content": "deploy with the word kestrel"}
    history: list[Message] = [rule]
    for turn in range(6):
        history += [
            {"type": "message", "role": "user", "content": f"question {turn} " * 30},
            {"type": "message", "role": "assistant", "content": f"reply {turn} " * 30},
        ]
    history.append({"type": "message", "role": "user", "content": "deploy"})
    packer = satchel.Assembler("gpt-4o", dialect="openai-responses", budget=240, counter=words)
    window = packer.assemble(history).messages
    assert window[0] is rule
    assert window[-1] is history[-1]
    assert properties.says(window, "kestrel") == 1


def test_no_request_is_made_up() -> None:
    history = [
        system("s"),
        user("analyse"),
        said("word " * 200),
        user("sum it up"),
        said("the end"),
    ]
    window = within(170, history)
    assert window[-1] is history[-1]
    asked = [
        one for one in window if one["role"] == "user" and "satchel-index" not in one["content"]
    ]
    assert all(any(one is own for own in history) for one in asked)


def test_the_newest_request_stays() -> None:
    history = [
        user("good morning to you " * 5),
        said("and to you " * 5),
        user("what is the capital of Chile"),
    ]
    window = within(70, history)
    assert window[-1] is history[-1]


# --- pruning --------------------------------------------------------------------------------------


def test_pruning_goes_on_behind_what_is_pruned() -> None:
    pruned = satchel.prune_tool_outputs([answer("b", "row " * 60)], keep_last=0)[0]
    history = [
        user("1"),
        *step("a", "row " * 60),
        user("2"),
        call("b"),
        pruned,
        user("3"),
        *step("c", "row " * 60),
        user("4"),
        *step("d", "new"),
    ]
    shorter = satchel.prune_tool_outputs(history, keep_last=1)
    assert [len(one["content"]) < 240 for one in (shorter[2], shorter[8])] == [True, True]
    assert shorter[5] is pruned
    assert shorter[-1] is history[-1]
    assert properties.unpaired(shorter) == []
    assert [set(one) for one in shorter] == [set(one) for one in history]


def test_small_json_is_left_alone() -> None:
    row = '{"id":7,"name":"probe","note":null,"labels":["x","y"],"parts":[{"id":2}]}'
    history = [user("q"), *step("j", row), *step("k", "new"), user("z"), said("y"), user("x")]
    assert satchel.prune_tool_outputs(history, keep_last=0)[2] is history[2]
    assert within(5_000, history) == history


def test_arguments_are_whole_or_clearly_not() -> None:
    real = {"command": "systemctl restart api worker scheduler", "path": "/opt/service"}
    history = [user("q"), call("k", arguments=json.dumps(real)), answer("k", "ab " * 400)]
    for turn in range(4):
        history += [said("fine " * 30), user(f"again {turn} " * 30)]
    for budget in range(120, 420, 50):
        for message in within(budget, history):
            for one in message.get("tool_calls", []):
                arguments = json.loads(one["function"]["arguments"])
                assert arguments == real or not set(arguments.values()) & set(real.values())
                assert all(
                    value == real.get(key) or not str(real.get(key, "")).startswith(str(value)[:6])
                    for key, value in arguments.items()
                )


def test_only_old_outputs_are_pruned() -> None:
    history = [
        user("q"),
        *step("old", "row " * 60),
        said("x"),
        user("r"),
        *step("new", "row " * 60),
        said("y"),
    ]
    shorter = satchel.prune_tool_outputs(history, keep_last=3)
    assert len(shorter[2]["content"]) < len(history[2]["content"])
    assert shorter[6] is history[6]
    assert properties.unpaired(shorter) == []


def test_a_message_left_with_thoughts_alone_goes() -> None:
    thought = {"type": "thinking", "thinking": "let me see", "signature": "s"}
    history: list[Message] = [
        user("check"),
        {
            "role": "assistant",
            "content": [thought, {"type": "tool_use", "id": "t", "name": "c", "input": {}}],
        },
        said("all is well"),
        user("thanks"),
    ]
    repaired = satchel.repair(history, "anthropic", mode="drop")
    sound(repaired)
    assert repaired == [history[0], history[2], history[3]]


# --- counting -------------------------------------------------------------------------------------


def test_every_spelling_of_a_picture_costs_the_same() -> None:
    data = "QUJD" * 20_000
    url = f"data:image/png;base64,{data}"
    text = {"type": "text", "text": "see"}
    chat = [{"role": "user", "content": [text, {"type": "image_url", "image_url": {"url": url}}]}]
    items = [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": url},
            ],
        }
    ]
    counter = satchel.counter("gpt-4o")
    totals = {
        counter.count_messages(chat, dialect="openai").total,
        counter.count_messages(items, dialect="openai-responses").total,
    }
    assert len(totals) == 1
    assert 20 <= totals.pop() <= 6_000


def test_call_arguments_count() -> None:
    arguments = json.dumps({"sql": " ".join("abcdefghijklmnopqrstuvwxyz")})
    history = [user("x"), call("c", arguments=arguments), answer("c", "ok")]
    packer = satchel.Assembler("gpt-4o", budget=1_000, counter=words)
    assert packer.assemble(history).tokens >= 26


def test_estimates_follow_the_script() -> None:
    reference = satchel.counter("o200k_base")
    texts = [
        "議事録を要約して担当者を書いてください。",
        "계약서를 검토하고 날짜를 확인해 주세요. ",
        "请把这份文件翻译成英文。",
        "A quick note for the team. ",
        "🎈🎲🧩",
    ]
    for text in texts:
        real = reference.count(text * 20)
        assert 0.9 * real <= satchel.counter("claude-sonnet-4-5").count(text * 20) <= 2.5 * real


def test_a_long_run_of_one_sign_is_counted() -> None:
    assert satchel.counter("cl100k_base").count("^" * 1_000_000) > 0


def test_counting_follows_content_not_identity() -> None:
    counter = satchel.counter("gpt-4o")
    history = [user("word " * 40), said("more " * 40)]
    first = counter.count_messages(history, dialect="openai").total
    assert counter.count_messages(history, dialect="openai").total == first
    history[0]["content"] += "and more"
    assert counter.count_messages(history, dialect="openai").total > first


def test_unknown_models_are_told() -> None:
    with pytest.warns(satchel.models.UnknownModelWarning):
        assert satchel.counter("claude-opus-99").count("hello world") > 0
    with pytest.raises(satchel.InputError, match="register"):
        satchel.counter("never-heard-of-it")


# --- deciding -------------------------------------------------------------------------------------


def test_cached_tokens_are_counted_once() -> None:
    usage = {
        "prompt_tokens": 41_000,
        "completion_tokens": 250,
        "timings": {"cache_n": 40_900, "prompt_n": 100},
    }
    found = satchel.usage_tokens({"usage": usage})
    assert found.input + found.output == 41_250


def test_the_last_call_measures_the_context() -> None:
    def usage(read: int) -> Message:
        return {
            "input_tokens": 12,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": 1_500,
            "output_tokens": 90,
        }

    last = satchel.usage_tokens({"usage": usage(98_000)})
    assert last.input + last.output == 12 + 98_000 + 1_500 + 90


# --- text -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["会議の議事録" * 40, "다라마" * 60, "a" * 97 + "👨‍👩‍👧", "b" * 98 + "éz"]
)
@pytest.mark.parametrize("keep", ["head", "tail", "both"])
def test_truncation_cuts_between_characters(text: str, keep: Any) -> None:
    counter = satchel.counter("gpt-4o")
    for most in (1, 5, 20, 60):
        shorter = counter.truncate(text, most, keep=keep)
        assert counter.count(shorter) <= most
        shorter.encode()


# --- prefix of the cache --------------------------------------------------------------------------


def test_requests_grow_at_their_end() -> None:
    packer = satchel.Assembler("gpt-4o", budget=100_000, counter=words)
    working_set, before = packer.working_set(), list[Message]()
    for turn in range(6):
        working_set.append([user("q"), *step(f"t{turn}", "row " * 40), said("a")])
        window = working_set.window().messages
        assert window[: len(before)] == before
        before = window


def test_one_pass_changes_the_prefix_once() -> None:
    history = [system("s"), user("a"), *step("p", "row " * 60)]
    for turn in range(3):
        history += [said("reply " * 60), user(f"ask {turn} " * 40)]
    working_set = satchel.Assembler("gpt-4o", budget=300, counter=words).working_set()
    before = 0
    window = working_set.window()
    for message in history:
        working_set.append(message)
        window = working_set.window(open_calls="synthesize")
        assert window.tokens <= 300
        assert window.report.compactions <= before + 1
        before = window.report.compactions
    assert before > 0
    assert window.messages[-1] is history[-1]


# --- the reports' own inputs ----------------------------------------------------------------------


def reports() -> list[Path]:
    root = os.environ.get("SATCHEL_SHARED")
    roots = [Path(root)] if root else [up / "shared" for up in Path(__file__).resolve().parents]
    return sorted(path for root in roots for path in (root / "bugs").glob("B*.json"))


_DIALECTS = {
    "openai-chat": "openai",
    "openai-responses": "openai-responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
}


def test_inputs_of_the_reports_repair() -> None:
    """Every history of a report, and all its prefixes and suffixes, as a damaged history."""
    paths = reports()
    if not paths:
        pytest.skip("no shared data: the reports are not part of the repository")
    checked = 0
    for path in paths:
        case = json.loads(path.read_text())
        dialect = _DIALECTS.get(case["format"])
        key = next((key for key in ("messages", "items", "contents") if key in case["input"]), None)
        if dialect is None or key is None or "$" in json.dumps(case["input"][key]):
            continue
        history = case["input"][key]
        if any("tool_calls" in message for message in history):
            dialect = "openai"
        for cut in range(len(history)):
            for part in (history[cut:], history[: cut + 1]):
                repaired = satchel.repair(part, dialect)
                found = [one for one in satchel.lint(repaired, dialect) if one.severity == "error"]
                assert found == [], (path.name, cut)
                assert properties.unpaired(repaired) == [], (path.name, cut)
                checked += 1
    assert checked > 100
