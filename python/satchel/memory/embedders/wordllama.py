"""The embedder that needs no network: the mean of the token vectors that `wordllama` ships.

Only the package's two data files are read; its code, and the frameworks behind it, stay unloaded.
Words are looked up once and kept, so a text costs a few additions.

Source: wordllama 0.4, ``l2_supercat_256`` (MIT licence): 32,000 token vectors of 256 numbers.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["WordLlamaEmbedder"]

_WORD: Final = re.compile(r"\S+")
_MOST_WORDS: Final = 200_000
_LONGEST_WORD: Final = 64
"""Characters; what is longer is a hash or a blob, and the tokens of its beginning will do."""


class WordLlamaEmbedder:
    """Vectors of 256 numbers from the files of the package ``wordllama`` (extra ``embeddings``).

    Raises:
        InputError: ``missing_extra`` without the package.
    """

    def __init__(self) -> None:
        self._model: Final = _model()

    @property
    def name(self) -> str:
        """See `Embedder.name`."""
        return "wordllama:l2_supercat_256:words-1"

    @property
    def dimension(self) -> int:
        """See `Embedder.dimension`."""
        return self._model.dimension

    async def embed(self, texts: Sequence[str], /) -> NDArray[np.float32]:
        """See `Embedder.embed`; ``(n, 256)`` float32, not normalised."""
        return await asyncio.to_thread(self._model.embed, list(texts))

    def word_vectors(self, words: Sequence[str], /) -> NDArray[np.float32]:
        """The sum of the token vectors of each word, ``(n, 256)`` float32."""
        return self._model.word_vectors(list(words))


class _Model:
    """The two files, loaded once a process."""

    def __init__(self, folder: Path) -> None:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - comes with the optional package
        except ImportError as error:
            raise _missing() from error
        weights = folder / "weights" / "l2_supercat_256.safetensors"
        words = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        if not weights.is_file() or not words.is_file():
            raise _missing()
        self._rows: Final = _read_matrix(weights)
        self._tokenizer: Final[Any] = Tokenizer.from_file(str(words))
        self._sums: Final[dict[str, tuple[NDArray[np.float32], int]]] = {}
        self._lock: Final = threading.Lock()

    @property
    def dimension(self) -> int:
        return int(self._rows.shape[1])

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        """The mean token vector of each text; zeros for a blank one."""
        split = [[word[:_LONGEST_WORD] for word in _WORD.findall(text)] for text in texts]
        known = self._known({word for words in split for word in words})
        found = np.zeros((len(texts), self.dimension), np.float32)
        for place, words in enumerate(split):
            if words:
                pairs = [known[word] for word in words]
                total = np.sum([one for one, _ in pairs], axis=0)
                found[place] = total / sum(count for _, count in pairs)
        return found

    def word_vectors(self, words: list[str]) -> NDArray[np.float32]:
        cut = [word[:_LONGEST_WORD] for word in words]
        known = self._known(set(cut))
        rows = [known[word][0] for word in cut]
        return np.array(rows, np.float32).reshape(len(rows), self.dimension)

    def _known(self, words: set[str]) -> dict[str, tuple[NDArray[np.float32], int]]:
        """For each word, the sum of its tokens' vectors, and how many they are."""
        with self._lock:
            unknown = sorted(words - self._sums.keys())
            if len(self._sums) + len(unknown) > _MOST_WORDS:
                self._sums.clear()
                unknown = sorted(words)
            coded = self._tokenizer.encode_batch(unknown, add_special_tokens=False)
            for word, one in zip(unknown, coded, strict=True):
                ids = np.asarray(one.ids, np.int64)
                self._sums[word] = (self._rows[ids].sum(axis=0, dtype=np.float32), len(ids))
            return {word: self._sums[word] for word in words}


@lru_cache(maxsize=1)
def _model() -> _Model:
    spec = find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise _missing()
    return _Model(Path(spec.submodule_search_locations[0]))


def _missing() -> InputError:
    message = "the local embedder needs the package wordllama: install the extra embeddings"
    return InputError(message, code="missing_extra")


def _read_matrix(path: Path) -> NDArray[np.float32]:
    """The one matrix of a safetensors file: a length, a JSON header, the numbers."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8 : 8 + size])
    [entry] = [value for name, value in header.items() if name != "__metadata__"]
    start, end = (8 + size + at for at in entry["data_offsets"])
    numbers = np.frombuffer(content[start:end], np.dtype("<f2"))
    return numbers.reshape(entry["shape"]).astype(np.float32)
