"""Stored conversations: one log, many writers, and windows that a restart does not change."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel.stores import MemoryStore
from satchel.stores.codec import decode, encode

if TYPE_CHECKING:
    from collections.abc import Coroutine

NUMBERS = itertools.count()


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def opened(store: MemoryStore, session_id: str = "s", **options: Any) -> satchel.Session:
    settings: dict[str, Any] = {"model": "gpt-4o", "budget": 2_000, **options}
    return satchel.open_session(store, session_id=session_id, **settings)


def said(number: int) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"Remark {number}: " + f"word{number} " * 40}


def call(name: str) -> dict[str, Any]:
    function = {"name": "look", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": name, "type": "function", "function": function}],
    }


def result(name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": name, "content": "nothing there"}


def test_a_restart_gives_the_same_window() -> None:
    async def work() -> None:
        store = MemoryStore()
        async with opened(store) as session:
            for number in range(41):
                await session.append(said(number))
                if number % 10 == 0:
                    await session.window()
            await session.pin(6)
            before = await session.window(system="You are patient.")
            index = await session.page_in(before.pages[0].pointer)
            pointer = re.findall(r"p_\d{18}", index)[0]
            content = await session.page_in(pointer)
            assert content in [said(number)["content"] for number in range(41)]
        async with opened(store) as again:
            after = await again.window(system="You are patient.")
            assert after.messages == before.messages
            assert (after.tokens, after.events) == (before.tokens, before.events)
            assert await again.page_in(pointer) == content

    run(work())


def test_sessions_of_another_user_are_refused() -> None:
    async def work() -> None:
        store = MemoryStore()
        async with opened(store, user_id="ada"):
            pass
        for user_id in ("bob", None, "Ada"):
            with pytest.raises(satchel.StoreError) as caught:
                async with opened(store, user_id=user_id):
                    pass
            assert caught.value.code == "wrong_user"

    run(work())


def test_pointers_of_another_session_find_nothing() -> None:
    async def work() -> None:
        store = MemoryStore()
        async with opened(store, "one") as one, opened(store, "two") as two:
            for session in (one, two):
                await session.append([said(number) for number in range(31)])
            pointers = [page.pointer for page in (await one.window()).pages]
            await two.window()
            for pointer in pointers:
                with pytest.raises(satchel.PageNotFoundError):
                    await two.page_in(pointer)

    run(work())


def test_what_was_appended_under_an_id_is_not_appended_again() -> None:
    async def work() -> None:
        store = MemoryStore()
        async with opened(store) as session:
            version = await session.append(said(0), ids=["a"])
            assert await session.append(said(0), ids=["a"]) == version
            await session.append([said(0), said(1)], ids=["a", "b"])
            async with opened(store) as other:
                await other.append([said(1), said(2)], ids=["b", "c"])
            assert await session.messages() == [said(0), said(1), said(2)]

    run(work())


def test_one_writer_of_two_wins_a_version() -> None:
    async def work() -> None:
        store = MemoryStore()
        async with opened(store) as one, opened(store) as two:
            version = one.version
            assert two.version == version
            await one.append(said(0), expected_version=version)
            with pytest.raises(satchel.StoreError) as caught:
                await two.append(said(1), expected_version=version)
            assert caught.value.code == "version_conflict"
            await two.append(said(1), expected_version=two.version)
            assert await one.messages() == [said(0), said(1)]

    run(work())


def test_nobody_comes_between_a_call_and_its_result() -> None:
    async def work() -> None:
        store = MemoryStore()
        async with opened(store) as one, opened(store) as two:
            await one.append([said(0), call("a")])
            with pytest.raises(satchel.StoreError) as caught:
                await two.append(said(2))
            assert caught.value.code == "calls_pending"
            await one.append(result("a"))
            await two.append(said(2))
            assert await two.messages() == [said(0), call("a"), result("a"), said(2)]

    run(work())


def test_appends_of_many_tasks_are_whole_and_in_order() -> None:
    async def work() -> None:
        store = MemoryStore()

        async def write(writer: int) -> None:
            async with opened(store) as session:
                for number in range(8):
                    name = f"{writer}-{number}"
                    await session.append([call(name), result(name)])

        async with opened(store) as first:
            await first.append(said(0))
        await asyncio.gather(*(write(writer) for writer in range(6)))
        async with opened(store) as session:
            ids = [
                message["tool_calls"][0]["id"]
                if "tool_calls" in message
                else message["tool_call_id"]
                for message in (await session.messages())[1:]
            ]
        assert len(ids) == 96
        assert ids[::2] == ids[1::2]
        for writer in range(6):
            own = [name for name in ids[::2] if name.startswith(f"{writer}-")]
            assert own == [f"{writer}-{number}" for number in range(8)]

    run(work())


def test_branches_and_rewinds_leave_the_rest_alone() -> None:
    async def work() -> None:
        store = MemoryStore()
        async with opened(store, user_id="ada") as session:
            await session.append([said(number) for number in range(6)])
            async with await session.branch(3, session_id="b") as branch:
                await branch.append({"role": "user", "content": "elsewhere"})
                assert len(await branch.messages()) == 4
            await session.rewind(2)
            assert await session.messages() == [said(0), said(1)]
            await session.append(said(2))
            assert len(await session.messages()) == 3
            with pytest.raises(satchel.InputError):
                await session.rewind(9)
        async with opened(store, "b", user_id="ada") as branch:
            assert (await branch.messages())[:3] == [said(0), said(1), said(2)]

    run(work())


def test_a_store_that_fails_loses_nothing_and_doubles_nothing() -> None:
    class Failing(MemoryStore):
        fails_in = -1

        async def append(self, *args: Any, **options: Any) -> Any:
            self.fails_in -= 1
            if self.fails_in == 0:
                message = "the disk is full"
                raise satchel.StoreError(message, code="store_unavailable")
            return await super().append(*args, **options)

    async def work() -> None:
        store = Failing()
        async with opened(store) as session:
            await session.append(said(0))
            store.fails_in = 1
            with pytest.raises(satchel.StoreError, match="disk is full"):
                await session.append(said(1))
            assert await session.messages() == [said(0)]
            await session.append([said(1), said(2)])
            assert len((await session.window()).messages) == 3
        async with opened(store) as again:
            assert await again.messages() == [said(0), said(1), said(2)]

    run(work())


def test_limits_count_the_newest_messages() -> None:
    async def work() -> None:
        async with opened(MemoryStore()) as session:
            await session.append([said(number) for number in range(3)])
            assert await session.messages(0) == []
            assert await session.messages(2) == [said(1), said(2)]
            assert len(await session.messages(9)) == 3
            with pytest.raises(satchel.InputError):
                await session.messages(-1)

    run(work())


def test_replies_are_recorded_once_and_teach_the_counter() -> None:
    async def work() -> None:
        async with opened(MemoryStore(), model="claude-sonnet-4-5") as session:
            await session.append({"role": "user", "content": "Summarise the minutes. " * 20})
            window = await session.window()
            reply = {
                "id": "msg_1",
                "role": "assistant",
                "content": [{"type": "text", "text": "They agreed."}],
                "usage": {"input_tokens": int(window.tokens * 1.5), "output_tokens": 4},
            }
            version = await session.record(reply)
            assert await session.record(reply) == version
            assert len(await session.messages()) == 2
            assert [event["kind"] for event in await session.events()] == [
                "settings",
                "calibration",
            ]
            # Of a server that gives an id twice: another reply.
            assert await session.record(reply, once=False) > version
            assert len(await session.messages()) == 3

    run(work())


def test_an_overflow_makes_the_window_smaller_and_gives_up_in_the_end() -> None:
    error = (
        "This model's maximum context length is 900 tokens. However, your messages resulted in "
        "2600 tokens."
    )

    async def work() -> None:
        async with opened(MemoryStore()) as session:
            await session.append([said(number) for number in range(21)])
            before = await session.window()
            after = await session.observe_overflow(error)
            assert after.tokens < before.tokens
            assert after.budget == 900
            assert satchel.lint(after.messages, "openai") == []
            codes: set[str] = set()
            for _ in range(9):
                try:
                    await session.observe_overflow("context_length_exceeded")
                except satchel.SatchelError as refusal:
                    codes.add(refusal.code)
            assert codes
            assert codes <= {"overflow_persists", "nothing_to_compact", "over_budget"}
            with pytest.raises(satchel.InputError):
                await session.observe_overflow(ValueError("something else"))

    run(work())


def test_a_window_within_its_budget_that_is_refused_becomes_smaller_too() -> None:
    async def work() -> None:
        async with opened(MemoryStore(), budget=20_000) as session:
            await session.append([said(number) for number in range(21)])
            before = await session.window()
            after = await session.observe_overflow("context_length_exceeded")
            assert after.tokens <= 0.9 * before.tokens
            assert satchel.lint(after.messages, "openai") == []

    run(work())


def test_a_state_is_written_by_one_of_two() -> None:
    async def work() -> None:
        async with opened(MemoryStore()) as session:
            assert await session.state.get() == (None, 0)
            assert await session.state.set({"step": 1}, expected_version=0) == 1
            with pytest.raises(satchel.StoreError) as caught:
                await session.state.set({"step": 2}, expected_version=0)
            assert caught.value.code == "version_conflict"
            assert await session.state.get() == ({"step": 1}, 1)

    run(work())


def test_sessions_end_when_their_time_is_over() -> None:
    now = [0.0]

    async def work() -> None:
        store = MemoryStore(clock=lambda: now[0])
        async with opened(store, ttl_s=10) as session:
            await session.append(said(0))
            now[0] = 9.0
            await session.append(said(1))
            now[0] = 18.0
            assert len(await session.messages()) == 2
            now[0] = 19.5
            with pytest.raises(satchel.StoreError) as caught:
                await session.append(said(2))
            assert caught.value.code == "session_not_found"

    run(work())


@pytest.mark.parametrize("session_id", ["", 7, "\ud800", "x" * 70_000])
def test_ids_that_are_none_are_refused(session_id: Any) -> None:
    with pytest.raises(satchel.InputError):
        opened(MemoryStore(), session_id)


def test_urls_of_unknown_stores_are_refused_without_their_password() -> None:
    with pytest.raises(satchel.InputError) as caught:
        satchel.open_session("mongodb://u:hunter2@h/db", session_id="s", model="gpt-4o")
    assert caught.value.code == "unknown_store"
    assert "hunter2" not in str(caught.value)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None, exclude_categories=()))
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=6) | st.sampled_from(["$bytes", "$$x", "$"]), inner)
    ),
    max_leaves=12,
)


@given(JSON)
def test_whatever_is_stored_comes_back(value: Any) -> None:
    assert decode(encode(value)) == value


def test_what_cannot_be_stored_is_refused() -> None:
    cyclic: list[Any] = []
    cyclic.append(cyclic)
    for value in (cyclic, object(), {"a": {1j}}):
        with pytest.raises(satchel.InputError):
            encode(value)
    for payload in (b"{not json", b"\xff", json.dumps({"$bytes": "!"}).encode()):
        with pytest.raises(satchel.StoreError) as caught:
            decode(payload)
        assert caught.value.code == "corrupt_entry"
