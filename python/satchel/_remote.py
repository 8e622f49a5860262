"""Files that lie elsewhere, by URL: through pyarrow's own file systems, else through fsspec's.

``s3://``, ``gs://``, ``abfs://``, ``hdfs://`` and ``file://`` are pyarrow's, every other scheme is
fsspec's. How to reach a store and who one is there is told by the environment, never in a URL: a
URL stands in reports and errors. Needs the extra ``batch`` (pyarrow).
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast
from urllib.parse import urlsplit

from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "check_writable",
    "file_system",
    "holds_files",
    "is_remote",
    "opened_remote",
    "put",
    "remote_files",
    "size_of",
    "stamp_of",
    "without_query",
]

_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_HOST: Final = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::\d*)?")
_OWN: Final = frozenset({"abfs", "abfss", "file", "gcs", "gs", "hdfs", "s3", "viewfs"})
_READ_ONLY: Final = frozenset({"github", "http", "https"})
_MOST_CHARS: Final = 400
_PIECE: Final = 1 << 20


def is_remote(path: str) -> bool:
    """Whether a path is a URL."""
    return _URL.match(path) is not None


def without_query(url: str) -> str:
    """A URL as it may be told: without what follows its path, and without name and password.

    Either may be what lets one in. A path stays as it is.
    """
    scheme, mark, rest = url.partition("://")
    if not mark:
        return url
    host = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" not in host and not _HOST.fullmatch(host):
        # A password with a slash or a question mark in it, which ends the host too early.
        rest = rest.rpartition("@")[2] if "@" in rest else "..."
    host, slash, path = rest.partition("?")[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def opened_remote(url: str) -> BinaryIO:
    """The file, open for reading at any place.

    Raises:
        InputError: ``invalid_file``.
        ImportError: pyarrow is not installed.
    """
    system, path = file_system(url)
    try:
        return cast("BinaryIO", system.open_input_file(path))
    except (OSError, ValueError) as error:
        raise _failed(url, error, "cannot be read") from error


def remote_files(url: str, suffixes: Iterable[str]) -> list[str]:
    """The file itself or, if it is a folder, the files in it with these suffixes, sorted.

    Raises:
        InputError: ``invalid_file``.
        ImportError: pyarrow is not installed.
    """
    _, names = _listed(url)
    if names is None:
        return [url]
    head, _, query = url.partition("?")
    wanted = set(suffixes)
    end = f"?{query}" if query else ""
    chosen = sorted(name for name in names if Path(name).suffix in wanted)
    return [f"{head.rstrip('/')}/{name}{end}" for name in chosen]


def holds_files(url: str) -> bool:
    """Whether there is a file at this URL, or a folder that holds one.

    Raises:
        InputError: ``invalid_file``.
        ImportError: pyarrow is not installed.
    """
    is_there, names = _listed(url)
    return is_there if names is None else bool(names)


def _listed(url: str) -> tuple[bool, list[str] | None]:
    """Whether there is something, and for a folder the names of the files below it."""
    system, path = file_system(url)
    kinds: Any = import_module("pyarrow.fs").FileType
    selector: Any = import_module("pyarrow.fs").FileSelector
    try:
        found = system.get_file_info(path)
        if found.type != kinds.Directory:
            return bool(found.type != kinds.NotFound), None
        below = system.get_file_info(selector(path, recursive=True))
    except (OSError, ValueError) as error:
        raise _failed(url, error, "cannot be listed") from error
    return True, [one.path[len(path) :].lstrip("/") for one in below if one.type == kinds.File]


def check_writable(url: str) -> None:
    """Refuses a URL whose scheme is unknown, or is known to be for reading only.

    Raises:
        InputError: ``invalid_file``, ``invalid_value`` for a URL with a password.
        ImportError: pyarrow is not installed.
    """
    if url.partition("://")[0].lower() in _READ_ONLY:
        raise _failed(url, NotImplementedError(), "cannot be written")
    file_system(url)


def size_of(path: str) -> int:
    """Bytes of a file, 0 if there is none."""
    return (stamp_of(path) or [0])[0]


def stamp_of(path: str) -> list[int] | None:
    """Size and time of change in nanoseconds, None if there is no such file."""
    if not is_remote(path):
        try:
            found = Path(path).stat()
        except (OSError, ValueError):
            return None
        return [found.st_size, found.st_mtime_ns] if Path(path).is_file() else None
    try:
        system, name = file_system(path)
        info = system.get_file_info(name)
    except (InputError, OSError, ValueError):
        return None
    return None if info.size is None else [info.size, info.mtime_ns or 0]


def put(local: Path, url: str) -> None:
    """Copies a file, or the files of a folder, to a URL.

    Raises:
        InputError: ``invalid_file``.
        ImportError: pyarrow is not installed.
    """
    system, path = file_system(url)
    try:
        if local.is_dir():
            for file in sorted(local.rglob("*")):
                if file.is_file():
                    name = file.relative_to(local).as_posix()
                    _copy(file, system, f"{path.rstrip('/')}/{name}")
        else:
            _copy(local, system, path)
    except (NotImplementedError, OSError, ValueError) as error:
        raise _failed(url, error, "cannot be written") from error


def _copy(file: Path, system: Any, path: str) -> None:  # noqa: ANN401 - a pyarrow FileSystem
    folder = path.rpartition("/")[0]
    if folder and system.type_name != "s3":  # a bucket has no folders, and may not be made
        system.create_dir(folder, recursive=True)
    with file.open("rb") as given, system.open_output_stream(path) as taken:
        while piece := given.read(_PIECE):
            taken.write(piece)


@lru_cache(maxsize=8)
def _store(scheme: str, host: str, query: str) -> Any:  # noqa: ANN401 - a pyarrow FileSystem
    """The file system of a URL; connections are kept."""
    systems: Any = import_module("pyarrow.fs")
    end = f"?{query}" if query else ""
    if scheme in _OWN:
        return systems.FileSystem.from_uri(f"{scheme}://{host}/{end}")[0]
    fsspec: Any = import_module("fsspec")
    found, _ = fsspec.core.url_to_fs(f"{scheme}://{host}/")
    return systems.PyFileSystem(systems.FSSpecHandler(found))


def file_system(url: str) -> tuple[Any, str]:
    """The ``pyarrow.fs.FileSystem`` of a URL, and the path in it.

    Raises:
        InputError: ``invalid_value`` for a URL with a password, ``invalid_file`` if it leads
            nowhere.
        ImportError: pyarrow is not installed.
    """
    if urlsplit(url).username is not None or urlsplit(url).password is not None:
        message = "a URL must hold no name or password; the environment tells them"
        raise InputError(message, code="invalid_value")
    from satchel.batch.arrow import needed  # noqa: PLC0415 - only who reads URLs pays for it

    needed("a URL")
    head, _, query = url.partition("?")
    scheme, _, rest = head.partition("://")
    scheme = scheme.lower()
    host, slash, path = rest.partition("/")
    try:
        system = _store(scheme, host, query)
        if scheme in _OWN:
            return system, f"/{path}" if scheme in {"file", "hdfs", "viewfs"} else rest
        fsspec: Any = import_module("fsspec")
        return system, str(fsspec.core.url_to_fs(f"{scheme}://{host}{slash}{path}")[1])
    except (ImportError, OSError, ValueError) as error:
        raise _failed(url, error, "its store cannot be reached") from error


def _failed(url: str, error: Exception, what: str) -> InputError:
    name = without_query(url)
    shown = name if len(name) <= _MOST_CHARS else f"...{name[-_MOST_CHARS:]}"
    if isinstance(error, FileNotFoundError):
        what = "no such file or directory"
    elif isinstance(error, NotImplementedError):
        what = "its scheme is for reading only"
    elif isinstance(error, ImportError):
        what = f"the package {error.name or 'of its scheme'} is missing"
    elif isinstance(error, ValueError):
        what = "not a URL that pyarrow or fsspec knows"
    return InputError(f"{shown}: {what}", code="invalid_file")
