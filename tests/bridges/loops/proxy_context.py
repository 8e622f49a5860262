"""What litellm's proxy loads for its test: an instance under a name, as its settings ask for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from satchel.litellm import ContextCallback

if TYPE_CHECKING:
    from satchel import Window

BUDGET = 3_000


def note(window: Window) -> None:
    """Writes down what the program outside cannot see."""
    sys.stdout.write(f"window {window.tokens_upper} of {window.budget}\n")
    sys.stdout.flush()


context = ContextCallback(budget=BUDGET, on_window=note)
