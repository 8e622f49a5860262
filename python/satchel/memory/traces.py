"""Experience replay: finished runs in a compact form, found again for the next task of their kind.

A trace is what was asked, the calls that were made with what came back, and how it ended. Texts are
trimmed by their structure when the trace is made, so that a run of a hundred thousand tokens takes
a thousand. Successes and failures lie in namespaces of their own: a search for examples sees only
what worked. Runs that got over an error come first among their likes, for they show how.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from satchel import _core
from satchel._arguments import invalid, listed, one_of, plain_text, whole_number
from satchel.converting import convert
from satchel.counting import counter as counter_of
from satchel.memory.item import MemoryItem, Source
from satchel.memory.ranking import Ranking
from satchel.memory.rendering import fenced
from satchel.trimming import trim_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from satchel.counting import Counter
    from satchel.memory.store import Memory

__all__ = [
    "Outcome",
    "Trace",
    "TraceStep",
    "recall_traces",
    "remember_trace",
    "trace_of",
    "traces_messages",
    "traces_text",
]

Outcome = Literal["success", "failure"]

_FOLDER: Final = "traces"
_OVERCAME: Final = 1.0
_PLAIN: Final = 0.8
_RANKING: Final = Ranking(speaker=0.0, neighbours=0.0, context=0.0, confidence=1.0)
_LEAST_STEP_TOKENS: Final = 24
_NOTE: Final = "earlier runs of similar tasks that succeeded, shown as data"
_FAILED: Final = re.compile(
    r"\b(?:traceback|exception|error|failed|failure|fatal|denied|not found)\b|오류|실패|에러",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceStep:
    """One step of a run.

    Attributes:
        text: what the assistant said; empty for nothing.
        tool: the tool that was called; None for a step that only says something.
        arguments: what it was called with, as JSON text.
        result: what came back.
        is_error: whether that was an error.
    """

    text: str = ""
    tool: str | None = None
    arguments: str = ""
    result: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A finished run.

    Attributes:
        task: what was asked.
        outcome: how it ended.
        steps: what was done, in order.
        score: how well it fits, where it was recalled; 0 elsewhere.
        id: of its item, likewise.
    """

    task: str
    outcome: Outcome
    steps: tuple[TraceStep, ...] = field(default=())
    score: float = 0.0
    id: str = ""

    @property
    def errors_overcome(self) -> int:
        """Errors after which the same tool did what it was called for."""
        return sum(
            step.is_error
            and any(later.tool == step.tool and not later.is_error for later in self.steps[at:])
            for at, step in enumerate(self.steps)
        )


def trace_of(
    messages: Iterable[object],
    *,
    outcome: Outcome,
    dialect: str = "openai",
    task: str | None = None,
    max_tokens: int = 1_000,
    counter: Counter | None = None,
) -> Trace:
    """The compact form of a run.

    Args:
        messages: the run, in any dialect.
        outcome: how it ended.
        dialect: of the messages.
        task: what was asked; None for the first user message.
        max_tokens: about how many tokens the steps may take together.
        counter: counts them; None for ``o200k_base``.

    Raises:
        InputError: ``invalid_value`` if there is neither a task nor a user message; as the reader
            of the dialect.
    """
    one_of("outcome", outcome, ("success", "failure"))
    whole_number("max_tokens", max_tokens, least=1)
    rows = [_core.describe_message(message, dialect) for message in listed("messages", messages)]
    asked = task if task is not None else _first_text(rows)
    if not asked:
        message = "a trace needs a task, or a user message that says one"
        raise invalid(message)
    steps = _steps(rows)
    sizes = [
        0 if not text else _count(text, counter)
        for step in steps
        for text in (step.text, step.arguments, step.result)
    ]
    share = max(_LEAST_STEP_TOKENS, _fair_share(sizes, max_tokens))
    trimmed = tuple(
        replace(
            step,
            text=_trimmed(step.text, share, counter),
            arguments=_trimmed(step.arguments, share, counter),
            result=_trimmed(step.result, share, counter),
        )
        for step in steps
    )
    return Trace(task=_trimmed(asked, max_tokens, counter), outcome=outcome, steps=trimmed)


async def remember_trace(
    memory: Memory,
    namespace: Sequence[str],
    trace: Trace,
    *,
    session_id: str | None = None,
    user_id: str | None = None,
) -> MemoryItem:
    """Writes a trace; errors as in `Memory.remember`.

    Args:
        memory: where to.
        namespace: below it, in ``traces`` and the outcome, the trace is kept.
        trace: the run.
        session_id: the session it is from.
        user_id: whose it is.
    """
    item = MemoryItem(
        text=trace.task,
        kind="procedural",
        confidence=_OVERCAME if trace.errors_overcome else _PLAIN,
        source=Source(session_id=session_id, origin="trace"),
        user_id=user_id,
        metadata={"trace": [asdict(step) for step in trace.steps], "outcome": trace.outcome},
    )
    [written] = await memory.remember((*namespace, _FOLDER, trace.outcome), item)
    return written


async def recall_traces(
    memory: Memory,
    namespace: Sequence[str],
    task: str,
    *,
    k: int = 3,
    outcome: Outcome = "success",
) -> list[Trace]:
    """The traces of the most similar tasks with this outcome, the best first."""
    where = (*namespace, _FOLDER, one_of("outcome", outcome, ("success", "failure")))
    hits = await memory.recall(where, task, k=k, kinds=("procedural",), ranking=_RANKING)
    return [
        Trace(
            task=hit.text,
            outcome=outcome,
            steps=tuple(_step_of(step) for step in hit.item.metadata.get("trace", ())),
            score=hit.score,
            id=hit.id,
        )
        for hit in hits
    ]


def traces_text(traces: Sequence[Trace], *, max_tokens: int, counter: Counter) -> str:
    """The traces as examples in one fence, as many as fit; empty if none does.

    Args:
        traces: the best first.
        max_tokens: the most tokens of the text.
        counter: counts it.
    """
    found = ""
    shown: list[str] = []
    for trace in traces:
        text = fenced(_FOLDER, _NOTE, "\n\n".join([*shown, _example(trace)]))
        if counter.count(text) <= max_tokens:
            found = text
            shown.append(_example(trace))
    return found


def traces_messages(traces: Sequence[Trace], dialect: str) -> list[Any]:
    """The traces as real messages of a dialect, with calls and results: by the caller's choice.

    A model takes these for its own past, so nothing says any more that they are data. Traces whose
    calls have no valid arguments any more (they were trimmed) are told in words.

    Raises:
        InputError: ``unknown_dialect``.
    """
    messages: list[Any] = []
    for number, trace in enumerate(traces):
        messages.append({"role": "user", "content": trace.task})
        for place, step in enumerate(trace.steps):
            messages += _as_messages(step, f"example_{number}_{place}")
        if messages[-1]["role"] != "assistant":
            messages.append({"role": "assistant", "content": f"Done: {trace.outcome}."})
    return messages if dialect == "openai" else convert(messages, "openai", dialect).messages


def _steps(rows: Sequence[Mapping[str, Any]]) -> list[TraceStep]:
    steps: list[TraceStep] = []
    open_calls: dict[str | None, list[int]] = {}
    for row in rows:
        for part in row["parts"]:
            content = bytes(part["page"]).decode("utf-8", "replace")
            if part["kind"] == "call":
                open_calls.setdefault(part["id"], []).append(len(steps))
                steps.append(TraceStep(tool=part["tool"], arguments=content))
            elif part["kind"] == "result":
                waiting = open_calls.get(part["id"]) or []
                if waiting:
                    at = waiting.pop(0)
                    is_error = part["is_error"] or _looks_failed(content)
                    steps[at] = replace(steps[at], result=content, is_error=is_error)
            elif part["kind"] == "text" and row["role"] in {"assistant", "model"} and content:
                steps.append(TraceStep(text=content))
    return steps


def _looks_failed(content: str) -> bool:
    # A result that is an error says so at once, or in its last line.
    lines = content.strip().splitlines() or [""]
    return any(_FAILED.search(line[:200]) is not None for line in (lines[0], lines[-1]))


def _first_text(rows: Sequence[Mapping[str, Any]]) -> str:
    for row in rows:
        if row["role"] == "user":
            for part in row["parts"]:
                if part["kind"] == "text":
                    return bytes(part["page"]).decode("utf-8", "replace")
    return ""


def _fair_share(sizes: Sequence[int], most: int) -> int:
    """The most that each may take so that all fit: what short ones leave goes to the long ones."""
    left = most
    ordered = sorted(sizes)
    for place, size in enumerate(ordered):
        share = left // (len(ordered) - place)
        if size > share:
            return share
        left -= size
    return max(sizes, default=0)


def _count(text: str, counter: Counter | None) -> int:
    return (counter or counter_of("o200k_base")).count(text)


def _trimmed(text: str, max_tokens: int, counter: Counter | None) -> str:
    return trim_text(text, max_tokens=max_tokens, counter=counter).text if text else ""


def _step_of(given: object) -> TraceStep:
    values = cast("dict[str, Any]", given)
    tool = values.get("tool")
    return TraceStep(
        text=str(values.get("text", "")),
        tool=None if tool is None else plain_text("tool", tool),
        arguments=str(values.get("arguments", "")),
        result=str(values.get("result", "")),
        is_error=bool(values.get("is_error")),
    )


def _example(trace: Trace) -> str:
    lines = [f"Task: {_indented(trace.task)}"]
    for number, step in enumerate(trace.steps, 1):
        if step.tool is None:
            lines.append(f"{number}. said: {_indented(step.text)}")
        else:
            came = "failed with" if step.is_error else "gave"
            lines.append(f"{number}. {step.tool}({_indented(step.arguments)})")
            lines.append(f"   {came}: {_indented(step.result)}")
    lines.append(f"Outcome: {trace.outcome}")
    return "\n".join(lines)


def _indented(text: str) -> str:
    return text.strip("\n").replace("\n", "\n   ")


def _as_messages(step: TraceStep, call_id: str) -> list[dict[str, Any]]:
    if step.tool is None:
        return [{"role": "assistant", "content": step.text}]
    try:
        is_valid = isinstance(json.loads(step.arguments), dict)
    except ValueError:
        is_valid = False
    if not is_valid:
        said = f"Called {step.tool}({step.arguments}), which gave: {step.result}"
        return [{"role": "assistant", "content": said}]
    function = {"name": step.tool, "arguments": step.arguments}
    call = {"id": call_id, "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": call_id, "content": step.result},
    ]
