"""The long run of the stores on servers: PostgreSQL and Valkey, killed in the middle of writes.

``python benches/python/soak_servers.py --kills 200`` starts both from wheels in temporary folders.
For each, `soak_stores` kills writing processes and lets others race. Then the server itself is
killed (``kill -9``) and started again while four tasks write. A store sends an append again whose
answer was lost, so every append is acknowledged in the end; each is there once, whole and in its
writer's order. The suite runs the same for a few kills (``test_server_crashes.py``).
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import secrets
import sys
import time
from collections import Counter, defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from threading import Event
from typing import TYPE_CHECKING, Final

import soak_stores
from satchel.stores import Entry, open_store

# Where the servers of the tests are.
sys.path.append(str(Path(__file__).parents[2] / "tests" / "python"))

from servers import PostgresServer, ValkeyServer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.stores import SessionStore

BATCH: Final = 3
"""Entries of an append: they must stay together."""

WRITERS: Final = 4

SERVERS: Final[dict[str, Callable[[], PostgresServer | ValkeyServer]]] = {
    "postgres": PostgresServer,
    "valkey": ValkeyServer,
}


def kill_server(server: PostgresServer | ValkeyServer, kills: int, seed: int) -> Counter[str]:
    """Kills and restarts the server again and again; returns what was counted.

    Raises:
        AssertionError: something acknowledged is lost, or something is there twice or half.
    """
    rng = Random(seed)  # noqa: S311 - not for secrets
    done: Counter[str] = Counter()
    for first in range(0, kills, 20):
        session_id = f"server-{secrets.token_hex(6)}"
        over = Event()
        with ThreadPoolExecutor(1) as executor:
            # The writers, not the killer: a server ends with the thread that started it.
            writing = executor.submit(lambda: asyncio.run(_write(server.url(), session_id, over)))
            try:
                for _ in range(first, min(kills, first + 20)):
                    time.sleep(0.02 + rng.random() * 0.3)
                    server.kill()
                    server.start()
                    done["server kills"] += 1
            finally:
                over.set()
            counts = writing.result()
        found = asyncio.run(_found(server.url(), session_id))
        wanted = {writer: list(range(count)) for writer, count in counts.items()}
        assert found == wanted, _difference(found, wanted)
        done["appends over kills"] += sum(counts.values())
    return done


def _difference(found: dict[str, list[int]], wanted: dict[str, list[int]]) -> str:
    """What is there too much and too little."""
    return "; ".join(
        f"{writer}: extra {sorted(set(found.get(writer, ())) - set(numbers))}, "
        f"missing {sorted(set(numbers) - set(found.get(writer, ())))}, "
        f"{len(found.get(writer, ()))} of {len(numbers)}"
        for writer, numbers in wanted.items()
    )


async def _write(url: str, session_id: str, over: Event) -> dict[str, int]:
    """How many appends of each writer were acknowledged."""
    store = open_store(url)
    await store.open(session_id)

    async def write(writer: str, *, has_keys: bool) -> int:
        number = 0
        while not over.is_set() or not number:
            await store.append(session_id, _batch(writer, number, has_keys=has_keys))
            number += 1
        return number

    names = [f"t{number}" for number in range(WRITERS)]
    counts = await asyncio.gather(
        *(write(name, has_keys=number % 2 == 0) for number, name in enumerate(names))
    )
    await store.close()
    return dict(zip(names, counts, strict=True))


def _batch(writer: str, number: int, *, has_keys: bool) -> list[Entry]:
    return [
        Entry(
            "message",
            f"{writer} {number} {part} {'text ' * 40}".encode(),
            f"{writer}/{number}/{part}" if has_keys else None,
        )
        for part in range(BATCH)
    ]


async def _found(url: str, session_id: str) -> dict[str, list[int]]:
    """The batches of each writer, in the order of the log."""
    store: SessionStore = open_store(url)
    log = await store.read(session_id)
    info = await store.info(session_id)
    await store.close()
    assert [entry.sequence for entry in log] == list(range(1, info.length + 1))
    found: defaultdict[str, list[int]] = defaultdict(list)
    for at in range(0, len(log), BATCH):
        rows: Sequence[list[str]] = [
            entry.payload.decode().split()[:3] for entry in log[at : at + BATCH]
        ]
        writer, number, _ = rows[0]
        assert rows == [[writer, number, str(part)] for part in range(BATCH)]
        found[writer].append(int(number))
    return dict(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--server", choices=SERVERS, help="only this one")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--appends", type=int, default=500)
    parser.add_argument("--calls", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    # Every connection that a killed server drops would be a line.
    logging.getLogger("psycopg").setLevel(logging.ERROR)
    for name in [chosen.server] if chosen.server else SERVERS:
        server = SERVERS[name]().start()
        begun = time.monotonic()
        try:
            done = soak_stores.crash(server.url(), chosen.kills, chosen.seed)
            done += kill_server(server, chosen.kills, chosen.seed)
            done += soak_stores.race(server.url(), chosen.processes, chosen.appends)
            done += soak_stores.race_for_versions(server.url(), chosen.processes, chosen.appends)
            done += soak_stores.race_with_tools(server.url(), chosen.processes, chosen.calls)
        finally:
            server.stop()
        figures = ", ".join(f"{name} {count:,}" for name, count in done.items())
        print(f"{name}: {figures}; {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
