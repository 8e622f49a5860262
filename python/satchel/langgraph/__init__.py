"""Satchel in graphs of LangGraph: a node that summarises, a store, and messages outside the state.

`SummaryNode` is a node or a ``pre_model_hook``; `MemoryStore` is LangGraph's ``BaseStore`` over the
backends of satchel's memory; `open_memory` is satchel's memory over any ``BaseStore``;
`SessionMessages` keeps a thread's messages in a satchel session, so that its checkpoints hold an id
and a version. ``langgraph`` (the extra ``langgraph``) is imported when a name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from satchel.langgraph.backing import StoreMemories, open_memory
    from satchel.langgraph.session_messages import SessionMessages, SessionRef
    from satchel.langgraph.store import MemoryStore
    from satchel.langgraph.summary_node import RunningSummary, SummaryNode

__all__ = [
    "MemoryStore",
    "RunningSummary",
    "SessionMessages",
    "SessionRef",
    "StoreMemories",
    "SummaryNode",
    "open_memory",
]

_HOMES = {
    "MemoryStore": "store",
    "RunningSummary": "summary_node",
    "SessionMessages": "session_messages",
    "SessionRef": "session_messages",
    "StoreMemories": "backing",
    "SummaryNode": "summary_node",
    "open_memory": "backing",
}

if not TYPE_CHECKING:  # a visible __getattr__ would make every misspelt name pass the checkers

    def __getattr__(name: str) -> object:
        """Loads a name on first use (PEP 562).

        Raises:
            ImportError: ``langgraph`` is not installed; the message names the extra.
        """
        if name not in _HOMES:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from importlib import import_module  # noqa: PLC0415 - only the first use of a name pays

        try:
            value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("satchel"):
                raise
            message = f"{error.name} is not installed: install satchel with the extra 'langgraph'"
            raise ImportError(message) from error
        globals()[name] = value
        return value
