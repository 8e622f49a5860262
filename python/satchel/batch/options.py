"""The options of a rewrite, checked once for all conversations."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from satchel import _core, models
from satchel._arguments import whole_number
from satchel.counting import counter as counter_of
from satchel.errors import InputError
from satchel.linting import traits_of
from satchel.policy import Policy, planner_settings
from satchel.reading import FORMATS
from satchel.redaction import Group, Kind, names_of

if TYPE_CHECKING:
    from satchel.counting import Counter

__all__ = ["At", "OnError", "Redact", "Settings", "settings"]

At: TypeAlias = str
"""Which windows are written: ``"end"``, ``"every-call"`` or ``"turn:K"``."""

OnError = Literal["reject", "raise"]

Redact: TypeAlias = bool | Iterable[Kind | Group]
"""Whether personal data and secrets are replaced, or which kinds of them."""

_MOST_TOKENS: Final = 2**63 - 1
_MOST_DIGITS: Final = 19
_PERCENT: Final = re.compile(r"(\d+(?:\.\d+)?)\s*%")


@dataclass(frozen=True, slots=True)
class Settings:
    """The native rewriter, and what tells two runs apart."""

    rewriter: _core.Rewriter
    file_format: str | None
    digest: str


def settings(
    *,
    policy: str | Policy,
    model: str,
    budget: float | str | None,
    convert: str | None,
    at: At,
    counter: str | Counter | None,
    pages: bool,
    file_format: str,
    redact: Redact = False,
) -> Settings:
    """The options of `satchel.batch.rewrite`, checked.

    Raises:
        InputError: as there.
    """
    known = models.get(model)
    chosen = Policy.preset(policy) if isinstance(policy, str) else policy
    counts = (
        counter_of(model if counter is None else counter)
        if (counter is None or isinstance(counter, str))
        else counter
    )
    share, tokens = _limit(budget, known)
    if file_format != "auto" and file_format not in FORMATS:
        message = f"format is no known one; known: {', '.join(('auto', *FORMATS))}"
        raise InputError(message, code="invalid_value")
    prices = known.prices
    price = None if prices is None else (prices.input, prices.long_above, prices.long_input)
    said: dict[str, Any] = {
        "traits": traits_of(model),
        "prefix_bound": known.prefix_bound,
        "policy": json.dumps(planner_settings(chosen)),
        "share": share,
        "tokens": tokens,
        "at": at,
        "target": convert,
        "prices": json.dumps(known.input_prices()),
        "price": price,
        "pages": pages,
        "redact": kinds_of(redact),
    }
    rewriter = _core.Rewriter(model, counter=counts, **said)
    told = [_core.__version__, model, counts.name, counts.rules, file_format, said]
    digest = hashlib.sha256(json.dumps(told).encode()).hexdigest()
    return Settings(rewriter, None if file_format == "auto" else file_format, digest)


def kinds_of(redact: Redact) -> list[str]:
    """The kinds that are replaced."""
    if isinstance(redact, bool):
        return names_of(None) if redact else []
    return names_of(redact)


def _limit(budget: float | str | None, model: models.Model) -> tuple[float | None, int | None]:
    """A share of each conversation, or tokens."""
    if budget is None:
        return None, model.input_budget()
    if isinstance(budget, str):
        percent = _PERCENT.fullmatch(budget.strip())
        if percent:
            budget = float(percent[1]) / 100
        elif budget.strip().isdecimal():
            if len(budget.strip()) > _MOST_DIGITS:
                message = f"budget has too many digits, must be from 1 to {_MOST_TOKENS}"
                raise InputError(message, code="invalid_value", limit=_MOST_TOKENS)
            budget = int(budget)
        else:
            message = "budget must be a share such as '25%' or a number of tokens"
            raise InputError(message, code="invalid_value")
    if isinstance(budget, int) and not isinstance(budget, bool):
        return None, whole_number("budget", budget, least=1, most=_MOST_TOKENS)
    if not 0 < budget <= 1:
        message = f"budget is {budget}, a share must be above 0 and at most 1"
        raise InputError(message, code="invalid_value")
    return float(budget), None
