"""Ray Data as an engine: rows are read on some workers, worked on by others, and come in order.

What is read and what is done with a row are picklable functions from bytes to bytes; this module
knows nothing else of them. A read task streams its rows in blocks. Ray Data holds both stages back
when its object store fills up or the caller is slow, and runs the tasks of a lost worker again.
Order is that of the readers, whatever finishes first.
"""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from satchel.errors import EngineError, InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

__all__ = ["Reader", "Work", "in_order", "needed_ray", "sent"]

_READ_CPUS: Final = 0.25
"""Share of a core that is set aside for a read task. Not 1: reading is cheap, and Ray Data would
run two stages with equal demands as one task, a whole file at a time."""

_CORES_A_READER: Final = 16
"""Cores that one read task keeps busy."""

_STORE: Final = 200 << 20
"""Bytes of the object store of a Ray that is started here. Blocks are at most a few megabytes."""

Reader: TypeAlias = "Callable[[], Iterator[bytes]]"
Work: TypeAlias = "Callable[[bytes], bytes]"
Block: TypeAlias = Any
"""A ``pyarrow.Table`` with the one column ``row``; pyarrow comes without types."""


def needed_ray() -> Any:  # noqa: ANN401 - an optional package
    """The package ray, its part for data loaded.

    Raises:
        ImportError: it is not installed; the sentence names the extra.
    """
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
        EngineError: ``engine_failed`` if Ray gave up.
        InputError: ``invalid_value`` if ``work`` cannot be pickled.
        ImportError: Ray Data is not installed.
    """
    ray = needed_ray()
    if not readers:
        return
    packed = sent(work)
    with _cluster(ray, tasks), _context(ray, block_bytes):
        try:
            with _quiet():
                batches = iter(
                    _rows(ray, readers, packed, tasks).iter_batches(
                        batch_size=None, batch_format="pyarrow", prefetch_batches=1
                    )
                )
                batch = next(batches, None)
            while batch is not None:
                for row in batch.column("row"):
                    yield row.as_py()
                batch = next(batches, None)
        except (
            ray.exceptions.RayError,
            ray.data.exceptions.ExecutionTimeoutError,
            ray.data.exceptions.SystemException,
        ) as error:
            message = f"Ray gave up: {type(error).__name__}"
            raise EngineError(message, code="engine_failed") from error


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


def _rows(ray: Any, readers: Sequence[Reader], work: bytes, tasks: int | None) -> Any:  # noqa: ANN401 - a Dataset
    data = ray.data
    cores = int(ray.cluster_resources().get("CPU", 1))
    items = [{"row": pickle.dumps(reader)} for reader in readers]
    read = data.from_items(items, override_num_blocks=len(items)).map_batches(
        _read,
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=_READ_CPUS,
        compute=data.TaskPoolStrategy(size=min(len(items), max(2, cores // _CORES_A_READER))),
    )
    return read.map_batches(
        _worked,
        fn_args=(work,),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=1,
        compute=data.TaskPoolStrategy(size=tasks),
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
    for reader in block.column("row"):
        for row in pickle.loads(reader.as_py())():  # noqa: S301 - pickled by this run
            yield _block([row])


def _worked(block: Block, work: bytes) -> Block:
    do: Work = pickle.loads(work)  # noqa: S301 - pickled by this run
    return _block([do(row.as_py()) for row in block.column("row")])


def _block(rows: list[bytes]) -> Block:
    arrow: Any = import_module("pyarrow")
    return arrow.table({"row": arrow.array(rows, arrow.large_binary())})
