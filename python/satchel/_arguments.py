"""What callers pass: checked at the door, named in errors, shown in few characters.

A message about an argument says its name, what was found, and what is accepted. What was found may
be anything: a list in itself, an object whose ``__repr__`` raises, a text of a megabyte. `shown`
takes constant time and runs none of the caller's code.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Mapping
from typing import Final, TypeVar, cast

from satchel.errors import InputError

__all__ = [
    "MOST_WHOLE",
    "UNSET",
    "Unset",
    "fraction",
    "invalid",
    "listed",
    "name_of_type",
    "one_of",
    "optional_text",
    "plain_text",
    "plain_texts",
    "shown",
    "whole_number",
]

_T = TypeVar("_T")

MOST_WHOLE: Final = 2**53
"""The largest number of tokens and of lines, as the core takes them."""


class Unset:
    """Stands for an argument that was not given, where None means none."""


UNSET: Final = Unset()

_MOST_CHARS: Final = 60
_MOST_BITS: Final = 200


def shown(value: object) -> str:
    """``value`` for a sentence: short values as they are, of others the type."""
    if value is None or isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        bits = int.bit_length(value)
        return int.__repr__(value) if bits <= _MOST_BITS else f"an int of {bits} bits"
    if isinstance(value, float):
        return float.__repr__(value)
    if isinstance(value, str):
        start = str.__repr__(str.__getitem__(value, slice(_MOST_CHARS)))
        return start if str.__len__(value) <= _MOST_CHARS else f"{start}..."
    return f"of type {name_of_type(value)}"


def name_of_type(value: object) -> str:
    """The name of its class."""
    return type(value).__name__


def invalid(message: str) -> InputError:
    """An error about the value of an argument."""
    return InputError(message, code="invalid_value")


def plain_text(name: str, value: object) -> str:
    """A str that has a UTF-8 form: a name, a pointer, a pattern.

    Raises:
        InputError: ``invalid_value``.
    """
    if not isinstance(value, str):
        message = f"{name} must be a str, not {name_of_type(value)}"
        raise invalid(message)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        message = f"{name} must not hold lone surrogates, got {shown(value)}"
        raise invalid(message) from error
    return value


def optional_text(name: str, value: object) -> str | None:
    """A str or None; errors as in `plain_text`."""
    return None if value is None else plain_text(name, value)


def one_of(name: str, value: object, choices: Iterable[str]) -> str:
    """One of a few names.

    Raises:
        InputError: ``invalid_value``.
    """
    known = tuple(choices)
    if isinstance(value, str) and value in known:
        return value
    *most, last = map(repr, known)
    message = f"{name} is {shown(value)}, must be {', '.join(most)} or {last}"
    raise invalid(message)


def whole_number(name: str, value: object, *, least: int = 0, most: int | None = None) -> int:
    """A whole number; without ``most``, what exceeds every list and window is the largest.

    Raises:
        InputError: ``invalid_value``, with value and limit where the number is out of range.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(cast("int", value))
    except TypeError:
        number = None
    if number is None:
        message = f"{name} must be an int, not {name_of_type(value)}"
        raise invalid(message)
    if number < least:
        message = f"{name} is {shown(number)}, must be at least {least}"
        raise InputError(message, code="invalid_value", value=number, limit=least)
    if most is not None and number > most:
        message = f"{name} is {shown(number)}, must be from {least} to {most}"
        raise InputError(message, code="invalid_value", value=number, limit=most)
    return min(number, sys.maxsize)


def fraction(name: str, value: object) -> float:
    """A number as a float.

    Raises:
        InputError: ``invalid_value`` for anything else, and for what no float can hold.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    message = f"{name} must be a number, got {shown(value)}"
    raise invalid(message)


def listed(name: str, value: Iterable[_T], *, of: str = "messages") -> list[_T]:
    """The items of an iterable; a list is taken as it is. What the iterable raises comes out.

    Raises:
        InputError: ``invalid_value`` for what is no iterable, and for a str, bytes or mapping,
            which are iterable too and never what is meant.
    """
    if isinstance(value, list):
        return value
    given: object = value
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        message = f"{name} must be a list of {of}, not {name_of_type(value)}"
        raise invalid(message)
    return list(value)


def plain_texts(name: str, value: object) -> list[str]:
    """Strings; one string alone is a mistake, not its characters.

    Raises:
        InputError: ``invalid_value``.
    """
    given = listed(name, cast("Iterable[object]", value), of="str")
    found = [one for one in given if isinstance(one, str)]
    if len(found) < len(given):
        wrong = next(one for one in given if not isinstance(one, str))
        message = f"{name} must be a list of str, one is {shown(wrong)}"
        raise invalid(message)
    return found
