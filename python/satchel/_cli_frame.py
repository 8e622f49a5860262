"""What every command shares: options, how files are read, how errors and progress are shown.

Exit codes: 0; 1 if ``lint``, ``repair`` or ``convert`` leave a conversation that its provider would
reject; 2 for a wrong option or any ``SatchelError``. With ``--json`` exactly one JSON
object goes to standard output, on an error ``{"error": ...}``; everything else that is said goes to
standard error.
"""

from __future__ import annotations

import json
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from satchel._cli_text import printable
from satchel._remote import without_query
from satchel.errors import InputError, SatchelError
from satchel.reading import STDIN, Transcript, read_transcripts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence

    from satchel.reading import Format

    OnRead = Callable[[int], None]

__all__ = [
    "FAILED",
    "MOST_ROWS",
    "AsJson",
    "File",
    "FileFormat",
    "Files",
    "Reading",
    "Rows",
    "SkipErrors",
    "app",
    "concerning",
    "error_json",
    "errors_json",
    "known_model",
    "not_read",
    "print_json",
    "progress",
    "reporting",
    "say_error",
    "say_lines",
    "told_dialect",
]

FAILED: Final = 2

app: Final = typer.Typer(
    name="satchel",
    help="Counts, checks, mends and converts agent transcripts, and packs their context window.",
    epilog=(
        "Exit codes: 0 done; 1 done, and lint, repair or convert found a conversation that its "
        "provider would reject; 2 a wrong option, or a file that cannot be read or packed."
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


File = Annotated[str, typer.Argument(metavar="FILE", help="Transcript; - for standard input.")]
Files = Annotated[
    list[str],
    typer.Argument(metavar="FILE...", help="Transcripts, folders of them; - for standard input."),
]
FileFormat = Annotated[
    str,
    typer.Option(
        "--format",
        help="What kind of file it is, such as openai or claude-code; default: told by content.",
    ),
]
SkipErrors = Annotated[
    bool, typer.Option("--skip-errors", help="Go on behind a line that cannot be read, and say so.")
]
Rows = Annotated[int, typer.Option(min=0, help="Most lines that are printed; 0 for all of them.")]
MOST_ROWS: Final = 1_000
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@dataclass(frozen=True, slots=True)
class Reading:
    """How files are read."""

    file_format: str
    skip_errors: bool
    on_read: OnRead

    def conversations(self, file: str) -> Iterator[Transcript]:
        """The conversations of one file."""
        return read_transcripts(
            file,
            format=cast("Format", self.file_format),
            on_error="skip" if self.skip_errors else "raise",
            on_read=self.on_read,
        )


def told_dialect(conversation: Transcript) -> str | None:
    """The dialect that the file tells, if it does."""
    return conversation.dialect if conversation.dialect_known else None


def known_model(conversation: Transcript, instead: str) -> str | None:
    """The model that the file names, unless nothing is known about it: then a warning."""
    from satchel import models  # noqa: PLC0415 - slow to load

    try:
        if conversation.model is not None:
            models.get(conversation.model)
    except InputError as error:
        text = f"{conversation.source}: {error}; {instead}"
        warnings.warn(text, UserWarning, stacklevel=2)
        return None
    return conversation.model


_LONG: Final = 4_000_000  # bytes: below, the whole command takes less than a blink


@contextmanager
def progress(files: Sequence[str], doing: str) -> Generator[OnRead]:
    """A progress bar on standard error, if that is a terminal and the input is long.

    Gives what is to be told how many bytes were read.
    """
    size = sum(path.stat().st_size for path in map(Path, files) if path.is_file())
    if not sys.stderr.isatty() or (size < _LONG and STDIN not in files):
        yield lambda _: None
        return
    from satchel._cli_tables import progress_bar  # noqa: PLC0415 - rich is slow to load

    with progress_bar() as bar:
        task = bar.add_task(doing, total=None if STDIN in files else size)
        yield lambda read: bar.advance(task, read)


@contextmanager
def reporting(*, as_json: bool) -> Generator[None]:
    """Turns our errors into one line or one JSON object, and warnings into one line each."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character shows its escape; printing never fails.
        cast("Any", stream).reconfigure(errors="backslashreplace")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except SatchelError as error:
            if as_json:
                print_json({"error": error_json(error)})
            else:
                say_error(error)
            raise typer.Exit(FAILED) from error
        finally:
            for warning in {str(warning.message): None for warning in caught}:
                typer.echo(f"satchel: warning: {printable(warning)}", err=True)


@contextmanager
def concerning(file: str) -> Generator[None]:
    """Lets errors name the file, and what to do about them on the command line."""
    try:
        yield
    except SatchelError as error:
        if error.code == "invalid_file":
            raise
        name = without_query(file)
        message = f"{name}: {error}"
        if error.code == "open_calls":
            message = f"{name}: calls at the end have no result yet: give --open-calls synthesize"
        raise type(error)(
            message, code=error.code, index=error.index, value=error.value, limit=error.limit
        ) from error


def say_lines(lines: Sequence[str], most: int, *, err: bool = False) -> None:
    """Says so many lines, and how many more there are; 0 for all of them.

    A damaged file may hold a hundred thousand findings, which nobody reads on a terminal.
    """
    shown = lines[:most] if most else lines
    if shown:
        typer.echo("\n".join(map(printable, shown)), err=err)
    if len(shown) < len(lines):
        typer.echo(f"... and {len(lines) - len(shown):,} more lines; --rows 0 shows all", err=err)


def not_read(failures: Mapping[str, object]) -> str:
    """The end of a summary that says how many files are not in it."""
    count = len(failures)
    return f"; {count:,} {'file' if count == 1 else 'files'} not read" if count else ""


def say_error(error: SatchelError, file: str | None = None) -> None:
    """Says an error in one line of standard error."""
    place = ""
    if file is not None and error.code != "invalid_file":
        place = f"{without_query(file)}: "
    typer.echo(f"satchel: {printable(f'{place}{error}')} [{error.code}]", err=True)


def errors_json(errors: Mapping[str, SatchelError]) -> list[dict[str, Any]]:
    """The errors of files as the JSON of ``--json``."""
    return [{"file": without_query(file), **error_json(error)} for file, error in errors.items()]


def error_json(error: SatchelError) -> dict[str, Any]:
    """An error as the JSON of ``--json``."""
    return {
        "code": error.code,
        "message": str(error),
        "index": error.index,
        "value": error.value,
        "limit": error.limit,
    }


def print_json(value: dict[str, Any]) -> None:
    """Prints the one object of ``--json``."""
    # ASCII only: a file name may hold anything, and this may be read on a terminal too.
    typer.echo(json.dumps(value, allow_nan=False, indent=1))
