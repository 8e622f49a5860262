"""Settings of the bridges' tests: those of the other suite, and no tracing to anybody."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# The profiles of hypothesis are set where the other suite has its settings.
_SETTINGS = Path(__file__).resolve().parents[1] / "python" / "conftest.py"
_found = importlib.util.spec_from_file_location("suite_settings", _SETTINGS)
assert _found is not None
assert _found.loader is not None
_found.loader.exec_module(importlib.util.module_from_spec(_found))

os.environ.setdefault("OPENAI_AGENTS_DISABLE_TRACING", "1")


def pytest_sessionfinish() -> None:
    """Ends the servers that tests have started."""
    servers.stop_all()


@pytest.fixture(params=["memory", "sqlite", "postgresql", "redis"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store of each kind; sessions in it are told apart by their ids."""
    urls: dict[str, Callable[[], str]] = {
        "memory": lambda: f"memory://{tmp_path.name}",
        "sqlite": lambda: f"sqlite:///{tmp_path / 'agent.db'}",
        "postgresql": servers.postgres_url,
        "redis": servers.redis_url,
    }
    return urls[str(request.param)]()


@pytest.fixture(autouse=True)
def own_loop() -> Iterator[None]:
    """A loop for what is called without one, closed after the test."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()
