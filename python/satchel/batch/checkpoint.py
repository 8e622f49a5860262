"""The outputs of a run, and how far they are written.

While a run goes on, each output has ``.part`` behind its name. The manifest beside the main one
(``.resume.json``) says where the next unit begins and how long each output was before it. It is
written after the outputs are on the disk and takes the place of the one before at once. So whatever
kills the run, it goes on from a state in which nothing is missing and nothing is there twice: what
was written behind it is cut off and written again, the same. At the end the manifest says so, the
outputs get their names, and it is removed.
"""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from satchel.batch.summary import Summary
from satchel.batch.units import Place
from satchel.errors import InputError
from satchel.reading import file_error

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

__all__ = ["Checkpoint", "Outputs"]

_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state from which a run goes on."""

    place: Place = field(default_factory=Place)
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    summary: Summary = field(default_factory=Summary)
    is_done: bool = False


class Outputs:
    """Appends to all outputs at once."""

    def __init__(self, paths: Mapping[str, Path], manifest: Path, digest: str) -> None:
        self._paths: Final = dict(paths)
        self._manifest: Final = manifest
        self._digest: Final = digest
        self._files: dict[str, BinaryIO] = {}
        self._sizes: dict[str, int] = {}
        self._safe: dict[str, int] = {}

    def open(self, *, restart: bool) -> Checkpoint:
        """The state to go on from; outputs are cut to it.

        Raises:
            InputError: ``invalid_value`` if a run with other options or inputs was interrupted
                here, ``invalid_file`` if an output cannot be written.
        """
        found = None if restart else self._read()
        try:
            if found is None:
                self._manifest.unlink(missing_ok=True)
                found = Checkpoint(sizes=dict.fromkeys(self._paths, 0))
            if not found.is_done:
                for name, path in self._paths.items():
                    file = _part(path).open("r+b" if found.sizes[name] else "wb")
                    self._files[name] = file
                    if not found.sizes[name]:
                        self._safe[name] = 0
                    file.truncate(found.sizes[name])
                    file.seek(found.sizes[name])
        except OSError as error:
            self.close()
            message = f"{error.filename}: {(error.strerror or 'cannot be written').lower()}"
            raise InputError(message, code="invalid_file") from error
        self._sizes = dict(found.sizes)
        return found

    def _read(self) -> Checkpoint | None:
        try:
            found: Any = json.loads(self._manifest.read_text(encoding="utf-8"))
            told = found["version"], found["digest"]
            checkpoint = Checkpoint(
                Place(**found["place"]),
                {name: found["sizes"][name] for name in self._paths},
                Summary(**found["summary"]),
                found["is_done"],
            )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise self._other() from error
        if told != (_VERSION, self._digest):
            raise self._other()
        for name, path in self._paths.items():
            size = _part(path).stat().st_size if _part(path).exists() else 0
            if not checkpoint.is_done and size < checkpoint.sizes[name]:
                message = f"{_part(path)}: shorter than the interrupted run left it; restart"
                raise InputError(message, code="invalid_value")
        return checkpoint

    def _other(self) -> InputError:
        message = (
            f"{self._manifest}: a run with other options or inputs was interrupted here; "
            "repeat that one, or restart"
        )
        return InputError(message, code="invalid_value")

    def append(self, name: str, data: bytes) -> None:
        """Appends to the output ``name``, if there is one.

        Raises:
            InputError: ``invalid_file``, for a full disk too.
        """
        if data and name in self._files:
            with _writing(self.part(name)):
                self._files[name].write(data)

    def mark(self) -> None:
        """Ends a unit: a state to go on from never holds half of one."""
        self._sizes = {name: file.tell() for name, file in self._files.items()}

    def save(self, place: Place, summary: Summary, *, is_done: bool = False) -> None:
        """Makes everything up to the last mark the state to go on from.

        Raises:
            InputError: ``invalid_file``; the state before stays.
        """
        for name in self._files:
            self._sync(name)
        state = {
            "version": _VERSION,
            "digest": self._digest,
            "place": asdict(place),
            "sizes": self._sizes,
            "summary": summary.as_dict(),
            "is_done": is_done,
        }
        new = self._manifest.with_name(self._manifest.name + ".new")
        with _writing(self._manifest):
            with new.open("w", encoding="utf-8") as written:
                json.dump(state, written)
                written.flush()
                os.fsync(written.fileno())
            new.replace(self._manifest)

    def _sync(self, name: str) -> None:
        file = self._files[name]
        with _writing(self.part(name)):
            file.flush()
            if self._safe.get(name) != (size := file.tell()):
                os.fsync(file.fileno())
                self._safe[name] = size

    def part(self, name: str) -> Path:
        """Where the output ``name`` is written."""
        return _part(self._paths[name])

    def take(self, name: str, made: Path) -> None:
        """Gives what was made of the output ``name`` its name.

        Raises:
            InputError: ``invalid_file``.
        """
        with _writing(self._paths[name]):
            made.replace(self._paths[name])

    def finish(self, *, staged: bool, publish: Callable[[], None]) -> None:
        """Gives the outputs their names; may be done again after a kill in the middle.

        With ``staged`` the records have theirs already, and what they were made of goes. Then
        ``publish`` is called; if it fails, the state stays and the next run calls it again.

        Raises:
            InputError: ``invalid_file``.
        """
        self.close()
        for name, path in self._paths.items():
            with _writing(path):
                if staged and name == "records":
                    _part(path).unlink(missing_ok=True)
                elif _part(path).exists():
                    _part(path).replace(path)
        publish()
        self._manifest.unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the files, all of them even if one cannot be written to its end.

        Raises:
            InputError: ``invalid_file``, about the first that cannot.
        """
        failed: InputError | None = None
        for name, file in self._files.items():
            try:
                with _writing(self.part(name)):
                    file.close()
            except InputError as error:
                failed = failed or error
        if failed is not None:
            raise failed


def _part(path: Path) -> Path:
    return path.with_name(path.name + ".part")


@contextmanager
def _writing(path: Path) -> Generator[None]:
    """What the system says about a file that cannot be written, as an error of ours."""
    try:
        yield
    except OSError as error:
        raise file_error(str(path), (error.strerror or "cannot be written").lower()) from error
