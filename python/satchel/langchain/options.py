"""The keywords of one call of `trim_messages`, in one piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from satchel.langchain.peer import peer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from satchel.langchain.report import TrimReport

__all__ = ["Options"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The keywords of one call."""

    max_tokens: Any
    token_counter: Any
    strategy: str
    allow_partial: bool
    end_on: Any
    start_on: Any
    include_system: bool
    text_splitter: Any
    keep_steps: bool
    pin: Any
    tools: Sequence[Any] | None
    reserve_tokens: int
    strict: bool
    per_message_counter: bool | None
    forward_counts: bool
    keep_blocks: bool
    report: Callable[[TrimReport], object] | None

    @property
    def last(self) -> bool:
        """Whether the newest messages are kept."""
        return self.strategy == "last"

    def refused(self, messages: Any) -> list[BaseMessage]:
        """What LangChain does with these arguments, which it refuses in words of its own."""
        return peer().trim(
            messages,
            max_tokens=self.max_tokens,
            token_counter=self.token_counter,
            strategy=self.strategy,
            allow_partial=self.allow_partial,
            end_on=self.end_on,
            start_on=self.start_on,
            include_system=self.include_system,
            text_splitter=self.text_splitter,
        )

    @property
    def is_plain(self) -> bool:
        """Whether the result is LangChain's: no keyword of ours changes which messages stay."""
        return not (
            self.keep_steps
            or self.pin != ()
            or self.tools
            or self.reserve_tokens
            or self.strict
            or self.report
        )
