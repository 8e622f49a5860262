"""The engine Ray Data: the same bytes and figures as on one machine, whatever is lost on the way.

One small cluster of two workers for the whole module.
"""

from __future__ import annotations

import json
import os
import threading
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel import models
from satchel.batch import Progress, Summary, rewrite
from satchel.errors import EngineError, InputError
from satchel.reading import TranscriptWarning
from satchel.replay import run
from satchel.testing import generate_history

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

pytest.importorskip("ray.data", reason="Ray is not installed")
psutil: Any = pytest.importorskip("psutil")

ENDS = ("", ".report.jsonl", ".rejects.jsonl", ".pages.jsonl")


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Generator[Any]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
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
    """Kills the first worker that it finds in the middle of its work."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.killed: list[int] = []
        self.is_over = threading.Event()

    def run(self) -> None:
        while not self.killed and not self.is_over.wait(0.02):
            for process in psutil.process_iter(["cmdline"]):
                line = " ".join(process.info["cmdline"] or ())
                if line.startswith("ray::MapBatches(_worked)") and _is_ours(process):
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
        raise cluster.exceptions.WorkerCrashedError

    monkeypatch.setattr("satchel._ray._rows", lost)
    with pytest.raises(EngineError) as caught:
        rewrite(folder, tmp_path / "out.jsonl", model="gpt-4o", engine="ray")
    assert caught.value.code == "engine_failed"
