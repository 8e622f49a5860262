"""What satchel is measured against: tiktoken and LangChain's ``trim_messages``.

tiktoken reads its own vocabulary file, which the ``bpe-openai`` package carries, from a temporary
cache folder: no network, and its loading is the loading that its users pay for.
"""

from __future__ import annotations

import atexit
import gzip
import hashlib
import os
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import tiktoken
from langchain_core.messages import BaseMessage, convert_to_messages, utils
from langchain_core.messages.utils import count_tokens_approximately

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

__all__ = [
    "count_alone",
    "encoding",
    "list_counter",
    "request_tokens",
    "to_langchain",
    "trim_approximate",
    "trim_exact",
    "vocabulary_folder",
]

_ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"

# Its type names an optional package that is not installed, which a strict checker will not have.
_trim: Callable[..., list[BaseMessage]] = getattr(utils, "trim_messages")  # noqa: B009 - as above

# The chat formula of OpenAI's cookbook: a message costs 3 beside role and content, a request 3.
_PER_MESSAGE = 3
_PER_ROLE = 1
_PER_REQUEST = 3


@cache
def vocabulary_folder() -> Path:
    """A folder that serves as ``TIKTOKEN_CACHE_DIR``; removed when the process ends."""
    # Found without importing the package, whose own loading is nobody's business here.
    spec = find_spec("bpe_openai")
    assert spec is not None
    assert spec.submodule_search_locations
    home = Path(spec.submodule_search_locations[0])
    packed = (home / "data" / "o200k_base.tiktoken.gz").read_bytes()
    folder = tempfile.TemporaryDirectory(prefix="satchel-bench-")
    atexit.register(folder.cleanup)
    name = hashlib.sha1(_ADDRESS.encode(), usedforsecurity=False).hexdigest()
    path = Path(folder.name)
    (path / name).write_bytes(gzip.decompress(packed))
    return path


@cache
def encoding() -> tiktoken.Encoding:
    """The ``o200k_base`` of tiktoken."""
    with patch.dict(os.environ, {"TIKTOKEN_CACHE_DIR": str(vocabulary_folder())}):
        return tiktoken.get_encoding("o200k_base")


def count_alone(texts: Iterable[str]) -> int:
    """Tokens of the texts, by tiktoken: only this, no window."""
    encode = encoding().encode_ordinary
    return sum(len(encode(text)) for text in texts)


def request_tokens(messages: Iterable[dict[str, Any]]) -> int:
    """Tokens of a request of plain chat messages by the chat formula, counted by tiktoken."""
    messages = list(messages)
    around = (_PER_MESSAGE + _PER_ROLE) * len(messages) + _PER_REQUEST
    return count_alone(message["content"] for message in messages) + around


def list_counter() -> Callable[[list[BaseMessage]], int]:
    """A counter of the kind LangChain's documentation shows: content tokens of a list."""
    encode = encoding().encode_ordinary

    def count(messages: list[BaseMessage]) -> int:
        total = 0
        for message in messages:
            content = message.content
            total += len(encode(content if isinstance(content, str) else message.text))
        return total

    return count


def to_langchain(messages: Sequence[dict[str, Any]]) -> list[BaseMessage]:
    """LangChain's own objects; the history a LangChain user would hold."""
    return convert_to_messages(messages)


def trim_exact(messages: Sequence[Any], budget: int) -> list[BaseMessage]:
    """The newest messages whose content fits, counted by tiktoken."""
    return _trim(messages, max_tokens=budget, token_counter=list_counter(), strategy="last")


def trim_approximate(messages: Sequence[Any], budget: int) -> list[BaseMessage]:
    """The newest messages that fit by LangChain's estimate (characters / 4)."""
    return _trim(
        messages, max_tokens=budget, token_counter=count_tokens_approximately, strategy="last"
    )
