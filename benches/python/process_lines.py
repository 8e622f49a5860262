"""What is measured in new processes: memory, import, the first count; and the wheel's size."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import rivals
from figures import Line, Samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from effort import Effort

__all__ = ["import_line", "memory_lines", "recorded_line", "start_lines", "wheel_line"]

ROOT = Path(__file__).resolve().parents[2]
MEMORY_PROBE = Path(__file__).with_name("memory_probe.py")
COUNT_PROBE = Path(__file__).with_name("count_probe.py")

ALLOWED_BYTES = 300
ALLOWED_SHARE = 0.05

_TEXT = "What's the weather like in San Francisco?"
_IMPORT = """
import sys, time
start = time.process_time()
import satchel
seconds = time.process_time() - start
heavy = [name for name in ("numpy", "pydantic", "tiktoken", "satchel._core") if name in sys.modules]
print(seconds, *heavy)
"""
_FIRST_COUNT = f"import satchel; print(satchel.counter('o200k_base').count({_TEXT!r}))"
_TIKTOKEN = (
    f"import tiktoken; print(len(tiktoken.get_encoding('o200k_base').encode_ordinary({_TEXT!r})))"
)


def _output(arguments: list[str]) -> str:
    run = subprocess.run(  # noqa: S603 - our own interpreter on our own files
        [sys.executable, *arguments], check=True, capture_output=True, text=True
    )
    return run.stdout


def memory_lines(effort: Effort) -> list[Line]:
    """Memory beside the caller's messages: of n messages, and its growth to 2n."""
    lines: list[Line] = []
    for kind in ("ASCII", "Korean", "tools"):
        n = effort.memory_messages
        small = json.loads(_output([str(MEMORY_PROBE), kind, str(n)]))
        large = json.loads(_output([str(MEMORY_PROBE), kind, str(2 * n)]))
        growth = large["bytes"] - small["bytes"]
        for what, size, used, text in (
            (f"{2 * n:,} messages", 2 * n, large["bytes"], large["text"]),
            (f"growth from {n:,} to {2 * n:,}", n, growth, large["text"] - small["text"]),
        ):
            allowed = ALLOWED_BYTES * size + ALLOWED_SHARE * text
            lines.append(
                Line(
                    f"memory/{kind}/{'growth' if 'growth' in what else 'all'}",
                    f"memory beside the messages: {kind}, {what}",
                    Samples("bytes a message", (used / size,)),
                    f"{ALLOWED_BYTES} bytes + {ALLOWED_SHARE:.0%} of the text",
                    Samples("bytes a message", (allowed / size,)),
                    note=f"{used / text:.0%} of the text, {text / size:,.0f} bytes a message",
                )
            )
    return lines


def import_line(effort: Effort) -> Line:
    """``import satchel`` alone."""
    seconds: list[float] = []
    loaded: list[str] = []
    for _ in range(effort.processes):
        first, *loaded = _output(["-c", _IMPORT]).split()
        seconds.append(float(first))
        assert not {"numpy", "pydantic", "tiktoken"} & set(loaded)
    return Line(
        "import",
        "import satchel",
        Samples.of_seconds("ms", seconds),
        note=f"numpy, pydantic, tiktoken not loaded; also loaded: {' '.join(loaded) or 'nothing'}",
    )


def _process_seconds(code: str, environment: Mapping[str, str]) -> tuple[float, str]:
    """CPU seconds of a whole process, the interpreter's start included; and what it printed."""
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=dict(environment)
    ) as process:
        assert process.stdout is not None
        printed = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime, printed


def start_lines(effort: Effort) -> list[Line]:
    """A new process up to its first exact count, beside tiktoken."""
    environment = {**os.environ, "TIKTOKEN_CACHE_DIR": str(rivals.vocabulary_folder())}
    seconds: dict[str, list[float]] = {"pass": [], _FIRST_COUNT: [], _TIKTOKEN: []}
    for repetition in range(effort.processes + 1):
        printed: dict[str, str] = {}
        for code, found in seconds.items():
            spent, printed[code] = _process_seconds(code, environment)
            if repetition > 0:  # the first repetition writes byte code and warms the disk
                found.append(spent)
        assert int(printed[_FIRST_COUNT]) == int(printed[_TIKTOKEN]) > 0
    bare = Samples.of_seconds("ms", seconds["pass"])
    return [
        Line(
            "start/tiktoken",
            "new process: import and first exact count",
            Samples.of_seconds("ms", seconds[_FIRST_COUNT]),
            "tiktoken",
            Samples.of_seconds("ms", seconds[_TIKTOKEN]),
            note=f"whole process; the bare interpreter takes {bare.median:.0f} ms of it",
        )
    ]


def recorded_line(effort: Effort) -> Line:
    """Counting the shipped transcripts, each text once in a process that knows no word yet."""
    ours: list[float] = []
    theirs: list[float] = []
    size = 0
    for _ in range(effort.processes):
        found = json.loads(_output([str(COUNT_PROBE)]))
        size = found["bytes"]
        ours.append(size / found["ours"] / 1e6)
        theirs.append(size / found["theirs"] / 1e6)
    return Line(
        "count/recorded/tiktoken",
        "count: shipped transcripts, once in a new process",
        Samples("MB/s", tuple(ours)),
        "tiktoken",
        Samples("MB/s", tuple(theirs)),
        less_is_better=False,
        note=f"{size / 1e3:,.0f} KB, no word seen before",
    )


def wheel_line() -> Line:
    """The release wheel; built first, unless nothing changed since."""
    make = ["make", "--no-print-directory", "wheel"]
    subprocess.run(make, cwd=ROOT, check=True, capture_output=True)  # noqa: S603 - our own Makefile
    wheel = max((ROOT / "dist").glob("satchel-*.whl"), key=lambda path: path.stat().st_mtime)
    return Line(
        "wheel", "release wheel", Samples("MB", (wheel.stat().st_size / 1e6,)), note=wheel.name
    )
