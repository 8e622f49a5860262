"""Transcript files of every format, as people meet them: whole, damaged, packed, in folders."""

from __future__ import annotations

import gzip
import io
import json
import math
import os
import sys
from collections import Counter
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel import _core
from satchel.reading import FORMATS, STDIN, Transcript, TranscriptWarning, read_transcripts

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[1] / "data" / "formats"
SAMPLES = {path.name: path for path in sorted(FOLDER.iterdir())}

# conversations, messages, calls, results, reported calls
Figures = tuple[int, int, int, int, int]


def read(source: Path | str, **options: Any) -> list[Transcript]:
    return list(read_transcripts(source, **options))


def one(name: str, index: int = 0) -> Transcript:
    return read(SAMPLES[name])[index]


def written(path: Path, *values: object) -> Path:
    text = "".join(f"{json.dumps(value)}\n" for value in values)
    path.write_text(text, encoding="utf-8")
    return path


def roles(transcript: Transcript) -> list[str]:
    return [message["role"] for message in transcript.messages]


# --- every format ---------------------------------------------------------------------------------

EXPECTED: dict[str, tuple[str, str, Figures]] = {
    "aider.md": ("aider", "openai", (2, 6, 2, 2, 0)),
    "anthropic.json": ("anthropic", "anthropic", (2, 5, 2, 1, 2)),
    "bedrock.json": ("bedrock", "bedrock", (1, 3, 1, 1, 0)),
    "claude-code.jsonl": ("claude-code", "anthropic", (2, 9, 2, 2, 3)),
    "codex.jsonl": ("codex", "openai-responses", (1, 8, 2, 2, 2)),
    "gemini-cli.json": ("gemini-cli", "gemini", (1, 4, 2, 1, 2)),
    "gemini.json": ("gemini", "gemini", (1, 2, 1, 0, 1)),
    "inspect.json": ("inspect", "openai", (1, 4, 1, 1, 1)),
    "intercode.json": ("intercode", "openai", (2, 5, 2, 1, 0)),
    "kimi.jsonl": ("kimi", "openai", (1, 4, 1, 1, 1)),
    "langchain.json": ("langchain", "openai", (1, 5, 2, 2, 1)),
    "mini-swe-agent.json": ("mini-swe-agent", "openai", (1, 4, 0, 0, 1)),
    "openai-responses.json": ("openai-responses", "openai-responses", (1, 5, 1, 1, 2)),
    "openai.jsonl": ("openai", "openai", (3, 8, 2, 1, 1)),
    "openhands.json": ("openhands", "openai", (1, 9, 4, 3, 1)),
    "pi.jsonl": ("pi", "anthropic", (1, 5, 2, 2, 1)),
    "sharegpt.json": ("sharegpt", "openai", (1, 5, 1, 1, 0)),
    "swe-agent.traj": ("swe-agent", "openai", (1, 4, 1, 1, 0)),
}


def blocks(message: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = message.get(key)
    return cast("list[dict[str, Any]]", value) if isinstance(value, list) else []


def calls_and_results(transcript: Transcript) -> tuple[int, int]:
    """How many calls and results the messages hold, by the words of their dialect."""
    calls = results = 0
    for message in transcript.messages:
        kind = str(message.get("type") or "")
        calls += len(blocks(message, "tool_calls"))
        results += message.get("role") == "tool"
        calls += kind in {"function_call", "custom_tool_call", "mcp_call"}
        results += kind.endswith("_call_output") or kind == "mcp_call"
        for part in blocks(message, "content") + blocks(message, "parts"):
            block = str(part.get("type") or "")
            calls += block.endswith("tool_use") or not {"toolUse", "functionCall"}.isdisjoint(part)
            results += block.endswith("tool_result")
            results += not {"toolResult", "functionResponse"}.isdisjoint(part)
            calls += "function_call" in part
            results += "function_response" in part
    return calls, results


def figures(transcripts: list[Transcript]) -> Figures:
    pairs = [calls_and_results(transcript) for transcript in transcripts]
    return (
        len(transcripts),
        sum(len(transcript.messages) for transcript in transcripts),
        sum(calls for calls, _ in pairs),
        sum(results for _, results in pairs),
        sum(len(transcript.usage) for transcript in transcripts),
    )


def test_every_format_has_a_sample_and_a_row() -> None:
    assert SAMPLES.keys() == EXPECTED.keys()
    assert {name for name, _, _ in EXPECTED.values()} == set(FORMATS)
    assert tuple(_core.transcript_formats()) == FORMATS
    listed = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert [name for name in SAMPLES if f"`{name}`" not in listed] == []


@pytest.mark.parametrize("name", EXPECTED)
def test_sample(name: str) -> None:
    found = read(SAMPLES[name])
    kind, dialect, expected = EXPECTED[name]
    assert {transcript.format for transcript in found} == {kind}
    assert {transcript.dialect for transcript in found} == {dialect}
    assert figures(found) == expected
    assert [transcript.index for transcript in found] == list(range(len(found)))
    assert {transcript.source for transcript in found} == {str(SAMPLES[name])}
    for transcript in found:
        for usage in transcript.usage:
            assert 0 < usage.index < len(transcript.messages)
            assert usage.tokens.input > 0
            # Records of programs have names of their own; a provider's mean the same everywhere.
            if kind == dialect:
                assert satchel.usage_tokens(usage.record) == usage.tokens


def working_set_dialects() -> set[str]:
    known: set[str] = set()
    for dialect in {dialect for _, dialect, _ in EXPECTED.values()}:
        try:
            satchel.Assembler("gpt-4o", dialect=dialect)
        except satchel.InputError:
            continue
        known.add(dialect)
    return known


def test_every_sample_makes_a_working_set() -> None:
    known = working_set_dialects()
    assert known >= {"openai", "anthropic"}
    for name, path in SAMPLES.items():
        for transcript in read(path):
            if transcript.dialect in known:
                assembler = satchel.Assembler("gpt-4o", dialect=transcript.dialect)
                working_set = assembler.working_set(
                    transcript.messages, system=transcript.system, tools=transcript.tools
                )
                assert len(working_set) == len(transcript.messages), name


def test_transcripts_are_values() -> None:
    transcript = one("openai.jsonl")
    with pytest.raises(FrozenInstanceError):
        transcript.model = "gpt-5"  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue] - frozen
    assert "low water" not in repr(transcript)


# --- what each format needs -----------------------------------------------------------------------


def test_recordings_keep_the_longest_and_what_was_reported_on_the_way() -> None:
    grown, failed = read(SAMPLES["anthropic.json"])
    assert roles(grown) == ["user", "assistant", "user", "assistant"]
    assert [(usage.index, usage.tokens.input) for usage in grown.usage] == [(1, 412), (3, 440)]
    assert [usage.tokens.output for usage in grown.usage] == [40, 33]
    streamed = grown.messages[-1]["content"]
    assert streamed[0]["text"] == "Low water is at 14:20."
    assert streamed[1]["input"] == {"harbour": "Rushmere"}
    assert grown.system == "Answer briefly."
    assert grown.tools is not None
    assert roles(failed) == ["user"]


def test_responses_are_chained_by_their_ids() -> None:
    transcript = one("openai-responses.json")
    kinds = [message.get("type") for message in transcript.messages]
    expected = [None, "reasoning", "function_call", "function_call_output", "message"]
    assert kinds == expected
    assert [usage.index for usage in transcript.usage] == [1, 4]
    assert transcript.usage[1].tokens[:2] == (140, 128)


def test_a_response_may_be_continued_twice(tmp_path: Path) -> None:
    def exchange(text: str, response: str, before: str | None = None) -> dict[str, Any]:
        request = {"input": [{"role": "user", "content": text}], "previous_response_id": before}
        said = {"type": "message", "role": "assistant", "content": response}
        reply = {"id": response, "output": [said]}
        return {"request": request, "response": reply}

    recording = [exchange("a", "1"), exchange("b", "2", "1"), exchange("c", "3", "1")]
    recording += [exchange("d", "4", "3"), exchange("e", "5", "unknown")]
    found = read(written(tmp_path / "a.json", recording))
    said = [[message["content"] for message in transcript.messages] for transcript in found]
    assert said == [["a", "1", "b", "2"], ["a", "1", "c", "3", "d", "4"], ["e", "5"]]


def test_claude_code_merges_blocks_and_leaves_dead_branches() -> None:
    main, side = read(SAMPLES["claude-code.jsonl"])
    assert roles(main) == ["user", "user", "assistant", "user", "assistant", "user", "user"]
    kinds = [block["type"] for block in main.messages[2]["content"]]
    assert kinds == ["thinking", "tool_use", "tool_use"]
    ids = [block["tool_use_id"] for block in main.messages[3]["content"]]
    assert ids == ["toolu_1", "toolu_2"]
    assert [(usage.index, usage.tokens.output) for usage in main.usage] == [(2, 41), (4, 9)]
    assert main.metadata["abandoned"] == 1
    assert main.metadata["compactions"] == [5]
    assert main.metadata["title"] == "Tides on the east coast"
    assert set(main.messages[2]) == {"role", "content"}
    assert "taken back" not in json.dumps(main.messages)
    assert "API Error" not in json.dumps(main.messages)
    assert (roles(side), side.metadata["sidechain"]) == (["user", "assistant"], True)


def test_codex_counts_a_report_once_and_leaves_what_is_no_item() -> None:
    transcript = one("codex.jsonl")
    assert "ghost_snapshot" not in {message["type"] for message in transcript.messages}
    reported = [(usage.index, *usage.tokens[:2]) for usage in transcript.usage]
    assert reported == [(2, 500, 0), (7, 620, 512)]
    assert transcript.system == "You are a coding agent."
    assert transcript.model == "gpt-5-codex"
    assert transcript.metadata["compactions"] == [7]


def test_gemini_cli_takes_results_out_of_their_calls() -> None:
    transcript = one("gemini-cli.json")
    assert roles(transcript) == ["user", "model", "user", "model"]
    thought, *calls = transcript.messages[1]["parts"]
    assert thought["thought"] is True
    assert [call["functionCall"]["id"] for call in calls] == ["tide-1", "tide-2"]
    assert len(transcript.messages[2]["parts"]) == 1
    assert transcript.usage[0].tokens == (900, 512, 0, 60)


def test_gemini_cli_lines_go_back_and_replace(tmp_path: Path) -> None:
    session = written(
        tmp_path / "session.jsonl",
        {"sessionId": "1", "projectHash": "2", "startTime": "t"},
        {"id": "a", "type": "user", "content": "First"},
        {"id": "b", "type": "gemini", "content": "Half"},
        {"id": "b", "type": "gemini", "content": "Whole"},
        {"id": "c", "type": "user", "content": "Taken back"},
        {"$rewindTo": "c"},
    )
    [transcript] = read(session)
    texts = [message["parts"][0]["text"] for message in transcript.messages]
    assert texts == ["First", "Whole"]


def test_pi_keeps_signed_thinking_and_aborted_replies() -> None:
    transcript = one("pi.jsonl")
    reply, results, command, aborted = transcript.messages[1:]
    assert reply["content"][0]["signature"] == "c2ln"
    assert [block.get("is_error") for block in results["content"]] == [None, True]
    assert command["content"] == "Ran `ls`\n```\ntides.txt\n```"
    assert aborted["content"] == []
    assert transcript.metadata["compactions"] == [3]


def test_pi_of_other_providers_is_openai(tmp_path: Path) -> None:
    def message(**fields: object) -> dict[str, object]:
        return {"type": "message", "message": fields}

    call = {"type": "toolCall", "id": "c1", "name": "tide", "arguments": {"harbour": "Selby"}}
    reply = [{"type": "thinking", "thinking": "Ask."}, call]
    session = written(
        tmp_path / "session.jsonl",
        {"type": "session", "id": "1", "cwd": "/home/user"},
        message(role="user", content="Selby?"),
        message(role="assistant", content=reply, api="openai-completions", model="gpt-5"),
        message(role="toolResult", toolCallId="c1", content=[{"type": "text", "text": "16:10"}]),
    )
    [transcript] = read(session)
    assert transcript.dialect == "openai"
    assert transcript.messages[1]["reasoning_content"] == "Ask."
    assert json.loads(transcript.messages[1]["tool_calls"][0]["function"]["arguments"]) == {
        "harbour": "Selby"
    }
    assert transcript.messages[2]["tool_call_id"] == "c1"


def test_pi_trees_give_the_newest_branch(tmp_path: Path) -> None:
    def entry(name: str, parent: str | None, text: str) -> dict[str, object]:
        message = {"role": "user", "content": text}
        return {"type": "message", "id": name, "parentId": parent, "message": message}

    session = written(
        tmp_path / "session.jsonl",
        {"type": "session", "version": 3, "id": "1", "cwd": "/home/user"},
        entry("a", None, "root"),
        entry("b", "a", "given up"),
        entry("c", "a", "kept"),
    )
    [transcript] = read(session)
    assert [message["content"] for message in transcript.messages] == ["root", "kept"]
    assert transcript.metadata["abandoned"] == 1


def test_kimi_puts_a_step_into_one_message() -> None:
    transcript = one("kimi.jsonl")
    assert roles(transcript) == ["user", "assistant", "tool", "assistant"]
    assert transcript.messages[1]["reasoning_content"] == "Use the tool."
    assert transcript.messages[3]["content"] == "Low water is at 14:20."
    assert transcript.system == "You are an agent."


def test_openhands_writes_each_reply_once() -> None:
    transcript = one("openhands.json")
    assert roles(transcript) == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    both, first, second = transcript.messages[2:5]
    ids = [call["id"] for call in both["tool_calls"]]
    assert ids == [first["tool_call_id"], second["tool_call_id"]] == ["call_a", "call_b"]
    assert transcript.messages[5]["content"] == "The call could not be parsed."
    action = transcript.messages[6]
    assert (action["content"], action["tool_calls"][0]["id"]) == ("The day matters.", "call_1")
    assert transcript.messages[7]["tool_call_id"] == "call_1"


def test_openhands_sdk_events(tmp_path: Path) -> None:
    def made(name: str, **fields: object) -> dict[str, object]:
        return {"kind": name, "source": "agent", **fields}

    text = [{"type": "text", "text": "Fix it."}]
    call = {"id": "c1", "name": "terminal", "arguments": "{}"}
    events = tmp_path / "events.json"
    written(
        events,
        [
            made("SystemPromptEvent", system_prompt={"type": "text", "text": "Agent."}, tools=[]),
            made("MessageEvent", llm_message={"role": "user", "content": text}),
            made("ActionEvent", thought=text, tool_call=call, llm_response_id="r"),
            made("ActionEvent", thought=[], tool_call={**call, "id": "c2"}, llm_response_id="r"),
            made("ObservationEvent", tool_call_id="c1", observation={"content": text}),
            made("AgentErrorEvent", tool_call_id="c2", error="no such file"),
        ],
    )
    [transcript] = read(events)
    assert roles(transcript) == ["system", "user", "assistant", "tool", "tool"]
    assert [call["id"] for call in transcript.messages[2]["tool_calls"]] == ["c1", "c2"]
    assert transcript.messages[4]["content"] == "no such file"


def test_langchain_calls_stand_once() -> None:
    transcript = one("langchain.json")
    reply = transcript.messages[1]
    assert [block["type"] for block in reply["content"]] == ["text"]
    calls = [call["function"]["arguments"] for call in reply["tool_calls"]]
    assert calls == ['{"harbour":"Harlow Point"}', '{"harbour": "Rush']
    assert roles(transcript) == ["user", "assistant", "tool", "tool", "assistant"]
    assert transcript.usage[0].tokens == (300, 200, 50, 30)


def test_inspect_puts_attachments_back() -> None:
    transcript = one("inspect.json")
    system, question, reply, result = transcript.messages
    assert system["content"] == "Answer briefly."
    assert question["content"][1]["image_url"]["url"].startswith("data:image/png")
    assert reply["reasoning_content"] == "The tool knows."
    assert result["content"] == "The tool took too long."
    assert transcript.usage[0].index == 2


def test_aider_tells_the_voices_apart() -> None:
    transcript = one("aider.md")
    assert roles(transcript) == ["assistant", "tool", "user", "assistant", "tool"]
    assert transcript.messages[2]["content"] == "Fix the tide table.\nIt is an hour off."
    assert transcript.messages[3]["content"].endswith("Harlow Point\n```")
    assert transcript.messages[4]["content"].startswith("Applied edit to tides.txt")
    assert transcript.model == "claude-3-7-sonnet"
    assert one("aider.md", 1).line == 20


def test_sharegpt_answers_by_position() -> None:
    transcript = one("sharegpt.json")
    assert roles(transcript) == ["user", "assistant", "tool", "assistant", "user"]
    assert transcript.messages[2]["tool_call_id"] == transcript.messages[1]["tool_calls"][0]["id"]
    assert transcript.tools is not None
    assert transcript.tools[0]["function"]["name"] == "tide"


def test_swe_agent_fields_are_left_out() -> None:
    messages = one("swe-agent.traj").messages
    assert [set(message) for message in messages[2:]] == [
        {"role", "content", "tool_calls"},
        {"role", "content", "tool_call_id"},
    ]


def test_own_messages_are_passed_on_untouched(tmp_path: Path) -> None:
    odd: dict[str, Any] = {"role": "assistant", "content": "Yes", "annotations": []}
    odd["mood"] = {"calm": 1.50}
    [transcript] = read(written(tmp_path / "a.json", {"messages": [odd]}))
    assert transcript.messages == [odd]
    assert list(transcript.messages[0]) == list(odd)


ROWS: list[dict[str, Any]] = [
    {"traj": [{"role": "user", "content": "Hi"}], "reward": 1.0},
    {"conversation": [{"role": "user", "content": "Hi"}]},
    {"input_messages": [{"role": "user", "content": "Hi"}], "ground_truth": None},
    {"turns": [{"query": []}, {"query": [{"role": "user", "content": "Hi"}]}]},
    {"body": {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}},
    {"values": {"messages": [{"type": "human", "content": "Hi"}]}},
    {"model": "gpt-5", "input": "Hi"},
]


@pytest.mark.parametrize("row", ROWS, ids=[next(iter(row)) for row in ROWS])
def test_rows_of_other_kinds(row: dict[str, Any], tmp_path: Path) -> None:
    [transcript] = read(written(tmp_path / "a.json", row))
    assert transcript.messages == [{"role": "user", "content": "Hi"}]


def test_a_dialect_that_nothing_tells_is_a_guess(tmp_path: Path) -> None:
    message = {"role": "user", "content": "Hi"}
    [plain] = read(written(tmp_path / "a.json", [message]))
    assert (plain.dialect, plain.dialect_known) == ("openai", False)
    [beside] = read(written(tmp_path / "b.json", {"system": "Be brief.", "messages": [message]}))
    assert (beside.dialect, beside.dialect_known) == ("anthropic", False)
    [named] = read(tmp_path / "a.json", format="anthropic")
    assert (named.dialect, named.dialect_known) == ("anthropic", True)


# --- JSON as it is found --------------------------------------------------------------------------

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), inner)
    ),
    max_leaves=12,
)


def read_bytes(data: bytes, piece: int = 1 << 20) -> list[Any]:
    reader = _core.TranscriptReader()
    found: list[Any] = []
    for begin in range(0, len(data), piece):
        found += reader.feed(data[begin : begin + piece])
    return found + reader.finish()


@given(value=JSON, escaped=st.booleans(), indent=st.sampled_from([None, 1]))
def test_values_are_those_of_json_loads(value: Any, escaped: bool, indent: int | None) -> None:
    messages = [{"role": "user", "content": value}]
    text = json.dumps(messages, ensure_ascii=escaped, indent=indent)
    try:
        data = text.encode()
    except UnicodeEncodeError:  # lone surrogates can only be escaped
        data = json.dumps(messages).encode()
    [found] = read_bytes(data)
    assert repr(found["messages"]) == repr(json.loads(data))


def test_halves_of_pairs_survive(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(r'{"role": "user", "content": "cut \ud83d, whole \ud83d\ude00"}', "utf-8")
    [transcript] = read(path)
    assert transcript.messages[0]["content"] == "cut \ud83d, whole \U0001f600"


def test_byte_order_mark_line_ends_and_blanks(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = b'{"role": "user", "content": "Hi"}'
    path.write_bytes(b"\xef\xbb\xbf\r\n" + line + b"\r\n\r\n" + line + b"\r\n  \r\n")
    [transcript] = read(path)
    assert len(transcript.messages) == 2
    assert transcript.line == 2


def test_numbers(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(
        '{"messages": [{"role": "user", "content": "Hi", "n": 123456789012345678901234567890, '
        '"x": 1E2}], "title": "a", "title": "b", "score": NaN}'
    )
    [transcript] = read(path)
    assert transcript.messages[0]["n"] == 123456789012345678901234567890
    assert transcript.messages[0]["x"] == 100.0
    assert transcript.metadata["title"] == "b"


def test_numbers_beside_the_messages_may_be_none(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('{"traj": [{"role": "user", "content": "Hi"}], "reward": NaN}')
    [transcript] = read(path)
    assert math.isnan(transcript.metadata["reward"])


def test_a_long_output_and_any_pieces() -> None:
    output = "한 line of a log\n" * 50_000
    record = {"role": "tool", "tool_call_id": "a", "content": output}
    data = (json.dumps(record, ensure_ascii=False) + "\n").encode() * 2
    assert len(data) > 1_800_000
    [found] = read_bytes(data, piece=99_991)
    assert [message["content"] for message in found["messages"]] == [output, output]


# --- files ----------------------------------------------------------------------------------------


def test_folders_are_read_in_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a/z.json", "a/b/c.ndjson", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        written(path, [{"role": "user", "content": name}])
    found = read(tmp_path)
    names = [transcript.messages[0]["content"] for transcript in found]
    assert names == ["a/b/c.ndjson", "a/z.json", "b.jsonl"]
    assert len(list(read_transcripts([tmp_path / "notes.txt", tmp_path]))) == 4


def test_a_readme_among_transcripts_is_none(tmp_path: Path) -> None:
    written(tmp_path / "a.json", [{"role": "user", "content": "Hi"}])
    (tmp_path / "README.md").write_text("# Runs\n\n#### Of June\n", encoding="utf-8")
    (tmp_path / "chat.md").write_bytes(SAMPLES["aider.md"].read_bytes())
    assert {transcript.format for transcript in read(tmp_path)} == {"openai", "aider"}
    with pytest.raises(satchel.InputError):
        read(tmp_path / "README.md", format="openai")


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    plain = SAMPLES["codex.jsonl"].read_bytes()
    packed = tmp_path / "rollout.jsonl.gz"
    packed.write_bytes(gzip.compress(plain[:1000]) + gzip.compress(plain[1000:]))
    sizes: list[int] = []
    [transcript] = read(packed, on_read=sizes.append)
    assert transcript.messages == one("codex.jsonl").messages
    assert sum(sizes) == packed.stat().st_size
    packed.write_bytes(gzip.compress(plain)[:-20])
    with pytest.raises(satchel.InputError, match="the gzip data is damaged"):
        read(packed)


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    text = io.TextIOWrapper(io.BytesIO(SAMPLES["aider.md"].read_bytes()))
    monkeypatch.setattr(sys, "stdin", text)
    found = read(STDIN)
    assert [transcript.source for transcript in found] == ["-", "-"]


def test_lines_are_read_one_by_one(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    row = {"messages": [{"role": "user", "content": "x" * 10_000}]}
    written(path, *[row] * 500)
    sizes: list[int] = []
    first = next(read_transcripts(path, on_read=sizes.append))
    assert first.index == 0
    assert sum(sizes) < path.stat().st_size / 2


def broken_lines(path: Path) -> Path:
    row = json.dumps([{"role": "user", "content": "Hi"}])
    path.write_text(f"{row}\n{{broken\n{row}\n", encoding="utf-8")
    return path


def test_a_broken_line_is_raised_after_what_came_before(tmp_path: Path) -> None:
    path = broken_lines(tmp_path / "a.jsonl")
    found: Iterator[Transcript] = read_transcripts(path)
    assert next(found).index == 0
    with pytest.raises(satchel.InputError) as caught:
        next(found)
    assert caught.value.code == "invalid_file"
    assert str(caught.value).startswith(f"{path}, line 2: not valid JSON")


def test_a_broken_line_is_skipped_with_a_warning(tmp_path: Path) -> None:
    path = broken_lines(tmp_path / "a.jsonl")
    with pytest.warns(TranscriptWarning, match="line 2: not valid JSON"):
        found = read(path, on_error="skip")
    assert [(transcript.index, transcript.line) for transcript in found] == [(0, 1), (1, 3)]


def test_a_missing_file_is_skipped_too(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", [{"role": "user", "content": "Hi"}])
    with pytest.warns(TranscriptWarning) as caught:
        found = list(read_transcripts([tmp_path / "none.json", path], on_error="skip"))
    assert len(found) == 1
    assert "no such file" in str(caught[0].message)


@pytest.mark.parametrize("option", [{"format": "smoke-signals"}, {"on_error": "ignore"}])
def test_wrong_options_are_told_at_once(option: dict[str, Any]) -> None:
    with pytest.raises(satchel.InputError) as caught:
        read_transcripts("none", **option)
    assert caught.value.code == "invalid_value"


# --- real files -----------------------------------------------------------------------------------

# What a reference count of the same folders gives, and where ours is another number:
# - recordings: streamed replies are put together (+4, +1, +2 messages, and +7 in the Responses
#   folder, where requests that name the response before are chained to one conversation);
# - Claude Code and pi: blocks of one reply, and results of one reply, are one message each;
# - Gemini CLI: results are messages of their own, and notes of the program none;
# - Kimi: the parts of a step are one message;
# - OpenHands: an error about a reply that made no call is a user message, no result;
# - Aider: what the program wrote is the result of a call, which needs a message.
REAL: dict[str, Figures] = {
    "aider_markdown": (463, 3537, 1349, 1349, 0),
    "anthropic_messages": (41, 206, 55, 54, 76),
    "claude_code": (4, 185, 113, 113, 89),
    "codex_rollout": (2, 259, 102, 102, 68),
    "gemini_cli": (1, 22, 10, 10, 11),
    "gemini_contents": (17, 89, 28, 26, 38),
    "inspect_log": (4, 12, 0, 0, 4),
    "intercode": (60, 728, 334, 334, 0),
    "kimi_wire": (1, 54, 19, 19, 22),
    "langchain_serialized": (2, 7, 3, 2, 3),
    "openai_chat": (168, 3493, 727, 719, 37),
    "openai_responses": (44, 249, 30, 27, 81),
    "openhands_events": (3, 125, 60, 58, 60),
    "pi_session": (1, 975, 454, 448, 471),
    "swe_agent_traj": (9, 212, 35, 35, 0),
}


def shared(folder: str) -> Path:
    root = os.environ.get("SATCHEL_SHARED")
    roots = [Path(root)] if root else [up / "shared" for up in Path(__file__).resolve().parents]
    for found in roots:
        path = found / "data" / "dev" / folder
        if path.is_dir():
            return path
    pytest.skip("no shared data: real transcripts are not part of the repository")


@pytest.mark.parametrize("folder", REAL)
def test_real_files(folder: str) -> None:
    found = read(shared(folder))
    assert figures(found) == REAL[folder]
    known = working_set_dialects()
    outcomes: Counter[str] = Counter()
    for transcript in found:
        for usage in transcript.usage:
            assert usage.index <= len(transcript.messages)
            if transcript.format == transcript.dialect:
                assert satchel.usage_tokens(usage.record) == usage.tokens
        if transcript.dialect in known:
            assembler = satchel.Assembler("gpt-4o", dialect=transcript.dialect)
            try:
                assembler.working_set(
                    transcript.messages, system=transcript.system, tools=transcript.tools
                )
            except satchel.SatchelError as error:
                outcomes[error.code] += 1
    # Damage is for repair; what the working set takes as it is must not become less.
    assert outcomes <= Counter()
