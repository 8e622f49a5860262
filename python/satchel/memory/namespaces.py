"""Namespaces: tuples of segments that isolate tenants, compared segment by segment.

A namespace reads everything in itself and below it, and nothing beside it: ``("acme",)`` sees
``("acme", "ada")`` and never ``("acme-corp",)``. Backends keep a namespace as bytes in which every
segment has its own end, so that what lies below one is exactly what begins with its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast

from satchel._arguments import invalid, name_of_type
from satchel.stores.base import check_id

__all__ = ["Namespace", "checked_namespace", "is_within", "path_end", "path_of", "paths_above"]

Namespace = tuple[str, ...]

_MOST_SEGMENTS: Final = 32
_END: Final = b"\x00\x01"
_ZERO: Final = b"\x00\xff"


def checked_namespace(value: object) -> Namespace:
    """The namespace, if it is one: 1 to 32 segments, each any text that is not empty.

    Raises:
        InputError: ``invalid_value``; a str alone is refused, for it would be split into letters.
    """
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        message = f"a namespace must be a tuple of str, not {name_of_type(value)}"
        raise invalid(message)
    segments = tuple(cast("Iterable[object]", value))
    if not 1 <= len(segments) <= _MOST_SEGMENTS:
        message = f"a namespace has 1 to {_MOST_SEGMENTS} segments, not {len(segments)}"
        raise invalid(message)
    return tuple(check_id("a segment of a namespace", one) for one in segments)


def is_within(namespace: Namespace, scope: Namespace) -> bool:
    """Whether ``namespace`` is ``scope`` or lies below it."""
    return namespace[: len(scope)] == scope


def path_of(namespace: Namespace) -> bytes:
    """The namespace as bytes: what lies within it begins with them, and nothing else does."""
    return b"".join(one.encode().replace(b"\x00", _ZERO) + _END for one in namespace)


def paths_above(path: bytes) -> list[bytes]:
    """The path itself and that of every namespace above it."""
    found: list[bytes] = []
    end = path.find(_END)
    while end >= 0:
        found.append(path[: end + len(_END)])
        end = path.find(_END, end + len(_END))
    return found


def path_end(path: bytes) -> bytes:
    """The first bytes behind everything that begins with ``path``."""
    return path[:-1] + bytes((path[-1] + 1,))
