"""The command ``satchel`` in a process of its own, as tests run it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

COMMAND = Path(sys.executable).with_name("satchel")
# One of each kind of text that could act on a terminal: markup, colour, title, clearing, a C1
# control sequence, carriage return, backspace, bidirectional override, zero width, a line
# separator, stacked marks, a lone surrogate, a tag character.
HOSTILE = (
    "[bold red]styled[/] \x1b[31mred\x1b]0;title\x07 \x9b2J \r\x08 \u202eevil\u202c \u200b\u2066 "
    "\u2028 e" + "\u0336" * 200 + " \ud800 \U000e0041 [/nothing] :boom: 한국어"
)


@dataclass(frozen=True)
class Ran:
    """A finished run."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out, parse_constant=refuse)


def refuse(constant: str) -> None:
    pytest.fail(f"the output holds {constant}, which is no JSON")


def run(
    *arguments: str | Path, stdin: bytes = b"", env: dict[str, str] | None = None, code: int = 0
) -> Ran:
    """Runs the command; it has to end with this exit code, and never with a traceback."""
    done = subprocess.run(  # noqa: S603 - our own command
        [COMMAND, *arguments],
        input=stdin,
        capture_output=True,
        check=False,
        env=os.environ | {"PYTHONUTF8": "1"} | (env or {}),
    )
    ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ran.err
    assert ran.code == code, ran.err
    return ran


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def lines(*values: object) -> str:
    return "".join(f"{json.dumps(value)}\n" for value in values)


def hidden_characters(text: str) -> set[str]:
    """Characters of the output that act on a terminal or are not seen."""
    kinds = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    return {char for char in text if unicodedata.category(char) in kinds} - {"\n"}
