"""What leaves a session's window by a summary goes through extraction first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel import _core
from satchel.memory.extraction import extract_memories
from satchel.memory.findings import Said
from satchel.memory.rendering import without_fences

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from satchel.compaction import SummaryPart
    from satchel.memory.extraction import ExtractionSettings, Extractor
    from satchel.memory.store import Memory
    from satchel.summarize.writing import Written

__all__ = ["flush_to", "said_of"]


def said_of(messages: Sequence[object], dialect: str, *, first: int = 0) -> list[Said]:
    """What users and assistants say in messages, without calls, results and fenced memories.

    Args:
        messages: a part of a history.
        dialect: theirs.
        first: raw index of the first of them.
    """
    found: list[Said] = []
    for index, message in enumerate(messages, first):
        row = _core.describe_message(message, dialect)
        texts = [
            without_fences(bytes(part["page"]).decode("utf-8", "replace"))
            for part in row["parts"]
            if part["kind"] == "text"
        ]
        text = "\n".join(one for one in texts if one)
        if text and row["role"] == "user":
            found.append(Said(role="user", text=text, index=index))
        elif text and row["role"] in {"assistant", "model"}:
            found.append(Said(role="assistant", text=text, index=index))
    return found


def flush_to(
    memory: Memory,
    namespace: Sequence[str],
    *,
    extractor: Extractor | None = None,
    settings: ExtractionSettings | None = None,
    session_id: str | None = None,
    user_id: str | None = None,
) -> Callable[[SummaryPart, Written], Awaitable[None]]:
    """For ``flushed=`` of `satchel.open_session`: extracts from each part that a summary covers.

    Arguments and errors are those of `extract_memories`.
    """

    async def flushed(part: SummaryPart, _written: Written) -> None:
        await extract_memories(
            memory,
            namespace,
            said_of(part.messages, part.dialect, first=part.first),
            extractor=extractor,
            settings=settings,
            session_id=session_id,
            user_id=user_id,
        )

    return flushed
