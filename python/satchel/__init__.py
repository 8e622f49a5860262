"""Packs the context window of an LLM agent under an exact token budget.

Every public name is loaded when it is first used, so ``import satchel`` costs a few milliseconds
and imports neither the native half nor numpy, pydantic or tiktoken.

Example:
    >>> import satchel
    >>> satchel.counter("gpt-4o").exact
    True
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers know the name; importing typing would cost milliseconds
if TYPE_CHECKING:
    from satchel import arrays, batch, models, replay, sync, telemetry
    from satchel._core import __version__
    from satchel.assembler import Assembler, Budget, Window, WorkingSet
    from satchel.converting import Converted, Loss, convert
    from satchel.counting import Counter, MessageTokens, counter
    from satchel.errors import (
        BudgetError,
        CompactionError,
        EmbeddingError,
        EngineError,
        ExtractionError,
        GuardError,
        InputError,
        PageNotFoundError,
        ReplyError,
        SatchelError,
        StoreError,
        SummaryError,
        UsageError,
    )
    from satchel.linting import Violation, lint
    from satchel.memory.item import MemoryItem
    from satchel.memory.opening import open_memory
    from satchel.memory.store import Memory
    from satchel.overflow import is_overflow_error, overflow_details
    from satchel.paging import page_tool
    from satchel.policy import Policy
    from satchel.reading import ReportedUsage, Transcript, TranscriptWarning, read_transcripts
    from satchel.redaction import Redacted, redact, redact_many
    from satchel.repairing import repair
    from satchel.session import Session, open_session
    from satchel.trimming import Trimmed, trim_text
    from satchel.usage import Calibration, Usage, usage_tokens
    from satchel.windows import (
        TokenBudget,
        allocate_budget,
        prune_tool_outputs,
        score_messages,
        sliding_window,
        token_window,
    )

__all__ = [
    "Assembler",
    "Budget",
    "BudgetError",
    "Calibration",
    "CompactionError",
    "Converted",
    "Counter",
    "EmbeddingError",
    "EngineError",
    "ExtractionError",
    "GuardError",
    "InputError",
    "Loss",
    "Memory",
    "MemoryItem",
    "MessageTokens",
    "PageNotFoundError",
    "Policy",
    "Redacted",
    "ReplyError",
    "ReportedUsage",
    "SatchelError",
    "Session",
    "StoreError",
    "SummaryError",
    "TokenBudget",
    "Transcript",
    "TranscriptWarning",
    "Trimmed",
    "Usage",
    "UsageError",
    "Violation",
    "Window",
    "WorkingSet",
    "__version__",
    "allocate_budget",
    "arrays",
    "batch",
    "convert",
    "counter",
    "is_overflow_error",
    "lint",
    "models",
    "open_memory",
    "open_session",
    "overflow_details",
    "page_tool",
    "prune_tool_outputs",
    "read_transcripts",
    "redact",
    "redact_many",
    "repair",
    "replay",
    "score_messages",
    "sliding_window",
    "sync",
    "telemetry",
    "token_window",
    "trim_text",
    "usage_tokens",
]

# The module each name lives in; a name that is missing here is a public module of its own.
_HOMES = {
    "_core": ("__version__",),
    "assembler": ("Assembler", "Budget", "Window", "WorkingSet"),
    "converting": ("Converted", "Loss", "convert"),
    "counting": ("Counter", "MessageTokens", "counter"),
    "errors": (
        "BudgetError",
        "CompactionError",
        "EmbeddingError",
        "EngineError",
        "ExtractionError",
        "GuardError",
        "InputError",
        "PageNotFoundError",
        "ReplyError",
        "SatchelError",
        "StoreError",
        "SummaryError",
        "UsageError",
    ),
    "linting": ("Violation", "lint"),
    "memory.item": ("MemoryItem",),
    "memory.opening": ("open_memory",),
    "memory.store": ("Memory",),
    "overflow": ("is_overflow_error", "overflow_details"),
    "paging": ("page_tool",),
    "policy": ("Policy",),
    "reading": ("ReportedUsage", "Transcript", "TranscriptWarning", "read_transcripts"),
    "redaction": ("Redacted", "redact", "redact_many"),
    "repairing": ("repair",),
    "session": ("Session", "open_session"),
    "trimming": ("Trimmed", "trim_text"),
    "usage": ("Calibration", "Usage", "usage_tokens"),
    "windows": (
        "TokenBudget",
        "allocate_budget",
        "prune_tool_outputs",
        "score_messages",
        "sliding_window",
        "token_window",
    ),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a visible __getattr__ would make every misspelt name pass the checkers

    def __getattr__(name: str) -> object:
        """Loads a public name on first use (PEP 562) and keeps it."""
        if name not in __all__:
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        from importlib import import_module  # noqa: PLC0415 - only the first use of a name pays

        home = _HOME_OF.get(name)
        value: object = import_module(f"{__name__}.{home or name}")
        if home is not None:
            value = getattr(value, name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
