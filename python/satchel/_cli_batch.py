"""The command ``rewrite``: stored conversations written anew in bulk."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from satchel._cli_frame import AsJson, FileFormat, app, print_json, reporting
from satchel._cli_text import printable
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from satchel.batch import Progress, Summary
    from satchel.policy import Policy

__all__ = ["rewrite"]

_EVERY_S: Final = 10.0

Inputs = Annotated[list[str], typer.Argument(metavar="IN...", help="Files and folders.")]


@app.command()
def rewrite(
    inputs: Inputs,
    *,
    out: Annotated[str, typer.Option(help="File to write: .parquet, else JSON Lines.")],
    model: Annotated[str, typer.Option(help="Model that the windows are for.")],
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
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace personal data and secrets by placeholders.")
    ] = False,
    on_error: Annotated[
        str, typer.Option(help="What to do about a bad record: reject, or raise.")
    ] = "reject",
    threads: Annotated[
        int | None, typer.Option(min=1, help="How many; default: one a core.")
    ] = None,
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

        with _progress() as told:
            done = run(
                inputs,
                out,
                model=model,
                policy=_policy(policy),
                budget=budget,
                convert=convert,
                at=at,
                counter=counter,
                format=file_format,
                report=report,
                rejects=rejects,
                pages=pages,
                redact=redact,
                on_error=_on_error(on_error),
                threads=threads,
                restart=restart,
                progress=told,
            )
        if as_json:
            print_json(done.as_dict())
        else:
            _say(done, out)
        if done.rejected:
            raise typer.Exit(1)


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
