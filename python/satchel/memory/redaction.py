"""What runs before anything is written for good: it masks secrets and personal numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from satchel._arguments import invalid, name_of_type
from satchel.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable

    from satchel.memory.item import MemoryItem

__all__ = ["Redactor", "redacted", "redactor_of"]

Redactor = Callable[[str], Any]
"""A function text -> text, or -> an object with ``text``, as `satchel.redact` gives."""


def redactor_of(given: object) -> Redactor | None:
    """The redactor that a caller means: ``...`` for `satchel.redact`, None for none.

    Raises:
        InputError: ``invalid_value`` for what cannot be called.
    """
    if given is ...:
        return redact
    if given is not None and not callable(given):
        message = f"redactor must be a callable, None or ..., not {name_of_type(given)}"
        raise invalid(message)
    return cast("Redactor | None", given)


def redacted(item: MemoryItem, redactor: Redactor | None) -> MemoryItem:
    """The item without what the redactor finds in its text and metadata."""
    if redactor is None:
        return item
    return replace(item, text=_text(redactor, item.text), metadata=_value(redactor, item.metadata))


def _text(redactor: Redactor, text: str) -> str:
    found: Any = redactor(text)
    found = getattr(found, "text", found)
    if not isinstance(found, str):
        message = f"a redactor must give a text, not {name_of_type(found)}"
        raise invalid(message)
    return found


def _value(redactor: Redactor, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return _text(redactor, value)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[str, Any]", value)
        return {_text(redactor, name): _value(redactor, one) for name, one in pairs.items()}
    if isinstance(value, list):
        return [_value(redactor, one) for one in cast("Iterable[Any]", value)]
    return value
