"""Faults that users met elsewhere: results, arguments and thoughts that were cut in a wrong way.

Each test says what must hold of a history that broke another program.
"""

from __future__ import annotations

import json
from typing import Any, cast

import pytest

import properties
import satchel
from turns import Message, answer, call, keep_last, said, sound, step, user, within, words

LONG = "row " * 60


def test_pruning_goes_on_behind_what_is_pruned() -> None:
    own_note = satchel.prune_tool_outputs([answer("b", LONG)], keep_last=0)[0]
    for pruned in (own_note, answer("b", "[left out]")):
        history = [
            user("1"),
            *step("a", LONG),
            user("2"),
            call("b"),
            pruned,
            user("3"),
            *step("c", LONG),
            user("4"),
            *step("d", "new"),
        ]
        shorter = satchel.prune_tool_outputs(history, keep_last=1)
        assert [len(one["content"]) < 240 for one in (shorter[2], shorter[8])] == [True, True]
        assert shorter[5] is pruned
        assert shorter[-1] is history[-1]
        assert properties.unpaired(shorter) == []


def test_pruning_leaves_everything_but_the_text() -> None:
    """What an application reads off a result (its id, name, own fields) survives."""
    result: Message = {**answer("a", LONG), "name": "read", "loaded": ["rules.md"], "status": "ok"}
    history = [user("1"), call("a", name="read"), result, user("2"), *step("b", "new")]
    shorter = satchel.prune_tool_outputs(history, keep_last=1)[2]
    assert shorter is not result
    assert {**shorter, "content": ""} == {**result, "content": ""}
    blocks: Message = {
        "type": "tool_result",
        "tool_use_id": "a",
        "content": LONG,
        "is_error": True,
    }
    mixed: Message = {"role": "user", "content": [blocks, {"type": "text", "text": "mind this"}]}
    shorter = satchel.prune_tool_outputs([mixed], keep_last=0)[0]
    assert {**shorter["content"][0], "content": ""} == {**blocks, "content": ""}
    assert shorter["content"][1] is mixed["content"][1]


def test_only_old_outputs_are_pruned() -> None:
    history = [
        user("q"),
        *step("old", LONG),
        said("x"),
        user("r"),
        *step("new", LONG),
        said("y"),
    ]
    for last in range(len(history) + 2):
        shorter = satchel.prune_tool_outputs(history, keep_last=last)
        cut = [at for at, one in enumerate(shorter) if one is not history[at]]
        # Results stand second and sixth: seven and two places from the end.
        assert cut == [at for at in (2, 6) if len(history) - at > last]
        assert properties.unpaired(shorter) == []


# --- what was read back ---------------------------------------------------------------------------


def read_back(dialect: str) -> list[Any]:
    """A run that reads an original with the page tool, and one more result that is as long."""
    history = [
        user("q"),
        *step("o", "[moved out: p_12]"),
        call("g", name="page_in", arguments='{"pointer": "p_12"}'),
        answer("g", LONG),
        *step("x", LONG),
        user("so?"),
    ]
    return satchel.convert(history, "openai", dialect).messages


@pytest.mark.parametrize(
    "dialect", ["openai", "openai-responses", "anthropic", "gemini", "bedrock"]
)
def test_what_was_read_back_is_not_pruned(dialect: str) -> None:
    """Reading an original is one step, not the first of a loop."""
    history = read_back(dialect)
    shorter = satchel.prune_tool_outputs(history, max_chars=20, keep_last=0)
    changed = [at for at, one in enumerate(shorter) if one is not history[at]]
    assert changed == [6]  # of three results the other long one
    assert properties.says(shorter, LONG.strip()) == 1
    again = satchel.prune_tool_outputs(shorter, max_chars=20, keep_last=0)
    assert again == shorter


def test_a_later_call_may_have_the_id_of_a_reading_one() -> None:
    history = [user("q"), call("1", name="page_in"), answer("1", LONG), *step("1", LONG)]
    shorter = satchel.prune_tool_outputs(history, max_chars=20, keep_last=0)
    assert shorter[2] is history[2]
    assert len(shorter[4]["content"]) < len(LONG)


def test_reading_an_original_gives_the_original() -> None:
    """However small the window, a pointer leads to content and never to another pointer."""
    original = "".join(f"line {number}: value {number * 7}\n" for number in range(200))
    history = [user("q"), *step("o", original), said("fine"), user("more " * 40), said("ok " * 40)]
    packer = satchel.Assembler("gpt-4o", budget=400, counter=words)
    working_set = packer.working_set([*history, user("what was in line 70?")])
    window = working_set.window()
    pointer = next(page.pointer for page in window.pages if page.message == 2)
    for turn in range(4):
        asked = call(
            f"g{turn}",
            name="page_in",
            arguments=json.dumps({"pointer": pointer, "first_line": 71, "last_line": 71}),
        )
        working_set.append(asked)
        reading = working_set.handle_page_call(asked["tool_calls"][0], max_tokens=200)
        assert "line 70: value 490" in reading["content"]
        working_set.append(reading)
        newest = working_set.window().messages[-1]
        assert newest == reading
        working_set.append([said("I see " * 60), user("and again? " * 30)])
    assert working_set.page_in(pointer) == original


# --- json -----------------------------------------------------------------------------------------

ROW = '{"id":7,"name":"probe","note":null,"labels":["x","y"],"parts":[{"id":2}]}'


def test_small_json_is_left_alone() -> None:
    history = [user("q"), *step("j", ROW), *step("k", "new"), user("z"), said("y"), user("x")]
    assert satchel.prune_tool_outputs(history, keep_last=0)[2] is history[2]
    assert within(5_000, history)[2] is history[2]
    assert satchel.trim_text(ROW, max_tokens=200).text == ROW


def test_what_is_missing_from_json_is_marked() -> None:
    rows = [{"id": at, "name": f"probe {at}", "labels": ["x"], "note": None} for at in range(60)]
    text = json.dumps({"rows": rows, "total": 60})
    for limit in (60, 120, 240, 480):
        trimmed = satchel.trim_text(text, max_tokens=limit, counter=words)
        kept: object = json.loads(trimmed.text)
        assert words(trimmed.text) <= limit
        if trimmed.text != text:
            assert "…" in trimmed.text
            assert trimmed.left_out_lines > 0
        # What is left is as it was.
        fields = cast("dict[str, Any]", kept) if isinstance(kept, dict) else {}
        found: list[Any] = fields.get("rows", [])
        assert all(row in rows for row in found if isinstance(row, dict) and "…" not in row)


# --- arguments ------------------------------------------------------------------------------------


def test_arguments_are_whole_or_clearly_not() -> None:
    real = {"command": "systemctl restart api worker scheduler", "path": "/opt/service"}
    history = [user("q"), call("k", arguments=json.dumps(real)), answer("k", "ab " * 400)]
    for turn in range(4):
        history += [said("fine " * 30), user(f"again {turn} " * 30)]
    lowered = 0
    for budget in range(120, 420, 25):
        window = within(budget, history)
        sound(window)
        for message in window:
            for one in message.get("tool_calls", []):
                arguments = json.loads(one["function"]["arguments"])
                lowered += arguments != real
                assert arguments == real or not set(arguments.values()) & set(real.values())
                assert all(
                    value == real.get(key) or not str(real.get(key, "")).startswith(str(value)[:6])
                    for key, value in arguments.items()
                )
    pruned = satchel.prune_tool_outputs(history, max_chars=10, keep_last=0)
    assert pruned[1] is history[1]
    assert properties.unpaired(pruned) == []


def test_large_arguments_become_one_placeholder() -> None:
    real = {"path": "/srv/app/main.py", "text": "print the row \n" * 100}
    history = [user("q"), call("k", arguments=json.dumps(real)), answer("k", "written"), said("ok")]
    history += [user("run it"), *step("r", "NameError in /srv/app/main.py"), user("repair that")]
    seen: set[str] = set()
    for budget in range(100, 700, 25):
        window = within(budget, history)
        sound(window)
        for message in window:
            for one in message.get("tool_calls", [])[:1]:
                arguments = json.loads(one["function"]["arguments"])
                if one["id"] != "k":
                    continue
                seen.add("whole" if arguments == real else "placeholder")
                if arguments != real:
                    assert not any("print the" in str(value) for value in arguments.values())
                    assert "/srv/app/main.py" not in arguments.values()
    assert seen == {"whole", "placeholder"}


# --- thoughts -------------------------------------------------------------------------------------


def test_signed_thoughts_without_words_stay() -> None:
    signed = {"type": "thinking", "thinking": "", "signature": "zz9"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    use: Message = {"type": "tool_use", "id": "u", "name": "read", "input": {}}
    blocks: list[Message] = [signed, hidden, {"type": "thinking", "thinking": ""}, use]
    result = {"type": "tool_result", "tool_use_id": "u", "content": "row"}
    history: list[Message] = [
        user("go"),
        {"role": "assistant", "content": blocks},
        {"role": "user", "content": [result]},
    ]
    packed = satchel.Assembler("claude-sonnet-4-5", budget=1_000).assemble(history).messages
    for kept in (
        satchel.repair(history, "anthropic"),
        satchel.repair(history, "anthropic", mode="drop"),
        packed,
    ):
        assert kept[1]["content"] == [signed, hidden, use]
        assert kept[1]["content"][0] is signed
        assert kept[1]["content"][1] is hidden
        assert kept[2] == history[2]
    sound_history: list[Message] = [
        user("go"),
        {"role": "assistant", "content": [signed, hidden, use]},
        {"role": "user", "content": [result]},
    ]
    assert satchel.repair(sound_history, "anthropic") == sound_history


def blocks_of(message: Message) -> list[Message]:
    content: object = message["content"]
    return cast("list[Message]", content) if isinstance(content, list) else []


def thinking_run() -> list[Message]:
    history: list[Message] = [user("check")]
    for turn in range(4):
        thought = {"type": "thinking", "thinking": f"let me see {turn}", "signature": f"s{turn}"}
        use: Message = {"type": "tool_use", "id": f"t{turn}", "name": "c", "input": {}}
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": "fine " * 30}
        history += [
            {"role": "assistant", "content": [thought, use]},
            {"role": "user", "content": [result]},
        ]
    return [*history, said("all is well"), user("thanks")]


def test_a_message_left_with_thoughts_alone_goes() -> None:
    history = thinking_run()
    del history[2]  # the result of the first call
    repaired = satchel.repair(history, "anthropic", mode="drop")
    sound(repaired)
    assert repaired == [history[0], *history[2:]]


def test_no_window_holds_thoughts_without_their_call() -> None:
    history = thinking_run()
    windows = [
        keep_last(count, history, model="claude-sonnet-4-5") for count in range(1, len(history))
    ]
    windows += [within(budget, history, model="claude-sonnet-4-5") for budget in range(90, 260, 10)]
    assert min(map(len, windows)) < len(history)
    known = [block for one in history for block in blocks_of(one)]
    for window in windows:
        sound(window)
        for message in window:
            blocks = blocks_of(message)
            kinds = [block["type"] for block in blocks]
            assert ("thinking" in kinds) <= ("tool_use" in kinds)
            assert all(block in known for block in blocks if block["type"] == "thinking")
