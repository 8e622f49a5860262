"""Trials of stores: writers that are killed, servers that are killed, many writers at once.

Each takes a URL, raises ``AssertionError`` where a promise was broken, and says what it has done.
Run as a program, this file is one writer: it appends batches and says on its output which of them
were acknowledged.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import satchel
from satchel.stores import Entry, open_store

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.stores import SessionStore

__all__ = ["crowd", "kill_server", "kill_writers", "race"]

BATCH = 3
"""Entries of an append: they must stay together."""


def kill_writers(url: str, session_id: str, *, kills: int, seed: int) -> int:
    """Kills a writing process again and again; returns how many appends were acknowledged."""
    chance = random.Random(seed)  # noqa: S311 - for a trial
    acknowledged: dict[str, int] = {}
    for number in range(kills):
        writer = f"w{number}"
        process = _started(url, session_id, writer, count=1_000_000)
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first == "open\n", first
        time.sleep(chance.uniform(0.0, 0.06))
        process.kill()
        said = process.stdout.read().split()
        process.wait()
        process.stdout.close()
        # A last line may have been cut.
        acknowledged[writer] = max((int(one) for one in said[:-1]), default=-1) + 1
        if number % 20 == 0 or number == kills - 1:
            asyncio.run(_check(url, session_id, acknowledged, most_lost=2))
    return sum(acknowledged.values())


def kill_server(
    url: str,
    session_id: str,
    restart: Callable[[], object],
    *,
    kills: int,
    seed: int,
    pause_s: tuple[float, float] = (0.02, 0.3),
) -> int:
    """Kills and restarts the server while four tasks write; returns the number of appends.

    Stores send an append again whose answer was lost; so all are acknowledged, and none is there
    twice.
    """
    chance = random.Random(seed)  # noqa: S311 - for a trial
    done = threading.Event()

    async def write() -> dict[str, int]:
        store = open_store(url)
        await store.open(session_id)
        counts: dict[str, int] = {}

        async def one(writer: str, *, has_keys: bool) -> None:
            number = 0
            while not done.is_set():
                await store.append(session_id, _batch(writer, number, has_keys=has_keys))
                number += 1
            counts[writer] = number

        await asyncio.gather(*(one(f"t{task}", has_keys=task % 2 == 0) for task in range(4)))
        await store.close()
        return counts

    with ThreadPoolExecutor(1) as executor:
        # The writers, not the killer: a server ends with the thread that started it.
        writing = executor.submit(lambda: asyncio.run(write()))
        try:
            for _ in range(kills):
                time.sleep(chance.uniform(*pause_s))
                restart()
        finally:
            done.set()
        counts = writing.result()
    asyncio.run(_check(url, session_id, counts, most_lost=0))
    return sum(counts.values())


def crowd(url: str, session_id: str, *, processes: int, appends: int) -> None:
    """Several processes append to one session at once."""
    running = [
        _started(url, session_id, f"w{number}", count=appends) for number in range(processes)
    ]
    _finished(running)
    counts = {f"w{number}": appends for number in range(processes)}
    asyncio.run(_check(url, session_id, counts, most_lost=0))


def race(url: str, session_id: str, *, processes: int, versions: int) -> None:
    """Several processes write version after version; each version has one winner."""
    running = [
        _started(url, session_id, f"w{number}", count=versions, is_race=True)
        for number in range(processes)
    ]
    said = _finished(running)
    won = sorted(int(one) for lines in said for one in lines)
    assert won == list(range(versions)), f"{len(won)} wins of {versions} versions"

    async def check() -> None:
        store = open_store(url)
        entries = await store.read(session_id)
        await store.close()
        assert [entry.payload.split()[1] for entry in entries] == [
            b"%d" % version for version in range(versions)
        ]

    asyncio.run(check())


async def _check(url: str, session_id: str, counts: dict[str, int], *, most_lost: int) -> None:
    """Every acknowledged batch is there once, whole, and in its writer's order."""
    store = open_store(url)
    entries = await store.read(session_id)
    assert [entry.sequence for entry in entries] == list(range(1, len(entries) + 1))
    found: dict[str, list[int]] = defaultdict(list)
    for at in range(0, len(entries), BATCH):
        batch = entries[at : at + BATCH]
        words = [entry.payload.decode().split() for entry in batch]
        assert [word[2] for word in words] == [str(place) for place in range(BATCH)], words
        assert len({(word[0], word[1]) for word in words}) == 1, words
        found[words[0][0]].append(int(words[0][1]))
    for writer, count in counts.items():
        assert found[writer] == list(range(len(found[writer]))), f"{writer}: {found[writer]}"
        # What was sent and not answered may be there.
        assert count <= len(found[writer]) <= count + most_lost, (writer, count, found[writer])
    info = await store.append(session_id, [])
    assert info.length == len(entries)
    await store.close()


def _batch(writer: str, number: int, *, has_keys: bool) -> list[Entry]:
    return [
        Entry(
            "message",
            f"{writer} {number} {place} {'text ' * 20}".encode(),
            f"{writer}/{number}/{place}" if has_keys else None,
        )
        for place in range(BATCH)
    ]


def _started(
    url: str, session_id: str, writer: str, *, count: int, is_race: bool = False
) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, url, session_id, writer, str(count), str(int(is_race))]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this file


def _finished(running: Sequence[subprocess.Popen[str]]) -> list[list[str]]:
    said: list[list[str]] = []
    for process in running:
        out, _ = process.communicate(timeout=600)
        assert process.returncode == 0
        said.append(out.split()[1:])
    return said


async def _write(store: SessionStore, session_id: str, writer: str, count: int) -> None:
    for number in range(count):
        await store.append(session_id, _batch(writer, number, has_keys=number % 2 == 0))
        print(number, flush=True)  # noqa: T201 - the answer of this program


async def _race(store: SessionStore, session_id: str, writer: str, count: int) -> None:
    version = 0
    while version < count:
        entry = Entry("message", f"{writer} {version}".encode())
        try:
            await store.append(session_id, [entry], expected_version=version)
        except satchel.StoreError as error:
            if error.code != "version_conflict":
                raise
            version = (await store.info(session_id)).version
        else:
            print(version, flush=True)  # noqa: T201 - the answer of this program
            version += 1


async def main(url: str, session_id: str, writer: str, count: str, is_race: str) -> None:
    """One writer."""
    store = open_store(url)
    await store.open(session_id)
    print("open", flush=True)  # noqa: T201 - the answer of this program
    await (_race if int(is_race) else _write)(store, session_id, writer, int(count))
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
