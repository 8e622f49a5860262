"""The results of a replay as a table, a row for each run and policy, and as Parquet."""

from __future__ import annotations

import os
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from satchel._arguments import plain_texts, shown
from satchel._cli_files import check_out
from satchel._remote import check_writable, file_system, is_remote, without_query
from satchel.batch.arrow import needed
from satchel.errors import InputError
from satchel.reading import file_error
from satchel.replay.outcome import Outcome, RunResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.replay.report import ReplayReport

__all__ = ["check_results", "results_table", "write_results"]

_APART: Final = frozenset({"outcomes", "sizes", "shots", "worst"})


def results_table(report: ReplayReport) -> Any:  # noqa: ANN401 - pyarrow comes without types
    """A ``pyarrow.Table``: the fields of `RunResult`, then those of `Outcome`.

    Both have ``calls``, of the run and of the policy, and they are equal: it is there once.

    Raises:
        ImportError: pyarrow is not installed.
    """
    arrow = needed("to_arrow")
    kinds = {"int": arrow.int64(), "float": arrow.float64(), "bool": arrow.bool_()}
    columns: dict[str, Any] = {}
    for kind in (RunResult, Outcome):
        for one in fields(kind):
            if one.name in _APART or one.name in columns:
                continue
            values: list[Any] = [
                getattr(run if kind is RunResult else run.outcomes[policy], one.name)
                for run in report.runs
                for policy in report.policies
            ]
            column = kinds.get(str(one.type).partition(" ")[0], arrow.string())
            if column == arrow.string():
                values = [None if text is None else _storable(text) for text in values]
            columns[one.name] = arrow.array(values, column)
    return arrow.table(columns)


def _storable(text: str) -> str:
    """Without lone surrogates, for which UTF-8 has no form."""
    return text.encode("utf-8", "backslashreplace").decode()


def check_results(name: str, files: Sequence[str], *, is_folder: bool) -> None:
    """Refuses, before the work, what `write_results` could not write or must not replace.

    Args:
        name: path or URL.
        files: what is read.
        is_folder: whether the results are partitioned.

    Raises:
        InputError: ``invalid_file``.
        ImportError: pyarrow is not installed.
    """
    needed("to_parquet")
    if is_remote(name):
        if without_query(name) in {without_query(file) for file in files}:
            raise file_error(name, "this is the transcript itself, it would be replaced")
        check_writable(name)
        return
    check_out(name, files)
    if not is_folder and not Path(name).absolute().parent.is_dir():
        raise file_error(name, "no such file or directory")


def write_results(
    report: ReplayReport, path: str | os.PathLike[str], partition_by: Sequence[str]
) -> None:
    """Writes the table as a Parquet file, or as a folder of them.

    Raises:
        InputError: ``invalid_value`` for an unknown column, ``invalid_file``.
        ImportError: pyarrow is not installed.
    """
    keys = plain_texts("partition_by", partition_by)
    table = results_table(report)
    unknown = next((key for key in keys if key not in table.column_names), None)
    if unknown is not None:
        message = f"partition_by names no column of the results: {shown(unknown)}"
        raise InputError(message, code="invalid_value")
    name = os.fspath(path)
    system, place = file_system(name) if is_remote(name) else (None, str(Path(name).absolute()))
    try:
        if keys:
            import_module("pyarrow.dataset").write_dataset(
                table,
                place,
                format="parquet",
                partitioning=keys,
                partitioning_flavor="hive",
                existing_data_behavior="error",
                filesystem=system,
            )
        else:
            import_module("pyarrow.parquet").write_table(
                table, place, compression="zstd", filesystem=system
            )
    except (NotImplementedError, OSError, ValueError) as error:
        why = "cannot be written"
        if isinstance(error, OSError) and error.strerror:
            why = error.strerror.lower()
        elif isinstance(error, NotImplementedError):
            why = "its scheme is for reading only"
        elif keys:
            why = "cannot be written, or is there already"
        raise file_error(name, why) from error
