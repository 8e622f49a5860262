"""The command that compares policies over recorded runs."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, cast

import typer

from satchel._cli_files import check_out, write_file
from satchel._cli_frame import AsJson, FileFormat, app, print_json, reporting
from satchel._cli_text import printable
from satchel._remote import size_of
from satchel.errors import InputError
from satchel.reading import STDIN, transcript_files

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from satchel.policy import Policy
    from satchel.reading import Format
    from satchel.replay import Progress, ReplayReport

__all__ = ["policy_of", "replay"]

_TOML: Final = ".toml"

Paths = Annotated[
    list[str],
    typer.Argument(metavar="PATH...", help="Transcripts, folders of them; - for standard input."),
]


@app.command()
def replay(
    paths: Paths,
    *,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="Preset, baseline, or a policy's TOML file; may be given again. "
            "Default: adaptive and every baseline."
        ),
    ] = None,
    budget: Annotated[
        str, typer.Option(help="What a window may have: a share of each run, or tokens.")
    ] = "25%",
    model: Annotated[
        str | None, typer.Option(help="Whose prices are used; default: claude-sonnet-4-5.")
    ] = None,
    counter: Annotated[
        str, typer.Option(help="What counts: an encoding, an estimator or a model.")
    ] = "chars4",
    report: Annotated[
        Path | None, typer.Option(help="Write the report as an HTML page to this file.")
    ] = None,
    pictures: Annotated[
        int, typer.Option(min=0, max=64, help="Longest runs to show call by call in the page.")
    ] = 4,
    min_calls: Annotated[int, typer.Option(min=1, help="Leave out runs with fewer calls.")] = 2,
    results: Annotated[
        str | None, typer.Option(help="Write a row for each run and policy to this Parquet file.")
    ] = None,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            help="Column to partition the results by, such as policy; may be given again."
        ),
    ] = None,
    sample: Annotated[
        str | None, typer.Option(help="Replay only these runs, by lot: a share (10%), or a number.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the sample and of the policy random.")] = 0,
    engine: Annotated[
        str, typer.Option(help="Where the work is done: local, or ray (RAY_ADDRESS or a new one).")
    ] = "local",
    threads: Annotated[
        int | None, typer.Option(min=1, help="Runs to replay at once; default: one a core.")
    ] = None,
    file_format: FileFormat = "auto",
    as_json: AsJson = False,
) -> None:
    """Compare policies over recorded runs: what could still be read, and what it cost.

    Plays each run again call by call. One row for each policy; intervals by resampling the runs.
    Files that cannot be read are left out with a warning.
    """
    with reporting(as_json=as_json):
        from satchel._cli_batch import engine_of  # noqa: PLC0415 - loads more commands
        from satchel.replay import DEFAULT_POLICIES, run  # noqa: PLC0415 - slow to load

        files = [found for path in paths for found in transcript_files(path)]
        if results is not None:
            from satchel.replay.table import check_results  # noqa: PLC0415 - slow to load

            check_results(results, files, is_folder=bool(partition_by))
        if report is not None:
            check_out(str(report), files)
            _check_writable(report)
        with _progress(files) as told:
            found = run(
                files,
                policies=[policy_of(name) for name in policy] if policy else DEFAULT_POLICIES,
                budget=budget,
                model=model,
                counter=counter,
                format=cast("Format", file_format),
                min_calls=min_calls,
                pictures=pictures if report is not None else 0,
                sample=sample,
                seed=seed,
                engine=engine_of(engine),
                threads=threads,
                progress=told,
            )
        if not found.runs:
            message = f"no run with {min_calls} calls or more in these files"
            raise InputError(message, code="invalid_file")
        if report is not None:
            write_file(str(report), found.to_html())
        if results is not None:
            found.to_parquet(results, partition_by=partition_by or ())
        if as_json:
            print_json(json.loads(found.to_json()))
        else:
            _print_table(found, report)


def policy_of(name: str) -> str | Policy:
    """A preset's name, or the policy in a TOML file.

    Raises:
        InputError: ``invalid_file``, ``invalid_value``.
    """
    if not name.endswith(_TOML):
        return name
    from satchel.policy import Policy  # noqa: PLC0415 - pydantic is slow to load

    try:
        return Policy.from_toml(Path(name))
    except OSError as error:
        message = f"{name}: {(error.strerror or 'cannot be read').lower()}"
        raise InputError(message, code="invalid_file") from error


def _check_writable(path: Path) -> None:
    """Fails before the work, not after it."""
    try:
        with path.open("a", encoding="utf-8"):
            pass
    except OSError as error:
        message = f"{path}: {(error.strerror or 'cannot be written').lower()}"
        raise InputError(message, code="invalid_file") from error


@contextmanager
def _progress(files: Sequence[str]) -> Generator[Callable[[Progress], None] | None]:
    """A bar over the bytes that were read, on a terminal; a line for every run beside it."""
    if not sys.stderr.isatty():
        yield None
        return
    from satchel._cli_tables import progress_bar  # noqa: PLC0415 - rich is slow to load

    size = sum(map(size_of, files))
    with progress_bar() as bar:
        task = bar.add_task("replaying", total=None if STDIN in files else size)

        def tell(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.bytes_read,
                description=f"replaying, {progress.runs:,} runs",
            )

        yield tell


def _print_table(found: ReplayReport, page: Path | None) -> None:
    from satchel._cli_replay_table import print_replay  # noqa: PLC0415 - rich is slow to load

    print_replay(found)
    if page is not None:
        typer.echo(f"report: {printable(str(page))}")
