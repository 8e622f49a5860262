"""What the command says about what went wrong: which file, what to do, how much there is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from commands import run

if TYPE_CHECKING:
    from pathlib import Path

USER = {"role": "user", "content": "Which gate does my flight leave from?"}
CALL: dict[str, Any] = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "gate", "arguments": "{}"}}
    ],
}


def test_an_error_of_window_names_the_file_and_the_option(tmp_path: Path) -> None:
    file = tmp_path / "open.json"
    file.write_text(json.dumps([USER, CALL]), encoding="utf-8")
    said = run("window", file, "--model", "gpt-4o", code=2).err
    assert f"{file}: " in said
    assert "give --open-calls synthesize" in said
    assert "[open_calls]" in said
    assert f"{file}: " in run("window", file, "--model", "gpt-4o", "--budget", "9", code=2).err
    error = run("window", file, "--model", "gpt-4o", "--json", code=2).json["error"]
    assert (error["code"], error["index"]) == ("open_calls", 1)
    run("window", file, "--model", "gpt-4o", "--open-calls", "synthesize")


def test_nothing_read_has_no_summary(tmp_path: Path) -> None:
    for command in (("lint",), ("repair",), ("convert", "--target", "anthropic")):
        ran = run(*command, tmp_path / "missing.json", code=2)
        assert "conversations" not in ran.out + ran.err
        assert "no such file" in ran.err


def test_a_summary_says_what_is_not_in_it(tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    file.write_text("[]", encoding="utf-8")
    assert "conversation 1: no messages" in run("lint", file).out
    ran = run("lint", file, tmp_path / "missing.json", code=2)
    assert ran.out.rstrip().endswith("; 1 file not read")


def test_a_long_listing_ends_with_a_number(tmp_path: Path) -> None:
    orphans = [{"role": "tool", "tool_call_id": f"c{at}", "content": "B12"} for at in range(1_200)]
    file = tmp_path / "orphans.json"
    file.write_text(json.dumps([USER, *orphans]), encoding="utf-8")
    shown = run("lint", file, code=1).out.splitlines()
    assert shown[-2] == "... and 200 more lines; --rows 0 shows all"
    assert len(shown) == 1_002
    assert len(run("lint", file, "--rows", "0", code=1).out.splitlines()) == 1_201
    assert len(run("lint", file, "--rows", "3", code=1).out.splitlines()) == 5
    assert len(run("lint", file, "--json", code=1).json["conversations"][0]["violations"]) == 1_200


def test_help_explains_the_exit_codes() -> None:
    assert "Exit codes: 0 done; 1 done, and" in " ".join(run("--help").out.split())
