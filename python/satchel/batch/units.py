"""The work of a run, cut into units: stretches of lines, batches of rows, whole files.

Where a unit begins depends on the files alone, never on threads or on a run before, so that units
written in order are the same bytes always. A file with a conversation a line is read a stretch at a
time; any other is one unit.
"""

from __future__ import annotations

import gzip
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from satchel import _core
from satchel._remote import is_remote, opened_remote, without_query
from satchel.batch.arrow import Texts, needed, parquet_batches, text_columns
from satchel.errors import InputError
from satchel.reading import file_error

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from satchel.batch.options import Settings

__all__ = ["Place", "Unit", "units"]

_HEAD: Final = 1 << 20
_PIECE: Final = 1 << 18
"""Bytes of one reading: larger ones get memory that is new to the process each time."""
_LONG: Final = 33 << 20
"""Bytes of one reading of what is not divided: memory of this size goes back at once when freed."""
_STRETCH: Final = 1 << 19
_PROBE: Final = 1 << 15
"""Bytes of one look for the end of a line."""
_GZIP: Final = b"\x1f\x8b"
_ZSTD: Final = b"\x28\xb5\x2f\xfd"
_PARQUET: Final = b"PAR1"

Output = dict[str, Any]

Columns = tuple[Texts, Texts | None, Texts | None, Texts | None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a unit begins: number of its file, bytes of it (unpacked) or rows, and lines."""

    file: int = 0
    offset: int = 0
    line: int = 1


@dataclass(frozen=True, slots=True)
class Unit:
    """Some work, and where the next begins; ``source`` is the file as it is told."""

    source: str
    work: Callable[[], Output]
    after: Place
    size: int
    on_disk: int


def units(files: list[str], start: Place, settings: Settings, *, columns: bool) -> Iterator[Unit]:
    """The units of these files from ``start`` on, in order."""
    for number in range(start.file, len(files)):
        place = start if number == start.file else Place(number)
        cutting = _Cutting(files[number], place, settings, columns=columns)
        try:
            yield from cutting.units()
        except InputError as error:
            yield cutting.failed(error)


class _Cutting:
    """Cuts one file."""

    def __init__(self, source: str, place: Place, settings: Settings, *, columns: bool) -> None:
        self._source = source
        self._name = _written(without_query(source))
        self._place = place
        self._settings = settings
        self._columns = columns
        self._told = 0
        self._at_disk: Callable[[], int] = lambda: 0

    def units(self) -> Iterator[Unit]:
        with _opened(self._source) as (stream, at_disk, is_plain):
            self._at_disk = at_disk
            pieces = [_read(stream, _HEAD, self._source)]
            if pieces[0].startswith(_PARQUET):
                yield from self._rows()
                return
            while b"\n" not in pieces[-1] and (more := _read(stream, _LONG, self._source)):
                pieces.append(more)
            # Without a second line there is nothing to divide.
            head = b"".join(pieces) if b"\n" in pieces[-1] else b""
            if _core.has_rows_of(head, self._settings.file_format):
                del pieces
                yield from self._lines(
                    self._cut(stream) if is_plain else self._unpacked(head, stream)
                )
            else:
                del head
                yield self._whole(pieces, stream)

    def failed(self, error: InputError) -> Unit:
        """The rest of the file cannot be read: a reject."""
        reader = self._reader()
        reader.fail(_written(str(error)))
        return Unit(self._name, reader.finish, Place(self._place.file + 1), 0, 0)

    def _reader(self) -> _core.RewriteReader:
        return self._settings.rewriter.file(
            self._name, self._settings.file_format, columns=self._columns
        )

    def _unit(self, work: Callable[[], Output], after: Place, size: int) -> Unit:
        now = self._at_disk()
        told, self._told = now - self._told, now
        return Unit(self._name, work, after, size, told)

    def _lines(self, stretches: Iterator[bytes]) -> Iterator[Unit]:
        offset, line = self._place.offset, self._place.line
        for stretch in stretches:
            first, line = line, line + _core.count_line_ends(stretch)
            offset += len(stretch)
            work = self._lines_work(stretch, first)
            yield self._unit(work, Place(self._place.file, offset, line), len(stretch))

    # A stretch goes to the end of the line in which a fixed number of bytes is reached, however the
    # file is read.

    def _cut(self, stream: BinaryIO) -> Iterator[bytes]:
        """The stretches of a file that can be read at any place: read once, nothing copied."""
        start = self._told = self._place.offset
        self._at_disk = lambda: start
        while True:
            size, found = _STRETCH - 1, -1
            _seek(stream, start + size, self._source)
            while found < 0 and (probe := _read(stream, _PROBE, self._source)):
                found = probe.find(b"\n")
                size += len(probe) if found < 0 else found + 1
            _seek(stream, start, self._source)
            stretch = _read(stream, size, self._source)
            if not stretch:
                return
            start += len(stretch)
            yield stretch

    def _unpacked(self, head: bytes, stream: BinaryIO) -> Iterator[bytes]:
        """The stretches of a stream that begins with ``head``, each byte copied once."""
        past, piece = self._place.offset, head
        # What a run before has written is read past.
        while past >= len(piece) and piece:
            past -= len(piece)
            piece = _read(stream, _PIECE, self._source)
        if self._place.offset:
            self._told = self._at_disk()
        return self._stretches(piece, past, stream)

    def _stretches(self, piece: bytes, start: int, stream: BinaryIO) -> Iterator[bytes]:
        """What follows byte ``start`` of a piece of the stream."""
        before: list[memoryview] = []
        size = 0
        while True:
            found = piece.find(b"\n", start + max(0, _STRETCH - 1 - size))
            if found >= 0:
                yield b"".join((*before, memoryview(piece)[start : found + 1]))
                start, size, before = found + 1, 0, []
                continue
            before.append(memoryview(piece)[start:])
            size += len(piece) - start
            piece, start = _read(stream, _PIECE, self._source), 0
            if not piece:
                if size:
                    yield b"".join(before)
                return

    def _lines_work(self, stretch: bytes, line: int) -> Callable[[], Output]:
        settings, source, columns = self._settings, self._name, self._columns
        return lambda: settings.rewriter.lines(
            stretch, source, line, settings.file_format, columns=columns
        )

    def _whole(self, pieces: list[bytes], stream: BinaryIO) -> Unit:
        """The whole file, which is read here: its size bounds the memory."""
        reader = self._reader()
        while piece := _read(stream, _LONG, self._source):
            pieces.append(piece)
        size = sum(map(len, pieces))
        pieces.reverse()

        def work() -> Output:
            while pieces:
                reader.feed(pieces.pop())
            return reader.finish()

        return self._unit(work, Place(self._place.file + 1), size)

    def _rows(self) -> Iterator[Unit]:
        row = 0
        for batch in parquet_batches(self._source):
            first, row = row, row + batch.num_rows
            if first < self._place.offset:
                continue
            columns = text_columns(batch, self._source)
            after = Place(self._place.file, row, row + 1)
            yield self._unit(self._rows_work(columns, first), after, batch.nbytes)

    def _rows_work(self, given: Columns, row: int) -> Callable[[], Output]:
        settings, source, columns = self._settings, self._name, self._columns
        messages, system, tools, dialects = given
        return lambda: settings.rewriter.rows(
            messages,
            system,
            tools,
            dialects,
            source,
            row + 1,
            settings.file_format,
            columns=columns,
        )


def _written(text: str) -> str:
    """With the bytes of file names that are no UTF-8 as escapes."""
    return text.encode("utf-8", "backslashreplace").decode()


# --- bytes ----------------------------------------------------------------------------------------


def _read(stream: BinaryIO, size: int, source: str) -> bytes:
    """So many bytes, fewer only at the end."""
    try:
        pieces: list[bytes] = []
        while size > 0 and (piece := stream.read(size)):
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise file_error(source, "the gzip data is damaged") from error
    except OSError as error:
        raise _unreadable(source, error) from error


def _seek(stream: BinaryIO, place: int, source: str) -> None:
    try:
        stream.seek(place)
    except OSError as error:
        raise _unreadable(source, error) from error


def _unreadable(source: str, error: OSError) -> InputError:
    return file_error(source, (error.strerror or "the data is damaged").lower())


@contextmanager
def _opened(source: str) -> Generator[tuple[BinaryIO, Callable[[], int], bool]]:
    """The unpacked bytes of a file, how far it was read on the disk, if they are the file's own."""
    try:
        with opened_remote(source) if is_remote(source) else Path(source).open("rb") as raw:
            magic = raw.read(4)
            raw.seek(0)
            stream: BinaryIO = raw
            is_plain = not is_remote(source)
            if magic.startswith(_GZIP):
                stream, is_plain = cast("BinaryIO", gzip.GzipFile(fileobj=raw)), False
            elif magic == _ZSTD:
                pyarrow = needed("zstd")
                packed = pyarrow.PythonFile(raw, "r")
                stream, is_plain = pyarrow.CompressedInputStream(packed, "zstd"), False
            yield stream, raw.tell, is_plain
    except OSError as error:
        raise file_error(source, (error.strerror or "cannot be read").lower()) from error
