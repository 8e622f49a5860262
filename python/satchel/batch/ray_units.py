"""The engine ``ray``: units are cut on some workers of a cluster and worked on by the others.

The cuts are those of one machine, so the outputs are too, and so is what an interrupted run goes on
from. Files must be readable by every worker.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, cast

from satchel import models
from satchel._ray import in_order, named, sent
from satchel._remote import size_of
from satchel.batch.options import settings
from satchel.batch.recorded import recording
from satchel.batch.units import Place, Unit, units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from satchel import _core
    from satchel.batch.recorded import Call
    from satchel.batch.units import Output

__all__ = ["groups", "ray_outputs"]

_GROUP: Final = 32 << 20
"""Bytes of files that one read task reads, at least."""

_LEAST: Final = 1 << 18
"""Bytes of a task, at least; smaller ones cost more to hand over than to do."""

_MOST: Final = 4 << 20
"""And at most."""

_TASKS: Final = 64
"""How many tasks there should be, so that all cores are busy to the end."""


def ray_outputs(
    files: list[str],
    place: Place,
    options: dict[str, Any],
    *,
    columns: bool,
    tasks: int | None,
) -> Iterator[tuple[Unit, Output]]:
    """The outputs of the units of these files from ``place`` on, in order.

    Args:
        files: paths or URLs.
        place: where to begin.
        options: those of `satchel.batch.options.settings`.
        columns: whether columns are wanted, not records.
        tasks: how many work at once.

    Raises:
        EngineError: ``engine_failed`` if Ray gave up.
    """
    readers = [
        _Reader(tuple(files[first:end]), first, place, options["file_format"], columns)
        for first, end in groups(files, place.file)
    ]
    work = _Work(sent((options, models.registered())))
    total = sum(size_of(file) for file in files[place.file :])
    block = min(_MOST, max(_LEAST, total // _TASKS))
    for row in in_order(readers, work, tasks=tasks, block_bytes=block):
        source, after, size, on_disk, output = pickle.loads(row)  # noqa: S301 - pickled by this run
        yield Unit(source, partial(_same, output), after, size, on_disk), output


def _same(output: Output) -> Output:
    return output


def groups(files: list[str], first: int) -> Iterator[tuple[int, int]]:
    """Stretches of the files from number ``first`` on: small files together, large ones alone."""
    begin, held = first, 0
    for number in range(first, len(files)):
        held += size_of(files[number])
        if held >= _GROUP:
            yield begin, number + 1
            begin, held = number + 1, 0
    if begin < len(files):
        yield begin, len(files)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Cuts some of the files; ``first`` is the number of the first among all."""

    files: tuple[str, ...]
    first: int
    start: Place
    file_format: str | None
    columns: bool

    def __call__(self) -> Iterator[bytes]:
        told = None if self.file_format == "auto" else self.file_format
        start = replace(self.start, file=0) if self.first == self.start.file else Place()
        for unit in units(list(self.files), start, recording(told), columns=self.columns):
            after = replace(unit.after, file=unit.after.file + self.first)
            yield pickle.dumps((unit.source, after, unit.size, unit.on_disk, unit.work()))

    def told(self) -> str:
        """The files."""
        return named(self.files)


@dataclass(frozen=True, slots=True)
class _Work:
    """Does the work of one unit; the rewriter is made once in each process."""

    options: bytes

    def __call__(self, row: bytes) -> bytes:
        call: Call
        source, after, size, on_disk, call = pickle.loads(row)  # noqa: S301 - pickled by this run
        output = call.on(_rewriter(self.options))
        return pickle.dumps((source, after, size, on_disk, output))

    def told(self, row: bytes) -> str:
        """The file, and the lines or rows of it that the unit has."""
        after: Place
        call: Call
        source, after, _, _, call = pickle.loads(row)  # noqa: S301 - pickled by this run
        match call.method:
            case "lines":
                stretch, _, first = call.arguments[:3]
                last = after.line - stretch.endswith(b"\n")
                return f"{source}, lines {first:,} to {last:,}"
            case "rows":
                return f"{source}, rows {call.arguments[5]:,} to {after.line - 1:,}"
            case _:
                return cast("str", source)


@lru_cache(maxsize=1)
def _rewriter(options: bytes) -> _core.Rewriter:
    given, registered = pickle.loads(options)  # noqa: S301 - pickled by this run
    models.take(registered)
    return settings(**given).rewriter
