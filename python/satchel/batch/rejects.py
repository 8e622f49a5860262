"""What becomes of a conversation that has no window."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel.errors import BudgetError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.batch.options import OnError

__all__ = ["checked", "raise_first"]

_CHOICES: Final = ("reject", "raise")


def checked(on_error: OnError) -> OnError:
    """The value, if it is one of the two.

    Raises:
        InputError: ``invalid_value``.
    """
    if on_error not in _CHOICES:
        message = "on_error must be 'reject' or 'raise'"
        raise InputError(message, code="invalid_value")
    return on_error


def raise_first(source: str, output: Mapping[str, Any], on_error: OnError) -> None:
    """Raises the first reject of an output, if that is wanted.

    Raises:
        InputError: what was wrong, or `BudgetError`.
    """
    first = output["first_reject"]
    if checked(on_error) == "reject" or first is None:
        return
    line, _, code, message = first
    place = source if line is None else f"{source}, line {line}"
    kind = BudgetError if code == "over_budget" else InputError
    said = f"{place}: {message}"
    raise kind(said, code=code)
