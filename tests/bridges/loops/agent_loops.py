"""What the tests of the OpenAI Agents SDK share: a tool, scripted models, checks of each call."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from agents import Agent, function_tool
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from openai.types.responses import ResponseReasoningItem

import satchel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents.testing import ModelCall

    from satchel.window import Window

DIALECT = "openai-responses"
MODEL = "gpt-5"
WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "kilo"]


@function_tool
def read_file(path: str) -> str:
    """Reads a file of the project.

    Args:
        path: where it is.
    """
    chance = random.Random(path)  # noqa: S311 - made-up lines
    lines = [" ".join(chance.choices(WORDS, k=9)) for _ in range(60)]
    lines[chance.randrange(60)] = f"ERROR {path}: code {chance.randrange(10_000):04}"
    return "\n".join(lines)


def thought(number: int) -> ResponseReasoningItem:
    """A reasoning item, signed."""
    return ResponseReasoningItem(
        id=f"rs_{number:04}", type="reasoning", summary=[], encrypted_content=f"sig{number}" * 12
    )


def tool_step(number: int, *, calls: int = 1) -> ModelStep:
    """Reasoning, and one call or several at once."""
    asked = [
        function_call(
            "read_file",
            {"path": f"src/part_{number}_{call}.py"},
            call_id=f"call_{number}_{call}",
            item_id=f"fc_{number:04}{call}",
        )
        for call in range(calls)
    ]
    return ModelStep(output=[thought(number), *asked])


def answer_step(number: int, text: str = "Done.") -> ModelStep:
    """The last word of a run."""
    return ModelStep(output=[assistant_message(text, item_id=f"msg_{number:04}")])


def tool_run(first: int, steps: int) -> list[ModelStep]:
    """A run: ``steps`` with tools, some of them with several calls, then an answer."""
    calls = [tool_step(at, calls=1 + (at % 5 == 0)) for at in range(first, first + steps)]
    return [*calls, answer_step(first + steps)]


def scripted(steps: Sequence[ModelStep], **options: Any) -> tuple[Agent[Any], ScriptedModel]:
    """An agent on a scripted model."""
    model = ScriptedModel(steps)
    tools = [read_file, *options.pop("tools", ())]
    agent = Agent(name="worker", instructions="Fix it.", model=model, tools=tools, **options)
    return agent, model


def check_calls(calls: Sequence[ModelCall], windows: Sequence[Window], budget: int) -> None:
    """Every call got a valid window within the budget."""
    assert len(calls) == len(windows)
    for call, window in zip(calls, windows, strict=True):
        assert call.input == window.messages
        assert errors_in(call.input) == []
        assert window.tokens_upper <= budget


def errors_in(items: Sequence[Any]) -> list[str]:
    """What the provider would reject."""
    found = satchel.lint(items, DIALECT, model=MODEL)
    return [violation.code for violation in found if violation.severity == "error"]


def collected() -> tuple[list[Window], Callable[[Window], None]]:
    """A list, and what puts windows into it."""
    windows: list[Window] = []
    return windows, windows.append
