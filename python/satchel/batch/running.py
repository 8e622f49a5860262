"""`rewrite`: files in, one file out, on all cores, in the order of the input."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

from satchel._remote import size_of, stamp_of, without_query
from satchel.batch.arrow import Staged
from satchel.batch.checkpoint import Outputs
from satchel.batch.options import settings
from satchel.batch.partitions import partition_keys
from satchel.batch.rejects import checked, raise_first
from satchel.batch.targets import Targets, beside
from satchel.batch.units import Output, Place, Unit, units
from satchel.errors import InputError
from satchel.reading import STDIN, transcript_files

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from concurrent.futures import Future

    from satchel.batch.checkpoint import Checkpoint
    from satchel.batch.options import At, OnError, Redact, Settings
    from satchel.batch.summary import Summary
    from satchel.counting import Counter
    from satchel.policy import Policy
    from satchel.reading import Format

__all__ = ["Engine", "Progress", "inputs", "rewrite"]

_WAITING: Final = 32 << 20
"""Bytes of units that may wait for a core or for their turn to be written."""
_AHEAD: Final = 8
"""Units per thread that may: work for as long as the disk takes to make a state safe."""

_SAVE_S: Final = 1.0

AnyPath = str | os.PathLike[str]

Engine = Literal["local", "ray"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is.

    Attributes:
        summary: sums so far, those of the runs before this one included.
        bytes_total: bytes of all files on the disk.
        elapsed_s: seconds since this run began.
        bytes_now: bytes that this run has read.
    """

    summary: Summary
    bytes_total: int
    elapsed_s: float
    bytes_now: int

    @property
    def left_s(self) -> float | None:
        """Seconds that the rest will take at the rate so far; None before there is one."""
        if not self.bytes_now or self.elapsed_s <= 0:
            return None
        rest = max(0, self.bytes_total - self.summary.bytes_read)
        return rest * self.elapsed_s / self.bytes_now


def rewrite(
    paths: AnyPath | Iterable[AnyPath],
    out: AnyPath,
    *,
    model: str,
    policy: str | Policy = "adaptive",
    budget: float | str | None = None,
    convert: str | None = None,
    at: At = "end",
    counter: str | Counter | None = None,
    format: Format | str = "auto",  # noqa: A002 - the word that users know from every reader of files
    report: AnyPath | None = None,
    rejects: AnyPath | None = None,
    pages: AnyPath | None = None,
    partition_by: str | Sequence[str] = (),
    redact: Redact = False,
    on_error: OnError = "reject",
    engine: Engine = "local",
    threads: int | None = None,
    staging: AnyPath | None = None,
    restart: bool = False,
    progress: Callable[[Progress], None] | None = None,
) -> Summary:
    """Writes stored conversations anew: each as the window that its next call would have been sent.

    Each conversation is converted if another dialect is wanted, repaired if it must be, folded
    under the policy as a running agent's would have been, and asked for its window. Reads JSON
    Lines (plain, gzip, zstd), Parquet and any transcript that `satchel.read_transcripts` reads;
    memory is bounded by the largest single conversation (of files that are no JSON Lines or
    Parquet: the largest file), not by the files. Equal inputs and options give equal bytes, in the
    order of the input, on any number of threads. A run that was killed goes on where it was when it
    is called again with the same arguments, to the same bytes.

    Args:
        paths: files and folders; URLs of them where pyarrow or fsspec knows the scheme.
        out: the file to write, or its URL: Parquet if it ends in ``.parquet``, else JSON Lines that
            every reader of this library takes. A record has ``dialect``, ``model``, ``system``,
            ``tools``, ``messages``, and ``metadata`` with ``source``, ``line``, ``conversation``
            (which of that line, from 0) and ``at`` (messages before the window). Parquet has
            ``messages``, ``system``, ``tools`` and ``report`` as JSON texts.
        model: whose windows they are: its counter, its limit, its prices.
        policy: a `Policy` or the name of a preset.
        budget: input tokens of a window, or a share of each conversation such as ``"25%"`` (system,
            tools, leading instructions and first user message, and that share of the rest, at least
            its largest message); default: what the model takes.
        convert: dialect of the output; default: each conversation keeps its own.
        at: ``"end"``: one window, behind the last message. ``"every-call"``: one before each reply.
            ``"turn:K"``: one before the first reply of turn K, from 1, below 0 from the end.
        counter: what counts; default: the model's own.
        format: as in `satchel.read_transcripts`; of files that are no Parquet.
        report: a JSON line for each window: tokens before and after, steps by level, violations,
            repairs, losses, cost; default: ``out`` with ``.report.jsonl`` behind it.
        rejects: a JSON line for each conversation, line or file without a window, and why; default:
            ``out`` with ``.rejects.jsonl`` behind it.
        pages: if given, a JSON line for each part that is not verbatim in the windows: its pointer,
            its place and its text, so that what a window points to can be looked up by ``source``,
            ``line``, ``conversation`` and ``pointer``. Without it the originals are in the input,
            whose place the report names.
        partition_by: keys of a partitioned output. ``out`` is then a folder of Parquet files,
            ``key=value/part-0.parquet``; the values are those that the folders of the input have in
            the same way. Such a folder must not be there before.
        redact: True replaces personal data and secrets in everything that is written by typed
            placeholders, the same in a whole conversation, as `satchel.redact` finds them; or the
            kinds to replace. Tokens are counted without them.
        on_error: ``"reject"`` goes on, ``"raise"`` stops at the first; the outputs so far stay, and
            the next call with the same arguments goes on before it.
        engine: ``"local"``: the cores of this machine. ``"ray"``: Ray Data, on the cluster that the
            program is connected to, that of ``RAY_ADDRESS``, or a small one made for this run; the
            bytes are the same. Every worker must be able to read the files. Extra ``ray``.
        threads: how many; default: one for each core. With Ray: tasks at once.
        staging: folder in which what goes to a URL is made before it is copied; default: one in
            the user's cache folder.
        restart: begin anew even if an interrupted run is there.
        progress: is told after every unit of work.

    Returns:
        The sums of the whole run.

    Raises:
        InputError: ``invalid_value``, ``unknown_model``, ``unknown_dialect`` for an option;
            ``invalid_file`` for an output that cannot be written or standard input; with
            ``on_error="raise"`` what is wrong with the first reject, also as `BudgetError`.
        EngineError: ``engine_failed`` if Ray gave up; the next call goes on.
        ImportError: Parquet, zstd or a URL without pyarrow; ``engine="ray"`` without Ray Data.
    """
    checked(on_error)
    if engine not in ("local", "ray"):
        message = "engine must be 'local' or 'ray'"
        raise InputError(message, code="invalid_value")
    if threads is not None and threads < 1:
        message = f"threads is {threads}, must be at least 1"
        raise InputError(message, code="invalid_value", value=threads, limit=1)
    options: dict[str, Any] = {
        "policy": policy,
        "model": model,
        "budget": budget,
        "convert": convert,
        "at": at,
        "counter": counter,
        "pages": pages is not None,
        "file_format": format,
        "redact": redact,
    }
    chosen = settings(**options)
    keys = partition_keys(partition_by)
    target = os.fspath(out)
    named = {
        "records": target,
        "reports": beside(target, ".report.jsonl") if report is None else os.fspath(report),
        "rejects": beside(target, ".rejects.jsonl") if rejects is None else os.fspath(rejects),
    }
    if pages is not None:
        named["pages"] = os.fspath(pages)
    targets = Targets(named, None if staging is None else os.fspath(staging))
    files = targets.others(inputs(paths), is_folder=bool(keys))
    targets.check(_given(paths))
    targets.make()
    is_parquet = bool(keys) or without_query(target).endswith(".parquet")
    run = _Run(
        files,
        Outputs(targets.paths, targets.manifest, _digest(chosen, files, keys)),
        targets,
        Staged(keys) if is_parquet else None,
        engine=_engine(engine, options, chosen, threads),
    )
    return run.run(on_error, progress, restart=restart)


def _given(paths: AnyPath | Iterable[AnyPath]) -> list[str]:
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    return [os.fspath(path) for path in several]


def inputs(paths: AnyPath | Iterable[AnyPath]) -> list[str]:
    """The files that are read, in their order.

    Raises:
        InputError: ``invalid_file`` for standard input and folders that cannot be listed.
    """
    given = _given(paths)
    if STDIN in given:
        message = "standard input cannot be read again after an interruption; give a file"
        raise InputError(message, code="invalid_file")
    return [file for path in given for file in transcript_files(path)]


def _digest(chosen: Settings, files: list[str], keys: tuple[str, ...]) -> str:
    """Tells runs apart: options, and the names, sizes and times of the files."""
    told: list[object] = [chosen.digest, *([keys] if keys else ())]
    told += [[file, stamp_of(file)] for file in files]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


Work = Callable[[list[str], Place, bool], Iterator[tuple[Unit, Output]]]
"""The outputs of files from a place on, in order; the flag says whether columns are wanted."""


def _engine(engine: Engine, options: dict[str, Any], chosen: Settings, threads: int | None) -> Work:
    if engine == "ray":
        from satchel.batch.ray_units import ray_outputs  # noqa: PLC0415 - an extra

        return lambda files, place, columns: ray_outputs(
            files, place, options, columns=columns, tasks=threads
        )
    return lambda files, place, columns: _in_order(
        units(files, place, chosen, columns=columns), threads or os.cpu_count() or 1
    )


class _Run:
    """One run over some files."""

    def __init__(
        self,
        files: list[str],
        outputs: Outputs,
        targets: Targets,
        staged: Staged | None,
        *,
        engine: Work,
    ) -> None:
        self._files = files
        self._outputs = outputs
        self._targets = targets
        self._staged = staged
        self._engine = engine

    def run(
        self,
        on_error: OnError,
        progress: Callable[[Progress], None] | None,
        *,
        restart: bool,
    ) -> Summary:
        state = self._outputs.open(restart=restart)
        total = sum(size_of(file) for file in self._files)
        began, saved, now = time.monotonic(), time.monotonic(), 0
        place, summary = state.place, state.summary
        try:
            if self._staged is not None and not state.sizes["records"]:
                self._staged.check(self._targets.paths["records"], self._targets.url("records"))
                self._outputs.append("records", self._staged.head())
                self._outputs.mark()
            # An engine ends with the run, whatever ends it, and not when somebody finds it.
            with closing(self._done(state)) as done:
                for unit, output in done:
                    raise_first(unit.source, output, on_error)
                    self._write(unit.source, output)
                    place, summary = unit.after, summary.plus(output, unit.on_disk)
                    now += unit.on_disk
                    if time.monotonic() - saved >= _SAVE_S:
                        self._outputs.save(place, summary)
                        saved = time.monotonic()
                    if progress is not None:
                        progress(Progress(summary, total, time.monotonic() - began, now))
            if not state.is_done:
                if self._staged is not None:
                    self._outputs.save(place, summary)
                    self._finish_parquet(self._staged)
                self._outputs.save(place, summary, is_done=True)
        except BaseException:  # an interrupt too leaves a state to go on from
            # What cannot be written now was the reason, or is not worth hiding it.
            if not state.is_done:
                with suppress(InputError):
                    self._outputs.save(place, summary)
            with suppress(InputError):
                self._outputs.close()
            raise
        self._outputs.finish(staged=self._is_staged, publish=self._targets.publish)
        self._targets.clear()
        return summary

    def _done(self, state: Checkpoint) -> Generator[tuple[Unit, Output]]:
        if not state.is_done:
            yield from self._engine(self._files, state.place, self._is_staged)

    @property
    def _is_staged(self) -> bool:
        return self._staged is not None

    def _write(self, source: str, output: Output) -> None:
        append = self._outputs.append
        append(
            "records",
            output["records"] if self._staged is None else self._staged.body(output, source),
        )
        text = output["reports"][1]
        if self._staged is not None:
            starts = output["reports"][0]
            text = b"".join(text[start:end] + b"\n" for start, end in pairwise(starts))
        append("reports", text)
        append("rejects", output["rejects"])
        append("pages", output["pages"])
        self._outputs.mark()

    def _finish_parquet(self, staged: Staged) -> None:
        """Makes the Parquet file of what was staged."""
        part = self._outputs.part("records")
        made = part.with_name(part.name + ".parquet")
        staged.write(part, made)
        self._outputs.take("records", made)


def _in_order(work: Iterator[Unit], threads: int) -> Iterator[tuple[Unit, Output]]:
    """The outputs of units in their order; so many at work, so many bytes waiting."""
    waiting: deque[tuple[Unit, Future[Output]]] = deque()
    held = 0
    with ThreadPoolExecutor(max_workers=threads) as pool:
        try:
            for unit in work:
                waiting.append((unit, pool.submit(unit.work)))
                held += unit.size
                while waiting and (len(waiting) > _AHEAD * threads or held > _WAITING):
                    done, future = waiting.popleft()
                    yield done, future.result()
                    held -= done.size
            while waiting:
                done, future = waiting.popleft()
                yield done, future.result()
        finally:
            for _, future in waiting:
                future.cancel()
