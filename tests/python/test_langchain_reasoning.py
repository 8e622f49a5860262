"""Reasoning that is bound to everything before it, in agents of LangChain.

The scripted model signs what it thinks with a digest of what it was asked, and looks at each
request as its provider would: a signature behind anything else is refused.
"""

# The peers are typed in part, and what they return is looked at as it comes.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from langchain_agents import GOAL, agent_of, call, config, errors_in, scripted, tokens_of
from satchel import models
from satchel.langchain import ContextMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

BOUND, FREE = "claude-opus-5-5", "gpt-4o"
BUDGET = 6_000
STEPS = 62


class BrokenError(Exception):
    """A process that ends in the middle."""


def signature_of(messages: Sequence[BaseMessage]) -> str:
    """What a model that reads these would sign with; ids are the framework's own."""
    told = [
        (one.type, getattr(one, "tool_calls", None), getattr(one, "tool_call_id", None))
        for one in messages
    ]
    contents = [one.content for one in messages]
    text = json.dumps([told, contents], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=9).hexdigest()


def thought(number: int, signature: str, *, is_standard: bool) -> dict[str, Any]:
    text = f"thought {number} " * 9
    if is_standard:
        return {"type": "reasoning", "reasoning": text, "extras": {"signature": signature}}
    return {"type": "thinking", "thinking": text, "signature": signature}


def thinking(
    broken_at: int = 0, *, is_standard: bool = False, only_thought: bool = False, turns: int = 0
) -> Any:
    """A script of steps that think first: in Anthropic's blocks, or in LangChain's own."""

    def script(number: int, messages: list[BaseMessage]) -> AIMessage:
        results = [one for one in messages if isinstance(one, ToolMessage)]
        at = int(str(results[-1].tool_call_id).rsplit("_", 1)[1]) + 1 if results else 0
        if number == broken_at:
            raise BrokenError
        signed = thought(at, signature_of(messages), is_standard=is_standard)
        is_over = at >= STEPS or (turns and at and at % turns == 0 and messages[-1] is results[-1])
        if is_over:
            return AIMessage([signed, {"type": "text", "text": "All is done."}])
        asked = call("read", at, number=at, why="it is next")
        used = {
            "type": "tool_use",
            "id": asked["id"],
            "name": asked["name"],
            "input": asked["args"],
        }
        texts = [] if only_thought else [{"type": "text", "text": f"Reading report {at}."}]
        return AIMessage([signed, *texts, used], tool_calls=[asked])

    return script


def signatures(message: BaseMessage) -> list[str]:
    content: Any = message.content
    if not isinstance(message, AIMessage) or isinstance(content, str):
        return []
    found = [one.get("signature") or one.get("extras", {}).get("signature") for one in content]
    return [one for one in found if one]


def broken_bonds(messages: Sequence[BaseMessage]) -> list[int]:
    """Which messages hold reasoning that was thought behind something else."""
    return [
        at
        for at, message in enumerate(messages)
        for one in signatures(message)
        if one != signature_of(messages[:at])
    ]


def context(model: str = BOUND) -> ContextMiddleware:
    return ContextMiddleware(model=model, budget=BUDGET)


def check(requests: Sequence[Sequence[BaseMessage]], bound: Sequence[Any]) -> None:
    for messages, tools in zip(requests, bound, strict=True):
        assert errors_in(messages) == []
        assert broken_bonds(messages) == []
        assert tokens_of(messages, tools) <= BUDGET
        assert GOAL in [message.content for message in messages]
        calls = {one["id"] for m in messages if isinstance(m, AIMessage) for one in m.tool_calls}
        results = [one.tool_call_id for one in messages if isinstance(one, ToolMessage)]
        assert calls == set(results)


def test_the_model_is_bound_and_the_other_is_not() -> None:
    assert models.get(BOUND).prefix_bound
    assert not models.get(FREE).prefix_bound


@pytest.mark.parametrize("only_thought", [False, True])
@pytest.mark.parametrize("is_standard", [False, True])
def test_no_request_has_reasoning_behind_anything_else(
    tmp_path: Path, is_standard: bool, only_thought: bool
) -> None:
    """In a loop of one turn, over a restart: what a compaction unbinds goes at once."""
    options = {"is_standard": is_standard, "only_thought": only_thought}
    database = str(tmp_path / "agent.db")
    with SqliteSaver.from_conn_string(database) as saver:
        first = scripted(thinking(STEPS // 2, **options))
        with pytest.raises(BrokenError):
            agent_of(first, context(), saver=saver).invoke({"messages": [("user", GOAL)]}, config())
    with SqliteSaver.from_conn_string(database) as saver:
        second = scripted(thinking(**options))
        found = agent_of(second, context(), saver=saver).invoke(None, config())
    requests = [*first.asked, *second.asked]
    assert len(requests) == STEPS + 2
    check(requests, [*first.bound, *second.bound])
    assert "All is done." in str(found["messages"][-1].content)
    # Reasoning that is still bound stays, to the byte.
    kept = [sum(len(signatures(one)) for one in messages) for messages in requests]
    assert max(kept) >= 3
    assert any(after < before for before, after in itertools.pairwise(kept))


def test_several_turns_and_the_asynchronous_path() -> None:
    model = scripted(thinking(turns=20))
    agent = agent_of(model, context(), saver=InMemorySaver())

    async def run() -> None:
        await agent.ainvoke({"messages": [("user", GOAL)]}, config())
        for number in range(3):
            await agent.ainvoke({"messages": [("user", f"Go on, {number}.")]}, config())

    asyncio.run(run())
    assert len(model.asked) > STEPS
    check(model.asked, model.bound)
    assert any(signatures(one) for messages in model.asked[-9:] for one in messages)


def test_reasoning_of_a_model_that_binds_none_stays() -> None:
    model = scripted(thinking())
    agent = agent_of(model, context(FREE), saver=InMemorySaver())
    agent.invoke({"messages": [("user", GOAL)]}, config())
    assert any(broken_bonds(messages) for messages in model.asked)
