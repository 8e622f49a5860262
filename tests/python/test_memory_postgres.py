"""Scopes that are held in memory beside PostgreSQL: never behind it, whoever writes."""

from __future__ import annotations

import asyncio
import random
import sys
from contextlib import AsyncExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from memory_stores import Clock, fresh_database, room
from satchel import _core
from satchel.errors import StoreError
from satchel.memory import CallableEmbedder, Ranking
from satchel.memory.backend import Scope
from satchel.memory.opening import embedder_of
from satchel.memory.postgres import PostgresMemories
from satchel.memory.postgres_rows import STEPS
from satchel.memory.store import Memory
from stored import run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.memory.postgres_columns import Columns

WORDS = ("boat", "tea", "green", "harbour", "violin", "snow")


def opened(url: str, *, max_bytes: int = 2**20, **options: Any) -> Memory:
    return Memory(PostgresMemories(url, max_bytes=max_bytes), embedder=None, **options)


def columns_of(memory: Memory, namespace: tuple[str, ...]) -> _core.Resident | None:
    """The columns of a namespace, if they are held."""
    scopes = cast("Columns", vars(vars(memory)["_backend"])["_scopes"])
    columns = scopes.get(Scope.of(namespace))
    return None if columns is None else columns.resident


def held(memory: Memory, namespace: tuple[str, ...]) -> int | None:
    """How many rows of a namespace are held; None if it is not."""
    columns = columns_of(memory, namespace)
    return None if columns is None else len(columns)


@cache
def of_these_tests() -> str:
    """The URL of a database where nobody embeds."""
    return fresh_database()


# --- the same as without --------------------------------------------------------------------------

TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
PLACES = st.sampled_from([("a",), ("a", "x"), ("b",)])
WHO = st.integers(0, 1)
Strategies = dict[str, st.SearchStrategy[Any]]

FIELDS: Strategies = {
    "text": TEXTS,
    "session_id": st.sampled_from([None, "s1"]),
    "kind": st.sampled_from(["episodic", "semantic"]),
}
OTHER_FIELDS: Strategies = {
    "key": st.sampled_from(["home", "work"]),
    "id": st.integers(0, 5),
    "status": st.just("claim"),
    "confidence": st.just(0.5),
    "expires_at": st.just(5.0),
    "time": st.sampled_from([1.0, 9.0]),
    "speaker": st.just("Ana"),
}
ITEMS = st.lists(st.fixed_dictionaries(FIELDS, optional=OTHER_FIELDS), min_size=1, max_size=4)
GONE: st.SearchStrategy[Any] = st.sampled_from(
    [{"everything": True}, {"key": "home"}, {"session_id": "s1"}]
)
SIZES: Strategies = {"k": st.sampled_from([1, 3, 50])}
OPTIONS: Strategies = {
    "kinds": st.just(["semantic"]),
    "min_confidence": st.just(0.7),
    "include_claims": st.sampled_from([True]),
}
QUESTIONS = st.tuples(st.one_of(TEXTS, st.just("")), st.fixed_dictionaries(SIZES, optional=OPTIONS))
WRITE: st.SearchStrategy[Any] = st.tuples(st.just("write"), WHO, PLACES, ITEMS)
FORGET: st.SearchStrategy[Any] = st.tuples(st.just("forget"), WHO, PLACES, GONE)
RECALL: st.SearchStrategy[Any] = st.tuples(st.just("recall"), WHO, PLACES, QUESTIONS)


@given(steps=st.lists(st.one_of(WRITE, RECALL, FORGET, RECALL), max_size=14), small=st.booleans())
def test_two_who_write_and_recall_find_what_one_in_memory_finds(
    steps: list[tuple[str, int, tuple[str, ...], Any]], small: bool
) -> None:
    tenant, clock = room(), Clock()
    clock.now = 10.0

    async def main() -> None:
        async with AsyncExitStack() as stack:
            # Too little room for all: scopes come and go.
            room_for = 12_000 if small else 2**20
            sides = [
                await stack.enter_async_context(
                    opened(of_these_tests(), max_bytes=room_for, clock=clock)
                )
                for _ in range(2)
            ]
            model = await stack.enter_async_context(
                satchel.open_memory("memory://", embedder="none", clock=clock)
            )
            written = 0
            for what, who, place, rest in steps:
                where, side = (tenant, *place), sides[who]
                if what == "write":
                    items: dict[str, dict[str, Any]] = {}
                    for one in rest:
                        written += 1
                        # An id belongs to one namespace.
                        name = "-".join((tenant, *place, str(one.get("id", f"n{written}"))))
                        items[name] = {**one, "id": name}
                    for memory in (side, model):
                        await memory.remember(where, list(items.values()))
                elif what == "forget":
                    counts = [await memory.forget(where, **rest) for memory in (side, model)]
                    assert counts[0] == counts[1]
                else:
                    query, options = rest
                    found = await side.recall(where, query, **options)
                    wanted = await model.recall(where, query, **options)
                    assert [one.item for one in found] == [one.item for one in wanted]
                    assert [one.score for one in found] == [one.score for one in wanted]

    run(main())


def test_vectors_are_searched_as_the_server_does() -> None:
    rng = np.random.default_rng(3)
    known = {f"t{number}": rng.standard_normal(24) for number in range(700)}
    embedder = CallableEmbedder(
        lambda texts: [known[text].tolist() for text in texts], name="drawn", dimension=24
    )

    async def tens(max_bytes: int, here: tuple[str, ...], url: str) -> list[list[str]]:
        backend = PostgresMemories(url, max_bytes=max_bytes)
        ranking = Ranking(lexical=0.0, neighbours=0.0, most_candidates=30)
        async with Memory(backend, embedder=embedder_of(embedder), ranking=ranking) as memory:
            if not await memory.list(here, limit=1):
                await memory.remember(here, list(known))
            found: list[list[str]] = []
            for text in list(known)[:40]:
                hits = await memory.recall(here, text, k=10)
                found.append([hit.item.text for hit in hits])
            assert (held(memory, here) is None) == (max_bytes == 0)
            diverse = await memory.recall(here, "t5", k=3, ranking=Ranking(diversity=0.3))
            assert diverse[0].item.text == "t5"
        return found

    async def main() -> None:
        url, here = fresh_database(), (room(),)
        mine = await tens(2**22, here, url)
        exact = [
            sorted(known, key=lambda one: -float(_unit(known[one]) @ _unit(known[text])))[:10]
            for text in list(known)[:40]
        ]
        assert mine == exact
        theirs = await tens(0, here, url)
        alike = sum(one == two for one, two in zip(mine, theirs, strict=True))
        assert alike >= 0.9 * len(mine)

    run(main())


def _unit(vector: Any) -> Any:
    return vector / np.linalg.norm(vector)


# --- while others write ---------------------------------------------------------------------------


def test_no_acknowledged_write_is_missed_and_nothing_forgotten_is_found() -> None:
    here = (room(),)
    kept: dict[str, int] = {}
    """When each was acknowledged."""
    going: dict[str, int] = {}
    """When each began to be forgotten, and below when that was acknowledged."""
    gone: dict[str, int] = {}
    moment = 0

    def tick() -> int:
        nonlocal moment
        moment += 1
        return moment

    async def write(url: str, name: str, rng: random.Random) -> None:
        async with opened(url) as memory:
            for number in range(25):
                where = (*here, f"n{rng.randrange(3)}")
                text = f"{name}x{number} {rng.choice(WORDS)}"
                [item] = await memory.remember(where, text)
                kept[text] = tick()
                if rng.random() < 0.4:
                    going[text] = tick()
                    await memory.forget(where, ids=[item.id])
                    gone[text] = tick()

    async def read(url: str, rng: random.Random, writers: Sequence[asyncio.Task[None]]) -> int:
        asked = 0
        async with opened(url) as memory:
            while not all(writer.done() for writer in writers) or not asked:
                asked += 1
                begun = tick()
                hits = {hit.item.text for hit in await memory.recall(here, "", k=1_000)}
                stays = {text for text, at in kept.items() if at < begun and text not in going}
                assert stays <= hits
                assert not {text for text, at in gone.items() if at < begun} & hits
                if stays:
                    one = rng.choice(sorted(stays))
                    named = await memory.recall(here, one.split()[0], k=9)
                    assert one in {hit.item.text for hit in named} or one in going
        return asked

    async def main() -> None:
        url = fresh_database()
        writers = [
            asyncio.create_task(write(url, name, random.Random(number)))  # noqa: S311 - not for secrets
            for number, name in enumerate(("ann", "ben", "cid"))
        ]
        readers = [read(url, random.Random(number), writers) for number in range(2)]  # noqa: S311 - likewise
        asked = await asyncio.gather(*readers)
        await asyncio.gather(*writers)
        assert min(asked) > 1
        async with opened(url) as memory:
            left = {hit.item.text for hit in await memory.recall(here, "", k=1_000)}
        assert left == kept.keys() - gone.keys()

    run(main())


WRITER = """
import asyncio, sys
from satchel.memory.opening import embedder_of
from satchel.memory.postgres import PostgresMemories
from satchel.memory.store import Memory

async def main(url, name):
    async with Memory(PostgresMemories(url), embedder=None) as memory:
        for line in sys.stdin:
            [verb, text] = line.split()
            if verb == "write":
                await memory.remember((name,), {"text": text, "id": text})
            else:
                await memory.forget((name,), ids=[text])
            print("done", flush=True)

asyncio.run(main(*sys.argv[1:]))
"""


def test_another_process_is_seen_at_once() -> None:
    url, name = fresh_database(), room()

    async def main() -> None:
        async with opened(url) as memory:
            assert await memory.recall((name,), "tea") == []
            assert held(memory, (name,)) == 0
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                WRITER,
                url,
                name,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
            )
            assert process.stdin is not None
            assert process.stdout is not None
            for verb, text, expected in (
                ("write", "tea", ["tea"]),
                ("write", "boat", ["boat", "tea"]),
                ("forget", "tea", ["boat"]),
                ("forget", "boat", []),
            ):
                process.stdin.write(f"{verb} {text}\n".encode())
                await process.stdin.drain()
                assert (await process.stdout.readline()).strip() == b"done"
                hits = await memory.recall((name,), "", k=9)
                assert sorted(hit.item.text for hit in hits) == expected
                assert held(memory, (name,)) == len(expected)
            process.stdin.close()
            assert await process.wait() == 0

    run(main())


# --- what is held ---------------------------------------------------------------------------------


def test_what_is_forgotten_leaves_this_process_at_once() -> None:
    url, here = fresh_database(), (room(),)

    async def main() -> None:
        async with opened(url) as memory:
            await memory.remember(here, ["green tea", "a boat"])
            assert len(await memory.recall(here, "tea boat")) == 2
            columns = columns_of(memory, here)
            assert columns is not None
            assert columns.statistics(["tea"])[2].tolist() == [1]
            [item] = [one for one in await memory.list(here) if "tea" in one.text]
            await memory.forget(here, ids=[item.id])
            assert columns.statistics(["tea"])[2].tolist() == [0]
            assert len(columns) == 1

    run(main())


def test_rows_that_somebody_else_deletes_are_not_looked_for_for_ever() -> None:
    url, here = fresh_database(), (room(),)

    async def main() -> None:
        async with opened(url) as memory:
            await memory.remember(here, ["green tea", "a boat"])
            assert len(await memory.recall(here, "")) == 2
            async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
                await connection.execute("DELETE FROM satchel_memories WHERE text = 'a boat'")
            assert [hit.item.text for hit in await memory.recall(here, "")] == ["green tea"]

    run(main())


def test_a_large_scope_is_read_beside_and_a_larger_one_never() -> None:
    url, here = fresh_database(), (room(),)

    async def main() -> None:
        async with opened(url, max_bytes=2**24) as memory, opened(url, max_bytes=2**19) as small:
            texts = [f"t{number} boat" for number in range(4_300)]
            await memory.remember(here, texts)
            for one in (memory, small):
                assert (await one.recall(here, "t7"))[0].item.text == "t7 boat"
                assert held(one, here) is None
            for _ in range(1_000):
                assert (await memory.recall(here, "t9"))[0].item.text == "t9 boat"
                assert (await small.recall(here, "t9"))[0].item.text == "t9 boat"
                if held(memory, here) is not None:
                    break
            assert held(memory, here) == len(texts)
            assert held(small, here) is None
            # What takes long is done by a thread, and a piece at a time.
            await small.remember(here, [f"u{number}" for number in range(2_500)])
            assert (await memory.recall(here, "u7"))[0].item.text == "u7"
            assert held(memory, here) == len(texts) + 2_500

    run(main())


def test_others_go_when_there_is_no_room() -> None:
    url, tenant = fresh_database(), room()

    async def main() -> None:
        async with opened(url, max_bytes=15_000) as memory:
            for number in range(6):
                await memory.remember((tenant, str(number)), WORDS)
                await memory.recall((tenant, str(number)), "tea")
            assert [held(memory, (tenant, str(number))) for number in range(6)] == [
                None,
                None,
                None,
                None,
                6,
                6,
            ]

    run(main())


def test_an_embedder_that_another_process_changed_is_noticed() -> None:
    url, here = fresh_database(), (room(),)

    def embedder(name: str) -> Any:
        return CallableEmbedder(
            lambda texts: [[float(len(one)), 1.0] for one in texts], name=name, dimension=2
        )

    async def main() -> None:
        async with satchel.open_memory(url, embedder=embedder("one")) as memory:
            await memory.remember(here, "tea")
            assert len(await memory.recall(here, "tea")) == 1
            other = satchel.open_memory(url, embedder=embedder("two"))
            await other.reembed()
            assert len(await other.recall(here, "tea")) == 1
            with pytest.raises(StoreError) as raised:
                await memory.recall(here, "tea")
            assert raised.value.code == "embedder_mismatch"
            again = satchel.open_memory(url, embedder=embedder("one"))
            await again.reembed()
            assert len(await memory.recall(here, "tea")) == 1
            await again.close()
            await other.close()

    run(main())


@pytest.mark.parametrize("diversity", [0.0, 0.3])
def test_an_embedder_that_comes_back_is_at_home_again(diversity: float) -> None:
    url, here = fresh_database(), (room(),)

    def embedder(numbers: int) -> Any:
        return CallableEmbedder(
            lambda texts: [[float(len(one) % 7 + 1)] + [1.0] * (numbers - 1) for one in texts],
            name=f"e{numbers}",
            dimension=numbers,
        )

    async def reembed(numbers: int | None) -> None:
        other = satchel.open_memory(url, embedder=None if numbers is None else embedder(numbers))
        await other.reembed()
        await other.close()

    async def main() -> None:
        ranking = Ranking(diversity=diversity)
        async with satchel.open_memory(url, embedder=embedder(8), ranking=ranking) as memory:
            await memory.remember(here, ["tea cup", "boat house", "violin"])
            before = [one.item.text for one in await memory.recall(here, "tea", k=2)]
            for numbers in (16, None):
                await reembed(numbers)
                for _ in range(2):
                    with pytest.raises(StoreError) as raised:
                        await memory.recall(here, "tea", k=2)
                    assert raised.value.code == "embedder_mismatch"
                await reembed(8)
                for _ in range(2):
                    found = await memory.recall(here, "tea", k=2)
                    assert [one.item.text for one in found] == before

    run(main())


def test_a_recall_that_is_cancelled_hides_nothing() -> None:
    url, here = of_these_tests(), (room(),)
    fresh = [{"text": f"fresh word{number}"} for number in range(4_500)]

    async def main() -> None:
        async with opened(url, max_bytes=2**26) as memory, opened(url) as other:
            await other.remember(
                here, [{"text": f"old number{n}", "key": f"k{n}"} for n in range(300)]
            )
            assert await memory.recall(here, "number5")
            assert held(memory, here) == 300
            # Rows that were there before change last, and are read first.
            await other.remember(
                here, [{**one, "key": f"k{n}"} if n < 300 else one for n, one in enumerate(fresh)]
            )
            cancelled, patience_s = 0, 0.002
            while True:
                try:
                    await asyncio.wait_for(memory.recall(here, "word4400", k=3), patience_s)
                except TimeoutError:
                    cancelled, patience_s = cancelled + 1, patience_s * 1.3
                else:
                    break
            assert cancelled
            for number in range(0, 4_500, 250):
                found = await memory.recall(here, f"word{number}", k=3)
                assert f"fresh word{number}" in [one.item.text for one in found]

    run(main())


# --- the tables -----------------------------------------------------------------------------------


def test_tables_of_before_are_brought_up_to_date_by_one_of_many() -> None:
    url, here = fresh_database(), (room(),)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(STEPS[0].encode())

    async def main() -> None:
        memories = [opened(url) for _ in range(6)]
        async with AsyncExitStack() as stack:
            await asyncio.gather(*(stack.enter_async_context(one) for one in memories))
            await memories[0].remember(here, "green tea")
            for one in memories:
                assert len(await one.recall(here, "tea")) == 1

    run(main())
    with psycopg.connect(url, autocommit=True) as connection:
        version = connection.execute("SELECT version FROM satchel_schema WHERE part = 'memories'")
        assert version.fetchall() == [(len(STEPS),)]
        connection.execute("UPDATE satchel_schema SET version = 99 WHERE part = 'memories'")

    async def newer() -> None:
        with pytest.raises(StoreError) as raised:
            async with opened(url):
                pass
        assert raised.value.code == "schema_newer"

    run(newer())


def test_writers_of_before_are_seen() -> None:
    """A process of an older version, which knows nothing of changes, writes as it always did."""
    url, here = fresh_database(), (room(),)

    async def main() -> None:
        async with opened(url) as memory:
            await memory.remember(here, {"text": "green tea", "id": "a"})
            assert len(await memory.recall(here, "tea")) == 1
            async with await psycopg.AsyncConnection.connect(url) as connection:
                await connection.execute("UPDATE satchel_memories SET superseded_by = 'b'")
                await connection.execute("UPDATE satchel_memory_sizes SET items = items")
            assert await memory.recall(here, "tea") == []

    run(main())
