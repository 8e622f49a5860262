"""Edits that are left to the provider.

What the provider is asked to edit satchel does not edit as well: its windows are whole then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from satchel._arguments import invalid

if TYPE_CHECKING:
    from satchel.policy import Clearing, Policy

__all__ = ["UNLIMITED", "check_provider", "provider_edits"]

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
        edit: dict[str, Any] = {"type": "clear_thinking_20251015"}
        if keep != "model":
            edit["keep"] = "all" if keep == "all" else {"type": "thinking_turns", "value": keep}
        edits.append(edit)
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
