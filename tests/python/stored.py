"""What the tests of stores share: running, entries, errors, a writer's connection."""

# The threads inside are given other connections, to see what they do.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from satchel.errors import StoreError
from satchel.stores import Entry

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Awaitable, Callable, Coroutine

    from satchel.stores import SessionStore
    from satchel.stores.sqlite import SQLiteStore


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def said(*texts: str) -> list[Entry]:
    return [Entry("message", text.encode()) for text in texts]


async def texts_of(store: SessionStore, session_id: str = "s") -> list[str]:
    return [entry.payload.decode() for entry in await store.read(session_id)]


async def refused(work: Awaitable[object], code: str) -> StoreError:
    with pytest.raises(StoreError) as caught:
        await work
    assert caught.value.code == code
    assert "secret" not in str(caught.value)
    return caught.value


def connected(store: SQLiteStore, *changes: Callable[[sqlite3.Connection], object]) -> None:
    """Lets the writer's connection be changed as soon as it is made."""
    connect = store._writer._connect

    def changed() -> sqlite3.Connection:
        connection = connect()
        for change in changes:
            change(connection)
        return connection

    store._writer._connect = changed
