"""Agents of LangChain with a scripted model, for the tests of the bridges."""

# The peers are typed in part, and what they return is looked at as it comes.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportPrivateUsage=false, reportDeprecated=false

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool

import satchel
from satchel.langchain.exact import as_chat

if TYPE_CHECKING:
    from collections.abc import Sequence

COUNTER = satchel.counter("gpt-4o")
SYSTEM = "You are an archivist. Answer in one sentence."
GOAL = "Compare all reports. Never delete report 7."


class Scripted(BaseChatModel):
    """Answers by a script and remembers what it was asked.

    Its number of a call comes from what the script last said, so it goes on after a restart.
    """

    script: Any
    asked: list[list[BaseMessage]]
    bound: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **_: Any) -> Any:
        """Remembers the tools of each request."""
        self.bound.append([convert_to_openai_tool(one) for one in tools])
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 - the base's signature
        run_manager: Any = None,  # noqa: ARG002 - likewise
        **_: Any,
    ) -> ChatResult:
        self.asked.append(list(messages))
        reply = self.script(len(self.asked), messages)
        return ChatResult(generations=[ChatGeneration(message=reply)])


def scripted(script: Any) -> Scripted:
    return Scripted(script=script, asked=[], bound=[])


@tool
def read(number: int, why: str = "") -> str:  # noqa: ARG001 - models say why
    """Reads a report."""
    return report_of(number)


def report_of(number: int, lines: int = 40) -> str:
    head = f"report {number}\n"
    return head + "".join(
        f"line {at} of {number} has id R{number:03}-{at}\n" for at in range(lines)
    )


def call(name: str, number: int, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "args": arguments, "id": f"call_{name}_{number}"}


def steps_of(count: int, parallel: int = 1) -> Any:
    """A script: so many steps with calls, then a sentence."""

    def script(_: int, messages: list[BaseMessage]) -> AIMessage:
        # Where the run is, as a model would know it: from the last result.
        results = [one for one in messages if isinstance(one, ToolMessage)]
        at = int(str(results[-1].tool_call_id).rsplit("_", 1)[1]) + 1 if results else 0
        if at >= count * parallel:
            return AIMessage(f"All {count} steps are done.")
        calls = [
            call("read", at + one, number=at + one, why="it is next " * 6)
            for one in range(parallel)
        ]
        return AIMessage(f"Reading report {at}.", tool_calls=calls)

    return script


def agent_of(
    model: Scripted,
    context: Any,
    *,
    saver: Any = None,
    tools: Sequence[BaseTool] = (read,),
    system: str | None = SYSTEM,
    before: Sequence[Any] = (),
    **more: Any,
) -> Any:
    middleware = [*before, *([] if context is None else [context])]
    make: Any = create_agent
    return make(
        model, list(tools), system_prompt=system, checkpointer=saver, middleware=middleware, **more
    )


def config(thread: str = "t1") -> dict[str, Any]:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 2_000}


def errors_in(messages: Sequence[BaseMessage]) -> list[str]:
    """What a provider would refuse, in the format of the request and converted to another."""
    chat = [as_chat(message) for message in messages]
    found = [one.code for one in satchel.lint(chat, "openai") if one.severity == "error"]
    system = [message["content"] for message in chat if message["role"] == "system"]
    rest = [message for message in chat if message["role"] != "system"]
    other = satchel.convert(rest, "openai", "anthropic")
    linted = satchel.lint(other.messages, "anthropic", system="\n".join(system) or None)
    return found + [one.code for one in linted if one.severity == "error"]


def tokens_of(messages: Sequence[BaseMessage], tools: Sequence[Any] = ()) -> int:
    chat = [as_chat(message) for message in messages]
    return COUNTER.count_messages(chat, tools=list(tools) or None, dialect="openai").total


def same(first: Sequence[BaseMessage], second: Sequence[BaseMessage]) -> bool:
    """Whether two lists say the same; notes of the packer have no ids."""

    def plain(message: BaseMessage) -> str:
        return json.dumps(as_chat(message), sort_keys=True, default=str)

    return list(map(plain, first)) == list(map(plain, second))


def is_prefix(first: Sequence[BaseMessage], second: Sequence[BaseMessage]) -> bool:
    return same(first, second[: len(first)])
