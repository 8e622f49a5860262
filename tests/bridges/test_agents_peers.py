"""What sessions and filters of the OpenAI Agents SDK do wrong, and the bridge does not."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import ModelSettings, RunConfig, Runner, SQLiteSession
from agents.extensions import ToolOutputTrimmer

import satchel
from agent_loops import (
    MODEL,
    answer_step,
    check_calls,
    collected,
    errors_in,
    scripted,
    tool_run,
)
from satchel.openai_agents import SatchelSession, context_filter, session_input_callback

BUDGET = 6_000


def tokens_of(items: Any) -> int:
    return satchel.counter(MODEL).count_messages(items, dialect="openai-responses").total


def test_a_run_of_one_user_message_shrinks() -> None:
    # ToolOutputTrimmer protects by user turns, so a run of one turn is never trimmed.
    async def run() -> None:
        sizes: list[list[int]] = []
        pack = context_filter(model=MODEL, budget=BUDGET)
        for chosen in (ToolOutputTrimmer(recent_turns=1), pack):
            agent, model = scripted(tool_run(0, 30))
            settings = RunConfig(call_model_input_filter=chosen, tracing_disabled=True)
            await Runner.run(agent, "Go.", run_config=settings, max_turns=40)
            sizes.append([tokens_of(call.input) for call in model.calls])
        theirs, ours = sizes
        assert theirs == sorted(theirs)
        assert theirs[-1] > 3 * BUDGET
        assert max(ours) <= BUDGET

    asyncio.run(run())


def test_an_output_whose_call_was_never_stored() -> None:
    # openai-agents#4827: it is sent with every later request, and each of them is refused.
    lost: Any = {"type": "function_call_output", "call_id": "never", "output": "42 rows"}

    async def run() -> None:
        bare = RunConfig(tracing_disabled=True)
        windows, note = collected()
        pack = context_filter(model=MODEL, budget=BUDGET, on_window=note)
        ours = RunConfig(call_model_input_filter=pack, tracing_disabled=True)
        session = SQLiteSession("s", ":memory:")
        own = SatchelSession("s", "memory://orphans")
        for store in (session, own):
            await store.add_items([{"role": "user", "content": "Hi."}, lost])
        agent, model = scripted([answer_step(0)])
        await Runner.run(agent, "Go.", session=session, run_config=bare)
        assert errors_in(model.calls[0].input) == ["or2_orphan_output"]
        agent, model = scripted(tool_run(0, 3))
        await Runner.run(agent, "Go.", session=own, run_config=ours)
        check_calls(model.calls, windows, BUDGET)
        # Not thrown away either: as data, and in the session as it was.
        assert "42 rows" in json.dumps(model.calls[0].input)
        assert (await own.get_items())[1] == lost
        session.close()

    asyncio.run(run())


def test_reasoning_that_the_provider_does_not_have() -> None:
    # openai-agents#3514: with store=False an id of reasoning leads nowhere, and ids of what it led
    # to ask for it.
    def history(encrypted: str | None) -> list[Any]:
        return [
            {"role": "user", "content": "Hi."},
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": encrypted},
            {
                "type": "function_call",
                "id": "fc_1",
                "call_id": "c",
                "name": "read_file",
                "arguments": "{}",
            },
            {"type": "function_call_output", "call_id": "c", "output": "ok"},
            {
                "type": "message",
                "id": "msg_2",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "Done.", "annotations": []}],
            },
        ]

    async def sent(items: list[Any], *, store: bool | None) -> list[Any]:
        session = SatchelSession("s", "memory://reasoning")
        await session.clear_session()
        await session.add_items(items)
        agent, model = scripted([answer_step(9)], model_settings=ModelSettings(store=store))
        settings = RunConfig(
            call_model_input_filter=context_filter(model=MODEL), tracing_disabled=True
        )
        await Runner.run(agent, "Go.", session=session, run_config=settings)
        found: list[Any] = model.calls[0].input
        assert errors_in(found) == []
        return found[:-1]

    async def run() -> None:
        # What can be found or read stays, byte for byte.
        for items, store in ((history(None), None), (history("signed"), False)):
            assert await sent(items, store=store) == items
        found = await sent(history(None), store=False)
        assert [item.get("type") for item in found] == [
            None,
            "function_call",
            "function_call_output",
            "message",
        ]
        assert "id" not in found[1]
        # Another response, without reasoning: its id asks for nothing.
        assert found[3]["id"] == "msg_2"
        # Reasoning whose id the SDK has left out already cannot be found either.
        bare = history(None)
        del bare[1]["id"]
        assert [item.get("type") for item in await sent(bare, store=None)][1] == "function_call"

    asyncio.run(run())


def test_a_callback_that_shortens_is_stored_again_and_ours_is_not() -> None:
    # openai-agents#4069: what a callback returns that is no item of the history is stored as new.
    def shortening(history: list[Any], new: list[Any]) -> list[Any]:
        return [{**item, "output": "cut"} if "output" in item else item for item in history] + new

    async def stored(callback: Any) -> list[int]:
        session = SatchelSession("s", "memory://callbacks")
        await session.clear_session()
        pack = context_filter(model=MODEL, budget=BUDGET)
        settings = RunConfig(
            session_input_callback=callback, call_model_input_filter=pack, tracing_disabled=True
        )
        lengths: list[int] = []
        for first in (0, 10, 20, 30):
            agent, _ = scripted(tool_run(first, 4))
            await Runner.run(agent, f"Part {first}.", session=session, run_config=settings)
            outputs = [item for item in await session.get_items() if "output" in item]
            lengths.append(len(outputs))
        return lengths

    # A first step of each run has two calls.
    assert asyncio.run(stored(session_input_callback)) == [5, 10, 15, 20]
    assert asyncio.run(stored(shortening))[-1] > 20


def test_none_does_not_mean_damaged_and_zero_is_not_all() -> None:
    # openai-agents#3304 and #4331, at the level of the protocol: see test_agents_session.py for
    # every store. Here: what a run sees of a session that is limited to nothing.
    async def run() -> None:
        session = SatchelSession("s", "memory://nothing", session_settings={"limit": 0})
        await session.add_items([{"role": "user", "content": "earlier"}])
        agent, model = scripted([answer_step(0)])
        settings = RunConfig(tracing_disabled=True)
        assert await session.get_items() == []
        await Runner.run(agent, "Go.", session=session, run_config=settings)
        assert "earlier" not in json.dumps(model.calls[0].input)
        assert len(await session.get_items(limit=10)) == 3

    asyncio.run(run())
