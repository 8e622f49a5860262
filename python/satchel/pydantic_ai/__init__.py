"""A bridge to pydantic-ai: each request gets a window that fits.

`ContextCapability` is a capability for ``Agent(capabilities=[...])``; `history_processor` makes a
function for ``ProcessHistory``. Needs the extra ``pydantic-ai``.
"""

try:
    import pydantic_ai as _peer
except ImportError as error:
    _message = (
        "satchel.pydantic_ai needs pydantic-ai-slim: install satchel with the extra pydantic-ai"
    )
    raise ImportError(_message, name="pydantic_ai") from error

from satchel.pydantic_ai.capability import ContextCapability
from satchel.pydantic_ai.processing import history_processor

del _peer

__all__ = ["ContextCapability", "history_processor"]
