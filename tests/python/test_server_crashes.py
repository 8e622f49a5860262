"""Short runs of the soak on servers: writers and servers that are killed, writers that race."""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import pytest

import satchel
import soak_servers
import soak_stores
from servers import PostgresServer, ValkeyServer, own_postgres, postgres_url, redis_url

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


def test_a_killed_writer_loses_nothing_that_was_acknowledged(url: str) -> None:
    done = soak_stores.crash(url, 3, 7)
    assert done["kills"] == 3
    assert done["acknowledged"] >= 3


def test_a_killed_server_loses_nothing_that_was_acknowledged(
    server: PostgresServer | ValkeyServer,
) -> None:
    done = soak_servers.kill_server(server, 4, 7)
    assert done["server kills"] == 4
    assert done["appends over kills"] >= 4


def test_writers_at_the_same_time_lose_nothing(url: str) -> None:
    assert soak_stores.race(url, 8, 10)["raced appends"] == 80


def test_each_version_has_one_winner(url: str) -> None:
    assert soak_stores.race_for_versions(url, 2, 30)["versions"] == 30


def test_nothing_comes_between_a_call_and_its_result(url: str) -> None:
    assert soak_stores.race_with_tools(url, 2, 4)["shared calls"] == 8


def test_a_window_is_the_same_after_a_crash(server: PostgresServer | ValkeyServer) -> None:
    session_id = secrets.token_hex(8)

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
    assert second.messages == first.messages
    assert (second.tokens, second.events) == (first.tokens, first.events)
    assert second_page == first_page
