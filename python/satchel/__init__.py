"""Packs the context window of an LLM agent under an exact token budget."""

from satchel.counting import Counter, MessageTokens, counter
from satchel.linting import Violation, lint

__all__ = ["Counter", "MessageTokens", "Violation", "counter", "lint"]
