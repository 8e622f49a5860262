"""The classes of `satchel.openai` and `satchel.anthropic`, each with its real client."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anthropic
import openai

import satchel
import satchel.anthropic
import satchel.openai
from satchel import sync
from satchel.stores.codec import encode

if TYPE_CHECKING:
    from collections.abc import Generator

    from model_wire import Wire

MODELS = {"openai": "gpt-4o", "openai-responses": "gpt-4o", "anthropic": "claude-sonnet-5"}
DIALECTS = tuple(MODELS)
NUMBERS = itertools.count()
SYSTEM = "You mend a library of small parts. Say what you find."
CLASSES: dict[tuple[str, bool], Any] = {
    ("openai", True): satchel.openai.AsyncChat,
    ("openai", False): satchel.openai.Chat,
    ("openai-responses", True): satchel.openai.AsyncResponses,
    ("openai-responses", False): satchel.openai.Responses,
    ("anthropic", True): satchel.anthropic.AsyncMessages,
    ("anthropic", False): satchel.anthropic.Messages,
}


def tool(dialect: str) -> dict[str, Any]:
    """A tool that reads a file."""
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    about = {"name": "read", "description": "Read a file."}
    match dialect:
        case "openai":
            return {"type": "function", "function": {**about, "parameters": schema}}
        case "openai-responses":
            return {"type": "function", **about, "parameters": schema}
        case _:
            return {**about, "input_schema": schema}


def client_of(wire: Wire, dialect: str, *, is_async: bool) -> Any:
    """The provider's client, which asks the server on this machine."""
    package: Any = anthropic if dialect == "anthropic" else openai
    name = "Anthropic" if dialect == "anthropic" else "OpenAI"
    made = getattr(package, f"Async{name}" if is_async else name)
    return made(api_key="-", base_url=wire.url, max_retries=0)


def session_of(url: Any, dialect: str, *, is_async: bool, **options: Any) -> Any:
    """A session of the dialect; in memory always a new one."""
    name = f"run {next(NUMBERS)}" if url == "memory://" else "run"
    opened: Any = satchel.open_session if is_async else sync.open_session
    settings = {"session_id": name, "model": MODELS[dialect], "dialect": dialect, **options}
    return opened(url, **settings)


def model_of(wire: Wire, session: Any, dialect: str, *, is_async: bool, **options: Any) -> Any:
    """The class under test, over the real client."""
    client = client_of(wire, dialect, is_async=is_async)
    settings = {"system": SYSTEM, "tools": [tool(dialect)], **options}
    return CLASSES[dialect, is_async](client, session, **settings)


@contextmanager
def chatting(wire: Wire, dialect: str, **options: Any) -> Generator[tuple[Any, Any]]:
    """A blocking session in memory with a question in it, and the model for it."""
    with session_of("memory://", dialect, is_async=False, **options) as session:
        session.append({"role": "user", "content": "Which part is broken?"})
        model = model_of(wire, session, dialect, is_async=False)
        try:
            yield session, model
        finally:
            model._client.close()


def plain(messages: list[Any]) -> str:
    """All of a history as one text, clients' objects included."""
    return encode(messages).decode()


__all__ = [
    "CLASSES",
    "DIALECTS",
    "MODELS",
    "SYSTEM",
    "chatting",
    "client_of",
    "model_of",
    "plain",
    "session_of",
    "tool",
]
