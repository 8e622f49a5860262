"""Memories of every backend, for the tests of what all of them do alike."""

from __future__ import annotations

import importlib.util
import itertools
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.memory.opening import embedder_of
from satchel.memory.sqlite import SqliteMemories
from satchel.memory.store import Memory

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BACKENDS", "Clock", "memory_of", "room"]

BACKENDS = ("memory", "sqlite", "sqlite-searched", "postgres")
NUMBERS = itertools.count()


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def room() -> str:
    """A tenant that no other test has: stores outlive tests."""
    return f"tenant-{next(NUMBERS)}"


def postgres_url() -> str:
    """A real server's URL, or the test is skipped."""
    if importlib.util.find_spec("servers") is None:
        pytest.skip("no PostgreSQL: the module that starts servers is not here")
    servers: Any = importlib.import_module("servers")
    found: str = servers.postgres_url()
    return found


def memory_of(backend: str, folder: Path, **options: Any) -> Memory:
    """A memory of a kind of backend; files in ``folder``."""
    if backend == "memory":
        return satchel.open_memory("memory://", **options)
    if backend == "sqlite":
        return satchel.open_memory(f"sqlite:///{folder / 'memory.db'}", **options)
    if backend == "sqlite-searched":
        rest = {name: value for name, value in options.items() if name != "embedder"}
        chosen = embedder_of(options.get("embedder"))
        path = str(folder / "searched.db")
        return Memory(SqliteMemories(path, resident=0), embedder=chosen, **rest)
    return satchel.open_memory(postgres_url(), **options)
