"""The engine ``ray`` of a replay: runs are read on some workers and replayed on the others."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from satchel._ray import in_order, named
from satchel._remote import size_of
from satchel.batch.ray_units import groups
from satchel.errors import SatchelError
from satchel.reading import TranscriptWarning
from satchel.replay.sampling import sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from satchel.reading import Format, Transcript
    from satchel.replay.options import Settings
    from satchel.replay.outcome import RunResult, Skipped
    from satchel.replay.sampling import Sample

__all__ = ["ray_runs"]

_LEAST = 1 << 16
_MOST = 1 << 20
_TASKS = 256

OnError = Literal["raise", "skip"]


@dataclass(frozen=True, slots=True)
class _Row:
    """What comes out of a reader, and later out of the work: one of the first four, and bytes.

    ``file`` is the number of the file.
    """

    run: Transcript | None = None
    found: RunResult | Skipped | None = None
    warning: str | None = None
    error: SatchelError | None = None
    bytes_read: int = 0
    file: int = 0


def ray_runs(
    files: Sequence[str],
    settings: Settings,
    *,
    file_format: Format | Literal["auto"],
    on_error: OnError,
    sample: Sample | None,
    tasks: int | None,
    count_bytes: Callable[[int], None],
) -> Generator[tuple[int, RunResult | Skipped]]:
    """What the replay of each run found, in the order of the files; and the number of its file.

    Raises:
        InputError: with ``on_error="raise"`` what is wrong with the first file that is.
        EngineError: ``engine_failed`` if Ray gave up.
    """
    listed = list(files)
    readers = [
        _Reader(tuple(listed[first:end]), first, file_format, on_error, sample)
        for first, end in groups(listed, 0)
    ]
    block = min(_MOST, max(_LEAST, sum(size_of(file) for file in listed) // _TASKS))
    for told in in_order(readers, _Work(settings), tasks=tasks, block_bytes=block):
        row: _Row = pickle.loads(told)  # noqa: S301 - pickled by this run
        count_bytes(row.bytes_read)
        if row.error is not None:
            raise row.error
        if row.warning is not None:
            warnings.warn(row.warning, TranscriptWarning, stacklevel=2)
        if row.found is not None:
            yield row.file, row.found


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the runs of some of the files; ``first`` is the number of the first among all."""

    files: tuple[str, ...]
    first: int
    file_format: Format | Literal["auto"]
    on_error: OnError
    sample: Sample | None

    def __call__(self) -> Iterator[bytes]:
        read: list[int] = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            runs = sampled(
                self.files,
                self.sample,
                file_format=self.file_format,
                on_error=self.on_error,
                on_read=read.append,
                first=self.first,
            )
            try:
                for file, run in runs:
                    yield from _warnings(caught)
                    yield pickle.dumps(_Row(run=run, bytes_read=_taken(read), file=file))
            except SatchelError as error:
                yield pickle.dumps(_Row(error=error))
            yield from _warnings(caught)
            yield pickle.dumps(_Row(bytes_read=_taken(read)))

    def told(self) -> str:
        """The files."""
        return named(self.files)


def _warnings(caught: list[warnings.WarningMessage]) -> Iterator[bytes]:
    for one in caught:
        if issubclass(one.category, TranscriptWarning):
            yield pickle.dumps(_Row(warning=str(one.message)))
    caught.clear()


def _taken(read: list[int]) -> int:
    total = sum(read)
    read.clear()
    return total


@dataclass(frozen=True, slots=True)
class _Work:
    """Replays the run of a row."""

    settings: Settings

    def __call__(self, told: bytes) -> bytes:
        from satchel.replay.running import replayed  # noqa: PLC0415 - imports this module

        row: _Row = pickle.loads(told)  # noqa: S301 - pickled by this run
        if row.run is None:
            return told
        _, found = replayed(row.run, self.settings)
        return pickle.dumps(_Row(found=found, bytes_read=row.bytes_read, file=row.file))

    def told(self, row: bytes) -> str:
        """The run, by its place."""
        run = pickle.loads(row).run  # noqa: S301 - pickled by this run
        return "what was read" if run is None else f"{run.source}, conversation {run.index + 1:,}"
