"""What a model call carries beside its items: its model, tools, handoffs, the answer's schema.

Read from the agent by the names of its attributes, so that what counts here is what the SDK sends,
for each kind of tool that has a schema; hosted tools, which the provider describes, count by name.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["definitions", "model_of"]


def model_of(agent: Any) -> str:
    """The name of an agent's model; the SDK's default if the agent names none.

    Raises:
        InputError: ``unknown_model`` for an object that does not say its name.
    """
    model = agent.model
    if model is None:
        from agents.models import get_default_model  # noqa: PLC0415 - an optional package

        model = get_default_model()
    name = model if isinstance(model, str) else getattr(model, "model", None)
    if isinstance(name, str):
        return name
    message = (
        f"the agent's model is a {type(model).__name__} that does not say its name: "
        "context_filter(model=...)"
    )
    raise InputError(message, code="unknown_model")


async def definitions(agent: Any, context: Any) -> list[dict[str, Any]]:
    """The tools, handoffs and answer of an agent, as definitions of tools to be counted.

    Tools that are switched off for now count too: what is free of them must not be needed later.
    """
    found = [_tool(tool) for tool in agent.tools]
    if agent.mcp_servers:
        from agents import RunContextWrapper  # noqa: PLC0415 - an optional package

        found += [_tool(tool) for tool in await agent.get_mcp_tools(RunContextWrapper(context))]
    found += [_handoff(target) for target in agent.handoffs]
    found += _answer(agent.output_type)
    return found


def _tool(tool: Any) -> dict[str, Any]:
    schema = getattr(tool, "params_json_schema", None)
    if schema is not None:
        return _function(tool.name, tool.description, schema)
    config = getattr(tool, "tool_config", None)
    if isinstance(config, dict):
        return config  # pyright: ignore[reportUnknownVariableType] - the SDK's own
    return {"type": str(getattr(tool, "name", type(tool).__name__))}


def _handoff(target: Any) -> dict[str, Any]:
    if hasattr(target, "tool_name"):
        return _function(target.tool_name, target.tool_description, target.input_json_schema)
    kind = sys.modules["agents"].Handoff
    return _function(kind.default_tool_name(target), kind.default_tool_description(target), {})


def _answer(output_type: Any) -> Iterable[dict[str, Any]]:
    if output_type is None or output_type is str:
        return []
    schema = output_type
    if not hasattr(schema, "json_schema"):
        from agents import AgentOutputSchema  # noqa: PLC0415 - an optional package

        schema = AgentOutputSchema(output_type)
    if schema.is_plain_text():
        return []
    return [_function("final_output", "", schema.json_schema())]


def _function(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function", "name": name, "description": description, "parameters": schema}
