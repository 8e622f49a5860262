"""What a memory holds: items with their provenance, and what recall gives back."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast, get_args

from satchel._arguments import fraction, invalid, name_of_type, one_of, plain_text, whole_number
from satchel.stores.base import check_id
from satchel.stores.codec import plain

if TYPE_CHECKING:
    from satchel.memory.namespaces import Namespace

__all__ = ["KINDS", "STATUSES", "Kind", "MemoryItem", "Recalled", "Source", "Status", "draft_of"]

Kind = Literal["episodic", "semantic", "procedural"]
Status = Literal["fact", "claim"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
STATUSES: Final[tuple[Status, ...]] = get_args(Status)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where an item comes from.

    Attributes:
        session_id: the session; None for none.
        message: raw index of the message in it; None for none.
        speaker: who said it: a role or a name; None if that is unknown.
        origin: who made the item, such as ``rules`` or a model's name; None for the application.
    """

    session_id: str | None = None
    message: int | None = None
    speaker: str | None = None
    origin: str | None = None

    def __post_init__(self) -> None:
        if self.session_id is not None:
            check_id("source session_id", self.session_id)
        if self.message is not None:
            whole_number("source message", self.message)
        for name in ("speaker", "origin"):
            value = getattr(self, name)
            if value is not None:
                plain_text(f"source {name}", value)

    @property
    def label(self) -> str:
        """In a few words, for a fence."""
        known = (
            (self.speaker, "{}"),
            (self.session_id, "session {}"),
            (self.message, "message {}"),
            (self.origin, "by {}"),
        )
        return ", ".join(form.format(value) for value, form in known if value is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryItem:
    """One thing to be remembered.

    Attributes:
        text: what it says.
        kind: ``episodic`` (what happened), ``semantic`` (what is so) or ``procedural`` (how to do
            something).
        status: a ``fact``, or a ``claim`` that nothing has confirmed: claims stay out of recall
            unless they are asked for.
        confidence: how sure it is, 0 to 1.
        key: what it is the value of: a newer fact under the same key of a namespace supersedes
            this one. None for an item that stands alone.
        time: when it was said or became so, in seconds since 1970; None for when it is written.
        expires_at: when it goes, likewise; None for never.
        source: where it comes from.
        user_id: whom it is about; None for nobody.
        metadata: what the application keeps with it; any JSON object.
        id: its id; empty before it has one.
        namespace: where it is; empty before it is written.
        created_at: when it was written, in seconds since 1970.
        superseded_by: id of the item that took its place; None while it holds.
        superseded_at: when that was; None likewise.
    """

    text: str
    kind: Kind = "episodic"
    status: Status = "fact"
    confidence: float = 1.0
    key: str | None = None
    time: float | None = None
    expires_at: float | None = None
    source: Source = Source()
    user_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    id: str = ""
    namespace: Namespace = ()
    created_at: float = 0.0
    superseded_by: str | None = None
    superseded_at: float | None = None

    def __post_init__(self) -> None:
        plain_text("text", self.text)
        one_of("kind", self.kind, KINDS)
        one_of("status", self.status, STATUSES)
        if not 0.0 <= fraction("confidence", self.confidence) <= 1.0:
            message = f"confidence is {self.confidence}, must be from 0 to 1"
            raise invalid(message)
        for name in ("key", "user_id"):
            value = getattr(self, name)
            if value is not None:
                check_id(name, value)
        for name in ("time", "expires_at"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(fraction(name, value)):
                message = f"{name} is {value}, must be finite"
                raise invalid(message)
        if not isinstance(cast("object", self.source), Source):
            message = f"source must be a Source, not {name_of_type(self.source)}"
            raise invalid(message)
        if not isinstance(cast("object", self.metadata), Mapping):
            message = f"metadata must be a mapping, not {name_of_type(self.metadata)}"
            raise invalid(message)

    @property
    def is_current(self) -> bool:
        """Whether nothing newer has taken its place."""
        return self.superseded_by is None

    def holds_at(self, moment: float) -> bool:
        """Whether it is current and not expired at a moment, in seconds since 1970."""
        return self.is_current and (self.expires_at is None or self.expires_at > moment)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """An item that was recalled.

    Attributes:
        item: the item.
        score: how well it fits; comparable within one recall only.
        lexical: the part of the score that its words earn, 0 to 1.
        dense: the part that its meaning earns, 0 to 1.
        tokens: tokens of its text, by the counter of the recall; 0 if none was asked for.
    """

    item: MemoryItem
    score: float
    lexical: float
    dense: float
    tokens: int = 0

    @property
    def id(self) -> str:
        """Id of the item."""
        return self.item.id

    @property
    def text(self) -> str:
        """Text of the item."""
        return self.item.text


_OWN: Final = frozenset({"namespace", "created_at", "superseded_by", "superseded_at"})
_GIVEN: Final = tuple(one.name for one in fields(MemoryItem) if one.name not in _OWN)
_SOURCE: Final = tuple(one.name for one in fields(Source))


def draft_of(given: object) -> MemoryItem:
    """An item from what a caller gives: an item, a text, or a mapping with an item's fields.

    A mapping may hold the fields of `Source` too, beside ``source``.

    Raises:
        InputError: ``invalid_value``.
    """
    if isinstance(given, MemoryItem):
        return replace(given, metadata=plain(given.metadata))
    if isinstance(given, str):
        return MemoryItem(text=given)
    if not isinstance(given, Mapping):
        message = f"an item must be a str, a mapping or a MemoryItem, not {name_of_type(given)}"
        raise invalid(message)
    values = dict(cast("Mapping[str, Any]", given))
    unknown = [str(name) for name in values if name not in (*_GIVEN, *_SOURCE)]
    if unknown or "text" not in values:
        what = f"has no field {unknown[0][:32]!r}" if unknown else "needs a text"
        message = f"an item {what}; its fields are {', '.join((*_GIVEN, *_SOURCE))}"
        raise invalid(message)
    source: Any = values.pop("source", None)
    inside: dict[str, Any] = {name: values.pop(name) for name in _SOURCE if name in values}
    if isinstance(source, Mapping):
        pairs = cast("Mapping[str, Any]", source)
        wrong = [str(name) for name in pairs if name not in _SOURCE]
        if wrong:
            message = f"a source has no field {wrong[0][:32]!r}; it has {', '.join(_SOURCE)}"
            raise invalid(message)
        inside = {**pairs, **inside}
    elif source is not None:
        if not isinstance(source, Source):
            message = f"source must be a Source or a mapping, not {name_of_type(source)}"
            raise invalid(message)
        inside = {**{name: getattr(source, name) for name in _SOURCE}, **inside}
    item = MemoryItem(**values, source=Source(**inside))
    return replace(item, metadata=plain(item.metadata))
