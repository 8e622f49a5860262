"""Embedders behind one protocol: batches, a cache, and typed errors."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import satchel
from satchel.memory import CallableEmbedder, LiteLLMEmbedder, OpenAIEmbedder, WordLlamaEmbedder
from satchel.memory.embedders.base import CachedEmbedder

httpx = pytest.importorskip("httpx")
openai = pytest.importorskip("openai")


def embedded(embedder: Any, texts: list[str]) -> Any:
    return asyncio.run(CachedEmbedder(embedder).embed(texts))


def test_the_local_embedder_knows_what_is_alike() -> None:
    texts = ["The dog sleeps.", "A puppy naps.", "Interest rates rose.", ""]
    rows = embedded(WordLlamaEmbedder(), texts)
    assert rows.shape == (4, 256)
    assert rows.dtype == np.float32
    likeness = rows @ rows.T
    assert likeness[0, 1] > likeness[0, 2] + 0.2
    assert not rows[3].any()
    assert np.allclose(np.linalg.norm(rows[:3], axis=1), 1.0, atol=1e-6)


def test_texts_are_asked_once_and_in_batches() -> None:
    asked: list[list[str]] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.append(texts)
        return [[float(len(text)), 1.0] for text in texts]

    async def work() -> None:
        cached = CachedEmbedder(CallableEmbedder(embed, name="x"), batch_size=2, most_cached=3)
        assert cached.dimension is None
        rows = await cached.embed(["a", "bb", "a", "ccc"])
        assert asked == [["a", "bb"], ["ccc"]]
        assert cached.dimension == 2
        assert np.array_equal(rows[0], rows[2])
        await cached.embed(["bb", "ccc"])
        assert len(asked) == 2
        await cached.embed(["dddd"])
        await cached.embed(["a"])  # the oldest had to go
        assert asked[2:] == [["dddd"], ["a"]]
        assert (await cached.embed([])).shape == (0, 2)

    asyncio.run(work())


def test_a_coroutine_function_will_do() -> None:
    async def embed(texts: list[str]) -> list[list[float]]:
        return [[1.0, 0.0] for _ in texts]

    assert embedded(CallableEmbedder(embed, name="x"), ["a"]).tolist() == [[1.0, 0.0]]


def client(answer: Any) -> Any:
    """An OpenAI client whose server answers thus."""

    def handle(request: Any) -> Any:
        return answer(request)

    transport = httpx.MockTransport(handle)
    return openai.AsyncOpenAI(
        api_key="k", max_retries=0, http_client=httpx.AsyncClient(transport=transport)
    )


def test_openai_gives_vectors_in_the_order_of_the_texts() -> None:
    seen: list[Any] = []

    def answer(request: Any) -> Any:
        import json  # noqa: PLC0415 - only this handler reads a body

        seen.append(json.loads(request.content))
        data = [
            {"object": "embedding", "index": index, "embedding": row}
            for index, row in ((1, [0.0, 2.0]), (0, [3.0, 0.0]))
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return httpx.Response(
            200, json={"object": "list", "data": data, "model": "m", "usage": usage}
        )

    embedder = OpenAIEmbedder("text-embedding-3-small", client=client(answer), dimension=2)
    assert embedder.name == "openai:text-embedding-3-small"
    assert embedded(embedder, ["one", ""]).tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert seen[0]["dimensions"] == 2
    assert seen[0]["input"] == ["one", " "]


@pytest.mark.parametrize(
    ("status", "code"),
    [(429, "embedding_unavailable"), (503, "embedding_unavailable"), (400, "embedding_failed")],
)
def test_a_status_of_openai_is_a_typed_error(status: int, code: str) -> None:
    def answer(_request: Any) -> Any:
        return httpx.Response(status, json={"error": {"message": "the text"}})

    with pytest.raises(satchel.EmbeddingError) as caught:
        embedded(OpenAIEmbedder("m", client=client(answer)), ["secret"])
    assert (caught.value.code, caught.value.value) == (code, status)
    assert "text" not in str(caught.value)


def test_litellm_is_asked_and_its_errors_are_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    litellm: Any = pytest.importorskip("litellm")
    embedder = LiteLLMEmbedder("mistral/mistral-embed")
    answers: list[Any] = [SimpleNamespace(data=[{"index": 0, "embedding": [0.0, 5.0]}])]

    async def aembedding(**options: Any) -> Any:
        assert options["model"] == "mistral/mistral-embed"
        if not answers:
            error = RuntimeError("overloaded")
            cast("Any", error).status_code = 529
            raise error
        return answers.pop()

    monkeypatch.setattr(litellm, "aembedding", aembedding)
    assert embedded(embedder, ["a"]).tolist() == [[0.0, 1.0]]
    with pytest.raises(satchel.EmbeddingError) as caught:
        embedded(embedder, ["a"])
    assert caught.value.code == "embedding_unavailable"
