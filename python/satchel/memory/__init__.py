"""Long-term memory: what is kept across sessions, and found again by what it means.

Every name is loaded when it is first used, so nothing optional is imported before it is needed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from satchel.memory.agent import AgentTurn, AgentWithMemory
    from satchel.memory.embedders.base import CallableEmbedder, Embedder
    from satchel.memory.embedders.litellm import LiteLLMEmbedder
    from satchel.memory.embedders.openai import OpenAIEmbedder
    from satchel.memory.embedders.wordllama import WordLlamaEmbedder
    from satchel.memory.extraction import (
        ExtractionReport,
        ExtractionSettings,
        Extractor,
        extract_memories,
    )
    from satchel.memory.findings import Finding, Said
    from satchel.memory.flushing import flush_to, said_of
    from satchel.memory.item import MemoryItem, Recalled, Source
    from satchel.memory.model_extraction import (
        ModelExtractor,
        litellm_completion,
        openai_completion,
    )
    from satchel.memory.opening import open_memory
    from satchel.memory.ranking import Ranking
    from satchel.memory.rendering import memories_text
    from satchel.memory.rules import RuleExtractor
    from satchel.memory.store import Memory
    from satchel.memory.traces import (
        Trace,
        TraceStep,
        recall_traces,
        remember_trace,
        trace_of,
        traces_messages,
        traces_text,
    )

__all__ = [
    "AgentTurn",
    "AgentWithMemory",
    "CallableEmbedder",
    "Embedder",
    "ExtractionReport",
    "ExtractionSettings",
    "Extractor",
    "Finding",
    "LiteLLMEmbedder",
    "Memory",
    "MemoryItem",
    "ModelExtractor",
    "OpenAIEmbedder",
    "Ranking",
    "Recalled",
    "RuleExtractor",
    "Said",
    "Source",
    "Trace",
    "TraceStep",
    "WordLlamaEmbedder",
    "extract_memories",
    "flush_to",
    "litellm_completion",
    "memories_text",
    "open_memory",
    "openai_completion",
    "recall_traces",
    "remember_trace",
    "said_of",
    "trace_of",
    "traces_messages",
    "traces_text",
]

_HOMES = {
    "agent": ("AgentTurn", "AgentWithMemory"),
    "embedders.base": ("CallableEmbedder", "Embedder"),
    "embedders.litellm": ("LiteLLMEmbedder",),
    "embedders.openai": ("OpenAIEmbedder",),
    "embedders.wordllama": ("WordLlamaEmbedder",),
    "extraction": ("ExtractionReport", "ExtractionSettings", "Extractor", "extract_memories"),
    "findings": ("Finding", "Said"),
    "flushing": ("flush_to", "said_of"),
    "item": ("MemoryItem", "Recalled", "Source"),
    "model_extraction": ("ModelExtractor", "litellm_completion", "openai_completion"),
    "opening": ("open_memory",),
    "ranking": ("Ranking",),
    "rendering": ("memories_text",),
    "rules": ("RuleExtractor",),
    "store": ("Memory",),
    "traces": (
        "Trace",
        "TraceStep",
        "recall_traces",
        "remember_trace",
        "trace_of",
        "traces_messages",
        "traces_text",
    ),
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
