"""Memories of every backend, for the tests of what all of them do alike."""

from __future__ import annotations

import itertools
import secrets
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg.sql import SQL, Identifier

import satchel
from satchel.memory.opening import embedder_of
from satchel.memory.postgres import PostgresMemories
from satchel.memory.sqlite import SqliteMemories
from satchel.memory.store import Memory
from servers import own_postgres, postgres_url

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["BACKENDS", "Clock", "memory_of", "room"]

BACKENDS = ("memory", "sqlite", "sqlite-searched", "postgres", "postgres-searched")
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


def fresh_database() -> str:
    """The URL of a database of its own, on the server of the tests."""
    name = f"memories_{secrets.token_hex(6)}"
    with psycopg.connect(own_postgres().url(), autocommit=True) as connection:
        connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
    return own_postgres().url(name)


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
    if backend == "postgres-searched":
        rest = {name: value for name, value in options.items() if name != "embedder"}
        chosen = embedder_of(options.get("embedder"))
        return Memory(PostgresMemories(postgres_url(), max_bytes=0), embedder=chosen, **rest)
    return satchel.open_memory(postgres_url(), **options)
