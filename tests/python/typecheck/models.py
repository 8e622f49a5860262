"""What both type checkers must know about the model figures; checked, never run."""

from __future__ import annotations

from typing import assert_type

import satchel
from satchel import models


def figures() -> None:
    model = satchel.models.get("gpt-4o")
    assert_type(model, models.Model)
    assert_type(model.window, int)
    assert_type(model.input_limit, int | None)
    assert_type(model.factors.prose, float)
    assert_type(model.tools, models.ToolCosts)
    assert_type(model.input_budget(reserve_tokens=1_000), int)
    assert_type(models.register_file("mine.toml"), list[str])
    models.register("acme-1", window=8_000, encoding="chars3")
    models.register("acme-1", colour="red")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue] - no such field


def errors() -> None:
    error = satchel.BudgetError("message 7 has 9000 tokens", code="over_budget", index=7)
    assert_type(error.index, int | None)
    assert_type(error.code, str)
    in_both_trees: list[ValueError | satchel.SatchelError] = [error]
    assert_type(in_both_trees, list[ValueError | satchel.SatchelError])
    assert_type(satchel.__version__, str)
