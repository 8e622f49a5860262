"""Rewrites that are killed at random and go on: the same bytes as without.

As a script it kills runs until there were so many kills of each kind of input and output, compares
every output that gets finished, and prints one Markdown table::

    nice -n 10 python benches/python/bench_rewrite_kills.py [--kills 20] [--megabytes 8] [--seed 1]

A kill is SIGKILL to the process of the command, at a time drawn evenly from the length of an
uninterrupted run, wherever that is: loading, reading, working, writing, renaming.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from satchel.batch.arrow import needed
from satchel.testing import generate_history

RUN: Final = """
import sys
from satchel.batch import rewrite
rewrite(sys.argv[1], sys.argv[2], model="gpt-4o", budget=6000, pages=sys.argv[2] + ".pages.jsonl")
"""
ENDS: Final = ("", ".report.jsonl", ".rejects.jsonl", ".pages.jsonl")


class Case(NamedTuple):
    """A kind of input, and of output."""

    given: str
    ending: str


CASES: Final = (
    Case("in.jsonl", "jsonl"),
    Case("in.jsonl.gz", "parquet"),
    Case("in.parquet", "parquet"),
    Case("folder", "jsonl"),
)


def write_inputs(folder: Path, megabytes: float) -> None:
    """The same conversations as JSON Lines, gzip, Parquet and a folder; some lines are broken."""
    lines: list[str] = []
    size = 0
    for seed in count():
        if size > megabytes * 1e6:
            break
        line = json.dumps({"messages": generate_history(60, seed=seed)})
        lines.append('{"messages": [{"role"' if seed % 9 == 4 else line)
        size += len(lines[-1]) + 1
    text = "\n".join(lines) + "\n"
    (folder / "in.jsonl").write_text(text, encoding="utf-8")
    (folder / "in.jsonl.gz").write_bytes(gzip.compress(text.encode()))
    arrow: Any = needed("Parquet")
    table = arrow.table({"messages": lines})
    import_module("pyarrow.parquet").write_table(table, folder / "in.parquet")
    (folder / "folder").mkdir()
    for index, line in enumerate(lines):
        (folder / "folder" / f"{index:04}.json").write_text(line, encoding="utf-8")


def started(given: Path, out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-c", RUN, str(given), str(out)], stderr=subprocess.PIPE
    )


def outputs(out: Path) -> list[bytes]:
    return [Path(f"{out}{end}").read_bytes() for end in ENDS]


def soak(folder: Path, case: Case, kills: int, rng: random.Random) -> tuple[int, int, float]:
    """Kills so many runs; returns kills, finished outputs that were compared, seconds of a run."""
    given, out = folder / case.given, folder / f"out.{case.ending}"
    began = time.monotonic()
    whole = started(given, out)
    _, said = whole.communicate()
    assert whole.returncode == 0, said
    length = time.monotonic() - began
    wanted = outputs(out)
    killed = compared = 0
    while killed < kills or not compared:
        for end in ENDS:
            Path(f"{out}{end}").unlink(missing_ok=True)
        while True:
            run = started(given, out)
            try:
                _, said = run.communicate(
                    timeout=rng.uniform(0, length) if killed < kills else None
                )
            except subprocess.TimeoutExpired:
                run.send_signal(signal.SIGKILL)
                run.communicate()
                killed += 1
                continue
            assert run.returncode == 0, said
            break
        assert outputs(out) == wanted, f"{case}: other bytes after {killed} kills"
        assert not list(folder.glob("*.part*")) + list(folder.glob("*.resume.json*"))
        compared += 1
    return killed, compared, length


def test_a_few_kills_of_each_kind(tmp_path: Path) -> None:
    write_inputs(tmp_path, 1.0)
    for case in CASES:
        killed, compared, _ = soak(tmp_path, case, 2, random.Random(1))  # noqa: S311 - the same kills
        assert killed >= 2
        assert compared


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--kills", type=int, default=20)
    options.add_argument("--megabytes", type=float, default=8.0)
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    print("| input | output | kills | outputs compared, all equal | s of an uninterrupted run |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, given.megabytes)
        rng = random.Random(given.seed)  # noqa: S311 - the same kills every time
        for case in CASES:
            killed, compared, length = soak(folder, case, given.kills, rng)
            print(
                f"| {case.given} | {case.ending} | {killed} | {compared} | {length:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
