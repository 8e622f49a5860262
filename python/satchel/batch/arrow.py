"""Arrow at the border: columns of texts in and out, Parquet files, and what is needed for them."""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

import numpy as np

from satchel._remote import holds_files, is_remote, opened_remote, without_query
from satchel.batch.partitions import Partitions, partition_of
from satchel.errors import InputError
from satchel.reading import file_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

__all__ = [
    "RecordBatch",
    "Staged",
    "json_lines",
    "needed",
    "output_columns",
    "parquet_batches",
    "text_columns",
]

_ROWS: Final = 256
_PARTITION: Final = "partition"
_NAMES: Final = ("messages", "conversation", "conversations")

Texts = tuple[Any, bytes]

RecordBatch: TypeAlias = Any
"""A ``pyarrow.RecordBatch``; pyarrow comes without types."""


def needed(what: str) -> Any:  # noqa: ANN401 - an optional package without types
    """The package pyarrow.

    Raises:
        ImportError: it is not installed; the sentence names the extra.
    """
    try:
        return import_module("pyarrow")
    except ImportError as error:
        message = f"{what} needs pyarrow: install satchel with its extra, satchel[batch]"
        raise ImportError(message, name=error.name) from error


def parquet_batches(source: str) -> Iterator[RecordBatch]:
    """The record batches of a Parquet file, a few hundred rows each."""
    pyarrow = needed("Parquet")
    parquet = import_module("pyarrow.parquet")
    try:
        opened = opened_remote(source) if is_remote(source) else source
        with parquet.ParquetFile(opened) as file:
            yield from file.iter_batches(batch_size=_ROWS)
    except (pyarrow.ArrowException, OSError) as error:
        raise file_error(source, "the Parquet file cannot be read") from error


def json_lines(batch: RecordBatch, source: str) -> bytes:
    """The rows of a batch as JSON Lines that every reader of transcripts takes, a line for a row.

    Raises:
        InputError: ``invalid_file`` if there is no column of messages.
    """
    messages, *others = text_columns(batch, source)
    named = tuple(zip(("system", "tools", "dialect"), others, strict=True))
    lines: list[bytes] = []
    for row in range(batch.num_rows):
        text = _text(messages, row).strip() or b"null"
        given = [(name, found) for name, column in named if (found := _text(column, row))]
        if text.startswith(b"["):
            fields = [b'"messages":' + text]
            fields += [f'"{name}":'.encode() + _json(found, name) for name, found in given]
            text = b"{" + b",".join(fields) + b"}"
        # In JSON a line feed stands between tokens only.
        lines.append(text.replace(b"\n", b" ").replace(b"\r", b" "))
    return b"\n".join(lines) + b"\n" if lines else b""


def _text(column: Texts | None, row: int) -> bytes:
    if column is None:
        return b""
    offsets, data = column
    return data[offsets[row] : offsets[row + 1]]


def _json(text: bytes, name: str) -> bytes:
    """What looks like JSON and is, else a plain text."""
    if name != "dialect" and text.lstrip().startswith((b'"', b"[", b"{")):
        try:
            json.loads(text)
        except ValueError:
            pass
        else:
            return text
    return json.dumps(text.decode("utf-8", "replace")).encode()


def text_columns(
    batch: RecordBatch,
    source: str,
    *,
    messages: str | None = None,
) -> tuple[Texts, Texts | None, Texts | None, Texts | None]:
    """Messages, system prompts, tools and dialects of a batch, as the native half takes them.

    Raises:
        InputError: ``invalid_file`` if there is no column of messages.
    """
    names = batch.schema.names
    found = messages or next((name for name in _NAMES if name in names), None)
    if found is None or found not in names:
        wanted = messages or " or ".join(_NAMES)
        raise file_error(source, f"there is no column {wanted}")
    others = (
        _texts(batch.column(name)) if name in names else None
        for name in ("system", "tools", "dialect")
    )
    system, tools, dialect = others
    return _texts(batch.column(found)), system, tools, dialect


def _texts(column: Any) -> Texts:  # noqa: ANN401 - an Array
    pyarrow = needed("Arrow")
    kind = column.type
    if pyarrow.types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
        # Nested columns have no buffer of their JSON; fields that are null were never there.
        texts = [None if row is None else json.dumps(_present(row)) for row in column.to_pylist()]
        column = pyarrow.array(texts, pyarrow.large_string())
    column = column.cast(pyarrow.large_string()).fill_null("")
    if column.offset:
        column = pyarrow.concat_arrays([column])
    _, offsets, data = column.buffers()
    if offsets is None:
        return np.zeros(1, np.int64), b""
    starts = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    return starts, b"" if data is None else data.to_pybytes()


def _present(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _present(inner) for key, inner in fields.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_present(inner) for inner in cast("Sequence[Any]", value)]
    return value


def output_columns(output: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of one output: ``messages``, ``system``, ``tools``, ``report`` as JSON texts."""
    pyarrow = needed("Arrow")
    found: dict[str, Any] = {}
    for name in ("messages", "system", "tools", "reports"):
        offsets, text = output[name]
        buffers = [None, pyarrow.py_buffer(offsets), pyarrow.py_buffer(text)]
        array = pyarrow.Array.from_buffers(pyarrow.large_string(), len(offsets) - 1, buffers)
        if name in ("system", "tools"):
            empty = np.diff(offsets) == 0
            array = import_module("pyarrow.compute").if_else(pyarrow.array(~empty), array, None)
        found["report" if name == "reports" else name] = array
    return found


class Staged:
    """Record batches as they are staged while a run goes on: a stream that can be cut and goes on.

    A Parquet file cannot be written on from the middle, so it is made of this at the end. With
    ``keys`` it becomes a folder of files, one for each partition; a batch is of one partition.
    """

    def __init__(self, keys: tuple[str, ...] = ()) -> None:
        pyarrow = needed("Parquet")
        text = pyarrow.large_string()
        names = ("messages", "system", "tools", "report", *((_PARTITION,) if keys else ()))
        self._keys = keys
        self._schema = pyarrow.schema([(name, text) for name in names])

    def check(self, out: Path, url: str | None = None) -> None:
        """Refuses a folder that holds something already, here or at the URL that it goes to.

        Raises:
            InputError: ``invalid_file``.
        """
        if not self._keys:
            return
        here = out.is_file() or (out.is_dir() and any(out.iterdir()))
        if here or (url is not None and holds_files(url)):
            name = out if url is None else without_query(url)
            message = f"{name}: is there already; a partitioned output needs a new folder"
            raise InputError(message, code="invalid_file")

    def head(self) -> bytes:
        """The bytes at the start of the stream."""
        return bytes(self._schema.serialize())

    def body(self, output: Mapping[str, Any], source: str) -> bytes:
        """The bytes of one output; ``source`` tells its partition."""
        columns = output_columns(output)
        if not len(columns["messages"]):
            return b""
        pyarrow = needed("Parquet")
        if self._keys:
            told = json.dumps(partition_of(source, self._keys))
            columns[_PARTITION] = pyarrow.array(
                [told] * len(columns["messages"]), pyarrow.large_string()
            )
        batch = pyarrow.record_batch(list(columns.values()), schema=self._schema)
        return bytes(batch.serialize())

    def write(self, stream: Path, out: Path) -> None:
        """Writes the Parquet file or folder, a row group for each output.

        Raises:
            InputError: ``invalid_file`` if it cannot be written.
        """
        pyarrow, parquet = needed("Parquet"), import_module("pyarrow.parquet")
        try:
            with (
                pyarrow.OSFile(str(stream), "rb") as file,
                pyarrow.ipc.open_stream(file) as batches,
                (
                    Partitions(out, self._keys)
                    if self._keys
                    else parquet.ParquetWriter(str(out), self._schema, compression="zstd")
                ) as writer,
            ):
                for batch in batches:
                    writer.write_batch(batch)
        except OSError as error:
            message = f"{out}: {(error.strerror or 'cannot be written').lower()}"
            raise InputError(message, code="invalid_file") from error
