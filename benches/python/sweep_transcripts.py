"""Every recorded conversation: linted, repaired, converted, packed; a table of counts per format.

``python benches/python/sweep_transcripts.py FOLDER`` reads every transcript in the folder.
For each conversation:

* ``repair`` in every mode leaves no error, changes nothing the second time, and gives back as the
  same object what it did not change;
* ``convert`` to each of the other dialects gives messages without an error there;
* windows of 10, 25 and 50 % of its tokens fit, and have no error; ``BudgetError`` is allowed.

It ends with status 1 if one of these does not hold.
"""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

import satchel
from satchel.reading import Transcript, read_transcripts
from satchel.testing import Dialect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Mode = Literal["synthesize", "drop", "flatten"]
MODES: tuple[Mode, ...] = get_args(Mode)
DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
SHARES = (0.10, 0.25, 0.50)
MODELS: dict[str, str] = {
    "openai": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "claude-sonnet-4-5",
}
"""Whose counter measures a dialect."""


@dataclass
class Sweep:
    """What was found in the conversations of one format.

    Attributes:
        counts: conversations, messages, windows and so on.
        codes: codes of errors in the recordings themselves, by conversation.
        losses: kinds of losses of all conversions.
        failures: what should not be; empty if all is well.
    """

    counts: Counter[str] = field(default_factory=Counter[str])
    codes: Counter[str] = field(default_factory=Counter[str])
    losses: Counter[str] = field(default_factory=Counter[str])
    failures: list[str] = field(default_factory=list[str])


def errors(messages: list[Any], dialect: str, **request: Any) -> list[str]:  # noqa: ANN401 - passed on
    """Codes of what the provider would reject, each once."""
    found = satchel.lint(messages, dialect, **request)
    return sorted({one.code for one in found if one.severity == "error"})


def check_repair(transcript: Transcript, sweep: Sweep) -> None:
    """Repairs in every mode."""
    messages, dialect = transcript.messages, transcript.dialect
    request: dict[str, Any] = {"system": transcript.system, "tools": transcript.tools}
    before = repr(messages)
    for mode in MODES:
        repaired = satchel.repair(messages, dialect, mode=mode, **request)
        left = errors(repaired, dialect, **request)
        again = satchel.repair(repaired, dialect, mode=mode, **request)
        is_same = len(again) == len(repaired) and all(map(lambda a, b: a is b, again, repaired))
        mine = set(map(id, messages))
        copied = [one for one in repaired if id(one) not in mine and one in messages]
        if left:
            sweep.failures.append(f"repair {mode}: {left}")
        if not is_same:
            sweep.failures.append(f"repair {mode}: changes more the second time")
        if copied:
            sweep.failures.append(f"repair {mode}: {len(copied)} copies of untouched messages")
        sweep.counts["repaired"] += 1
        sweep.counts["repairs that changed nothing"] += repaired == messages
    if repr(messages) != before:
        sweep.failures.append("repair: changed its input")


def check_convert(transcript: Transcript, sweep: Sweep) -> None:
    """Converts to the other dialects."""
    for target in DIALECTS:
        if target == transcript.dialect:
            continue
        found = satchel.convert(
            transcript.messages,
            transcript.dialect,
            target,
            system=transcript.system,
            tools=transcript.tools,
        )
        left = errors(found.messages, target, system=found.system, tools=found.tools)
        if left:
            sweep.failures.append(f"convert to {target}: {left}")
        sweep.counts["converted"] += 1
        sweep.counts["conversions without loss"] += not found.losses
        sweep.losses.update(loss.kind for loss in found.losses)


def check_windows(transcript: Transcript, sweep: Sweep) -> None:
    """Packs into shares of its tokens."""
    dialect = transcript.dialect
    request: dict[str, Any] = {"system": transcript.system, "tools": transcript.tools}
    counter = satchel.counter(MODELS[dialect])
    total = counter.count_messages(transcript.messages, dialect=dialect, **request).upper
    for share in SHARES:
        budget = max(1, int(total * share))
        packer = satchel.Assembler(MODELS[dialect], dialect=dialect, budget=budget)
        sweep.counts["windows"] += 1
        try:
            window = packer.assemble(transcript.messages, open_calls="synthesize", **request)
        except satchel.BudgetError:
            sweep.counts["windows too small"] += 1
            continue
        left = errors(window.messages, dialect, **request)
        if left:
            sweep.failures.append(f"window of {share:.0%}: {left}")
        if window.tokens_upper > budget:
            sweep.failures.append(f"window of {share:.0%}: {window.tokens_upper} over {budget}")


CHECKS: tuple[Callable[[Transcript, Sweep], None], ...] = (
    check_repair,
    check_convert,
    check_windows,
)


def sweep_transcripts(paths: Iterable[str]) -> dict[str, Sweep]:
    """Checks every conversation of the files and folders; what was found, by format."""
    formats: dict[str, Sweep] = defaultdict(Sweep)
    for transcript in read_transcripts(paths):
        sweep = formats[transcript.format]
        sweep.counts["conversations"] += 1
        sweep.counts["messages"] += len(transcript.messages)
        request: dict[str, Any] = {"system": transcript.system, "tools": transcript.tools}
        codes = errors(transcript.messages, transcript.dialect, **request)
        sweep.counts["recorded with errors"] += bool(codes)
        sweep.codes.update(codes)
        for check in CHECKS:
            seen = len(sweep.failures)
            try:
                check(transcript, sweep)
            except satchel.SatchelError as error:
                sweep.failures.append(f"{check.__name__}: {type(error).__name__}: {error}")
            place = f"{transcript.source}#{transcript.index} ({transcript.dialect})"
            sweep.failures[seen:] = [f"{place}: {found}" for found in sweep.failures[seen:]]
    return dict(sorted(formats.items()))


COLUMNS = (
    "conversations",
    "messages",
    "recorded with errors",
    "repaired",
    "repairs that changed nothing",
    "converted",
    "conversions without loss",
    "windows",
    "windows too small",
)


def main() -> None:
    """Prints the table, what was lost, and what failed."""
    formats = sweep_transcripts(sys.argv[1:])
    print("| format |", " | ".join(COLUMNS), "| failures |")
    print("|---|", "--:|" * (len(COLUMNS) + 1), sep="")
    for name, sweep in formats.items():
        cells = [f"{sweep.counts[column]:,}" for column in COLUMNS]
        print(f"| {name} |", " | ".join(cells), f"| {len(sweep.failures)} |")
    for name, sweep in formats.items():
        print(f"{name}: errors {dict(sweep.codes)}; losses {dict(sweep.losses)}")
    failures = [f"{name}: {found}" for name, sweep in formats.items() for found in sweep.failures]
    print("\n".join(failures))
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
