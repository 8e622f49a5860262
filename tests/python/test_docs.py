"""The examples of the pages in ``docs`` run as they stand, in order."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Pages whose packages are not in this environment; tests/bridges runs them in theirs.
BRIDGES = {"openai_agents", "pydantic_ai"}
PAGES = sorted(page for page in (ROOT / "docs").glob("*.md") if page.stem not in BRIDGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path) -> None:
    run_page(page, tmp_path)


def run_page(page: Path, tmp_path: Path) -> None:
    """Runs all examples of a page, one after the other."""
    text = page.read_text(encoding="utf-8")
    program = [""] * text.count("\n")  # every line at its place, so that a traceback names it
    blocks = list(re.finditer(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert blocks
    for block in blocks:
        first = text.count("\n", 0, block.start(1))
        lines = block[1].splitlines()
        program[first : first + len(lines)] = lines
    script = tmp_path / "page.py"
    script.write_text("\n".join(program), encoding="utf-8")
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-W", "error", script], cwd=ROOT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
