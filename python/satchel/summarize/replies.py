"""What came back instead of a summary, told apart by what may be done about it."""

from __future__ import annotations

from typing import Any, Final

from satchel.errors import InputError, SummaryError
from satchel.summarize.base import SummaryResult
from satchel.usage import Usage, usage_tokens

__all__ = ["chat_result", "checked_text", "failed", "unavailable", "usage_of"]

_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_SERVER_ERROR: Final = 500


def failed(status: int) -> SummaryError:
    """The error of an HTTP status: one that may pass, or one that stays."""
    is_transient = status in _TRANSIENT or status >= _SERVER_ERROR
    code = "summary_unavailable" if is_transient else "summary_failed"
    return SummaryError(f"the provider answered with status {status}", code=code, value=status)


def unavailable() -> SummaryError:
    """The error of a provider that cannot be reached or does not answer in time."""
    return SummaryError("the provider could not be reached", code="summary_unavailable")


def checked_text(text: str, *, is_refusal: bool, is_cut: bool, calls: bool) -> str:
    """The text, if it can be a summary.

    Raises:
        SummaryError: ``summary_refused``, ``summary_cut`` (it ran into its limit) or
            ``summary_empty``.
    """
    if is_refusal:
        message = "the model refused to write the summary"
        raise SummaryError(message, code="summary_refused")
    if not text.strip():
        what = "called a tool" if calls else "gave no text"
        message = f"the model {what} instead of writing the summary"
        raise SummaryError(message, code="summary_empty")
    if is_cut:
        message = "the summary ran into its limit and ends in the middle"
        raise SummaryError(message, code="summary_cut")
    return text.strip()


def usage_of(reply: object) -> Usage | None:
    """What the reply says it cost; None if it says nothing."""
    try:
        return usage_tokens(reply)
    except InputError:
        return None


def chat_result(reply: Any) -> SummaryResult:  # noqa: ANN401 - a client's object
    """The summary in a chat completion.

    Raises:
        SummaryError: as `checked_text`; ``summary_empty`` if there is no choice.
    """
    choices = getattr(reply, "choices", None) or ()
    if not choices:
        message = "the provider's reply has no choice in it"
        raise SummaryError(message, code="summary_empty")
    choice = choices[0]
    message = choice.message
    reason = choice.finish_reason
    text = checked_text(
        message.content if isinstance(message.content, str) else "",
        is_refusal=bool(getattr(message, "refusal", None)) or reason == "content_filter",
        is_cut=reason == "length",
        calls=bool(getattr(message, "tool_calls", None)),
    )
    return SummaryResult(text=text, usage=usage_of(reply))
