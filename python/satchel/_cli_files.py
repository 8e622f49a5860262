"""What the commands write: messages and conversations as JSON.

Nothing is written over a file that was read, unless that was asked for; then the new content is
complete before it takes the place of the old.
"""

from __future__ import annotations

import base64
import json
import math
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from satchel.reading import STDIN, file_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["check_out", "json_text", "replace_file", "shown_json", "write_file"]

_SURROGATES: Final = re.compile("[\ud800-\udfff]")


def json_text(value: object, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """``value`` as JSON that has a UTF-8 form; bytes become base64.

    With ``ascii_only`` nothing in it acts on a terminal; readers of JSON find the same.
    """
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent, default=_plain)
    if ascii_only:
        return text.replace("\x7f", "\\u007f")
    # A lone surrogate has no UTF-8; in JSON it can only stand inside a string, where an escape may.
    return _SURROGATES.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def shown_json(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """``value`` for ``--json``: bytes become base64, numbers that JSON does not have null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        fields = cast("Mapping[str, Any]", value)
        return {key: shown_json(inner) for key, inner in fields.items()}
    if isinstance(value, (list, tuple)):
        return [shown_json(inner) for inner in cast("Iterable[Any]", value)]
    return _plain(value) if isinstance(value, bytes) else value


def check_out(out: str, files: Iterable[str]) -> None:
    """Refuses to write over one of the files that are read.

    Raises:
        InputError: ``invalid_file``.
    """
    for file in files:
        try:
            same = file != STDIN and Path(out).samefile(file)
        except OSError:  # one of them does not exist
            same = False
        if same:
            raise file_error(out, "this is the transcript itself, it would be replaced")


def write_file(path: str, text: str) -> None:
    """Writes a text file.

    Raises:
        InputError: ``invalid_file``.
    """
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise file_error(path, (error.strerror or "cannot be written").lower()) from error


def replace_file(path: str, text: str) -> None:
    """Puts a new file in the place of ``path``, with its permissions; all of it or nothing.

    Raises:
        InputError: ``invalid_file``.
    """
    # A link stays a link: what it leads to is replaced.
    real = os.path.realpath(path)
    try:
        mode = Path(real).stat().st_mode
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=Path(real).parent, delete=False
        ) as file:
            try:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
                Path(file.name).chmod(mode & 0o7777)
                Path(file.name).replace(real)
            except BaseException:  # an interrupt too must leave no half file behind
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise file_error(path, (error.strerror or "cannot be written").lower()) from error


def _plain(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    message = f"{type(value).__name__} has no JSON form"
    raise TypeError(message)
