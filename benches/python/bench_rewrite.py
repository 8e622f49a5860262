"""What rewriting stored conversations costs, beside counting them and a pipeline in plain Python.

As a script it prints one Markdown table; sizes in megabytes of JSON Lines::

    nice -n 10 python benches/python/bench_rewrite.py [--sizes 10 100 1000] [--long 200000]
    python benches/python/bench_rewrite.py --cores [--sizes 100 400] [--rounds 9]
    python benches/python/bench_rewrite.py --memory [--sizes 10 1000] [--long 200000]
    python benches/python/bench_rewrite.py --folder DIR

Each line is a process of its own: CPU time with all threads, wall time, peak memory. The input is
generated: conversations of 100 messages, about 1 KB a message. The pipeline parses each line, trims
it with LangChain's ``trim_messages`` counting by tiktoken, and writes it again.

``--cores`` sets one core (the process bound to it, one thread) against two, the rounds taking
turns; beside that, two such processes at once on a core each, which is what the machine can give,
and the pipeline, which has one core whatever the machine has.
``--memory`` measures ``token-window`` on files of many conversations and on a single long one. With
a folder of transcripts it instead writes all of them in every dialect at 25 % and lints every
window again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import rivals
import satchel
from satchel.testing import generate_chat, generate_history, iter_history, require_release

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pytest

BUDGET = 8_000
MODEL = "gpt-4o"
MESSAGES = 100
DIFFERENT = 200
LONG = 200_000
DIALECTS = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")


def write_lines(path: Path, megabytes: float) -> int:
    """Writes conversations until the file is so large; returns how many."""
    lines: list[str] = []
    count = 0
    with path.open("w", encoding="utf-8") as file:
        while file.tell() < megabytes * 1e6:
            if count < DIFFERENT:
                history = generate_history(MESSAGES, seed=count)
                lines.append(json.dumps({"messages": history}) + "\n")
            file.write(lines[count % DIFFERENT])
            count += 1
    return count


def write_long(path: Path, messages: Iterable[Any], *, by_line: bool = False) -> None:
    """Writes one conversation: a list, or a message a line."""
    before, between, after = ("", "\n", "\n") if by_line else ("[", ",", "]")
    with path.open("w", encoding="utf-8") as file:
        for index, message in enumerate(messages):
            file.write(between if index else before)
            file.write(json.dumps(message))
        file.write(after)


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
    "adaptive-1": lambda path: run_rewrite(path, 1, "adaptive"),
    "adaptive-2": lambda path: run_rewrite(path, 2, "adaptive"),
    "token-window-1": lambda path: run_rewrite(path, 1, "token-window"),
    "token-window-2": lambda path: run_rewrite(path, 2, "token-window"),
    "pipeline": run_pipeline,
}


def measured_at_once(whats: list[str], path: Path) -> list[tuple[float, float, float]]:
    """CPU seconds, wall seconds and peak MB of processes of their own, on a core each."""
    runs = [
        subprocess.Popen(  # noqa: S603 - this file
            [sys.executable, __file__, "--child", what, str(path), "--core", str(core)],
            stdout=subprocess.PIPE,
            text=True,
        )
        for core, what in enumerate(whats)
    ]
    said = [run.communicate()[0] for run in runs]
    assert not any(run.returncode for run in runs)
    found = [json.loads(text.splitlines()[-1]) for text in said]
    return [(cpu, wall, peak) for cpu, wall, peak in found]


def measured(what: str, path: Path) -> tuple[float, float, float]:
    """The same of one process."""
    return measured_at_once([what], path)[0]


def child(what: str, path: Path, core: int) -> None:
    if not what.endswith("-2"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[core % len(cores)]})
    # What every run pays once: modules, vocabulary, a first conversation.
    satchel.counter(MODEL).count("warm")
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        first = Path(folder) / "first.jsonl"
        write_lines(first, 0.001)
        WORK[what](first)
    cpu, wall = time.process_time(), time.monotonic()
    spent = WORK[what](path)
    cpu, wall = time.process_time() - cpu, time.monotonic() - wall
    print(json.dumps([cpu if spent is None else spent, wall, peak_mb()]))


def peak_mb() -> float:
    """Most memory of this process so far; unlike `resource`, nothing of the one that began it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    [line] = [line for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(line.split()[1]) / 1024


# --- tables ---------------------------------------------------------------------------------------


def print_cores(path: Path, rounds: int, policies: tuple[str, ...]) -> None:
    """A row for each policy: medians of so many rounds, in which all measures take turns."""
    size = path.stat().st_size / 1e6
    cpu: dict[str, list[float]] = {"count": []}
    wall: dict[str, list[float]] = {}
    for _ in range(rounds):
        cpu["count"].append(measured("count", path)[0])
        for policy in policies:
            one, two = f"{policy}-1", f"{policy}-2"
            for what in (one, two):
                spent, took, _ = measured(what, path)
                cpu.setdefault(what, []).append(spent)
                wall.setdefault(what, []).append(took)
            beside = measured_at_once([one, one], path)
            wall.setdefault(policy, []).append(max(took for _, took, _ in beside))
    counting = statistics.median(cpu["count"])
    # Once is enough: it takes as long as many rounds of the others.
    _, piped, _ = measured("pipeline", path)
    for policy in policies:
        one, two = f"{policy}-1", f"{policy}-2"
        alone, both = statistics.median(wall[one]), statistics.median(wall[two])
        apart = statistics.median(wall[policy])
        spent = statistics.median(cpu[one])
        spread = f"{min(wall[one]):.2f} to {max(wall[one]):.2f}"
        spread_two = f"{min(wall[two]):.2f} to {max(wall[two]):.2f}"
        print(
            f"| {policy} | {size:,.0f} | {alone:.2f} ({spread}) | {both:.2f} ({spread_two}) "
            f"| {alone / both:.2f} | {2 * alone / apart:.2f} | {spent:.2f} "
            f"| {statistics.median(cpu[two]):.2f} | {counting / spent:.0%} "
            f"| {piped:.1f} | {piped / both:.0f} x |",
            flush=True,
        )


CORES_HEAD = """\
| policy | MB | one core, wall s | two cores, wall s | times as fast | two runs at once \
| CPU s on one | on two | speed of counting | plain pipeline, wall s | two cores beside it |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""

MEMORY_HEAD = """\
| input | policy | MB | messages | CPU s | CPU for 1 MB | peak memory |
|---|---|--:|--:|--:|--:|--:|"""


def print_memory(path: Path, sizes: list[float], long: int) -> None:
    """A row for each input: files of so many megabytes, one conversation of so many messages."""

    def row(name: str, messages: int, policy: str = "token-window") -> None:
        size = path.stat().st_size / 1e6
        cpu, _, peak = measured(f"{policy}-1", path)
        print(
            f"| {name} | {policy} | {size:,.0f} | {messages:,} | {cpu:.2f} s "
            f"| {1000 * cpu / size:.0f} ms | {peak:,.0f} MB |",
            flush=True,
        )

    for size in sizes:
        count = write_lines(path, size)
        row(f"JSON Lines, {count:,} conversations", count * MESSAGES)
    write_long(path, generate_chat(long))
    row("one conversation, plain", long)
    write_long(path, iter_history(long, seed=1, result_chars=400))
    row("one conversation, tool results of 400 characters", long)
    row("the same", long, "adaptive")
    write_long(path, iter_history(long, seed=1))
    row("one conversation, tool results of up to 40 KB", long)
    write_long(path, iter_history(long, seed=1), by_line=True)
    row("the same, a message a line", long)


def test_each_measure_once(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    write_lines(path, 0.5)
    for name, work in WORK.items():
        work(path)
        assert name


def test_the_tables_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "in.jsonl"
    write_lines(path, 0.2)
    print_cores(path, 1, ("token-window",))
    print_memory(path, [0.2], 60)
    rows = capsys.readouterr().out.splitlines()
    assert [row.count("|") for row in rows] == [12, *[8] * 6]


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--sizes", type=float, nargs="*", default=[10.0])
    options.add_argument("--long", type=int, default=0)
    options.add_argument("--cores", action="store_true")
    options.add_argument("--memory", action="store_true")
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--child", nargs=2)
    options.add_argument("--core", type=int, default=0)
    options.add_argument("--rivals", type=float, default=3.0)
    options.add_argument("--folder", type=Path)
    given = options.parse_args()
    if given.folder:
        print_dialects(given.folder)
        return
    if given.child:
        child(given.child[0], Path(given.child[1]), given.core)
        return
    require_release()
    if given.cores or given.memory:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "in.jsonl"
            print(CORES_HEAD if given.cores else MEMORY_HEAD)
            if given.memory:
                print_memory(path, given.sizes, given.long or LONG)
            for size in given.sizes if given.cores else ():
                write_lines(path, size)
                print_cores(path, given.rounds, ("token-window", "adaptive"))
        return
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
            line("adaptive-2", count)
        if given.long:
            write_long(path, iter_history(given.long, seed=1))
            line("adaptive-1", 1)


if __name__ == "__main__":
    main()
