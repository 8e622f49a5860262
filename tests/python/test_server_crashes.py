"""Writers and servers that are killed, and many writers at once: nothing lost, doubled or split.

Short trials with fixed seeds; ``benches/python/soak_stores.py`` has the long ones.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from servers import PostgresServer, ValkeyServer, own_postgres, postgres_url, redis_url
from store_trials import crowd, kill_server, kill_writers, race

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

URLS: dict[str, Callable[[], str]] = {"postgres": postgres_url, "redis": redis_url}


@pytest.fixture(params=URLS)
def url(request: pytest.FixtureRequest) -> str:
    return URLS[request.param]()


@pytest.fixture(params=["postgres", "redis"])
def server(request: pytest.FixtureRequest) -> Iterator[PostgresServer | ValkeyServer]:
    """A server that may be killed; Valkey with a file that is on the disk before it answers."""
    if request.param == "postgres":
        yield own_postgres()
        return
    valkey = ValkeyServer("--appendfsync", "always").start()
    yield valkey
    valkey.stop()


def fresh_id() -> str:
    return f"trial {secrets.token_hex(8)}"


def test_what_a_killed_writer_was_told_is_there(url: str) -> None:
    assert kill_writers(url, fresh_id(), kills=4, seed=7) > 0


def test_what_a_killed_server_had_told_is_there(server: PostgresServer | ValkeyServer) -> None:
    def restart() -> None:
        server.kill()
        server.start()

    assert kill_server(server.url(), fresh_id(), restart, kills=4, seed=7) > 0


def test_many_processes_write_one_session(url: str) -> None:
    crowd(url, fresh_id(), processes=8, appends=20)


def test_each_version_has_one_winner(url: str) -> None:
    race(url, fresh_id(), processes=3, versions=30)


def test_a_window_is_the_same_after_a_crash(server: PostgresServer | ValkeyServer) -> None:
    session_id = fresh_id()

    def opened() -> satchel.Session:
        return satchel.open_session(
            server.url(), session_id=session_id, user_id="ada", model="gpt-4o", budget=2_000
        )

    def said(number: int) -> dict[str, Any]:
        role = "assistant" if number % 2 else "user"
        return {"role": role, "content": f"Remark {number}: " + f"word{number} " * 40}

    async def before() -> tuple[satchel.Window, str]:
        async with opened() as session:
            for number in range(41):
                await session.append(said(number))
                if number % 10 == 0:
                    await session.window()
            await session.pin(6)
            await session.state.set({"step": 3})
            window = await session.window(system="You are patient.")
            return window, await session.page_in(window.pages[0].pointer)

    async def after() -> tuple[satchel.Window, str]:
        async with opened() as session:
            assert await session.messages() == [said(number) for number in range(41)]
            assert await session.state.get() == ({"step": 3}, 1)
            window = await session.window(system="You are patient.")
            return window, await session.page_in(window.pages[0].pointer)

    first, first_page = asyncio.run(before())
    server.kill()
    server.start()
    second, second_page = asyncio.run(after())
    assert second_page == first_page
    assert second.messages == first.messages
    assert (second.tokens, second.events) == (first.tokens, first.events)
