"""Sessions as files: out of one store and into another, byte for byte."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.errors import InputError, StoreError
from satchel.stores import Entry, MemoryStore
from satchel.stores.sqlite import SQLiteStore
from satchel.stores.transfer import export_session, import_session

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from pathlib import Path


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


async def filled(store: MemoryStore) -> None:
    await store.open("s", user_id="ada")
    await store.append(
        "s",
        [
            Entry("event", b"{}"),
            Entry("message", "{\u2028\u0085\n}".encode(), "a key"),
            Entry("message", bytes(range(256))),
            Entry("message", b""),
        ],
    )
    await store.put_value("s", "state", b'{"step":1}')
    await store.put_pages("s", {"p": b"\xff", "q": b"text"})


def test_all_of_a_session_comes_back(tmp_path: Path) -> None:
    async def work() -> None:
        source, target = MemoryStore(), SQLiteStore(tmp_path / "x.db")
        await filled(source)
        exported = await export_session(source, "s")
        info = await import_session(target, exported)
        assert (info.session_id, info.user_id, info.length) == ("s", "ada", 4)
        assert await target.read("s") == await source.read("s")
        assert await target.get_value("s", "state") == await source.get_value("s", "state")
        assert [await target.get_page("s", pointer) for pointer in "pq"] == [b"\xff", b"text"]
        other = await import_session(target, exported, session_id="t", user_id="bob", ttl_s=60)
        assert (other.session_id, other.user_id) == ("t", "bob")
        assert other.expires_at is not None
        with pytest.raises(StoreError) as caught:
            await import_session(target, exported)
        assert caught.value.code == "session_exists"
        with pytest.raises(StoreError) as caught:
            await import_session(target, exported, user_id="bob")
        assert caught.value.code == "wrong_user"
        again = (await export_session(target, "s")).splitlines()
        assert again[1:] == exported.splitlines()[1:]
        await target.close()

    run(work())


def test_an_import_that_broke_off_can_be_done_again() -> None:
    class Failing(MemoryStore):
        fails = True

        async def append(self, *arguments: Any, **options: Any) -> Any:
            if self.fails:
                message = "the disk is full"
                raise StoreError(message, code="store_full")
            return await super().append(*arguments, **options)

    async def work() -> None:
        source, target = MemoryStore(), Failing()
        await filled(source)
        exported = await export_session(source, "s")
        with pytest.raises(StoreError, match="full"):
            await import_session(target, exported)
        assert await target.read("s") == []
        target.fails = False
        assert (await import_session(target, exported)).length == 4

    run(work())


def test_a_moved_session_gives_the_same_window() -> None:
    options: dict[str, Any] = {"session_id": "s", "model": "gpt-4o", "budget": 900}

    async def work() -> None:
        source, target = MemoryStore(), MemoryStore()
        async with satchel.open_session(source, **options) as session:
            for number in range(21):
                role = "assistant" if number % 2 else "user"
                await session.append({"role": role, "content": f"word{number} " * 60})
            before = await session.window()
        await import_session(target, await export_session(source, "s"))
        async with satchel.open_session(target, **options) as session:
            after = await session.window()
            assert after.messages == before.messages
            for page in before.pages:
                assert await session.page_in(page.pointer)

    run(work())


def test_other_bytes_are_refused() -> None:
    async def work() -> None:
        store = MemoryStore()
        await filled(store)
        exported = await export_session(store, "s")
        lines = exported.splitlines(keepends=True)
        foreign: tuple[Any, ...] = (
            b"",
            b"[]\n",
            b"{}\n",
            b"\xff\n",
            b"".join(lines[:-1]),
            exported + lines[-1],
            exported.replace(b'"base64":"', b'"base64":"!'),
            exported.replace(b'"entry":"event"', b'"other":"event"'),
            exported.replace(b'"entry":"event"', b'"entry":"secret"'),
            exported.replace(b'"text":"text"', b'"text":7'),
            exported.replace(b'"page":"q"', b'"page":7'),
            exported.replace(b'"page":"q"', b'"page":[1]'),
            exported.replace(b'"value":"state"', b'"value":{}'),
            exported.replace(b'"entry":"event"', b'"entry":[1]'),
            exported.replace(b'"key":"a key"', b'"key":{}'),
            exported.replace(b'"text":"text"', b'"text":"\\ud800"'),
            exported.replace(b'"text":"text"', b'"text":"text","more":' + b"[" * 200_000),
            exported.replace(b'"lines"', b'"rows"'),
            exported.replace(b'"session_id":"s"', b'"session_id":7'),
            exported.replace(b'"session_id":"s"', b'"session_id":[7]'),
            exported.replace(b'"user_id":"ada"', b'"user_id":{}'),
            exported.decode(),
            None,
            7,
        )
        for wrong in foreign:
            assert wrong != exported
            empty = MemoryStore()
            with pytest.raises(InputError) as caught:
                await import_session(empty, wrong)
            assert caught.value.code == "invalid_value"
            assert "secret" not in str(caught.value)

    run(work())


def test_a_session_that_is_written_all_the_time_is_not_exported_half() -> None:
    class Busy(MemoryStore):
        busy = 2

        async def page_pointers(self, session_id: str) -> list[str]:
            if self.busy:
                self.busy -= 1
                await self.append(session_id, [Entry("message", b"more")])
            return await super().page_pointers(session_id)

    async def work() -> None:
        store = Busy()
        await store.open("s")
        assert (await export_session(store, "s")).count(b"more") == 2
        store.busy = 99
        with pytest.raises(StoreError) as caught:
            await export_session(store, "s")
        assert caught.value.code == "version_conflict"

    run(work())
