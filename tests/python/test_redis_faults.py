"""Redis or Valkey when things go wrong: nothing lost or done twice, errors that say what to do."""

from __future__ import annotations

import asyncio
import secrets
import traceback
from typing import TYPE_CHECKING, Any

import pytest
import redis

import satchel
from satchel.stores import Entry, open_store
from satchel.stores.redis import RedisStore
from satchel.testing import store_conformance
from servers import ValkeyServer, own_valkey, redis_url
from store_proxy import proxied

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from satchel.testing.stores import StoreCase, StorePlace
    from store_proxy import Streams

SECRET = "a-secret-of-the-user"  # noqa: S105 - looked for where it must not be


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def entries(*texts: str) -> list[Entry]:
    return [Entry("message", text.encode()) for text in texts]


async def connect() -> Streams:
    return await asyncio.open_connection("127.0.0.1", own_valkey().port)


def command(url: str, *parts: object) -> Any:
    # The commands are the server's own, not redis-py's methods.
    client: Any = redis.Redis
    with client.from_url(url.partition("?")[0], protocol=2) as connected:
        return connected.execute_command(*parts)


def refused(work: Coroutine[Any, Any, object], code: str) -> str:
    """What the error says, its traceback included."""
    with pytest.raises(satchel.StoreError) as caught:
        asyncio.run(work)
    assert caught.value.code == code
    return "".join(traceback.format_exception(caught.value))


async def opened(url: str) -> bool:
    """Opens a session; whether its store says that it is durable."""
    store = open_store(url)
    try:
        await store.open("s")
        return store.is_durable
    finally:
        await store.close()


@pytest.fixture
def place() -> str:
    """A URL with a prefix of its own."""
    joint = "&" if "?" in redis_url() else "?"
    return f"{redis_url()}{joint}prefix={secrets.token_hex(8)}"


def keys(url: str) -> dict[str, bytes]:
    """The keys below the URL's prefix, by what stands at their end."""
    prefix = url.partition("prefix=")[2].encode()
    found: list[bytes] = command(url, "KEYS", prefix + b":*")
    return {key.rpartition(b"}")[2].decode(): key for key in found}


async def filled(store: RedisStore) -> None:
    await store.open("s")
    await store.append("s", entries("a", "b", "c"))


def served(*options: str) -> Iterator[ValkeyServer]:
    server = ValkeyServer("--appendfsync", "everysec", *options).start()
    yield server
    server.stop()


# --- connections ----------------------------------------------------------------------------------


def test_what_was_done_without_an_answer_is_done_once() -> None:
    async def work() -> None:
        prefix = secrets.token_hex(8)
        async with proxied(connect) as proxy:
            url = f"redis://127.0.0.1:{proxy.port}?prefix={prefix}"
            store = RedisStore(url, max_connections=1)
            await store.open("s")
            info = await store.append("s", entries("a"))
            await store.put_value("s", "w", b"")
            await store.truncate("s", 1)
            proxy.swallows = True
            info = await store.append("s", entries("b", "b"), expected_version=info.version)
            assert (info.version, proxy.lost) == (3, 1)
            proxy.swallows = True
            assert await store.put_value("s", "v", b"1", expected_version=0) == 1
            proxy.swallows = True
            assert (await store.truncate("s", 2, expected_version=3)).version == 4
            proxy.swallows = True
            assert (await store.branch("s", "t", length=1)).length == 1
            assert proxy.lost == 4
            proxy.cut()
            assert [entry.payload for entry in await store.read("s")] == [b"a", b"b"]
            proxy.cut()
            async with store.lease("s") as lease:
                await store.append("s", entries("c"), lease=lease)
            await store.close()

    run(work())


def test_a_server_that_says_nothing_does_not_hold_up_the_caller() -> None:
    async def work() -> None:
        async with proxied(connect) as proxy:
            store = open_store(f"redis://127.0.0.1:{proxy.port}?timeout_s=0.4")
            session_id = secrets.token_hex(8)
            await store.open(session_id)
            proxy.fall_silent()
            with pytest.raises(satchel.StoreError) as caught:
                await store.append(session_id, entries("a"))
            assert caught.value.code == "store_unavailable"
            task = asyncio.create_task(store.append(session_id, entries("b")))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            proxy.speak()
            assert (await store.append(session_id, entries("c"))).length >= 1
            assert (await store.read(session_id))[-1].payload == b"c"
            await store.close()

    run(work())


def test_a_server_that_is_not_there(caplog: pytest.LogCaptureFixture) -> None:
    url = f"valkey://user:{SECRET}@127.0.0.1:1?timeout_s=0.2"
    said = refused(opened(url), "store_unavailable")
    assert SECRET not in said + caplog.text + repr(open_store(url))


def test_who_may_not_enter_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    for server in served("--requirepass", "right"):
        for user in (f":{SECRET}@", ""):
            url = server.url().replace("//", f"//{user}")
            said = refused(opened(url), "store_refused")
            assert SECRET not in said + caplog.text


@pytest.mark.parametrize(
    "url",
    [
        f"redis://u:{SECRET}@h:port",
        f"redis://u:{SECRET}@h?socket_timeout=soon",
        f"redis://u:{SECRET}@h?no_such_option=1",
        f"redis://u:{SECRET}@h?timeout_s=soon",
        f"redis://u:{SECRET}@h?checks=maybe",
        f"redis://u:{SECRET}@h?durability=power&cluster=true",
    ],
)
def test_a_url_that_cannot_be_read(url: str) -> None:
    with pytest.raises(satchel.InputError) as caught:
        open_store(url)
    assert caught.value.code == "invalid_value"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_closed_store_says_so(place: str) -> None:
    async def work() -> None:
        store = RedisStore(place)
        await store.open("s")
        await store.close()
        await store.open("s")

    refused(work(), "store_closed")


# --- how the server keeps data --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--appendonly", "no"), "appendonly"),
        (("--maxmemory", "50mb", "--maxmemory-policy", "allkeys-lru"), "noeviction"),
        (("--maxmemory", "50mb", "--maxmemory-policy", "volatile-ttl"), "noeviction"),
    ],
)
def test_a_server_that_may_lose_sessions_is_refused(options: tuple[str, ...], word: str) -> None:
    for server in served(*options):
        assert word in refused(opened(server.url()), "store_unsafe")
        with pytest.warns(RuntimeWarning, match=word):
            is_durable = asyncio.run(opened(f"{server.url()}?checks=warn"))
        assert is_durable == (word != "appendonly")
        assert asyncio.run(opened(f"{server.url()}?checks=off")) == is_durable


def test_a_server_without_room_keeps_what_it_has() -> None:
    async def work(url: str) -> None:
        store = RedisStore(url)
        await store.open("s")
        kept = 0
        # Random, so that nothing gets smaller.
        texts = [SECRET.encode() + secrets.token_bytes(50_000) for _ in range(100)]

        async def fill() -> None:
            nonlocal kept
            for text in texts:
                kept = (await store.append("s", [Entry("message", text)])).length

        with pytest.raises(satchel.StoreError) as caught:
            await fill()
        assert caught.value.code == "store_full"
        assert SECRET not in "".join(traceback.format_exception(caught.value))
        assert 0 < kept < 100
        assert len(await store.read("s")) == kept
        command(url, "CONFIG", "SET", "maxmemory", "0")
        assert (await store.append("s", entries("d"))).length == kept + 1
        await store.close()

    for server in served("--maxmemory", "4mb"):
        run(work(server.url()))


def test_a_server_that_lets_only_read() -> None:
    async def work(url: str) -> None:
        store = RedisStore(f"{url}?timeout_s=2")
        await filled(store)
        command(url, "REPLICAOF", "127.0.0.1", "1")
        try:
            assert len(await store.read("s")) == 3
            await store.append("s", entries("d"))
        finally:
            await store.close()

    for server in served():
        assert "primary" in refused(work(server.url()), "store_read_only")


def test_power_waits_for_the_disk() -> None:
    async def work(server: ValkeyServer) -> None:
        store = RedisStore(f"{server.url()}?durability=power")
        await store.open("s")
        for number in range(3):
            await store.append("s", entries(str(number)))
        said = command(server.url(), "INFO", "commandstats")
        # One for each write: the session, the index, three entries.
        assert said["cmdstat_waitaof"]["calls"] >= 5
        assert len(await store.read("s")) == 3
        await store.close()

    run(work(own_valkey()))


# --- formats and damage ---------------------------------------------------------------------------


def test_a_newer_format_is_left_alone(place: str) -> None:
    async def work() -> None:
        store = RedisStore(place)
        await filled(store)
        command(place, "HSET", keys(place)[""], "f", 99)
        try:
            await store.append("s", entries("d"))
        finally:
            await store.close()

    assert "newer satchel" in refused(work(), "schema_newer")


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (("HDEL", "e2"), "store_corrupt"),
        (("HDEL", "e3"), "store_corrupt"),
        (("HSET", "e2", "?"), "corrupt_entry"),
        (("HSET", "e2", b"mz\0\0\0\0" + SECRET.encode()), "corrupt_entry"),
        (("SET", "text"), "store_corrupt"),
    ],
)
def test_a_damaged_log_is_not_passed_off_as_whole(
    place: str, damage: tuple[str | bytes, ...], code: str
) -> None:
    async def work() -> None:
        store = RedisStore(place)
        await filled(store)
        name, *parts = damage
        command(place, name, keys(place)[""], *parts)
        try:
            await store.read("s")
        finally:
            await store.close()

    assert SECRET not in refused(work(), code)


def test_a_damaged_page_is_said_to_be_one(place: str) -> None:
    async def work() -> None:
        store = RedisStore(place)
        await filled(store)
        await store.put_pages("s", {"p": b"page"})
        command(place, "HSET", keys(place)[""], "Pp", "x")
        try:
            await store.get_page("s", "p")
        finally:
            await store.close()

    refused(work(), "corrupt_entry")


def test_keys_tell_nothing_and_end_with_their_session(place: str) -> None:
    async def work() -> None:
        store = RedisStore(place)
        await store.open("secret-session", user_id="secret-user", ttl_s=0.1)
        await store.append("secret-session", entries("a"))
        async with store.lease("secret-session"):
            pass
        assert not any(b"secret" in key for key in keys(place).values())
        await asyncio.sleep(0.2)
        assert set(keys(place)) == {":fence", ":ids", ":due"}
        # Whoever comes next takes it out of the index of all.
        await store.open("other")
        assert command(place, "ZCARD", index(b"{all}")) == 1
        assert await store.list_sessions(user_id="secret-user") == []
        await store.close()

    def index(part: bytes) -> bytes:
        return place.partition("prefix=")[2].encode() + b":" + part + b":ids"

    run(work())


def test_a_long_log_is_read_in_parts(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("satchel.stores.redis._CHUNK_BYTES", 2_000)

    async def work() -> None:
        store = RedisStore(place)
        await store.open("s")
        texts = [f"{number} " + secrets.token_hex(100) for number in range(300)]
        await store.append("s", entries(*texts))
        assert [entry.payload.decode() for entry in await store.read("s")] == texts
        found = await store.read("s", after=70, limit=200)
        assert [entry.sequence for entry in found] == list(range(71, 271))
        await store.put_pages("s", {f"p{number}": b"x" * number for number in range(40)})
        assert (await store.branch("s", "t", length=250)).length == 250
        assert [entry.payload.decode() for entry in await store.read("t")] == texts[:250]
        assert len(await store.page_pointers("t")) == 40
        # What was put aside for the branch is gone.
        assert set(keys(place)) == {"", ":ids", ":due"}
        await store.close()

    run(work())


# --- clusters -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[ValkeyServer]:
    """A cluster of one, which refuses commands over several slots as a larger one does."""
    for server in served("--cluster-enabled", "yes"):
        command(server.url(), "CLUSTER", "ADDSLOTSRANGE", 0, 16_383)
        yield server


CLUSTERED: list[ValkeyServer] = []


def in_cluster(place: StorePlace) -> RedisStore:
    return RedisStore(f"redis://127.0.0.1:{CLUSTERED[0].port}?cluster=true&prefix={place.name}")


CASES = {
    # Those that touch several keys.
    "a_branch_is_a_session_of_its_own",
    "another_store_sees_it_at_once",
    "deletion_leaves_nothing",
    "one_at_a_time_has_the_lease",
    "sessions_are_listed_by_id",
    "users_never_meet",
}


@pytest.mark.parametrize(
    "case", [case for case in store_conformance(in_cluster) if str(case) in CASES], ids=str
)
def test_a_cluster(case: StoreCase, cluster: ValkeyServer) -> None:
    CLUSTERED[:] = [cluster]
    case()
