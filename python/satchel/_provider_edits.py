"""Edits that are left to the provider, and reasoning that is left out of a window.

What the provider is asked to edit satchel does not edit as well: its windows are whole then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from satchel._arguments import invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.policy import Clearing, Policy

__all__ = ["UNLIMITED", "check_provider", "provider_edits", "thinking_tail"]

UNLIMITED: Final = 2**53
"""The budget where the provider makes room."""

_DIALECTS: Final = {"clear-tool-uses": "anthropic", "token-window": "openai-responses"}


def check_provider(policy: Policy, dialect: str) -> None:
    """Whether the provider of this dialect edits as the policy wants.

    Raises:
        InputError: ``invalid_value``.
    """
    wanted = _DIALECTS.get(policy.strategy, "anthropic")
    if dialect != wanted or (policy.thinking is not None and wanted != "anthropic"):
        message = f"policy {policy.name} is for {wanted}, not for {dialect}"
        raise invalid(message)


def provider_edits(policy: Policy) -> dict[str, Any]:
    """The arguments that ask the provider for the policy's edits; none where satchel edits.

    Source: Anthropic, context editing page, ``context_management`` (read 2026-08-21), where edits
    of thinking come first; OpenAI, Responses API reference, ``truncation``.
    """
    if not policy.server:
        return {}
    if policy.strategy == "token-window":
        return {"truncation": "auto"}
    edits: list[dict[str, Any]] = []
    if policy.thinking is not None:
        keep = policy.thinking.keep
        turns = "all" if keep == "all" else {"type": "thinking_turns", "value": keep}
        edits.append({"type": "clear_thinking_20251015", "keep": turns})
    if policy.strategy == "clear-tool-uses":
        edits.append(_clearing(policy.clearing))
    return {"context_management": {"edits": edits}}


def _clearing(clearing: Clearing) -> dict[str, Any]:
    edit: dict[str, Any] = {
        "type": "clear_tool_uses_20250919",
        "trigger": clearing.trigger.model_dump(),
        "keep": {"type": "tool_uses", "value": clearing.keep},
    }
    if clearing.clear_at_least:
        edit["clear_at_least"] = {"type": "input_tokens", "value": clearing.clear_at_least}
    if clearing.exclude_tools:
        edit["exclude_tools"] = list(clearing.exclude_tools)
    inputs = clearing.clear_tool_inputs
    if isinstance(inputs, tuple):
        edit["clear_tool_inputs"] = list(inputs)
    elif inputs:
        edit["clear_tool_inputs"] = True
    return edit


def thinking_tail(messages: Sequence[Any], keep: int) -> int:
    """How many messages at the end keep their reasoning.

    They go back to the first of the ``keep`` newest turns with reasoning before the running turn.
    """
    turns = 0
    is_running, holds = True, False
    for back, message in enumerate(reversed(messages), 1):
        holds = holds or _holds(message, _is_reasoning)
        if _field(message, "role") != "user" or _holds(message, _is_result):
            continue
        turns += not is_running and holds
        if turns == keep:
            return back
        is_running, holds = False, False
    return len(messages)


def _holds(message: object, is_one: Any) -> bool:  # noqa: ANN401 - a function on any block
    content = _field(message, "content")
    return isinstance(content, (list, tuple)) and any(
        is_one(block) for block in cast("Sequence[Any]", content)
    )


def _is_reasoning(block: object) -> bool:
    kind = _field(block, "type")
    is_named = isinstance(kind, str) and kind in {"thinking", "redacted_thinking"}
    return is_named or _field(block, "reasoningContent") is not None


def _is_result(block: object) -> bool:
    return _field(block, "type") == "tool_result" or _field(block, "toolResult") is not None


def _field(value: object, name: str) -> Any:  # noqa: ANN401 - likewise
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).get(name)
    return getattr(value, name, None)
