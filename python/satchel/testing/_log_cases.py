"""Store cases about the log: order, keys, versions, writers at the same time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from satchel.errors import StoreError
from satchel.stores.base import Entry
from satchel.testing._cases import case, entries, equal, payloads, refused, true

if TYPE_CHECKING:
    from satchel.stores.base import SessionInfo, SessionStore
    from satchel.testing._cases import Stage

_ALL_BYTES = bytes(range(256))


@case()
async def a_new_session_is_empty(stage: Stage) -> None:
    store = stage.store()
    info = await store.open(stage.id())
    equal((info.session_id, info.user_id), (stage.id(), None), "id and user")
    equal((info.version, info.length), (0, 0), "version and length")
    equal((info.expires_at, info.parent), (None, None), "end and parent")
    true(0 < info.created_at <= info.changed_at, "the times of a new session are in order")
    equal(await store.open(stage.id()), info, "the session, opened again")
    equal(await store.info(stage.id()), info, "info")
    equal(await store.read(stage.id()), [], "its log")


@case()
async def what_was_appended_comes_back_in_order(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    given = [
        Entry("event", b"{}"),
        Entry("message", b""),
        Entry("message", _ALL_BYTES, "a key"),
        Entry("message", _ALL_BYTES * 4_096),
        Entry("event", "\ud800 \u0000 \U0001f9f3".encode("utf-8", "surrogatepass")),
        *entries(*(f"message {number} " * 50 for number in range(40))),
    ]
    for start in (0, 1, 2, 5):
        end = {0: 1, 1: 2, 2: 5, 5: len(given)}[start]
        info = await store.append(stage.id(), given[start:end])
        equal(info.length, end, "the length")
    wanted = [
        Entry(entry.kind, entry.payload, entry.key, number)
        for number, entry in enumerate(given, start=1)
    ]
    equal(await store.read(stage.id()), wanted, "the log")


@case()
async def parts_of_the_log_can_be_read(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    await store.append(stage.id(), entries(*"abcdefgh"))
    for after, limit, wanted in (
        (0, 3, [1, 2, 3]),
        (3, 2, [4, 5]),
        (6, None, [7, 8]),
        (6, 100, [7, 8]),
        (8, None, []),
        (99, 1, []),
        (0, 0, []),
        (2, 0, []),
    ):
        found = await store.read(stage.id(), after=after, limit=limit)
        equal([entry.sequence for entry in found], wanted, f"after {after}, at most {limit}")
    await refused(store.read(stage.id(), limit=-1), "invalid_value")
    await refused(store.read(stage.id(), after=-1), "invalid_value")


@case()
async def the_version_moves_with_every_entry(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    info = await store.append(stage.id(), entries("a", "b", "c"))
    equal((info.version, info.length), (3, 3), "version and length after three entries")
    equal(await store.append(stage.id(), []), info, "info after an append of nothing")
    equal(await store.info(stage.id()), info, "info")
    info = await store.append(stage.id(), entries("d"))
    equal(info.version, 4, "the version after one more")


@case()
async def what_has_a_key_is_there_once(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    await store.append(stage.id(), entries("a", "b", keys=["1", "2"]))
    info = await store.append(stage.id(), entries("other", keys=["1"]))
    equal((info.version, info.length), (2, 2), "version and length after a known key")
    await store.append(stage.id(), entries("b2", "c", "c2", "d", keys=["2", "3", "3", None]))
    await store.append(stage.id(), entries("d", "d"))
    equal(await payloads(store, stage.id()), ["a", "b", "c", "d", "d", "d"], "the log")
    keys = [entry.key for entry in await store.read(stage.id())]
    equal(keys, ["1", "2", "3", None, None, None], "the keys")


@case()
async def a_version_that_is_not_the_session_s_is_refused(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    await store.append(stage.id(), entries("a"), expected_version=0)
    for version in (0, 2):
        error = await refused(
            store.append(stage.id(), entries("b"), expected_version=version), "version_conflict"
        )
        equal((error.value, error.limit), (1, version), "version found and expected")
    await refused(store.truncate(stage.id(), 0, expected_version=0), "version_conflict")
    await store.append(stage.id(), entries("c"), expected_version=1)
    equal(await payloads(store, stage.id()), ["a", "c"], "the log")


@case()
async def a_batch_that_is_refused_leaves_nothing(stage: Stage) -> None:
    store = stage.store()
    before = await store.open(stage.id())
    wrong = Entry("message", b"{}", "")
    await refused(store.append(stage.id(), [*entries("a"), wrong]), "invalid_value")
    equal(await store.info(stage.id()), before, "info after a batch with an empty key")


@case()
async def one_writer_wins_a_version(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    await _one_winner(stage, [store] * 16)


@case("shared")
async def one_writer_of_several_stores_wins_a_version(stage: Stage) -> None:
    stores = [stage.store() for _ in range(4)]
    await stores[0].open(stage.id())
    await _one_winner(stage, stores * 4)


async def _one_winner(stage: Stage, stores: list[SessionStore]) -> None:
    async def write(writer: int, version: int) -> SessionInfo | None:
        texts = [f"{version}/{writer}/{part}" for part in range(2)]
        try:
            return await stores[writer].append(
                stage.id(), entries(*texts), expected_version=version
            )
        except StoreError as error:
            if error.code != "version_conflict":
                raise
            return None

    for version in (0, 2, 4):
        done = await asyncio.gather(*(write(writer, version) for writer in range(len(stores))))
        equal(sum(info is not None for info in done), 1, f"winners of version {version}")
    found = [text.rsplit("/", 1)[0] for text in await payloads(stores[0], stage.id())]
    equal(len(found), 6, "entries of three winners")
    equal(found[::2], found[1::2], "both entries of each winner")


@case()
async def batches_of_many_tasks_stay_whole(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    await _whole_batches(stage, [store] * 12)


@case("shared")
async def batches_of_several_stores_stay_whole(stage: Stage) -> None:
    stores = [stage.store() for _ in range(4)]
    await stores[0].open(stage.id())
    await _whole_batches(stage, stores * 3)


async def _whole_batches(stage: Stage, stores: list[SessionStore]) -> None:
    async def write(writer: int) -> None:
        for batch in range(5):
            texts = [f"{writer}/{batch}/{part}" for part in range(3)]
            await stores[writer].append(stage.id(), entries(*texts, keys=texts))

    await asyncio.gather(*(write(writer) for writer in range(len(stores))))
    log = await stores[0].read(stage.id())
    equal([entry.sequence for entry in log], list(range(1, len(log) + 1)), "sequence numbers")
    found = [entry.payload.decode().split("/") for entry in log]
    equal(len(found), 15 * len(stores), "entries")
    starts = found[::3]
    for part in range(3):
        wanted = [[writer, batch, str(part)] for writer, batch, _ in starts]
        equal(found[part::3], wanted, "batches")
    for writer in range(len(stores)):
        own = [batch for who, batch, _ in starts if who == str(writer)]
        equal(own, list("01234"), "the order of one writer's batches")


@case()
async def one_key_of_many_tasks_is_there_once(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    await _once(stage, [store] * 10)


@case("shared")
async def one_key_of_several_stores_is_there_once(stage: Stage) -> None:
    stores = [stage.store() for _ in range(3)]
    await stores[0].open(stage.id())
    await _once(stage, stores * 3)


async def _once(stage: Stage, stores: list[SessionStore]) -> None:
    given = entries("a", "b", keys=["first", "second"])
    await asyncio.gather(*(store.append(stage.id(), given) for store in stores))
    equal(await payloads(stores[0], stage.id()), ["a", "b"], "the log")


@case()
async def a_cancelled_append_is_whole_or_not_there(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    for number in range(24):
        texts = [f"{number}/{part}" for part in range(3)]
        task = asyncio.create_task(store.append(stage.id(), entries(*texts, keys=texts)))
        for _ in range(number % 6):
            await asyncio.sleep(0)
        if number % 4 == 3:  # noqa: PLR2004 - some get further
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await store.append(stage.id(), entries(*texts, keys=texts))
    wanted = [f"{number}/{part}" for number in range(24) for part in range(3)]
    equal(await payloads(store, stage.id()), wanted, "the log after cancelled and repeated appends")


@case()
async def a_log_is_cut_at_its_end(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    await store.put_pages(stage.id(), {"p": b"page"})
    await store.append(stage.id(), entries(*"abcd", keys="1234"))
    equal((await store.truncate(stage.id(), 9)).version, 4, "the version after no cut")
    info = await store.truncate(stage.id(), 2, expected_version=4)
    equal((info.version, info.length), (5, 2), "version and length after the cut")
    equal(await payloads(store, stage.id()), ["a", "b"], "the log after the cut")
    equal(await store.get_page(stage.id(), "p"), b"page", "the page")
    await store.append(stage.id(), entries("e", "x", keys=["4", "2"]))
    found = [(entry.payload, entry.sequence) for entry in await store.read(stage.id())]
    equal(found, [(b"a", 1), (b"b", 2), (b"e", 3)], "the log after another append")
    await refused(store.truncate(stage.id(), -1), "invalid_value")
    equal((await store.truncate(stage.id(), 0)).length, 0, "the length after all was cut")
    equal(await store.read(stage.id()), [], "the log after all was cut")
