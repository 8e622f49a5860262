"""Summaries by any provider that LiteLLM knows."""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from satchel.errors import InputError, SummaryError
from satchel.summarize.prompts import instructions, request_text
from satchel.summarize.replies import chat_result, failed, unavailable
from satchel.summarize.windows import input_tokens_of

if TYPE_CHECKING:
    from satchel.summarize.base import SummaryRequest, SummaryResult

__all__ = ["LiteLLMSummarizer"]


class LiteLLMSummarizer:
    """Asks a model over the ``litellm`` package (extra ``litellm``), which is loaded on first use.

    Args:
        model: the model's name as LiteLLM knows it, such as ``"groq/llama-3.3-70b-versatile"``.
        input_tokens: the most tokens of a request; None for what `satchel.models` says.
        options: further arguments of ``litellm.acompletion``, such as ``api_base``.
    """

    def __init__(
        self,
        model: str,
        *,
        input_tokens: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self._model: Final = model
        self._options: Final = dict(options or {})
        self.input_tokens: Final = input_tokens or input_tokens_of(model)

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"litellm:{self._model}"

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        """See `Summarizer.summarize`.

        Raises:
            InputError: ``missing_extra`` without the package.
        """
        try:
            # Seconds of work the first time; the event loop goes on meanwhile.
            litellm: Any = await asyncio.to_thread(import_module, "litellm")
        except ImportError as error:
            message = (
                "summaries by litellm need the package: install satchel with the extra litellm"
            )
            raise InputError(message, code="missing_extra") from error
        call: Any = litellm.acompletion
        try:
            reply = await call(
                model=self._model,
                messages=[
                    {"role": "system", "content": instructions(request)},
                    {"role": "user", "content": request_text(request)},
                ],
                max_tokens=request.max_tokens,
                num_retries=0,
                **self._options,
            )
        except Exception as error:
            # It raises its own and its clients' errors; those with a status say what happened.
            status = getattr(error, "status_code", None)
            if isinstance(status, int):
                raise failed(status) from error
            if isinstance(error, (OSError, TimeoutError)):
                raise unavailable() from error
            message = f"the client failed: {type(error).__name__}"
            raise SummaryError(message, code="summary_failed") from error
        return chat_result(reply)
