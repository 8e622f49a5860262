"""How much a summarizer's model can read at once."""

from __future__ import annotations

import warnings
from typing import Final

from satchel import models
from satchel.errors import InputError

__all__ = ["input_tokens_of"]

UNKNOWN_MODEL_TOKENS: Final = 8_000
"""For a model that nothing is known of, such as one behind a server of one's own."""


def input_tokens_of(model: str) -> int:
    """The most tokens of a request to ``model``, as `satchel.models` says."""
    try:
        with warnings.catch_warnings():
            # A guess about a newer version will do: it is only where a text is cut in two.
            warnings.simplefilter("ignore")
            return models.get(model).input_budget()
    except InputError:
        return UNKNOWN_MODEL_TOKENS
