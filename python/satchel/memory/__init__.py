"""Long-term memory: what is kept across sessions, and found again by what it means.

Every name is loaded when it is first used, so nothing optional is imported before it is needed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from satchel.memory.embedders.base import CallableEmbedder, Embedder
    from satchel.memory.embedders.wordllama import WordLlamaEmbedder
    from satchel.memory.item import MemoryItem, Recalled, Source
    from satchel.memory.opening import open_memory
    from satchel.memory.ranking import Ranking
    from satchel.memory.store import Memory

__all__ = [
    "CallableEmbedder",
    "Embedder",
    "Memory",
    "MemoryItem",
    "Ranking",
    "Recalled",
    "Source",
    "WordLlamaEmbedder",
    "open_memory",
]

_HOMES = {
    "embedders.base": ("CallableEmbedder", "Embedder"),
    "embedders.wordllama": ("WordLlamaEmbedder",),
    "item": ("MemoryItem", "Recalled", "Source"),
    "opening": ("open_memory",),
    "ranking": ("Ranking",),
    "store": ("Memory",),
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
