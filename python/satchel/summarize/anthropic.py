"""Summaries by Anthropic's messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InputError
from satchel.summarize.prompts import instructions, request_text
from satchel.summarize.replies import client_errors, message_result
from satchel.summarize.streams import message_stream_result
from satchel.summarize.windows import input_tokens_of

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

    from satchel.summarize.base import SuffixRequest, SummaryRequest, SummaryResult

__all__ = ["AnthropicSummarizer"]


class AnthropicSummarizer:
    """Asks a model over the ``anthropic`` package (extra ``anthropic``).

    Args:
        model: the model's name.
        client: an ``anthropic.AsyncAnthropic``; made from the other arguments if there is none.
        base_url: of another server; None for Anthropic's own.
        api_key: None to take it from the environment, as the client does.
        input_tokens: the most tokens of a request; None for what `satchel.models` says.
        stream: whether the answer comes piece by piece, for servers and proxies that give up on a
            long silence; one that breaks off is no answer.
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
        stream: bool = False,
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
        self._is_streamed: Final = stream
        self._options: Final = {**({"stream": True} if stream else {}), **(options or {})}
        self.input_tokens: Final = input_tokens or input_tokens_of(model)

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"anthropic:{self._model}"

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        """See `Summarizer.summarize`."""
        messages: list[Any] = [{"role": "user", "content": request_text(request)}]
        arguments = {
            "model": self._model,
            "system": instructions(request),
            "messages": messages,
        }
        return await self._ask(arguments, request.max_tokens)

    @property
    def suffix_dialect(self) -> str:
        """See `SuffixSummarizer.suffix_dialect`."""
        return "anthropic"

    async def summarize_suffix(self, request: SuffixRequest, /) -> SummaryResult:
        """See `SuffixSummarizer.summarize_suffix`."""
        last = {"role": "user", "content": [{"type": "text", "text": request.instruction}]}
        messages = [*request.call["messages"], last]
        return await self._ask({**request.call, "messages": messages}, request.max_tokens)

    async def _ask(self, arguments: dict[str, Any], max_tokens: int) -> SummaryResult:
        call: Any = self._client.messages.create  # whose overloads know no plain mapping
        with client_errors(self._errors):
            reply: Any = await call(**{**arguments, "max_tokens": max_tokens, **self._options})
            return (
                await message_stream_result(reply) if self._is_streamed else message_result(reply)
            )
