"""`satchel.prune_tool_outputs` against a slow obvious version, and its rules one by one."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel.errors import InputError
from satchel.windows import prune_tool_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

Message = dict[str, Any]

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}


def note(kept: int, full: int) -> str:
    return f"\n[tool output pruned: first {kept} of {full} characters kept]"


def tool(content: object) -> Message:
    return {"role": "tool", "tool_call_id": "call-7", "name": "read_file", "content": content}


def tool_result(content: object) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "use-7", "content": content}


def plain(role: str, content: object) -> Message:
    return {"role": role, "content": content}


def user_with_result(content: object) -> Message:
    return plain("user", [tool_result(content)])


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def oracle(messages: list[Message], max_chars: int, keep_last: int) -> list[Message]:
    """The founding rule, for string contents."""
    pruned: list[Message] = []
    for i, m in enumerate(messages):
        content = m["content"]
        if m["role"] == "tool" and len(messages) - i > keep_last and len(content) > max_chars:
            shortened = content[:max_chars] + note(max_chars, len(content))
            pruned.append({**m, "content": shortened})
        else:
            pruned.append(m)
    return pruned


histories = st.lists(
    st.one_of(
        st.builds(tool, st.text(max_size=40)),
        st.builds(plain, st.sampled_from(["system", "user", "assistant"]), st.text(max_size=40)),
    ),
    max_size=12,
)


@given(histories, st.integers(0, 30), st.integers(0, 14))
def test_matches_oracle(messages: list[Message], max_chars: int, keep_last: int) -> None:
    before = copy.deepcopy(messages)
    pruned = prune_tool_outputs(messages, max_chars=max_chars, keep_last=keep_last)
    expected = oracle(messages, max_chars, keep_last)
    assert pruned == expected
    assert messages == before
    for old, new, wanted in zip(messages, pruned, expected, strict=True):
        assert (new is old) == (wanted is old)


@given(histories, st.integers(0, 30), st.integers(0, 14))
def test_idempotent(messages: list[Message], max_chars: int, keep_last: int) -> None:
    once = prune_tool_outputs(messages, max_chars=max_chars, keep_last=keep_last)
    twice = prune_tool_outputs(once, max_chars=max_chars, keep_last=keep_last)
    assert all(new is old for old, new in zip(once, twice, strict=True))


def test_the_defaults_are_150_characters_and_3_places() -> None:
    history = [tool("가" * 151), tool("x" * 150), tool("x" * 151), tool("x" * 151), tool("x" * 151)]
    pruned = prune_tool_outputs(history)
    assert pruned[0] == {**history[0], "content": "가" * 150 + note(150, 151)}
    assert pruned[1:] == history[1:]
    assert prune_tool_outputs(history[1:]) == history[1:]


def test_a_pruned_output_does_not_stop_the_next() -> None:
    history = [tool("x" * 200), tool("y" * 200), *[tool("z")] * 3]
    first = prune_tool_outputs(history[:1] + history[2:])
    second = prune_tool_outputs([first[0], *history[1:]])
    assert second[0] is first[0]
    assert second[1]["content"] == "y" * 150 + note(150, 200)


def test_a_smaller_limit_cuts_again_and_keeps_the_full_length() -> None:
    once = prune_tool_outputs([tool("x" * 500)], keep_last=0)
    twice = prune_tool_outputs(once, max_chars=20, keep_last=0)
    assert twice[0]["content"] == "x" * 20 + note(20, 500)
    assert prune_tool_outputs(twice, keep_last=0)[0] is twice[0]


def test_an_output_that_ends_like_a_note_is_cut() -> None:
    forged = "x" * 400 + note(5, 900)
    pruned = prune_tool_outputs([tool(forged)], keep_last=0)
    assert pruned[0]["content"] == "x" * 150 + note(150, len(forged))


def test_other_roles_stay() -> None:
    history = [{"role": role, "content": "x" * 999} for role in ("system", "user", "assistant")]
    pruned = prune_tool_outputs(history, keep_last=0)
    assert all(new is old for old, new in zip(history, pruned, strict=True))


def test_legacy_function_results_are_outputs() -> None:
    history = [{"role": "function", "name": "f", "content": "x" * 151}]
    assert prune_tool_outputs(history, keep_last=0)[0]["content"].endswith(note(150, 151))


def test_anthropic_results_are_cut_in_their_block() -> None:
    asked = text("y" * 400)
    message: Message = {"role": "user", "content": [tool_result("x" * 200), IMAGE, asked]}
    pruned = prune_tool_outputs([message], keep_last=0)
    blocks = pruned[0]["content"]
    assert blocks[0] == tool_result("x" * 150 + note(150, 200))
    assert blocks[1] is IMAGE
    assert blocks[2] is asked
    assert message["content"][0] == tool_result("x" * 200)


@pytest.mark.parametrize("wrap", [tool, user_with_result])
def test_text_blocks_are_cut_as_one_and_images_stay(wrap: Callable[[object], Message]) -> None:
    blocks = [text("a" * 100), IMAGE, {**text("b" * 80), "citations": None}, text("c" * 9), IMAGE]
    message = wrap(blocks)
    pruned = prune_tool_outputs([message], keep_last=0)[0]
    content = pruned["content"] if pruned["role"] == "tool" else pruned["content"][0]["content"]
    assert content == [
        text("a" * 100),
        IMAGE,
        {**text("b" * 50 + note(150, 189)), "citations": None},
        IMAGE,
    ]
    assert content[0] is blocks[0]
    assert content[1] is IMAGE
    again = prune_tool_outputs([pruned], keep_last=0)[0]
    assert again is pruned


def test_bare_strings_among_blocks() -> None:
    pruned = prune_tool_outputs([tool(["a" * 100, "b" * 100])], keep_last=0)
    assert pruned[0]["content"] == ["a" * 100, "b" * 50 + note(150, 200)]


@given(
    st.lists(st.one_of(st.text(max_size=20).map(text), st.just(IMAGE)), max_size=6),
    st.integers(0, 30),
)
def test_blocks_keep_exactly_the_first_characters(blocks: list[Any], max_chars: int) -> None:
    def joined(content: list[Any]) -> str:
        return "".join(b["text"] for b in content if b["type"] == "text")

    full = joined(blocks)
    pruned = prune_tool_outputs([tool(blocks)], max_chars=max_chars, keep_last=0)[0]["content"]
    if len(full) <= max_chars:
        assert pruned is blocks
    else:
        assert joined(pruned) == full[:max_chars] + note(max_chars, len(full))
    assert [b for b in pruned if b is IMAGE] == [b for b in blocks if b is IMAGE]


def test_lone_surrogates_survive() -> None:
    pruned = prune_tool_outputs([tool("\ud800\udfff" * 3)], max_chars=3, keep_last=0)
    assert pruned[0]["content"] == "\ud800\udfff\ud800" + note(3, 6)


@pytest.mark.parametrize(
    "odd",
    [
        None,
        5,
        "x" * 999,
        [],
        {},
        {"role": "tool"},
        {"role": 5, "content": "x" * 999},
        {"role": "tool", "content": None},
        {"role": "tool", "content": 5},
        {"role": "tool", "content": [5, None, {"type": "text"}, {"type": "text", "text": 9}]},
        {"role": "user", "content": [5, {"type": "tool_result"}]},
        {"role": "user", "content": [{"type": "tool_result", "content": None}]},
    ],
)
def test_what_cannot_be_read_stays(odd: object) -> None:
    assert prune_tool_outputs([odd], max_chars=0, keep_last=0)[0] is odd


def test_strip_removes_keys_before_the_length_is_looked_at() -> None:
    output = {"id": 7, "raw": "x" * 500, "rows": [{"raw": [1], "total": 2.5, "name": "가"}]}
    history = [tool(json.dumps(output)), tool(json.dumps(output)), tool("raw"), tool("x" * 151)]
    pruned = prune_tool_outputs(history, strip=["raw"], keep_last=2)
    assert pruned[0] == tool('{"id":7,"rows":[{"total":2.5,"name":"가"}]}')
    assert pruned[2:] == history[2:]
    recent = prune_tool_outputs(history, strip=["raw"], keep_last=4)
    assert all(new is old for old, new in zip(history, recent, strict=True))


def test_strip_then_cut_notes_the_length_without_the_keys() -> None:
    output = json.dumps({"raw": "x" * 500, "log": "y" * 300})
    pruned = prune_tool_outputs([tool(output)], strip=("raw",), keep_last=0)[0]["content"]
    kept = '{"log":"' + "y" * 300 + '"}'
    assert pruned == kept[:150] + note(150, len(kept))


def test_strip_in_blocks() -> None:
    blocks = [text('{"raw": 1, "n": 2}'), IMAGE, text("plain")]
    pruned = prune_tool_outputs([tool(blocks)], strip=["raw"], keep_last=0)[0]["content"]
    assert pruned == [text('{"n":2}'), IMAGE, text("plain")]
    assert pruned[2] is blocks[2]


@pytest.mark.parametrize("output", ['{"raw": 1} and more', '"raw"', "raw", '{"other": 1}', "[NaN]"])
def test_strip_leaves_what_is_no_json_or_has_no_such_key(output: str) -> None:
    message = tool(output)
    assert prune_tool_outputs([message], strip=["raw"], keep_last=0)[0] is message


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
)


def without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        fields = cast("Message", value).items()
        return {key: without(field, names) for key, field in fields if key not in names}
    if isinstance(value, list):
        return [without(item, names) for item in cast("list[object]", value)]
    return value


@given(json_values, st.sets(st.sampled_from("abcd")))
def test_strip_matches_oracle(value: Any, names: set[str]) -> None:
    message = tool(json.dumps(value))
    pruned = prune_tool_outputs([message], max_chars=10**6, keep_last=0, strip=sorted(names))[0]
    expected = without(value, names)
    if expected == value:
        assert pruned is message
    else:
        assert json.loads(pruned["content"]) == expected


@pytest.mark.parametrize(
    "options",
    [
        {"max_chars": -1},
        {"max_chars": 1.5},
        {"keep_last": -1},
        {"keep_last": "3"},
        {"strip": "raw"},
        {"strip": [5]},
        {"strip": 5},
    ],
)
def test_options_that_are_refused(options: Any) -> None:
    with pytest.raises(InputError, match=next(iter(options))) as caught:
        prune_tool_outputs([], **options)
    assert caught.value.code == "invalid_value"


def test_negative_numbers_are_named() -> None:
    with pytest.raises(InputError) as caught:
        prune_tool_outputs([], max_chars=-7)
    assert caught.value.value == -7
