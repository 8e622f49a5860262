"""``satchel repair`` and ``satchel convert``: what they print, write and refuse."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from commands import HOSTILE, hidden_characters, lines, run, written
from satchel.reading import read_transcripts

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "tests" / "data").glob("*.json*"))
FORMATS = sorted(path for path in (ROOT / "tests" / "data" / "formats").iterdir() if path.is_file())
DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")

USER = {"role": "user", "content": "Which gate?"}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "gate", "arguments": "{}"}}
    ],
}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "B12"}
ORPHAN = {"role": "tool", "tool_call_id": "call_9", "content": "C3"}
DAMAGED = [USER, ORPHAN, CALL]
TOOL = {"type": "function", "function": {"name": "gate", "parameters": {"type": "object"}}}


def told(error: str) -> str:
    return error.strip().splitlines()[-1]


@pytest.mark.parametrize("mode", ["synthesize", "drop", "flatten"])
def test_repair_prints_what_the_library_makes(tmp_path: Path, mode: Any) -> None:
    history = written(tmp_path / "history.json", {"messages": DAMAGED, "tools": [TOOL]})
    before = history.read_bytes()
    ran = run("repair", history, "--mode", mode)
    expected = satchel.repair(DAMAGED, "openai", tools=[TOOL], mode=mode)
    assert ran.json == {"dialect": "openai", "tools": [TOOL], "messages": expected}
    assert satchel.lint(expected, "openai") == []
    assert told(ran.err) == "1 conversations, 1 changed: 2 errors before, 0 after, 0 losses"
    assert history.read_bytes() == before
    assert run("lint", "-", stdin=ran.out.encode()).out.startswith("1 conversations, 0 not valid")


def test_repair_leaves_what_is_valid(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER, CALL, RESULT])
    ran = run("repair", history)
    assert ran.json["messages"] == [USER, CALL, RESULT]
    assert told(ran.err) == "1 conversations, 0 changed: 0 errors before, 0 after, 0 losses"


@pytest.mark.parametrize("target", DIALECTS)
def test_convert_prints_what_the_library_makes(tmp_path: Path, target: str) -> None:
    messages = [{"role": "system", "content": "Be brief."}, USER, CALL, RESULT]
    history = written(tmp_path / "history.json", {"messages": messages, "tools": [TOOL]})
    ran = run("convert", history, "--target", target)
    expected = satchel.convert(messages, "openai", target, tools=[TOOL])
    assert ran.json["dialect"] == target
    assert ran.json["messages"] == expected.messages
    assert ran.json.get("system") == expected.system
    assert ran.json["tools"] == expected.tools
    assert f"{len(expected.losses)} losses" in told(ran.err)
    # What it prints is read as what it is.
    counted = run("count", "-", "--encoding", "o200k_base", "--json", stdin=ran.out.encode()).json
    assert counted["total"]["messages"] == len(expected.messages)


@pytest.mark.parametrize("target", ["anthropic", "openai-responses"])
def test_every_format_counts_mends_and_converts(target: str, tmp_path: Path) -> None:
    files = [*SAMPLES, *FORMATS]
    found = list(read_transcripts(files, on_error="skip"))
    messages = sum(len(one.messages) for one in found)
    assert len({one.format for one in found}) > 15
    counted = run("count", *files, "--skip-errors", "--encoding", "o200k_base", "--json").json
    assert counted["total"]["conversations"] == len(found)
    assert counted["total"]["messages"] == messages
    mended = tmp_path / "mended.jsonl"
    said = run("repair", *files, "--skip-errors", "--out", mended, "--json").json
    assert (said["total"]["errors"], said["total"]["conversations"]) == (0, len(found))
    assert sum(one["messages_before"] for one in said["conversations"]) == messages
    assert all("result" not in one for one in said["conversations"])
    assert 0 < said["total"]["changed"] < len(found)
    known = [one for one in read_transcripts(mended) if one.dialect_known]
    assert known
    assert all(
        violation.severity == "warning"
        for one in known
        for violation in satchel.lint(one.messages, one.dialect, tools=one.tools)
    )
    converted = tmp_path / "converted.jsonl"
    said = run("convert", mended, "--target", target, "--out", converted, "--json").json
    assert (said["total"]["errors"], said["total"]["conversations"]) == (0, len(found))
    again = list(read_transcripts(converted))
    assert [one.dialect for one in again] == [target] * len(found)


def test_folders_give_a_conversation_a_line(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    (folder / "deep").mkdir(parents=True)
    written(folder / "a.json", DAMAGED)
    written(folder / "deep" / "b.json", [USER])
    ran = run("repair", folder)
    first, second = map(json.loads, ran.out.splitlines())
    assert second["messages"] == [USER]
    assert len(first["messages"]) == 4
    assert "a.json, conversation 1: 1 messages became 2" in ran.err
    out = tmp_path / "out.jsonl"
    said = run("repair", folder, "--out", out)
    assert said.err == ""
    assert told(said.out).startswith("2 conversations, 1 changed")
    assert [json.loads(line) for line in out.read_text().splitlines()] == [first, second]


def test_losses_are_listed(tmp_path: Path) -> None:
    named = {**USER, "name": "mina"}
    history = written(tmp_path / "history.json", [named, CALL, RESULT])
    [loss] = satchel.convert([named, CALL, RESULT], "openai", "anthropic").losses
    ran = run("convert", history, "--target", "anthropic")
    assert f"{history}, conversation 1: {loss}" in ran.err
    [one] = run("convert", history, "--target", "anthropic", "--json").json["conversations"]
    assert one["losses"] == [{"index": 0, "kind": "name", "detail": loss.detail}]


def test_a_source_and_a_dialect_can_be_told(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER])
    ran = run("convert", history, "--source", "anthropic", "--target", "gemini")
    assert ran.json["messages"] == [{"role": "user", "parts": [{"text": "Which gate?"}]}]
    ran = run("repair", history, "--dialect", "anthropic")
    assert ran.json["dialect"] == "anthropic"


# --- what is written over -------------------------------------------------------------------------


def test_the_input_is_never_written_over(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", DAMAGED)
    before = history.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(history)
    for out in (history, link):
        for command in (("repair", history), ("convert", history, "--target", "anthropic")):
            error = run(*command, "--out", out, "--json", code=2).json["error"]
            assert error["code"] == "invalid_file"
            assert history.read_bytes() == before


FORMS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "a list": (json.dumps(DAMAGED), json.loads),
    "an object": (
        json.dumps({"model": "gpt-4o", "temperature": 0.3, "messages": DAMAGED}),
        lambda text: json.loads(text)["messages"],
    ),
    "a message a line": (
        lines(*DAMAGED),
        lambda text: [json.loads(line) for line in text.splitlines()],
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_in_place_keeps_the_form(tmp_path: Path, form: str) -> None:
    text, read = FORMS[form]
    history = tmp_path / "history.json"
    history.write_text(text, encoding="utf-8")
    history.chmod(0o640)
    said = run("repair", history, "--in-place")
    assert told(said.out).startswith("1 conversations, 1 changed")
    after = history.read_text(encoding="utf-8")
    assert read(after) == satchel.repair(DAMAGED, "openai")
    assert ("temperature" in after) == (form == "an object")
    assert history.stat().st_mode & 0o777 == 0o640
    # The second time there is nothing to do.
    said = run("repair", history, "--in-place")
    assert told(said.out).startswith("1 conversations, 0 changed")
    assert history.read_text(encoding="utf-8") == after
    assert [path.name for path in tmp_path.iterdir()] == ["history.json"]


def test_in_place_converts_to_conversations(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER, CALL, RESULT])
    run("convert", history, "--target", "bedrock", "--in-place")
    [found] = read_transcripts(history)
    assert found.dialect == "bedrock"
    assert found.messages == satchel.convert([USER, CALL, RESULT], "openai", "bedrock").messages


def test_in_place_refuses_what_would_be_lost(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", DAMAGED)
    packed = tmp_path / "history.json.gz"
    packed.write_bytes(gzip.compress(history.read_bytes()))
    foreign = next(path for path in FORMATS if "claude" in path.name and path.suffix == ".jsonl")
    copied = tmp_path / "session.jsonl"
    copied.write_bytes(foreign.read_bytes())
    for options in (
        (history, "--in-place", "--out", tmp_path / "x.json"),
        (history, "--in-place", "--skip-errors"),
        ("-", "--in-place"),
        (packed, "--in-place"),
    ):
        error = run("repair", *options, "--json", code=2, stdin=b"[]").json["error"]
        assert error["code"] == "invalid_value"
    error = run("convert", copied, "--target", "openai", "--in-place", "--json", code=2).json
    assert "claude-code" in error["error"]["message"]
    assert copied.read_bytes() == foreign.read_bytes()
    assert json.loads(history.read_text()) == DAMAGED


# --- errors and hostile content -------------------------------------------------------------------


def test_a_file_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    good = written(tmp_path / "good.json", [USER])
    bad = tmp_path / "bad.json"
    bad.write_text("{", encoding="utf-8")
    ran = run("repair", bad, good, "--json", code=2).json
    assert ran["error"]["code"] == "invalid_file"
    assert [one["file"] for one in ran["errors"]] == [str(bad)]
    assert ran["total"]["conversations"] == 1
    assert run("convert", good, "--target", "morse", "--json", code=2).json["error"]["code"] == (
        "unknown_dialect"
    )
    assert "--target" in run("convert", good, code=2).err


def test_an_unknown_model_is_a_warning(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", {"model": "mystery-1", "messages": [USER]})
    for command in ("repair", "lint"):
        ran = run(command, history)
        assert "satchel: warning:" in ran.err
        assert "mystery-1" in ran.err


def test_what_cannot_be_valid_is_said(tmp_path: Path) -> None:
    wrong = {"role": "user", "content": [{"type": "text", "text": 5}]}
    history = written(tmp_path / "history.json", {"dialect": "anthropic", "messages": [wrong]})
    error = run("repair", history, "--json", code=2).json["error"]
    assert (error["code"], error["index"]) == ("invalid_message", 0)
    # An orphan result is no valid chat; a conversion to its own dialect mends nothing.
    history = written(tmp_path / "history.json", DAMAGED)
    said = run("convert", history, "--target", "openai", "--json", code=1).json
    assert said["total"]["errors"] == said["total"]["errors_before"] == 2


def test_hostile_content_stays_data(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": HOSTILE + "\x7f"}, CALL, RESULT]
    # A half of a surrogate pair is no character: no client sends it.
    text = HOSTILE.replace("\ud800", "\ufffd") + "\x7f"
    history = written(tmp_path / "a\x1b[31m.json", messages)
    for command in (("repair", history), ("convert", history, "--target", "anthropic")):
        ran = run(*command)
        assert ran.out.isascii()
        assert hidden_characters(ran.out + ran.err) == set()
        assert ran.json["messages"][0]["content"] == text
        assert hidden_characters(run(*command, "--json").out) == set()
    out = tmp_path / "out.json"
    run("repair", history, "--out", out)
    [found] = read_transcripts(out)
    assert found.messages == [{"role": "user", "content": text}, CALL, RESULT]
