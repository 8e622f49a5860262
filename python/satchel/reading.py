"""Transcripts of many programs, as messages that the rest of the library takes.

``read_transcripts`` reads files, folders and standard input; what a file is, is told by its
content. The work is done by the native half; here are the paths, the compression and the errors.
"""

from __future__ import annotations

import gzip
import os
import sys
import warnings
import zlib
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Literal, cast, get_args

from satchel._arguments import invalid, listed, name_of_type, one_of, shown
from satchel._remote import is_remote, opened_remote, remote_files, without_query
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from satchel.usage import Usage

__all__ = [
    "FORMATS",
    "STDIN",
    "Format",
    "ReportedUsage",
    "Transcript",
    "TranscriptWarning",
    "file_error",
    "listed_files",
    "read_transcripts",
    "transcript_files",
]

Format = Literal[
    "openai",
    "openai-responses",
    "anthropic",
    "gemini",
    "bedrock",
    "langchain",
    "claude-code",
    "codex",
    "gemini-cli",
    "pi",
    "kimi",
    "openhands",
    "swe-agent",
    "mini-swe-agent",
    "inspect",
    "aider",
    "intercode",
    "sharegpt",
]
_MOST_CHARS: Final = 400
"""Of a path in an error."""

FORMATS: Final[tuple[str, ...]] = get_args(Format)
"""Names of the formats; ``"auto"`` detects which one a file is in."""

STDIN: Final = "-"

_PIECE: Final = 1 << 20
_GZIP: Final = b"\x1f\x8b"
_PARQUET: Final = b"PAR1"
# In a folder only these are looked at; a file that is named is read whatever it is called.
_SUFFIXES: Final = frozenset({".json", ".jsonl", ".ndjson", ".traj", ".md", ".gz", ".parquet"})


class TranscriptWarning(UserWarning):
    """A part of a file that could not be read was skipped."""


@dataclass(frozen=True, slots=True)
class ReportedUsage:
    """What the provider reported about one call.

    Attributes:
        index: how many messages the call was given, so the index of the first one of its reply.
        tokens: the figures, in the one meaning of ``usage_tokens``.
        model: the model that answered, or None.
        record: the record itself, as it stands in the file.
    """

    index: int
    tokens: Usage
    model: str | None
    record: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """One conversation of a file.

    Attributes:
        messages: the messages, in ``dialect``.
        dialect: ``"openai"``, ``"openai-responses"``, ``"anthropic"``, ``"gemini"`` or
            ``"bedrock"``.
        dialect_known: False if the messages would read the same in several dialects and nothing
            beside them told which; ``dialect`` is then ``"anthropic"`` if the system prompt
            stands outside the messages, else ``"openai"``.
        system: the system prompt, where it stands outside the messages, else None.
        tools: the tool definitions, or None.
        model: the model that was called, or None.
        format: what kind of file it comes from, one of ``FORMATS``.
        source: path of the file, its URL without a query, or ``"-"``.
        index: which conversation of the file this is, from 0.
        line: line on which it begins, from 1.
        usage: what the provider reported about its calls, in their order.
        metadata: what else is worth knowing, such as ``title``, ``session_id``, or in
            ``compactions`` the message indices before which the program compacted its context.
    """

    messages: list[dict[str, Any]] = field(repr=False)
    dialect: str
    dialect_known: bool = True
    system: Any = field(default=None, repr=False)
    tools: list[Any] | None = field(default=None, repr=False)
    model: str | None = None
    format: str
    source: str
    index: int = 0
    line: int = 1
    usage: tuple[ReportedUsage, ...] = field(default=(), repr=False)
    metadata: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)


def read_transcripts(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    format: Format | Literal["auto"] = "auto",  # noqa: A002 - the word that users know from every reader of files
    on_error: Literal["raise", "skip"] = "raise",
    on_read: Callable[[int], None] | None = None,
) -> Iterator[Transcript]:
    r"""The conversations of transcript files, in order; lazily where a file has one a line.

    Text is UTF-8, with or without a byte order mark; files may be compressed by gzip, or be Parquet
    with a column ``messages`` or ``conversation``, and paths may be URLs (both: extra ``batch``).
    Strings keep lone halves of surrogate pairs, as ``json.loads`` does.

    Args:
        paths: files; folders, of which every transcript is read, recursively and sorted; ``"-"``
            for standard input. One of them or many.
        format: one of ``FORMATS``, or ``"auto"`` to tell by the content.
        on_error: ``"raise"`` stops at what cannot be read; ``"skip"`` goes on behind it with a
            ``TranscriptWarning``: a line of a JSON Lines file, or a whole file.
        on_read: is told how many bytes were read, each time some were.

    Raises:
        InputError: ``invalid_file``, naming the file and the line and none of the content;
            ``invalid_value`` for an unknown format or ``on_error``.

    Example:
        >>> import tempfile
        >>> with tempfile.NamedTemporaryFile() as file:
        ...     _ = file.write(b'{"messages": [{"role": "user", "content": "Hello"}]}\n' * 2)
        ...     file.flush()
        ...     [transcript.index for transcript in read_transcripts(file.name)]
        [0, 1]
    """
    one_of("format", format, ("auto", *FORMATS))
    one_of("on_error", on_error, ("raise", "skip"))
    if on_read is not None and not callable(on_read):
        message = f"on_read must be a function, not {name_of_type(on_read)}"
        raise invalid(message)
    report = None if on_error == "raise" else _warn
    return _read_all(_paths(paths), format, report, on_read)


def listed_files(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
) -> list[str]:
    """The files of paths as `read_transcripts` takes them, in the order in which it reads them.

    Raises:
        InputError: as there.
    """
    return [file for path in _paths(paths) for file in transcript_files(path)]


def _paths(paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]]) -> list[str]:
    # A number would be taken for an open file of this process.
    is_one = isinstance(paths, str | os.PathLike)
    given: list[Any] = [paths] if is_one else listed("paths", cast("Any", paths), of="paths")
    return [_path(path) for path in given]


def _path(path: object) -> str:
    """A path as a string; what raises when it is asked for one comes out."""
    found = path
    if isinstance(path, os.PathLike):
        found = os.fspath(cast("os.PathLike[str]", path))
    if not isinstance(found, str):
        message = f"paths must hold paths as str or os.PathLike, one is {shown(found)}"
        raise invalid(message)
    if "\0" in found or not _is_encodable(found):
        # Escaped bytes of a file's name (surrogateescape) are fine, half a character is not.
        message = f"paths must be names that a file can have, one is {shown(found)}"
        raise invalid(message)
    return found


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def transcript_files(path: str) -> list[str]:
    """The path itself or, if it is a folder, the files in it that may be transcripts, sorted."""
    if is_remote(path):
        return [file for file in remote_files(path, _SUFFIXES) if not file.endswith(".md")]
    if path == STDIN or not os.path.isdir(path):  # noqa: PTH112 - Path raises for long names
        return [path]
    found = sorted(Path(path).rglob("*"))
    chosen = [file for file in found if file.suffix in _SUFFIXES and file.is_file()]
    return [str(file) for file in chosen if file.suffix != ".md" or _is_aider(file)]


def _is_aider(file: Path) -> bool:
    """Whether a Markdown file among transcripts is one, rather than about them."""
    try:
        with file.open("rb") as stream:
            return b"# aider chat started at " in stream.read(_PIECE)
    except OSError:
        # Reading it tells why.
        return True


def file_error(source: str, what: str, *, line: int | None = None) -> InputError:
    """An ``invalid_file`` error about ``source``, ready to be raised."""
    told = without_query(source)
    name = (
        "standard input"
        if source == STDIN
        else told
        if len(told) <= _MOST_CHARS
        else f"...{told[-_MOST_CHARS:]}"
    )
    place = name if line is None else f"{name}, line {line}"
    return InputError(f"{place}: {what}", code="invalid_file")


def _warn(error: InputError) -> None:
    warnings.warn(f"{error}; skipped", TranscriptWarning, stacklevel=2)


def _read_all(
    paths: list[str],
    format_name: str,
    report: Callable[[InputError], None] | None,
    on_read: Callable[[int], None] | None,
) -> Iterator[Transcript]:
    for path in paths:
        for source in transcript_files(path):
            yield from _read_file(source, format_name, report, on_read)


def _read_file(
    source: str,
    format_name: str,
    report: Callable[[InputError], None] | None,
    on_read: Callable[[int], None] | None,
) -> Iterator[Transcript]:
    from satchel import _core  # noqa: PLC0415 - the native half is slow to load

    reader = _core.TranscriptReader(None if format_name == "auto" else format_name)
    index = 0
    pieces = _pieces(source, on_read)
    at_end = False
    while not at_end:
        try:
            piece = next(pieces, b"")
        except InputError as error:
            if report is None:
                raise
            report(error)
            piece = b""
        at_end = not piece
        for item in reader.finish() if at_end else reader.feed(piece):
            if isinstance(item, tuple):
                line, what = item
                problem = file_error(source, what, line=line)
                if report is None:
                    raise problem
                report(problem)
            else:
                yield _transcript(item, without_query(source), index)
                index += 1


def _transcript(found: dict[str, Any], source: str, index: int) -> Transcript:
    from satchel.usage import Usage  # noqa: PLC0415 - loads the native half

    dialect = cast("str | None", found["dialect"])
    guess = "openai" if found["system"] is None else "anthropic"
    return Transcript(
        messages=found["messages"],
        dialect=dialect or guess,
        dialect_known=dialect is not None,
        system=found["system"],
        tools=found["tools"],
        model=found["model"],
        format=found["format"],
        source=source,
        index=index,
        line=found["line"],
        usage=tuple(
            ReportedUsage(place, Usage(*figures), model, record)
            for place, figures, model, record in found["usage"]
        ),
        metadata=found["metadata"],
    )


# --- bytes ----------------------------------------------------------------------------------------


def _pieces(source: str, on_read: Callable[[int], None] | None) -> Iterator[bytes]:
    """The bytes of a file, unpacked, piece by piece; an error of the system becomes one of ours."""
    with _opened(source) as stream:
        counting = _Counting(stream, on_read)
        first = counting.read(_PIECE)
        if first.startswith(_PARQUET) and source != STDIN:
            yield from _rows(source)
            return
        if not first.startswith(_GZIP):
            while first:
                yield first
                first = counting.read(_PIECE)
            return
        unpacked = gzip.GzipFile(fileobj=cast("BinaryIO", _Rejoined(first, counting)))
        try:
            while piece := unpacked.read(_PIECE):
                yield piece
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise file_error(source, "the gzip data is damaged") from error


def _rows(source: str) -> Iterator[bytes]:
    """The rows of a Parquet file as lines."""
    from satchel.batch.arrow import json_lines, parquet_batches  # noqa: PLC0415 - an extra

    for batch in parquet_batches(source):
        yield json_lines(batch, source)


@contextmanager
def _opened(source: str) -> Generator[BinaryIO]:
    try:
        if source == STDIN:
            yield sys.stdin.buffer
        elif is_remote(source):
            with opened_remote(source) as stream:
                yield stream
        else:
            with open(source, "rb") as stream:  # noqa: PTH123 - the name is shown as it was given
                yield stream
    except OSError as error:
        raise file_error(source, (error.strerror or "cannot be read").lower()) from error


class _Counting:
    """Reads a stream and tells how much was read."""

    def __init__(self, stream: BinaryIO, on_read: Callable[[int], None] | None) -> None:
        self._stream = stream
        self._on_read = on_read

    def read(self, size: int) -> bytes:
        piece = self._stream.read(size)
        if piece and self._on_read is not None:
            self._on_read(len(piece))
        return piece


class _Rejoined:
    """A stream whose first bytes were read already."""

    def __init__(self, first: bytes, rest: _Counting) -> None:
        self._first = first
        self._rest = rest

    def read(self, size: int = -1) -> bytes:
        if self._first:
            piece = self._first if size < 0 else self._first[:size]
            self._first = self._first[len(piece) :]
            return piece
        return self._rest.read(_PIECE if size < 0 else size)
