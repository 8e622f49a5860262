"""The commands that count and pack: options in, figures out; ``_cli_tables`` draws them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from satchel._cli_files import check_out, json_text, write_file
from satchel._cli_frame import (
    FAILED,
    AsJson,
    File,
    FileFormat,
    Files,
    Reading,
    SkipErrors,
    app,
    concerning,
    error_json,
    errors_json,
    known_model,
    print_json,
    progress,
    reporting,
    say_error,
    told_dialect,
)
from satchel._remote import without_query
from satchel.errors import InputError, SatchelError
from satchel.reading import Transcript, file_error, transcript_files

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.assembler import StepReport, Window
    from satchel.counting import Counter

__all__ = ["Chosen", "FileCount", "OpenCalls", "Packed"]

_DEFAULT_ENCODING: Final = "o200k_base"


class OpenCalls(StrEnum):
    """What to do about calls of the newest step that have no result."""

    RAISE = "raise"
    SYNTHESIZE = "synthesize"


# --- count ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCount:
    """What the conversations of one file cost, in tokens.

    ``total`` is ``message_tokens + system_tokens + tools_tokens + overhead_tokens``; ``upper`` is
    the upper estimate. ``encodings`` are the names of what counted.
    """

    file: str
    conversations: int = 0
    messages: int = 0
    message_tokens: int = 0
    system_tokens: int = 0
    tools_tokens: int = 0
    overhead_tokens: int = 0
    total: int = 0
    upper: int = 0
    exact: bool = True
    encodings: tuple[str, ...] = ()

    def plus(self, other: FileCount) -> FileCount:
        """Both together, under this one's name."""
        figures = {
            name: getattr(self, name) + getattr(other, name)
            for name in (
                "conversations",
                "messages",
                "message_tokens",
                "system_tokens",
                "tools_tokens",
                "overhead_tokens",
                "total",
                "upper",
            )
        }
        encodings = tuple(sorted({*self.encodings, *other.encodings}))
        return replace(self, **figures, exact=self.exact and other.exact, encodings=encodings)


@app.command()
def count(
    files: Files,
    *,
    model: Annotated[
        str | None,
        typer.Option(help="Count as for this model; default: the one that the file names."),
    ] = None,
    encoding: Annotated[
        str | None, typer.Option(help="Count with this encoding or estimator, such as o200k_base.")
    ] = None,
    dialect: Annotated[
        str | None, typer.Option(help="Dialect of the messages; default: what the file is in.")
    ] = None,
    file_format: FileFormat = "auto",
    skip_errors: SkipErrors = False,
    as_json: AsJson = False,
) -> None:
    """Count the tokens of transcripts.

    A file that cannot be counted is reported, and the others are counted all the same.
    """
    with reporting(as_json=as_json):
        if model is not None and encoding is not None:
            message = "give --model or --encoding, not both"
            raise InputError(message, code="invalid_value")
        counts: list[FileCount] = []
        errors: dict[str, SatchelError] = {}
        named = [found for file in files for found in transcript_files(file)]
        with progress(named, "counting") as on_read:
            reading = Reading(file_format, skip_errors, on_read)
            for file in named:
                try:
                    counts.append(_count_file(file, model, encoding, dialect, reading))
                except SatchelError as error:
                    errors[file] = error
        total = FileCount(file="total")
        for counted in counts:
            total = total.plus(counted)
        if as_json:
            print_json(_count_json(counts, errors, total))
        else:
            for file, failure in errors.items():
                say_error(failure, file)
            if counts:
                from satchel._cli_tables import print_counts  # noqa: PLC0415 - rich is slow to load

                print_counts(counts, total)
        if errors:
            raise typer.Exit(FAILED)


def _count_file(
    file: str, model: str | None, encoding: str | None, dialect: str | None, reading: Reading
) -> FileCount:
    counted = FileCount(file=without_query(file))
    for conversation in reading.conversations(file):
        counted = counted.plus(_count_conversation(conversation, model, encoding, dialect))
    return counted


def _count_conversation(
    conversation: Transcript, model: str | None, encoding: str | None, dialect: str | None
) -> FileCount:
    from satchel import models  # noqa: PLC0415 - slow to load
    from satchel.counting import counter as counter_of  # noqa: PLC0415 - likewise

    named = (
        None
        if encoding is not None
        else model or known_model(conversation, f"counted in {_DEFAULT_ENCODING}")
    )
    counter = counter_of(named or encoding or _DEFAULT_ENCODING)
    chosen = dialect or told_dialect(conversation)
    if chosen is None and named is not None:
        chosen = models.get(named).dialect
    counts = counter.count_messages(
        conversation.messages,
        system=conversation.system,
        tools=conversation.tools,
        dialect=chosen,
    )
    return FileCount(
        file="",
        conversations=1,
        messages=len(conversation.messages),
        message_tokens=int(counts.per_message.sum(dtype="uint64")),
        system_tokens=counts.system,
        tools_tokens=counts.tools,
        overhead_tokens=counts.overhead,
        total=counts.total,
        upper=counts.upper,
        exact=counts.exact,
        encodings=(counter.encoding,),
    )


def _count_json(
    counts: Sequence[FileCount], errors: dict[str, SatchelError], total: FileCount
) -> dict[str, Any]:
    found: dict[str, Any] = {
        "files": [asdict(counted) for counted in counts],
        "total": {key: value for key, value in asdict(total).items() if key != "file"},
    }
    if errors:
        found["error"] = error_json(next(iter(errors.values())))
        found["errors"] = errors_json(errors)
    return found


# --- window ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """One conversation of a file: ``number``, from 1, of so many."""

    file: str
    number: int
    of: int
    conversation: Transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A conversation and its window.

    Attributes:
        chosen: the conversation.
        window: the window.
        steps: what happened to each step.
        overhead: tokens that a request costs beside messages, system prompt and tools.
        counter: what counted.
    """

    chosen: Chosen
    window: Window
    steps: list[StepReport]
    overhead: int
    counter: Counter

    @property
    def tokens_before(self) -> int:
        """Tokens of a request with the whole history."""
        report = self.window.report
        original = sum(step.original_tokens for step in self.steps)
        return original + report.system_tokens + report.tools_tokens + self.overhead


@app.command()
def window(
    file: File,
    *,
    model: Annotated[
        str | None, typer.Option(help="The model to call; default: the one that the file names.")
    ] = None,
    budget: Annotated[
        int | None,
        typer.Option(help="Input tokens of the whole request; default: what the model can take."),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="Name of a policy, or a .toml file that holds one.")
    ] = "adaptive",
    dialect: Annotated[
        str | None, typer.Option(help="Dialect of the messages; default: what the file is in.")
    ] = None,
    open_calls: Annotated[
        OpenCalls, typer.Option(help="What to do about calls at the end that have no result.")
    ] = OpenCalls.RAISE,
    conversation: Annotated[int, typer.Option(help="Which conversation of the file, from 1.")] = 1,
    rows: Annotated[
        int, typer.Option(min=0, help="Most rows of the table; 0 for all of them.")
    ] = 1_000,
    out: Annotated[
        str | None, typer.Option(help="Write the messages of the window to this file, as JSON.")
    ] = None,
    file_format: FileFormat = "auto",
    skip_errors: SkipErrors = False,
    as_json: AsJson = False,
) -> None:
    """Pack the window of one transcript.

    Shows what happened to each step, and the totals before and after.
    """
    with reporting(as_json=as_json):
        if Path(file).is_dir():
            raise file_error(file, "is a directory")
        if out is not None:
            check_out(out, [file])
        with progress([file], "packing") as on_read:
            reading = Reading(file_format, skip_errors, on_read)
            with concerning(file):
                packed = _packed(
                    _chosen(file, conversation, reading),
                    model=model,
                    budget=budget,
                    policy=policy,
                    dialect=dialect,
                    open_calls=open_calls,
                )
        if out is not None:
            write_file(out, json_text(packed.window.messages, indent=1) + "\n")
        if as_json:
            print_json(_window_json(packed))
        else:
            from satchel._cli_tables import print_window  # noqa: PLC0415 - rich is slow to load

            print_window(packed, most_rows=rows)


def _chosen(file: str, number: int, reading: Reading) -> Chosen:
    """The conversation of that number, from 1."""
    found: Transcript | None = None
    of = 0
    for conversation in reading.conversations(file):
        of += 1
        if of == number:
            found = conversation
    if found is None:
        message = f"conversation is {number}, the file has {of}"
        raise InputError(message, code="invalid_value", value=number, limit=of)
    return Chosen(file=without_query(file), number=number, of=of, conversation=found)


def _packed(
    chosen: Chosen,
    *,
    model: str | None,
    budget: int | None,
    policy: str,
    dialect: str | None,
    open_calls: OpenCalls,
) -> Packed:
    from satchel.assembler import Assembler  # noqa: PLC0415 - pydantic is slow to load
    from satchel.policy import Policy  # noqa: PLC0415 - likewise

    conversation = chosen.conversation
    named = model or conversation.model
    if named is None:
        message = "the file names no model: give --model"
        raise InputError(message, code="invalid_value")
    try:
        rules = Policy.from_toml(Path(policy)) if policy.endswith(".toml") else policy
    except OSError as error:
        raise file_error(policy, (error.strerror or "cannot be read").lower()) from error
    written = dialect or told_dialect(conversation)
    assembler = Assembler(named, budget=budget, policy=rules, dialect=written)
    working_set = assembler.working_set(
        conversation.messages, system=conversation.system, tools=conversation.tools
    )
    found = working_set.window(open_calls=open_calls.value)
    nothing = assembler.counter.count_messages([], dialect=assembler.dialect)
    return Packed(
        chosen=chosen,
        window=found,
        steps=working_set.explain(),
        overhead=nothing.overhead,
        counter=assembler.counter,
    )


def _window_json(packed: Packed) -> dict[str, Any]:
    found = packed.window
    report = found.report
    return {
        "file": packed.chosen.file,
        "conversation": packed.chosen.number,
        "conversations": packed.chosen.of,
        "model": report.model,
        "dialect": found.dialect,
        "policy": report.policy,
        "encoding": packed.counter.encoding,
        "exact": found.exact,
        "budget": found.budget,
        "messages": report.messages,
        "window_messages": len(found.messages),
        "tokens_before": packed.tokens_before,
        "tokens": found.tokens,
        "tokens_upper": found.tokens_upper,
        "system_tokens": report.system_tokens,
        "tools_tokens": report.tools_tokens,
        "stable_prefix_tokens": found.stable_prefix_tokens,
        "compactions": report.compactions,
        "levels": dict(report.steps),
        "steps": [asdict(step) for step in packed.steps],
        "pages": [asdict(page) for page in found.pages],
    }
