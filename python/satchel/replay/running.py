"""`run`: reads recorded runs one after the other and replays them on all cores."""

from __future__ import annotations

import heapq
import json
import os
import re
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from satchel import _core, models
from satchel.counting import counter as counter_of
from satchel.errors import InputError
from satchel.policy import Policy
from satchel.reading import Transcript, read_transcripts
from satchel.repairing import repair
from satchel.replay.measures import LIMIT, LOT, REFERENCE
from satchel.replay.outcome import Outcome, RunResult, Skipped
from satchel.replay.report import ReplayReport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from satchel.reading import Format

__all__ = ["BASELINES", "DEFAULT_POLICIES", "Progress", "run"]

BASELINES: Final[tuple[str, ...]] = tuple(_core.replay_baselines())
"""Policies that stand for what people do today, and ``oracle`` and ``oracle-lines``, which know
what later actions will take."""

DEFAULT_POLICIES: Final[tuple[str, ...]] = ("adaptive", *BASELINES)

_DEFAULT_MODEL: Final = "claude-sonnet-4-5"
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")
# Runs must be repaired before a provider would take them.
_DAMAGE: Final = frozenset({"orphan_result", "duplicate_result", "invalid_message"})


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a replay is: runs that are done, bytes that were read, the run done last."""

    runs: int
    bytes_read: int
    newest: RunResult | Skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """What is the same for every run."""

    contenders: tuple[str, ...]
    counter: _core.Counter
    share: float | None
    tokens: int | None
    prices: tuple[float, float, float]
    seed: int
    min_calls: int


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
    seed: int = 0,
    threads: int | None = None,
    on_error: Literal["raise", "skip"] = "skip",
    progress: Callable[[Progress], None] | None = None,
) -> ReplayReport:
    """Replays recorded runs under several policies.

    Before each recorded call a policy gives the window that it would have sent. The report says how
    much of what the agent then used could be read there, how much of the prompt came from the cache,
    and what it would have cost.

    Args:
        paths: files and folders, as `read_transcripts` takes them.
        policies: names of presets or of ``BASELINES``, or policies of your own. The report always
            has ``full``, ``random`` and ``oracle-lines`` too, since prices and ``norm`` are measured
            by them.
        budget: what a window may have: a share of each run such as 0.25 or ``"25%"`` (everything
            pinned and that share of the rest, at least the largest message), or a number of tokens.
        model: whose prices are used; default ``claude-sonnet-4-5``.
        counter: what counts. ``"chars4"`` counts without a margin here: a unit like any other.
        format: as in `read_transcripts`.
        min_calls: runs with fewer calls are skipped.
        pictures: how many of the longest runs are kept in detail, for the pictures of the report.
        seed: of ``random``.
        threads: how many runs are replayed at once; default: one for each core.
        on_error: what to do about files that cannot be read, as in `read_transcripts`.
        progress: is told after every run.

    Raises:
        InputError: ``invalid_value`` for an unknown policy, a budget out of range, a model without
            prices; ``unknown_model``; with ``on_error="raise"`` what `read_transcripts` raises.
    """
    work = _work(policies, budget, model, counter, seed, min_calls)
    bytes_read = 0

    def count_bytes(size: int) -> None:
        nonlocal bytes_read
        bytes_read += size

    results: list[tuple[int, RunResult | Skipped]] = []
    # The longest runs so far: calls, order, run.
    longest: list[tuple[int, int, _Loaded]] = []

    def take(order: int, loaded: _Loaded, found: RunResult | Skipped) -> None:
        results.append((order, found))
        if isinstance(found, RunResult) and pictures > 0:
            heapq.heappush(longest, (found.calls, -order, loaded))
            if len(longest) > pictures:
                heapq.heappop(longest)
        if progress is not None:
            progress(Progress(len(results), bytes_read, found))

    workers = threads or os.cpu_count() or 1
    running: dict[Future[tuple[_Loaded, RunResult | Skipped]], int] = {}
    with ThreadPoolExecutor(max_workers=workers) as pool:

        def collect() -> None:
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                take(running.pop(future), *future.result())

        found = read_transcripts(paths, format=format, on_error=on_error, on_read=count_bytes)
        for order, transcript in enumerate(found):
            running[pool.submit(_replay, transcript, work)] = order
            while len(running) >= 2 * workers:
                collect()
        while running:
            collect()
        shown = [(order, pool.submit(_picture, loaded, work)) for _, order, loaded in longest]
        detailed = {-order: future.result() for order, future in shown}
    ordered = [detailed.get(order, found) for order, found in sorted(results, key=lambda one: one[0])]
    return ReplayReport(
        runs=tuple(one for one in ordered if isinstance(one, RunResult)),
        skipped=tuple(one for one in ordered if isinstance(one, Skipped)),
        policies=tuple(_name(contender) for contender in work.contenders),
        budget=_said(work),
        counter=work.counter.encoding,
        model=model or _DEFAULT_MODEL,
    )


# --- options --------------------------------------------------------------------------------------


def _work(
    policies: str | Policy | Sequence[str | Policy],
    budget: float | str,
    model: str | None,
    counter: str | _core.Counter,
    seed: int,
    min_calls: int,
) -> _Work:
    share, tokens = _limit(budget)
    given = [policies] if isinstance(policies, str | Policy) else list(policies)
    contenders = {_name(found): found for found in map(_contender, given)}
    if len(contenders) < len(given):
        message = "two policies have the same name"
        raise InputError(message, code="invalid_value")
    for name in (REFERENCE, LOT, LIMIT):
        contenders.setdefault(name, name)
    return _Work(
        contenders=tuple(contenders.values()),
        counter=_counter(counter),
        share=share,
        tokens=tokens,
        prices=_prices(model or _DEFAULT_MODEL),
        seed=seed,
        min_calls=max(min_calls, 1),
    )


def _contender(policy: str | Policy) -> str:
    """The name of a baseline, or a policy as JSON."""
    if isinstance(policy, str):
        if policy in BASELINES:
            return policy
        policy = Policy.preset(policy)
    return policy.model_dump_json(exclude_none=True)


def _name(contender: str) -> str:
    return contender if contender in BASELINES else str(json.loads(contender)["name"])


def _limit(budget: float | str) -> tuple[float | None, int | None]:
    if isinstance(budget, str):
        percent = _PERCENT.fullmatch(budget.strip())
        if percent:
            budget = float(percent[1]) / 100
        elif budget.strip().isdecimal():
            budget = int(budget)
        else:
            message = "budget must be a share such as '25%' or a number of tokens"
            raise InputError(message, code="invalid_value")
    if isinstance(budget, int) and not isinstance(budget, bool):
        if budget < 1:
            message = f"budget is {budget}, must be at least 1 token"
            raise InputError(message, code="invalid_value", value=budget, limit=1)
        return None, budget
    if not 0 < budget <= 1:
        message = f"budget is {budget}, a share must be above 0 and at most 1"
        raise InputError(message, code="invalid_value")
    return float(budget), None


def _said(work: _Work) -> str:
    return f"{work.tokens:,} tokens" if work.share is None else f"{work.share:.0%}"


def _counter(counter: str | _core.Counter) -> _core.Counter:
    if counter == "chars4":
        return _core.Counter("chars4", exact=True, margin=0.0)
    return counter_of(counter) if isinstance(counter, str) else counter


def _prices(name: str) -> tuple[float, float, float]:
    """Dollars a million tokens: read from the cache, written to it, output."""
    found = models.get(name)
    if found.prices is None:
        message = f"no prices are known for {name}"
        raise InputError(message, code="invalid_value")
    cache = found.cache
    write = cache.write[0] if cache.write else 1.0
    return found.prices.input * cache.read, found.prices.input * write, found.prices.output


# --- one run --------------------------------------------------------------------------------------


def _replay(transcript: Transcript, work: _Work) -> tuple[_Loaded, RunResult | Skipped]:
    loaded = _Loaded(transcript, _payload(transcript, transcript.messages), repaired=False)
    try:
        try:
            found = _call(loaded, work, trace=False)
        except InputError as error:
            if error.code not in _DAMAGE:
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


def _picture(loaded: _Loaded, work: _Work) -> RunResult:
    return _result(loaded, _call(loaded, work, trace=True))


def _payload(
    transcript: Transcript, messages: list[dict[str, Any]]
) -> tuple[str, str | None, str | None]:
    system = None if transcript.system is None else json.dumps(transcript.system)
    tools = None if transcript.tools is None else json.dumps(transcript.tools)
    return json.dumps(messages), system, tools


def _call(loaded: _Loaded, work: _Work, *, trace: bool) -> dict[str, Any]:
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
