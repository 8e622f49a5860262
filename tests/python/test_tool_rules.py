"""Rules for tools where their results are long lines, of which pieces may be kept."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import satchel
from satchel.policy import ToolRule


def history(draw: random.Random, results: int) -> list[dict[str, Any]]:
    """Calls of two tools; each result has a line of many identifiers, which users name again."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix the build of alpha-17."}]
    for number in range(results):
        call = f"call_{number}"
        function = {
            "name": draw.choice(["look", "other"]),
            "arguments": json.dumps({"at": f"file_{number % 3}.py"}),
        }
        calls = [{"id": call, "type": "function", "function": function}]
        words = (f"id_{number}_{at}.py value {at * 7}" for at in range(draw.choice([5, 40, 120])))
        text = draw.choice(["ok\n", ""]) + " ".join(words) + draw.choice(["", "\nthe end"])
        messages += [
            {"role": "assistant", "content": None, "tool_calls": calls},
            {"role": "tool", "tool_call_id": call, "content": text},
        ]
        if draw.random() < 0.2:
            messages.append(
                {"role": "user", "content": f"Use id_{draw.randrange(number + 1)}_3.py."}
            )
    return [*messages, {"role": "user", "content": "Go on with id_3_4.py."}]


@pytest.mark.parametrize("rule", [{"exclude": True}, {"supersede_key": "at"}])
def test_nothing_of_excluded_results_is_kept_as_a_piece(rule: dict[str, Any]) -> None:
    packed = 0
    for seed in range(150):
        draw = random.Random(seed)  # noqa: S311 - the same cases in every run
        policy = satchel.Policy(tools={"look": ToolRule(**rule)})
        messages = history(draw, draw.randrange(4, 25))
        assembler = satchel.Assembler("gpt-4o", budget=draw.randrange(600, 6_000), policy=policy)
        try:
            window = assembler.assemble(messages)
        except satchel.BudgetError:
            continue
        packed += 1
        assert window.tokens <= window.budget
        assert not satchel.lint(window.messages, "openai")
    assert packed > 50
