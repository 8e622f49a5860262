"""The command ``rewrite``: stored conversations written anew in bulk."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final, Literal, TypedDict

import typer

from satchel._cli_frame import AsJson, FileFormat, app, print_json, reporting
from satchel._cli_text import printable
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from satchel.batch import Progress, Summary
    from satchel.policy import Policy

__all__ = ["engine_of", "rewrite"]

_EVERY_S: Final = 10.0

Inputs = Annotated[list[str], typer.Argument(metavar="IN...", help="Files and folders.")]


@app.command()
def rewrite(
    inputs: Inputs,
    *,
    model: Annotated[str, typer.Option(help="Model that the windows are for.")],
    out: Annotated[
        str | None, typer.Option(help="File or URL to write: .parquet, else JSON Lines.")
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(help="Input tokens, or a share such as 25%; default: what the model takes."),
    ] = None,
    policy: Annotated[str, typer.Option(help="Preset, or a policy's TOML file.")] = "adaptive",
    convert: Annotated[
        str | None, typer.Option(help="Dialect of the output; default: each keeps its own.")
    ] = None,
    at: Annotated[
        str, typer.Option(help="Which windows: end, every-call, or turn:K (below 0 from the end).")
    ] = "end",
    counter: Annotated[
        str | None, typer.Option(help="What counts; default: the model's own.")
    ] = None,
    report: Annotated[
        str | None, typer.Option(help="Report, a row a window; default: OUT.report.jsonl.")
    ] = None,
    rejects: Annotated[
        str | None, typer.Option(help="What has no window, and why; default: OUT.rejects.jsonl.")
    ] = None,
    pages: Annotated[
        str | None, typer.Option(help="Write what left the windows, by pointer, to this file.")
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(help="Folder key (key=value/) to partition OUT by; may be given again."),
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace personal data and secrets by placeholders.")
    ] = False,
    on_error: Annotated[
        str, typer.Option(help="What to do about a bad record: reject, or raise.")
    ] = "reject",
    engine: Annotated[
        str, typer.Option(help="Where the work is done: local, or ray (RAY_ADDRESS or a new one).")
    ] = "local",
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many; default: one a core. With ray: tasks.")
    ] = None,
    staging: Annotated[
        str | None, typer.Option(help="Folder in which what goes to a URL is made first.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only estimate, from a sample, what it would cost.")
    ] = False,
    sample: Annotated[
        int, typer.Option(min=2, help="Stretches (half a megabyte) or files of the dry run.")
    ] = 40,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample.")] = 0,
    restart: Annotated[
        bool, typer.Option("--restart", help="Begin anew, even after an interrupted run.")
    ] = False,
    file_format: FileFormat = "auto",
    as_json: AsJson = False,
) -> None:
    """Write stored conversations anew, each as the window of its next call.

    Goes on where it was after a kill, if it is called again in the same way. Prints the sums; the
    exit code is 1 if something was rejected, 2 if the run stopped.
    """
    with reporting(as_json=as_json):
        from satchel.batch import rewrite as run  # noqa: PLC0415 - slow to load

        options = _Options(
            model=model,
            policy=_policy(policy),
            budget=budget,
            convert=convert,
            at=at,
            counter=counter,
            format=file_format,
            redact=redact,
            threads=threads,
        )
        if dry_run:
            from satchel._cli_forecast import print_forecast  # noqa: PLC0415 - slow to load
            from satchel.batch import forecast  # noqa: PLC0415 - slow to load

            found = forecast(inputs, **options, sample=sample, seed=seed)
            print_forecast(found, threads, as_json=as_json)
            return
        if out is None:
            message = "--out is needed, but for a --dry-run"
            raise InputError(message, code="invalid_value")
        with _progress() as told:
            done = run(
                inputs,
                out,
                **options,
                report=report,
                rejects=rejects,
                pages=pages,
                partition_by=partition_by or (),
                on_error=_on_error(on_error),
                engine=engine_of(engine),
                staging=staging,
                restart=restart,
                progress=told,
            )
        if as_json:
            print_json(done.as_dict())
        else:
            _say(done, out)
        if done.rejected:
            raise typer.Exit(1)


class _Options(TypedDict):
    """What a run and its forecast share."""

    model: str
    policy: str | Policy
    budget: str | None
    convert: str | None
    at: str
    counter: str | None
    format: str
    redact: bool
    threads: int | None


def engine_of(name: str) -> Literal["local", "ray"]:
    """The engine of this name.

    Raises:
        InputError: ``invalid_value``.
    """
    if name == "local":
        return "local"
    if name == "ray":
        return "ray"
    message = "--engine must be local or ray"
    raise InputError(message, code="invalid_value")


def _policy(name: str) -> str | Policy:
    from satchel._cli_replay import policy_of  # noqa: PLC0415 - loads more commands

    return policy_of(name)


def _on_error(name: str) -> Literal["reject", "raise"]:
    if name == "reject":
        return "reject"
    if name == "raise":
        return "raise"
    message = "--on-error must be reject or raise"
    raise InputError(message, code="invalid_value")


@contextmanager
def _progress() -> Generator[Callable[[Progress], None] | None]:
    """A bar with rate and time left on a terminal; a line every ten seconds elsewhere."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from satchel._cli_tables import progress_bar  # noqa: PLC0415 - rich is slow to load

    with progress_bar() as bar:
        task = bar.add_task("rewriting", total=None)

        def tell(progress: Progress) -> None:
            bar.update(
                task,
                total=progress.bytes_total,
                completed=progress.summary.bytes_read,
                description=_told(progress),
            )

        yield tell


class _Lines:
    """Says how far it is, now and then."""

    def __init__(self) -> None:
        self._next_s = _EVERY_S

    def __call__(self, progress: Progress) -> None:
        if progress.elapsed_s >= self._next_s:
            self._next_s = progress.elapsed_s + _EVERY_S
            typer.echo(_told(progress), err=True)


def _told(progress: Progress) -> str:
    megabytes = progress.bytes_now / 1e6
    rate = megabytes / progress.elapsed_s if progress.elapsed_s > 0 else 0.0
    left = progress.left_s
    rest = "" if left is None else f", {left:,.0f} s left"
    done = progress.summary.conversations
    return f"rewriting, {done:,} conversations, {rate:,.1f} MB/s{rest}"


def _say(done: Summary, out: str) -> None:
    share = done.tokens_after / max(1, done.tokens_before)
    typer.echo(
        f"{done.conversations:,} conversations, {done.windows:,} windows, "
        f"{done.rejected:,} rejected: {printable(out)}"
    )
    typer.echo(f"tokens: {done.tokens_before:,} before, {done.tokens_after:,} after ({share:.1%})")
    typer.echo(
        f"errors: {done.violations:,} before, {done.violations_left:,} after; "
        f"{done.repaired:,} conversations repaired, {done.losses:,} losses"
    )
