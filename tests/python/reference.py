"""tiktoken's encodings without a network: its own rules with the vocabularies of this repository.

That those are tiktoken's vocabularies is a test of its own (`test_encoder_oracle`), by SHA-256.
"""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from unittest.mock import patch

import tiktoken

__all__ = ["encoding", "tiktoken_file", "tokens"]

DATA = Path(__file__).parents[2] / "rust" / "core" / "data"


def tokens(name: str) -> list[bytes]:
    """The tokens of a vocabulary in rank order."""
    data = (DATA / f"{name}.vocab").read_bytes()
    found: list[bytes] = []
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        found.append(data[at + 1 : end])
        at = end
    return found


def tiktoken_file(name: str) -> bytes:
    """The vocabulary as tiktoken publishes it: base64 and rank, one token a line."""
    lines = (base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens(name)))
    return b"".join(lines)


def _ranks(url: str, **_: object) -> dict[bytes, int]:
    name = url.rsplit("/", 1)[-1].removesuffix(".tiktoken")
    return {token: rank for rank, token in enumerate(tokens(name))}


@cache
def encoding(name: str) -> tiktoken.Encoding:
    """An encoding of tiktoken: ``o200k_base``, ``o200k_harmony`` or ``cl100k_base``."""
    with patch("tiktoken_ext.openai_public.load_tiktoken_bpe", _ranks):
        return tiktoken.get_encoding(name)
