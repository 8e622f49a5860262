"""Prints, as JSON, the resident memory that a working set adds to the caller's own messages.

Started by ``process_lines.py`` in a process of its own: ``memory_probe.py KIND MESSAGES``.
"""

from __future__ import annotations

import ctypes
import gc
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import satchel
from satchel._fragments import Texts, near
from satchel.testing import generate_history

BUDGET = 32_000
CHARS = 400


def make(kind: str, count: int) -> list[dict[str, Any]]:
    """Messages whose text is all ASCII, all Korean, or an agent's history with tools."""
    if kind == "tools":
        return generate_history(count, seed=3, result_chars=CHARS)
    rng, texts = Random(3), Texts(3)  # noqa: S311 - not for secrets
    source = "korean" if kind == "Korean" else "prose"
    found: list[dict[str, Any]] = []
    while len(found) < count:
        text = texts.make(rng, source, near(rng, CHARS), 256)
        if kind == "Korean" or text.isascii():
            found.append({"role": "assistant" if len(found) & 1 else "user", "content": text})
    return found


def text_bytes(message: dict[str, Any]) -> int:
    """Bytes that Python's own strings of content and arguments hold, their headers apart."""
    texts = [message["content"] or ""]
    texts += [call["function"]["arguments"] for call in message.get("tool_calls", ())]
    empty = sys.getsizeof("")
    return sum(max(0, sys.getsizeof(text) - empty) for text in texts)


def resident() -> int:
    """Bytes of this process in memory, after giving free memory back."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4_096


def main() -> None:
    kind, count = sys.argv[1], int(sys.argv[2])
    messages = make(kind, count)
    text = sum(text_bytes(message) for message in messages)
    assembler = satchel.Assembler("gpt-4o", budget=BUDGET)
    # What is loaded once (vocabulary, classes, modules) does not belong to the messages.
    assembler.assemble(make(kind, 300), open_calls="synthesize")
    before = resident()
    working_set = assembler.working_set(messages)
    window = working_set.window(open_calls="synthesize")
    after = resident()
    assert len(working_set) == count
    assert window.tokens <= BUDGET
    print(json.dumps({"bytes": after - before, "messages": count, "text": text}))


if __name__ == "__main__":
    main()
