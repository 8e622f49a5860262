"""The written agent runs behind the sample transcripts, one module per run."""

from __future__ import annotations

from typing import Any

from runs import (
    abort,
    analysis,
    chat,
    coding,
    gradle,
    korean,
    odd,
    ops,
    research,
    service,
    thinking,
)


def every_sample() -> dict[str, dict[str, Any]]:
    """Every sample, by the name of its file."""
    return {
        "abort.anthropic.json": abort.build().anthropic("claude-sonnet-4-5"),
        "abort.openai.json": abort.build().openai("gpt-4.1"),
        "analysis.anthropic.json": analysis.build().anthropic("claude-sonnet-4-6"),
        "chat.openai.json": chat.build().openai("gpt-4o"),
        "coding.anthropic.json": coding.build().anthropic("claude-opus-4-5"),
        "coding.openai.json": coding.build().openai("gpt-5.2"),
        "gradle.openai.jsonl": gradle.build().openai("gpt-4.1"),
        "korean.anthropic.json": korean.build().anthropic("claude-sonnet-4-5"),
        "korean.openai.json": korean.build().openai("gpt-4o"),
        "odd.openai.json": odd.build(),
        "ops.anthropic.json": ops.build().anthropic("claude-sonnet-4-5"),
        "ops.openai.json": ops.build().openai("gpt-5.2"),
        "research.anthropic.json": research.build().anthropic("claude-haiku-4-5"),
        "service.anthropic.json": service.build().anthropic("claude-haiku-4-5"),
        "service.openai.json": service.build().openai("gpt-4.1-mini"),
        "thinking.anthropic.json": thinking.build().anthropic("claude-sonnet-4-5"),
    }
