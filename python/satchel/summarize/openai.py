"""Summaries by OpenAI's chat completions, or by anything that speaks their format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InputError
from satchel.summarize.prompts import instructions, request_text
from satchel.summarize.replies import chat_result, client_errors
from satchel.summarize.streams import STREAMED, chat_stream_result
from satchel.summarize.windows import input_tokens_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from satchel.summarize.base import SuffixRequest, SummaryRequest, SummaryResult

__all__ = ["OpenAISummarizer"]


class OpenAISummarizer:
    """Asks a model over the ``openai`` package (extra ``openai``).

    Args:
        model: the model's name, as the server knows it.
        client: an ``openai.AsyncOpenAI``; made from the other arguments if there is none.
        base_url: of a server that speaks the same format; None for OpenAI's own.
        api_key: None to take it from the environment, as the client does.
        input_tokens: the most tokens of a request; None for what `satchel.models` says.
        limit_field: how the server calls the limit of the answer: ``max_completion_tokens``, or
            ``max_tokens`` with older ones.
        stream: whether the answer comes piece by piece, for servers and proxies that give up on a
            long silence; one that breaks off is no answer.
        options: further arguments of the call, such as ``temperature``.

    Raises:
        InputError: ``missing_extra`` without the package.
    """

    def __init__(
        self,
        model: str,
        *,
        client: AsyncOpenAI | None = None,
        base_url: str | None = None,
        api_key: str | None = None,
        input_tokens: int | None = None,
        limit_field: str = "max_completion_tokens",
        stream: bool = False,
        options: dict[str, Any] | None = None,
    ) -> None:
        try:
            import openai  # noqa: PLC0415 - an optional package
        except ImportError as error:
            message = "summaries by openai need the package: install satchel with the extra openai"
            raise InputError(message, code="missing_extra") from error
        self._errors: Final = openai
        # Retries are satchel's, so that their number has one bound.
        self._client: Final = client or openai.AsyncOpenAI(
            api_key=api_key, base_url=base_url, max_retries=0
        )
        self._model: Final = model
        self._limit_field: Final = limit_field
        self._is_streamed: Final = stream
        self._options: Final = {**(STREAMED if stream else {}), **(options or {})}
        self.input_tokens: Final = input_tokens or input_tokens_of(model)

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"openai:{self._model}"

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        """See `Summarizer.summarize`."""
        messages: list[Any] = [
            {"role": "system", "content": instructions(request)},
            {"role": "user", "content": request_text(request)},
        ]
        return await self._ask({"model": self._model, "messages": messages}, request.max_tokens)

    @property
    def suffix_dialect(self) -> str:
        """See `SuffixSummarizer.suffix_dialect`."""
        return "openai"

    async def summarize_suffix(self, request: SuffixRequest, /) -> SummaryResult:
        """See `SuffixSummarizer.summarize_suffix`."""
        last = {"role": "user", "content": request.instruction}
        messages = [*request.call["messages"], last]
        return await self._ask({**request.call, "messages": messages}, request.max_tokens)

    async def _ask(self, arguments: dict[str, Any], max_tokens: int) -> SummaryResult:
        call: Any = self._client.chat.completions.create  # whose overloads know no plain mapping
        with client_errors(self._errors):
            reply: Any = await call(**{**arguments, self._limit_field: max_tokens, **self._options})
            return await chat_stream_result(reply) if self._is_streamed else chat_result(reply)
