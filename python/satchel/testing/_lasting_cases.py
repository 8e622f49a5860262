"""Store cases about time: how long a session and a lease last, and what a restart leaves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from satchel.stores.base import Lease
from satchel.testing._cases import case, entries, equal, payloads, refused, true

if TYPE_CHECKING:
    from satchel.testing._cases import Stage

_LIFE_S = 0.6
"""Of a session that is to end while the suite waits, in real seconds."""

_LEASE_S = 0.2


@case()
async def all_of_a_session_ends_when_its_time_is_over(stage: Stage) -> None:
    store = stage.store()
    user = stage.id("ada")
    await store.open(stage.id(), user_id=user, ttl_s=_LIFE_S)
    await store.open(stage.id("other"), user_id=user)
    await store.append(stage.id(), entries("a", keys=["1"]))
    await store.put_value(stage.id(), "v", b"value")
    await store.put_pages(stage.id(), {"p": b"page"})
    info = await store.info(stage.id())
    true(info.expires_at is not None and info.expires_at > info.created_at, "its end is known")
    await stage.wait(1.5 * _LIFE_S)
    for work in (
        store.info(stage.id()),
        store.append(stage.id(), entries("b")),
        store.read(stage.id()),
        store.truncate(stage.id(), 0),
        store.get_value(stage.id(), "v"),
        store.put_value(stage.id(), "v", b""),
        store.get_page(stage.id(), "p"),
        store.put_pages(stage.id(), {"p": b""}),
        store.branch(stage.id(), stage.id("branch"), length=1, user_id=user),
    ):
        await refused(work, "session_not_found")
    found = await store.list_sessions(user_id=user)
    equal([info.session_id for info in found], [stage.id("other")], "the sessions that are left")
    true(not await store.delete(stage.id()), "there is nothing to delete any more")
    info = await store.open(stage.id(), user_id=stage.id("bob"))
    equal((info.version, info.length, info.expires_at), (0, 0, None), "a new session of its id")
    equal(await store.get_page(stage.id(), "p"), None, "a page of the old one")
    equal(await store.value_names(stage.id()), [], "values of the old one")
    await store.append(stage.id(), entries("c", keys=["1"]))
    equal(await payloads(store, stage.id()), ["c"], "the log of the new one")


@case("clock")
async def writes_put_the_end_off_and_reads_do_not(stage: Stage) -> None:
    store = stage.store()
    start = (await store.open(stage.id(), ttl_s=10)).created_at

    async def end() -> float | None:
        return (await store.info(stage.id())).expires_at

    equal(await end(), start + 10, "the end at first")
    await stage.wait(6)
    await store.read(stage.id())
    await store.get_value(stage.id(), "v")
    equal(await end(), start + 10, "the end after reading")
    await store.append(stage.id(), entries("a"))
    equal(await end(), start + 16, "the end after an append")
    await stage.wait(6)
    await store.put_value(stage.id(), "v", b"")
    equal(await end(), start + 22, "the end after a value")
    await stage.wait(6)
    await store.put_pages(stage.id(), {"p": b""})
    equal(await end(), start + 28, "the end after a page")
    await stage.wait(6)
    await store.truncate(stage.id(), 0)
    equal(await end(), start + 34, "the end after a cut")
    await stage.wait(9)
    await store.open(stage.id())
    equal(await end(), start + 43, "the end after it was opened")
    await store.open(stage.id(), ttl_s=60)
    equal(await end(), start + 93, "the end after it was opened for longer")
    await store.branch(stage.id(), stage.id("branch"), length=0)
    await stage.wait(59.5)
    equal((await store.info(stage.id("branch"))).length, 0, "a branch before its end")
    await stage.wait(0.5)
    await refused(store.info(stage.id()), "session_not_found")
    await refused(store.info(stage.id("branch")), "session_not_found")


@case()
async def one_at_a_time_has_the_lease(stage: Stage) -> None:
    store = stage.store()
    other = stage.store() if "shared" in stage.capabilities else store
    await store.open(stage.id())
    await store.open(stage.id("other"))
    order: list[str] = []

    async def wait() -> int:
        async with other.lease(stage.id()) as lease:
            order.append("second")
            return lease.token

    async with store.lease(stage.id()) as lease:
        await refused(other.lease(stage.id(), timeout_s=0.05).__aenter__(), "lease_timeout")
        await refused(other.lease(stage.id(), timeout_s=0).__aenter__(), "lease_timeout")
        async with other.lease(stage.id("other"), timeout_s=0):
            order.append("elsewhere")
        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0.01)
        await store.append(stage.id(), entries("a"), lease=lease)
        await store.put_value(stage.id(), "v", b"", lease=lease)
        await store.truncate(stage.id(), 0, lease=lease)
        await other.append(stage.id(), entries("b"))
        order.append("first")
    second = await waiting
    equal(order, ["elsewhere", "first", "second"], "the order of the holders")
    true(second > lease.token, "tokens grow")
    try:
        async with store.lease(stage.id(), timeout_s=0):
            _leave()
    except _LeftError:
        pass
    async with store.lease(stage.id(), timeout_s=0) as third:
        true(third.token > second, "tokens grow after an error too")


@case()
async def who_lost_the_lease_is_refused(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    async with store.lease(stage.id(), ttl_s=_LEASE_S, renew=False) as late:
        await store.append(stage.id(), entries("a"), lease=late)
        await stage.wait(1.5 * _LEASE_S)
        await refused(store.append(stage.id(), entries("b"), lease=late), "lease_lost")
        async with store.lease(stage.id(), timeout_s=0) as lease:
            true(lease.token > late.token, "tokens grow")
            await refused(store.append(stage.id(), entries("b"), lease=late), "lease_lost")
            await refused(store.put_value(stage.id(), "v", b"", lease=late), "lease_lost")
            await refused(store.truncate(stage.id(), 0, lease=late), "lease_lost")
            await store.append(stage.id(), entries("c"), lease=lease)
    async with store.lease(stage.id(), timeout_s=0) as lease:
        # The late holder's block ended after the lease was another's: it took nothing with it.
        await store.append(stage.id(), entries("d"), lease=lease)
    await refused(store.append(stage.id(), entries("e"), lease=lease), "lease_lost")
    await refused(store.append(stage.id(), [], lease=Lease(0)), "lease_lost")
    equal(await payloads(store, stage.id()), ["a", "c", "d"], "the log")


@case()
async def a_lease_does_not_outlive_its_session(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    async with store.lease(stage.id()) as late:
        await store.delete(stage.id())
        await refused(store.append(stage.id(), entries("a"), lease=late), "session_not_found")
        await store.open(stage.id())
        await refused(store.append(stage.id(), entries("a"), lease=late), "lease_lost")
        async with store.lease(stage.id(), timeout_s=0) as lease:
            true(lease.token > late.token, "tokens grow over the session's lives")
            await refused(store.append(stage.id(), entries("a"), lease=late), "lease_lost")
    equal(await store.read(stage.id()), [], "the log")


@case("durable")
async def a_restart_leaves_everything_as_it_was(stage: Stage) -> None:
    store = stage.store()
    true(store.is_durable, "a durable store says so")
    user = stage.id("ada")
    await store.open(stage.id(), user_id=user)
    given = entries("a", b"\x00\xff" * 3_000, "text " * 900, keys=["1", None, "3"])
    await store.append(stage.id(), given)
    await store.put_value(stage.id(), "v", b"value")
    await store.put_pages(stage.id(), {"p": b"page" * 700})
    await store.branch(stage.id(), stage.id("branch"), length=1, user_id=user)
    async with store.lease(stage.id()) as lease:
        token = lease.token
    before = await store.info(stage.id())
    log = await store.read(stage.id())
    await store.close()
    again = stage.store()
    equal(await again.open(stage.id(), user_id=user), before, "info")
    equal(await again.read(stage.id()), log, "the log")
    found = await again.get_value(stage.id(), "v")
    equal((found and found.payload, found and found.version), (b"value", 1), "the value")
    equal(await again.get_page(stage.id(), "p"), b"page" * 700, "the page")
    equal((await again.info(stage.id("branch"))).parent, stage.id(), "the branch's parent")
    await refused(again.open(stage.id(), user_id=stage.id("eve")), "wrong_user")
    info = await again.append(stage.id(), entries("b", "a", keys=["4", "1"]))
    equal((info.version, info.length), (4, 4), "version and length after one more entry")
    async with again.lease(stage.id()) as lease:
        true(lease.token > token, "tokens grow over a restart")


@case("shared")
async def another_store_sees_it_at_once(stage: Stage) -> None:
    one, two = stage.store(), stage.store()
    await one.open(stage.id())
    await two.open(stage.id())
    for number in range(6):
        writer, reader = (one, two) if number % 2 else (two, one)
        info = await writer.append(stage.id(), entries(str(number)), expected_version=number)
        equal(await reader.info(stage.id()), info, "info")
        equal(len(await reader.read(stage.id(), after=number)), 1, "what is new")
        await writer.put_value(stage.id(), "v", b"%d" % number, expected_version=number)
        await writer.put_pages(stage.id(), {f"p{number}": b"page"})
        found = await reader.get_value(stage.id(), "v")
        equal(found and found.payload, b"%d" % number, "the value")
        equal(await reader.get_page(stage.id(), f"p{number}"), b"page", "the page")
    await one.delete(stage.id())
    await refused(two.info(stage.id()), "session_not_found")


@case("shared")
async def two_stores_may_be_the_first(stage: Stage) -> None:
    stores = [stage.store() for _ in range(6)]
    await asyncio.gather(*(store.open(stage.id()) for store in stores))
    for number, store in enumerate(stores):
        await store.append(stage.id(), entries(str(number)))
    equal(await payloads(stores[-1], stage.id()), list("012345"), "the log")


class _LeftError(Exception):
    """Leaves a block."""


def _leave() -> None:
    raise _LeftError
