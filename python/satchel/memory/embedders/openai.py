"""Vectors by OpenAI's embeddings, or by any server that speaks their format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel._arguments import plain_text, whole_number
from satchel.errors import EmbeddingError, InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from openai import AsyncOpenAI

__all__ = ["OpenAIEmbedder", "failed", "rows_of"]

_TRANSIENT: Final = frozenset({408, 409, 425, 429})
_SERVER_ERROR: Final = 500
_BLANK: Final = " "
"""What is asked instead of an empty text, which the server refuses."""


class OpenAIEmbedder:
    """Asks a model over the ``openai`` package (extra ``openai``).

    Args:
        model: the model's name, as the server knows it.
        client: an ``openai.AsyncOpenAI``; made from the other arguments if there is none.
        base_url: of a server that speaks the same format; None for OpenAI's own.
        api_key: None to take it from the environment, as the client does.
        dimension: numbers of a vector, where the model can shorten them; None for its own.

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
        dimension: int | None = None,
    ) -> None:
        try:
            import openai  # noqa: PLC0415 - an optional package
        except ImportError as error:
            message = "embeddings by openai need the package: install the extra openai"
            raise InputError(message, code="missing_extra") from error
        self._errors: Final = openai
        self._client: Final = client or openai.AsyncOpenAI(api_key=api_key, base_url=base_url)
        self._model: Final = plain_text("model", model)
        self._dimension: Final = (
            None if dimension is None else whole_number("dimension", dimension, least=1)
        )

    @property
    def name(self) -> str:
        """See `Embedder.name`."""
        return f"openai:{self._model}"

    @property
    def dimension(self) -> int | None:
        """See `Embedder.dimension`."""
        return self._dimension

    async def embed(self, texts: Sequence[str], /) -> list[list[float]]:
        """See `Embedder.embed`.

        Raises:
            EmbeddingError: ``embedding_unavailable`` where trying again may help, else
                ``embedding_failed``.
        """
        call: Any = self._client.embeddings.create
        options = {} if self._dimension is None else {"dimensions": self._dimension}
        try:
            reply: Any = await call(
                model=self._model, input=[text or _BLANK for text in texts], **options
            )
        except self._errors.APIStatusError as error:
            raise failed(error.status_code) from error
        except self._errors.APIConnectionError as error:
            raise failed(None) from error
        except self._errors.OpenAIError as error:
            message = f"the client failed: {type(error).__name__}"
            raise EmbeddingError(message, code="embedding_failed") from error
        return rows_of(reply)


def rows_of(reply: Any) -> list[list[float]]:  # noqa: ANN401 - a client's object
    """The vectors of a reply in OpenAI's format, in the order of the texts.

    Raises:
        EmbeddingError: ``embedding_failed`` if it has none.
    """
    data: list[Any] = list(getattr(reply, "data", None) or ())
    pairs: list[tuple[int, list[float]]] = [
        (one["index"], one["embedding"]) if isinstance(one, dict) else (one.index, one.embedding)
        for one in data
    ]
    if not pairs:
        message = "the provider's reply has no vectors in it"
        raise EmbeddingError(message, code="embedding_failed")
    ordered = sorted(pairs, key=_place)
    return [list(row) for _, row in ordered]


def _place(pair: tuple[int, list[float]]) -> int:
    return pair[0]


def failed(status: int | None) -> EmbeddingError:
    """The error of an HTTP status, or of a provider that cannot be reached."""
    if status is None:
        message = "the provider could not be reached"
        return EmbeddingError(message, code="embedding_unavailable")
    is_transient = status in _TRANSIENT or status >= _SERVER_ERROR
    code = "embedding_unavailable" if is_transient else "embedding_failed"
    return EmbeddingError(f"the provider answered with status {status}", code=code, value=status)
