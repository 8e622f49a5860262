"""The life of a session object: closed, opened again, and what another user makes of its id."""

# The working set of a session is seen by its parts.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, Final

import pytest

import satchel
from satchel.errors import InputError, StoreError
from satchel.stores import MemoryStore
from satchel.stores.sqlite import SQLiteStore
from stored import refused, run

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from pathlib import Path

    from satchel.session import Session
    from satchel.stores import SessionStore

PRIVATE = "the code of the vault is 7731"


def session_of(store: SessionStore, user_id: str | None = None) -> Session:
    return satchel.open_session(store, session_id="s", user_id=user_id, model="gpt-4o")


async def closed(work: Awaitable[object]) -> None:
    with pytest.raises(InputError) as raised:
        await work
    assert raised.value.code == "session_closed"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_an_id_that_became_another_user_s_is_not_read_or_written(tmp_path: Path, kind: str) -> None:
    async def main() -> None:
        store = MemoryStore() if kind == "memory" else SQLiteStore(tmp_path / "x.db")
        async with session_of(store, "ada") as ada:
            await ada.append({"role": "user", "content": "from ada"})
            await ada.state.set({"of": "ada"})
            await store.delete("s")
            async with session_of(store, "bob") as bob:
                # As many entries: the version is the one that the other object knows.
                await bob.append({"role": "user", "content": PRIVATE})
                await bob.state.set({"of": "bob"})
                assert bob.version == ada.version
                await refused(ada.append({"role": "user", "content": "more"}), "wrong_user")
                assert await bob.messages() == [{"role": "user", "content": PRIVATE}]
                for work in (
                    ada.messages(),
                    ada.window(),
                    ada.events(),
                    ada.pin(0),
                    ada.explain(),
                    ada.rewind(0),
                    ada.branch(1),
                    ada.compact(),
                    ada.state.get(),
                    ada.state.set(1),
                    ada.page_in("pg_1"),
                ):
                    await refused(work, "wrong_user")
                assert await bob.messages() == [{"role": "user", "content": PRIVATE}]
                assert (await bob.state.get())[0] == {"of": "bob"}
                await refused(session_of(store, "ada").__aenter__(), "wrong_user")
        await store.close()

    run(main())


def test_a_session_that_was_made_again_is_read_anew() -> None:
    async def main() -> None:
        store = MemoryStore()
        async with session_of(store) as one:
            await one.append({"role": "user", "content": "old"})
            await store.delete("s")
            await asyncio.sleep(0.002)
            async with session_of(store) as two:
                await two.append({"role": "user", "content": "new"})
                assert two.version == one.version
                await one.append({"role": "user", "content": "more"})
                assert [m["content"] for m in await two.messages()] == ["new", "more"]
                assert [m["content"] for m in await one.messages()] == ["new", "more"]

    run(main())


def test_a_closed_session_does_nothing_and_opens_again() -> None:
    async def main() -> None:
        store = MemoryStore()
        session = session_of(store)
        message = {"role": "user", "content": "hello"}
        await closed(session.append(message))
        async with session:
            await session.append(message)
        await session.close()
        version = (await store.info("s")).version
        for work in (
            session.append(message),
            session.record({"role": "assistant", "content": "yes"}),
            session.messages(),
            session.window(),
            session.events(),
            session.pin(0),
            session.explain(),
            session.rewind(0),
            session.branch(1),
            session.compact(),
            session.page_in("pg_1"),
            session.observe_overflow("maximum context length is 10 tokens"),
        ):
            await closed(work)
        assert (await store.info("s")).version == version
        assert PRIVATE not in repr(session)
        async with session:
            await session.append(message)
            assert len(await session.messages()) == 2

    run(main())


def test_closing_while_others_work_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    async def main() -> None:
        done: list[int] = []
        session = satchel.open_session(
            f"sqlite:///{tmp_path / 'x.db'}", session_id="s", model="gpt-4o"
        )

        async def write(number: int) -> None:
            await session.append({"role": "user", "content": f"message {number}"})
            done.append(number)

        async with session:
            tasks = [asyncio.create_task(write(number)) for number in range(40)]
            await asyncio.sleep(0.01)
        found = await asyncio.gather(*tasks, return_exceptions=True)
        errors = [one for one in found if one is not None]
        assert all(isinstance(one, InputError | StoreError) for one in errors)
        store = SQLiteStore(tmp_path / "x.db")
        async with session_of(store) as again:
            kept = [message["content"] for message in await again.messages()]
        assert [f"message {number}" for number in done] == kept[: len(done)]
        await store.close()

    run(main())


def test_an_append_at_which_levels_fall_leaves_the_loop_alone() -> None:
    by_append: list[list[int]] = []

    def count(text: str) -> int:
        by_append[-1].append(threading.get_ident())
        return len(text) // 4

    async def work() -> None:
        store = MemoryStore()
        by_append.append([])
        session = satchel.open_session(
            store, session_id="s", model="gpt-4o", budget=2_000, counter=count
        )
        async with session:
            for number in range(60):
                by_append.append([])
                role = "assistant" if number % 2 else "user"
                words = " ".join(f"word{number * place % 97}" for place in range(60))
                await session.append({"role": role, "content": f"Remark {number}: {words}"})
            by_append.append([])
            assert (await session.window()).report.compactions > 1

    asyncio.run(work())
    here = threading.get_ident()
    # A message alone is counted once or twice; what is left of others is counted when levels fall.
    slow = [threads for threads in by_append[1:-1] if len(threads) > 3]
    assert slow
    assert all(here not in threads for threads in slow)
    assert any(here in threads for threads in by_append[1:-1])


def test_a_refused_append_near_the_trigger_changes_nothing() -> None:
    async def work() -> None:
        def count(text: str) -> int:
            if "refuse" in text:
                raise ValueError
            return len(text) // 4

        session = satchel.open_session(
            MemoryStore(), session_id="s", model="gpt-4o", budget=3_000, counter=count
        )
        async with session:
            core = session._log.working_set._era.core
            newest: dict[str, Any] = {}
            while not core.may_compact_within(900):
                newest = {"role": "user", "content": "remark " + "word " * 150}
                await session.append(newest)
            before = await session.messages()
            assert before[-1] is newest
            for _ in range(2):
                with pytest.raises(InputError):
                    await session.append({"role": "user", "content": "refuse " * 130})
                after = await session.messages()
                assert all(one is other for one, other in zip(before, after, strict=True))

    asyncio.run(work())


DAMAGED: Final[dict[str, list[Any]]] = {
    "an orphaned result": [
        {"role": "assistant", "content": "a"},
        {"role": "tool", "tool_call_id": "zz", "content": "x"},
    ],
    "a call without a result": [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "user", "content": 7},
    ],
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_repaired_session_with_events_opens_again(name: str) -> None:
    async def work() -> None:
        store = MemoryStore()
        async with session_of(store) as session:
            for message in DAMAGED[name]:
                await session.append([message])
            await session.pin(0)
            before = await session.window(open_calls="synthesize")
        async with session_of(store) as again:
            after = await again.window(open_calls="synthesize")
            assert after.messages == before.messages
            assert len(await again.events()) == len(before.events)

    asyncio.run(work())
