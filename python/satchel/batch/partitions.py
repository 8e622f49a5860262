"""Partitioned Parquet: a folder with a folder for each value, ``key=value/part-0.parquet``."""

from __future__ import annotations

import json
import re
import shutil
from importlib import import_module
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote, unquote

from satchel._arguments import listed
from satchel._remote import without_query
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from types import TracebackType

__all__ = ["Partitions", "partition_keys", "partition_of"]

_KEY: Final = re.compile(r"[^/=\\\0]+")
_NONE: Final = "__HIVE_DEFAULT_PARTITION__"
_OPEN: Final = 100
"""Files that are open at once."""


def partition_keys(keys: str | Sequence[str]) -> tuple[str, ...]:
    """The keys of a partitioned output, checked.

    Raises:
        InputError: ``invalid_value``.
    """
    given: list[Any] = [keys] if isinstance(keys, str) else listed("partition_by", keys, of="str")
    named = all(isinstance(key, str) and _KEY.fullmatch(key) for key in given)
    if not named or len(set(given)) < len(given):
        message = "partition_by must hold different names without '/' and '='"
        raise InputError(message, code="invalid_value")
    return tuple(given)


def partition_of(source: str, keys: Sequence[str]) -> list[str | None]:
    """The values of these keys that the folders of a file tell: ``day=5/run.jsonl`` has day 5."""
    parts = PurePosixPath(without_query(source)).parent.parts
    pairs = [part.partition("=") for part in parts]
    found = {key: unquote(value) for key, mark, value in pairs if mark and value != _NONE}
    return [found.get(key) for key in keys]


class Partitions:
    """Writes batches, each of one partition, in the order in which they come.

    The last column of a batch says which: the values of the keys as a JSON list. A partition has a
    second file only where more than a hundred of them take turns.
    """

    def __init__(self, folder: Path, keys: Sequence[str]) -> None:
        self._folder = folder
        self._keys = keys
        self._writers: dict[str, Any] = {}
        self._numbers: dict[str, int] = {}
        shutil.rmtree(folder, ignore_errors=True)  # what an interrupted run left
        folder.mkdir(parents=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def write_batch(self, batch: Any) -> None:  # noqa: ANN401 - a RecordBatch
        """Writes a row group."""
        last = batch.num_columns - 1
        told = batch.column(last)[0].as_py()
        rows = batch.select(list(range(last)))
        if told not in self._writers:
            if len(self._writers) >= _OPEN:
                self._close()
            self._writers[told] = self._opened(told, rows.schema)
        self._writers[told].write_batch(rows)

    def _opened(self, told: str, schema: Any) -> Any:  # noqa: ANN401 - pyarrow comes without types
        parquet: Any = import_module("pyarrow.parquet")
        folder = self._folder
        for key, value in zip(self._keys, json.loads(told), strict=True):
            folder /= f"{quote(key, safe='')}={_NONE if value is None else quote(value, safe='')}"
        folder.mkdir(parents=True, exist_ok=True)
        number = self._numbers[told] = self._numbers.get(told, -1) + 1
        return parquet.ParquetWriter(
            str(folder / f"part-{number}.parquet"), schema, compression="zstd"
        )

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
