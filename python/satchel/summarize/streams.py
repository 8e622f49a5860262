"""Answers that come piece by piece, put together again.

A stream that breaks off looks like a short answer. What counts is whether the provider said that
the answer is over; where it did not, there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel.errors import SummaryError
from satchel.summarize.base import SummaryResult
from satchel.summarize.replies import checked_text, usage_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterable

    from satchel.usage import Usage

__all__ = ["STREAMED", "chat_stream_result", "message_stream_result"]


STREAMED: Final[dict[str, Any]] = {"stream": True, "stream_options": {"include_usage": True}}
"""Arguments of a chat completion that comes piece by piece."""


async def chat_stream_result(stream: AsyncIterable[Any]) -> SummaryResult:
    """The summary in the chunks of a chat completion.

    Raises:
        SummaryError: as `checked_text`; ``summary_unavailable`` if the stream broke off.
    """
    pieces: list[str] = []
    reason: str | None = None
    calls = is_refusal = False
    usage: Usage | None = None
    async for chunk in stream:
        # The chunk with the usage has no choice.
        if getattr(chunk, "usage", None) is not None:
            usage = usage_of(chunk)
        for choice in getattr(chunk, "choices", None) or ():
            delta = choice.delta
            if isinstance(getattr(delta, "content", None), str):
                pieces.append(delta.content)
            calls = calls or bool(getattr(delta, "tool_calls", None))
            is_refusal = is_refusal or bool(getattr(delta, "refusal", None))
            reason = choice.finish_reason or reason
    if reason is None:
        raise _broken_off()
    text = checked_text(
        "".join(pieces),
        is_refusal=is_refusal or reason == "content_filter",
        is_cut=reason == "length",
        calls=calls,
    )
    return SummaryResult(text=text, usage=usage)


async def message_stream_result(stream: AsyncIterable[Any]) -> SummaryResult:
    """The summary in the events of an Anthropic message.

    Raises:
        SummaryError: as `chat_stream_result`.
    """
    pieces: list[str] = []
    reason: str | None = None
    calls = is_over = False
    figures: dict[str, Any] = {}
    async for event in stream:
        match event.type:
            case "message_start":
                figures.update(event.message.usage.model_dump(exclude_none=True))
            case "content_block_start":
                calls = calls or event.content_block.type == "tool_use"
            case "content_block_delta" if event.delta.type == "text_delta":
                pieces.append(event.delta.text)
            case "message_delta":
                reason = event.delta.stop_reason or reason
                figures.update(event.usage.model_dump(exclude_none=True))
            case "message_stop":
                is_over = True
            case _:
                pass
    if not is_over:
        raise _broken_off()
    text = checked_text(
        "".join(pieces),
        is_refusal=reason == "refusal",
        is_cut=reason == "max_tokens",
        calls=calls,
    )
    return SummaryResult(text=text, usage=usage_of({"usage": figures}))


def _broken_off() -> SummaryError:
    message = "the stream of the answer ended before the answer did"
    return SummaryError(message, code="summary_unavailable")
