"""What the replay of one run found; sums, so that runs can be added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Outcome", "RunResult", "Shot", "Skipped", "Worst"]


@dataclass(frozen=True, slots=True)
class Shot:
    """One call of a run that is shown as a picture.

    Attributes:
        at: index of the first message of the reply.
        tokens: tokens of the window.
        cached: those that came from the prompt cache.
        cost: US dollars.
        compacted: whether room was made for this window.
        long: long references of the call, and those that could not be read.
        changes: messages whose level changed since the call before, with the level: 3 whole,
            2 trimmed, 1 stub, 0 gone.
    """

    at: int
    tokens: int
    cached: int
    cost: float
    compacted: bool
    long: tuple[int, int]
    changes: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Worst:
    """An identifier that actions needed while it could not be read.

    Attributes:
        name: the identifier.
        misses: how many calls missed it.
        at: index of the first message of the first reply that did.
        newest: the newest message that held it then.
        line: the line on which it stood there, at most 240 characters.
        action: the line of the action that used it, likewise.
        behind_pointer: whether a pointer in the window led to it.
    """

    name: str
    misses: int
    at: int
    newest: int
    line: str
    action: str
    behind_pointer: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The figures of one policy over one run.

    A reference is an identifier in a call's action that stood in an earlier message and not in the
    pinned part; it is long if its newest earlier copy is at least ten messages old.

    Attributes:
        policy: name of the policy.
        calls: calls that were replayed.
        references: references of all calls.
        read: those that could be read in the window.
        long_references: long references.
        long_read: those that could be read.
        long_read_in_line: those that could be read with a whole original line around them.
        long_calls: calls with long references.
        long_calls_complete: those of which all could be read.
        behind_pointers: references that only a visible pointer leads to: each costs a call more.
        lost: references that can neither be read nor be reached by a visible pointer.
        over_budget: calls above the budget.
        largest_window: the most tokens of a window.
        input_tokens: tokens of all windows.
        cached_tokens: those that equal the window before from its beginning on, where they are at
            least 1,024.
        output_tokens: tokens of the recorded replies.
        cost: US dollars.
        planted: standing instructions that were planted.
        planted_read: those that could be read in the window after the whole run.
        compactions: how often room was made; None where that happens before every call.
        compactions_bound: how often it should be at most: 1.2 times the new tokens by the band
            between trigger and target (of a small budget the higher one), rounded up.
        steady_calls: calls after the first without a compaction.
        stable_calls: those whose window begins with the whole window before.
        stub_share: the largest share of the tokens so far that stubs took.
        worth: what the lines are worth that the compactions kept, summed, by the policy's own
            likelihoods; 0 where lines are not what is chosen.
        worth_bound: what no choice of lines within the same room could exceed.
        shots: each call, for the runs that are shown as pictures.
        worst: the long references that were missed most often, for the same runs.
    """

    policy: str
    calls: int
    references: int
    read: int
    long_references: int
    long_read: int
    long_read_in_line: int
    long_calls: int
    long_calls_complete: int
    behind_pointers: int
    lost: int
    over_budget: int
    largest_window: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float
    planted: int
    planted_read: int
    compactions: int | None
    compactions_bound: int
    steady_calls: int
    stable_calls: int
    stub_share: float
    worth: float
    worth_bound: float
    shots: tuple[Shot, ...] = field(default=(), repr=False)
    worst: tuple[Worst, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, found: dict[str, Any]) -> Outcome:
        """From the JSON of the native half."""
        shots = tuple(
            Shot(
                shot["at"],
                shot["tokens"],
                shot["cached"],
                shot["cost"],
                shot["compacted"],
                (shot["long"][0], shot["long"][1]),
                tuple((message, level) for message, level in shot["changes"]),
            )
            for shot in found["shots"]
        )
        worst = tuple(Worst(**one) for one in found["worst"])
        figures: dict[str, Any] = {**found, "shots": shots, "worst": worst}
        return cls(**figures)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """One recorded run under every policy.

    Attributes:
        source: path of the file, or its URL without a query.
        index: which conversation of the file it is, from 0.
        format: what kind of file it comes from.
        dialect: dialect of its messages.
        title: what the file calls it, or None.
        messages: number of messages.
        calls: number of calls that were replayed.
        tokens: tokens of a request with everything.
        pinned_tokens: tokens of system, tools, framing, leading instructions and goal.
        budget: input tokens that a window may have.
        repaired: whether the messages had to be repaired before any provider would take them.
        outcomes: one for each policy, by its name.
        sizes: role and tokens of each message, for the runs that are shown as pictures.
    """

    source: str
    index: int
    format: str
    dialect: str
    title: str | None
    messages: int
    calls: int
    tokens: int
    pinned_tokens: int
    budget: int
    repaired: bool
    outcomes: dict[str, Outcome]
    sizes: tuple[tuple[str, int], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A conversation that was not replayed, and why."""

    source: str
    index: int
    reason: str
