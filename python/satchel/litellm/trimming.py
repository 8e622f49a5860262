"""``trim_messages`` in the shape of litellm's: the same arguments and types, other promises.

litellm's function cuts calls from their results, may exceed the limit, cannot read lists of blocks
and counts everything again for every message. This one keeps whole steps, never exceeds the limit,
and counts each message once. litellm itself is not imported.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, cast, overload

from satchel import models
from satchel.counting import counter
from satchel.errors import BudgetError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from satchel.counting import Counter

__all__ = ["trim_messages"]

_Message = dict[str, Any]
_CUT: Final = "\n[...]\n"
_INSTRUCTIONS: Final = frozenset({"system", "developer"})
_RESULTS: Final = frozenset({"tool", "function"})
# A text is shortened to no less than this; a smaller piece tells nothing.
_LEAST: Final = 8


@overload
def trim_messages(
    messages: Iterable[_Message],
    model: str | None = None,
    trim_ratio: float = 0.75,
    return_response_tokens: Literal[False] = False,  # noqa: FBT002 - litellm's own signature
    max_tokens: int | None = None,
    *,
    tools: Sequence[Any] | None = None,
) -> list[_Message]: ...


@overload
def trim_messages(
    messages: Iterable[_Message],
    model: str | None = None,
    trim_ratio: float = 0.75,
    *,
    return_response_tokens: Literal[True],
    max_tokens: int | None = None,
    tools: Sequence[Any] | None = None,
) -> tuple[list[_Message], int]: ...


def trim_messages(
    messages: Iterable[_Message],
    model: str | None = None,
    trim_ratio: float = 0.75,
    return_response_tokens: bool = False,  # noqa: FBT001, FBT002 - litellm's own signature
    max_tokens: int | None = None,
    *,
    tools: Sequence[Any] | None = None,
) -> list[_Message] | tuple[list[_Message], int]:
    """The newest whole steps of a chat that fit a limit, after its system messages.

    System and developer messages, the newest user message and the last step stay; then the newest
    steps before them, while they fit. Of what stays but is too large, and of the first plain
    message that does not fit, the middle of the text is cut out. What no provider takes (results
    without call, calls without all of their results) is left out.

    Args:
        messages: chat messages as dicts, oldest first.
        model: the model; gives the limit, unless ``max_tokens`` does, and the tokenizer. Of an
            unknown one the tokens are those of ``o200k_base``.
        trim_ratio: share of the model's limit to use.
        return_response_tokens: whether to return the tokens that are left as well.
        max_tokens: tokens of the request.
        tools: tools of the request; the tokens of their definitions are taken off the limit.

    Returns:
        A new list of the same dicts; a shortened message is a copy. Without ``max_tokens`` and a
        known model, all messages. With ``return_response_tokens`` a pair of the list and what is
        left of the limit (0 without limit).

    Raises:
        BudgetError: ``over_budget`` if what stays does not fit even when shortened.
        InputError: ``invalid_message`` with the index of a message that cannot be read.

    Example:
        >>> chat = [{"role": "user", "content": "word " * count} for count in (500, 20, 10)]
        >>> trim_messages(chat, "gpt-4o", max_tokens=44) == chat[1:]
        True
    """
    history = list(messages)
    budget = _limit(model, trim_ratio) if max_tokens is None else max_tokens
    kept, left = history, 0
    if budget is not None:
        count = _counter(model)
        measured = count.count_messages(history, tools=tools, dialect="openai")
        tokens: list[int] = cast("Any", measured.per_message).tolist()
        room = budget - measured.overhead - measured.tools
        steps = _steps(history)
        left = room - sum(tokens)
        if left < 0 or sum(map(len, steps)) < len(history):
            kept, left = _Trim(history, tokens, count).within(steps, room)
    return (kept, left) if return_response_tokens else kept


def _limit(model: str | None, ratio: float) -> int | None:
    """The share of a model's input limit; None if the model is not known."""
    if model is None:
        return None
    try:
        found = models.get(model)
    except InputError:
        # Whoever has loaded litellm may have registered a model there.
        table: Any = getattr(sys.modules.get("litellm"), "model_cost", None) or {}
        most = table.get(model, {}).get("max_input_tokens")
        return None if most is None else int(most * ratio)
    return int(found.window * ratio)


def _counter(model: str | None) -> Counter:
    if model is not None:
        try:
            return counter(model)
        except InputError:
            pass  # litellm counts for any name; the encoding below is the usual one
    return counter("o200k_base")


def _steps(history: Sequence[_Message]) -> list[list[int]]:
    """The indices of each whole step; of what no provider takes, none."""
    steps: list[list[int]] = []
    at = 0
    while at < len(history):
        message = history[at]
        step = [at]
        at += 1
        asked = _asked(message)
        if not asked:
            if message.get("role") not in _RESULTS:
                steps.append(step)
            continue
        while at < len(history) and history[at].get("role") in _RESULTS:
            name = _answers(history[at])
            if name in asked:
                asked.remove(name)
                step.append(at)
            at += 1
        if not asked:
            steps.append(step)
    return steps


def _asked(message: _Message) -> set[object]:
    """What the results of a message must name."""
    found: set[object] = {("tool", _field(call, "id")) for call in message.get("tool_calls") or ()}
    if older := message.get("function_call"):
        found.add(("function", _field(older, "name")))
    return found


def _answers(message: _Message) -> object:
    is_tool = message["role"] == "tool"
    return message["role"], message.get("tool_call_id" if is_tool else "name")


def _field(value: object, name: str) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).get(name)
    return cast("object", getattr(value, name, None))


@dataclass(slots=True)
class _Trim:
    """One trim: the history, the tokens of each message, and what counts."""

    history: list[_Message]
    tokens: list[int]
    counter: Counter

    def within(self, steps: list[list[int]], room: int) -> tuple[list[_Message], int]:
        """The window and what is left of ``room``."""
        fixed = [at for at, step in enumerate(steps) if self._role(step) in _INSTRUCTIONS]
        users = [at for at, step in enumerate(steps) if self._role(step) == "user"]
        needed = {*fixed, *users[-1:], *([len(steps) - 1] if steps else ())}
        chosen: dict[int, _Message] = {}
        # What must stay, instructions first, each with what the others need at least.
        order = sorted(needed, key=lambda at: (at not in fixed, -at))
        least = {at: self._least(steps[at]) for at in order}
        reserved = sum(least.values())
        if reserved > room:
            message = f"what must stay has at least {reserved} tokens, limit {room}"
            raise BudgetError(message, code="over_budget", value=reserved, limit=room)
        for at in order:
            reserved -= least[at]
            room -= self._take(steps[at], room - reserved, chosen)
        for at in range(len(steps) - 1, -1, -1):
            if at in needed:
                continue
            step = steps[at]
            size = self._size(step)
            if size > room:
                if len(step) == 1 and self._least(step) <= room:
                    room -= self._take(step, room, chosen)
                break
            room -= self._take(step, room, chosen)
        return [chosen[at] for at in sorted(chosen)], room

    def _role(self, step: list[int]) -> object:
        return self.history[step[0]].get("role")

    def _size(self, step: list[int]) -> int:
        return sum(self.tokens[at] for at in step)

    def _least(self, step: list[int]) -> int:
        """Tokens of a step with each text as short as it may become."""
        return sum(
            min(self.tokens[at], self._count(_with_text(self.history[at], _CUT)) + _LEAST)
            if _text(self.history[at])
            else self.tokens[at]
            for at in step
        )

    def _count(self, message: _Message) -> int:
        found: Any = self.counter.count_messages([message], dialect="openai").per_message
        return int(found[0])

    def _take(self, step: list[int], room: int, chosen: dict[int, _Message]) -> int:
        """Adds a step, shortened to ``room`` where it is larger; its tokens."""
        used = 0
        # Small messages first, so that what they leave goes to the large ones.
        order = sorted(step, key=lambda at: self.tokens[at])
        least = {at: self._least([at]) for at in order} if self._size(step) > room else {}
        for at in order:
            most = (
                room
                - used
                - sum(size for other, size in least.items() if other not in chosen and other != at)
            )
            size, chosen[at] = self.tokens[at], self.history[at]
            if least and size > most:
                size, chosen[at] = self._shortened(at, most)
            used += size
        return used

    def _shortened(self, at: int, most: int) -> tuple[int, _Message]:
        """A message of at most ``most`` tokens, the middle of its text cut out."""
        message = self.history[at]
        text = _text(message)
        bare = self._count(_with_text(message, _CUT))
        budget = most - bare
        while True:
            head = self.counter.truncate(text, max(0, budget) // 2, keep="head")
            tail = self.counter.truncate(text, max(0, budget) - max(0, budget) // 2, keep="tail")
            made = _with_text(message, head + _CUT + tail)
            size = self._count(made)
            if size <= most or budget <= 0:
                return size, made
            budget -= max(1, size - most)


def _text(message: _Message) -> str:
    """The text of a message that can be shortened; empty if there is none."""
    content: Any = message.get("content")
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks = cast("list[object]", content)
        return "\n".join(str(_field(block, "text") or "") for block in blocks if _is_text(block))
    return ""


def _with_text(message: _Message, text: str) -> _Message:
    """A copy with this text; blocks that are no text stay."""
    content: Any = message.get("content")
    if isinstance(content, list):
        others = [block for block in cast("list[object]", content) if not _is_text(block)]
        return {**message, "content": [{"type": "text", "text": text}, *others]}
    return {**message, "content": text}


def _is_text(block: object) -> bool:
    return isinstance(block, dict) and cast("_Message", block).get("type") == "text"
