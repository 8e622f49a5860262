"""What a request of an agent may take: its model's figures, and what it carries beside messages."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Final, cast

from langchain.agents.structured_output import AutoStrategy, ProviderStrategy, ToolStrategy
from langchain_core.utils.function_calling import convert_to_openai_tool

from satchel import _core, models
from satchel.assembler import Assembler, Budget
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from langchain.agents.middleware.types import ModelRequest

    from satchel.counting import AnyCounter
    from satchel.policy import Policy

__all__ = ["assembler_for", "definitions", "figures_of"]

_STAND_IN: Final = "gpt-4o"
"""Whose rules of counting messages hold for a model that nobody knows."""

_ENCODING: Final = "o200k_base"
_MARGIN: Final = 0.3
"""By how much an unknown tokenizer may count more than ``o200k_base``."""

_RESERVE: Final = 0.25
"""The most that is kept for the answer of an unknown model, as a share of its window."""


def figures_of(model: object) -> tuple[str | None, int | None, int | None]:
    """A chat model's name, and what its profile says that it takes and writes, in tokens."""
    names = (getattr(model, name, None) for name in ("model_name", "model", "model_id"))
    name = next((one for one in names if isinstance(one, str) and one), None)
    profile: Any = getattr(model, "profile", None) or {}
    taken, written = profile.get("max_input_tokens"), profile.get("max_output_tokens")
    return (
        name,
        taken if isinstance(taken, int) else None,
        written if isinstance(written, int) else None,
    )


def assembler_for(
    figures: tuple[str | None, int | None, int | None],
    *,
    budget: int | None,
    reserve_tokens: int | None,
    policy: str | Policy,
    counter: AnyCounter | None,
) -> Assembler:
    """The assembler for a model.

    Raises:
        InputError: ``unknown_model`` where neither satchel nor the model itself knows its window
            and no budget was given.
    """
    name, taken, written = figures
    options: dict[str, Any] = {"policy": policy, "dialect": "openai"}
    if name is not None and _is_known(name):
        sizes = Budget(budget, None if budget is not None else reserve_tokens)
        return Assembler(name, budget=sizes, counter=counter, **options)
    if budget is None:
        if taken is None:
            message = (
                f"no window is known of {'this model' if name is None else repr(name[:64])}: give "
                "ContextMiddleware a budget, or the name of a model that satchel knows"
            )
            raise InputError(message, code="unknown_model")
        most = int(_RESERVE * taken)
        reserve = reserve_tokens if reserve_tokens is not None else min(written or most, most)
        budget = max(1, taken - reserve)
    if counter is None:
        counter = _core.Counter(_ENCODING, exact=False, margin=_MARGIN)
    return Assembler(_STAND_IN, budget=budget, counter=counter, **options)


def definitions(request: ModelRequest[Any]) -> list[dict[str, Any]]:
    """All schemas that a request carries: those of its tools, and that of its answer."""
    return [*_tools(request.tools), *_formats(request.response_format)]


def _is_known(name: str) -> bool:
    with warnings.catch_warnings():
        # That only the family is known is said where the assembler is made.
        warnings.simplefilter("ignore", models.UnknownModelWarning)
        try:
            models.get(name)
        except InputError:
            return False
    return True


def _tools(tools: Iterable[Any]) -> list[dict[str, Any]]:
    return [
        cast("dict[str, Any]", tool) if isinstance(tool, dict) else convert_to_openai_tool(tool)
        for tool in tools
    ]


def _formats(response_format: object) -> list[dict[str, Any]]:
    if isinstance(response_format, AutoStrategy):
        response_format = ToolStrategy(schema=cast("Any", response_format).schema)
    specs: list[Any] = []
    if isinstance(response_format, ToolStrategy):
        specs = list(cast("Any", response_format).schema_specs)
    elif isinstance(response_format, ProviderStrategy):
        specs = [cast("Any", response_format).schema_spec]
    return [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description or "",
                "parameters": spec.json_schema,
            },
        }
        for spec in specs
    ]
