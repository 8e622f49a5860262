"""Leases: renewed while the holder works, lost by one that hangs, given back by one that leaves."""

from __future__ import annotations

import asyncio
import math
import os
import secrets
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from satchel.errors import InputError, StoreError
from satchel.stores import Entry, MemoryStore, open_store
from satchel.stores.base import Lease, held_lease
from servers import postgres_url, redis_url
from stored import refused, run, texts_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TTL_S = 1.5

HOLDER = """
import asyncio, sys
from satchel.errors import StoreError
from satchel.stores import Entry, open_store

async def main(url, session_id, ttl_s):
    store = open_store(url)
    async with store.lease(session_id, ttl_s=ttl_s) as lease:
        print(lease.token, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        for write in (
            lambda: store.append(session_id, [Entry("message", b"late")], lease=lease),
            lambda: store.put_value(session_id, "v", b"late", lease=lease),
            lambda: store.truncate(session_id, 0, lease=lease),
        ):
            try:
                await write()
                print("written", flush=True)
            except StoreError as error:
                print(error.code, flush=True)
    await store.close()

asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3])))
"""


def places(folder: Path) -> dict[str, Callable[[], str]]:
    return {
        "sqlite": lambda: f"sqlite:///{folder / 'x.db'}",
        "postgres": postgres_url,
        "redis": redis_url,
    }


@pytest.mark.parametrize("place", ["sqlite", "postgres", "redis"])
def test_a_holder_that_hangs_is_kept_out_by_its_token(tmp_path: Path, place: str) -> None:
    url, name = places(tmp_path)[place](), secrets.token_hex(6)

    async def main() -> None:
        store = open_store(url)
        await store.open(name)
        with subprocess.Popen(  # noqa: ASYNC220, S603 - a script of ours, and a short wait
            [sys.executable, "-c", HOLDER, url, name, str(TTL_S)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        ) as holder:
            assert holder.stdin is not None
            assert holder.stdout is not None
            late = int(await asyncio.to_thread(holder.stdout.readline))
            # For longer than it took the lease for: it is renewed.
            await asyncio.sleep(1.5 * TTL_S)
            await refused(store.lease(name, timeout_s=0).__aenter__(), "lease_timeout")
            holder.send_signal(signal.SIGSTOP)
            async with store.lease(name, timeout_s=60) as lease:
                assert lease.token > late
                holder.send_signal(signal.SIGCONT)
                holder.stdin.write(b"\n")
                holder.stdin.flush()
                said = [await asyncio.to_thread(holder.stdout.readline) for _ in range(3)]
                assert said == [b"lease_lost\n"] * 3
                await store.append(name, [Entry("message", b"mine")], lease=lease)
            await asyncio.to_thread(holder.wait)
        assert await texts_of(store, name) == ["mine"]
        await store.delete(name)
        await store.close()

    run(main())


@pytest.mark.parametrize("place", ["memory", "sqlite", "postgres", "redis"])
def test_a_waiter_that_leaves_keeps_nobody_out(tmp_path: Path, place: str) -> None:
    async def main() -> None:
        store = MemoryStore() if place == "memory" else open_store(places(tmp_path)[place]())
        name = secrets.token_hex(6)
        await store.open(name)

        async def take() -> None:
            async with store.lease(name, timeout_s=30):
                await asyncio.sleep(0)

        for pause in range(12):
            tasks = [asyncio.create_task(take()) for _ in range(3)]
            await asyncio.sleep(pause / 2_000)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            # Nobody waits for the half minute that a forgotten lease would last.
            async with asyncio.timeout(20), store.lease(name, timeout_s=15):
                pass
        await store.delete(name)
        await store.close()

    run(main())


AWAY = StoreError("away", code="store_unavailable")


class _Kept:
    """A lease in this process, as a backend would keep it."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.left: list[Lease] = []
        self.kept = 0
        self.all_given = asyncio.Event()

    async def take(self) -> Lease | None:
        return Lease(1)

    async def keep(self, lease: Lease) -> bool:
        assert lease == Lease(1)
        self.kept += 1
        answer = self.answers.pop(0)
        if not self.answers:
            self.all_given.set()
        if isinstance(answer, Exception):
            raise answer
        return bool(answer)

    async def leave(self, lease: Lease) -> None:
        self.left.append(lease)
        raise AWAY


def test_a_store_that_is_away_for_a_while_is_asked_again() -> None:
    async def main() -> None:
        kept = _Kept("held", AWAY, "held", "")

        async def fail() -> None:
            async with held_lease(
                kept.take, kept.keep, kept.leave, ttl_s=0.003, timeout_s=1, renew=True
            ):
                await kept.all_given.wait()
                await asyncio.sleep(0.02)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            # What the block raises comes out, also where the lease cannot be given back.
            await fail()
        assert kept.kept == 4, "none that is lost is renewed"
        assert kept.left == [Lease(1)]
        never = _Kept("held")
        async with held_lease(
            never.take, never.keep, never.leave, ttl_s=0.003, timeout_s=1, renew=False
        ):
            await asyncio.sleep(0.02)
        assert never.kept == 0
        gone = _Kept(StoreError("gone", code="session_not_found"), "held")
        async with held_lease(
            gone.take, gone.keep, gone.leave, ttl_s=0.003, timeout_s=1, renew=True
        ):
            await asyncio.sleep(0.05)
        assert gone.kept == 1

    run(main())


WRONG: tuple[dict[str, Any], ...] = (
    {"ttl_s": 0},
    {"ttl_s": -1},
    {"ttl_s": math.nan},
    {"ttl_s": math.inf},
    {"ttl_s": "30"},
    {"ttl_s": None},
    {"timeout_s": -1},
    {"timeout_s": math.nan},
    {"timeout_s": "1"},
)


@pytest.mark.parametrize("place", ["memory", "sqlite", "postgres", "redis"])
def test_times_that_are_none_are_refused(tmp_path: Path, place: str) -> None:
    async def main() -> None:
        store = MemoryStore() if place == "memory" else open_store(places(tmp_path)[place]())
        name = secrets.token_hex(6)
        await store.open(name)
        for wrong in WRONG:
            with pytest.raises(InputError, match="must be"):
                await store.lease(name, **wrong).__aenter__()
        before = time.time()
        for life in (0, -1, math.nan, math.inf, 1e11, "5", True):
            with pytest.raises(InputError, match="must be"):
                await store.open(f"{name}-{life}", ttl_s=cast("float", life))
        with pytest.raises(StoreError, match="no such session"):
            await store.info(f"{name}-0")
        info = await store.open(name, ttl_s=1e10)
        assert info.expires_at is not None
        assert info.expires_at > before
        await store.delete(name)
        await store.close()

    run(main())
