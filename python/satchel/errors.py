"""Every exception that satchel raises.

One tree with stable codes. Each class also derives from the built-in exception that fits, so
``except ValueError`` keeps working. Messages name the place, the value and the limit; they never
contain the text of a conversation.
"""

from __future__ import annotations

from typing import Any

__all__ = [
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
]


class SatchelError(Exception):
    """Base of all errors of this package.

    Attributes:
        code: stable ``snake_case`` name of the kind.
        index: raw index of the message at fault, or None.
        value: the number that was found, where the error is about a limit, else None.
        limit: the limit that was met, else None.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        index: int | None = None,
        value: int | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.index = index
        self.value = value
        self.limit = limit

    def __reduce__(self) -> tuple[object, ...]:
        context = {
            "code": self.code,
            "index": self.index,
            "value": self.value,
            "limit": self.limit,
        }
        return (_rebuild, (type(self), str(self), context))


class InputError(SatchelError, ValueError):
    """The messages, an option or an event are at fault."""


class BudgetError(SatchelError, ValueError):
    """What must stay in the window does not fit the budget."""


class CompactionError(SatchelError, RuntimeError):
    """A compaction could not be done. The history is as it was.

    Code ``nothing_to_compact``, or ``summary_failed`` if no summarizer gave a usable summary.
    """


class GuardError(SatchelError, RuntimeError):
    """An agent ran into one of its limits.

    Code ``step_limit``, or ``repeated_call`` for one call with one result again and again.
    """


class StoreError(SatchelError):
    """A session or memory store failed."""


class EmbeddingError(SatchelError, RuntimeError):
    """An embedder gave no usable vectors. Nothing was written.

    Code ``embedding_unavailable`` (trying again may help) or ``embedding_failed``.
    """


class EngineError(SatchelError, RuntimeError):
    """An engine that works beyond this process failed. What is written so far stays.

    Code ``engine_failed``; the cause is the engine's own error.
    """


class ExtractionError(SatchelError, RuntimeError):
    """An extractor gave nothing usable. Nothing was written.

    Code ``extraction_unavailable`` (trying again may help) or ``extraction_failed``.
    """


class SummaryError(SatchelError, RuntimeError):
    """A summarizer gave no usable summary.

    Code ``summary_unavailable`` (trying again may help), ``summary_timeout``, ``summary_refused``,
    ``summary_empty``, ``summary_not_smaller``, ``summary_cut``, ``summary_malformed`` (something
    else than notes) or ``summary_failed``.
    """


class ReplyError(SatchelError, RuntimeError):
    """A model gave no reply that can stand in a history. Nothing was recorded.

    Code ``reply_broken_off`` (its stream ended before it did), ``reply_empty``, ``reply_refused``,
    ``reply_cut`` (it ran into its limit in the middle of a call, or before it said anything) or
    ``reply_failed``.
    """


class PageNotFoundError(SatchelError, LookupError):
    """No page has this pointer.

    Code ``page_not_found``, or ``forgotten`` after an explicit act.
    """


class UsageError(SatchelError, RuntimeError):
    """An object was used in a way it does not allow, such as from two threads at once."""


def _rebuild(cls: type[SatchelError], message: str, context: dict[str, Any]) -> SatchelError:
    return cls(message, **context)
