"""litellm: a trim that fits, and a callback that packs the window of every call.

``trim_messages`` never imports litellm; ``ContextCallback`` is one of litellm's own loggers, so
litellm is imported when that name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.litellm.trimming import trim_messages

if TYPE_CHECKING:
    from satchel.litellm.callback import ContextCallback

__all__ = ["ContextCallback", "trim_messages"]


if not TYPE_CHECKING:  # a visible __getattr__ would make every misspelt name pass the checkers

    def __getattr__(name: str) -> object:
        """Loads the callback, and litellm with it, on first use."""
        if name != "ContextCallback":
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from satchel.litellm.callback import ContextCallback  # noqa: PLC0415 - see the docstring

        globals()[name] = ContextCallback
        return ContextCallback
