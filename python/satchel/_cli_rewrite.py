"""The commands that write conversations anew: ``repair`` and ``convert``.

What they write are conversations as JSON objects that every command reads again: one of them
indented, several a line each. The input is never written over but with ``--in-place``.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import typer

from satchel._arguments import shown
from satchel._cli_files import check_out, json_text, replace_file, shown_json, write_file
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
from satchel._dialects import DIALECTS
from satchel.errors import InputError, SatchelError
from satchel.reading import STDIN, Transcript, transcript_files

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.converting import Loss

_INVALID: Final = 1
_KEYS: Final = ("messages", "input", "contents")


class Mode(StrEnum):
    """What becomes of tool traffic that cannot stay."""

    SYNTHESIZE = "synthesize"
    DROP = "drop"
    FLATTEN = "flatten"


Out = Annotated[
    str | None,
    typer.Option(help="Write the conversations to this file; default: standard output."),
]
InPlace = Annotated[
    bool,
    typer.Option("--in-place", help="Write each conversation back to the file it came from."),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewritten:
    """A conversation, and what it became.

    Attributes:
        conversation: as it was read.
        dialect: its dialect now.
        messages: its messages now.
        system: its system prompt now.
        tools: its tool definitions now.
        errors_before: findings that the provider would reject, before.
        errors_after: and now.
        losses: what a conversion could not carry over.
    """

    conversation: Transcript
    dialect: str
    messages: list[Any]
    system: Any
    tools: Any
    errors_before: int
    errors_after: int
    losses: list[Loss] = field(default_factory=list["Loss"])

    @property
    def kept(self) -> int:
        """Messages that are the same as before."""
        own = {id(message) for message in self.conversation.messages}
        return sum(id(message) in own for message in self.messages)

    @property
    def is_changed(self) -> bool:
        """Whether anything differs."""
        return not self.kept == len(self.messages) == len(self.conversation.messages)

    @property
    def record(self) -> dict[str, Any]:
        """The conversation as an object that every command reads."""
        fields = {
            "dialect": self.dialect,
            "model": self.conversation.model if self.dialect == self.conversation.dialect else None,
            "system": self.system,
            "tools": self.tools,
        }
        given = {key: value for key, value in fields.items() if value is not None}
        return {**given, "messages": self.messages}


@app.command()
def repair(
    files: Files,
    *,
    mode: Annotated[
        Mode, typer.Option(help="What becomes of calls and results that cannot stay.")
    ] = Mode.SYNTHESIZE,
    dialect: Annotated[
        str | None, typer.Option(help="Dialect of the messages; default: what the file is in.")
    ] = None,
    out: Out = None,
    in_place: InPlace = False,
    file_format: FileFormat = "auto",
    skip_errors: SkipErrors = False,
    rows: Rows = MOST_ROWS,
    as_json: AsJson = False,
) -> None:
    """Mend transcripts so that their provider accepts them.

    Prints the conversations as JSON, and how many messages were changed. The exit code is 1 if one
    of them is still not valid, 2 if a file cannot be read.
    """

    def mended(conversation: Transcript) -> Rewritten:
        from satchel.repairing import repair as mend  # noqa: PLC0415 - slow to load

        chosen = dialect or conversation.dialect
        model = known_model(conversation, "mended without its rules")
        messages = mend(
            conversation.messages,
            chosen,
            system=conversation.system,
            tools=conversation.tools,
            model=model,
            mode=mode.value,
        )
        request = conversation.system, conversation.tools
        return Rewritten(
            conversation=conversation,
            dialect=chosen,
            messages=messages,
            system=conversation.system,
            tools=conversation.tools,
            errors_before=_errors(conversation.messages, chosen, request, model),
            errors_after=_errors(messages, chosen, request, model),
        )

    with reporting(as_json=as_json):
        reading = _Rewriting(files, out, file_format, in_place=in_place, skip_errors=skip_errors)
        reading.run(mended, "mending", rows=rows, as_json=as_json)


@app.command()
def convert(
    files: Files,
    *,
    target: Annotated[str, typer.Option(help="Dialect that is wanted.")],
    source: Annotated[
        str | None, typer.Option(help="Dialect of the messages; default: what the file is in.")
    ] = None,
    out: Out = None,
    in_place: InPlace = False,
    file_format: FileFormat = "auto",
    skip_errors: SkipErrors = False,
    rows: Rows = MOST_ROWS,
    as_json: AsJson = False,
) -> None:
    """Convert transcripts to the message format of another provider.

    Prints the conversations as JSON, and what could not be carried over. The exit code is 1 if the
    target's provider would reject one of them, 2 if a file cannot be read.
    """

    def converted(conversation: Transcript) -> Rewritten:
        from satchel.converting import convert as change  # noqa: PLC0415 - slow to load

        chosen = source or conversation.dialect
        found = change(
            conversation.messages,
            chosen,
            target,
            system=conversation.system,
            tools=conversation.tools,
        )
        before = conversation.system, conversation.tools
        return Rewritten(
            conversation=conversation,
            dialect=target,
            messages=found.messages,
            system=found.system,
            tools=found.tools,
            errors_before=_errors(conversation.messages, chosen, before, None),
            errors_after=_errors(found.messages, target, (found.system, found.tools), None),
            losses=found.losses,
        )

    with reporting(as_json=as_json):
        if target not in DIALECTS:
            known = ", ".join(sorted(DIALECTS))
            message = f"no dialect {shown(target)}; known: {known}"
            raise InputError(message, code="unknown_dialect")
        reading = _Rewriting(files, out, file_format, in_place=in_place, skip_errors=skip_errors)
        reading.run(converted, "converting", rows=rows, as_json=as_json)


def _errors(messages: list[Any], dialect: str, request: tuple[Any, Any], model: str | None) -> int:
    from satchel.linting import lint  # noqa: PLC0415 - the native half is slow to load

    system, tools = request
    found = lint(messages, dialect, system=system, tools=tools, model=model)
    return sum(one.severity == "error" for one in found)


# --- files in, files out --------------------------------------------------------------------------


class _Rewriting:
    """Reads files, rewrites their conversations, and puts them where they are wanted."""

    def __init__(
        self,
        files: list[str],
        out: str | None,
        file_format: str,
        *,
        in_place: bool,
        skip_errors: bool,
    ) -> None:
        self._named: Final = [found for file in files for found in transcript_files(file)]
        self._out: Final = out
        self._in_place: Final = in_place
        self._format: Final = file_format
        self._skip_errors: Final = skip_errors
        wrong = None
        if in_place and out is not None:
            wrong = "give --out or --in-place, not both"
        elif in_place and skip_errors:
            wrong = "--in-place would lose the lines that --skip-errors skips"
        elif in_place and STDIN in self._named:
            wrong = "standard input cannot be written in place"
        if wrong is not None:
            raise InputError(wrong, code="invalid_value")
        if out is not None:
            check_out(out, self._named)

    def run(
        self, rewrite: Callable[[Transcript], Rewritten], doing: str, *, rows: int, as_json: bool
    ) -> None:
        """Does all of it, and ends the command with its exit code where that is not 0."""
        done: dict[str, list[Rewritten]] = {}
        failures: dict[str, SatchelError] = {}
        with progress(self._named, doing) as on_read:
            reading = Reading(self._format, self._skip_errors, on_read)
            for file in self._named:
                try:
                    done[file] = [rewrite(found) for found in reading.conversations(file)]
                    if self._in_place:
                        _write_back(file, done[file])
                except SatchelError as error:
                    done.pop(file, None)
                    failures[file] = error
        found = [one for several in done.values() for one in several]
        if self._out is not None:
            write_file(self._out, _conversations(found))
        is_printed = self._out is None and not self._in_place
        if as_json:
            print_json(_json(found, failures, with_records=is_printed))
        else:
            for file, failure in failures.items():
                say_error(failure, file)
            if is_printed:
                typer.echo(_conversations(found, ascii_only=True), nl=False)
            # Where the conversations themselves are printed, everything else is said beside them.
            _say(found, failures, rows, to_err=is_printed)
        if failures:
            raise typer.Exit(FAILED)
        if any(one.errors_after for one in found):
            raise typer.Exit(_INVALID)


def _conversations(found: Sequence[Rewritten], *, ascii_only: bool = False) -> str:
    if len(found) == 1:
        return json_text(found[0].record, indent=1, ascii_only=ascii_only) + "\n"
    return "".join(json_text(one.record, ascii_only=ascii_only) + "\n" for one in found)


def _write_back(file: str, found: list[Rewritten]) -> None:
    """Puts the conversations in the place of their file, in its own form where it has one."""
    if not any(one.is_changed for one in found):
        return
    foreign = {one.conversation.format for one in found} - set(DIALECTS)
    if foreign:
        name = min(foreign)
        message = f"a file of {name} cannot be written in place, its program could not read it"
        raise InputError(message, code="invalid_value")
    if Path(file).suffix == ".gz":
        message = "a compressed file cannot be written in place"
        raise InputError(message, code="invalid_value")
    replace_file(file, _same_form(Path(file).read_text(encoding="utf-8-sig"), found))


def _same_form(before: str, found: list[Rewritten]) -> str:
    """What was a list of messages, or an object with them, stays one, all other fields too."""
    one = found[0]
    if len(found) > 1 or one.dialect != one.conversation.dialect:
        return _conversations(found)
    try:
        given: Any = json.loads(before)
    except ValueError:
        lines = [line for line in before.splitlines() if line.strip()]
        if len(lines) == len(one.conversation.messages):  # a message a line
            return "".join(json_text(message) + "\n" for message in one.messages)
        return _conversations(found)
    size = len(one.conversation.messages)
    if isinstance(given, (list, tuple)) and len(cast("Sequence[Any]", given)) == size:
        return json_text(one.messages, indent=1) + "\n"
    if isinstance(given, dict):
        fields = cast("dict[str, Any]", given)
        key = next((key for key in _KEYS if isinstance(fields.get(key), list)), None)
        if key is not None and len(fields[key]) == size:
            return json_text({**fields, key: one.messages}, indent=1) + "\n"
    return _conversations(found)


def _say(
    found: list[Rewritten], failures: dict[str, SatchelError], rows: int, *, to_err: bool
) -> None:
    """One line for each loss and each conversation that changed, and a total."""
    if not found and failures:
        return
    lines: list[str] = []
    for one in found:
        place = f"{one.conversation.source}, conversation {one.conversation.index + 1}"
        lines += [f"{place}: {loss}" for loss in one.losses]
        if not one.conversation.messages:
            lines.append(f"{place}: no messages")
        if one.dialect == one.conversation.dialect and one.is_changed:
            gone = len(one.conversation.messages) - one.kept
            lines.append(f"{place}: {gone:,} messages became {len(one.messages) - one.kept:,}")
    say_lines(lines, rows, err=to_err)
    changed = sum(one.is_changed for one in found)
    losses = sum(len(one.losses) for one in found)
    before = sum(one.errors_before for one in found)
    after = sum(one.errors_after for one in found)
    typer.echo(
        f"{len(found):,} conversations, {changed:,} changed: "
        f"{before:,} errors before, {after:,} after, {losses:,} losses"
        f"{not_read(failures)}",
        err=to_err,
    )


def _json(
    found: list[Rewritten], failures: dict[str, SatchelError], *, with_records: bool
) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "conversations": [
            {
                "file": one.conversation.source,
                "conversation": one.conversation.index + 1,
                "format": one.conversation.format,
                "dialect": one.dialect,
                "messages_before": len(one.conversation.messages),
                "messages": len(one.messages),
                "kept": one.kept,
                "errors_before": one.errors_before,
                "errors": one.errors_after,
                "losses": [asdict(loss) for loss in one.losses],
                **({"result": shown_json(one.record)} if with_records else {}),
            }
            for one in found
        ],
        "total": {
            "conversations": len(found),
            "changed": sum(one.is_changed for one in found),
            "errors_before": sum(one.errors_before for one in found),
            "errors": sum(one.errors_after for one in found),
            "losses": sum(len(one.losses) for one in found),
        },
    }
    if failures:
        shown["error"] = error_json(next(iter(failures.values())))
        shown["errors"] = errors_json(failures)
    return shown
