"""The written agent runs behind the sample transcripts, one module per run."""

from __future__ import annotations

from typing import Any

from runs import abort, chat, korean, odd, service


def every_sample() -> dict[str, dict[str, Any]]:
    """Every sample, by the name of its file."""
    return {
        "abort.openai.json": abort.build().openai("gpt-4.1"),
        "abort.anthropic.json": abort.build().anthropic("claude-sonnet-4-5"),
        "chat.openai.json": chat.build().openai("gpt-4o"),
        "korean.openai.json": korean.build().openai("gpt-4o"),
        "korean.anthropic.json": korean.build().anthropic("claude-sonnet-4-5"),
        "odd.openai.json": odd.build(),
        "service.openai.json": service.build().openai("gpt-4.1-mini"),
        "service.anthropic.json": service.build().anthropic("claude-haiku-4-5"),
    }
