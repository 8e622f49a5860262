"""The events of a log as they come from a caller: copied, cut by dialect, and what settings say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from satchel import models
from satchel.counting import counter as counter_of
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from satchel.counting import Counter

__all__ = [
    "FIXED",
    "binds_reasoning",
    "by_dialect",
    "differing",
    "fixed_tokens",
    "plain_event",
    "with_figures_of_model",
]

FIXED: Final = ("system_tokens", "tools_tokens")
"""Settings that follow from what a request carries beside its messages."""


def binds_reasoning(model: str) -> bool:
    """Whether the model's reasoning is bound to what stands before it."""
    try:
        return models.get(model).prefix_bound
    except InputError:  # the log names a model that is registered elsewhere
        return False


def fixed_tokens(counter: Counter, system: object, tools: object, dialect: str) -> dict[str, int]:
    """What system and tools take, as settings say it."""
    if system is None and tools is None:
        return dict.fromkeys(FIXED, 0)
    counted = counter.count_messages([], system=system, tools=tools, dialect=dialect)
    return {"system_tokens": counted.system, "tools_tokens": counted.tools}


def with_figures_of_model(event: dict[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of another model with what goes with it: its counter, its limit, its prices.

    Args:
        event: the ``settings`` event; what it says itself stays.
        said: the settings in force before it.
    """
    name, before = event.get("model"), said.get("model")
    if not isinstance(name, str) or name == before:
        return event
    figures: dict[str, Any] = {}
    model = models.get(name)
    if isinstance(before, str) and said.get("counter") == counter_of(before).name:
        figures["counter"] = counter_of(name).name
    figures["budget"] = min(said["budget"], model.input_budget())
    figures["prices"] = model.input_prices()
    return {**figures, **event}


def by_dialect(events: Sequence[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The events, cut before each that changes the dialect."""
    part: list[Mapping[str, Any]] = []
    dialect: object = None
    for event in events:
        named = event.get("dialect") if event.get("kind") == "settings" else None
        if named is not None and dialect is not None and named != dialect:
            if not isinstance(event.get("at"), int):
                message = "an event that changes the dialect must say at which message"
                raise InputError(message, code="invalid_event")
            yield part
            part = []
        if named is not None and not isinstance(named, str):
            message = f"a dialect must be a str, not {type(named).__name__}"
            raise InputError(message, code="invalid_event")
        dialect = named if named is not None else dialect
        part.append(event)
    yield part


def plain_event(event: Mapping[str, Any], position: int) -> dict[str, Any]:
    """A copy of an event that JSON can carry, so that a caller's later change reaches nothing."""
    try:
        copy: dict[str, Any] = json.loads(json.dumps(dict(event)))
    except (TypeError, ValueError, RecursionError) as error:
        message = f"event {position} must be a mapping of JSON values"
        raise InputError(message, code="invalid_event") from error
    return copy


def differing(wanted: Mapping[str, Any], said: Mapping[str, Any]) -> dict[str, Any]:
    """The settings among those wanted that are others than those in force."""
    return {
        key: value
        for key, value in wanted.items()
        if key not in ("kind", "at") and said.get(key) != value
    }
