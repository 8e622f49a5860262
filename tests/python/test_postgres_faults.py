"""PostgreSQL when things go wrong: nothing lost or done twice, and errors that say what to do."""

from __future__ import annotations

import asyncio
import re
import secrets
import traceback
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

import satchel
from satchel.stores import Entry, _postgres_sql, open_store
from satchel.stores.postgres import PostgresStore
from servers import own_postgres
from store_proxy import proxied

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator

    from store_proxy import Streams

SECRET = "a-secret-of-the-user"  # noqa: S105 - looked for where it must not be


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def entries(*texts: str) -> list[Entry]:
    return [Entry("message", text.encode()) for text in texts]


async def connect() -> Streams:
    return await asyncio.open_unix_connection(own_postgres().socket)


def url_of(port: int) -> str:
    return f"postgresql://postgres:{SECRET}@127.0.0.1:{port}/postgres"


@pytest.fixture
def place() -> Iterator[str]:
    """The URL of an empty schema."""
    name = f"s{secrets.token_hex(8)}"
    with psycopg.connect(own_postgres().url(), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}".encode())
        joint = "&" if "?" in own_postgres().url() else "?"
        yield f"{own_postgres().url()}{joint}options=-csearch_path%3D{name}"
        connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def change(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def refused(work: Coroutine[Any, Any, object], code: str) -> str:
    """What the error says, its traceback included."""
    with pytest.raises(satchel.StoreError) as caught:
        asyncio.run(work)
    assert caught.value.code == code
    return "".join(traceback.format_exception(caught.value))


async def filled(store: PostgresStore) -> None:
    await store.open("s")
    await store.append("s", entries("a", "b", "c"))


# --- connections ----------------------------------------------------------------------------------


def test_what_was_done_without_an_answer_is_done_once(place: str) -> None:
    async def work() -> None:
        async with proxied(connect) as proxy:
            schema = place.partition("?")[2].partition("options=")[2]
            store = PostgresStore(f"{url_of(proxy.port)}?options={schema}", max_connections=1)
            await store.open("s")
            info = await store.append("s", entries("a"))
            proxy.swallows = True
            info = await store.append("s", entries("b", "b"), expected_version=info.version)
            assert (info.version, proxy.lost) == (3, 1)
            proxy.swallows = True
            assert await store.put_value("s", "v", b"1", expected_version=0) == 1
            proxy.swallows = True
            assert (await store.truncate("s", 2, expected_version=3)).version == 4
            proxy.swallows = True
            assert (await store.branch("s", "t", length=1)).length == 1
            assert proxy.lost >= 4
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
            store = PostgresStore(url_of(proxy.port), timeout_s=0.4)
            session_id = secrets.token_hex(8)
            await store.open(session_id)
            proxy.fall_silent()
            with pytest.raises(satchel.StoreError) as caught:
                await store.append(session_id, entries("a"))
            assert caught.value.code == "store_unavailable"
            # A caller who does not want to wait gets his task back as well.
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
    store = PostgresStore(url_of(1), timeout_s=0.2)
    said = refused(store.open("s"), "store_unavailable")
    assert SECRET not in said + caplog.text
    assert SECRET not in repr(store)


def test_who_may_not_enter_is_told_at_once(caplog: pytest.LogCaptureFixture) -> None:
    server = own_postgres()
    rules = server.folder / "data" / "pg_hba.conf"
    before = rules.read_text()
    change(
        server.url(),
        f"DROP ROLE IF EXISTS guest; CREATE ROLE guest LOGIN PASSWORD '{secrets.token_hex(8)}'",
    )
    rules.write_text(f"local all guest scram-sha-256\n{before}")
    change(server.url(), "SELECT pg_reload_conf()")
    try:
        for password in (f":{SECRET}", ""):
            url = server.url().replace("postgres@", f"guest{password}@")
            said = refused(open_store(url).open("s"), "store_refused")
            assert SECRET not in said + caplog.text
    finally:
        rules.write_text(before)
        change(server.url(), "SELECT pg_reload_conf()")


@pytest.mark.parametrize("url", ["postgresql://u:%zz@h/d", f"postgresql://u:{SECRET}@h/d?x=1"])
def test_a_url_that_cannot_be_read(url: str) -> None:
    with pytest.raises(satchel.InputError) as caught:
        open_store(url)
    assert caught.value.code == "invalid_value"
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_closed_store_says_so() -> None:
    async def work() -> None:
        store = PostgresStore(own_postgres().url())
        await store.open(secrets.token_hex(8))
        await store.close()
        await store.open("s")

    refused(work(), "store_closed")


# --- rights and room ------------------------------------------------------------------------------


def test_a_database_that_lets_only_read(place: str) -> None:
    async def work() -> None:
        store = PostgresStore(place)
        await filled(store)
        await store.close()
        reader = PostgresStore(
            place.replace("-csearch", "-cdefault_transaction_read_only%3Don%20-csearch")
        )
        assert len(await reader.read("s")) == 3
        try:
            await reader.append("s", entries("d"))
        finally:
            await reader.close()

    assert "primary" in refused(work(), "store_read_only")


def test_a_database_without_room(place: str) -> None:
    async def work() -> None:
        store = PostgresStore(place)
        await filled(store)
        change(
            place,
            "CREATE FUNCTION full_up() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION 'row %', encode(NEW.payload, 'escape') USING ERRCODE = '53100'; "
            "END $$",
            "CREATE TRIGGER full_up BEFORE INSERT ON satchel_entries FOR EACH ROW "
            "EXECUTE FUNCTION full_up()",
        )
        try:
            await store.append("s", entries(SECRET))
        finally:
            change(place, "DROP TRIGGER full_up ON satchel_entries")
            assert (await store.append("s", entries("d"))).length == 4
            await store.close()

    assert SECRET not in refused(work(), "store_full")


# --- schemas --------------------------------------------------------------------------------------


def test_a_newer_schema_is_left_alone(place: str) -> None:
    async def work() -> None:
        store = PostgresStore(place)
        await filled(store)
        await store.close()
        change(place, "UPDATE satchel_schema SET version = 99")
        await PostgresStore(place).read("s")

    assert "newer satchel" in refused(work(), "schema_newer")


def test_an_older_schema_is_brought_up_to_date_once(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        store = PostgresStore(place)
        await filled(store)
        await store.close()
        # A second run of the step would fail.
        step = "ALTER TABLE satchel_entries ADD COLUMN note text DEFAULT 'new'"
        monkeypatch.setattr(_postgres_sql, "STEPS", (*_postgres_sql.STEPS, step))
        stores = [PostgresStore(place) for _ in range(6)]
        logs = await asyncio.gather(*(store.read("s") for store in stores))
        assert all([entry.payload for entry in log] == [b"a", b"b", b"c"] for log in logs)
        assert (await stores[0].append("s", entries("d"))).length == 4
        for store in stores:
            await store.close()

    run(work())


def test_several_may_make_the_tables_at_once(place: str) -> None:
    async def work() -> None:
        stores = [PostgresStore(place) for _ in range(6)]
        await asyncio.gather(*(store.open("s") for store in stores))
        await asyncio.gather(*(store.append("s", entries("a")) for store in stores))
        assert (await stores[0].info("s")).length == 6
        for store in stores:
            await store.close()

    run(work())


def test_tables_that_something_else_changed(place: str) -> None:
    async def work() -> None:
        store = PostgresStore(place)
        await filled(store)
        change(place, "ALTER TABLE satchel_entries RENAME COLUMN payload TO content")
        try:
            await store.read("s")
        finally:
            await store.close()

    refused(work(), "schema_unknown")


# --- damage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        ("DELETE FROM satchel_entries WHERE sequence = 2", "store_corrupt"),
        ("DELETE FROM satchel_entries WHERE sequence = 3", "store_corrupt"),
        ("UPDATE satchel_sessions SET length = 2", "store_corrupt"),
    ],
)
def test_a_log_with_holes_is_not_passed_off_as_whole(place: str, damage: str, code: str) -> None:
    async def work() -> None:
        store = PostgresStore(place)
        await filled(store)
        change(place, damage)
        try:
            if "length" in damage:
                # The next entry would take the place of one that is there.
                await store.append("s", entries("d"))
            await store.read("s")
        finally:
            await store.close()

    refused(work(), code)


def test_a_damaged_page_or_message_is_said_to_be_one(place: str) -> None:
    async def page() -> None:
        store = PostgresStore(place)
        await filled(store)
        await store.put_pages("s", {"p": b"page"})
        change(place, "UPDATE satchel_pages SET content = 'x'")
        try:
            await store.get_page("s", "p")
        finally:
            await store.close()

    refused(page(), "corrupt_entry")

    async def message() -> None:
        session = satchel.open_session(place, session_id="t", model="gpt-4o")
        async with session:
            await session.append({"role": "user", "content": SECRET})
        change(place, "UPDATE satchel_entries SET payload = substr(payload, 1, 20) WHERE kind = 0")
        async with satchel.open_session(place, session_id="t", model="gpt-4o"):
            pass

    assert SECRET not in refused(message(), "corrupt_entry")


def test_what_has_ended_is_removed_from_the_tables(place: str) -> None:
    async def work() -> None:
        store = PostgresStore(place)
        await store.open("s", ttl_s=0.05)
        await store.append("s", entries("a"))
        await store.put_value("s", "v", b"1")
        await store.put_pages("s", {"p": b"1"})
        await asyncio.sleep(0.1)
        await store.open("other")
        await store.close()
        with psycopg.connect(place) as connection:
            for table in (b"entries", b"values", b"pages"):
                found = connection.execute(b"SELECT count(*) FROM satchel_" + table)
                assert found.fetchone() == (0,)
            found = connection.execute("SELECT session_id FROM satchel_sessions")
            assert found.fetchall() == [(b"other",)]

    run(work())


def test_statements_use_their_indexes(place: str) -> None:
    async def work() -> None:
        store = PostgresStore(place)
        await filled(store)
        await store.close()

    run(work())
    given = {"id": b"s", "name": b"n", "pointer": b"p", "after": 0, "last": 5, "user": b"u"}
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("SET enable_seqscan = off")
        for name in ("INFO", "READ", "GET_VALUE", "GET_PAGE"):
            statement = getattr(_postgres_sql, name)
            plan = connection.execute(f"EXPLAIN {statement}".encode(), given).fetchall()
            text = "\n".join(row[0] for row in plan)
            assert not re.search(r"Seq Scan", text), text
