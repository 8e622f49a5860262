"""The long run of the stores: writers that are killed, and writers that race.

``python benches/python/soak_stores.py --kills 200 --url sqlite:///soak.db`` starts writing
processes and kills them (``kill -9``) at random moments. After each kill every append that was
acknowledged is there, in order; of the one that was under way there is all or nothing; the next
one works. Then 8 processes write one session at once, 500 appends each: nothing is lost, doubled
or torn apart; with expected versions each version has one winner; and two halves of a tool call
that were appended one by one have nothing of another writer between them. ``--url`` may be given
several times; without it a temporary SQLite file is used. The suite runs the same for a few kills
and appends (``test_store_crashes.py``).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Final

import satchel
from satchel.errors import StoreError
from satchel.stores import Entry, open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.stores import SessionStore

SIZES: Final = (20, 800, 800, 5_000, 120_000)
"""Characters of payloads: small, usual, compressed, more than a page of a database."""


# --- what a writing process does ------------------------------------------------------------------


def say(*words: object) -> None:
    """Tells the parent; at once, since the process may be killed."""
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def payload(writer: str, batch: int, part: int, parts: int, rng: Random) -> bytes:
    """A payload that tells whether it is whole."""
    text = f"{rng.getrandbits(40):x} " * (rng.choice(SIZES) // 11 + 1)
    head = {"writer": writer, "batch": batch, "part": part, "parts": parts}
    return json.dumps({**head, "size": len(text), "text": text}).encode()


async def write_until_killed(store: SessionStore, session_id: str, first: int) -> None:
    """Appends batches and says of each that it was acknowledged."""
    rng = Random(first)  # noqa: S311 - not for secrets
    await store.open(session_id)
    batch = first
    while True:
        parts = rng.randrange(1, 4)
        given = [
            Entry("message", payload("w", batch, part, parts, rng), f"{batch}/{part}")
            for part in range(parts)
        ]
        await store.append(session_id, given)
        say("batch", batch)
        await store.put_value(session_id, "newest", b"%d" % batch)
        say("value", batch)
        batch += 1


async def write_many(store: SessionStore, session_id: str, writer: str, appends: int) -> None:
    """Appends single entries and pairs; the order is the writer's own."""
    for batch in range(appends):
        parts = 1 + batch % 2
        await store.append(
            session_id,
            [
                Entry("message", json.dumps([writer, batch, part, parts]).encode())
                for part in range(parts)
            ],
        )


async def win_versions(store: SessionStore, session_id: str, writer: str, most: int) -> None:
    """Writes whatever version it finds, until there are enough."""
    while True:
        version = (await store.info(session_id)).version
        if version >= most:
            return
        try:
            await store.append(
                session_id,
                [Entry("message", json.dumps([writer, version]).encode())],
                expected_version=version,
            )
        except StoreError as error:
            if error.code != "version_conflict":
                raise
        else:
            say("won", version)


async def call_tools(url: str, session_id: str, writer: str, calls: int) -> None:
    """Appends calls and, apart from them, their results."""
    async with satchel.open_session(url, session_id=session_id, model="gpt-4o") as session:
        for number in range(calls):
            name = f"{writer}-{number}"
            function = {"name": "look", "arguments": "{}"}
            call = {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": name, "type": "function", "function": function}],
            }
            while True:
                try:
                    await session.append([{"role": "user", "content": f"Ask {name}."}, call])
                    break
                except StoreError as error:
                    if error.code not in {"calls_pending", "version_conflict"}:
                        raise
                    await asyncio.sleep(0.002)
            await asyncio.sleep(0.002 * (number % 3))
            await session.append({"role": "tool", "tool_call_id": name, "content": "seen"})


async def child(arguments: Sequence[str]) -> None:
    """What a started process does."""
    work, url, session_id, writer, number = arguments
    if work == "call_tools":
        await call_tools(url, session_id, writer, int(number))
        return
    store = open_store(url)
    if work == "write_until_killed":
        await write_until_killed(store, session_id, int(number))
    elif work == "write_many":
        await write_many(store, session_id, writer, int(number))
    else:
        await win_versions(store, session_id, writer, int(number))
    await store.close()


def start(
    work: str, url: str, session_id: str, writer: str, number: int
) -> subprocess.Popen[bytes]:
    """A process that does it."""
    return subprocess.Popen(  # noqa: S603 - this file
        [sys.executable, __file__, "--child", work, url, session_id, writer, str(number)],
        stdout=subprocess.PIPE,
    )


# --- crashes --------------------------------------------------------------------------------------


def last_said(lines: bytes, word: str, before: int) -> int:
    """The newest number that was acknowledged."""
    said = [line.split() for line in lines.decode().splitlines()]
    return max([before, *(int(words[1]) for words in said if len(words) == 2 and words[0] == word)])


def batches_of(entries: Sequence[Entry]) -> list[int]:
    """The batches of a log, each of them whole.

    Raises:
        AssertionError: one is not.
    """
    found: list[int] = []
    waiting: list[tuple[int, int]] = []
    for place, entry in enumerate(entries, start=1):
        read = json.loads(entry.payload)
        assert entry.sequence == place
        assert len(read["text"]) == read["size"]
        if not waiting:
            waiting = [(read["batch"], part) for part in range(read["parts"])]
        assert (read["batch"], read["part"]) == waiting.pop(0)
        assert entry.key == f"{read['batch']}/{read['part']}"
        if not waiting:
            found.append(read["batch"])
    assert not waiting
    return found


async def look(url: str, session_id: str) -> tuple[list[int], int]:
    """The batches and the value of a session, as a new process would see them."""
    store = open_store(url)
    try:
        value = await store.get_value(session_id, "newest")
        return batches_of(await store.read(session_id)), -1 if value is None else int(value.payload)
    finally:
        await store.close()


def crash(url: str, kills: int, seed: int) -> Counter[str]:
    """Kills a writer again and again; returns what was counted.

    Raises:
        AssertionError: something acknowledged is lost, or something is half there.
    """
    rng = Random(seed)  # noqa: S311 - not for secrets
    done: Counter[str] = Counter()
    session_id, first, newest = "", 0, -1
    for kill in range(kills):
        if kill % 20 == 0:  # a log of a few hundred batches, then another
            session_id, first, newest = f"crash-{secrets.token_hex(6)}", 0, -1
        acknowledged, value = first - 1, newest
        writer = start("write_until_killed", url, session_id, "w", first)
        assert writer.stdout is not None
        head = writer.stdout.readline()  # it writes
        assert head, "the writer ended by itself"
        time.sleep(rng.random() ** 2 * 0.12)
        writer.send_signal(signal.SIGKILL)
        said = head + writer.stdout.read()
        writer.stdout.close()
        writer.wait()
        acknowledged = last_said(said, "batch", acknowledged)
        value = last_said(said, "value", value)
        batches, newest = asyncio.run(look(url, session_id))
        assert batches in (list(range(acknowledged + 1)), list(range(acknowledged + 2)))
        assert value <= newest <= len(batches) - 1
        done["kills"] += 1
        done["acknowledged"] += acknowledged + 1 - first
        done["finished without a word"] += len(batches) - acknowledged - 1
        first = len(batches)
    return done


# --- races ----------------------------------------------------------------------------------------


async def made(url: str, session_id: str) -> None:
    store = open_store(url)
    await store.open(session_id)
    await store.close()


async def entries_of(url: str, session_id: str) -> list[Entry]:
    store = open_store(url)
    try:
        return await store.read(session_id)
    finally:
        await store.close()


def together(work: str, url: str, session_id: str, processes: int, number: int) -> list[bytes]:
    """What the processes said."""
    started = [start(work, url, session_id, str(writer), number) for writer in range(processes)]
    said = [process.communicate()[0] for process in started]
    assert [process.returncode for process in started] == [0] * processes
    return said


def race(url: str, processes: int, appends: int) -> Counter[str]:
    """Appends of many processes to one session.

    Raises:
        AssertionError: one is lost, doubled, torn apart or out of its writer's order.
    """
    session_id = f"race-{secrets.token_hex(6)}"
    asyncio.run(made(url, session_id))
    together("write_many", url, session_id, processes, appends)
    log = asyncio.run(entries_of(url, session_id))
    found = [tuple(json.loads(entry.payload)) for entry in log]
    for writer in range(processes):
        own = [words[1:] for words in found if words[0] == str(writer)]
        assert own == [
            (batch, part, 1 + batch % 2)
            for batch in range(appends)
            for part in range(1 + batch % 2)
        ]
    for place, (writer, batch, part, _) in enumerate(found):
        if part:
            assert found[place - 1][:3] == (writer, batch, 0)
    assert [entry.sequence for entry in log] == list(range(1, len(found) + 1))
    return Counter({"raced appends": processes * appends})


def race_for_versions(url: str, processes: int, versions: int) -> Counter[str]:
    """Writers that each expect the newest version.

    Raises:
        AssertionError: a version has another number of winners than one.
    """
    session_id = f"versions-{secrets.token_hex(6)}"
    asyncio.run(made(url, session_id))
    said = together("win_versions", url, session_id, processes, versions)
    won = {
        writer: [int(line.split()[1]) for line in lines.splitlines()]
        for writer, lines in enumerate(said)
    }
    assert sorted(version for found in won.values() for version in found) == list(range(versions))
    log = [json.loads(entry.payload) for entry in asyncio.run(entries_of(url, session_id))]
    assert [version for _, version in log] == list(range(versions))
    assert all(version in won[int(writer)] for writer, version in log)
    return Counter({"versions": versions, "winners": sum(map(bool, won.values()))})


def race_with_tools(url: str, processes: int, calls: int) -> Counter[str]:
    """Agents that share a session.

    Raises:
        AssertionError: something stands between a call and its result.
    """
    session_id = f"tools-{secrets.token_hex(6)}"
    together("call_tools", url, session_id, processes, calls)
    log = asyncio.run(entries_of(url, session_id))
    messages: list[Any] = [json.loads(entry.payload) for entry in log if entry.kind == "message"]
    assert len(messages) == 3 * processes * calls
    for place in range(0, len(messages), 3):
        asked, call, result = messages[place : place + 3]
        name = call["tool_calls"][0]["id"]
        assert (asked["content"], result["tool_call_id"]) == (f"Ask {name}.", name)
    return Counter({"shared calls": processes * calls})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--url", action="append", help="a durable store; several may be given")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--appends", type=int, default=500)
    parser.add_argument("--calls", type=int, default=25)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        asyncio.run(child(chosen.child))
        return
    with tempfile.TemporaryDirectory(prefix="satchel-soak-") as folder:
        for url in chosen.url or [f"sqlite:///{Path(folder) / 'soak.db'}"]:
            begun = time.monotonic()
            done = crash(url, chosen.kills, chosen.seed)
            done += race(url, chosen.processes, chosen.appends)
            done += race_for_versions(url, chosen.processes, chosen.appends)
            done += race_with_tools(url, chosen.processes, chosen.calls)
            scheme = url.split(":", 1)[0]
            figures = ", ".join(f"{name} {count:,}" for name, count in done.items())
            print(f"{scheme}: {figures}; {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
