"""All backends rank alike: the same ten for the same question, on the recall benchmark's talk."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import pytest

from memory_stores import BACKENDS, memory_of, room
from recall_set import conversations

if TYPE_CHECKING:
    from pathlib import Path

    from satchel import Memory

TALKS = conversations()[::6]
LEAST_ALIKE = 0.95


async def tens(memory: Memory) -> list[list[int | None]]:
    """For each question, the messages that are recalled."""
    found: list[list[int | None]] = []
    tenant = room()
    for number, talk in enumerate(TALKS):
        where = (tenant, str(number))
        turns = [
            {"text": text, "session_id": f"s{session}", "message": place}
            for place, (text, session) in enumerate(zip(talk.turns, talk.sessions, strict=True))
        ]
        # In pieces, as a conversation comes.
        for start in range(0, len(turns), 150):
            await memory.remember(where, turns[start : start + 150])
        for question in talk.questions:
            hits = await memory.recall(where, question.text, k=10)
            found.append([hit.item.source.message for hit in hits])
    return found


async def tens_of(backend: str, folder: Path) -> list[list[int | None]]:
    async with memory_of(backend, folder) as memory:
        return await tens(memory)


@pytest.mark.parametrize("backend", BACKENDS[1:])
def test_the_same_ten(backend: str, tmp_path: Path) -> None:
    expected = asyncio.run(tens_of("memory", tmp_path))
    found = asyncio.run(tens_of(backend, tmp_path))
    assert len(found) == sum(len(talk.questions) for talk in TALKS)
    alike = sum(one == other for one, other in zip(found, expected, strict=True))
    assert alike >= LEAST_ALIKE * len(expected), f"{alike} of {len(expected)} on {sys.platform}"
