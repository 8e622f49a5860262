"""What rewriting stored conversations costs, beside counting them and a pipeline in plain Python.

As a script it prints one Markdown table; sizes in megabytes of JSON Lines::

    nice -n 10 python benches/python/bench_rewrite.py [--sizes 10 100 1000] [--long 200000]
    python benches/python/bench_rewrite.py --folder DIR

Each line is a process of its own: CPU time with all threads, wall time, peak memory. The input is
generated: conversations of 100 messages, about 1 KB a message. The pipeline parses each line, trims
it with LangChain's ``trim_messages`` counting by tiktoken, and writes it again. With a folder of
transcripts it instead writes all of them in every dialect at 25 % and lints every window again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rivals
import satchel
from satchel.testing import generate_history, iter_history, require_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BUDGET = 8_000
MODEL = "gpt-4o"
MESSAGES = 100
DIFFERENT = 200
DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")


def write_lines(path: Path, megabytes: float) -> int:
    """Writes conversations until the file is so large; returns how many."""
    lines = [
        json.dumps({"messages": generate_history(MESSAGES, seed=seed)}) for seed in range(DIFFERENT)
    ]
    count = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            file.write(lines[count % DIFFERENT] + "\n")
            count += 1
    return count


def write_long(path: Path, messages: int) -> None:
    """Writes one conversation of so many messages."""
    with path.open("w", encoding="utf-8") as file:
        for index, message in enumerate(iter_history(messages, seed=1)):
            file.write("[" if index == 0 else ",")
            file.write(json.dumps(message))
        file.write("]")


def texts_of(path: Path) -> Iterator[list[str]]:
    """The texts of each conversation: contents and arguments."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            messages: list[dict[str, Any]] = json.loads(line)["messages"]
            found = [text for message in messages if (text := message.get("content"))]
            calls = [call for message in messages for call in message.get("tool_calls") or ()]
            yield [*found, *(call["function"]["arguments"] for call in calls)]


def run_rewrite(path: Path, threads: int, policy: str) -> None:
    from satchel.batch import rewrite  # noqa: PLC0415 - not measured with its rivals

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        done = rewrite(
            path,
            Path(folder) / "out.jsonl",
            model=MODEL,
            budget=BUDGET,
            policy=policy,
            threads=threads,
        )
        assert done.rejected == 0
        assert done.tokens_after <= BUDGET * done.windows


def run_count(path: Path) -> float:
    """CPU seconds of counting alone; reading and parsing are not in it."""
    counter, spent, tokens = satchel.counter(MODEL), 0.0, 0
    for texts in texts_of(path):
        began = time.process_time()
        tokens += int(counter.count_many(texts).sum())
        spent += time.process_time() - began
    assert tokens
    return spent


def run_pipeline(path: Path) -> None:
    from langchain_core import messages as langchain  # noqa: PLC0415 - slow to load

    rival: Any = langchain

    encoding = rivals.encoding()

    def count(messages: list[Any]) -> int:
        total = 3
        for message in messages:
            total += 4 + len(encoding.encode_ordinary(str(message.content)))
            for call in getattr(message, "tool_calls", ()):
                total += len(encoding.encode_ordinary(json.dumps(call["args"])))
        return total

    out = path.with_suffix(".naive")
    with path.open(encoding="utf-8") as file, out.open("w", encoding="utf-8") as written:
        for line in file:
            messages = rival.convert_to_messages(json.loads(line)["messages"])
            kept: list[Any] = rival.trim_messages(
                messages,
                max_tokens=BUDGET,
                token_counter=count,
                strategy="last",
                include_system=True,
                start_on="human",
            )
            written.write(json.dumps({"messages": rival.convert_to_openai_messages(kept)}) + "\n")
    out.unlink()


def print_dialects(given: Path) -> None:
    """Writes a folder in every dialect at a quarter of its tokens; a row for each."""
    from satchel.batch import rewrite  # noqa: PLC0415 - not measured with its rivals

    print(
        "| dialect | windows | rejected | tokens before | after | errors before | in the output |"
    )
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        for target in DIALECTS:
            done = rewrite(given, out, model=MODEL, budget="25%", convert=target, restart=True)
            errors = 0
            with out.open(encoding="utf-8") as file:
                for record in map(json.loads, file):
                    found = satchel.lint(
                        record["messages"],
                        target,
                        system=record.get("system"),
                        tools=record.get("tools"),
                    )
                    errors += sum(one.severity == "error" for one in found)
            print(
                f"| {target} | {done.windows:,} | {done.rejected:,} | {done.tokens_before:,} "
                f"| {done.tokens_after:,} | {done.violations:,} | {errors:,} |",
                flush=True,
            )


WORK: dict[str, Callable[[Path], float | None]] = {
    "count": run_count,
    "rewrite-1": lambda path: run_rewrite(path, 1, "adaptive"),
    "rewrite-2": lambda path: run_rewrite(path, 2, "adaptive"),
    "token-window-1": lambda path: run_rewrite(path, 1, "token-window"),
    "pipeline": run_pipeline,
}


def measured(what: str, path: Path) -> tuple[float, float, float]:
    """CPU seconds, wall seconds and peak MB of a process of its own."""
    done = subprocess.run(  # noqa: S603 - this file
        [sys.executable, __file__, "--child", what, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    cpu, wall, peak = json.loads(done.stdout.splitlines()[-1])
    return cpu, wall, peak


def child(what: str, path: Path) -> None:
    if what != "rewrite-2":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    # What every run pays once: modules, vocabulary, the first line.
    satchel.counter(MODEL).count("warm")
    first = path.with_name(f"first-{what}.jsonl")
    with path.open(encoding="utf-8") as file:
        first.write_text(file.readline(), encoding="utf-8")
    WORK[what](first)
    first.unlink()
    cpu, wall = time.process_time(), time.monotonic()
    spent = WORK[what](path)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps([cpu if spent is None else spent, wall, peak]))


def test_each_measure_once(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    write_lines(path, 0.5)
    for name, work in WORK.items():
        work(path)
        assert name


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--sizes", type=float, nargs="*", default=[10.0])
    options.add_argument("--long", type=int, default=0)
    options.add_argument("--child", nargs=2)
    options.add_argument("--rivals", type=float, default=3.0)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    if given.folder:
        print_dialects(given.folder)
        return
    if given.child:
        child(given.child[0], Path(given.child[1]))
        return
    require_release()
    print("| work | MB | conversations | CPU s | MB/s of CPU | wall s | peak MB |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.jsonl"

        def line(what: str, count: int) -> None:
            size = path.stat().st_size / 1e6
            cpu, wall, peak = measured(what, path)
            print(
                f"| {what} | {size:,.1f} | {count:,} | {cpu:.2f} | {size / cpu:.2f} | {wall:.2f} "
                f"| {peak:,.0f} |",
                flush=True,
            )

        count = write_lines(path, given.rivals)
        for what in WORK:
            line(what, count)
        for size in given.sizes:
            count = write_lines(path, size)
            line("rewrite-2", count)
        if given.long:
            write_long(path, given.long)
            line("rewrite-1", 1)


if __name__ == "__main__":
    main()
