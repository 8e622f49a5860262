"""Rewriting and replaying many transcripts: on the cores of one machine, and over Ray on it.

As a script it prints one Markdown table, and leaves the page of the replay beside it::

    nice -n 10 python benches/python/bench_scale.py [--transcripts 10000] [--work NAME ...]
    nice -n 10 python benches/python/bench_scale.py --kill

The input is generated: transcripts of about 100 KB, from 10 to 210 messages, a hundred different
ones. Each line of the table is a process of its own. Peak memory is the process's own and, over
Ray, that of all processes together. Two cores, Ray with an object store of 200 MB on the same
machine: what a line over Ray takes longer is what Ray costs there. With ``--kill`` the rewrite is
done over Ray on two nodes of one worker each, of which one is killed in the middle, and the outputs
are compared with those of the local engine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from satchel import replay
from satchel.batch import forecast, rewrite
from satchel.testing import generate_history, require_release

if TYPE_CHECKING:
    from collections.abc import Callable

    from satchel.batch import Engine, Progress

MODEL = "gpt-4o"
BUDGET = "25%"
DIFFERENT = 100
CORES = 2
POLICIES = ("adaptive", "keep-last", "token-window")
STORE = 200_000_000
ENDS = ("", ".report.jsonl", ".rejects.jsonl")


def write_transcripts(path: Path, count: int) -> float:
    """Writes so many transcripts, a line each; returns megabytes."""
    lot = random.Random(11)  # noqa: S311 - a seeded input
    lines = [
        json.dumps({"messages": generate_history(round(lot.triangular(10, 210, 20)), seed=seed)})
        for seed in range(min(count, DIFFERENT))
    ]
    with path.open("w", encoding="utf-8") as file:
        for index in range(count):
            file.write(lines[index % len(lines)] + "\n")
    return path.stat().st_size / 1e6


# --- the work -------------------------------------------------------------------------------------


def run_rewrite(path: Path, engine: Engine) -> int:
    out = path.with_name(f"out-{engine}.jsonl")
    done = rewrite(path, out, model=MODEL, budget=BUDGET, engine=engine, threads=CORES)
    assert done.rejected == 0
    return done.conversations


def run_replay(path: Path, engine: Engine) -> int:
    found = replay.run(path, policies=POLICIES, budget=BUDGET, engine=engine, threads=CORES)
    path.with_name(f"page-{engine}.html").write_text(found.to_html(), encoding="utf-8")
    found.to_parquet(path.with_name(f"results-{engine}.parquet"))
    return len(found.runs) + len(found.skipped)


def run_forecast(path: Path) -> int:
    return round(forecast(path, model=MODEL, budget=BUDGET, threads=CORES).conversations.value)


WORK: dict[str, Callable[[Path], int]] = {
    "rewrite, local": lambda path: run_rewrite(path, "local"),
    "rewrite, Ray": lambda path: run_rewrite(path, "ray"),
    "forecast (--dry-run)": run_forecast,
    "replay, local": lambda path: run_replay(path, "local"),
    "replay, Ray": lambda path: run_replay(path, "ray"),
}


class Memory(threading.Thread):
    """The most memory of this process and of all that it started, asked twice a second.

    Proportional set size: what several processes share counts once.
    """

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = 0
        self.is_done = threading.Event()

    def run(self) -> None:
        """Asks until it is told that all is done."""
        psutil = import_module("psutil")
        own = psutil.Process()
        while not self.is_done.wait(0.5):
            total = 0
            for process in (own, *own.children(recursive=True)):
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:
                    continue
            self.most = max(self.most, total)


def child(what: str, path: Path) -> None:
    """One line of the table: transcripts, start-up, seconds, peak MB of this process and of all."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    began = time.monotonic()
    if "Ray" in what:
        start_ray()
    started = time.monotonic() - began
    memory = Memory()
    memory.start()
    began = time.monotonic()
    count = WORK[what](path)
    spent = time.monotonic() - began
    memory.is_done.set()
    memory.join()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if "Ray" in what:
        import_module("ray").shutdown()
    print(json.dumps([count, started, spent, peak, memory.most / 1e6]))


def start_ray() -> None:
    """A Ray of this program, as the library would start one; started here so that it is timed."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import_module("ray.data")
    import_module("ray").init(
        num_cpus=CORES,
        object_store_memory=STORE,
        include_dashboard=False,
        log_to_driver=False,
        logging_level="ERROR",
    )


def measured(what: str, path: Path) -> list[float]:
    done = subprocess.run(  # noqa: S603 - this file
        [sys.executable, __file__, "--child", what, str(path)],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    found: list[float] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- a lost worker --------------------------------------------------------------------------------


def digests(out: Path) -> list[str]:
    found = [out.with_name(out.name + end).read_bytes() for end in ENDS]
    return [hashlib.sha256(data).hexdigest() for data in found]


def print_kill(folder: Path, transcripts: int) -> None:
    """Rewrites over two nodes, of which one is killed in the middle."""
    path = folder / "in.jsonl"
    size = write_transcripts(path, transcripts)
    rewrite(path, folder / "local.jsonl", model=MODEL, budget=BUDGET)
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray: Any = import_module("ray")
    import_module("ray.data")
    nodes: Any = import_module("ray.cluster_utils")
    # The head only steers: both workers can be lost.
    cluster = nodes.Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "object_store_memory": STORE, "include_dashboard": False},
    )
    workers = [cluster.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2)]
    killed: list[int] = []

    def kill(progress: Progress) -> None:
        if not killed and progress.summary.conversations > transcripts // 3:
            killed.append(progress.summary.conversations)
            cluster.remove_node(workers[0], allow_graceful=False)

    try:
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        rewrite(
            path,
            folder / "ray.jsonl",
            model=MODEL,
            budget=BUDGET,
            engine="ray",
            progress=kill,
        )
    finally:
        ray.shutdown()
        cluster.shutdown()
    same = digests(folder / "local.jsonl") == digests(folder / "ray.jsonl")
    print(
        f"{transcripts:,} transcripts ({size:,.0f} MB) over two nodes, one killed after "
        f"{killed[0]:,}: {'the same bytes as' if same else 'NOT the bytes of'} the local engine"
    )
    assert same


def test_each_measure_once(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    write_transcripts(path, 4)
    for name, work in WORK.items():
        if "Ray" not in name:  # its own test has one cluster for all
            assert work(path) == 4
    assert digests(tmp_path / "out-local.jsonl")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--transcripts", type=int, default=10_000)
    options.add_argument("--work", nargs="*", default=list(WORK))
    options.add_argument(
        "--folder", type=Path, help="for the input and outputs; default: a new one"
    )
    options.add_argument("--kill", action="store_true")
    options.add_argument("--child", nargs=2)
    given = options.parse_args()
    if given.child:
        child(given.child[0], Path(given.child[1]))
        return
    require_release()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        if given.kill:
            print_kill(Path(folder), min(given.transcripts, 500))
            return
        path = Path(folder) / "in.jsonl"
        size = write_transcripts(path, given.transcripts)
        print(f"{given.transcripts:,} transcripts, {size:,.0f} MB\n")
        print("| work | start s | wall s | transcripts/s | MB/s | peak MB, driver | peak MB, all |")
        print("|---|---|---|---|---|---|---|", flush=True)
        for what in given.work:
            count, started, spent, peak, most = measured(what, path)
            print(
                f"| {what} | {started:.1f} | {spent:,.1f} | {count / spent:,.1f} "
                f"| {size / spent:.2f} | {peak:,.0f} | {most:,.0f} |",
                flush=True,
            )
        page = path.with_name("page-local.html")
        if page.exists():
            print(f"\npage: {page.stat().st_size / 1e6:.2f} MB")
            page.replace(
                Path("replay-page.html") if given.folder is None else given.folder / page.name
            )


if __name__ == "__main__":
    main()
