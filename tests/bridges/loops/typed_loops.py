"""What the tests of pydantic-ai share: a scripted model with a tool, checks of each request."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    repair_messages,
)
from pydantic_ai.models.function import FunctionModel

import satchel
from satchel.pydantic_ai.drafts import DIALECT, drafted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo

    from satchel.window import Window

MODEL = "gpt-5"
WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "kilo"]


def read_file(path: str) -> str:
    """Reads a file of the project."""
    chance = random.Random(path)  # noqa: S311 - made-up lines
    lines = [" ".join(chance.choices(WORDS, k=9)) for _ in range(60)]
    lines[chance.randrange(60)] = f"ERROR {path}: code {chance.randrange(10_000):04}"
    return "\n".join(lines)


class Script:
    """A model that reads a number of files, one or two a step, then says that it is done."""

    def __init__(self, steps: int, *, first: int = 0) -> None:
        self.first = first
        self.steps = steps
        self.requests: list[list[ModelMessage]] = []
        self.model = FunctionModel(self.answer)

    def answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        number = len(self.requests)
        self.requests.append(list(messages))
        if number >= self.steps:
            return ModelResponse(parts=[TextPart("Done.")])
        at = self.first + number
        return ModelResponse(
            parts=[
                ThinkingPart("Which file next? " * 5, signature=f"sig{at}" * 10),
                TextPart(f"Looking at part {at}."),
                *(
                    ToolCallPart(
                        "read_file",
                        {"path": f"src/part_{at}_{call}.py"},
                        tool_call_id=f"call:{at}.{call}",
                    )
                    for call in range(1 + (at % 5 == 0))
                ),
            ]
        )

    def agent(self, *capabilities: Any, **options: Any) -> Agent[None, Any]:
        """An agent on it."""
        return Agent(
            self.model,
            instructions="Fix it.",
            tools=[read_file],
            capabilities=list(capabilities),
            **options,
        )


def check_requests(
    requests: Sequence[list[ModelMessage]], windows: Sequence[Window], budget: int
) -> None:
    """Every request got a valid window within the budget."""
    assert len(requests) == len(windows)
    for request, window in zip(requests, windows, strict=True):
        assert errors_in(request) == []
        assert window.tokens_upper <= budget


def errors_in(messages: Sequence[ModelMessage]) -> list[str]:
    """What is wrong with what a model got: by our rules, and by what the framework would mend."""
    assert messages
    calls: dict[str, list[str]] = {}
    drafts = [drafted(message, at, calls) for at, message in enumerate(messages)]
    found = satchel.lint([draft for draft in drafts if draft], DIALECT)
    errors = [violation.code for violation in found if violation.severity == "error"]
    if repair_messages(list(messages)) != list(messages):
        errors.append("would be mended")
    if pairs_of(messages)[0] != pairs_of(messages)[1]:
        errors.append("calls and results differ")
    if not isinstance(messages[-1], ModelRequest):
        errors.append("no request at the end")
    return errors


def pairs_of(messages: Sequence[ModelMessage]) -> tuple[list[str], list[str]]:
    """Ids of calls, ids of results."""
    parts: list[Any] = [part for message in messages for part in message.parts]
    calls = [part.tool_call_id for part in parts if isinstance(part, ToolCallPart)]
    results = [
        part.tool_call_id
        for part in parts
        if isinstance(part, ToolReturnPart)
        or (part.part_kind == "retry-prompt" and part.tool_name is not None)
    ]
    return sorted(calls), sorted(results)


def collected() -> tuple[list[Window], Callable[[Window], None]]:
    """A list, and what puts windows into it."""
    windows: list[Window] = []
    return windows, windows.append
