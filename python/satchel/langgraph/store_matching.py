"""Which items a filter takes and which namespaces a condition, by LangGraph's rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from satchel._arguments import invalid, name_of_type, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from langgraph.store.base import MatchCondition

__all__ = ["matches", "passes"]

_COMPARED: Final[dict[str, Callable[[float, float], bool]]] = {
    "$gt": lambda value, limit: value > limit,
    "$gte": lambda value, limit: value >= limit,
    "$lt": lambda value, limit: value < limit,
    "$lte": lambda value, limit: value <= limit,
}


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a value meets every condition of a filter.

    A condition is a value to be equal to, or an object of operators, of which all must hold. What
    is compared by size must be numbers; a field that is missing or something else is not greater
    or less than any.

    Raises:
        InputError: ``invalid_value`` for an unknown operator, or a limit that is no number.
    """
    return all(_equals(value.get(name), condition) for name, condition in (wanted or {}).items())


def matches(condition: MatchCondition, namespace: Sequence[str]) -> bool:
    """Whether a namespace begins (or ends) with a path; ``*`` stands for any one label.

    Raises:
        InputError: ``invalid_value`` for another kind of condition.
    """
    path = condition.path
    kind: object = condition.match_type
    if kind not in ("prefix", "suffix"):
        message = f"a condition must be a prefix or a suffix, not {shown(str(kind))}"
        raise invalid(message)
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if kind == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _equals(value: object, wanted: object) -> bool:
    if isinstance(wanted, dict):
        conditions = cast("dict[str, object]", wanted)
        if any(str(name).startswith("$") for name in conditions):
            return all(_holds(value, name, limit) for name, limit in conditions.items())
        if not isinstance(value, dict):
            return False
        fields = cast("dict[str, object]", value)
        return all(_equals(fields.get(name), one) for name, one in conditions.items())
    if isinstance(wanted, (list, tuple)):
        items = cast("Sequence[object]", wanted)
        if not isinstance(value, (list, tuple)):
            return False
        held = cast("Sequence[object]", value)
        return len(held) == len(items) and all(map(_equals, held, items))
    return value == wanted


def _holds(value: object, operator: str, limit: object) -> bool:
    if operator == "$eq":
        return value == limit
    if operator == "$ne":
        return value != limit
    compared = _COMPARED.get(operator)
    if compared is None:
        message = f"no operator {shown(operator)}; there are $eq $ne $gt $gte $lt $lte"
        raise invalid(message)
    bound = _number(limit)
    if bound is None:
        message = f"{operator} needs a number, not {name_of_type(limit)}"
        raise invalid(message)
    number = _number(value)
    return number is not None and compared(number, bound)


def _number(value: object) -> float | None:
    if not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
