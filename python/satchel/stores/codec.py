"""Messages as bytes and back: canonical JSON, and what JSON has no word for.

Bytes inside a message (an image for Bedrock, say) become an object with the one key ``$bytes``. An
object of the caller's with one key that begins with ``$`` gets one ``$`` more, so nothing that
comes in can be mistaken for it. Objects of a client become what they would send.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
from collections.abc import Mapping
from typing import Any, Final, cast

import pydantic_core

from satchel import _core
from satchel.errors import InputError, StoreError

__all__ = ["decode", "decode_joined", "encode", "plain"]

_BYTES: Final = "$bytes"

_ESCAPED: Final = b'{"$'
"""How an object that means something else begins; within a string there is a backslash."""


def encode(value: object) -> bytes:
    """The value as UTF-8; lone surrogates pass through.

    Raises:
        InputError: ``invalid_message`` for what cannot be written, ``too_deep`` for what contains
            itself or is nested too deeply.
    """
    try:
        text = _encoder().encode(value)
        if "$" in text:
            # Rare, so the usual value is walked once, by the native encoder.
            text = _encoder().encode(_escaped(value))
    except RecursionError as error:
        message = "the value is nested too deeply to be stored"
        raise InputError(message, code="too_deep") from error
    except (TypeError, ValueError) as error:
        is_cycle = isinstance(error, ValueError) and "Circular" in str(error)
        message = "the value contains itself" if is_cycle else "the value cannot be written as JSON"
        raise InputError(message, code="too_deep" if is_cycle else "invalid_message") from error
    return text.encode("utf-8", "surrogatepass")


@functools.cache
def _encoder() -> json.JSONEncoder:
    return json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_written)


def decode(payload: bytes) -> Any:  # noqa: ANN401 - whatever was encoded
    """The value behind bytes that `encode` wrote.

    Raises:
        StoreError: ``corrupt_entry`` for anything else.
    """
    if not isinstance(cast("object", payload), bytes | bytearray):
        message = "an entry is no bytes: it is damaged"
        raise StoreError(message, code="corrupt_entry")
    if _ESCAPED not in payload:
        # Five times as quick, but knows no lone surrogates and fewer levels of nesting.
        try:
            return pydantic_core.from_json(payload)
        except ValueError:
            pass
    try:
        text = payload.decode("utf-8", "surrogatepass")
        if _ESCAPED in payload:
            return json.loads(text, object_hook=_unescaped)
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        message = f"an entry of {len(payload)} bytes cannot be read"
        raise StoreError(message, code="corrupt_entry") from error


def decode_joined(joined: bytes, count: int) -> list[Any] | None:
    """The values of ``count`` payloads that stand in one run, with commas between them.

    Returns:
        None if one of them needs `decode`, or cannot be read at all.
    """
    found = _core.json_values(joined)
    return found if found is not None and len(found) == count else None


def plain(value: object) -> Any:  # noqa: ANN401 - the same value in plain types
    """The value in dicts, lists and scalars, as it comes back from a store.

    Raises:
        InputError: as `encode`.
    """
    return decode(encode(value))


def _written(value: object) -> Any:  # noqa: ANN401 - whatever JSON can say
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {_BYTES: base64.b64encode(bytes(cast("bytes", value))).decode()}
    if isinstance(value, Mapping):
        return dict(cast("Any", value))
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        # What was set is what was said; the aliases are the provider's own names.
        return dump(mode="python", exclude_unset=True, by_alias=True)
    to_dict = getattr(value, "to_dict", None)
    if callable(to_dict):
        return to_dict()
    if isinstance(value, (set, frozenset)):
        return sorted(cast("set[Any]", value))
    message = f"{type(value).__name__} cannot be written"
    raise TypeError(message)


def _escaped(value: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, (list, tuple)):
        return [_escaped(item) for item in cast("list[Any]", value)]
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _written(cast("object", value))
    if not isinstance(value, dict):
        return _escaped(_written(value))
    given = cast("Mapping[Any, Any]", value)
    items: dict[Any, Any] = {key: _escaped(item) for key, item in given.items()}
    if len(items) == 1:
        [(key, item)] = items.items()
        if isinstance(key, str) and key.startswith("$"):
            return {f"${key}": item}
    return items


def _unescaped(items: dict[str, Any]) -> Any:  # noqa: ANN401 - any value
    if len(items) != 1:
        return items
    [(key, item)] = items.items()
    if key == _BYTES and isinstance(item, str):
        try:
            return base64.b64decode(item, validate=True)
        except binascii.Error as error:
            raise ValueError from error
    if key.startswith("$$"):
        return {key[1:]: item}
    return items
