"""Packs the context window of an LLM agent under an exact token budget."""

from satchel.counting import Counter, counter

__all__ = ["Counter", "counter"]
