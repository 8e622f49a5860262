"""Sessions, users and keys with awkward names do not meet, whatever is done to them in any order.

The oracle is the store in memory, which keeps them in a dict.
"""

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import satchel
from satchel.stores import Entry, MemoryStore, SessionStore, open_store
from servers import postgres_url, redis_url

if TYPE_CHECKING:
    from collections.abc import Callable

URLS: dict[str, Callable[[], str]] = {"postgres": postgres_url, "redis": redis_url}

PARTS = st.sampled_from(
    [
        *("acme", "acme-corp", "a", "A", "\u00e5", "a\u030a", "\x00", "\x1f", ":", "{", "}", "*"),
        *("?", "[a]", "%", "_", "'", '"', ";--", "\\", "/", "..", " ", "\n", "\u200b"),
        *("\U0001f9f3", "e1", "x" * 3_000, "None", "0"),
    ]
)
NAMES = st.lists(PARTS, min_size=1, max_size=4).map("".join)
SESSIONS = st.lists(NAMES, min_size=2, max_size=4, unique=True)
OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ["open", "append", "read", "truncate", "branch", "value", "page", "delete", "list"]
        ),
        st.integers(0, 3),
        st.integers(0, 3),
        NAMES,
    ),
    min_size=4,
    max_size=16,
)


async def done(  # noqa: PLR0911 - one line an operation
    store: SessionStore, start: str, ids: list[str], operation: tuple[str, int, int, str]
) -> Any:
    kind, one, two, name = operation
    session_id, other = start + ids[one % len(ids)], start + ids[two % len(ids)]
    user = None if two == 3 else other
    match kind:
        case "open":
            return told(await store.open(session_id, user_id=user))
        case "append":
            entry = Entry("message", name.encode(), name if two else None)
            return told(await store.append(session_id, [entry]))
        case "read":
            return await store.read(session_id)
        case "truncate":
            return told(await store.truncate(session_id, two))
        case "branch":
            owner = (await store.info(session_id)).user_id
            return told(await store.branch(session_id, other, length=two, user_id=owner))
        case "value":
            await store.put_value(session_id, name, ids[two % len(ids)].encode())
            return [await store.get_value(other, name), await store.value_names(session_id)]
        case "page":
            await store.put_pages(session_id, {name: ids[two % len(ids)].encode()})
            return [await store.get_page(other, name), await store.page_pointers(session_id)]
        case "delete":
            return await store.delete(session_id)
        case _:
            found = await store.list_sessions(user_id=other)
            return [told(info) for info in found]


def told(info: Any) -> tuple[Any, ...]:
    return (info.session_id, info.user_id, info.version, info.length, info.parent)


@pytest.mark.parametrize("kind", URLS)
@given(ids=SESSIONS, operations=OPERATIONS)
@settings(max_examples=max(15, settings().max_examples // 10))
def test_no_session_touches_another(
    kind: str, ids: list[str], operations: list[tuple[str, int, int, str]]
) -> None:
    async def work() -> None:
        oracle, store = MemoryStore(), open_store(URLS[kind]())
        # Names of another run do not come in between.
        start = secrets.token_hex(8)
        try:
            for one in ids:
                for each in (oracle, store):
                    await each.open(start + one, user_id=start + ids[0])
            for operation in operations:
                found: list[Any] = []
                for each in (oracle, store):
                    try:
                        found.append(await done(each, start, ids, operation))
                    except satchel.StoreError as error:
                        found.append(error.code)
                assert found[0] == found[1], operation
            for one in ids:
                await store.delete(start + one)
        finally:
            await store.close()

    asyncio.run(work())
