"""Summaries by Anthropic's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InputError, SummaryError
from satchel.summarize.base import SummaryRequest, SummaryResult
from satchel.summarize.prompts import instructions, request_text
from satchel.summarize.replies import checked_text, failed, unavailable, usage_of
from satchel.summarize.windows import input_tokens_of

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

__all__ = ["AnthropicSummarizer"]


class AnthropicSummarizer:
    """Asks a model over the ``anthropic`` package (extra ``anthropic``).

    Args:
        model: the model's name.
        client: an ``anthropic.AsyncAnthropic``; made from the other arguments if there is none.
        base_url: of another server; None for Anthropic's own.
        api_key: None to take it from the environment, as the client does.
        input_tokens: the most tokens of a request; None for what `satchel.models` says.
        options: further arguments of the call.

    Raises:
        InputError: ``missing_extra`` without the package.
    """

    def __init__(
        self,
        model: str,
        *,
        client: AsyncAnthropic | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        input_tokens: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        try:
            import anthropic  # noqa: PLC0415 - an optional package
        except ImportError as error:
            message = (
                "summaries by anthropic need the package: install satchel with the extra anthropic"
            )
            raise InputError(message, code="missing_extra") from error
        self._errors: Final = anthropic
        self._client: Final = client or anthropic.AsyncAnthropic(
            api_key=api_key, base_url=base_url, max_retries=0
        )
        self._model: Final = model
        self._options: Final = dict(options or {})
        self.input_tokens: Final = input_tokens or input_tokens_of(model)

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"anthropic:{self._model}"

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        """See `Summarizer.summarize`."""
        messages: list[Any] = [{"role": "user", "content": request_text(request)}]
        try:
            call: Any = self._client.messages.create  # whose overloads know no plain mapping
            reply: Any = await call(
                model=self._model,
                system=instructions(request),
                messages=messages,
                max_tokens=request.max_tokens,
                **self._options,
            )
        except self._errors.APIStatusError as error:
            raise failed(error.status_code) from error
        except self._errors.APIConnectionError as error:
            raise unavailable() from error
        except self._errors.AnthropicError as error:
            message = f"the client failed: {type(error).__name__}"
            raise SummaryError(message, code="summary_failed") from error
        blocks: list[Any] = list(reply.content or ())
        text = "".join(block.text for block in blocks if getattr(block, "type", None) == "text")
        is_refusal = reply.stop_reason == "refusal"
        is_cut = reply.stop_reason == "max_tokens"
        calls = any(getattr(block, "type", None) == "tool_use" for block in blocks)
        checked = checked_text(text, is_refusal=is_refusal, is_cut=is_cut, calls=calls)
        return SummaryResult(text=checked, usage=usage_of(reply))
