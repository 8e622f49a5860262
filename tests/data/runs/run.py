"""A run as it is written down, and its form in each dialect.

A run is a list of turns in a neutral shape. Rendering decides ids and framing only, so both forms
of a run say exactly the same. Everything is a pure function of the run's name and content.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

Json = dict[str, Any]
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Call:
    """One call of a tool and its answer; ``result`` None means that it was never answered."""

    name: str
    arguments: Json
    result: str | None
    is_error: bool = False


@dataclass(frozen=True)
class Turn:
    """One entry: what a user said, or what the assistant said, thought and called."""

    role: str
    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    redacted: bool = False


@dataclass
class Run:
    """A run under construction; ``tools`` are ``(name, description, parameters)``."""

    name: str
    title: str
    system: str
    tools: list[tuple[str, str, Json]] = field(default_factory=list[tuple[str, str, Json]])
    turns: list[Turn] = field(default_factory=list[Turn])

    def user(self, text: str) -> None:
        """The user says something."""
        self.turns.append(Turn("user", text))

    def say(self, text: str, *, thinking: str = "") -> None:
        """The assistant answers without a call."""
        self.turns.append(Turn("assistant", text, thinking=thinking))

    def call(self, text: str, *calls: Call, thinking: str = "", redacted: bool = False) -> None:
        """The assistant calls one tool, or several at once."""
        self.turns.append(Turn("assistant", text, calls, thinking, redacted))

    def openai(self, model: str) -> Json:
        """The run as an OpenAI chat sample."""
        messages: list[Json] = [{"role": "system", "content": self.system}]
        for index, turn in enumerate(self.turns):
            message: Json = {"role": turn.role, "content": turn.text or None}
            if turn.calls:
                message["tool_calls"] = [
                    {
                        "id": self._id("call_", 24, index, number),
                        "type": "function",
                        "function": {
                            "name": call.name,
                            "arguments": json.dumps(call.arguments, ensure_ascii=False),
                        },
                    }
                    for number, call in enumerate(turn.calls)
                ]
            messages.append(message)
            for number, call in enumerate(turn.calls):
                if call.result is not None:
                    messages.append(
                        {
                            "role": "tool",
                            "tool_call_id": self._id("call_", 24, index, number),
                            "content": call.result,
                        }
                    )
        tools = [
            {
                "type": "function",
                "function": {"name": name, "description": text, "parameters": parameters},
            }
            for name, text, parameters in self.tools
        ]
        return sample(self.title, "openai", model, tools, messages)

    def anthropic(self, model: str) -> Json:
        """The run as an Anthropic sample; results open the user message after their calls."""
        messages: list[Json] = []
        for index, turn in enumerate(self.turns):
            if turn.role == "user":
                if messages and messages[-1]["role"] == "user":
                    messages[-1]["content"].append({"type": "text", "text": turn.text})
                else:
                    messages.append({"role": "user", "content": turn.text})
                continue
            messages.append({"role": "assistant", "content": self._blocks(index, turn)})
            results = [
                _result(self._id("toolu_01", 22, index, number), call)
                for number, call in enumerate(turn.calls)
                if call.result is not None
            ]
            if results:
                messages.append({"role": "user", "content": results})
        tools = [
            {"name": name, "description": text, "input_schema": parameters}
            for name, text, parameters in self.tools
        ]
        return sample(self.title, "anthropic", model, tools, messages, system=self.system)

    def _blocks(self, index: int, turn: Turn) -> list[Json] | str:
        if not turn.calls and not turn.thinking:
            return turn.text
        blocks: list[Json] = []
        if turn.thinking:
            blocks.append(
                {
                    "type": "thinking",
                    "thinking": turn.thinking,
                    "signature": self._opaque(f"signature {index}", 160 + len(turn.thinking) // 4),
                }
            )
        if turn.redacted:
            data = self._opaque(f"redacted {index}", 240)
            blocks.append({"type": "redacted_thinking", "data": data})
        if turn.text:
            blocks.append({"type": "text", "text": turn.text})
        blocks += [
            {
                "type": "tool_use",
                "id": self._id("toolu_01", 22, index, number),
                "name": call.name,
                "input": call.arguments,
            }
            for number, call in enumerate(turn.calls)
        ]
        return blocks

    def _id(self, prefix: str, length: int, index: int, number: int) -> str:
        digest = hashlib.sha512(f"{self.name} {index} {number}".encode()).digest()
        return prefix + "".join(ALPHABET[byte % 62] for byte in digest[:length])

    def _opaque(self, key: str, length: int) -> str:
        data = b""
        while len(data) < length:
            data += hashlib.sha512(f"{self.name} {key} {len(data)}".encode()).digest()
        return base64.b64encode(data[: length // 3 * 3]).decode()


def sample(
    title: str,
    dialect: str,
    model: str,
    tools: Sequence[Json],
    messages: Sequence[Json],
    *,
    system: str | None = None,
) -> Json:
    """The sample file's object; ``system`` only where it is not a message."""
    head: Json = {"title": title, "dialect": dialect, "model": model}
    if system is not None:
        head["system"] = system
    return head | {
        "tools": list(tools),
        "messages": list(messages),
        "source": "written for satchel",
        "licence": "Apache-2.0",
    }


def schema(required: Sequence[str] = (), **properties: Json) -> Json:
    """A JSON schema of an object."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def text(description: str, **more: Any) -> Json:
    """The schema of a string."""
    return {"type": "string", "description": description, **more}


def number(description: str, kind: str = "integer", **more: Any) -> Json:
    """The schema of a number."""
    return {"type": kind, "description": description, **more}


def _result(call_id: str, call: Call) -> Json:
    block: Json = {"type": "tool_result", "tool_use_id": call_id, "content": call.result}
    if call.is_error:
        block["is_error"] = True
    return block
