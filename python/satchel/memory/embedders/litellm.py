"""Vectors by any model that the package ``litellm`` knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel._arguments import plain_text
from satchel.errors import EmbeddingError, InputError
from satchel.memory.embedders.openai import failed, rows_of

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LiteLLMEmbedder"]


class LiteLLMEmbedder:
    """Asks a model over ``litellm.aembedding`` (extra ``litellm``).

    Args:
        model: the model's name, as litellm knows it.
        options: further arguments of the call, such as ``api_base``.

    Raises:
        InputError: ``missing_extra`` without the package.
    """

    def __init__(self, model: str, **options: Any) -> None:  # noqa: ANN401 - litellm's own
        try:
            import litellm  # noqa: PLC0415 - an optional package
        except ImportError as error:
            message = "embeddings by litellm need the package: install the extra litellm"
            raise InputError(message, code="missing_extra") from error
        self._litellm: Final[Any] = litellm
        self._model: Final = plain_text("model", model)
        self._options: Final = dict(options)

    @property
    def name(self) -> str:
        """See `Embedder.name`."""
        return f"litellm:{self._model}"

    @property
    def dimension(self) -> None:
        """See `Embedder.dimension`: known after the first."""
        return

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """See `Embedder.embed`.

        Raises:
            EmbeddingError: ``embedding_unavailable`` where trying again may help, else
                ``embedding_failed``.
        """
        try:
            reply: Any = await self._litellm.aembedding(
                model=self._model, input=[text or " " for text in texts], **self._options
            )
        except Exception as error:
            # litellm has classes of its own for each provider; all carry the status.
            status = getattr(error, "status_code", None)
            if isinstance(status, int):
                raise failed(status) from error
            message = f"litellm failed: {type(error).__name__}"
            raise EmbeddingError(message, code="embedding_failed") from error
        return rows_of(reply)
