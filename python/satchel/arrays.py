"""The windows and scores of many conversations at once, on plain numpy columns.

A column has a value for each message of all conversations, one after the other. ``offsets`` says
where each conversation begins, as in an Arrow list: one more value than there are conversations.
Without it there is one. Work is native, one pass over the columns, with the interpreter released.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypeVar, cast

import numpy as np

from satchel import _core
from satchel._arguments import fraction, invalid, name_of_type, shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

__all__ = ["ROLES", "SIGNALS", "score", "token_window"]

ROLES: Final[tuple[str, ...]] = tuple(_core.role_names)
"""Names of the roles; a column of roles holds positions here."""

SIGNALS: Final[Mapping[str, int]] = {name: 1 << at for at, name in enumerate(_core.signal_names)}
"""Bits of the signals by name; a column of signals holds their sums."""

_WITH_TEXTS: Final = ("references", "query")

_Number = TypeVar("_Number", bound="np.generic")

Column: TypeAlias = "NDArray[np.generic] | Sequence[int] | Sequence[bool]"
"""Whole numbers or booleans: a numpy array of one dimension, or a sequence."""


def token_window(
    tokens: Column,
    protected: Column,
    max_tokens: int | Column,
    *,
    offsets: Column | None = None,
) -> NDArray[np.int64]:
    """The messages in the window of each conversation.

    A window holds all protected messages, even where they alone exceed the limit, and fills what
    they leave from the newest message back, up to the first that does not fit; nothing older is
    tried. With the system messages protected that is `satchel.token_window` for messages without
    calls.

    Args:
        tokens: tokens of each message, shape ``(n,)``, 0 to 2**32 - 1.
        protected: whether it stays in any case, shape ``(n,)``, bool.
        max_tokens: tokens of a window, one for all conversations or one for each, shape ``(m,)``.
        offsets: where each conversation begins and the last ends, shape ``(m + 1,)``, rising, 0 to
            ``n``; messages outside belong to none. None: all are one conversation.

    Returns:
        Indices into the columns, int64, rising; ``numpy.searchsorted(indices, offsets)`` are the
        offsets of the windows in them.

    Raises:
        InputError: ``invalid_value`` for columns of different length, of another shape or type or
            out of range.

    Example:
        >>> from satchel import arrays
        >>> arrays.token_window(
        ...     [2, 5, 3, 4, 4], [True, False, False, False, False], 6, offsets=[0, 3, 5]
        ... ).tolist()
        [0, 2, 4]
    """
    counts = _column("tokens", tokens, np.uint32)
    limits = _column("max_tokens", [max_tokens] if _is_one(max_tokens) else max_tokens, np.uint64)
    flags = _flags("protected", protected)
    return _core.column_windows(counts, flags, limits, _offsets(offsets, len(counts)))


def score(
    roles: Column,
    tokens: Column,
    signals: Column,
    *,
    weights: Literal["keywords"] | Mapping[str, float] | None,
    offsets: Column | None = None,
) -> NDArray[np.float32]:
    """How much each message matters for the next call of its conversation.

    The formulas of `satchel.score_messages` without what only texts tell: ``references`` and
    ``query`` are 0, and a message is ``brief`` if it has fewer than 10 tokens and no signal.

    Args:
        roles: positions in `ROLES`, shape ``(n,)``.
        tokens: tokens of each message, shape ``(n,)``, 0 to 2**32 - 1.
        signals: sums of `SIGNALS`, shape ``(n,)``.
        weights: None for the default ones, ``"keywords"``, or weights that replace default ones by
            name: ``recency``, ``role``, ``decision``, ``constraint``, ``error``, ``code``,
            ``brief``.
        offsets: as in `token_window`; messages of no conversation score 0.

    Returns:
        Scores of shape ``(n,)``, float32, 0 to 1.

    Raises:
        InputError: ``invalid_value`` for columns of different length, of another shape or type or
            out of range, for an unknown weight and for one that is not finite.

    Example:
        >>> from satchel import arrays
        >>> arrays.score([0, 2], [40, 3], [0, arrays.SIGNALS["code"]], weights=None).tolist()
        [0.375, 0.5]
    """
    own = _column("roles", roles, np.uint8)
    return _core.column_scores(
        own,
        _column("tokens", tokens, np.uint32),
        _column("signals", signals, np.uint8),
        _offsets(offsets, len(own)),
        weights=_weights(weights),
    )


def _weights(weights: object) -> list[tuple[str, float]] | None:
    """The weights that replace default ones; None for the keyword formula."""
    if weights is None:
        return []
    if isinstance(weights, str) and weights == "keywords":
        return None
    if not isinstance(weights, Mapping):
        message = f"weights is {shown(weights)}, must be None, 'keywords' or a mapping"
        raise invalid(message)
    named: list[tuple[str, float]] = []
    for name, value in cast("Mapping[object, object]", weights).items():
        if not isinstance(name, str) or name in _WITH_TEXTS:
            message = f"weights names {shown(name)}, which no column holds"
            raise invalid(message)
        named.append((name, fraction(f"weights[{name!r}]", value)))
    return named


def _is_one(value: object) -> bool:
    return isinstance(value, int | np.integer) or (isinstance(value, np.ndarray) and not value.ndim)


def _offsets(offsets: object, length: int) -> NDArray[np.int64]:
    return _column("offsets", [0, length] if offsets is None else offsets, np.int64)


def _flags(name: str, value: object) -> NDArray[np.bool_]:
    found = _array(name, value)
    if found.dtype.kind != "b" and found.size:
        message = f"{name} must hold bool, not {found.dtype}"
        raise invalid(message)
    return np.ascontiguousarray(found, dtype=np.bool_)


def _column(name: str, value: object, kind: type[_Number]) -> NDArray[_Number]:
    """Whole numbers in the range of ``kind``, contiguous."""
    found = _array(name, value)
    if found.dtype.kind not in "ui" and found.size:
        message = f"{name} must hold whole numbers, not {found.dtype}"
        raise invalid(message)
    limits = np.iinfo(cast("type[np.integer]", kind))
    # Compared as Python's own numbers: numpy would mix signed and unsigned through floats.
    if found.size and not (limits.min <= int(found.min()) <= int(found.max()) <= limits.max):
        message = f"{name} holds numbers beyond {limits.min} to {limits.max}"
        raise invalid(message)
    return np.ascontiguousarray(found, dtype=kind)


def _array(name: str, value: object) -> NDArray[np.generic]:
    try:
        found: NDArray[np.generic] = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        message = f"{name} must be a column of numbers, not {name_of_type(value)}"
        raise invalid(message) from error
    if found.ndim != 1:
        message = f"{name} must have one dimension, not {found.ndim}"
        raise invalid(message)
    return found
