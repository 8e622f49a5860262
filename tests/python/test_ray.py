"""The engine Ray Data: the same bytes and figures as on one machine, whatever is lost on the way.

One small cluster of two workers for the whole module.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import warnings
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel import models
from satchel._ray import in_order
from satchel.batch import Progress, Summary, rewrite
from satchel.errors import EngineError, InputError
from satchel.reading import TranscriptWarning
from satchel.replay import run
from satchel.testing import generate_history

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytest.importorskip("ray.data", reason="Ray is not installed")
psutil: Any = pytest.importorskip("psutil")

ENDS = ("", ".report.jsonl", ".rejects.jsonl", ".pages.jsonl")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Generator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Workers find this module, for what it has them do.
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(Path(__file__).parent), before)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's about itself
        ray: Any = import_module("ray")
        import_module("ray.data")
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=200_000_000,
            log_to_driver=False,
            logging_level="ERROR",
        )
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before
        yield ray
        ray.shutdown()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lines with broken ones between, a whole file, one that is damaged."""
    made = tmp_path_factory.mktemp("runs")
    histories = [generate_history(30, seed=seed) for seed in range(8)]
    with (made / "a.jsonl").open("w", encoding="utf-8") as file:
        for index in range(28):
            file.write(json.dumps({"messages": histories[index % 8]}) + "\n")
            if index % 9 == 4:
                file.write('{"messages": [{"role"\n')
    (made / "b.json").write_text(json.dumps(generate_history(40, seed=9)), encoding="utf-8")
    (made / "c.jsonl.gz").write_bytes(b"\x1f\x8b\x08\x00 and no more")
    return made


def written(folder: Path, out: Path, **options: Any) -> tuple[Summary, list[bytes]]:
    pages = out.with_name(out.name + ".pages.jsonl")
    done = rewrite(folder, out, model="gpt-4o", budget="25%", pages=pages, **options)
    return done, [out.with_name(out.name + end).read_bytes() for end in ENDS]


class Killer(threading.Thread):
    """Kills workers that it finds in the middle of their work: the first, or so many."""

    def __init__(self, most: int = 1) -> None:
        super().__init__(daemon=True)
        self.most = most
        self.killed: list[int] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        while len(self.killed) < self.most and not self.is_over.wait(0.02):
            for process in psutil.process_iter(["cmdline"]):
                line = " ".join(process.info["cmdline"] or ())
                if line.startswith(("ray::MapBatches(_worked)", "ray::_done")) and _is_ours(
                    process
                ):
                    process.kill()
                    self.killed.append(process.pid)
                    break


def _is_ours(process: Any) -> bool:
    """Whether a process belongs to the cluster of this test."""
    try:
        return os.getpid() in {parent.pid for parent in process.parents()}
    except psutil.Error:
        return False


def test_the_same_bytes_although_a_worker_is_killed(folder: Path, tmp_path: Path) -> None:
    told: list[Progress] = []
    here, local = written(folder, tmp_path / "local.jsonl", threads=1)
    killer = Killer()
    killer.start()
    there, over_ray = written(folder, tmp_path / "ray.jsonl", engine="ray", progress=told.append)
    killer.is_over.set()
    killer.join()
    assert killer.killed
    assert there == here
    assert here.rejected == 4
    assert over_ray == local
    assert told[-1].summary.bytes_read <= told[-1].bytes_total
    assert told[-1].summary.conversations == here.conversations


# --- what loses every worker ----------------------------------------------------------------------


@dataclass(frozen=True)
class Numbers:
    """Rows of a reader: so many numbers; it may end its process before one of them."""

    first: int
    count: int
    deadly: int = -1

    def __call__(self) -> Iterator[bytes]:
        for number in range(self.first, self.first + self.count):
            if number == self.deadly:
                os.kill(os.getpid(), signal.SIGKILL)
            yield str(number).encode()

    def told(self) -> str:
        return f"numbers from {self.first}"


@dataclass(frozen=True)
class Doubled:
    """Doubles a number; one of them ends the process that has it, always or only so often."""

    deadly: int
    folder: str = ""
    most: int = 0

    def __call__(self, row: bytes) -> bytes:
        if int(row) == self.deadly and self._ends():
            os.abort()
        return str(2 * int(row)).encode()

    def told(self, row: bytes) -> str:
        return f"number {row.decode()}"

    def _ends(self) -> bool:
        if not self.folder:
            return True
        with Path(self.folder, "tries").open("ab+") as file:
            file.write(b".")
            return file.tell() <= self.most


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer tries: a new worker takes seconds."""
    monkeypatch.setattr("satchel._ray._RETRIES", 1)
    monkeypatch.setattr("satchel._ray._TRIES", 2)


def doubled(readers: list[Numbers], work: Doubled) -> tuple[list[int], str]:
    """What came of the rows, and why no more did."""
    found: list[int] = []
    try:
        found.extend(map(int, in_order(readers, work, tasks=2, block_bytes=1)))
    except EngineError as error:
        return found, f"{error.code}, {error}"
    return found, ""


@pytest.mark.usefixtures("impatient")
def test_a_row_that_kills_every_worker_is_named() -> None:
    """Tried a bounded number of times; what stands before it is done."""
    readers = [Numbers(0, 40), Numbers(40, 60)]
    found, why = doubled(readers, Doubled(deadly=57))
    assert found == [2 * number for number in range(57)]
    assert why == "engine_failed, number 57: every worker that had it was lost (WorkerCrashedError)"


@pytest.mark.usefixtures("impatient")
def test_reading_that_kills_every_worker_is_named() -> None:
    found, why = doubled([Numbers(0, 10), Numbers(10, 10, deadly=13)], Doubled(deadly=-1))
    # What was read just before may be lost with its reader.
    assert 0 < len(found) <= 13
    assert found == [2 * number for number in range(len(found))]
    assert (
        why
        == "engine_failed, numbers from 10: every worker that had it was lost (WorkerCrashedError)"
    )


@pytest.mark.usefixtures("impatient")
def test_workers_that_are_lost_over_and_over_only_take_time(tmp_path: Path) -> None:
    """More often than Ray tries, but not for ever: every row once, in order."""
    work = Doubled(deadly=33, folder=str(tmp_path), most=3)
    found, why = doubled([Numbers(0, 50), Numbers(50, 50)], work)
    assert (tmp_path / "tries").stat().st_size == 4
    assert (found, why) == ([2 * number for number in range(100)], "")


@pytest.mark.usefixtures("impatient")
def test_a_rewrite_that_loses_every_worker_says_where(folder: Path, tmp_path: Path) -> None:
    _, expected = written(folder, tmp_path / "local.jsonl")
    out = tmp_path / "out.jsonl"
    killer = Killer(most=10_000)
    killer.start()
    with pytest.raises(
        EngineError, match=r"a\.jsonl, lines [\d,]+ to [\d,]+: every worker"
    ) as caught:
        written(folder, out, engine="ray")
    killer.is_over.set()
    killer.join()
    assert caught.value.code == "engine_failed"
    assert 3 <= len(killer.killed) < 40
    assert not out.exists()
    _, found = written(folder, out, engine="ray")  # goes on
    assert found == expected


# --- other ends -----------------------------------------------------------------------------------


def test_an_interrupted_run_goes_on_on_the_other_engine(folder: Path, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    def stop(_: Progress) -> None:
        raise StopError

    out = tmp_path / "out.jsonl"
    with pytest.raises(StopError):
        written(folder, out, engine="ray", progress=stop)
    assert not out.exists()
    done, found = written(folder, out)
    again, expected = written(folder, tmp_path / "whole.jsonl")
    assert (done, found) == (again, expected)


def test_parquet_pages_and_models_of_ones_own(folder: Path, tmp_path: Path) -> None:
    pq: Any = import_module("pyarrow.parquet")
    models.register("acme-ray", window=32_000, encoding="o200k_base")
    try:
        for engine in ("local", "ray"):
            rewrite(
                folder,
                tmp_path / f"{engine}.parquet",
                model="acme-ray",
                budget=3_000,
                engine=engine,
            )
    finally:
        models.unregister("acme-ray")
    local, there = (pq.ParquetFile(tmp_path / f"{name}.parquet") for name in ("local", "ray"))
    assert local.read() == there.read()
    assert local.num_row_groups == there.num_row_groups


def test_a_replay_finds_the_same_figures(folder: Path) -> None:
    options: dict[str, Any] = {"policies": ["adaptive", "keep-last"], "pictures": 2, "sample": 12}
    with pytest.warns(TranscriptWarning) as here:
        local = run(folder, **options)
    with pytest.warns(TranscriptWarning) as there:
        over_ray = run(folder, **options, engine="ray")
    assert over_ray.to_json() == local.to_json()
    assert over_ray.to_html() == local.to_html()
    assert sum(bool(one.sizes) for one in over_ray.runs) == 2
    assert {str(one.message) for one in there} == {str(one.message) for one in here}
    with pytest.raises(satchel.InputError, match="line"):
        run(folder / "a.jsonl", engine="ray", on_error="raise", policies="adaptive")


def test_what_cannot_be_sent_is_refused(folder: Path, tmp_path: Path) -> None:
    own = satchel.Counter(lambda text: len(text) // 4)
    with pytest.raises(InputError, match="sent"):
        rewrite(folder, tmp_path / "out.jsonl", model="gpt-4o", counter=own, engine="ray")
    wrong: Any = "abacus"
    with pytest.raises(InputError, match="engine"):
        rewrite(folder, tmp_path / "out.jsonl", model="gpt-4o", engine=wrong)


def test_a_failure_of_ray_is_typed(
    cluster: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: Any, **__: Any) -> Any:
        raise cluster.exceptions.RayError

    monkeypatch.setattr("satchel._ray._rows", lost)
    with pytest.raises(EngineError) as caught:
        rewrite(folder, tmp_path / "out.jsonl", model="gpt-4o", engine="ray")
    assert caught.value.code == "engine_failed"
