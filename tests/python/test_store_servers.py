"""PostgreSQL, and Redis or Valkey, as stores: the conformance suite, and the doors to them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

import satchel
from satchel.stores import open_store
from satchel.stores.postgres import PostgresStore
from satchel.stores.redis import RedisStore
from satchel.testing import store_conformance
from servers import postgres_url, redis_url

if TYPE_CHECKING:
    from satchel.testing.stores import StoreCase, StorePlace


def postgres(place: StorePlace) -> PostgresStore:
    del place
    return PostgresStore(postgres_url())


@pytest.mark.parametrize("case", store_conformance(postgres), ids=str)
def test_postgres(case: StoreCase) -> None:
    case()


def redis(place: StorePlace) -> RedisStore:
    del place
    return RedisStore(redis_url())


@pytest.mark.parametrize("case", store_conformance(redis), ids=str)
def test_redis(case: StoreCase) -> None:
    case()


@pytest.mark.parametrize(
    ("scheme", "kind"),
    [
        ("postgresql", PostgresStore),
        ("postgres", PostgresStore),
        ("redis", RedisStore),
        ("rediss", RedisStore),
        ("valkey", RedisStore),
        ("valkeys", RedisStore),
    ],
)
def test_schemes(scheme: str, kind: type[object]) -> None:
    # Nothing is connected yet.
    assert isinstance(open_store(f"{scheme}://user:word@host.invalid/0"), kind)


@pytest.mark.parametrize(
    ("url", "package", "extra"),
    [
        ("postgresql://host/db", "psycopg", "satchel[postgres]"),
        ("redis://host/0", "redis", "satchel[redis]"),
    ],
)
def test_a_missing_package_is_named(
    url: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(sys.modules):
        if name.startswith((f"{package}.", "satchel.stores.postgres", "satchel.stores.redis")):
            monkeypatch.delitem(sys.modules, name)
        if name.startswith(("satchel.stores._postgres", "satchel.stores._redis")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(satchel.InputError) as caught:
        satchel.open_session(url, session_id="s", model="gpt-4o")
    assert caught.value.code == "missing_extra"
    assert extra in str(caught.value)
