"""What a request carries beside its messages: instructions, tools, the schema of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelRequest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pydantic_ai.messages import ModelMessage

__all__ = ["definitions", "instructions_in", "instructions_of"]


def instructions_of(parameters: Any, messages: Sequence[ModelMessage]) -> str | None:
    """The instructions that a request with these parameters sends."""
    parts = getattr(parameters, "instruction_parts", None)
    if parts:
        return "\n\n".join(str(part.content) for part in parts)
    return instructions_in(messages)


def instructions_in(messages: Sequence[ModelMessage]) -> str | None:
    """The instructions that the newest request of a history records."""
    for message in reversed(messages):
        if isinstance(message, ModelRequest):
            return message.instructions
    return None


def definitions(parameters: Any) -> list[dict[str, Any]]:
    """The tools and the answer's schema, as definitions of tools to be counted."""
    found = list(_tools([*parameters.function_tools, *parameters.output_tools]))
    output = parameters.output_object
    if output is not None:
        found.append(_definition(output.name or "output", output.description, output.json_schema))
    found += [{"type": tool.kind, "name": tool.kind} for tool in parameters.native_tools]
    return found


def _tools(tools: Iterable[Any]) -> Iterable[dict[str, Any]]:
    for tool in tools:
        yield _definition(tool.name, tool.description, tool.parameters_json_schema)


def _definition(name: str, description: str | None, schema: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "description": description or "", "input_schema": schema}
