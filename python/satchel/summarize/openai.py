"""Summaries by OpenAI's chat completions, or by anything that speaks their format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InputError, SummaryError
from satchel.summarize.prompts import instructions, request_text
from satchel.summarize.replies import chat_result, failed, unavailable
from satchel.summarize.windows import input_tokens_of

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from satchel.summarize.base import SummaryRequest, SummaryResult

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
        self._options: Final = dict(options or {})
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
        call: Any = self._client.chat.completions.create  # whose overloads know no plain mapping
        limit = {self._limit_field: request.max_tokens}
        try:
            reply: Any = await call(model=self._model, messages=messages, **limit, **self._options)
        except self._errors.APIStatusError as error:
            raise failed(error.status_code) from error
        except self._errors.APIConnectionError as error:
            raise unavailable() from error
        except self._errors.OpenAIError as error:
            message = f"the client failed: {type(error).__name__}"
            raise SummaryError(message, code="summary_failed") from error
        return chat_result(reply)
