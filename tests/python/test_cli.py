"""The command ``satchel`` as people run it: a process of its own, its output and its exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import satchel
from commands import COMMAND, HOSTILE, hidden_characters, lines, run, written
from satchel.cli import application
from satchel.testing import generate_history

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = sorted((ROOT / "tests" / "data").glob("*.json*"))

USER = {"role": "user", "content": "Which gate does my flight leave from?"}
ASSISTANT = {"role": "assistant", "content": "B12."}
LONG = {"role": "user", "content": "flight " * 600}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "gate", "arguments": "{}"}}
    ],
}


# --- every sample ---------------------------------------------------------------------------------


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_sample_fits_the_budget_it_is_packed_for(sample: Path) -> None:
    packed = run("window", sample, "--model", "gpt-4o", "--budget", "5000", "--json").json
    assert packed["tokens"] <= packed["tokens_upper"] <= packed["budget"] == 5_000
    steps = packed["steps"]
    assert [step["first"] for step in steps[1:]] == [step["end"] for step in steps[:-1]]
    assert (steps[0]["first"], steps[-1]["end"]) == (0, packed["messages"])
    assert sum(packed["levels"].values()) == len(steps)
    taken = sum(step["tokens"] for step in steps)
    assert taken + packed["system_tokens"] + packed["tools_tokens"] <= packed["tokens"]
    if packed["compactions"]:
        assert packed["tokens"] < packed["tokens_before"]
    elif not sample.name.startswith("abort"):  # there a placeholder answers the aborted call
        assert packed["tokens"] == packed["tokens_before"]


def test_count_of_every_sample_adds_up() -> None:
    counted = run("count", *SAMPLES, "--encoding", "o200k_base", "--json").json
    assert [one["file"] for one in counted["files"]] == [str(sample) for sample in SAMPLES]
    parts = ("message_tokens", "system_tokens", "tools_tokens", "overhead_tokens")
    for one in [*counted["files"], counted["total"]]:
        assert sum(one[part] for part in parts) == one["total"] <= one["upper"]
        assert one["total"] > one["messages"] > 0
    for part in (*parts, "messages", "conversations", "total", "upper"):
        assert sum(one[part] for one in counted["files"]) == counted["total"][part]
    assert counted["total"]["encodings"] == ["o200k_base"]
    assert "error" not in counted


def test_count_is_the_library_s_count() -> None:
    sample = ROOT / "tests" / "data" / "chat.openai.json"
    messages = json.loads(sample.read_text(encoding="utf-8"))["messages"]
    window = satchel.Assembler("gpt-4o", budget=100_000).assemble(messages)
    [one] = run("count", sample, "--model", "gpt-4o", "--json").json["files"]
    assert one["total"] == window.tokens
    assert one["exact"] is True


# --- tables ---------------------------------------------------------------------------------------


def test_count_table_has_a_row_for_each_file_and_a_total() -> None:
    chosen = [ROOT / "tests" / "data" / name for name in ("chat.openai.json", "odd.openai.json")]
    rows = run("count", *chosen).out.splitlines()
    names = [row.split()[0] for row in rows if row.strip() and row[0] not in "─ "]
    assert names[0] == "file"
    assert [Path(name).name for name in names[1:3]] == [path.name for path in chosen]
    assert names[3] == "total"
    assert "exact" in next(row for row in rows if "chat.openai" in row)
    assert "estimate" in next(row for row in rows if row.startswith("total"))


def test_window_table_has_a_row_for_each_step_and_the_totals(tmp_path: Path) -> None:
    sample = ROOT / "tests" / "data" / "coding.openai.json"
    options = ("window", sample, "--model", "gpt-4o", "--budget", "10000")
    packed = run(*options, "--json").json
    shown = run(*options, env={"COLUMNS": "40"}).out
    rows = re.findall(
        r"^ *(\d+)(?:-(\d+))?  (\w+) +. (\w+) +([\d,]+) +([\d,]+) ", shown, re.MULTILINE
    )
    assert [
        (int(first), int(last or first) + 1, role, level, number(tokens), number(original))
        for first, last, role, level, tokens, original in rows
    ] == [
        tuple(step[key] for key in ("first", "end", "role", "level", "tokens", "original_tokens"))
        for step in packed["steps"]
    ]
    assert set(packed["levels"].values()) != {0, len(rows)}
    assert f"{packed['tokens_before']:,} -> {packed['tokens']:,}" in shown
    assert f"of {packed['budget']:,}" in shown
    assert f"compactions    {packed['compactions']}" in shown
    assert f"pages          {len(packed['pages'])}" in shown
    assert f"stable prefix  {packed['stable_prefix_tokens']:,} tokens" in shown
    assert max(map(len, shown.splitlines())) <= 120  # not cut to a terminal that is not there
    assert list(tmp_path.iterdir()) == []


def number(shown: str) -> int:
    return int(shown.replace(",", ""))


def test_long_tables_leave_out_the_middle(tmp_path: Path) -> None:
    history = written(tmp_path / "long.json", generate_history(300, seed=3))
    options = ("window", history, "--model", "gpt-4o", "--budget", "8000")
    steps = len(run(*options, "--json").json["steps"])
    shown = run(*options, "--rows", "9").out
    assert f"{steps - 9} more" in shown
    assert len(re.findall(r"^ *\d[\d-]*  \w+ +. \w+ ", shown, re.MULTILINE)) == 9
    every = run(*options, "--rows", "0").out
    assert len(re.findall(r"^ *\d[\d-]*  \w+ +. \w+ ", every, re.MULTILINE)) == steps
    assert " more" not in every


# --- content is not trusted -----------------------------------------------------------------------


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    call = {"id": HOSTILE, "type": "function", "function": {"name": HOSTILE, "arguments": "{"}}
    history = [
        {"role": "user", "content": HOSTILE},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": HOSTILE, "content": "\x1b[2J" * 230_000},
        {"role": "assistant", "content": HOSTILE[::-1]},
        {"role": "user", "content": "\n \n\tsecond line\nthird line"},
    ]
    return written(tmp_path / "hostile.json", {"messages": history, "title": HOSTILE})


def test_hostile_content_reaches_no_table(hostile: Path) -> None:
    ran = run("window", hostile, "--model", "gpt-4o", "--budget", "5000")
    assert hidden_characters(ran.out + ran.err) == set()
    assert r"[bold red]styled[/] \x1b[31mred" in ran.out  # shown as it is, not as a style
    assert "second line" in ran.out
    assert "third line" not in ran.out
    assert max(map(len, ran.out.splitlines())) < 300
    assert "\u0336" * 4 not in ran.out
    assert hidden_characters(run("count", hostile).out) == set()


def test_hostile_content_reaches_no_terminal(hostile: Path) -> None:
    code, shown = run_on_terminal("window", hostile, "--model", "gpt-4o", "--budget", "5000")
    assert code == 0
    assert "\x1b[32m" in shown  # levels are coloured there
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown)  # our own styles, and nothing else
    assert hidden_characters(plain) <= {"\r"}
    assert "\x1b[31m" not in shown
    assert "\\x1b[31mred" in plain


def test_hostile_names_reach_no_terminal(tmp_path: Path) -> None:
    history = written(tmp_path / "a\x1b[31m\u202e[red].json", [USER])
    assert hidden_characters(run("count", history).out) == set()
    assert r"\x1b[31m\u202e[red].json" in run("count", history).out
    missing = run("count", tmp_path / "b\x1b[31m.json", code=2)
    assert hidden_characters(missing.out + missing.err) == set()
    as_json = run("window", history, "--model", "gpt-4o", "--json")
    assert as_json.out.isascii()
    assert as_json.json["file"] == str(history)
    role = written(tmp_path / "role.json", [{"role": "\x1b[31m", "content": "x"}])
    assert hidden_characters(run("window", role, "--model", "gpt-4o", code=2).err) == set()


def test_korean_rows_are_as_wide_as_the_others() -> None:
    sample = ROOT / "tests" / "data" / "korean.openai.json"
    shown = run("window", sample, "--model", "gpt-4o", "--budget", "2000").out
    wide = {"W", "F"}
    cells = [
        sum(2 if unicodedata.east_asian_width(char) in wide else 1 for char in row)
        for row in shown.splitlines()
    ]
    rule = next(row for row in shown.splitlines() if row.startswith("─"))
    assert max(cells) <= len(rule) == 120


def test_output_that_cannot_show_a_character_shows_its_escape() -> None:
    sample = ROOT / "tests" / "data" / "korean.openai.json"
    ascii_only = {"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    shown = run("window", sample, "--model", "gpt-4o", "--budget", "2000", env=ascii_only).out
    assert shown.isascii()
    assert r"\ud55c" in shown or r"\uc694" in shown


# --- the forms of files ---------------------------------------------------------------------------

FORMS = {
    "list of messages": json.dumps([USER, ASSISTANT]),
    "indented list": json.dumps([USER, ASSISTANT], indent=2),
    "object": json.dumps({"messages": [USER, ASSISTANT], "model": "gpt-4o", "tools": []}),
    "indented object": json.dumps({"title": "x", "messages": [USER, ASSISTANT]}, indent=4),
    "list of one conversation": json.dumps([{"messages": [USER, ASSISTANT]}]),
    "message a line": lines(USER, ASSISTANT),
    "message a line with blanks": f"\r\n{json.dumps(USER)}\r\n\r\n{json.dumps(ASSISTANT)}",
    "conversation a line": lines({"messages": [USER, ASSISTANT]}),
    "list a line": lines([USER, ASSISTANT]),
    "byte order mark": "\ufeff" + json.dumps([USER, ASSISTANT]),
    "byte order mark, message a line": "\ufeff" + lines(USER, ASSISTANT),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_told_apart_by_its_content(form: str, tmp_path: Path) -> None:
    for name in ("history.json", "history.jsonl", "history"):
        (tmp_path / name).write_text(FORMS[form], encoding="utf-8")
    names = sorted(tmp_path.iterdir())
    [*found, from_stdin] = run("count", *names, "-", "--json", stdin=FORMS[form].encode()).json[
        "files"
    ]
    assert len(found) == 3
    for one in found:
        assert {**one, "file": "-"} == from_stdin
    expected = satchel.Assembler("gpt-4o").assemble([USER, ASSISTANT]).tokens
    figures = (from_stdin["conversations"], from_stdin["messages"], from_stdin["total"])
    assert figures == (1, 2, expected)


def test_system_tools_model_and_dialect_come_from_the_file(tmp_path: Path) -> None:
    tool = {"name": "gate", "description": "Finds a gate.", "input_schema": {"type": "object"}}
    history = written(
        tmp_path / "history.json",
        {
            "model": "claude-sonnet-4-5",
            "dialect": "anthropic",
            "system": "Be brief.",
            "tools": [tool],
            "messages": [USER],
        },
    )
    packed = run("window", history, "--json").json
    assert (packed["model"], packed["dialect"]) == ("claude-sonnet-4-5", "anthropic")
    assert packed["system_tokens"] > 0
    assert packed["tools_tokens"] > 0
    assert packed["exact"] is False
    assert packed["tokens"] == packed["tokens_before"]
    [one] = run("count", history, "--json").json["files"]
    assert one["total"] == packed["tokens"]
    other = run("window", history, "--model", "gpt-4o", "--dialect", "openai", "--json").json
    assert (other["model"], other["dialect"]) == ("gpt-4o", "openai")


@pytest.mark.parametrize("form", ["lines", "list"])
def test_one_of_several_conversations_is_chosen(form: str, tmp_path: Path) -> None:
    several = [{"messages": [USER, ASSISTANT][:count]} for count in (1, 2, 0)]
    text = lines(*several) if form == "lines" else json.dumps(several, indent=1)
    history = tmp_path / "history.jsonl"
    history.write_text(text, encoding="utf-8")
    options = ("window", history, "--model", "gpt-4o", "--budget", "900")
    packed = run(*options, "--conversation", "2", "--json").json
    assert (packed["conversation"], packed["conversations"], packed["messages"]) == (2, 3, 2)
    assert "conversation 1 of 3" in run(*options).out
    error = run(*options, "--conversation", "4", "--json", code=2).json["error"]
    assert (error["code"], error["value"], error["limit"]) == ("invalid_value", 4, 3)
    [one] = run("count", history, "--json").json["files"]
    assert (one["conversations"], one["messages"]) == (3, 3)


def test_large_numbers_pass_and_lone_surrogates_are_replaced(tmp_path: Path) -> None:
    odd: list[dict[str, Any]] = [
        {"role": "user", "content": "half \ud83d of a pair", "n": 10**400, "x": 1.5e308},
        {"role": "assistant", "content": "\udc00"},
    ]
    history = written(tmp_path / "odd.json", odd)
    assert run("count", history, "--json").json["total"]["messages"] == 2
    out = tmp_path / "window.json"
    run("window", history, "--model", "gpt-4o", "--out", out)
    # No client can send half a surrogate pair.
    sent = [{**odd[0], "content": "half \ufffd of a pair"}, {**odd[1], "content": "\ufffd"}]
    assert json.loads(out.read_text(encoding="utf-8")) == sent


# --- writing the window ---------------------------------------------------------------------------


def test_out_writes_the_messages_of_the_window(tmp_path: Path) -> None:
    sample = ROOT / "tests" / "data" / "korean.openai.json"
    document = json.loads(sample.read_text(encoding="utf-8"))
    out = tmp_path / "window.json"
    packed = run(
        "window", sample, "--model", "gpt-4o", "--budget", "2000", "--out", out, "--json"
    ).json
    messages = json.loads(out.read_text(encoding="utf-8"))
    assert len(messages) == packed["window_messages"]
    window = satchel.Assembler("gpt-4o", budget=2_000).assemble(
        document["messages"], tools=document["tools"]
    )
    assert messages == window.messages
    assert (packed["tokens"], packed["compactions"]) == (
        window.tokens,
        window.report.compactions,
    )
    assert "한" in out.read_text(encoding="utf-8")


def test_out_never_replaces_the_history(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER])
    before = history.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(history)
    for out in (history, link):
        ran = run("window", history, "--model", "gpt-4o", "--out", out, code=2)
        assert "[invalid_file]" in ran.err
    assert history.read_bytes() == before
    nowhere = tmp_path / "no" / "window.json"
    ran = run("window", history, "--model", "gpt-4o", "--out", nowhere, code=2)
    assert "no such file or directory [invalid_file]" in ran.err


# --- errors ---------------------------------------------------------------------------------------

DEEP = 100_000
BROKEN = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "mark only": (b"\xef\xbb\xbf", "is empty"),
    "cut off": (b'[{"role": "user"', "line 1: not valid JSON"),
    "second line": (lines(USER).encode() + b'{"role"', "line 2: not valid JSON"),
    "third line of a document": (b'[\n{"role": "user",\n"content": }]', "line 3: not valid JSON"),
    "trailing": (b'[\n]\n\n{"a": 1}', "line 4: not valid JSON"),
    "scalar": (b"42", "line 1: expected a list"),
    "string": (b'"hello"', "line 1: expected a list"),
    "object without messages": (b"{}", "line 1: expected a message"),
    "messages that are none": (b'{"messages": {}}', "line 1: messages must be a list"),
    "tools that are none": (b'{"messages": [], "tools": 7}', "line 1: tools must be a list"),
    "model that is none": (b'{"messages": [], "model": 7}', "line 1: model must be a string"),
    "mixed lines": (lines(USER, {"messages": []}).encode(), "line 2: expected a message"),
    "mixed the other way": (lines({"messages": []}, USER).encode(), "line 2: expected a list"),
    "zeros": (bytes(4_000), "line 1: binary data"),
    "image": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "line 1: binary data"),
    "latin-1": (b'[\n{"role": "user", "content": "\xe9"}]', "line 2: the text is not UTF-8"),
    "utf-16": ('[{"role": "user"}]'.encode("utf-16"), "line 1: the text is UTF-16"),
    "utf-16 unmarked": ('[{"role": "user"}]'.encode("utf-16-le"), "line 1: binary data"),
    "nan": (b'[{"role": "user", "content": NaN}]', "line 1: NaN is no JSON number"),
    "infinite": (b'[{"role": "user", "content": 1e999}]', "line 1: a number is out of range"),
    "digits": (b'[{"n": ' + b"9" * 5_000 + b"}]", "line 1: a number has 5000 digits"),
    "deep": (b"[" * DEEP + b"]" * DEEP, "line 1: nested too deeply"),
}


def test_broken_files_are_named_with_their_line(tmp_path: Path) -> None:
    paths = {what: tmp_path / f"{what}.jsonl" for what in BROKEN}
    for what, path in paths.items():
        path.write_bytes(BROKEN[what][0])
    ran = run("count", *paths.values(), code=2)
    assert ran.out == ""
    for (what, path), line in zip(paths.items(), ran.err.splitlines(), strict=True):
        assert line.startswith(f"satchel: {path}"), what
        assert BROKEN[what][1] in line, what
        assert line.endswith(" [invalid_file]"), what


def test_broken_input_is_named_too() -> None:
    error = run("window", "-", "--model", "gpt-4o", "--json", stdin=b"[\n{]", code=2).json["error"]
    assert error["code"] == "invalid_file"
    assert error["message"].startswith("standard input, line 2: not valid JSON")


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no such file or directory" in run("count", tmp_path / "none.json", code=2).err
    assert "is a directory" in run("window", tmp_path, "--model", "gpt-4o", code=2).err


@dataclass(frozen=True)
class Failure:
    """Options for a history, and the error that they must meet."""

    history: list[Any]
    options: tuple[str, ...]
    code: str
    index: int | None = None
    value: int | None = None
    limit: int | None = None


FAILURES = {
    "role": Failure([USER, {"role": "critic", "content": "B12"}], (), "invalid_message", 1),
    "open calls": Failure([USER, CALL], (), "open_calls", 1),
    "no message": Failure([USER, 7], (), "invalid_message", 1),
    "budget": Failure([USER, ASSISTANT, LONG], ("--budget", "99"), "over_budget", 2, 605, 99),
    "no budget": Failure([USER], ("--budget", "0"), "invalid_value", None, 0, 1),
    "model": Failure([USER], ("--model", "mystery-1"), "unknown_model"),
    "policy": Failure([USER], ("--policy", "greedy"), "invalid_value"),
    "policy file": Failure([USER], ("--policy", "none.toml"), "invalid_file"),
    "dialect": Failure([USER], ("--dialect", "smoke-signals"), "unknown_dialect"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_typed_errors_are_one_line_or_one_object(name: str, tmp_path: Path) -> None:
    failure = FAILURES[name]
    history = written(tmp_path / "history.json", failure.history)
    options: tuple[str | Path, ...] = ("window", history, "--model", "gpt-4o", *failure.options)
    ran = run(*options, code=2)
    assert ran.out == ""
    assert ran.err.startswith("satchel: ")
    assert ran.err.endswith(f" [{failure.code}]\n")
    assert ran.err.count("\n") == 1
    assert "flight" not in ran.err
    as_json = run(*options, "--json", code=2)
    assert as_json.err == ""
    assert list(as_json.json) == ["error"]
    error = as_json.json["error"]
    assert ran.err == f"satchel: {error['message']} [{error['code']}]\n"
    del error["message"]
    assert error == {
        "code": failure.code,
        "index": failure.index,
        "value": failure.value,
        "limit": failure.limit,
    }


def test_a_file_without_a_model_asks_for_one(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER])
    assert "give --model [invalid_value]" in run("window", history, code=2).err


def test_open_calls_can_be_answered(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER, CALL])
    out = tmp_path / "window.json"
    run("window", history, "--model", "gpt-4o", "--open-calls", "synthesize", "--out", out)
    messages = json.loads(out.read_text(encoding="utf-8"))
    assert messages[:2] == [USER, CALL]
    assert messages[2]["tool_call_id"] == "call_1"
    assert satchel.lint(messages, "openai") == []


def test_a_policy_can_come_from_a_file(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER, ASSISTANT] * 30)
    policy = tmp_path / "policy.toml"
    policy.write_text(
        'name = "newest"\nstrategy = "sliding-window"\nmax_messages = 4\n', encoding="utf-8"
    )
    options = ("window", history, "--model", "gpt-4o", "--budget", "300", "--json")
    packed = run(*options, "--policy", str(policy)).json
    assert packed["policy"] == "newest"
    assert packed["levels"]["gone"] > 0
    policy.write_text("strategy = 7\n", encoding="utf-8")
    error = run(*options, "--policy", str(policy), code=2).json["error"]
    assert error["code"] == "invalid_value"
    assert "strategy" in error["message"]


def test_one_broken_file_does_not_hide_the_others(tmp_path: Path) -> None:
    good = written(tmp_path / "good.json", [USER])
    broken = tmp_path / "broken.json"
    broken.write_bytes(b"{")
    invalid = written(tmp_path / "invalid.json", [{"content": "no role"}])
    ran = run("count", broken, good, invalid, code=2)
    assert "good.json" in ran.out
    assert [line.rsplit(" ", 1)[1] for line in ran.err.splitlines()] == [
        "[invalid_file]",
        "[invalid_message]",
    ]
    assert str(invalid) in ran.err.splitlines()[1]
    found = run("count", broken, good, invalid, "--json", code=2).json
    assert [one["file"] for one in found["files"]] == [str(good)]
    assert found["total"]["messages"] == 1
    assert found["error"]["code"] == "invalid_file"
    assert [(one["file"], one["code"]) for one in found["errors"]] == [
        (str(broken), "invalid_file"),
        (str(invalid), "invalid_message"),
    ]


def test_model_and_encoding_exclude_each_other(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER])
    both = ("--model", "gpt-4o", "--encoding", "o200k_base")
    assert "[invalid_value]" in run("count", history, *both, code=2).err
    assert "[unknown_model]" in run("count", history, "--encoding", "o999k", code=2).err
    counted = {
        encoding: run("count", history, "--encoding", encoding, "--json").json["total"]
        for encoding in ("o200k_base", "chars4")
    }
    assert counted["o200k_base"]["exact"] is True
    assert counted["chars4"]["exact"] is False


def test_cautious_figures_are_a_warning_of_one_line(tmp_path: Path) -> None:
    history = written(tmp_path / "history.json", [USER])
    ran = run("window", history, "--model", "gpt-99-ultra", "--json")
    assert ran.json["model"] == "gpt-99-ultra"
    assert ran.err.startswith("satchel: warning: model 'gpt-99-ultra' is not known")
    assert ran.err.count("\n") == 1


# --- the program ----------------------------------------------------------------------------------


def test_help_names_the_commands_and_loads_no_heavy_module() -> None:
    assert {"count", "lint", "window"} <= set(run("--help").out.split())
    assert "--budget" in run("window", "--help").out
    program = (
        "import sys; sys.argv[1:] = ['--help']\n"
        "from satchel.cli import main\n"
        "try: main()\n"
        "except SystemExit: print(*sys.modules)"
    )
    done = subprocess.run(  # noqa: S603 - the program is written here
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.splitlines()[-1].split())
    assert "typer" in loaded
    assert not loaded & {"numpy", "pydantic", "satchel._core", "rich.table", "rich.progress"}


@pytest.mark.parametrize("missing", ["typer", "rich"])
def test_a_missing_extra_is_named(missing: str) -> None:
    sample = ROOT / "tests" / "data" / "chat.openai.json"
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        f"sys.argv[1:] = ['count', {str(sample)!r}]\n"
        "from satchel.cli import application, main\n"
        "try: application()\n"
        "except ImportError as error: print(error)\n"
        "main()"
    )
    done = subprocess.run(  # noqa: S603 - the program is written here
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "satchel[cli]" in done.stdout
    assert done.stderr.startswith("satchel: ")
    assert "satchel[cli]" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_application_is_loaded_once() -> None:
    assert application() is application()


def test_a_closed_pipe_is_no_error_message() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(  # noqa: S603 - our own command
        [COMMAND, "count", *SAMPLES, "--json"], stdout=writing, stderr=subprocess.PIPE
    ) as process:
        os.close(writing)
        _, err = process.communicate()
    assert b"Traceback" not in err


def test_progress_is_shown_on_a_terminal_and_nowhere_else(tmp_path: Path) -> None:
    history = tmp_path / "long.jsonl"
    text = "A long line of a log, again and again. " * 200
    message = {"role": "user", "content": text}
    history.write_text(lines(*[message] * 800), encoding="utf-8")
    assert history.stat().st_size > 4_000_000
    quiet = run("count", history)
    assert quiet.err == ""
    code, shown = run_on_terminal("count", history)
    assert code == 0
    assert "counting" in shown
    assert "MB" in shown


def run_on_terminal(*arguments: str | Path) -> tuple[int, str]:
    """Runs the command on a terminal; its exit code, and everything that came there."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "PYTHONUTF8": "1"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(  # noqa: S603 - our own command
        [COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        pieces: list[bytes] = []
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            pieces.append(piece)
        os.close(ours)
        process.wait()
    return process.returncode, b"".join(pieces).decode()


# --- lint -----------------------------------------------------------------------------------------


def test_lint_names_what_the_provider_rejects(tmp_path: Path) -> None:
    broken = written(tmp_path / "broken.json", [USER, CALL, USER])
    fine = written(tmp_path / "fine.json", [USER, ASSISTANT])
    ran = run("lint", broken, fine, code=1)
    assert f"{broken}, conversation 1: error oc1_unanswered_call: message 1: " in ran.out
    assert ran.out.splitlines()[-1] == "2 conversations, 1 not valid: 1 errors, 0 warnings"
    assert run("lint", fine).out.startswith("1 conversations, 0 not valid")
    [found, other] = run("lint", broken, fine, "--json", code=1).json["conversations"]
    assert [one["code"] for one in found["violations"]] == ["oc1_unanswered_call"]
    assert (other["violations"], other["dialect"], other["messages"]) == ([], "openai", 2)


def test_lint_reads_folders_of_every_format() -> None:
    folder = ROOT / "tests" / "data" / "formats"
    total = run("lint", folder, "--json", code=1).json["total"]
    assert total["conversations"] > len(list(folder.iterdir()))


def test_what_cannot_be_read_is_skipped_on_request(tmp_path: Path) -> None:
    history = tmp_path / "history.jsonl"
    history.write_text(lines([USER]) + "{broken\n" + lines([USER]), encoding="utf-8")
    assert "line 2: not valid JSON" in run("lint", history, code=2).err
    ran = run("lint", history, "--skip-errors")
    assert "line 2: not valid JSON" in ran.err
    assert ran.out.startswith("2 conversations")


def test_a_format_can_be_named() -> None:
    sample = ROOT / "tests" / "data" / "formats" / "codex.jsonl"
    found = run("lint", sample, "--format", "codex", "--json").json
    assert found["conversations"][0]["format"] == "codex"
    assert "format is 'tape', must be" in run("lint", sample, "--format", "tape", code=2).err


def test_the_model_of_a_file_may_be_unknown_to_count() -> None:
    sample = ROOT / "tests" / "data" / "formats" / "kimi.jsonl"
    ran = run("count", sample, "--json")
    assert ran.json["total"]["conversations"] == 1
    assert "counted in o200k_base" in ran.err
