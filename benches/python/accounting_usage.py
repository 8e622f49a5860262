"""Counts against the usage that providers reported for recorded requests and sessions.

    python benches/python/accounting_usage.py [folder of the recorded data]

Requests that are recorded whole are compared one by one, from 1,000 tokens on. Of a session only
the growth between two calls can be compared, since what its client sent beside the messages (system
prompt, tools) is not in the file; growths from 1,000 tokens on. For each model: how many, the error
of the plain count (median, 90th percentile, bias), how often the upper estimate was at least what
was reported, and the error of the next total when every report before it was observed. Calibrated
figures are those of the second half of each session.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import warnings
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import satchel

if TYPE_CHECKING:
    from collections.abc import Iterator

LEAST_TOKENS: Final = 1_000

Message = dict[str, Any]


@dataclass
class Call:
    """One call of a session: what came since the call before, and what was reported for it."""

    new: list[Message]
    reported: int
    whole: bool = True


@dataclass
class Exchange:
    """A request that was recorded whole, and what came back."""

    model: str
    dialect: str
    messages: list[Any]
    request: dict[str, Any]
    response: dict[str, Any]


@dataclass
class Row:
    """Relative errors of one model: (counted - reported) / reported."""

    plain: list[float] = field(default_factory=list[float])
    upper_held: int = 0
    calibrated: list[float] = field(default_factory=list[float])
    calibrated_held: int = 0
    small: list[int] = field(default_factory=list[int])


def folder(argument: str | None = None) -> Path | None:
    """The recorded data: an argument, a variable, or a folder ``shared`` above the repository."""
    if argument is not None:
        return Path(argument)
    root = os.environ.get("SATCHEL_SHARED")
    roots = [Path(root)] if root else [up / "shared" for up in Path(__file__).resolve().parents]
    return next((root / "data" / "dev" for root in roots if (root / "data" / "dev").is_dir()), None)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        for line in file:
            if line.strip():
                yield json.loads(line)


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _tables(value: object) -> list[dict[str, Any]]:
    return [_table(item) for item in cast("list[object]", value)] if isinstance(value, list) else []


# --- sessions -------------------------------------------------------------------------------------


def claude_code(path: Path) -> Iterator[tuple[str, list[Call]]]:
    """Sessions of Claude Code; one model turn is spread over records with the same id."""
    calls: list[Call] = []
    new: list[Message] = []
    model, turn = "", None
    for record in _lines(path):
        message = _table(record.get("message"))
        if record.get("type") not in ("user", "assistant") or not message:
            continue
        usage = message.get("usage")
        if record["type"] == "assistant" and usage and message.get("id") != turn:
            model, turn = message["model"], message.get("id")
            calls.append(Call(new, satchel.usage_tokens(message).input))
            new = []
        new.append({"role": record["type"], "content": message["content"]})
    yield model, calls


def pi(path: Path) -> Iterator[tuple[str, list[Call]]]:
    """Sessions of pi; a compaction or a call that failed breaks the chain."""
    calls: list[Call] = []
    new: list[Message] = []
    model, whole = "", True
    for record in _lines(path):
        message: Any = record.get("message") or {}
        role = message.get("role")
        if record["type"] == "compaction":
            whole = False
        elif role == "assistant":
            usage = satchel.usage_tokens(message) if message.get("usage") else None
            if message.get("stopReason") in ("aborted", "error") or not usage or not usage.input:
                whole = False
            else:
                model = message["model"]
                calls.append(Call(new, usage.input, whole))
                new, whole = [], True
            new.append({"role": "assistant", "content": list(map(_pi_block, message["content"]))})
        elif role == "toolResult":
            result = {"type": "tool_result", "tool_use_id": message["toolCallId"]}
            new.append({"role": "user", "content": [{**result, "content": message["content"]}]})
        elif role == "user":
            new.append({"role": "user", "content": message["content"]})
        elif role == "bashExecution":
            text = f"Ran `{message.get('command')}`\n```\n{message.get('output')}\n```"
            new.append({"role": "user", "content": text})
    yield model, calls


def _pi_block(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] == "toolCall":
        call = {"type": "tool_use", "id": block["id"], "name": block["name"]}
        return {**call, "input": block["arguments"]}
    if block["type"] == "thinking":
        return {**block, "signature": block.get("thinkingSignature", "")}
    return block


def codex(path: Path) -> Iterator[tuple[str, list[Call]]]:
    """Rollouts of Codex, as chat messages; reports come after each reply."""
    calls: list[Call] = []
    new: list[Message] = []
    seen: list[Message] = []
    model = ""
    for record in _lines(path):
        payload: Any = record.get("payload") or {}
        if record["type"] == "turn_context":
            model = payload.get("model") or model
        if payload.get("type") == "token_count":
            usage = _table(_table(payload.get("info")).get("last_token_usage"))
            if usage and (not calls or usage["input_tokens"] != calls[-1].reported):
                calls.append(Call(seen, usage["input_tokens"]))
                seen, new = new, []
        elif record["type"] == "response_item":
            message = _codex_item(payload)
            if message is None:
                continue
            # What the model said belongs to the next call's input; what it read, to this one's.
            (new if message["role"] == "assistant" else seen).append(message)
    yield model, calls


def _codex_item(item: dict[str, Any]) -> Message | None:
    kind = item.get("type")
    if kind == "message":
        text = "".join(part.get("text", "") for part in item["content"])
        return {"role": item["role"], "content": text}
    if kind in ("function_call", "custom_tool_call"):
        arguments = item.get("arguments") or item.get("input") or ""
        function = {"name": item["name"], "arguments": arguments}
        call = {"id": item["call_id"], "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if kind in ("function_call_output", "custom_tool_call_output"):
        output = item["output"]
        text = output if isinstance(output, str) else json.dumps(output)
        return {"role": "tool", "tool_call_id": item["call_id"], "content": text}
    return None


def gemini_cli(path: Path) -> Iterator[tuple[str, list[Call]]]:
    """Sessions of Gemini CLI, as chat messages; results stand inside their calls."""
    calls: list[Call] = []
    new: list[Message] = []
    model = ""
    for record in json.loads(path.read_text(encoding="utf-8"))["messages"]:
        if record["type"] == "user":
            content = record["content"]
            text = content if isinstance(content, str) else json.dumps(content)
            new.append({"role": "user", "content": text})
            continue
        if record.get("tokens"):
            model = record.get("model") or model
            calls.append(Call(new, record["tokens"]["input"]))
            new = []
        new.append({"role": "assistant", "content": record.get("content") or ""})
        for call in _tables(record.get("toolCalls")):
            function = {"name": call["name"], "arguments": json.dumps(call["args"])}
            new[-1].setdefault("tool_calls", []).append(
                {"id": call["id"], "type": "function", "function": function}
            )
            texts: list[str] = []
            for part in _tables(call.get("result")):
                response = _table(_table(part.get("functionResponse")).get("response"))
                texts.append(str(response.get("output", response)))
            new.append({"role": "tool", "tool_call_id": call["id"], "content": "\n".join(texts)})
    yield model, calls


SESSIONS: Final = {
    "claude_code": ("*.jsonl", claude_code, "anthropic"),
    "pi_session": ("*.jsonl", pi, "anthropic"),
    "codex_rollout": ("*.jsonl", codex, "openai"),
    "gemini_cli": ("*.json", gemini_cli, "openai"),
}


def measure_sessions(root: Path, rows: dict[str, Row]) -> None:
    """Growth between calls, plain and calibrated."""
    for name, (pattern, read, dialect) in SESSIONS.items():
        for path in sorted((root / name).glob(pattern)):
            for model, calls in read(path):
                _measure_session(calls, _counter(model), dialect, rows[f"{model} ({name})"])


def _measure_session(calls: list[Call], counter: satchel.Counter, dialect: str, row: Row) -> None:
    counted = 0
    before: int | None = None
    learnt = satchel.Calibration()
    for index, call in enumerate(calls):
        new = counter.count_messages(call.new, dialect=dialect)
        grown = new.total - new.overhead
        if not call.whole:
            counted, before, learnt = 0, None, satchel.Calibration()
        counted += grown
        if before is not None:
            reported = call.reported - before
            if reported >= LEAST_TOKENS:
                row.plain.append((grown - reported) / reported)
                row.upper_held += grown * (1 + counter.margin) >= reported
            if index >= len(calls) // 2:
                row.calibrated.append((learnt.estimate(counted) - call.reported) / call.reported)
                row.calibrated_held += _upper(learnt, counted, counter.margin) >= call.reported
        if counted > 0:
            learnt = learnt.observe(counted, call.reported)
        before = call.reported


def _upper(learnt: satchel.Calibration, counted: int, margin: float) -> float:
    own = learnt.margin if learnt.margin is not None else margin
    scaled = counted * learnt.factor
    return scaled + learnt.offset + max(min(scaled, scaled + learnt.offset), 0) * own


# --- recorded requests ----------------------------------------------------------------------------

REQUESTS: Final = {
    "openai_chat": ("openai", "messages"),
    "anthropic_messages": ("anthropic", "messages"),
    "openai_responses": ("openai-responses", "input"),
    "gemini_contents": ("gemini", "contents"),
}


def measure_requests(root: Path, rows: dict[str, Row], others: dict[str, Row]) -> None:
    """Whole requests; ``others`` takes those that hold what is not counted."""
    for name, (dialect, key) in REQUESTS.items():
        for path in sorted((root / name).glob("*.json")):
            document: object = json.loads(path.read_text(encoding="utf-8"))
            entries = _tables(document)
            logged = _table(document)
            if "response" in logged:
                response = _table(logged["response"])
                request = {**logged, "model": response.get("model")}
                entries = [{"request": request, "response": response}]
            for entry in entries:
                request, response = _table(entry.get("request")), _table(entry.get("response"))
                if not response or not isinstance(request.get(key), list):
                    continue
                hidden = any(mark in json.dumps(request) for mark in HIDDEN)
                model = request.get("model") or response.get("modelVersion")
                row = (others if hidden else rows)[f"{model} ({name})"]
                exchange = Exchange(str(model), dialect, request[key], request, response)
                _measure_request(exchange, row)


def _measure_request(exchange: Exchange, row: Row) -> None:
    request = exchange.request
    given = ("system", "instructions", "systemInstruction", "system_instruction")
    system = next((request[name] for name in given if request.get(name)), None)
    try:
        reported = satchel.usage_tokens(exchange.response).input
        counted = _counter(exchange.model).count_messages(
            exchange.messages,
            system=system,
            tools=request.get("tools"),
            dialect=exchange.dialect,
        )
    except satchel.SatchelError:
        return
    if reported >= LEAST_TOKENS:
        row.plain.append((counted.total - reported) / reported)
        row.upper_held += counted.upper >= reported
    elif reported:
        row.small.append(counted.total - reported)


# What makes a request cost more or less than its content: tools that run at the provider, schemas
# of the answer, history that the provider keeps, what is not in the file.
HIDDEN: Final = (
    "previous_response_id",
    "web_search",
    "code_execution",
    "code_interpreter",
    "file_search",
    "tool_search",
    "advisor",
    "mcp",
    "memory_20",
    "response_format",
    "json_schema",
    "compaction",
    "defer_loading",
    "encrypted_content",
    "responseSchema",
    "responseJsonSchema",
    "fileData",
    "file_id",
    '"type": "document"',
    "document_url",
)


def _counter(model: str) -> satchel.Counter:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", satchel.models.UnknownModelWarning)
        return satchel.counter(model)


def measure(root: Path) -> tuple[dict[str, Row], dict[str, Row]]:
    """Rows by model and format: plain ones, and those with hidden parts."""
    rows: dict[str, Row] = defaultdict(Row)
    others: dict[str, Row] = defaultdict(Row)
    measure_sessions(root, rows)
    measure_requests(root, rows, others)
    return rows, others


def report(rows: dict[str, Row]) -> None:
    """Prints a line a model."""
    print(f"{'model':54} {'n':>4} {'median':>7} {'p90':>7} {'bias':>7} {'upper':>6}  calibrated")
    for name, row in sorted(rows.items()):
        if row.plain:
            errors = sorted(map(abs, row.plain))
            p90 = errors[min(len(errors) - 1, int(len(errors) * 0.9))]
            line = (
                f"{statistics.median(errors):7.1%} {p90:7.1%} {statistics.median(row.plain):+7.1%}"
            )
            line += f" {row.upper_held / len(errors):6.0%}"
        else:
            line = f"{'':30}"
        if row.calibrated:
            errors = sorted(map(abs, row.calibrated))
            held = row.calibrated_held / len(errors)
            line += f"  n {len(errors)}, median {statistics.median(errors):.2%}"
            line += f", p99 {errors[int(len(errors) * 0.99)]:.1%}, upper {held:.1%}"
        if row.small:
            low, high = min(row.small), max(row.small)
            line += f"  below {LEAST_TOKENS}: n {len(row.small)}, off by {low:+} to {high:+} tokens"
        print(f"{name:54} {len(row.plain):4} {line}")


def main() -> None:
    """Prints both tables."""
    root = folder(sys.argv[1] if len(sys.argv) > 1 else None)
    if root is None:
        sys.exit("no recorded data: give its folder")
    rows, others = measure(root)
    report(rows)
    print("\nwith parts that are not counted:")
    report(others)


if __name__ == "__main__":
    main()
