"""Prints, as JSON, the CPU seconds that counting recorded texts takes: ours, tiktoken's, bytes.

Started by ``process_lines.py`` in a process of its own: every text of the shipped transcripts is
counted once, so that no cache knows its words.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import rivals
import satchel
import texts
from figures import cpu_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
LEAST_CHARS = 20  # below are roles, types and ids


def strings(value: object) -> Iterator[str]:
    """The texts inside a JSON value."""
    if isinstance(value, str):
        if len(value) >= LEAST_CHARS:
            yield value
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from strings(item)
    elif isinstance(value, dict):
        for item in cast("dict[str, object]", value).values():
            yield from strings(item)


def recorded() -> list[str]:
    """Every text of the shipped transcripts, once."""
    found: dict[str, None] = {}
    for path in sorted(DATA.glob("*.json*")):
        written = path.read_text(encoding="utf-8")
        for document in [written] if path.suffix == ".json" else written.splitlines():
            found.update(dict.fromkeys(strings(json.loads(document))))
    return list(found)


def main() -> None:
    rivals.encoding()
    found = recorded()
    # Each side has strings of its own, see `texts` and README.md.
    for_us: list[str] = json.loads(json.dumps(found))
    count = satchel.counter("o200k_base").count
    counts: list[int] = []
    ours = cpu_seconds(lambda: counts.append(sum(count(text) for text in for_us)))
    theirs = cpu_seconds(lambda: counts.append(rivals.count_alone(found)))
    assert counts[0] == counts[1] > 0
    print(json.dumps({"ours": ours, "theirs": theirs, "bytes": texts.total_bytes(list(found))}))


if __name__ == "__main__":
    main()
