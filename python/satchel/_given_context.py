"""What a caller brings to a window beside the history: memories and a summary, as events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from satchel._arguments import invalid, listed, name_of_type, plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from satchel.counting import Counter

__all__ = ["MEMORY_PART", "given_events"]

MEMORY_PART: Final = 5
"""Memories may take one part in so many of the budget, unless the caller says otherwise."""

_FENCE_TOKENS: Final = 8
"""Tokens of an entry beside its text: dash, brackets and line end, generously."""

_SUMMARY_KEYS: Final = frozenset(("kind", "at", "covers", "text", "receipts"))


def given_events(
    summary: Mapping[str, Any] | None, memories: object, counter: Counter, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """The events of what a caller brings to a window, and how many memories do not fit.

    Args:
        summary: a mapping with ``covers`` (first raw index, one past the last), ``text`` and
            perhaps ``receipts``; or such an event; None for none.
        memories: what recall gave, memory items, texts, or mappings with ``text`` and perhaps
            ``source``; most important first.
        counter: what counts.
        limit: most tokens of all memories. One that would go beyond it is left out, the next may
            fit.

    Raises:
        InputError: ``invalid_value`` for anything else.
    """
    events = [] if summary is None else [_summary_event(summary)]
    entries = _entries(memories)
    kept = _fitting(entries, counter, limit)
    if kept:
        events.append({"kind": "memories", "items": kept, "language": _language(kept)})
    return events, len(entries) - len(kept)


def _entries(given: object) -> list[dict[str, str]]:
    items = listed("memories", cast("Iterable[object]", given), of="items or texts")
    return [_entry(f"memories[{number}]", one) for number, one in enumerate(items)]


def _entry(name: str, one: object) -> dict[str, str]:
    if isinstance(one, str):
        return {"text": plain_text(name, one), "source": ""}
    if isinstance(one, Mapping):
        fields = cast("Mapping[str, object]", one)
        text = plain_text(f"{name} text", fields.get("text"))
        return {"text": text, "source": plain_text(f"{name} source", fields.get("source", ""))}
    from satchel.memory.item import MemoryItem  # noqa: PLC0415 - who has no memory needs none of it
    from satchel.memory.rendering import entry_label  # noqa: PLC0415 - likewise

    item = getattr(one, "item", one)
    if isinstance(item, MemoryItem):
        return {"text": item.text, "source": entry_label(item)}
    message = f"{name} must be a memory item, a text or a mapping, not {name_of_type(one)}"
    raise invalid(message)


def _language(entries: Sequence[Mapping[str, str]]) -> str:
    """The language of the note on them: Korean, if all of them are."""
    is_korean = (any("가" <= char <= "힣" for char in entry["text"]) for entry in entries)
    return "ko" if all(is_korean) else "en"


def _fitting(
    entries: Sequence[dict[str, str]], counter: Counter, limit: int
) -> list[dict[str, str]]:
    kept: list[dict[str, str]] = []
    room = limit
    for entry in entries:
        tokens = counter.count(entry["text"]) + counter.count(entry["source"]) + _FENCE_TOKENS
        if tokens <= room:
            kept.append(entry)
            room -= tokens
    return kept


def _summary_event(summary: object) -> dict[str, Any]:
    if not isinstance(summary, Mapping):
        message = f"summary must be a mapping with covers and text, not {name_of_type(summary)}"
        raise invalid(message)
    fields = dict(cast("Mapping[str, object]", summary))
    unknown = sorted(str(key) for key in fields.keys() - _SUMMARY_KEYS)
    if unknown or not {"covers", "text"} <= fields.keys():
        message = "summary must have covers and text, and perhaps receipts"
        raise invalid(message)
    plain_text("summary text", fields["text"])
    return {**fields, "kind": "summary"}
