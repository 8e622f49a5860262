"""Summaries of what leaves the window: the protocol, what speaks to models, and a default without.

Every name is loaded when it is first used, so nothing optional is imported before it is needed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from satchel.summarize.anthropic import AnthropicSummarizer
    from satchel.summarize.base import (
        Language,
        SuffixRequest,
        SuffixSummarizer,
        Summarizer,
        SummaryRequest,
        SummaryResult,
    )
    from satchel.summarize.extractive import ExtractiveSummarizer
    from satchel.summarize.litellm import LiteLLMSummarizer
    from satchel.summarize.openai import OpenAISummarizer
    from satchel.summarize.writing import Attempt, Patience, Written, write_summary

__all__ = [
    "AnthropicSummarizer",
    "Attempt",
    "ExtractiveSummarizer",
    "Language",
    "LiteLLMSummarizer",
    "OpenAISummarizer",
    "Patience",
    "SuffixRequest",
    "SuffixSummarizer",
    "Summarizer",
    "SummaryRequest",
    "SummaryResult",
    "Written",
    "write_summary",
]

_HOMES = {
    "anthropic": ("AnthropicSummarizer",),
    "base": (
        "Language",
        "SuffixRequest",
        "SuffixSummarizer",
        "Summarizer",
        "SummaryRequest",
        "SummaryResult",
    ),
    "extractive": ("ExtractiveSummarizer",),
    "litellm": ("LiteLLMSummarizer",),
    "openai": ("OpenAISummarizer",),
    "writing": ("Attempt", "Patience", "Written", "write_summary"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Loads a public name on first use (PEP 562) and keeps it."""
        if name not in _HOME_OF:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from importlib import import_module  # noqa: PLC0415 - only the first use of a name pays

        value: object = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
