"""Whole runs of pydantic-ai: each request's window, what the history keeps, restarts."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, ToolReturn
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

import satchel
from satchel.pydantic_ai import ContextCapability, history_processor
from satchel.pydantic_ai.packing import Packer, Settings
from typed_loops import MODEL, Script, check_requests, collected, errors_in, pairs_of, read_file

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo

BUDGET = 6_000
WHEN = datetime(2026, 11, 30, tzinfo=UTC)
STEPS = 64
LIMITS = UsageLimits(request_limit=None)
PNG = (
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00"
    b"\x1f\x15\xc4\x89\x00\x00\x00\nIDATx\x9cc\x00\x01\x00\x00\x05\x00\x01\r\n-\xb4\x00\x00\x00"
    b"\x00IEND\xaeB`\x82"
)


def packing(**options: Any) -> tuple[ContextCapability, list[satchel.Window]]:
    windows, note = collected()
    given: dict[str, Any] = {"model": MODEL, "budget": BUDGET, **options}
    return ContextCapability(on_window=note, **given), windows


def texts_of(messages: list[ModelMessage]) -> list[str]:
    return [str(part) for message in messages for part in message.parts]


def test_a_long_run() -> None:
    context, windows = packing()
    script = Script(STEPS)
    result = script.agent(context).run_sync("Fix the build.", usage_limits=LIMITS)
    assert result.output == "Done."
    check_requests(script.requests, windows, BUDGET)
    assert windows[-1].report.steps["gone"] > 0
    # Only requests were packed: the history has everything, and all of it is new.
    history = result.all_messages()
    calls, results = pairs_of(history)
    assert calls == results
    assert len(calls) == STEPS + len(range(0, STEPS, 5))
    assert len(result.new_messages()) == len(history) == 2 * STEPS + 2
    assert all("satchel" not in text for text in texts_of(history))


@pytest.mark.parametrize("is_async", [False, True])
def test_a_restart_in_the_middle_goes_on_with_equal_requests(
    tmp_path: Path, is_async: bool
) -> None:
    stored = tmp_path / "history.json"

    def half(first: int, prompt: str) -> list[list[ModelMessage]]:
        # A capability, an agent and a model of its own, as a process of its own would have.
        context, windows = packing()
        script = Script(34, first=first)
        before: list[ModelMessage] = []
        if stored.exists():
            before = ModelMessagesTypeAdapter.validate_json(stored.read_bytes())
        agent = script.agent(context)
        given: dict[str, Any] = {"message_history": before, "usage_limits": LIMITS}
        if is_async:
            result = asyncio.get_event_loop().run_until_complete(agent.run(prompt, **given))
        else:
            result = agent.run_sync(prompt, **given)
        stored.write_bytes(result.all_messages_json())
        check_requests(script.requests, windows, BUDGET)
        return script.requests

    first, second = half(0, "Fix the build."), half(40, "And the tests.")
    stored.unlink()
    context, windows = packing()
    scripts = Script(34), Script(34, first=40)
    one = scripts[0].agent(context).run_sync("Fix the build.", usage_limits=LIMITS)
    scripts[1].agent(context).run_sync(
        "And the tests.", message_history=one.all_messages(), usage_limits=LIMITS
    )
    assert len(windows) == 70
    whole = [*scripts[0].requests, *scripts[1].requests]
    halves = [*first, *second]
    assert [plain(request) for request in whole] == [plain(request) for request in halves]


def plain(messages: list[ModelMessage]) -> list[list[tuple[Any, ...]]]:
    """What of messages a provider sees; times and ids of runs differ."""
    return [
        [
            (
                part.part_kind,
                getattr(part, "content", None),
                getattr(part, "args", None),
                getattr(part, "tool_call_id", None),
            )
            for part in message.parts
        ]
        for message in messages
    ]


def test_the_history_itself_becomes_the_window_if_asked_to() -> None:
    context, windows = packing(persist=True)
    script = Script(STEPS)
    result = script.agent(context).run_sync("Fix the build.", usage_limits=LIMITS)
    check_requests(script.requests, windows, BUDGET)
    assert len(result.all_messages()) < 2 * STEPS
    assert result.all_messages()[:-1] == script.requests[-1]


def test_the_history_processor() -> None:
    windows, note = collected()
    processor = history_processor(model=MODEL, budget=BUDGET, on_window=note)
    script = Script(STEPS)
    agent = script.agent(ProcessHistory(processor))
    result = agent.run_sync("Fix the build.", usage_limits=LIMITS)
    assert result.output == "Done."
    check_requests(script.requests, windows, BUDGET)
    assert windows[0].report.system_tokens > 0


def test_the_prefix_stays_between_compactions() -> None:
    context, windows = packing()
    script = Script(STEPS)
    script.agent(context).run_sync("Go.", usage_limits=LIMITS)
    kept = rewritten = 0
    requests = script.requests
    for at in range(len(requests) - 1):
        if windows[at].report.compactions == windows[at + 1].report.compactions:
            before = plain(requests[at])
            assert plain(requests[at + 1])[: len(before)] == before
            kept += 1
        else:
            rewritten += 1
    assert kept > rewritten > 0


def test_untouched_messages_are_the_same_objects_and_nothing_is_changed() -> None:
    context, _ = packing()
    script = Script(40)
    result = script.agent(context).run_sync("Go.", usage_limits=LIMITS)
    history = {id(message): message for message in result.all_messages()}
    same = [message for message in script.requests[-1] if id(message) in history]
    assert len(same) >= 5
    fresh = Script(40)
    bare = fresh.agent().run_sync("Go.", usage_limits=LIMITS)
    assert plain(bare.all_messages()) == plain(result.all_messages())


def test_a_page_is_read_by_the_model() -> None:
    context, windows = packing(budget=2_500)
    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert "page_in" in [tool.name for tool in info.function_tools]
        number = sum(isinstance(message, ModelResponse) for message in messages)
        seen[:] = texts_of([messages[-1]])
        if len(windows) <= 12:
            arguments: dict[str, Any] = {"path": f"src/part_{len(windows)}.py"}
            name = "read_file"
        elif len(windows) == 13:
            pages = [page for page in windows[-1].pages if page.message is not None]
            arguments, name = {"pointer": pages[-1].pointer, "pattern": "ERROR"}, "page_in"
        else:
            return ModelResponse(parts=[TextPart(f"Done after {number}.")])
        return ModelResponse(parts=[ToolCallPart(name, arguments, tool_call_id=f"c{len(windows)}")])

    agent = Agent(FunctionModel(answer), tools=[read_file], capabilities=[context])
    agent.run_sync("Go.", usage_limits=LIMITS)
    assert "ERROR src/part_" in seen[0]
    assert "shown as data" in seen[0]


def test_no_page_of_another_run_is_read() -> None:
    context, windows = packing(budget=2_500)
    Script(12).agent(context).run_sync("Go.", usage_limits=LIMITS)
    pointer = next(page.pointer for page in windows[-1].pages if page.message is not None)
    seen: list[str] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        if len(messages) > 1:
            seen.extend(texts_of([messages[-1]]))
            return ModelResponse(parts=[TextPart("Done.")])
        return ModelResponse(parts=[ToolCallPart("page_in", {"pointer": pointer})])

    Agent(FunctionModel(answer), capabilities=[context]).run_sync("Something else.")
    assert "failed" in seen[0]
    assert "ERROR" not in seen[0]


def test_what_cannot_fit_is_an_error_with_figures() -> None:
    context, _ = packing(budget=300)
    with pytest.raises(satchel.BudgetError) as caught:
        Script(1).agent(context).run_sync("word " * 900)
    assert caught.value.limit == 300
    assert caught.value.value is not None
    assert caught.value.value > 300


def test_the_budget_is_that_of_the_request() -> None:
    class Answer(BaseModel):
        verdict: str
        reasons: list[str]

    context, windows = packing(with_page_tool=False)
    Agent(TestModel(), capabilities=[context]).run_sync("Go.")
    Agent(
        TestModel(), output_type=Answer, instructions="Be brief.", capabilities=[context]
    ).run_sync("Go.")
    assert windows[0].report.tools_tokens == 0
    assert windows[1].report.tools_tokens > 20
    assert windows[1].report.system_tokens > windows[0].report.system_tokens


def test_every_kind_of_part_comes_through() -> None:
    context, _ = packing(budget=3_000)
    picture = BinaryContent(data=PNG, media_type="image/png")

    def look(name: str) -> list[Any]:
        """Looks at something."""
        if name == "bad":
            message = "no such thing"
            raise ModelRetry(message)
        return [f"what {name} shows: " + "word " * 400, picture]

    requests: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        requests.append(messages)
        if len(requests) > 25:
            return ModelResponse(parts=[TextPart("Done.")])
        name = "bad" if len(requests) % 4 == 0 else f"thing {len(requests)}"
        return ModelResponse(
            parts=[
                TextPart("  "),
                ToolCallPart("look", f'{{"name": "{name}"}}', tool_call_id="same"),
            ]
        )

    agent = Agent(
        FunctionModel(answer), system_prompt="Be careful.", tools=[look], capabilities=[context]
    )
    agent.run_sync(["See this:", picture, "what is it?"], usage_limits=LIMITS)
    for request in requests:
        assert errors_in(request) == []
        first = request[0].parts
        assert isinstance(first[0], SystemPromptPart)
        assert isinstance(first[1], UserPromptPart)
        assert first[1].content == ["See this:", picture, "what is it?"]


def test_an_instruction_within_the_history_stays() -> None:
    # Of another agent, say, whose history this one goes on with.
    context, _ = packing(budget=3_000)
    history: list[ModelMessage] = [ModelRequest(parts=[UserPromptPart("Go.")])]
    for at in range(30):
        call = ToolCallPart("read_file", {"path": f"f{at}"}, tool_call_id=f"c{at}")
        history.append(ModelResponse(parts=[call]))
        result = ToolReturnPart("read_file", read_file(f"f{at}"), tool_call_id=f"c{at}")
        history.append(ModelRequest(parts=[result]))
    history[5:5] = [
        ModelResponse(parts=[TextPart("Handing over.")]),
        ModelRequest(parts=[SystemPromptPart("Speak French."), UserPromptPart("Go on.")]),
    ]
    history.pop()
    history.pop()
    history.append(ModelResponse(parts=[TextPart("Read.")]))
    script = Script(3, first=50)
    script.agent(context).run_sync("And now?", message_history=history)
    for request in script.requests:
        assert errors_in(request) == []
        assert any("Speak French." in text for text in texts_of(request))


def test_streamed_runs() -> None:
    async def run() -> None:
        context, windows = packing()
        script = Script(STEPS)

        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            reply = script.answer(messages, info)
            for at, part in enumerate(reply.parts):
                if isinstance(part, ToolCallPart):
                    yield {
                        at: DeltaToolCall(
                            part.tool_name,
                            part.args_as_json_str(),
                            tool_call_id=part.tool_call_id,
                        )
                    }
                elif isinstance(part, TextPart) and len(reply.parts) == 1:
                    yield part.content

        agent = Agent(
            FunctionModel(stream_function=stream), tools=[read_file], capabilities=[context]
        )
        async with agent.run_stream("Go.", usage_limits=LIMITS) as result:
            assert await result.get_output() == "Done."
        check_requests(script.requests, windows, BUDGET)

    asyncio.run(run())


class _Odd:
    """Metadata that can be neither copied nor compared, as locks and arrays."""

    def __deepcopy__(self, memo: object) -> _Odd:
        message = "cannot be copied"
        raise TypeError(message)

    def __eq__(self, other: object) -> bool:
        message = "the truth of a comparison is ambiguous"
        raise ValueError(message)

    def __hash__(self) -> int:
        return id(self)


def test_metadata_may_be_any_object() -> None:
    def look() -> ToolReturn:
        """Looks."""
        return ToolReturn(return_value="ok", metadata={"odd": _Odd()})

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        requests.append(messages)
        done = len(requests) > 3
        return ModelResponse(parts=[TextPart("Done.") if done else ToolCallPart("look", {})])

    requests: list[list[ModelMessage]] = []
    context, windows = packing()
    agent = Agent(FunctionModel(answer), tools=[look], capabilities=[context])
    prompt: list[Any] = [TextContent("Go.", metadata=_Odd()), "Now."]
    result = agent.run_sync(prompt, usage_limits=LIMITS)
    assert result.output == "Done."
    assert len(windows) == 4
    returned = [
        part
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
    assert all(isinstance(part.metadata["odd"], _Odd) for part in returned)


def test_metadata_that_changes_does_not_start_a_run_anew() -> None:
    def history(tag: str, text: str = "hello") -> list[ModelMessage]:
        return [
            ModelRequest(parts=[UserPromptPart([TextContent(text, metadata=tag)], timestamp=WHEN)]),
            ModelRequest(parts=[ToolReturnPart("f", "ok", "c", metadata=tag, timestamp=WHEN)]),
        ]

    packer = Packer(Settings(model=MODEL))
    found = packer.conversation("run", MODEL, [])
    found.append(history("a"))
    assert packer.conversation("run", MODEL, history("b")) is found
    assert packer.conversation("run", MODEL, history("a", "bye")) is not found


def test_runs_at_once_share_a_capability() -> None:
    async def run() -> None:
        context, windows = packing()
        scripts = [Script(20) for _ in range(4)]
        await asyncio.gather(
            *(script.agent(context).run("Go.", usage_limits=LIMITS) for script in scripts)
        )
        plains = [[plain(request) for request in script.requests] for script in scripts]
        assert plains[0] == plains[1] == plains[2] == plains[3]
        assert len(windows) == 84

    asyncio.run(run())


def test_the_model_that_serves_is_the_one_that_is_packed_for() -> None:
    context, windows = packing(model=None)
    script = Script(0)
    script.model = FunctionModel(script.answer, model_name="claude-sonnet-4-5")
    script.agent(context).run_sync("Go.")
    assert windows[0].model.endswith("claude-sonnet-4-5")
    script.model = FunctionModel(script.answer)
    with pytest.raises(satchel.InputError) as caught:
        script.agent(context).run_sync("Go.")
    assert caught.value.code == "unknown_model"


@pytest.mark.parametrize(
    "options",
    [
        {"model": 7},
        {"model": "no such model"},
        {"budget": 0},
        {"budget": 100, "reserve_tokens": 10},
        {"reserve_tokens": -1},
        {"policy": 7},
        {"policy": "no such policy"},
        {"counter": 7},
        {"on_window": "print"},
        {"persist": "yes"},
        {"with_page_tool": None},
    ],
)
def test_wrong_settings_are_refused_when_they_are_given(options: dict[str, Any]) -> None:
    with pytest.raises(satchel.InputError):
        ContextCapability(**options)
    if not {"persist", "with_page_tool"} & set(options):
        with pytest.raises(satchel.InputError):
            history_processor(**options)
