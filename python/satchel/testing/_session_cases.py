"""Store cases about whole sessions: values, pages, branches, lists, deletion."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from satchel.errors import StoreError
from satchel.stores.base import Lease
from satchel.testing._cases import case, entries, equal, payloads, refused, true

if TYPE_CHECKING:
    from satchel.testing._cases import Stage


@case()
async def values_are_written_as_a_whole(stage: Stage) -> None:
    store = stage.store()
    before = await store.open(stage.id())
    equal(await store.get_value(stage.id(), "v"), None, "a value that was never written")
    equal(await store.put_value(stage.id(), "v", b"\x00one"), 1, "the first version")
    equal(await store.put_value(stage.id(), "v", b""), 2, "the second version")
    await store.put_value(stage.id(), "a", b"other", expected_version=0)
    found = await store.get_value(stage.id(), "v")
    equal((found and found.payload, found and found.version), (b"", 2), "the value")
    equal(await store.value_names(stage.id()), ["a", "v"], "the names")
    equal((await store.info(stage.id())).version, before.version, "the session's version")


@case()
async def one_writer_wins_a_value(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())

    async def write(writer: int, version: int) -> bool:
        try:
            await store.put_value(stage.id(), "v", str(writer).encode(), expected_version=version)
        except StoreError as error:
            if error.code != "version_conflict":
                raise
            return False
        return True

    for version in range(3):
        done = await asyncio.gather(*(write(writer, version) for writer in range(8)))
        equal(sum(done), 1, f"winners of version {version}")
        found = await store.get_value(stage.id(), "v")
        equal(found and int(found.payload), done.index(True), "what the winner wrote")
    await refused(store.put_value(stage.id(), "v", b"", expected_version=9), "version_conflict")


@case()
async def the_first_page_of_a_pointer_stays(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id())
    large = b"a page of text " * 40_000
    await store.put_pages(stage.id(), {"p1": b"one", "p2": large})
    await store.put_pages(stage.id(), {"p1": b"two", "p3": b"", "p0": bytes(range(256))})
    for pointer, wanted in (("p0", bytes(range(256))), ("p1", b"one"), ("p2", large), ("p3", b"")):
        equal(await store.get_page(stage.id(), pointer), wanted, f"page {pointer}")
    equal(await store.get_page(stage.id(), "p4"), None, "a page that is not there")
    equal(await store.page_pointers(stage.id()), ["p0", "p1", "p2", "p3"], "the pointers")
    await store.put_pages(stage.id(), {})


@case()
async def a_branch_is_a_session_of_its_own(stage: Stage) -> None:
    store = stage.store()
    one, two = stage.id("one"), stage.id("two")
    user = stage.id("ada")
    await store.open(one, user_id=user)
    await store.append(one, entries(*"abc", keys="123"))
    await store.put_pages(one, {"p": b"page"})
    await store.put_value(one, "v", b"value")
    info = await store.branch(one, two, length=2, user_id=user)
    equal((info.session_id, info.user_id, info.parent), (two, user, one), "the branch")
    equal((info.length, await store.info(two)), (2, info), "its length and info")
    await store.append(two, entries("b", "x", keys=["2", "3"]))
    await store.append(one, entries("y"))
    equal(await payloads(store, two), ["a", "b", "x"], "the branch's log")
    equal(await payloads(store, one), ["a", "b", "c", "y"], "the log it came from")
    equal(await store.get_page(two, "p"), b"page", "its page")
    equal(await store.value_names(two), [], "its values")
    await store.put_pages(two, {"q": b"other"})
    equal(await store.page_pointers(one), ["p"], "pages of the session it came from")
    true(await store.delete(one), "the session it came from was there")
    equal(await store.get_page(two, "p"), b"page", "the branch's page, without the other session")
    equal(len(await store.read(two)), 3, "the branch's log, without the other session")


@case()
async def branches_that_cannot_be_are_refused(stage: Stage) -> None:
    store = stage.store()
    one, two, three = stage.id("one"), stage.id("two"), stage.id("three")
    await store.open(one, user_id=stage.id("ada"))
    await store.append(one, entries("a"))
    await store.open(two)
    await store.append(two, entries("b"))
    user = stage.id("ada")
    await refused(store.branch(one, two, length=1, user_id=user), "session_exists")
    await refused(store.branch(one, one, length=1, user_id=user), "session_exists")
    await refused(store.branch(one, three, length=1), "wrong_user")
    await refused(store.branch(one, three, length=-1, user_id=user), "invalid_value")
    await refused(store.branch(three, stage.id("four"), length=1), "session_not_found")
    await refused(store.info(three), "session_not_found")
    equal(await payloads(store, two), ["b"], "a session that was there")
    equal((await store.branch(one, three, length=7, user_id=user)).length, 1, "a whole branch")


@case()
async def what_is_not_there_is_said_to_be_missing(stage: Stage) -> None:
    store = stage.store()
    await store.open(stage.id("other"))
    gone = stage.id("gone")
    for work in (
        store.info(gone),
        store.append(gone, entries("a")),
        store.append(gone, []),
        store.read(gone),
        store.truncate(gone, 0),
        store.get_value(gone, "v"),
        store.put_value(gone, "v", b""),
        store.value_names(gone),
        store.put_pages(gone, {"p": b""}),
        store.get_page(gone, "p"),
        store.page_pointers(gone),
        store.lease(gone).__aenter__(),
        store.append(gone, entries("a"), lease=Lease(1)),
    ):
        await refused(work, "session_not_found")
    true(not await store.delete(gone), "deletion of nothing says so")


@case()
async def sessions_are_listed_by_id(stage: Stage) -> None:
    store = stage.store()
    names = [
        "a",
        "B",
        "10",
        "9",
        "\u00e9",
        "z",
        "\uffff",
        "\U0001f9f3",
        "a b",
        "a-b",
        "aa",
        "a\x00",
    ]
    users = [stage.id("ada"), stage.id("bob")]
    for number, name in enumerate(names):
        await store.open(stage.id(name), user_id=users[number % 2])
    wanted = sorted(stage.id(name) for name in names)
    found = await store.list_sessions(after=stage.id(), limit=len(wanted))
    equal([info.session_id for info in found], wanted, "all sessions")
    for user in users:
        own = sorted(
            stage.id(name) for number, name in enumerate(names) if users[number % 2] == user
        )
        seen: list[str] = []
        for _ in names:
            part = await store.list_sessions(
                user_id=user, after=seen[-1] if seen else None, limit=2
            )
            true(len(part) <= 2, "a part has at most two sessions")  # noqa: PLR2004 - asked for
            true(all(info.user_id == user for info in part), "they are the user's")
            seen += [info.session_id for info in part]
            if not part:
                break
        equal(seen, own, "a user's sessions, two at a time")
    equal(await store.list_sessions(user_id=users[0], limit=0), [], "none at all")
    equal(await store.list_sessions(user_id=stage.id("eve")), [], "of a user who has none")
    await refused(store.list_sessions(limit=-1), "invalid_value")


@case()
async def deletion_leaves_nothing(stage: Stage) -> None:
    store = stage.store()
    user = stage.id("ada")
    await store.open(stage.id(), user_id=user)
    await store.append(stage.id(), entries("a", keys=["1"]))
    await store.put_value(stage.id(), "v", b"value")
    await store.put_pages(stage.id(), {"p": b"page"})
    true(await store.delete(stage.id()), "deletion says that there was one")
    true(not await store.delete(stage.id()), "a second deletion says that there is none")
    await refused(store.read(stage.id()), "session_not_found")
    equal(await store.list_sessions(user_id=user), [], "the user's sessions")
    info = await store.open(stage.id(), user_id=stage.id("bob"))
    equal((info.version, info.length), (0, 0), "version and length of a new session")
    equal(await store.read(stage.id()), [], "its log")
    equal(await store.value_names(stage.id()), [], "its values")
    equal(await store.get_page(stage.id(), "p"), None, "a page of the one before")
    info = await store.append(stage.id(), entries("b", keys=["1"]))
    equal(info.length, 1, "its length after an append under a key of the one before")


@case()
async def closing_twice_does_no_harm(stage: Stage) -> None:
    store = stage.store()
    await store.close()
    store = stage.store()
    await store.open(stage.id())
    await store.append(stage.id(), entries("a"))
    await store.close()
    await store.close()
