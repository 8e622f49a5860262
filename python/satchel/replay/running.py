"""`run`: reads recorded runs one after the other and replays them on all cores."""

from __future__ import annotations

import heapq
import json
import os
import warnings
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from satchel import _core
from satchel._arguments import invalid, name_of_type, one_of, whole_number
from satchel._damage import DAMAGE
from satchel.errors import InputError
from satchel.reading import FORMATS, STDIN, Transcript, listed_files, read_transcripts
from satchel.repairing import repair
from satchel.replay.options import (
    DEFAULT_MODEL,
    DEFAULT_POLICIES,
    Settings,
    name_of,
    said,
    settings,
)
from satchel.replay.outcome import Outcome, RunResult, Skipped
from satchel.replay.report import ReplayReport
from satchel.replay.sampling import sample_of, sampled

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from satchel.policy import Policy
    from satchel.reading import Format

__all__ = ["Progress", "replayed", "run"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay is: runs that are done, bytes that were read, the run done last."""

    runs: int
    bytes_read: int
    newest: RunResult | Skipped


@dataclass(frozen=True, slots=True)
class _Loaded:
    """One run, ready to be replayed."""

    transcript: Transcript
    payload: tuple[str, str | None, str | None]
    repaired: bool


def run(
    paths: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    policies: str | Policy | Sequence[str | Policy] = DEFAULT_POLICIES,
    budget: float | str = 0.25,
    model: str | None = None,
    counter: str | _core.Counter = "chars4",
    format: Format | Literal["auto"] = "auto",  # noqa: A002 - the word that users know from every reader of files
    min_calls: int = 2,
    pictures: int = 4,
    sample: float | str | None = None,
    seed: int = 0,
    engine: Literal["local", "ray"] = "local",
    threads: int | None = None,
    on_error: Literal["raise", "skip"] = "skip",
    progress: Callable[[Progress], None] | None = None,
) -> ReplayReport:
    """Replays recorded runs under several policies.

    Before each recorded call a policy gives the window that it would have sent. The report says
    how much of what the agent then used could be read there, how much of the prompt came from the
    cache, and what it would have cost.

    Args:
        paths: files and folders, as `read_transcripts` takes them.
        policies: names of presets or of ``BASELINES``, or policies of your own. The report always
            has ``full``, ``random`` and ``oracle-lines`` too: prices and ``norm`` are measured by
            them.
        budget: what a window may have: a share of each run such as 0.25 or ``"25%"`` (everything
            pinned and that share of the rest, at least the largest message), or a number of tokens.
        model: whose prices are used; default ``claude-sonnet-4-5``.
        counter: what counts. ``"chars4"`` counts without a margin here: a unit like any other.
        format: as in `read_transcripts`.
        min_calls: runs with fewer calls are skipped.
        pictures: how many of the longest runs are kept in detail, for the pictures of the report.
        sample: if given, only these runs are replayed, drawn by lot: a share such as 0.1 or
            ``"10%"``, or a number of runs, for which all files are read once more.
        seed: of ``random`` and of the sample.
        engine: ``"local"``: the cores of this machine. ``"ray"``: Ray Data, on the cluster that the
            program is connected to, that of ``RAY_ADDRESS``, or a small one made for this run; the
            figures are the same. Every worker must be able to read the files. Extra ``ray``.
        threads: how many runs are replayed at once; default: one for each core.
        on_error: what to do about files that cannot be read, as in `read_transcripts`.
        progress: is told after every run.

    Raises:
        InputError: ``invalid_value`` for an unknown policy, a budget out of range, a model without
            prices; ``unknown_model``; with ``on_error="raise"`` what `read_transcripts` raises;
            ``invalid_file`` for standard input with a sample or with Ray.
        EngineError: ``engine_failed`` if Ray gave up.
        ImportError: ``engine="ray"`` without Ray Data.
    """
    one_of("engine", engine, ("local", "ray"))
    one_of("on_error", on_error, ("raise", "skip"))
    work = settings(
        policies, budget=budget, model=model, counter=counter, seed=seed, min_calls=min_calls
    )
    if threads is not None:
        whole_number("threads", threads, least=1)
    if progress is not None and not callable(progress):
        message = f"progress must be a function, not {name_of_type(progress)}"
        raise invalid(message)
    replays = _Replays(work, whole_number("pictures", pictures), progress)
    one_of("format", format, ("auto", *FORMATS))
    found: list[RunResult | Skipped]
    if engine == "local" and sample is None:
        transcripts = read_transcripts(
            paths, format=format, on_error=on_error, on_read=replays.count_bytes
        )
        found = replays.play(transcripts, threads or os.cpu_count() or 1)
    else:
        files = listed_files(paths)
        if STDIN in files:
            message = "standard input cannot be read by a sample or by Ray; give a file"
            raise InputError(message, code="invalid_file")
        chosen = None if sample is None else sample_of(sample, seed, files, format)
        if engine == "ray":
            from satchel.replay.ray_runs import ray_runs  # noqa: PLC0415 - an extra

            found = replays.gather(
                ray_runs(
                    files,
                    work,
                    file_format=format,
                    on_error=on_error,
                    sample=chosen,
                    tasks=threads,
                    count_bytes=replays.count_bytes,
                ),
                files,
                format,
            )
        else:
            numbered = sampled(
                files,
                chosen,
                file_format=format,
                on_error=on_error,
                on_read=replays.count_bytes,
            )
            transcripts = (transcript for _, transcript in numbered)
            found = replays.play(transcripts, threads or os.cpu_count() or 1)
    return ReplayReport(
        runs=tuple(one for one in found if isinstance(one, RunResult)),
        skipped=tuple(one for one in found if isinstance(one, Skipped)),
        policies=tuple(name_of(contender) for contender in work.contenders),
        budget=said(work),
        counter=work.counter.encoding,
        model=model or DEFAULT_MODEL,
    )


class _Replays:
    """Plays runs as they are read, a few at a time, and keeps the longest for the pictures."""

    def __init__(
        self, work: Settings, pictures: int, progress: Callable[[Progress], None] | None
    ) -> None:
        self._work = work
        self._pictures = pictures
        self._progress = progress
        self._bytes_read = 0
        self._found: dict[int, RunResult | Skipped] = {}
        # The longest runs so far: calls, order, run.
        self._longest: list[tuple[int, int, _Loaded]] = []
        self._running: dict[Future[tuple[_Loaded, RunResult | Skipped]], int] = {}

    def count_bytes(self, size: int) -> None:
        self._bytes_read += size

    def play(self, transcripts: Iterable[Transcript], workers: int) -> list[RunResult | Skipped]:
        """What was found, in the order of the transcripts."""
        with ThreadPoolExecutor(max_workers=workers) as pool:
            for order, transcript in enumerate(transcripts):
                self._running[pool.submit(replayed, transcript, self._work)] = order
                # Reading waits for the replay: only so many runs are in memory.
                while len(self._running) >= 2 * workers:
                    self._collect()
            while self._running:
                self._collect()
            shown = {
                -order: pool.submit(_picture, loaded, self._work)
                for _, order, loaded in self._longest
            }
            detailed = {order: future.result() for order, future in shown.items()}
        return [detailed.get(order, self._found[order]) for order in sorted(self._found)]

    def gather(
        self,
        found: Generator[tuple[int, RunResult | Skipped]],
        files: Sequence[str],
        file_format: Format | Literal["auto"],
    ) -> list[RunResult | Skipped]:
        """What was found elsewhere; the longest runs are read again for their pictures."""
        taken: list[RunResult | Skipped] = []
        numbers: list[int] = []
        with closing(found):  # what works elsewhere ends with this, whatever ends it
            for number, one in found:
                taken.append(one)
                numbers.append(number)
                if self._progress is not None:
                    self._progress(Progress(len(taken), self._bytes_read, one))
        runs = [(one, order) for order, one in enumerate(taken) if isinstance(one, RunResult)]
        longest = heapq.nlargest(self._pictures, runs, key=lambda run: (run[0].calls, -run[1]))
        for one, order in longest:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they were told before
                again = read_transcripts(files[numbers[order]], format=file_format, on_error="skip")
                transcript = next((run for run in again if run.index == one.index), None)
            if transcript is not None:
                loaded, _ = replayed(transcript, self._work)
                taken[order] = _picture(loaded, self._work)
        return taken

    def _collect(self) -> None:
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        for future in done:
            order = self._running.pop(future)
            loaded, found = future.result()
            self._found[order] = found
            if isinstance(found, RunResult) and self._pictures > 0:
                heapq.heappush(self._longest, (found.calls, -order, loaded))
                if len(self._longest) > self._pictures:
                    heapq.heappop(self._longest)
            if self._progress is not None:
                self._progress(Progress(len(self._found), self._bytes_read, found))


# --- one run --------------------------------------------------------------------------------------


def replayed(transcript: Transcript, work: Settings) -> tuple[_Loaded, RunResult | Skipped]:
    """One run: what was replayed, mended if it had to be, and what was found."""
    loaded = _Loaded(transcript, _payload(transcript, transcript.messages), repaired=False)
    try:
        try:
            found = _call(loaded, work, trace=False)
        except InputError as error:
            if error.code not in DAMAGE:
                raise
            mended = repair(
                transcript.messages,
                transcript.dialect,
                system=transcript.system,
                tools=transcript.tools,
            )
            loaded = _Loaded(transcript, _payload(transcript, mended), repaired=True)
            found = _call(loaded, work, trace=False)
    except InputError as error:
        return loaded, Skipped(transcript.source, transcript.index, f"{error} [{error.code}]")
    if found["calls"] < work.min_calls:
        reason = f"{found['calls']} calls, at least {work.min_calls} are needed"
        return loaded, Skipped(transcript.source, transcript.index, reason)
    return loaded, _result(loaded, found)


def _picture(loaded: _Loaded, work: Settings) -> RunResult:
    return _result(loaded, _call(loaded, work, trace=True))


def _payload(
    transcript: Transcript, messages: list[dict[str, Any]]
) -> tuple[str, str | None, str | None]:
    system = None if transcript.system is None else json.dumps(transcript.system)
    tools = None if transcript.tools is None else json.dumps(transcript.tools)
    return json.dumps(messages), system, tools


def _call(loaded: _Loaded, work: Settings, *, trace: bool) -> dict[str, Any]:
    messages, system, tools = loaded.payload
    found: dict[str, Any] = json.loads(
        _core.replay_run(
            messages,
            loaded.transcript.dialect,
            system=system,
            tools=tools,
            contenders=list(work.contenders),
            counter=work.counter,
            share=work.share,
            tokens=work.tokens,
            prices=work.prices,
            seed=work.seed,
            trace=trace,
            worst=12 if trace else 0,
        )
    )
    return found


def _result(loaded: _Loaded, found: dict[str, Any]) -> RunResult:
    transcript = loaded.transcript
    title = transcript.metadata.get("title")
    return RunResult(
        source=transcript.source,
        index=transcript.index,
        format=transcript.format,
        dialect=transcript.dialect,
        title=title if isinstance(title, str) else None,
        messages=found["messages"],
        calls=found["calls"],
        tokens=found["tokens"],
        pinned_tokens=found["pinned_tokens"],
        budget=found["budget"],
        repaired=loaded.repaired,
        outcomes={one["policy"]: Outcome.of(one) for one in found["outcomes"]},
        sizes=tuple((role, tokens) for role, tokens in found["sizes"]),
    )
