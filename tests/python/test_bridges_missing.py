"""Where the package of a bridge is not installed, the error says what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAMS = {
    "pydantic_ai": "import satchel.pydantic_ai",
    "agents": (
        "import satchel.openai_agents as bridge; bridge.context_filter(model='gpt-5').page_tool()"
    ),
}


@pytest.mark.parametrize(
    ("package", "extra"), [("pydantic_ai", "pydantic-ai"), ("agents", "openai-agents")]
)
def test_the_error_names_the_extra(package: str, extra: str) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; {PROGRAMS[package]}"
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert f"with the extra {extra}" in done.stderr


def test_sessions_need_no_package() -> None:
    program = (
        "import asyncio, sys; sys.modules['agents'] = None\n"
        "from satchel.openai_agents import SatchelSession\n"
        "session = SatchelSession('s')\n"
        "asyncio.run(session.add_items([{'role': 'user', 'content': 'hello'}]))\n"
        "print(len(asyncio.run(session.get_items())))"
    )
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "1"
