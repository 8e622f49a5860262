"""What the bodies of the store cases are made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from satchel.errors import SatchelError
from satchel.stores.base import Entry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterable

    from satchel.stores.base import SessionStore

__all__ = ["Body", "Stage", "case", "entries", "equal", "payloads", "refused", "true"]


class Stage(Protocol):
    """What a case works with."""

    @property
    def capabilities(self) -> Collection[str]:
        """What the store says it can do."""
        ...

    def store(self) -> SessionStore:
        """A new store over the sessions of this case."""
        ...

    def id(self, text: str = "") -> str:
        """An id of this case."""
        ...

    async def wait(self, seconds: float) -> None:
        """Lets time go by."""
        ...


@dataclass(frozen=True, slots=True)
class Body:
    """A case without its store.

    Attributes:
        needs: capabilities that a store must have for it.
        run: raises ``AssertionError``, or returns.
    """

    needs: frozenset[str]
    run: Callable[[Stage], Awaitable[None]]


def case(*needs: str) -> Callable[[Callable[[Stage], Awaitable[None]]], Body]:
    """Makes a case of a function."""

    def make(run: Callable[[Stage], Awaitable[None]]) -> Body:
        return Body(frozenset(needs), run)

    return make


def true(fact: object, message: str) -> None:
    """Says what is wrong, if it is."""
    if not fact:
        raise AssertionError(message)


def equal(found: object, wanted: object, what: str) -> None:
    """Two values that should be one."""
    if found != wanted:
        message = f"{what}: found {_short(found)}, should be {_short(wanted)}"
        raise AssertionError(message)


async def refused(work: Awaitable[object], *codes: str) -> SatchelError:
    """The error of what must be refused, with one of these codes."""
    try:
        await work
    except SatchelError as error:
        if error.code in codes:
            return error
        message = f"refused with {error.code}, should be {' or '.join(codes)}"
        raise AssertionError(message) from error
    message = f"not refused, should be with {' or '.join(codes)}"
    raise AssertionError(message)


def entries(*texts: str | bytes, keys: Iterable[str | None] = ()) -> list[Entry]:
    """Messages with these payloads."""
    found = list(keys) + [None] * len(texts)
    return [
        Entry("message", text if isinstance(text, bytes) else text.encode(), key)
        for text, key in zip(texts, found, strict=False)
    ]


async def payloads(store: SessionStore, session_id: str) -> list[str]:
    """The payloads of a session, as text."""
    return [entry.payload.decode() for entry in await store.read(session_id)]


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 200 else f"{text[:100]} ... {text[-100:]} ({len(text)} characters)"  # noqa: PLR2004 - for reading
