"""The measures of a replay, written plainly and slowly: every window is read anew at every call.

Knows the dialects ``openai`` and ``anthropic``. What counts tokens is given; nothing else comes
from the library.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Message = dict[str, Any]

LONG_AGE = 10
MIN_CACHED = 1_024
TARGET = 0.8
MOST_BELOW = 0.1
CONVERSATION = 3
RUN = re.compile(r"[A-Za-z0-9_./-]+")
CAMEL = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]{2}")
ENCODED = {
    "data",
    "encrypted_content",
    "signature",
    "thoughtSignature",
    "thought_signature",
    "redactedContent",
}
MEDIA = {"image", "image_url", "input_audio", "document", "file", "audio"}


def is_identifier(run: str) -> bool:
    if not 3 <= len(run) <= 200:
        return False
    digits = sum(char.isdigit() for char in run)
    if not any(char.isalpha() for char in run):
        return digits >= 3
    joined = len(run) > 3 and any(char in "/._" for char in run)
    return digits > 0 or CAMEL.search(run) is not None or joined


def identifiers(text: str) -> set[str]:
    return {run for found in RUN.findall(text) if is_identifier(run := found.strip("./-"))}


def lines(text: str) -> list[str]:
    return [line for line in map(str.rstrip, text.split("\n")) if line]


def items(value: Any) -> list[Any]:
    """The items of a list; none of everything else."""
    if not isinstance(value, list):
        return []
    return list(cast("Iterable[Any]", value))


def leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in cast("Message", value).items():
            if key not in ENCODED:
                yield from leaves(inner)
    elif isinstance(value, list):
        for inner in items(cast("Any", value)):
            yield from leaves(inner)
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield json.dumps(value)


def arguments(given: Any) -> list[str]:
    if not isinstance(given, str):
        return list(leaves(given))
    try:
        parsed = json.loads(given)
    except ValueError:
        return [given]
    return list(leaves(parsed)) if isinstance(parsed, (dict, list)) else [given]


def result_text(content: Any) -> str:
    if isinstance(content, list):
        blocks: list[str] = [block.get("text") or "" for block in items(cast("Any", content))]
        return "\n".join(block for block in blocks if block)
    return cast("str", content or "")


def calls_of(message: Message) -> list[list[str]]:
    """The texts of each call's arguments."""
    calls = items(message.get("tool_calls"))
    blocks = [block for block in items(message.get("content")) if block.get("type") == "tool_use"]
    return [
        *(arguments(call["function"]["arguments"]) for call in calls),
        *(arguments(block["input"]) for block in blocks),
    ]


def texts(message: Message) -> list[str]:
    content = message.get("content")
    if message["role"] in {"tool", "function"}:
        return [result_text(content)]
    found = [content] if isinstance(content, str) else []
    for block in items(content):
        kind = block.get("type")
        if kind == "text":
            found.append(block["text"])
        elif kind == "tool_result":
            found.append(result_text(block.get("content")))
        elif kind != "tool_use" and kind not in MEDIA:
            found += list(leaves(block))
    for key in ("reasoning_content", "reasoning", "reasoning_details", "refusal"):
        found += list(leaves(message.get(key)))
    return found + [text for call in calls_of(message) for text in call]


def actions(message: Message, *, has_calls: bool) -> list[str]:
    if has_calls:
        return [text for call in calls_of(message) for text in call]
    found: list[str] = []
    inside = False
    for text in texts(message):
        for line in text.split("\n"):
            if line.lstrip().startswith("```"):
                inside = not inside
            elif inside:
                found.append(line)
        inside = False
    return found


def has_results(message: Message) -> bool:
    if message["role"] in {"tool", "function"}:
        return True
    return any(block.get("type") == "tool_result" for block in items(message.get("content")))


def is_words(message: Message) -> bool:
    """Whether it is a user's message and not only results."""
    if message["role"] != "user":
        return False
    blocks = items(message.get("content"))
    return not blocks or any(block.get("type") != "tool_result" for block in blocks)


def steps(messages: Sequence[Message]) -> list[int]:
    """The step of each message: results go with their calls, further records with their reply."""
    found: list[int] = []
    open_calls = 0
    for index, message in enumerate(messages):
        before = messages[index - 1] if index else None
        follows = (
            before is not None
            and before["role"] == message["role"] == "assistant"
            and (
                is_thought(before) or (anthropic(message) and calls_of(message) and open_calls > 0)
            )
        )
        joins = index > 0 and (has_results(message) or follows)
        found.append(found[-1] if joins else (found[-1] + 1 if found else 0))
        if not joins:
            open_calls = 0
        open_calls += len(calls_of(message))
        if has_results(message):
            blocks = items(message.get("content"))
            results = sum(block.get("type") == "tool_result" for block in blocks)
            open_calls -= results or 1
    return found


def anthropic(message: Message) -> bool:
    return any(block.get("type") == "tool_use" for block in items(message.get("content")))


def is_thought(message: Message) -> bool:
    kinds = {block.get("type") for block in items(message.get("content"))}
    return bool(kinds) and kinds <= {"thinking", "redacted_thinking"}


@dataclass
class Call:
    """Before message ``at`` the model was called; its action took ``references`` from before."""

    at: int
    end: int
    references: dict[str, bool] = field(default_factory=dict[str, bool])  # name: is it long?


@dataclass
class Facts:
    """What is the same for every policy."""

    messages: list[Message]
    system: str
    tokens: list[int]
    base_tokens: int
    pinned: list[bool]
    calls: list[Call]

    @property
    def pinned_tokens(self) -> int:
        kept = zip(self.tokens, self.pinned, strict=True)
        return self.base_tokens + sum(tokens for tokens, is_pinned in kept if is_pinned)

    def budget(self, share: float) -> int:
        free = [
            tokens for tokens, pinned in zip(self.tokens, self.pinned, strict=True) if not pinned
        ]
        return self.pinned_tokens + max(int(sum(free) * share), max(free, default=0))


def facts(messages: list[Message], system: str, tokens: list[int], base_tokens: int) -> Facts:
    pinned = [False] * len(messages)
    for index, message in enumerate(messages):
        if message["role"] not in {"system", "developer"}:
            break
        pinned[index] = True
    goal = next((index for index, message in enumerate(messages) if is_words(message)), None)
    if goal is not None:
        pinned[goal] = True
    found = Facts(messages, system, tokens, base_tokens, pinned, boundaries(messages))
    refer(found)
    return found


def boundaries(messages: list[Message]) -> list[Call]:
    """Where a reply began; further records of it belong to the same call."""
    step = steps(messages)
    calls: list[Call] = []
    for index, message in enumerate(messages):
        if message["role"] != "assistant" or index == 0:
            continue
        if step[index] != step[index - 1]:
            calls.append(Call(index, index + 1))
        elif calls and calls[-1].end == index:
            calls[-1].end = index + 1
    return calls


def refer(known: Facts) -> None:
    """Finds what each action took from the messages before it."""
    messages = known.messages
    held = [{name for text in texts(message) for name in identifiers(text)} for message in messages]
    has_calls = any(calls_of(message) for message in messages)
    for call in known.calls:
        kept = identifiers(known.system)
        for index in range(call.at):
            if known.pinned[index]:
                kept |= held[index]
        reply = messages[call.at : call.end]
        taken = [text for message in reply for text in actions(message, has_calls=has_calls)]
        for name in sorted({name for text in taken for name in identifiers(text)} - kept):
            newest = max((index for index in range(call.at) if name in held[index]), default=None)
            if newest is not None:
                call.references[name] = call.at - newest >= LONG_AGE


@dataclass
class Sums:
    """The figures of one policy over one run, under the names of the report."""

    calls: int = 0
    references: int = 0
    read: int = 0
    long_references: int = 0
    long_read: int = 0
    long_read_in_line: int = 0
    long_calls: int = 0
    long_calls_complete: int = 0
    over_budget: int = 0
    largest_window: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    steady_calls: int = 0
    stable_calls: int = 0


def canonical(message: Message) -> str:
    return json.dumps(message, sort_keys=False)


def measure(
    known: Facts,
    windows: Sequence[list[Message]],
    count: Callable[[list[Message]], list[int]],
    *,
    budget: int,
    prices: tuple[float, float, float],
) -> Sums:
    """Reads every window in full at every call."""
    sums = Sums()
    before: list[str] | None = None
    for call, window in zip(known.calls, windows, strict=True):
        tokens = count(window)
        total = known.base_tokens + sum(tokens)
        shapes = [canonical(message) for message in window]
        cached = 0
        if before is not None:
            cached = known.base_tokens
            for position, (old, new) in enumerate(zip(before, shapes, strict=False)):
                if old != new:
                    break
                cached += tokens[position]
            cached = cached if cached >= MIN_CACHED else 0
        before = shapes
        earlier = known.messages[: call.at]
        originals = {line for message in earlier for text in texts(message) for line in lines(text)}
        readable = identifiers(known.system)
        in_line: set[str] = set()
        for message in window:
            for text in texts(message):
                readable |= identifiers(text)
                whole = [line for line in lines(text) if line in originals]
                in_line |= {name for line in whole for name in identifiers(line)}
        long = [name for name, is_long in call.references.items() if is_long]
        output = sum(known.tokens[call.at : call.end])
        sums.calls += 1
        sums.references += len(call.references)
        sums.read += sum(name in readable for name in call.references)
        sums.long_references += len(long)
        sums.long_read += sum(name in readable for name in long)
        sums.long_read_in_line += sum(name in in_line for name in long)
        sums.long_calls += bool(long)
        sums.long_calls_complete += bool(long) and all(name in readable for name in long)
        sums.over_budget += total > budget
        sums.largest_window = max(sums.largest_window, total)
        sums.input_tokens += total
        sums.cached_tokens += cached
        sums.output_tokens += output
        read, write, out = prices
        sums.cost += (cached * read + (total - cached) * write + output * out) / 1e6
    return sums


def everything(known: Facts) -> list[list[Message]]:
    return [known.messages[: call.at] for call in known.calls]


def total(known: Facts, kept: list[int]) -> int:
    return known.base_tokens + sum(known.tokens[index] for index in kept)


def keep_last(known: Facts, budget: int) -> list[list[Message]]:
    """When the budget is full the oldest steps go, down to the target; never pinned ones."""
    step = steps(known.messages)
    limit = known.pinned_tokens + int((budget - known.pinned_tokens) * TARGET)
    kept: list[int] = []
    taken = 0
    windows: list[list[Message]] = []
    for call in known.calls:
        kept += range(taken, call.at)
        taken = call.at

        if total(known, kept) > budget:
            for old in sorted({step[index] for index in kept if not known.pinned[index]}):
                if total(known, kept) <= limit or old == step[kept[-1]]:
                    break
                kept = [index for index in kept if known.pinned[index] or step[index] != old]
        windows.append([known.messages[index] for index in kept])
    return windows


@dataclass(frozen=True)
class Band:
    """How far windows of satchel's fall; shares of what is not pinned, named as in its policies."""

    target: float
    small_target: float
    small_tokens: int

    def share(self, free: int, growth: int, *, is_conversation: bool) -> float:
        if is_conversation:
            shortage = (self.small_tokens - free) / max(0.75 * self.small_tokens, 1.0)
            more = max(min(self.small_target, 1.0) - self.target, 0.0)
            return self.target + min(max(shortage, 0.0), 1.0) * more
        one_more = 1.0 - growth / max(free, 1)
        return min(max(one_more, self.target - MOST_BELOW, 0.0), self.target)


class TooMuchError(Exception):
    """What must stay does not fit; satchel shortens it, which is not done here."""


def token_window(
    known: Facts, budget: int, band: Band, note: Message, note_tokens: int
) -> list[list[Message]]:
    """Satchel's preset of this name, in the dialect ``openai``.

    Instructions, the first and the newest words of the user and the newest step stay; of all
    others the oldest go when the budget is full, and a note behind the first words says so.
    """
    messages, step = known.messages, steps(known.messages)
    kept: list[int] = []
    gone: list[int] = []
    windows: list[list[Message]] = []
    taken = 0
    for call in known.calls:
        kept += range(taken, call.at)
        taken = call.at
        said = [index for index in range(call.at) if is_words(messages[index])]
        hard = {
            index
            for index in kept
            if messages[index]["role"] in {"system", "developer"}
            or index in {*said[:1], *said[-1:]}
        }
        before = total(known, kept) + (note_tokens if gone else 0)
        if before > budget:
            pinned = total(known, sorted(hard))
            free = max(budget - pinned, 0)
            soft = [index for index in kept if index not in hard]
            replies = sum(one["role"] == "assistant" for one in messages[: call.at])
            ever = sum(known.tokens[index] for index in [*soft, *gone])
            is_conversation = len(said) >= CONVERSATION
            growth = ever // max(replies, 1)
            share = band.share(free, growth, is_conversation=is_conversation)
            limit = pinned + int(share * free)
            going: list[int] = []
            for old in sorted({step[index] for index in soft}):
                left = [index for index in kept if index not in going]
                if total(known, left) + note_tokens <= limit:
                    break
                if old != step[call.at - 1]:
                    going += [index for index in soft if step[index] == old]
            after = total(known, kept) + note_tokens - sum(known.tokens[index] for index in going)
            if after > budget:
                raise TooMuchError
            if after < before:
                gone += going
                kept = [index for index in kept if index not in going]
        window = [messages[index] for index in kept]
        if gone:
            window.insert(window.index(messages[said[0]]) + 1 if said else 0, note)
        windows.append(window)
    return windows


def close(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
