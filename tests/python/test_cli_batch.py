"""The command ``satchel rewrite``, as people run it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from commands import HOSTILE, hidden_characters, run, written
from satchel.batch import rewrite
from satchel.reading import read_transcripts
from satchel.testing import generate_history

DATA = Path(__file__).parents[1] / "data"
DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("target", DIALECTS)
def test_a_folder_in_another_dialect(tmp_path: Path, target: str) -> None:
    out = tmp_path / "out.jsonl"
    done = run(
        *("rewrite", DATA, "--out", out, "--model", "gpt-4o"),
        *("--budget", "25%", "--convert", target, "--json"),
    ).json
    assert (done["rejected"], done["violations_left"]) == (0, 0)
    assert done["windows"] == len(rows(out)) == len(rows(tmp_path / "out.jsonl.report.jsonl"))
    assert {found.dialect for found in read_transcripts(out)} == {target}
    run("lint", out)  # ends with 1 if there is an error


def test_the_same_as_the_function(tmp_path: Path) -> None:
    given = written(tmp_path / "in.json", generate_history(60))
    own, other = tmp_path / "own.jsonl", tmp_path / "other.jsonl"
    pages = tmp_path / "pages.jsonl"
    said = run(
        *("rewrite", given, "--out", own, "--model", "gpt-4o", "--budget", "4000"),
        *("--at", "turn:-1", "--policy", "token-window", "--threads", "1", "--pages", pages),
    ).out
    assert "1 conversations, 1 windows, 0 rejected" in said
    done = rewrite(given, other, model="gpt-4o", budget=4000, at="turn:-1", policy="token-window")
    assert own.read_bytes() == other.read_bytes()
    assert f"{done.tokens_before:,} before, {done.tokens_after:,} after" in said
    assert all(row["text"] for row in rows(pages))


def test_what_is_rejected_ends_with_one_and_is_named(tmp_path: Path) -> None:
    given, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    hello = json.dumps([{"role": "user", "content": "hi"}])
    given.write_text(f"{hello}\n{{broken\n{hello}\n", encoding="utf-8")
    named = tmp_path / "bad.jsonl"
    done = run(
        *("rewrite", given, "--out", out, "--model", "gpt-4o", "--rejects", named, "--json"), code=1
    ).json
    assert (done["conversations"], done["rejected"]) == (2, 1)
    assert rows(named)[0]["line"] == 2
    failed = run(
        *("rewrite", given, "--out", out, "--model", "gpt-4o", "--on-error", "raise"), code=2
    )
    assert "line 2" in failed.err
    again = run("rewrite", given, "--out", out, "--model", "gpt-4o", "--budget", "9", code=2)
    assert "interrupted here" in again.err
    run(
        *("rewrite", given, "--out", out, "--model", "gpt-4o", "--budget", "900"),
        "--restart",
        code=1,
    )


def test_options_are_refused_in_one_sentence(tmp_path: Path) -> None:
    given, out = written(tmp_path / "in.json", []), tmp_path / "out.jsonl"
    for options in (
        ["--on-error", "ignore"],
        ["--at", "never"],
        ["--budget", "lots"],
        ["--budget", "9" * 5_000],
        ["--budget", "99999999999999999999999"],
        ["--convert", HOSTILE.replace("\ud800", "")],
        ["--policy", "none"],
        ["--file-format", "paper"],
    ):
        failed = run("rewrite", given, "--out", out, "--model", "gpt-4o", *options, code=2)
        assert not hidden_characters(failed.err)
    assert not out.exists()
