"""Windows of other frameworks, each by its own classes, over one history in chat form.

A peer gets the history as its own messages and gives back which messages of the history it keeps.
What it puts in besides comes back as a message of its own. A framework that is not installed is
left out, and its name comes with the sentence that says how to get it.
"""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Message = dict[str, Any]

INSTALL = "make an environment and install benches/bridges.txt into it"


@dataclass(frozen=True)
class Peer:
    """One way to cut of one framework.

    Attributes:
        name: framework and class.
        is_by_tokens: whether its limit is in tokens (of four characters); else in messages.
        build: the history as its messages, each with the places in the history it stands for.
        cut: what is kept of those, under a limit.
    """

    name: str
    is_by_tokens: bool
    build: Callable[[Sequence[Message]], list[tuple[Any, list[int]]]]
    cut: Callable[[list[Any], int], list[Any]]

    def kept(
        self, built: list[tuple[Any, list[int]]], history: Sequence[Message], limit: int
    ) -> list[Message]:
        """The window in chat form."""
        places = {id(message): where for message, where in built}
        found: list[Message] = []
        for message in self.cut([message for message, _ in built], limit):
            where = places.get(id(message))
            # What is not of the history is a remark of the framework's, in the user's role.
            found += (
                [{"role": "user", "content": "..."}]
                if where is None
                else [history[at] for at in where]
            )
        return found


def estimate(text: str) -> int:
    """The cheapest count there is."""
    return max(1, len(text) // 4)


# --- AutoGen --------------------------------------------------------------------------------------


def _autogen_messages(
    models: Any,  # noqa: ANN401 - untyped here
    core: Any,  # noqa: ANN401 - likewise
    history: Sequence[Message],
) -> list[tuple[Any, list[int]]]:
    found: list[tuple[Any, list[int]]] = []
    for at, message in enumerate(history):
        match message["role"]:
            case "system":
                found.append((models.SystemMessage(content=message["content"]), [at]))
            case "user":
                made = models.UserMessage(content=message["content"], source="user")
                found.append((made, [at]))
            case "tool":
                one = models.FunctionExecutionResult(
                    content=message["content"],
                    name="read",
                    call_id=message["tool_call_id"],
                    is_error=False,
                )
                # All results of a step are one message.
                if found and isinstance(found[-1][0], models.FunctionExecutionResultMessage):
                    found[-1][0].content.append(one)
                    found[-1][1].append(at)
                else:
                    made = models.FunctionExecutionResultMessage(content=[one])
                    found.append((made, [at]))
            case _:
                content: Any = message["content"] or [
                    core.FunctionCall(
                        id=call["id"], name="read", arguments=call["function"]["arguments"]
                    )
                    for call in message["tool_calls"]
                ]
                made = models.AssistantMessage(content=content, source="assistant")
                found.append((made, [at]))
    return found


def _autogen() -> list[Peer]:
    models: Any = import_module("autogen_core.models")
    core: Any = import_module("autogen_core")
    contexts: Any = import_module("autogen_core.model_context")

    def build(history: Sequence[Message]) -> list[tuple[Any, list[int]]]:
        return _autogen_messages(models, core, history)

    class Client:
        """Counts each message once, which AutoGen's own clients do not; asks nobody."""

        def __init__(self) -> None:
            self._counts: dict[int, int] = {}

        def count_tokens(self, messages: Sequence[Any], **_: object) -> int:
            counts = self._counts
            if not counts:
                counts.update((id(one), estimate(str(one.content))) for one in messages)
            return sum([counts[id(one)] for one in messages])

    async def window(context: Any, messages: list[Any]) -> list[Any]:  # noqa: ANN401 - untyped here
        context._messages = list(messages)  # noqa: SLF001 - as loading a state sets it
        found: list[Any] = await context.get_messages()
        return found

    def buffered(messages: list[Any], limit: int) -> list[Any]:
        context = contexts.BufferedChatCompletionContext(buffer_size=limit)
        return asyncio.run(window(context, messages))

    def limited(messages: list[Any], limit: int) -> list[Any]:
        context = contexts.TokenLimitedChatCompletionContext(Client(), token_limit=limit)
        return asyncio.run(window(context, messages))

    def ends(messages: list[Any], limit: int) -> list[Any]:
        context = contexts.HeadAndTailChatCompletionContext(
            head_size=max(1, limit // 4), tail_size=max(1, limit - limit // 4)
        )
        return asyncio.run(window(context, messages))

    return [
        Peer("AutoGen, buffered", False, build, buffered),  # noqa: FBT003 - a table of peers
        Peer("AutoGen, head and tail", False, build, ends),  # noqa: FBT003 - likewise
        Peer("AutoGen, token limited", True, build, limited),  # noqa: FBT003 - likewise
    ]


# --- Microsoft ------------------------------------------------------------------------------------


def _agent_framework() -> list[Peer]:
    package: Any = import_module("agent_framework")
    compaction: Any = import_module("agent_framework._compaction")
    content, message_class = package.Content, package.Message

    def build(history: Sequence[Message]) -> list[tuple[Any, list[int]]]:
        found: list[tuple[Any, list[int]]] = []
        for at, message in enumerate(history):
            contents: list[Any] = []
            if message["role"] == "tool":
                contents.append(
                    content.from_function_result(message["tool_call_id"], result=message["content"])
                )
            elif message["content"]:
                contents.append(content.from_text(message["content"]))
            contents += [
                content.from_function_call(
                    call["id"], "read", arguments=call["function"]["arguments"]
                )
                for call in message.get("tool_calls", ())
            ]
            found.append((message_class(role=message["role"], contents=contents), [at]))
        return found

    def run(messages: list[Any], strategy: Any) -> list[Any]:  # noqa: ANN401 - untyped here
        found: list[Any] = asyncio.run(compaction.apply_compaction(messages, strategy=strategy))
        return found

    def truncated(messages: list[Any], limit: int) -> list[Any]:
        tokenizer = compaction.CharacterEstimatorTokenizer()
        made = compaction.TruncationStrategy(max_n=limit, compact_to=limit, tokenizer=tokenizer)
        return run(messages, made)

    def sliding(messages: list[Any], limit: int) -> list[Any]:
        return run(messages, compaction.SlidingWindowStrategy(keep_last_groups=limit))

    return [
        Peer("Agent Framework, truncation", True, build, truncated),  # noqa: FBT003 - likewise
        Peer("Agent Framework, sliding window", False, build, sliding),  # noqa: FBT003 - likewise
    ]


def _semantic_kernel() -> list[Peer]:
    contents: Any = import_module("semantic_kernel.contents")
    logging.getLogger("semantic_kernel").setLevel(logging.ERROR)

    def build(history: Sequence[Message]) -> list[tuple[Any, list[int]]]:
        found: list[tuple[Any, list[int]]] = []
        for at, message in enumerate(history):
            items: list[Any] = []
            if message["role"] == "tool":
                items.append(
                    contents.FunctionResultContent(
                        id=message["tool_call_id"], name="read", result=message["content"]
                    )
                )
            elif message["content"]:
                items.append(contents.TextContent(text=message["content"]))
            items += [
                contents.FunctionCallContent(
                    id=call["id"], name="read", arguments=call["function"]["arguments"]
                )
                for call in message.get("tool_calls", ())
            ]
            found.append((contents.ChatMessageContent(role=message["role"], items=items), [at]))
        return found

    def cut(messages: list[Any], limit: int) -> list[Any]:
        reducer = contents.ChatHistoryTruncationReducer(
            messages=messages, target_count=limit, threshold_count=0
        )
        asyncio.run(reducer.reduce())
        found: list[Any] = list(reducer.messages)
        return found

    return [Peer("Semantic Kernel, truncation", False, build, cut)]  # noqa: FBT003 - likewise


# --- LlamaIndex -----------------------------------------------------------------------------------


def _llama_index() -> list[Peer]:
    llms: Any = import_module("llama_index.core.llms")
    memory: Any = import_module("llama_index.core.memory")

    def build(history: Sequence[Message]) -> list[tuple[Any, list[int]]]:
        return [
            (
                llms.ChatMessage(
                    role=message["role"],
                    content=message["content"],
                    additional_kwargs={
                        key: message[key]
                        for key in ("tool_calls", "tool_call_id")
                        if key in message
                    },
                ),
                [at],
            )
            for at, message in enumerate(history)
        ]

    def tokens(text: str) -> range:
        return range(estimate(text))

    def cut(messages: list[Any], limit: int) -> list[Any]:
        kept = memory.ChatMemoryBuffer.from_defaults(
            chat_history=messages,
            token_limit=limit,
            tokenizer_fn=tokens,
        )
        found: list[Any] = kept.get()
        return found

    return [Peer("LlamaIndex, ChatMemoryBuffer", True, build, cut)]  # noqa: FBT003 - likewise


_FRAMEWORKS = {
    "AutoGen": _autogen,
    "Agent Framework": _agent_framework,
    "Semantic Kernel": _semantic_kernel,
    "LlamaIndex": _llama_index,
}


def installed() -> tuple[list[Peer], list[str]]:
    """The peers that are there, and a sentence for each framework that is not."""
    found: list[Peer] = []
    missing: list[str] = []
    for name, load in _FRAMEWORKS.items():
        try:
            found += load()
        except ImportError as error:
            missing.append(f"{name} is not measured ({error.name} is not installed): {INSTALL}")
    return found, missing


# --- the history in each dialect, message by message, as connectors write it ----------------------


def in_dialect(chat: Sequence[Message], dialect: str) -> list[Message]:
    """A chat in another dialect, with nothing mended; system messages are left to the request."""
    if dialect == "openai":
        return list(chat)
    found: list[Message] = []
    for message in chat:
        if message["role"] == "system":
            continue
        for made in _WRITERS[dialect](message):
            # Results that stand together are one message, where roles have to alternate.
            last = found[-1] if found else None
            key = "parts" if dialect == "gemini" else "content"
            is_result = message["role"] == "tool" and dialect != "openai-responses"
            if is_result and last is not None and last.get("_results"):
                last[key] = [*last[key], *made[key]]
            else:
                found.append({**made, "_results": is_result})
    return [{key: value for key, value in one.items() if key != "_results"} for one in found]


def _arguments(call: Message) -> Message:
    found: Message = json.loads(call["function"]["arguments"])
    return found


def _responses(message: Message) -> list[Message]:
    if message["role"] == "tool":
        return [
            {
                "type": "function_call_output",
                "call_id": message["tool_call_id"],
                "output": message["content"],
            }
        ]
    said = [{"role": message["role"], "content": message["content"]}] if message["content"] else []
    return said + [
        {
            "type": "function_call",
            "call_id": call["id"],
            "name": "read",
            "arguments": call["function"]["arguments"],
        }
        for call in message.get("tool_calls", ())
    ]


def _anthropic(message: Message) -> list[Message]:
    if message["role"] == "tool":
        block = {"type": "tool_result", "tool_use_id": message["tool_call_id"]}
        return [{"role": "user", "content": [{**block, "content": message["content"]}]}]
    said: list[Message] = (
        [{"type": "text", "text": message["content"]}] if message["content"] else []
    )
    said += [
        {"type": "tool_use", "id": call["id"], "name": "read", "input": _arguments(call)}
        for call in message.get("tool_calls", ())
    ]
    return [{"role": message["role"], "content": said}]


def _gemini(message: Message) -> list[Message]:
    if message["role"] == "tool":
        given = {"result": message["content"]}
        part = {"id": message["tool_call_id"], "name": "read", "response": given}
        return [{"role": "user", "parts": [{"functionResponse": part}]}]
    said: list[Message] = [{"text": message["content"]}] if message["content"] else []
    said += [
        {"functionCall": {"id": call["id"], "name": "read", "args": _arguments(call)}}
        for call in message.get("tool_calls", ())
    ]
    return [{"role": "model" if message["role"] == "assistant" else "user", "parts": said}]


def _bedrock(message: Message) -> list[Message]:
    if message["role"] == "tool":
        result = {
            "toolUseId": message["tool_call_id"],
            "content": [{"text": message["content"]}],
        }
        return [{"role": "user", "content": [{"toolResult": result}]}]
    said: list[Message] = [{"text": message["content"]}] if message["content"] else []
    said += [
        {"toolUse": {"toolUseId": call["id"], "name": "read", "input": _arguments(call)}}
        for call in message.get("tool_calls", ())
    ]
    return [{"role": message["role"], "content": said}]


_WRITERS: dict[str, Callable[[Message], list[Message]]] = {
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
