"""Where the outputs of a run go.

An output with a URL is made in a folder of this machine, since object stores cannot append, and
copied when all of it is there. That folder is found again after an interruption by the output's
name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from satchel._cli_files import check_out
from satchel._remote import check_writable, is_remote, put, without_query
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["Targets", "beside"]


def beside(name: str, end: str) -> str:
    """The name of a file beside another: ``end`` behind its path."""
    head, mark, query = name.partition("?") if is_remote(name) else (name, "", "")
    return f"{head}{end}{mark}{query}"


class Targets:
    """The outputs by name: where they are written, and what becomes of them in the end.

    Args:
        named: paths or URLs, ``records`` among them.
        staging: folder for what goes to a URL; default: one of the user's cache folder.

    Raises:
        InputError: ``invalid_value`` if two outputs have the same name.
    """

    def __init__(self, named: Mapping[str, str], staging: str | None) -> None:
        self._urls: Final = {name: path for name, path in named.items() if is_remote(path)}
        self.paths: Final = {name: Path(path) for name, path in named.items()}
        self._folder: Final = _staging(named["records"], staging) if self._urls else None
        if self._folder is not None:
            for name, url in self._urls.items():
                self.paths[name] = self._folder / f"{name}-{PurePosixPath(without_query(url)).name}"
        local = [path.resolve() for path in self.paths.values()]
        if len({*local, *self._urls.values()}) < len(local) + len(self._urls):
            message = "two outputs have the same name"
            raise InputError(message, code="invalid_value")

    @property
    def manifest(self) -> Path:
        """Where the state of an interrupted run is."""
        path = self.paths["records"]
        return path.with_name(path.name + ".resume.json")

    def url(self, name: str) -> str | None:
        """Where the output ``name`` is copied to; None if it stays on this machine."""
        return self._urls.get(name)

    def others(self, files: Iterable[str], *, is_folder: bool = False) -> list[str]:
        """Those of the files that are no outputs, as they may be in a folder that is read.

        What an interrupted run left is none of them either. With ``is_folder`` the records are a
        folder, and so is what they are made in.
        """
        ends = ("", ".part", ".part.parquet")
        own = {f"{path.resolve()}{end}" for path in self.paths.values() for end in ends}
        own |= {f"{self.manifest.resolve()}{end}" for end in ("", ".new")}
        own |= {without_query(url) for url in self._urls.values()}
        folders: tuple[str, ...] = ()
        if is_folder:
            records = self.paths["records"].resolve()
            folders = (f"{records}{os.sep}", f"{records}.part.parquet{os.sep}")
            if "records" in self._urls:
                folders += (f"{without_query(self._urls['records']).rstrip('/')}/",)
        named = ((file, _whole(file)) for file in files)
        return [file for file, name in named if name not in own and not name.startswith(folders)]

    def check(self, given: Sequence[str]) -> None:
        """Refuses to write over what is read, and to URLs that cannot be written.

        Raises:
            InputError: ``invalid_file``.
            ImportError: a URL without pyarrow.
        """
        read = {without_query(path) for path in given}
        for name, path in self.paths.items():
            url = self._urls.get(name)
            if url is None:
                check_out(str(path), [one for one in given if not is_remote(one)])
            elif without_query(url) in read:
                message = f"{without_query(url)}: this is the transcript itself"
                raise InputError(message, code="invalid_file")
            else:
                check_writable(url)

    def make(self) -> None:
        """Makes the folder of what goes to a URL; nobody else may read it.

        Raises:
            InputError: ``invalid_file``.
        """
        if self._folder is None:
            return
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            message = f"{self._folder}: {(error.strerror or 'cannot be made').lower()}"
            raise InputError(message, code="invalid_file") from error

    def publish(self) -> None:
        """Copies what goes to a URL; may be done again.

        Raises:
            InputError: ``invalid_file``; what was made stays, and the next call copies it.
        """
        for name, url in self._urls.items():
            put(self.paths[name], url)

    def clear(self) -> None:
        """Removes what was copied, and its folder if nothing else is there."""
        if self._folder is None:
            return
        for name in self._urls:
            path = self.paths[name]
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        if not any(self._folder.iterdir()):
            self._folder.rmdir()


def _whole(file: str) -> str:
    return without_query(file) if is_remote(file) else str(Path(file).resolve())


def _staging(out: str, staging: str | None) -> Path:
    name = hashlib.sha256(without_query(out).encode()).hexdigest()[:16]
    if staging is not None:
        return Path(staging) / name
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "satchel" / "rewrite" / name
