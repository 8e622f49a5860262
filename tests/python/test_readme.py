"""Each of the README's examples runs by itself, as it stands, and its commands are real."""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import satchel

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
COMMAND = Path(sys.executable).with_name("satchel")


class Block(NamedTuple):
    """A fenced block: its language, its text, and the line it begins on."""

    language: str
    code: str
    line: int


BLOCKS = [
    Block(found[1], found[2], TEXT.count("\n", 0, found.start(2)))
    for found in re.finditer(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
]
PYTHON = [block for block in BLOCKS if block.language == "python"]
NOT_SHOWN = [
    "allocate_budget",
    "is_overflow_error",
    "overflow_details",
    "usage_tokens",
]
COMMANDS = [
    line.partition("  #")[0].strip()
    for block in BLOCKS
    if block.language == "sh"
    for line in block.code.splitlines()
]
OUR_COMMANDS = [command for command in COMMANDS if command.startswith("satchel ")]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    assert TEXT.count("```") == 2 * len(BLOCKS)
    assert {block.language for block in BLOCKS} == {"python", "sh"}


@pytest.mark.parametrize("block", PYTHON, ids=lambda block: f"line {block.line}")
def test_an_example_runs_by_itself(block: Block, tmp_path: Path) -> None:
    script = tmp_path / "README.py"
    # At its place, so that a traceback names the line.
    script.write_text("\n" * block.line + block.code, encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-W", "error", script], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""


def test_every_public_function_is_shown() -> None:
    shown = "".join(block.code for block in PYTHON)
    missing = [
        name
        for name in satchel.__all__
        if inspect.isfunction(getattr(satchel, name)) and f"satchel.{name}(" not in shown
    ]
    assert sorted(missing) == NOT_SHOWN


def test_the_first_example_is_short() -> None:
    first = PYTHON[0]
    assert len([line for line in first.code.splitlines() if line.strip()]) <= 15


@pytest.mark.parametrize("command", OUR_COMMANDS)
def test_a_command_of_ours_succeeds(command: str) -> None:
    _, *arguments = shlex.split(command)
    done = subprocess.run(  # noqa: S603 - written in our own README
        [COMMAND, *arguments], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr == b""
    assert done.stdout


def test_every_other_command_is_a_target_or_an_installation_from_a_file() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    assert len(OUR_COMMANDS) >= 4
    for command in set(COMMANDS) - set(OUR_COMMANDS):
        program, *arguments = shlex.split(command)
        if program == "make":
            assert set(arguments) <= targets
        else:
            assert "pip install" in command
            assert "dist/satchel-*.whl" in command  # never by its bare name


def test_links_and_files_exist() -> None:
    named = re.findall(r"`((?:tests/|[A-Z]+)[\w./]*\.(?:md|json|jsonl))`|`(LICENSE)`", TEXT)
    paths = {path for pair in named for path in pair if path}
    assert {"LICENSE", "CONTRIBUTING.md"} <= paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert shutil.which(str(COMMAND)) is not None
