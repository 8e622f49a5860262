"""Ray Data as an engine: rows are read on some workers, worked on by others, and come in order.

What is read and what is done with a row are picklable functions from bytes to bytes; this module
knows nothing else of them. A read task streams its rows in blocks. Ray Data holds both stages back
when its object store fills up or the caller is slow, and runs the tasks of a lost worker again.
Order is that of the readers, whatever finishes first.

A row may be what kills its workers, by its memory or by a fault in native code. Ray's own retries
are bounded here; when they are used up, the next rows are done one by one, each in a task of its
own, until the one is found that cannot be done, and the error names it. If none is, work goes on as
before.
"""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from contextlib import closing, contextmanager
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from satchel._remote import without_query
from satchel.errors import EngineError, InputError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

__all__ = ["Reader", "Work", "in_order", "named", "needed_ray", "sent"]

_READ_CPUS: Final = 0.25
"""Share of a core that is set aside for a read task. Not 1: reading is cheap, and Ray Data would
run two stages with equal demands as one task, a whole file at a time."""

_CORES_A_READER: Final = 16
"""Cores that one read task keeps busy."""

_STORE: Final = 200 << 20
"""Bytes of the object store of a Ray that is started here. Blocks are at most a few megabytes."""

_RETRIES: Final = 4
"""How often Ray does a task again whose worker was lost."""

_TRIES: Final = 3
"""How often a single row is tried when workers were lost over and over."""

_CAREFUL: Final = 32
"""Rows that are done one by one then."""

Block = Any
"""A ``pyarrow.Table``: the column ``row``, and ``reader``, whose row it is; it has no types."""


class _Done(NamedTuple):
    """How far the rows are done: all of the readers before this one, and so many of its own."""

    reader: int = 0
    rows: int = 0


class Reader(Protocol):
    """Reads rows. Pickles."""

    def __call__(self) -> Iterator[bytes]:
        """The rows, the same and in the same order each time."""
        ...

    def told(self) -> str:
        """What it reads, for an error."""
        ...


class Work(Protocol):
    """What is done with a row. Pickles."""

    def __call__(self, row: bytes, /) -> bytes:
        """What becomes of the row."""
        ...

    def told(self, row: bytes, /) -> str:
        """What the row is, for an error."""
        ...


def needed_ray() -> Any:  # noqa: ANN401 - an optional package
    """The package ray, its part for data loaded.

    Raises:
        ImportError: it is not installed; the sentence names the extra.
    """
    # Without it Ray repeats for ever what its memory monitor has ended. Read when it is loaded.
    os.environ.setdefault("RAY_task_oom_retries", str(_RETRIES))
    try:
        with _quiet():
            import_module("ray.data.exceptions")
            return import_module("ray")
    except ImportError as error:
        message = "engine='ray' needs Ray Data: install satchel with its extra, satchel[ray]"
        raise ImportError(message, name=error.name) from error


def in_order(
    readers: Sequence[Reader], work: Work, *, tasks: int | None, block_bytes: int
) -> Iterator[bytes]:
    """What ``work`` makes of the rows of all readers, in their order.

    Args:
        readers: each reads some rows, in a task of its own.
        work: is done with each row, in any task.
        tasks: how many tasks work at once; default: as many as the cluster has cores for.
        block_bytes: rows go to a task together until they have so many bytes.

    Raises:
        EngineError: ``engine_failed`` if Ray gave up, or if a row lost every worker that had it.
        InputError: ``invalid_value`` if ``work`` cannot be pickled.
        ImportError: Ray Data is not installed.
    """
    ray = needed_ray()
    if not readers:
        return
    packed = sent(work)
    done = _Done()
    with _cluster(ray, tasks), _context(ray, block_bytes):
        careful = False
        while True:
            rows: Iterator[tuple[int, bytes]]
            if careful:
                rows = islice(_one_by_one(ray, readers, work, done), _CAREFUL)
            else:
                rows = _streamed(ray, readers, packed, done, tasks)
            at_once = 0
            try:
                for place, row in rows:
                    done = _Done(place, done.rows + 1 if place == done.reader else 1)
                    at_once += 1
                    yield row
            except _lost(ray):
                careful = True
            except (
                ray.exceptions.RayError,
                ray.data.exceptions.ExecutionTimeoutError,
                ray.data.exceptions.SystemException,
            ) as error:
                message = f"Ray gave up: {type(error).__name__}"
                raise EngineError(message, code="engine_failed") from error
            else:
                if not careful or at_once < _CAREFUL:
                    return
                careful = False


def _lost(ray: Any) -> tuple[type[Exception], ...]:  # noqa: ANN401 - an optional package
    """What Ray raises where a worker was lost too often."""
    known = ray.exceptions
    return (
        known.WorkerCrashedError,
        known.OutOfMemoryError,
        known.NodeDiedError,
        known.ObjectLostError,
    )


def _streamed(
    ray: Any,  # noqa: ANN401 - an optional package
    readers: Sequence[Reader],
    work: bytes,
    done: _Done,
    tasks: int | None,
) -> Iterator[tuple[int, bytes]]:
    """The rows that are not done yet, each with the number of its reader."""
    with _quiet():
        batches = iter(
            _rows(ray, readers, work, done, tasks).iter_batches(
                batch_size=None, batch_format="pyarrow", prefetch_batches=1
            )
        )
        batch = next(batches, None)
    while batch is not None:
        for place, row in zip(batch.column("reader"), batch.column("row"), strict=True):
            yield place.as_py(), row.as_py()
        batch = next(batches, None)


def _one_by_one(
    ray: Any,  # noqa: ANN401 - an optional package
    readers: Sequence[Reader],
    work: Work,
    done: _Done,
) -> Iterator[tuple[int, bytes]]:
    """The same rows, each in a task of its own.

    Raises:
        EngineError: ``engine_failed``: the row that lost its worker each time, by name.
    """
    packed = sent(work)
    task = ray.remote(num_cpus=1, max_retries=0)(_done)
    for place in range(done.reader, len(readers)):
        reader = readers[place]
        skip = done.rows if place == done.reader else 0
        with closing(_read_alone(ray, reader, skip)) as rows:
            for row in rows:
                for tried in range(1, _TRIES + 1):
                    try:
                        yield place, ray.get(task.remote(packed, row))
                        break
                    except _lost(ray) as error:
                        if tried == _TRIES:
                            raise _killer(work.told(row), error) from error


def _read_alone(ray: Any, reader: Reader, skip: int) -> Generator[bytes]:  # noqa: ANN401 - as above
    """The rows of a reader behind the first ``skip``, read in a task of their own.

    Raises:
        EngineError: ``engine_failed``: reading lost its worker each time.
    """
    task = ray.remote(
        num_cpus=_READ_CPUS,
        max_retries=0,
        num_returns="streaming",
        _generator_backpressure_num_objects=2,
    )(_read_rows)
    packed = pickle.dumps(reader)
    failed = 0
    while True:
        found = task.remote(packed, skip)
        try:
            for one in found:
                row = ray.get(one)
                skip += 1
                yield row
        except _lost(ray) as error:
            failed += 1
            if failed == _TRIES:
                raise _killer(reader.told(), error) from error
        else:
            return
        finally:
            ray.cancel(found)


def _killer(what: str, error: Exception) -> EngineError:
    message = f"{what}: every worker that had it was lost ({type(error).__name__})"
    return EngineError(message, code="engine_failed")


def named(files: Sequence[str]) -> str:
    """Files as an error names them: the first, and how many more."""
    more = len(files) - 1
    return f"{without_query(files[0])}{f' and {more:,} more files' if more else ''}"


def sent(value: object) -> bytes:
    """A value as it is sent to other processes.

    Raises:
        InputError: ``invalid_value`` if it cannot be.
    """
    try:
        return pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        message = "the options hold something that cannot be sent to another process"
        raise InputError(message, code="invalid_value") from error


def _rows(
    ray: Any,  # noqa: ANN401 - an optional package
    readers: Sequence[Reader],
    work: bytes,
    done: _Done,
    tasks: int | None,
) -> Any:  # noqa: ANN401 - a Dataset
    data = ray.data
    cores = int(ray.cluster_resources().get("CPU", 1))
    items = [
        {
            "row": pickle.dumps(readers[place]),
            "reader": place,
            "skip": done.rows if place == done.reader else 0,
        }
        for place in range(done.reader, len(readers))
    ]
    read = data.from_items(items, override_num_blocks=len(items)).map_batches(
        _read,
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=_READ_CPUS,
        compute=data.TaskPoolStrategy(size=min(len(items), max(2, cores // _CORES_A_READER))),
        max_retries=_RETRIES,
    )
    return read.map_batches(
        _worked,
        fn_args=(work,),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=1,
        compute=data.TaskPoolStrategy(size=tasks),
        max_retries=_RETRIES,
    )


@contextmanager
def _cluster(ray: Any, tasks: int | None) -> Generator[None]:  # noqa: ANN401 - an optional package
    """The cluster that the program is connected to, the one of ``RAY_ADDRESS``, or one made here.

    What is made or connected to here ends here.
    """
    if ray.is_initialized():
        yield
        return
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if not os.environ.get("RAY_ADDRESS"):
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        quiet |= {"include_dashboard": False, "object_store_memory": _STORE, "num_cpus": tasks}
    try:
        with _quiet():
            ray.init(**quiet)
    except (ConnectionError, RuntimeError) as error:
        message = "no connection to the Ray cluster"
        raise EngineError(message, code="engine_failed") from error
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _context(ray: Any, block_bytes: int) -> Generator[None]:  # noqa: ANN401 - an optional package
    """The settings of one run; those of the program stay as they are."""
    kind = ray.data.DataContext
    with _quiet():
        context = kind.get_current().copy()
    context.execution_options.preserve_order = True
    context.target_max_block_size = block_bytes
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    log = logging.getLogger("ray.data")
    before = log.level
    log.setLevel(logging.ERROR)
    try:
        with kind.current(context):
            yield
    finally:
        log.setLevel(before)


@contextmanager
def _quiet() -> Generator[None]:
    """Without Ray's warnings about its own inside, which nobody here can change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# --- in tasks -------------------------------------------------------------------------------------


def _read(block: Block) -> Iterator[Block]:
    """The rows of the readers of a block, one by one; Ray Data puts them together."""
    for given in block.to_pylist():
        for row in _read_rows(given["row"], given["skip"]):
            yield _block([given["reader"]], [row])


def _worked(block: Block, work: bytes) -> Block:
    do: Work = pickle.loads(work)  # noqa: S301 - pickled by this run
    rows = [do(row.as_py()) for row in block.column("row")]
    return _block(block.column("reader").to_pylist(), rows)


def _block(readers: list[int], rows: list[bytes]) -> Block:
    arrow: Any = import_module("pyarrow")
    columns = {
        "reader": arrow.array(readers, arrow.int64()),
        "row": arrow.array(rows, arrow.large_binary()),
    }
    return arrow.table(columns)


def _read_rows(reader: bytes, skip: int) -> Iterator[bytes]:
    read: Reader = pickle.loads(reader)  # noqa: S301 - pickled by this run
    # Ray sends to this generator, which an islice does not take.
    for row in islice(read(), skip, None):  # noqa: UP028 - see above
        yield row


def _done(work: bytes, row: bytes) -> bytes:
    do: Work = pickle.loads(work)  # noqa: S301 - pickled by this run
    return do(row)
