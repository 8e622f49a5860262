"""The names of the message formats."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

__all__ = ["DIALECTS", "Dialect"]

Dialect: TypeAlias = Literal["openai", "openai-responses", "anthropic", "gemini", "bedrock"]

DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)
