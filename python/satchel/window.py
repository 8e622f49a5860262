"""One rendered window, and what is said about it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["Page", "Report", "StepReport", "Window", "WindowDiff"]

_MARK: Final = {"type": "ephemeral"}
_MARKABLE: Final = frozenset({"text", "image", "document", "tool_use", "tool_result"})


@dataclass(frozen=True, slots=True)
class Page:
    """Removed content that a window points to.

    Attributes:
        pointer: its stable id, for ``WorkingSet.page_in``.
        message: raw index of the message it is from; None for the index of everything gone.
        tokens: tokens of the original; 0 for the index.
    """

    pointer: str
    message: int | None
    tokens: int


@dataclass(frozen=True, slots=True)
class StepReport:
    """What happened to one step.

    Attributes:
        first: raw index of its first message.
        end: one past the raw index of its last message.
        role: role of its first message.
        level: ``verbatim``, ``trimmed``, ``stub`` or ``gone``.
        tokens: tokens it takes in the window.
        original_tokens: tokens of the original.
        salience: how much it matters for the next call, 0 to 1.
        fidelity: ``exact`` or ``approximate``.
        reason: why it has its level, in a few words.
        compaction: number of the compaction that decided it, from 1; 0 if none has.
    """

    first: int
    end: int
    role: str
    level: str
    tokens: int
    original_tokens: int
    salience: float
    fidelity: str
    reason: str
    compaction: int


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one window.

    Attributes:
        model: the model's name.
        policy: the policy's name.
        messages: messages of the history.
        steps: steps of the history by level; the values add up to all of them.
        compactions: compactions so far, one that this window made included.
        system_tokens: tokens of the system prompt outside the messages.
        tools_tokens: tokens of the tool definitions.
    """

    model: str
    policy: str
    messages: int
    steps: Mapping[str, int]
    compactions: int
    system_tokens: int
    tools_tokens: int


@dataclass(frozen=True, slots=True)
class WindowDiff:
    """How one window differs from an earlier one.

    Attributes:
        common: messages at the front that are equal.
        removed: messages of the earlier window behind them.
        added: messages of this window behind them.
    """

    common: int
    removed: tuple[Any, ...]
    added: tuple[Any, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The rendered result for one model call.

    Attributes:
        messages: messages in the caller's dialect; unchanged ones are the caller's own objects.
        system: the system prompt as it was given, or None.
        tools: the tool definitions as they were given, or None.
        events: the full list of events to pass next time.
        tokens: input tokens of the whole request, by the counter.
        tokens_upper: the upper estimate; equal to ``tokens`` if ``exact``. Never above ``budget``.
        exact: whether the count is the provider's own.
        budget: input tokens that the request may use.
        stable_prefix_tokens: tokens at the front that equal the window at the boundary before.
        report: further figures.
        pages: what the window points to; the index of everything gone comes first.
        model: the model's name, for ``as_kwargs``.
        dialect: the dialect of ``messages``.
    """

    messages: list[Any]
    system: Any
    tools: Any
    events: tuple[Mapping[str, Any], ...] = field(repr=False)
    tokens: int
    tokens_upper: int
    exact: bool
    budget: int
    stable_prefix_tokens: int
    report: Report
    pages: tuple[Page, ...] = field(repr=False)
    model: str
    dialect: str

    @property
    def cache_breakpoints(self) -> tuple[int, ...]:
        """Indices into ``messages`` after which the provider's cache should be written."""
        return (len(self.messages) - 1,) if self.messages else ()

    def as_kwargs(self) -> dict[str, Any]:
        """Arguments of the provider's own client call: model, messages, and what was given.

        For ``anthropic`` the system prompt and the messages at ``cache_breakpoints`` carry cache
        marks, on copies. For ``openai`` a system prompt comes first among the messages.
        """
        kwargs: dict[str, Any] = {"model": self.model, "messages": self.messages}
        if self.tools is not None:
            kwargs["tools"] = self.tools
        if self.dialect == "anthropic":
            if self.system is not None:
                kwargs["system"] = _marked_content(self.system)
            messages = list(self.messages)
            for index in self.cache_breakpoints:
                messages[index] = _marked(messages[index])
            kwargs["messages"] = messages
        elif self.system is not None:
            kwargs["messages"] = [{"role": "system", "content": self.system}, *self.messages]
        return kwargs

    def diff(self, other: Window) -> WindowDiff:
        """How this window differs from the earlier window ``other``."""
        common = 0
        for mine, theirs in zip(self.messages, other.messages, strict=False):
            if mine is not theirs and mine != theirs:
                break
            common += 1
        return WindowDiff(common, tuple(other.messages[common:]), tuple(self.messages[common:]))


def _marked(message: Any) -> Any:  # noqa: ANN401 - a message is whatever the caller's SDK makes
    """A copy of a message whose last block carries a cache mark, where blocks can carry one."""
    if not isinstance(message, dict):
        return message
    fields = cast("dict[str, Any]", message)
    content = fields.get("content")
    marked = _marked_content(content)
    return fields if marked is content else {**fields, "content": marked}


def _marked_content(content: Any) -> Any:  # noqa: ANN401 - likewise
    if isinstance(content, str):
        if not content.strip():
            return content
        return [{"type": "text", "text": content, "cache_control": _MARK}]
    if not isinstance(content, (list, tuple)) or not content:
        return cast("object", content)
    blocks = [*cast("Sequence[Any]", content)]
    last = blocks[-1]
    if not isinstance(last, dict):
        return blocks
    block = cast("dict[str, Any]", last)
    if block.get("type") not in _MARKABLE:
        return blocks
    return [*blocks[:-1], {**block, "cache_control": _MARK}]
