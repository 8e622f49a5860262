"""What a rewrite did: sums over all conversations."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Sums of one run.

    Attributes:
        conversations: conversations that were written anew.
        windows: windows that were written.
        rejected: conversations, lines and files that have none; the reject file says why.
        messages: messages of the conversations as they were read.
        tokens_before: tokens of requests with the whole histories, one for each window.
        tokens_after: tokens of the requests with the windows.
        violations: findings in the conversations that their providers would reject.
        violations_left: such findings that are left in the windows.
        repaired: conversations that were repaired.
        losses: things that conversions could not carry over.
        bytes_read: bytes of the files, as they lie on the disk.
    """

    conversations: int = 0
    windows: int = 0
    rejected: int = 0
    messages: int = 0
    tokens_before: int = 0
    tokens_after: int = 0
    violations: int = 0
    violations_left: int = 0
    repaired: int = 0
    losses: int = 0
    bytes_read: int = 0

    def plus(self, output: Mapping[str, Any], bytes_read: int) -> Summary:
        """These sums and those of one output of the native half."""
        names = [field.name for field in fields(self)]
        given = {**output, "messages": output["messages_in"], "bytes_read": bytes_read}
        return Summary(**{name: getattr(self, name) + given[name] for name in names})

    def as_dict(self) -> dict[str, int]:
        """The sums by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}
