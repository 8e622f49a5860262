"""Faults that users met elsewhere: stored conversations that were torn, mixed up or half read.

Each test says what must hold where another program failed, in every kind of store.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from memory_stores import fresh_database
from satchel.errors import InputError, StoreError
from satchel.stores import Entry, MemoryStore, SessionStore, open_store
from satchel.stores.sqlite import SQLiteStore
from satchel.summarize import SummaryRequest, SummaryResult
from servers import redis_url

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

Message = dict[str, Any]


@pytest.fixture(params=["memory", "sqlite", "postgres", "redis"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], SessionStore]:
    """Makes a store; a clock that stands shows what relies on time."""
    if request.param == "postgres":
        url = fresh_database()
        return lambda: open_store(url)
    if request.param == "redis":
        url, prefix = redis_url(), secrets.token_hex(6)
        return lambda: open_store(f"{url}{'&' if '?' in url else '?'}prefix={prefix}")
    if request.param == "sqlite":
        return lambda: SQLiteStore(tmp_path / "x.db", clock=lambda: 1_000.0)
    shared = MemoryStore(clock=lambda: 1_000.0)
    return lambda: shared


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def opened(store: SessionStore, **options: Any) -> satchel.Session:
    settings: dict[str, Any] = {"session_id": "s", "model": "gpt-4o", **options}
    return satchel.open_session(store, **settings)


def call(name: str) -> Message:
    function = {"name": "look", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }


def result(name: str) -> Message:
    return {"role": "tool", "tool_call_id": name, "content": "seen"}


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def test_what_was_appended_together_stays_together(make: Callable[[], SessionStore]) -> None:
    async def work() -> None:
        store = make()

        async def write(name: str) -> None:
            async with opened(store) as session:
                await session.append([call(name), result(name)])

        async with opened(store) as first:
            await first.append(user("look around"))
        await asyncio.gather(*(write(f"{number}-a") for number in range(10)))
        async with opened(store) as session:
            _, *found = await session.messages()
            assert satchel.lint(await session.messages(), "openai") == []
        names = [message["tool_calls"][0]["id"] for message in found[::2]]
        assert [message["tool_call_id"] for message in found[1::2]] == names
        assert sorted(names) == [f"{number}-a" for number in range(10)]
        await store.close()

    run(work())


def test_a_stale_writer_is_told_and_mixes_nothing(make: Callable[[], SessionStore]) -> None:
    async def work() -> None:
        store = make()
        async with opened(store) as one, opened(store) as two:
            version = one.version
            await one.append([user("q"), call("a1")], expected_version=version)
            with pytest.raises(StoreError) as caught:
                await two.append([user("q"), call("b1")], expected_version=version)
            assert caught.value.code == "version_conflict"
            for _ in range(2):  # trying again does not help either, before the result is there
                with pytest.raises(StoreError) as caught:
                    await two.append([user("q"), call("b1")])
                assert caught.value.code == "calls_pending"
            await one.append(result("a1"))
            assert await two.messages() == [user("q"), call("a1"), result("a1")]
        await store.close()

    run(work())


def test_who_opens_in_the_middle_of_a_call_comes_not_between(
    make: Callable[[], SessionStore],
) -> None:
    async def work() -> None:
        store = make()
        async with opened(store) as one:
            await one.append([user("q"), call("a1")])
            async with opened(store) as two:
                with pytest.raises(StoreError) as caught:
                    await two.append(user("and then?"))
                assert caught.value.code == "calls_pending"
                await one.append(result("a1"))
                await two.append(user("and then?"))
            assert (await one.messages())[1:] == [call("a1"), result("a1"), user("and then?")]
        # Whoever knows that the other is gone goes on without him.
        async with opened(store) as one:
            await one.append(call("a2"))
        async with opened(store) as two:
            await two.append(user("never mind"), expected_version=two.version)
            assert (await two.window()).messages[-1] == user("never mind")
        await store.close()

    run(work())


def test_order_is_that_of_appending_and_no_clock_s(make: Callable[[], SessionStore]) -> None:
    texts = [f"i{number}" for number in range(6)]

    async def work() -> None:
        store = make()
        async with opened(store) as session:
            await session.append(
                [(said if number % 2 else user)(text) for number, text in enumerate(texts)]
            )
            assert [message["content"] for message in await session.messages()] == texts
            assert [message["content"] for message in await session.messages(3)] == texts[3:]
        await store.close()

    run(work())


def test_an_unreadable_entry_is_named_and_hides_no_other(
    make: Callable[[], SessionStore],
) -> None:
    async def work() -> None:
        store = make()
        async with opened(store) as session:
            await session.append([user("good"), said("better")])
        info = await store.append("s", [Entry("message", b"{not json")])
        with pytest.raises(StoreError) as caught:
            async with opened(store):
                pass
        assert (caught.value.code, caught.value.index) == ("corrupt_entry", info.length)
        assert "not json" not in str(caught.value)
        await store.truncate("s", info.length - 1)
        async with opened(store) as session:
            assert await session.messages() == [user("good"), said("better")]
        await store.close()

    run(work())


def test_a_limit_of_nothing_is_nothing(make: Callable[[], SessionStore]) -> None:
    async def work() -> None:
        store = make()
        async with opened(store) as session:
            await session.append([user("one"), said("two"), user("three")])
            assert await session.messages(0) == []
            assert await session.messages(2) == [said("two"), user("three")]
            assert len(await session.messages(None)) == 3
            with pytest.raises(InputError):
                await session.messages(-1)
        assert await store.read("s", limit=0) == []
        with pytest.raises(InputError):
            await store.read("s", limit=-1)
        await store.close()

    run(work())


def test_a_reopened_history_obeys_the_budget_and_stays_whole(
    make: Callable[[], SessionStore],
) -> None:
    history = [user("ab " * 400), said("ab " * 400), user("ab " * 50), said("ab " * 50)]

    async def work() -> None:
        store = make()
        async with opened(store) as session:
            await session.append(history)
        async with opened(store, budget=700) as again:
            window = await again.window()
            assert window.tokens <= 700
            assert await again.messages() == history
        await store.close()

    run(work())


def test_a_summary_and_what_it_covers_come_back_together(
    make: Callable[[], SessionStore],
) -> None:
    history = [
        message
        for turn in range(8)
        for message in (user(f"Ask {turn}. " * 60), said(f"Answer {turn}. " * 60))
    ]

    class Brief:
        name = "brief"

        async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
            assert request.transcript
            return SummaryResult(text="Eight questions were asked and answered.")

    options: dict[str, Any] = {
        "budget": 3_000,
        "policy": "rolling-summary",
        "summarizer": Brief(),
    }

    async def work() -> None:
        store = make()
        async with opened(store, **options) as session:
            await session.append([*history, user("and now?")])
            report = await session.compact(force=True)
            assert report.outcome == "summarized"
            before = await session.window()
        async with opened(store, **options) as again:
            after = await again.window()
            assert after.messages == before.messages
            assert after.events == before.events
            assert [event["kind"] for event in await again.events()].count("summary") == 1
            await again.append(said("done"))
            assert len(await again.messages()) == 18
        await store.close()

    run(work())


def test_a_stored_history_names_no_ids_to_a_server_that_keeps_none(
    make: Callable[[], SessionStore],
) -> None:
    items: list[Message] = [
        {"role": "user", "content": "hello"},
        {"type": "reasoning", "id": "rs_9", "summary": [], "encrypted_content": "E"},
        {"type": "message", "id": "msg_9", "role": "assistant", "content": "hi"},
        {"role": "user", "content": "and now?"},
    ]
    options = {"model": "gpt-5", "dialect": "openai-responses"}

    async def work() -> None:
        store = make()
        async with opened(store, **options) as session:
            await session.append(items)
        async with opened(store, **options) as again:
            assert await again.messages() == items
            window = await again.window()
            kept = str(window.as_kwargs(store=True)["input"])
            assert "rs_9" in kept
            assert "msg_9" in kept
            sent = window.as_kwargs(store=False)["input"]
            assert "rs_9" not in str(sent)
            assert "msg_9" not in str(sent)
            [reasoning] = [one for one in sent if one.get("type") == "reasoning"]
            assert (reasoning["summary"], reasoning["encrypted_content"]) == ([], "E")
            # What is stored has them still: another window may be for a server that knows them.
            assert await again.messages() == items
        await store.close()

    run(work())


def test_a_summary_in_the_background_refuses_no_append(make: Callable[[], SessionStore]) -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()

    class Late:
        name = "late"

        async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
            assert request.transcript
            begun.set()
            await may_end.wait()
            return SummaryResult(text="Four turns were exchanged about the harbour.")

    history = [one for turn in range(4) for one in (user(f"{turn}. " * 90), said(f"{turn}. " * 90))]
    options: dict[str, Any] = {
        "budget": 3_000,
        "policy": "rolling-summary",
        "summarizer": Late(),
    }

    async def work() -> None:
        store = make()
        async with opened(store, **options) as session, opened(store, **options) as other:
            await session.append(history)
            compacting = asyncio.create_task(session.compact(force=True))
            await begun.wait()
            await session.append(user("5"))
            await other.append(said("6"))
            may_end.set()
            report = await compacting
            assert report.outcome in {"summarized", "overtaken"}
            await session.append(user("7"))
            wanted = [*history, user("5"), said("6"), user("7")]
            assert await session.messages() == wanted
            assert await other.messages() == wanted
            assert (await session.window()).messages == (await other.window()).messages
        await store.close()

    run(work())
