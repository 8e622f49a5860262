"""What came back instead of a summary, told apart by what may be done about it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InputError, SummaryError
from satchel.summarize.base import SummaryResult
from satchel.usage import Usage, usage_tokens

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = [
    "chat_result",
    "checked_text",
    "client_errors",
    "failed",
    "message_result",
    "unavailable",
    "usage_of",
]

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


@contextmanager
def client_errors(client: Any) -> Generator[None]:  # noqa: ANN401 - a client's module
    """Turns what a client raises within the block into a `SummaryError`.

    Args:
        client: the module ``openai`` or ``anthropic``, whose errors have the same names.

    Raises:
        SummaryError: ``summary_unavailable`` where trying again may help: the provider is busy or
            out of reach, or its answer broke off or cannot be read; else ``summary_failed``.
    """
    try:
        yield
    except SummaryError:
        raise
    except client.APIStatusError as error:
        raise failed(error.status_code) from error
    except client.APIConnectionError as error:
        raise unavailable() from error
    except TypeError as error:
        message = f"the client failed: {type(error).__name__}"
        raise SummaryError(message, code="summary_failed") from error
    except Exception as error:
        # An error inside a stream has no status; a body that is no JSON and a connection that is
        # lost in the middle of one raise errors of the layers below the client.
        message = f"the provider's answer could not be read: {type(error).__name__}"
        raise SummaryError(message, code="summary_unavailable") from error


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


def message_result(reply: Any) -> SummaryResult:  # noqa: ANN401 - a client's object
    """The summary in a message of Anthropic's.

    Raises:
        SummaryError: as `checked_text`.
    """
    blocks: list[Any] = list(reply.content or ())
    text = "".join(block.text for block in blocks if getattr(block, "type", None) == "text")
    checked = checked_text(
        text,
        is_refusal=reply.stop_reason == "refusal",
        is_cut=reply.stop_reason == "max_tokens",
        calls=any(getattr(block, "type", None) == "tool_use" for block in blocks),
    )
    return SummaryResult(text=checked, usage=usage_of(reply))
