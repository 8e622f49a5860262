"""Calls of the page-in tool and their results, as each dialect writes them."""

from __future__ import annotations

import json
from typing import Any

import satchel

Message = dict[str, Any]

MODELS = {
    "openai": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}
DIALECTS = tuple(MODELS)


def call(dialect: str, arguments: Any, *, name: str = "page_in", id: str = "c1") -> Message:  # noqa: A002 - the field's name
    """A call; arguments that are no object stand for what a model got wrong."""
    spelled = arguments if isinstance(arguments, str) else json.dumps(arguments)
    match dialect:
        case "openai":
            return {"id": id, "type": "function", "function": {"name": name, "arguments": spelled}}
        case "openai-responses":
            return {"type": "function_call", "call_id": id, "name": name, "arguments": spelled}
        case "anthropic":
            return {"type": "tool_use", "id": id, "name": name, "input": arguments}
        case "gemini":
            return {"functionCall": {"id": id, "name": name, "args": arguments}}
        case _:
            return {"toolUse": {"toolUseId": id, "name": name, "input": arguments}}


def reply(dialect: str, *calls: Message) -> list[Message]:
    """The assistant's message with these calls, or its items."""
    match dialect:
        case "openai":
            return [{"role": "assistant", "content": None, "tool_calls": list(calls)}]
        case "openai-responses":
            return list(calls)
        case "gemini":
            return [{"role": "model", "parts": list(calls)}]
        case _:
            return [{"role": "assistant", "content": list(calls)}]


def texts(dialect: str, message: Message) -> list[tuple[Any, str, bool]]:
    """Id, text and whether it is an error, for each result in a message."""
    match dialect:
        case "openai":
            text = message["content"]
            return [(message["tool_call_id"], text, text.startswith("page_in failed"))]
        case "openai-responses":
            text = message["output"]
            return [(message["call_id"], text, text.startswith("page_in failed"))]
        case "anthropic":
            return [
                (block["tool_use_id"], block["content"], block.get("is_error", False))
                for block in message["content"]
            ]
        case "gemini":
            results = [part["functionResponse"] for part in message["parts"]]
            return [
                (one.get("id"), *one["response"].values(), "error" in one["response"])
                for one in results
            ]
        case _:
            results = [block["toolResult"] for block in message["content"]]
            return [
                (one["toolUseId"], one["content"][0]["text"], one.get("status") == "error")
                for one in results
            ]


def log_run(dialect: str, text: str, *, steps: int = 12) -> list[Message]:
    """A goal, a long tool result with this text, and answers that push it out."""
    history: list[Message] = [
        {"role": "user", "content": "Find out why the build is slow."},
        *reply("openai", call("openai", {"path": "build.log"}, name="read", id="r1")),
        {"role": "tool", "tool_call_id": "r1", "content": text},
    ]
    for number in range(steps):
        history.append({"role": "assistant", "content": f"Note {number}. " + "Nothing yet. " * 60})
        history.append({"role": "user", "content": f"Go on with part {number}."})
    return satchel.convert(history, "openai", dialect).messages


def pointer_of(working_set: satchel.WorkingSet, text: str) -> str:
    """The pointer of the page with this content."""
    window = working_set.window()
    index = working_set.page_in(window.pages[0].pointer) if window.pages[0].message is None else ""
    words = index.split()
    pointers = [word for word in words if word.startswith("p_")]
    pointers += [page.pointer for page in window.pages if page.message is not None]
    [found] = [pointer for pointer in pointers if text in working_set.page_in(pointer)]
    return found
