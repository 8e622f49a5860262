"""Satchel's memory over stores of LangGraph: it recalls what it recalls over its own backends."""

# The peers are typed in part, and what they return is looked at as it comes.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportPrivateUsage=false, reportDeprecated=false

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.store.base import BaseStore, SearchOp
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

import satchel
import test_memory_alike
from satchel.errors import InputError, StoreError
from satchel.langgraph import MemoryStore, StoreMemories, open_memory
from satchel.memory.backend import Scope, Selection
from test_memory_alike import LEAST_ALIKE, tens, tens_of

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

STORES = ("in-memory", "sqlite", "ours")
ODD = ("acme", "a.b", "langgraph", "%", "x/y", "한", "nul\x00in", " ")


@contextmanager
def store_of(kind: str, folder: Path) -> Generator[BaseStore]:
    if kind == "in-memory":
        yield InMemoryStore()
    elif kind == "sqlite":
        with SqliteStore.from_conn_string(str(folder / "store.db")) as store:
            store.setup()
            yield store
    else:
        with MemoryStore(f"sqlite:///{folder / 'ours.db'}") as store:
            yield store


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BaseStore]:
    with store_of(request.param, tmp_path) as found:
        yield found


def test_the_same_ten_as_over_a_backend_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_memory_alike, "TALKS", test_memory_alike.TALKS[:1])

    async def run() -> list[list[int | None]]:
        async with open_memory(InMemoryStore()) as memory:
            return await tens(memory)

    expected = asyncio.run(tens_of("memory", tmp_path))
    found = asyncio.run(run())
    alike = sum(one == other for one, other in zip(found, expected, strict=True))
    assert alike >= LEAST_ALIKE * len(expected)


def test_facts_supersede_and_history_stays(store: BaseStore) -> None:
    async def run() -> None:
        async with open_memory(store, embedder="none") as memory:
            first = {"text": "ada lives in Rome", "key": "home", "kind": "semantic"}
            second = {"text": "ada lives in Oslo", "key": "home", "kind": "semantic"}
            await memory.remember(("acme", "ada"), [first])
            await memory.remember(("acme", "ada"), [second])
            current = await memory.get(("acme", "ada"), "home")
            assert current is not None
            assert current.text == "ada lives in Oslo"
            recalled = await memory.recall(("acme",), "where does ada live", k=5)
            assert [one.text for one in recalled] == ["ada lives in Oslo"]
            listed = await memory.list(("acme",), include_history=True)
            assert sorted(one.text for one in listed) == ["ada lives in Oslo", "ada lives in Rome"]
            assert await memory.forget(("acme", "ada"), key="home") == 2
            assert await memory.list(("acme",), include_history=True) == []

    asyncio.run(run())


def test_no_namespace_sees_another(store: BaseStore) -> None:
    async def run() -> None:
        async with open_memory(store, embedder="none") as memory:
            for name in ODD:
                await memory.remember((name,), f"the tea of {name!r} is green")
                await memory.remember((name, "below"), f"the cup of {name!r} is blue")
            for name in ODD:
                found = await memory.recall((name,), "tea cup", k=50)
                assert {one.item.namespace for one in found} == {(name,), (name, "below")}
            await memory.forget(("acme",), everything=True)
            assert await memory.list(("acme",)) == []
            assert len(await memory.list(("%",))) == 2

    asyncio.run(run())


class LeakingStore(InMemoryStore):
    """A store that takes the beginning of a label for the label."""

    async def abatch(self, ops: Any) -> list[Any]:
        results: list[Any] = []
        for op in ops:
            if isinstance(op, SearchOp):
                start = "\n".join(op.namespace_prefix)
                every = self._filter_items(op._replace(namespace_prefix=(), limit=10_000))
                found = [item for item, _ in every if "\n".join(item.namespace).startswith(start)]
                results.append(found[op.offset : op.offset + op.limit])
            else:
                results += await super().abatch([op])
        return results


def test_a_store_that_leaks_does_not_leak_through() -> None:
    # langgraphjs#2721 in a store of somebody else.
    async def run() -> None:
        async with open_memory(LeakingStore(), embedder="none") as memory:
            await memory.remember(("acme",), "acme drinks tea")
            await memory.remember(("acme-corp",), "acme-corp drinks tea")
            found = await memory.recall(("acme",), "tea", k=10)
            assert [one.text for one in found] == ["acme drinks tea"]

    asyncio.run(run())


def test_an_id_belongs_to_one_namespace(store: BaseStore) -> None:
    async def run() -> None:
        async with open_memory(store, embedder="none") as memory:
            await memory.remember(("a",), {"text": "one", "id": "x"})
            await memory.remember(("a",), {"text": "two", "id": "x"})
            [item] = await memory.list(("a",))
            assert item.text == "two"
            with pytest.raises(StoreError) as caught:
                await memory.remember(("b",), {"text": "three", "id": "x"})
            assert caught.value.code == "id_taken"

    asyncio.run(run())


def test_memories_come_back_as_they_were_with_vectors(store: BaseStore) -> None:
    item = satchel.MemoryItem(
        text="half \ufffd and 한국어",
        kind="semantic",
        confidence=0.25,
        metadata={"deep": {"list": [1, None, "x"]}, "$odd": 1},
        expires_at=4e9,
    )

    async def run() -> None:
        async with open_memory(store, redactor=None) as memory:
            [written] = await memory.remember(("a",), item)
        async with open_memory(store, redactor=None) as memory:
            [found] = await memory.list(("a",))
            assert found == written
            assert found.metadata == item.metadata
            [recalled] = await memory.recall(("a",), "한국어", k=1)
            assert recalled.id == written.id
            assert await memory.reembed() == 1

    asyncio.run(run())


def test_many_tasks_and_pages_lose_nothing() -> None:
    async def run() -> None:
        async with open_memory(InMemoryStore(), embedder="none") as memory:
            await asyncio.gather(
                *(
                    memory.remember(("a", str(at % 3)), [f"fact {at} {one}" for one in range(20)])
                    for at in range(30)
                )
            )
            assert len(await memory.list(("a",), limit=10_000)) == 600

    asyncio.run(run())


class BrokenStore(InMemoryStore):
    """A store that is out of order, and says too much."""

    async def abatch(self, ops: Any) -> list[Any]:  # noqa: ARG002 - the base's signature
        message = "password=hunter2"
        raise ConnectionError(message)


def test_an_error_of_the_store_is_typed_and_says_no_secret() -> None:
    async def run() -> None:
        async with open_memory(BrokenStore(), embedder="none"):
            pass

    with pytest.raises(StoreError) as caught:
        asyncio.run(run())
    assert caught.value.code == "store_failed"
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("given", [None, 3, "memory://", {}])
def test_anything_else_than_a_store_is_refused(given: Any) -> None:
    with pytest.raises(InputError):
        StoreMemories(given)
    with pytest.raises(InputError):
        open_memory(given)


class CountingStore(InMemoryStore):
    """Counts the rows that it gave."""

    def __init__(self) -> None:
        super().__init__()
        self.rows = 0

    async def abatch(self, ops: Any) -> list[Any]:
        results = await super().abatch(ops)
        for result in results:
            self.rows += len(result) if isinstance(result, list) else result is not None
        return results

    def taken(self) -> int:
        """How many since it was asked last."""
        rows, self.rows = self.rows, 0
        return rows


def test_only_what_is_needed_is_read() -> None:
    """A scope is read once until somebody writes; a write reads what it touches."""
    store = CountingStore()

    async def run() -> None:
        async with open_memory(store, embedder="none") as memory:
            facts = [{"text": f"{name} lives in {name}ville"} for name in map(str, range(700))]
            await memory.remember(("acme",), facts)
            store.taken()
            await memory.recall(("acme",), "who lives in 17ville", k=3)
            assert 700 <= store.taken() < 750
            await memory.recall(("acme",), "who lives in 99ville", k=3)
            assert store.taken() < 20
            home = {"key": "home", "kind": "semantic"}
            await memory.remember(("acme",), [{"text": "ada lives in Rome", **home}])
            await memory.remember(("acme",), [{"text": "ada lives in Oslo", **home}])
            assert store.taken() < 20
            found = await memory.get(("acme",), "home")
            assert found is not None
            assert found.text == "ada lives in Oslo"
            assert store.taken() < 20
            assert await memory.forget(("acme",), key="home") == 2
            assert store.taken() < 20

    asyncio.run(run())


def test_what_another_writes_is_recalled_at_once(store: BaseStore) -> None:
    async def run() -> None:
        async with (
            open_memory(store, embedder="none") as one,
            open_memory(store, embedder="none") as other,
        ):
            for number, (writer, reader) in enumerate([(one, other), (other, one)] * 3):
                await writer.remember(("acme",), f"the tea of day {number} is green")
                for memory in (reader, writer):
                    found = await memory.recall(("acme",), f"tea of day {number}", k=9)
                    assert len(found) == number + 1
            assert await other.forget(("acme",), everything=True) == 6
            assert await one.recall(("acme",), "tea", k=9) == []

    asyncio.run(run())


def test_places_of_a_session_go_on(store: BaseStore) -> None:
    """What was said before and after is found beside what was asked for."""

    async def run() -> None:
        async with open_memory(store, embedder="none") as memory:
            for number, text in enumerate(("The kettle sings.", "Ada pours it.", "It is late.")):
                said = {
                    "text": text,
                    "kind": "episodic",
                    "source": {"session_id": "s", "message": number},
                }
                await memory.remember(("acme",), [said])
        backend = StoreMemories(store)
        numbers = [
            number for number, _ in await backend.find(_all(("acme",)), None, after=0, limit=None)
        ]
        assert len(numbers) == 3
        rows = await backend._numbered(numbers)
        assert [rows[number].place for number in numbers] == [0, 1, 2]

    asyncio.run(run())


def _all(namespace: tuple[str, ...]) -> Selection:
    return Selection(scope=Scope.of(namespace))


def test_rows_that_went_without_a_word_are_missed_and_not_looked_for_again() -> None:
    """As a store's own time to live takes them."""

    async def work() -> None:
        store = InMemoryStore()
        async with open_memory(store, embedder="none") as memory:
            [gone] = await memory.remember(("a",), ["green tea green tea green tea"])
            await memory.remember(("a",), ["green tea is nice among other things"])
            assert len(await memory.recall(("a",), "green tea", k=5)) == 2
            rows = [
                row
                for space in await store.alist_namespaces()
                for row in await store.asearch(space, limit=100)
                if gone.id in f"{row.key}{row.value}"
            ]
            assert rows
            for row in rows:
                await store.adelete(row.namespace, row.key)
            left = await memory.recall(("a",), "green tea", k=5)
            assert [one.item.text for one in left] == ["green tea is nice among other things"]

    asyncio.run(work())
