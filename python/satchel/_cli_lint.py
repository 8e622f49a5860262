"""The command that checks transcripts against the rules of their provider."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from satchel._cli_frame import (
    FAILED,
    MOST_ROWS,
    AsJson,
    FileFormat,
    Files,
    Reading,
    Rows,
    SkipErrors,
    app,
    error_json,
    errors_json,
    known_model,
    not_read,
    print_json,
    progress,
    reporting,
    say_error,
    say_lines,
)
from satchel.errors import SatchelError
from satchel.reading import Transcript, transcript_files

if TYPE_CHECKING:
    from satchel.linting import Violation

_INVALID: Final = 1


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found in one conversation."""

    conversation: Transcript
    dialect: str
    violations: list[Violation]

    @property
    def errors(self) -> int:
        """How many findings the provider would reject."""
        return sum(found.severity == "error" for found in self.violations)


@app.command()
def lint(
    files: Files,
    *,
    dialect: Annotated[
        str | None, typer.Option(help="Dialect of the messages; default: what the file is in.")
    ] = None,
    file_format: FileFormat = "auto",
    skip_errors: SkipErrors = False,
    rows: Rows = MOST_ROWS,
    as_json: AsJson = False,
) -> None:
    """Check transcripts against the rules of their provider.

    One line for each finding, and a total. The exit code is 1 if the provider would reject a
    conversation, 2 if a file cannot be read.
    """
    with reporting(as_json=as_json):
        checked: list[Checked] = []
        failures: dict[str, SatchelError] = {}
        named = [found for file in files for found in transcript_files(file)]
        with progress(named, "checking") as on_read:
            reading = Reading(file_format, skip_errors, on_read)
            for file in named:
                try:
                    checked += [_check(found, dialect) for found in reading.conversations(file)]
                except SatchelError as error:
                    failures[file] = error
        if as_json:
            print_json(_json(checked, failures))
        else:
            for file, failure in failures.items():
                say_error(failure, file)
            _print_lines(checked, failures, rows)
        if failures:
            raise typer.Exit(FAILED)
        if any(found.errors for found in checked):
            raise typer.Exit(_INVALID)


def _check(conversation: Transcript, dialect: str | None) -> Checked:
    from satchel.linting import lint as check  # noqa: PLC0415 - the native half is slow to load

    chosen = dialect or conversation.dialect
    found = check(
        conversation.messages,
        chosen,
        system=conversation.system,
        tools=conversation.tools,
        model=known_model(conversation, "checked without its rules"),
    )
    return Checked(conversation, chosen, found)


def _print_lines(checked: list[Checked], failures: dict[str, SatchelError], rows: int) -> None:
    if not checked and failures:
        return
    lines: list[str] = []
    for one in checked:
        place = f"{one.conversation.source}, conversation {one.conversation.index + 1}"
        lines += [f"{place}: {found}" for found in one.violations]
        if not one.conversation.messages:
            lines.append(f"{place}: no messages")
    say_lines(lines, rows)
    errors = sum(one.errors for one in checked)
    total = sum(len(one.violations) for one in checked)
    rejected = sum(one.errors > 0 for one in checked)
    typer.echo(
        f"{len(checked):,} conversations, {rejected:,} not valid: "
        f"{errors:,} errors, {total - errors:,} warnings"
        f"{not_read(failures)}"
    )


def _json(checked: list[Checked], failures: dict[str, SatchelError]) -> dict[str, Any]:
    errors = sum(one.errors for one in checked)
    shown: dict[str, Any] = {
        "conversations": [
            {
                "file": one.conversation.source,
                "conversation": one.conversation.index + 1,
                "format": one.conversation.format,
                "dialect": one.dialect,
                "messages": len(one.conversation.messages),
                "violations": [
                    {
                        "code": found.code,
                        "severity": found.severity,
                        "index": found.index,
                        "message": found.message,
                        "provider_error": found.provider_error,
                    }
                    for found in one.violations
                ],
            }
            for one in checked
        ],
        "total": {
            "conversations": len(checked),
            "not_valid": sum(one.errors > 0 for one in checked),
            "errors": errors,
            "warnings": sum(len(one.violations) for one in checked) - errors,
        },
    }
    if failures:
        shown["error"] = error_json(next(iter(failures.values())))
        shown["errors"] = errors_json(failures)
    return shown
