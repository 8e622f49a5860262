"""Whole runs of the OpenAI Agents SDK: each call's window, what is stored, restarts."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool, handoff
from agents.exceptions import UserError
from agents.run_config import CallModelData, ModelInputData
from agents.testing import ModelStep, ScriptedModel, function_call
from pydantic import BaseModel

import satchel
from agent_loops import (
    MODEL,
    answer_step,
    check_calls,
    collected,
    errors_in,
    read_file,
    scripted,
    tool_run,
    tool_step,
)
from satchel.openai_agents import SatchelSession, context_filter, session_input_callback

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 6_000
STEPS = 64


def config(**options: Any) -> tuple[RunConfig, list[satchel.Window]]:
    windows, note = collected()
    pack = context_filter(model=MODEL, budget=BUDGET, on_window=note)
    return RunConfig(call_model_input_filter=pack, tracing_disabled=True, **options), windows


def test_a_long_run_over_every_store(store_url: str, tmp_path: Path) -> None:
    async def run() -> None:
        settings, windows = config()
        agent, model = scripted(tool_run(0, STEPS))
        async with SatchelSession(f"long-{tmp_path.name}", store_url) as session:
            result = await Runner.run(
                agent, "Fix the build.", session=session, run_config=settings, max_turns=STEPS + 1
            )
            assert result.final_output == "Done."
            model.assert_complete()
            check_calls(model.calls, windows, BUDGET)
            assert any(window.report.steps["gone"] for window in windows)
            # Stored whole: what the windows left out is still there.
            items = await session.get_items()
            outputs = [item for item in items if item.get("type") == "function_call_output"]
            assert len(outputs) == STEPS + len(range(0, STEPS, 5))
            assert all(len(item["output"].splitlines()) == 60 for item in outputs)
            assert [item.get("role") for item in items].count("user") == 1
            await session.clear_session()

    asyncio.run(run())


def test_a_restart_in_the_middle_goes_on_with_equal_bytes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"

    async def half(name: str, first: int, steps: int, prompt: str) -> list[Any]:
        # A filter, a session and a model of its own, as a process of its own would have.
        settings, windows = config()
        agent, model = scripted(tool_run(first, steps))
        async with SatchelSession(name, url) as session:
            await Runner.run(
                agent, prompt, session=session, run_config=settings, max_turns=steps + 1
            )
        check_calls(model.calls, windows, BUDGET)
        return [call.input for call in model.calls]

    async def whole() -> list[Any]:
        settings, windows = config()
        agent, model = scripted([*tool_run(0, 34), *tool_run(40, 34)])
        async with SatchelSession("whole", url) as session:
            for prompt in ("Fix the build.", "And the tests."):
                await Runner.run(agent, prompt, session=session, run_config=settings, max_turns=40)
        check_calls(model.calls, windows, BUDGET)
        return [call.input for call in model.calls]

    first = asyncio.run(half("halves", 0, 34, "Fix the build."))
    second = asyncio.run(half("halves", 40, 34, "And the tests."))
    assert json.dumps(asyncio.run(whole())) == json.dumps([*first, *second])


def test_a_run_that_died_with_open_calls_goes_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"

    async def run() -> None:
        settings, windows = config()
        failing, _ = scripted(
            [*[tool_step(at) for at in range(20)], ModelStep.raise_error(OSError("cut off"))]
        )
        async with SatchelSession("s", url) as session:
            with pytest.raises(OSError, match="cut off"):
                await Runner.run(failing, "Go.", session=session, run_config=settings, max_turns=30)
        windows.clear()
        agent, model = scripted(tool_run(20, 44))
        async with SatchelSession("s", url) as session:
            # Half of a step, as a process leaves it that died before its results were stored.
            lost = {
                "type": "function_call",
                "call_id": "lost",
                "name": "read_file",
                "arguments": "{}",
            }
            await session.add_items([lost])
            await Runner.run(agent, "Go on.", session=session, run_config=settings, max_turns=50)
        check_calls(model.calls, windows, BUDGET)
        assert "src/part_19_0.py" in json.dumps(model.calls[0].input)

    asyncio.run(run())


def test_streamed_runs_and_sync_runs(tmp_path: Path) -> None:
    settings, windows = config()
    agent, model = scripted([*tool_run(0, STEPS), *tool_run(100, STEPS)])

    async def streamed() -> None:
        session = SatchelSession("s", f"sqlite:///{tmp_path / 'agent.db'}")
        result = Runner.run_streamed(
            agent, "Go.", session=session, run_config=settings, max_turns=STEPS + 1
        )
        async for _ in result.stream_events():
            pass
        await session.close()

    loop = asyncio.get_event_loop()
    loop.run_until_complete(streamed())
    session = SatchelSession("s", f"sqlite:///{tmp_path / 'agent.db'}")
    Runner.run_sync(agent, "Again.", session=session, run_config=settings, max_turns=STEPS + 1)
    loop.run_until_complete(session.close())
    check_calls(model.calls, windows, BUDGET)


def test_the_prefix_stays_between_compactions() -> None:
    settings, windows = config()
    agent, model = scripted(tool_run(0, STEPS))
    asyncio.run(Runner.run(agent, "Go.", run_config=settings, max_turns=STEPS + 1))
    calls = [call.input for call in model.calls]
    kept = rewritten = 0
    for before, after, one, other in zip(calls, calls[1:], windows, windows[1:], strict=False):
        if one.report.compactions == other.report.compactions:
            assert after[: len(before)] == before
            kept += 1
        else:
            rewritten += 1
    assert kept > rewritten > 0


def test_items_stay_the_same_objects_and_unchanged() -> None:
    async def run() -> None:
        pack = context_filter(model=MODEL, budget=900)
        agent, _ = scripted([])
        items: list[Any] = [{"role": "user", "content": "Go."}]
        for at in range(30):
            items.append(
                {"type": "function_call", "call_id": f"c{at}", "name": "f", "arguments": "{}"}
            )
            items.append(
                {"type": "function_call_output", "call_id": f"c{at}", "output": f"line {at}\n" * 30}
            )
            before = json.dumps(items)
            data = CallModelData(ModelInputData(list(items), "Be brief."), agent, None)
            found = (await pack(data)).input
            assert json.dumps(items) == before
            known = {id(item) for item in items}
            same = [item for item in found if id(item) in known]
            equal = [item for item in found if item in items]
            assert len(same) == len(equal)
            assert found[0] is items[0]
            assert found[-1] is items[-1]
        # Somebody changes an item in place: what is counted is what is there now.
        items[-1]["output"] = "short"
        data = CallModelData(ModelInputData(list(items), "Be brief."), agent, None)
        assert (await pack(data)).input[-1] == items[-1]

    asyncio.run(run())


def test_the_budget_is_that_of_the_request() -> None:
    class Answer(BaseModel):
        verdict: str
        reasons: list[str]

    async def run() -> None:
        windows, note = collected()
        pack = context_filter(model=MODEL, budget=BUDGET, on_window=note)
        settings = RunConfig(call_model_input_filter=pack, tracing_disabled=True)
        helper = Agent(name="helper", handoff_description="Helps. " * 40)
        plain, _ = scripted([answer_step(0)])
        rich, _ = scripted(
            [
                ModelStep(output=[function_call("read_file", {"path": "a"}, call_id="call_a")]),
                answer_step(1, '{"verdict": "ok", "reasons": []}'),
            ],
            output_type=Answer,
            handoffs=[helper, handoff(Agent(name="other"))],
        )
        await Runner.run(plain, "Go.", run_config=settings)
        await Runner.run(rich, "Go.", run_config=settings)
        assert windows[1].report.tools_tokens > windows[0].report.tools_tokens + 100
        assert windows[0].report.tools_tokens > 0
        assert windows[0].report.system_tokens > 0

    asyncio.run(run())


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_page_is_read_within_the_run(is_streamed: bool) -> None:
    async def run() -> None:
        windows, note = collected()
        pack = context_filter(model=MODEL, budget=2_500, on_window=note)
        settings = RunConfig(call_model_input_filter=pack, tracing_disabled=True)

        def ask(_: Any) -> ModelStep:
            # The model follows the pointer of the newest page of a file.
            pages = [page for page in windows[-1].pages if page.message is not None]
            return ModelStep(
                output=[
                    function_call(
                        "page_in",
                        {"pointer": pages[-1].pointer, "pattern": "ERROR"},
                        call_id="call_page",
                        item_id="fc_page",
                    )
                ]
            )

        steps = [*[tool_step(at) for at in range(12)], ModelStep.respond(ask)]
        agent, model = scripted([*steps, answer_step(99)], tools=[pack.page_tool()])
        if is_streamed:
            result = Runner.run_streamed(agent, "Go.", run_config=settings, max_turns=20)
            async for _ in result.stream_events():
                pass
        else:
            await Runner.run(agent, "Go.", run_config=settings, max_turns=20)
        last = model.calls[-1].input[-1]
        assert last["call_id"] == "call_page"
        assert "ERROR src/part_" in last["output"]
        assert "shown as data" in last["output"]
        check_calls(model.calls, windows, 2_500)

    asyncio.run(run())


def test_no_page_of_another_run_is_read() -> None:
    async def run() -> None:
        windows, note = collected()
        pack = context_filter(model=MODEL, budget=2_500, on_window=note)
        settings = RunConfig(call_model_input_filter=pack, tracing_disabled=True)
        first, _ = scripted(tool_run(0, 12))
        pointer = ""

        async def one() -> None:
            nonlocal pointer
            await Runner.run(first, "Go.", run_config=settings, max_turns=20)
            pointer = next(page.pointer for page in windows[-1].pages if page.message is not None)

        await asyncio.create_task(one())
        call = function_call("page_in", {"pointer": pointer}, call_id="call_p", item_id="fc_p")
        other, model = scripted(
            [ModelStep(output=[call]), answer_step(1)], tools=[pack.page_tool()]
        )
        await asyncio.create_task(_done(Runner.run(other, "Another thing.", run_config=settings)))
        assert "failed" in model.calls[-1].input[-1]["output"]

    asyncio.run(run())


async def _done(work: Any) -> None:
    await work


def test_runs_at_once_share_a_filter() -> None:
    async def run() -> None:
        settings, windows = config()
        runs = [scripted(tool_run(0, 20)) for _ in range(4)]
        # Each from a conversation that the filter has just seen.
        seed, _ = scripted(tool_run(0, 20))
        await Runner.run(seed, "Go.", run_config=settings, max_turns=30)
        windows.clear()
        await asyncio.gather(
            *(Runner.run(agent, "Go.", run_config=settings, max_turns=30) for agent, _ in runs)
        )
        inputs = [[call.input for call in model.calls] for _, model in runs]
        assert inputs[0] == inputs[1] == inputs[2] == inputs[3]
        assert all(errors_in(one) == [] for one in inputs[0])

    asyncio.run(run())


def test_a_conversation_that_the_server_keeps_is_passed_on() -> None:
    async def run() -> None:
        settings, windows = config()
        agent, model = scripted(tool_run(0, 6))
        await Runner.run(agent, "Go.", run_config=settings, max_turns=10, conversation_id="conv_1")
        # The first request is packed, then only what is new goes out, as it is.
        assert len(windows) == 1
        for call in model.calls[1:]:
            assert {item["type"] for item in call.input} == {"function_call_output"}

    asyncio.run(run())


def test_what_cannot_fit_is_an_error_with_figures() -> None:
    async def run() -> None:
        pack = context_filter(model=MODEL, budget=300)
        settings = RunConfig(call_model_input_filter=pack, tracing_disabled=True)
        agent, model = scripted([answer_step(0)])
        session = SatchelSession("s", "memory://over")
        with pytest.raises(satchel.BudgetError) as caught:
            await Runner.run(agent, "word " * 900, session=session, run_config=settings)
        assert caught.value.limit == 300
        assert caught.value.value is not None
        assert caught.value.value > 300
        assert model.calls == ()
        assert len(await session.get_items()) == 1

    asyncio.run(run())


def test_made_up_ids_are_not_sent_back() -> None:
    async def run() -> None:
        settings, windows = config()
        steps = [
            ModelStep(
                output=[
                    function_call(
                        "read_file", {"path": "a"}, call_id=f"call_{at}", item_id="__fake_id__"
                    )
                ]
            )
            for at in range(8)
        ]
        agent, model = scripted([*steps, answer_step(9)])
        await Runner.run(agent, "Go.", run_config=settings)
        check_calls(model.calls, windows, BUDGET)

    asyncio.run(run())


def test_the_model_is_the_agent_s_unless_one_is_named() -> None:
    async def run() -> None:
        windows, note = collected()
        pack = context_filter(budget=BUDGET, on_window=note)

        async def ask(agent: Agent[Any]) -> ModelInputData:
            data: CallModelData[Any] = CallModelData(
                ModelInputData([{"role": "user", "content": "Hi."}], None), agent, None
            )
            found: ModelInputData = await pack(data)
            return found

        await ask(Agent(name="a", model="litellm/anthropic/claude-sonnet-4-5"))
        await ask(Agent(name="b"))
        assert windows[0].model == "litellm/anthropic/claude-sonnet-4-5"
        assert windows[1].model.startswith("gpt-")
        with pytest.raises(satchel.InputError) as caught:
            await ask(Agent(name="c", model=ScriptedModel()))
        assert caught.value.code == "unknown_model"

    asyncio.run(run())


@pytest.mark.parametrize(
    "options",
    [
        {"model": 7},
        {"model": "no such model"},
        {"budget": 0},
        {"budget": "many"},
        {"budget": 100, "reserve_tokens": 10},
        {"reserve_tokens": -1},
        {"policy": 7},
        {"policy": "no such policy"},
        {"server_managed": "no"},
        {"on_window": "print"},
        {"counter": 7},
    ],
)
def test_wrong_settings_are_refused_when_they_are_given(options: dict[str, Any]) -> None:
    with pytest.raises(satchel.InputError):
        context_filter(**options)


def test_a_run_that_waits_for_approval_goes_on(tmp_path: Path) -> None:
    @function_tool(needs_approval=True)
    def deploy() -> str:
        """Deploys it."""
        return "deployed"

    async def run() -> None:
        settings, windows = config()
        call = function_call("deploy", {}, call_id="call_d", item_id="fc_d")
        steps = [tool_step(at) for at in range(12)]
        agent, model = scripted([*steps, ModelStep(output=[call]), answer_step(99)], tools=[deploy])
        async with SatchelSession("s", f"sqlite:///{tmp_path / 'agent.db'}") as session:
            first = await Runner.run(
                agent, "Go.", session=session, run_config=settings, max_turns=20
            )
            [waiting] = first.interruptions
            state = first.to_state()
            state.approve(waiting)
            second = await Runner.run(agent, state, session=session, run_config=settings)
            assert second.final_output == "Done."
            items = await session.get_items()
            assert [item.get("call_id") for item in items].count("call_d") == 2
        check_calls(model.calls, windows, BUDGET)

    asyncio.run(run())


def test_open_calls_of_the_newest_step_get_a_placeholder() -> None:
    async def run() -> None:
        pack = context_filter(model=MODEL)
        agent, _ = scripted([])
        call: Any = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
        data = CallModelData(
            ModelInputData([{"role": "user", "content": "Go."}, call], None), agent, None
        )
        found = (await pack(data)).input
        assert errors_in(found) == []
        assert [item.get("type") for item in found] == [
            None,
            "function_call",
            "function_call_output",
        ]

    asyncio.run(run())


def test_the_callback_stores_nothing_twice() -> None:
    async def run() -> None:
        settings, windows = config(session_input_callback=session_input_callback)
        session = SatchelSession("s", "memory://callback")
        lost: Any = {"type": "function_call_output", "call_id": "gone", "output": "lost"}
        await session.add_items([lost])
        for first in (0, 30, 60):
            agent, model = scripted(tool_run(first, 20))
            await Runner.run(
                agent, f"Part {first}.", session=session, run_config=settings, max_turns=30
            )
            assert all(errors_in(call.input) == [] for call in model.calls)
        items = await session.get_items()
        assert items[0] == lost
        assert sum(item.get("role") == "user" for item in items) == 3
        ids = [item["id"] for item in items if "id" in item]
        assert len(ids) == len(set(ids))
        assert not any("satchel" in json.dumps(item) for item in items)
        assert len(windows) == 63

    asyncio.run(run())


def test_a_filter_of_the_wrong_kind_is_the_sdk_s_error() -> None:
    async def run() -> None:
        def broken(data: CallModelData[Any]) -> Any:
            return data

        agent, _ = scripted([answer_step(0)])
        settings = RunConfig(call_model_input_filter=broken, tracing_disabled=True)
        with pytest.raises(UserError):
            await Runner.run(agent, "Go.", run_config=settings)

    asyncio.run(run())


def test_the_tool_is_found_by_its_name() -> None:
    assert read_file.name == "read_file"
    assert context_filter(model=MODEL).page_tool().name == "page_in"
