"""Reading a session of five megabytes beside `json.loads` of the same lines.

Inputs come from a fixed seed: a Claude Code session (a block a line, each result twice, as that
program writes it), and a conversation a line. `json.loads` parses every line and keeps the values,
which is less than reading: messages are still to be found, linked and merged. Run as a script it
prints CPU time (min / median / max) and the ratios; under pytest the same functions are
pytest-benchmark benches.
"""

from __future__ import annotations

import gc
import json
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.testing import generate_chat, require_release

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

SIZE = 5_000_000  # bytes
SMALL = 50_000
RUNS = 15

Rows = list[dict[str, Any]]


def session(size: int) -> str:
    """A session in which every reply makes one call."""
    random = Random(11)  # noqa: S311 - made-up texts
    words = ["harbour", "tide", "error:", "line", "0x3f", "조수", "low", "water", "\n", "  return"]
    lines: list[str] = []
    length = 0
    parent: str | None = None
    while length < size:
        at = len(lines)
        output = " ".join(random.choices(words, k=random.choice((20, 60, 200, 2_000))))
        call = f"toolu_{at}"
        use = {"type": "tool_use", "id": call, "name": "read", "input": {"path": f"a/{at}.txt"}}
        result = {"type": "tool_result", "tool_use_id": call, "content": output}
        usage = {"input_tokens": 3, "cache_read_input_tokens": at * 100, "output_tokens": 40}
        reply = {"role": "assistant", "id": f"msg_{at}", "model": "claude-sonnet-4-5"}
        for kind, message, extra in (
            ("assistant", {**reply, "content": [use], "usage": usage}, {}),
            ("user", {"role": "user", "content": [result]}, {"toolUseResult": {"stdout": output}}),
        ):
            uuid = f"{at:08x}-{kind}"
            record: dict[str, Any] = {
                "parentUuid": parent,
                "isSidechain": False,
                "sessionId": "5e55",
                **extra,
            }
            record |= {"type": kind, "message": message, "uuid": uuid}
            lines.append(json.dumps(record, ensure_ascii=False))
            length += len(lines[-1]) + 1
            parent = uuid
    return "\n".join(lines) + "\n"


def rows(size: int) -> str:
    """Conversations of twenty messages, one a line."""
    lines: list[str] = []
    length = 0
    while length < size:
        messages = generate_chat(20, seed=len(lines))
        lines.append(json.dumps({"model": "gpt-4o", "messages": messages}))
        length += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"


FILES: dict[str, Callable[[int], str]] = {"session": session, "rows": rows}


def loads(path: Path) -> Rows:
    with path.open("rb") as file:
        return [json.loads(line) for line in file]


def read(path: Path) -> list[satchel.Transcript]:
    return list(satchel.read_transcripts(path))


def check(name: str, path: Path) -> None:
    """What was read is what the lines say."""
    values, found = loads(path), read(path)
    if name == "rows":
        assert [transcript.messages for transcript in found] == [row["messages"] for row in values]
        return
    [transcript] = found
    assert transcript.messages == [
        {"role": row["type"], "content": row["message"]["content"]} for row in values
    ]


@pytest.mark.parametrize("side", ["satchel", "json.loads"])
@pytest.mark.parametrize("name", FILES)
def test_reading(name: str, side: str, benchmark: BenchmarkFixture, tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    path.write_text(FILES[name](SIZE if benchmark.enabled else SMALL), encoding="utf-8")
    check(name, path)
    work: Callable[[Path], object] = read if side == "satchel" else loads
    assert benchmark(work, path)


def timed(work: Callable[[], object]) -> float:
    gc.collect()
    begin = time.process_time()
    work()
    return time.process_time() - begin


def main() -> None:
    require_release()
    print(f"{'file':8} {'bytes':>9} {'json.loads ms':>22} {'read ms':>22} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for name, make in FILES.items():
            path = Path(folder) / f"{name}.jsonl"
            path.write_text(make(SIZE), encoding="utf-8")
            check(name, path)
            sides = (partial(loads, path), partial(read, path))
            pairs = [(timed(sides[0]), timed(sides[1])) for _ in range(RUNS)]
            columns = [sorted(pair[side] * 1_000 for pair in pairs) for side in (0, 1)]
            middle = [statistics.median(column) for column in columns]
            shown = [
                f"{column[0]:.1f} / {median:.1f} / {column[-1]:.1f}"
                for column, median in zip(columns, middle, strict=True)
            ]
            size = path.stat().st_size
            print(f"{name:8} {size:9,} {shown[0]:>22} {shown[1]:>22} {middle[1] / middle[0]:6.2f}")


if __name__ == "__main__":
    main()
