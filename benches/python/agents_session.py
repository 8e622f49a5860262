"""The OpenAI Agents SDK's ``SQLiteSession``, measured by an interpreter that has it.

Started by ``bench_stores.py``; imports nothing of satchel. Reads texts from a JSON file, prints
seconds as JSON.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def item(number: int, text: str) -> dict[str, str]:
    return {"role": "assistant" if number % 2 else "user", "content": text}


def size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("agents.db*"))


async def measure(folder: Path, texts: list[str], items: int) -> dict[str, Any]:
    kind: Any = importlib.import_module("agents").SQLiteSession
    session = kind("appends", folder / "agents.db")
    appends: list[float] = []
    for number, text in enumerate(texts):
        one = [item(number, text)]
        begun = time.perf_counter()
        await session.add_items(one)
        appends.append(time.perf_counter() - begun)
    session.close()
    size = size_of(folder)
    session = kind("long", folder / "agents.db")
    await session.add_items([item(number, texts[number % len(texts)]) for number in range(items)])
    loads: list[float] = []
    for _ in range(5):
        begun, cpu = time.perf_counter(), time.process_time()
        found = await session.get_items()
        loads.append(time.process_time() - cpu)
        assert len(found) == items, begun
    session.close()
    return {"appends": appends, "loads": loads, "bytes": size}


if __name__ == "__main__":
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    done = asyncio.run(measure(Path(sys.argv[2]), given["texts"], given["items"]))
    sys.stdout.write(json.dumps(done))
