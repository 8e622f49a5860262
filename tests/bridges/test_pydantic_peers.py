"""What history processors of pydantic-ai go wrong about, and the bridge does not."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai import Agent, DeferredToolRequests, messages
from pydantic_ai.capabilities import ProcessHistory
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
    repair_messages,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.tools import DeferredToolResults
from pydantic_ai.usage import UsageLimits

import satchel
from satchel.pydantic_ai import ContextCapability
from typed_loops import MODEL, Script, check_requests, collected, errors_in, pairs_of, read_file

if TYPE_CHECKING:
    from pydantic_ai.models.function import AgentInfo

BUDGET = 3_000
LIMITS = UsageLimits(request_limit=None)


def packing(**options: Any) -> tuple[ContextCapability, list[satchel.Window]]:
    windows, note = collected()
    given: dict[str, Any] = {"model": MODEL, "budget": BUDGET, **options}
    return ContextCapability(on_window=note, **given), windows


def test_a_cut_within_the_tool_loop() -> None:
    # pydantic-ai#2050: a processor that keeps the newest messages leaves a result without its call.
    # The framework drops it, and the model gets a request that says nothing.
    def newest(messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages[-1:]

    script = Script(3)
    script.agent(ProcessHistory(newest)).run_sync("Go.", usage_limits=LIMITS)
    assert all(not request[-1].parts for request in script.requests[1:])

    context, windows = packing()
    script = Script(30)
    script.agent(context).run_sync("Go.", usage_limits=LIMITS)
    check_requests(script.requests, windows, BUDGET)
    for request in script.requests[1:]:
        assert isinstance(request[-1].parts[0], ToolReturnPart)
        # The running step and what the user asked for are there.
        assert any("Go." in str(part) for part in request[0].parts)


def test_nothing_is_left_for_the_framework_to_mend() -> None:
    # pydantic-ai#4728: what it mends silently hides that a cut was bad.
    context, _ = packing()
    script = Script(40)
    script.agent(context).run_sync("Go.", usage_limits=LIMITS)
    for request in script.requests:
        assert repair_messages(request) == request
        calls, results = pairs_of(request)
        assert calls == results


def test_new_messages_are_those_of_the_run() -> None:
    # pydantic-ai#3983, #2914: where a processor shortens the history, the place at which the run
    # began is another one, and new_messages() gives too little or too much.
    def shortening(messages: list[ModelMessage]) -> list[ModelMessage]:
        return messages[:1] if len(messages) == 1 else [*messages[:1], *messages[-2:]]

    def run(capability: Any) -> tuple[int, int]:
        script = Script(20)
        agent = script.agent(capability)
        first = agent.run_sync("Go.", usage_limits=LIMITS)
        script.requests.clear()
        second = agent.run_sync("Again.", message_history=first.all_messages(), usage_limits=LIMITS)
        return len(first.new_messages()), len(second.new_messages())

    assert run(packing()[0]) == (42, 42)
    assert run(ProcessHistory(shortening)) != (42, 42)


def test_nothing_stands_between_a_call_and_its_results() -> None:
    # pydantic-ai#7878: a message that is put in there is hoisted, or parts the two.
    context, windows = packing(budget=2_000)
    script = Script(60)
    script.agent(context).run_sync("Go.", usage_limits=LIMITS)
    assert any("satchel-index" in str(request[0]) for request in script.requests)
    for request in script.requests:
        for message, after in pairwise(request):
            asked = [part for part in message.parts if isinstance(part, ToolCallPart)]
            assert all(isinstance(part, ToolReturnPart) for part in after.parts[: len(asked)])
    check_requests(script.requests, windows, 2_000)


def test_an_empty_last_request_stays() -> None:
    # What a run without a prompt ends in.
    seen: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        seen.append(messages)
        return ModelResponse(parts=[TextPart("Done.")])

    context, _ = packing()
    history: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("Go.")]),
        ModelResponse(parts=[TextPart("Half of an ans")]),
    ]
    agents = [
        Agent(FunctionModel(answer), instructions="Go on.", capabilities=chosen)
        for chosen in ([], [context])
    ]
    for agent in agents:
        agent.run_sync(message_history=history)
    bare, packed = seen
    assert [message.parts for message in packed] == [message.parts for message in bare]
    assert packed[-1].parts == []


def test_a_run_that_waited_for_somebody_goes_on() -> None:
    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        seen.append(messages)
        if len(seen) == 1:
            return ModelResponse(parts=[ToolCallPart("approve", {}, tool_call_id="c")])
        return ModelResponse(parts=[TextPart("Done.")])

    seen: list[list[ModelMessage]] = []
    context, _ = packing()
    agent = Agent(
        FunctionModel(answer), output_type=[str, DeferredToolRequests], capabilities=[context]
    )

    @agent.tool_plain(requires_approval=True)
    def approve() -> str:
        return "approved " + "word " * 900

    first = agent.run_sync("Go.")
    assert isinstance(first.output, DeferredToolRequests)
    second = agent.run_sync(
        message_history=first.all_messages(),
        deferred_tool_results=DeferredToolResults(approvals={"c": True}),
    )
    assert second.output == "Done."
    assert errors_in(seen[1]) == []


# Deprecated, and still in histories that were stored.
RETRY_PROMPT: Any = vars(messages)["RetryPromptPart"]
TEXT = st.text("ab \n\u00e9\u4e2d", max_size=40).map(lambda text: text * 9)
IDS = st.sampled_from(["a", "b", "c", "an id that is far longer than any provider takes " * 3, ""])
REQUEST_PART: st.SearchStrategy[Any] = st.one_of(
    st.builds(UserPromptPart, content=st.one_of(TEXT, st.lists(TEXT, max_size=3))),
    st.builds(SystemPromptPart, content=TEXT),
    st.builds(ToolReturnPart, tool_name=st.just("t"), content=TEXT, tool_call_id=IDS),
    st.builds(RETRY_PROMPT, content=TEXT, tool_name=st.just("t"), tool_call_id=IDS),
    st.builds(RETRY_PROMPT, content=TEXT),
)
RESPONSE_PART: st.SearchStrategy[Any] = st.one_of(
    st.builds(TextPart, content=TEXT),
    st.builds(ThinkingPart, content=TEXT, signature=st.sampled_from([None, "sig"])),
    st.builds(
        ToolCallPart,
        tool_name=st.just("t"),
        args=st.sampled_from([None, "{}", '{"q": 1}', "{broken", {"q": "w " * 90}]),
        tool_call_id=IDS,
    ),
    st.builds(NativeToolCallPart, tool_name=st.just("web"), args=st.none(), tool_call_id=IDS),
    st.builds(NativeToolReturnPart, tool_name=st.just("web"), content=TEXT, tool_call_id=IDS),
)
MESSAGE: st.SearchStrategy[ModelMessage] = st.one_of(
    st.builds(ModelRequest, parts=st.lists(REQUEST_PART, max_size=4)),
    st.builds(ModelResponse, parts=st.lists(RESPONSE_PART, max_size=4)),
)


@pytest.mark.filterwarnings("ignore:.RetryPromptPart. is deprecated")
@given(st.lists(MESSAGE, max_size=14), st.integers(200, 3_000))
def test_any_history_is_packed_into_one_that_needs_no_mending(
    history: list[ModelMessage], budget: int
) -> None:
    seen: list[list[ModelMessage]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        seen.append(messages)
        return ModelResponse(parts=[TextPart("Done.")])

    context, windows = packing(budget=budget, with_page_tool=False)
    # A history that ends in open calls is refused with a prompt; one that was mended is not.
    mended = repair_messages(history)
    stored = ModelMessagesTypeAdapter.dump_json(mended)
    agent = Agent(FunctionModel(answer), tools=[read_file], capabilities=[context])
    refused: satchel.BudgetError | None = None
    try:
        agent.run_sync("Go on.", message_history=mended)
    except satchel.BudgetError as error:
        refused = error
    if refused is None:
        assert repair_messages(seen[0]) == seen[0]
        assert isinstance(seen[0][-1], ModelRequest)
        assert windows[0].tokens_upper <= budget
    else:
        assert refused.code == "over_budget"
        assert refused.limit is not None
    assert ModelMessagesTypeAdapter.dump_json(mended) == stored
