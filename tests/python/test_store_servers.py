"""PostgreSQL, and Redis or Valkey, as stores: the conformance suite, and sessions over them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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
