"""The options of a replay, checked once for all runs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from satchel import _core, models
from satchel._arguments import (
    MOST_WHOLE,
    fraction,
    invalid,
    listed,
    plain_text,
    shown,
    whole_number,
)
from satchel.counting import counter as counter_of
from satchel.errors import InputError
from satchel.policy import Policy, planner_settings
from satchel.replay.measures import LIMIT, LOT, REFERENCE

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "BASELINES",
    "DEFAULT_MODEL",
    "DEFAULT_POLICIES",
    "Settings",
    "name_of",
    "said",
    "settings",
]

BASELINES: Final[tuple[str, ...]] = tuple(_core.replay_baselines())
"""Policies that stand for what people do today, and ``oracle`` and ``oracle-lines``, which know
what later actions will take: strong references, not bounds."""

DEFAULT_POLICIES: Final[tuple[str, ...]] = ("adaptive", *BASELINES)

DEFAULT_MODEL: Final = "claude-sonnet-4-5"
"""Whose prices are used if nobody says."""

_MOST_DIGITS: Final = 18
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is the same for every run."""

    contenders: tuple[str, ...]
    counter: _core.Counter
    share: float | None
    tokens: int | None
    prices: tuple[float, float, float]
    seed: int
    min_calls: int


def settings(
    policies: str | Policy | Sequence[str | Policy],
    *,
    budget: float | str,
    model: str | None,
    counter: str | _core.Counter,
    seed: int,
    min_calls: int,
) -> Settings:
    """The options of `satchel.replay.run`, checked.

    Raises:
        InputError: as there.
    """
    share, tokens = _limit(budget)
    given: list[str | Policy]
    given = (
        [policies]
        if isinstance(policies, str | Policy)
        else listed("policies", policies, of="policies")
    )
    whole_number("seed", seed, most=2**64 - 1)
    contenders = {name_of(found): found for found in map(_contender, given)}
    if len(contenders) < len(given):
        message = "two policies have the same name"
        raise InputError(message, code="invalid_value")
    for name in (REFERENCE, LOT, LIMIT):
        contenders.setdefault(name, name)
    return Settings(
        contenders=tuple(contenders.values()),
        counter=_counter(counter),
        share=share,
        tokens=tokens,
        prices=_prices(model or DEFAULT_MODEL),
        seed=seed,
        min_calls=max(whole_number("min_calls", min_calls), 1),
    )


def _contender(policy: str | Policy) -> str:
    """The name of a baseline, or a policy as JSON."""
    if isinstance(policy, str):
        if policy in BASELINES:
            return policy
        policy = Policy.preset(policy)
    if not isinstance(cast("object", policy), Policy):
        message = f"policies must hold names and policies, one is {shown(policy)}"
        raise invalid(message)
    return json.dumps(planner_settings(policy))


def name_of(contender: str) -> str:
    """The name of a policy in tables."""
    return contender if contender in BASELINES else str(json.loads(contender)["name"])


def _limit(budget: float | str) -> tuple[float | None, int | None]:
    if isinstance(budget, str):
        percent = _PERCENT.fullmatch(budget.strip())
        if percent:
            budget = float(percent[1]) / 100
        elif budget.strip().isdecimal() and len(budget.strip()) <= _MOST_DIGITS:
            budget = int(budget)
        else:
            message = "budget must be a share such as '25%' or a number of tokens"
            raise InputError(message, code="invalid_value")
    if isinstance(budget, int) and not isinstance(budget, bool):
        return None, whole_number("budget", budget, least=1, most=MOST_WHOLE)
    budget = fraction("budget", budget)
    if not 0 < budget <= 1:
        message = f"budget is {budget}, a share must be above 0 and at most 1"
        raise InputError(message, code="invalid_value")
    return float(budget), None


def said(work: Settings) -> str:
    """The budget in words."""
    return f"{work.tokens:,} tokens" if work.share is None else f"{work.share:.0%}"


def _counter(counter: str | _core.Counter) -> _core.Counter:
    if counter == "chars4":
        return _core.Counter("chars4", exact=True, margin=0.0)
    if isinstance(counter, _core.Counter):
        return counter
    return counter_of(plain_text("counter", counter))


def _prices(name: str) -> tuple[float, float, float]:
    """Dollars a million tokens: read from the cache, written to it, output."""
    found = models.get(name)
    if found.prices is None:
        message = f"no prices are known for {name}"
        raise InputError(message, code="invalid_value")
    cache = found.cache
    write = cache.write[0] if cache.write else 1.0
    return found.prices.input * cache.read, found.prices.input * write, found.prices.output
