"""`satchel.langchain.ContextMiddleware` inside agents of LangChain, with their checkpointers."""

# The peers are typed in part, and what they return is looked at as it comes.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportPrivateUsage=false, reportDeprecated=false

from __future__ import annotations

import asyncio
import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from pydantic import BaseModel

import satchel
from langchain_agents import (
    GOAL,
    agent_of,
    call,
    config,
    errors_in,
    is_prefix,
    read,
    report_of,
    same,
    scripted,
    steps_of,
    tokens_of,
)
from satchel.errors import BudgetError, InputError, SummaryError
from satchel.langchain import ContextMiddleware
from satchel.policy import Policy, SummarySettings
from satchel.summarize.base import SummaryRequest, SummaryResult
from satchel.summarize.writing import Patience

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from satchel.window import Window

BUDGET = 4_000
STEPS = 64


class BrokenError(Exception):
    """A process that ends in the middle."""


def middleware(**options: Any) -> ContextMiddleware:
    given: dict[str, Any] = {"model": "gpt-4o", "budget": BUDGET, **options}
    return ContextMiddleware(**given)


def breaking(script: Any, at: int) -> Any:
    def broken(number: int, messages: list[BaseMessage]) -> Any:
        if number == at:
            raise BrokenError
        return script(number, messages)

    return broken


def check(requests: Sequence[Sequence[BaseMessage]], bound: Sequence[Any]) -> None:
    """Every request is one that a provider takes, within the budget, with what must stay."""
    for messages, tools in zip(requests, bound, strict=True):
        assert errors_in(messages) == []
        assert tokens_of(messages, tools) <= BUDGET
        assert GOAL in [message.content for message in messages]


def compactions(requests: Sequence[Sequence[BaseMessage]]) -> int:
    """How many requests do not begin with the one before."""
    return sum(not is_prefix(one, other) for one, other in itertools.pairwise(requests))


@pytest.mark.parametrize("parallel", [1, 3])
def test_a_long_run_stays_valid_within_budget_and_goes_on_after_a_restart(
    tmp_path: Path, parallel: int
) -> None:
    database = str(tmp_path / "agent.db")
    script = steps_of(STEPS, parallel)
    with SqliteSaver.from_conn_string(database) as saver:
        first = scripted(breaking(script, STEPS // 2))
        agent = agent_of(first, middleware(), saver=saver)
        with pytest.raises(BrokenError):
            agent.invoke({"messages": [("user", GOAL)]}, config())
    with SqliteSaver.from_conn_string(database) as saver:
        second = scripted(script)
        agent = agent_of(second, middleware(), saver=saver)
        found = agent.invoke(None, config())
        state = agent.get_state(config()).values
    requests = [*first.asked, *second.asked]
    assert len(requests) == STEPS + 2  # the broken one was asked again
    check(requests, [*first.bound, *second.bound])
    assert same(first.asked[-1], second.asked[0])
    assert found["messages"][-1].content == f"All {STEPS} steps are done."
    assert set(found) == {"messages"}
    # What left the requests left the state too.
    assert len(state["messages"]) < 60
    assert tokens_of(state["messages"]) < BUDGET


def test_the_same_run_without_a_restart_asks_for_the_same(tmp_path: Path) -> None:
    script = steps_of(STEPS)
    whole, first, second = scripted(script), scripted(breaking(script, 33)), scripted(script)
    agent_of(whole, middleware(), saver=InMemorySaver()).invoke(
        {"messages": [("user", GOAL)]}, config()
    )
    with SqliteSaver.from_conn_string(str(tmp_path / "agent.db")) as saver:
        with pytest.raises(BrokenError):
            agent_of(first, middleware(), saver=saver).invoke(
                {"messages": [("user", GOAL)]}, config()
            )
        agent_of(second, middleware(), saver=saver).invoke(None, config())
    parts = [*first.asked[:-1], *second.asked]
    assert all(same(one, other) for one, other in zip(whole.asked, parts, strict=True))


def test_the_asynchronous_run_asks_for_the_same_and_plans_off_the_loop(tmp_path: Path) -> None:
    script = steps_of(STEPS)
    threads: set[int] = set()

    def noted(_: Window) -> None:
        threads.add(threading.get_ident())

    plain = scripted(script)
    agent_of(plain, middleware(), saver=InMemorySaver()).invoke(
        {"messages": [("user", GOAL)]}, config()
    )
    first, second = scripted(breaking(script, 33)), scripted(script)

    async def run() -> dict[str, Any]:
        path = str(tmp_path / "agent.db")
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            agent = agent_of(first, middleware(report=noted), saver=saver)
            with pytest.raises(BrokenError):
                await agent.ainvoke({"messages": [("user", GOAL)]}, config())
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            agent = agent_of(second, middleware(report=noted), saver=saver)
            found: dict[str, Any] = await agent.ainvoke(None, config())
            return found

    found = asyncio.run(run())
    check([*first.asked, *second.asked], [*first.bound, *second.bound])
    parts = [*first.asked[:-1], *second.asked]
    assert all(same(one, other) for one, other in zip(plain.asked, parts, strict=True))
    assert len(found["messages"]) < 40
    assert threads
    assert threading.get_ident() not in threads


def test_an_edit_is_made_once_and_requests_grow_at_their_end() -> None:
    # langchain#37815: edits of the request alone are made again on every call, and each time the
    # provider's cache is lost.
    model = scripted(steps_of(STEPS))
    windows: list[Window] = []
    agent = agent_of(model, middleware(report=windows.append), saver=InMemorySaver())
    agent.invoke({"messages": [("user", GOAL)]}, config())
    made = windows[-1].report.compactions
    assert 0 < made < STEPS
    assert compactions(model.asked) <= made
    stored = agent.get_state(config()).values["messages"]
    shown = [one for one in model.asked[-1] if one.id is not None]
    # The state's messages are those of the newest request, and the answer.
    assert same([one for one in shown if one.type != "system"], stored[:-1])


def test_the_state_is_bounded_though_nothing_is_lost() -> None:
    # deepagents#2876: a state that is never trimmed grows with every step, and so does each
    # checkpoint.
    sizes: list[int] = []
    for steps in (40, 80, 160):
        saver = InMemorySaver()
        agent = agent_of(scripted(steps_of(steps)), middleware(), saver=saver)
        agent.invoke({"messages": [("user", GOAL)]}, config())
        state = agent.get_state(config()).values
        sizes.append(sum(len(str(message.content)) for message in state["messages"]))
        kept = sum(map(len, state["satchel_kept"].values()))
        # A fraction of the text that it keeps.
        assert kept < 0.5 * steps * len(report_of(1))
    assert max(sizes) < 1.5 * min(sizes)


def test_system_tools_and_the_schema_of_the_answer_are_part_of_the_budget() -> None:
    # #34145: a limit that looks at the messages alone, or at what one kind of tool says, is no
    # limit of the request.
    class Verdict(BaseModel):
        """What came of it, with every field explained at length."""

        best: int
        because: str

    @tool
    def archive(number: int) -> str:
        """Archives a report."""
        return f"archived {number}"

    archive.description += "It must be read before. " * 60
    model = scripted(_with_answer(steps_of(STEPS)))
    windows: list[Window] = []
    agent = agent_of(
        model,
        middleware(report=windows.append),
        tools=[read, archive],
        system="Mind the rules. " * 60,
        response_format=ToolStrategy(Verdict),
    )
    found = agent.invoke({"messages": [("user", GOAL)]}, config())
    assert found["structured_response"].best == 7
    check(model.asked, model.bound)
    assert windows[-1].report.tools_tokens > 400
    assert windows[-1].report.system_tokens > 200
    assert {one["function"]["name"] for one in model.bound[0]} == {
        "read",
        "archive",
        "page_in",
        "Verdict",
    }


def _with_answer(script: Any) -> Any:
    def answering(number: int, messages: list[BaseMessage]) -> Any:
        reply = script(number, messages)
        if reply.tool_calls:
            return reply
        return AIMessage("", tool_calls=[call("Verdict", 999, best=7, because="it is shorter")])

    return answering


def test_the_first_message_is_the_users_and_no_result_stands_alone() -> None:
    # langchainjs#9272: after a cut the history began with the model's message, or with a result.
    model = scripted(steps_of(STEPS, 3))
    agent_of(model, middleware(), system=None).invoke({"messages": [("user", GOAL)]}, config())
    for messages in model.asked:
        assert isinstance(messages[0], HumanMessage)
        assert errors_in(messages) == []


def _paging(wanted: Callable[[list[BaseMessage]], str]) -> Any:
    """A script that reads one page after the others are done."""
    steps = steps_of(STEPS)
    pages = 0

    def script(number: int, messages: list[BaseMessage]) -> AIMessage:
        nonlocal pages
        if pages == 0:
            reply: AIMessage = steps(number, messages)
            if reply.tool_calls:
                return reply
        if pages < 2:
            pages += 1
            asked = call("page_in", 1_000 + pages, pointer=wanted(messages))
            return AIMessage("Reading it again.", tool_calls=[asked])
        return AIMessage("Read.")

    return script


def _index_first(messages: list[BaseMessage]) -> str:
    found = [str(one.content) for one in messages if "satchel-index" in str(one.content)]
    listed = [str(one.content) for one in messages if one.type == "tool" and one.name == "page_in"]
    if listed:
        line = next(line for line in listed[-1].splitlines() if "read report 3" in line)
        return "p_" + line.split("p_")[1][:18]
    return "p_" + found[0].split("p_")[1][:18]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_model_reads_back_what_left_its_window(is_async: bool) -> None:
    model = scripted(_paging(_index_first))
    agent = agent_of(model, middleware(), saver=InMemorySaver())
    given = {"messages": [("user", GOAL)]}
    found = (
        asyncio.run(agent.ainvoke(given, config())) if is_async else agent.invoke(given, config())
    )
    answers = [one for one in found["messages"] if one.type == "tool" and one.name == "page_in"]
    assert [one.status for one in answers] == ["success", "success"]
    assert report_of(3) in str(answers[-1].content)
    check(model.asked, model.bound)


def test_a_pointer_of_another_thread_finds_nothing() -> None:
    saver = InMemorySaver()
    context = middleware()
    agent_of(scripted(steps_of(STEPS)), context, saver=saver).invoke(
        {"messages": [("user", GOAL)]}, config("theirs")
    )
    agent = agent_of(scripted(steps_of(STEPS)), context, saver=saver)
    kept = agent.get_state(config("theirs")).values["satchel_kept"]
    assert kept

    def nosy(number: int, _: list[BaseMessage]) -> AIMessage:
        if number > 1:
            return AIMessage("No.")
        return AIMessage("", tool_calls=[call("page_in", 1, pointer="p_123456789012345678")])

    found = agent_of(scripted(nosy), context, saver=saver).invoke(
        {"messages": [("user", GOAL)]}, config("mine")
    )
    answer = found["messages"][-2]
    assert answer.status == "error"
    assert "no page has this pointer" in answer.content


@tool
def dump(number: int) -> str:
    """Gives a long text."""
    return report_of(number, 600)


@tool
def blocks(number: int) -> list[str | dict[str, Any]]:
    """Gives a long text among other blocks."""
    return [
        {"type": "text", "text": report_of(number, 600)},
        {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
    ]


@pytest.mark.parametrize("name", ["dump", "blocks"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_long_result_is_shortened_when_it_comes_and_read_whole_through_its_pointer(
    name: str, is_async: bool
) -> None:
    def script(number: int, messages: list[BaseMessage]) -> AIMessage:
        if number == 1:
            return AIMessage("", tool_calls=[call(name, 1, number=5), call("read", 2, number=6)])
        if number == 2:
            text = str(next(one for one in messages if one.type == "tool").content)
            pointer = "p_" + text.split("p_")[1][:18]
            asked = call("page_in", 3, pointer=pointer, first_line=300, last_line=303)
            return AIMessage("", tool_calls=[asked])
        return AIMessage("Read.")

    model = scripted(script)
    agent = agent_of(
        model, middleware(max_result_tokens=600), tools=[dump, blocks, read], saver=InMemorySaver()
    )
    given = {"messages": [("user", GOAL)]}
    found = (
        asyncio.run(agent.ainvoke(given, config())) if is_async else agent.invoke(given, config())
    )
    check(model.asked, model.bound)
    by_call = {one.tool_call_id: one for one in found["messages"] if isinstance(one, ToolMessage)}
    short = by_call[f"call_{name}_1"]
    text: Any = short.content
    if name == "blocks":
        assert text[1]["type"] == "image_url"
        text = text[0]["text"]
    assert satchel.counter("gpt-4o").count(text) <= 600
    assert by_call["call_read_2"].content == report_of(6)
    page = str(by_call["call_page_in_3"].content)
    assert "\n".join(report_of(5, 600).splitlines()[299:303]) in page
    # From the second request on nothing of it changes any more.
    assert is_prefix(model.asked[1], model.asked[2])


def test_what_must_stay_and_does_not_fit_is_a_typed_error() -> None:
    agent = agent_of(scripted(steps_of(3)), middleware(budget=500), saver=InMemorySaver())
    with pytest.raises(BudgetError) as caught:
        agent.invoke({"messages": [("user", GOAL + " word" * 2_000)]}, config())
    assert caught.value.code == "over_budget"
    assert "word word" not in str(caught.value)


class Writer:
    """A summarizer that counts how often it is asked, and may fail."""

    name = "writer"

    def __init__(self, *, fails: bool = False) -> None:
        self.asked = 0
        self.fails = fails

    async def summarize(self, _: SummaryRequest, /) -> SummaryResult:
        self.asked += 1
        if self.fails:
            message = "no answer"
            raise SummaryError(message, code="summary_failed")
        return SummaryResult(text=f"Summary {self.asked}: reports were read one by one.")


def summarising(**options: Any) -> Policy:
    settings = SummarySettings(above_share=0.7, keep_messages=6, max_tokens=120, **options)
    return Policy.preset("adaptive").model_copy(update={"summary": settings})


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summary_changes_the_requests_only_when_it_comes_in(is_async: bool) -> None:
    # deepagents#5319: a summary that is rendered anew for each request makes each a new prefix.
    writer, windows, model = Writer(), list[Any](), scripted(steps_of(STEPS))
    context = middleware(policy=summarising(), summarizer=writer, report=windows.append)
    agent = agent_of(model, context, saver=InMemorySaver())
    given = {"messages": [("user", GOAL)]}
    if is_async:
        asyncio.run(agent.ainvoke(given, config()))
    else:
        agent.invoke(given, config())
    check(model.asked, model.bound)
    assert writer.asked > 1
    made = sum(window.report.summary is not None for window in windows)
    assert made == writer.asked
    assert compactions(model.asked) <= made + windows[-1].report.compactions
    assert any(f"Summary {writer.asked}" in str(one.content) for one in model.asked[-1])
    state = agent.get_state(config()).values
    assert len(state["messages"]) < 20
    events = [one for one in state["satchel_context"]["events"] if one["kind"] == "summary"]
    assert len(events) == writer.asked


def test_a_summarizer_that_fails_keeps_the_history_and_is_reported() -> None:
    # langchain#38867: where the summary failed, the history was replaced by the error's text.
    writer, windows, model = Writer(fails=True), list[Any](), scripted(steps_of(STEPS))
    context = middleware(
        policy=summarising(fallback=False),
        summarizer=writer,
        patience=Patience(attempts=1, backoff_s=0.0),
        report=windows.append,
    )
    agent_of(model, context, saver=InMemorySaver()).invoke({"messages": [("user", GOAL)]}, config())
    check(model.asked, model.bound)
    reports = [window.report.summary for window in windows if window.report.summary is not None]
    assert reports
    assert {one.outcome for one in reports} == {"failed"}
    assert len(model.asked) == STEPS + 1


class RefusedError(Exception):
    """What a provider says."""


@pytest.mark.parametrize("is_async", [False, True])
def test_a_request_that_the_provider_finds_too_long_is_sent_again_smaller(is_async: bool) -> None:
    steps = steps_of(STEPS)

    def script(number: int, messages: list[BaseMessage]) -> Any:
        if tokens_of(messages) > 2_500:
            message = (
                "context_length_exceeded: This model's maximum context length is 2800 tokens. "
                f"However, your messages resulted in {tokens_of(messages) + 300} tokens."
            )
            raise RefusedError(message)
        return steps(number, messages)

    model = scripted(script)
    agent = agent_of(model, middleware(), saver=InMemorySaver())
    given = {"messages": [("user", GOAL)]}
    found = (
        asyncio.run(agent.ainvoke(given, config())) if is_async else agent.invoke(given, config())
    )
    assert found["messages"][-1].content == f"All {STEPS} steps are done."
    # It learns: only the first windows were too large.
    assert sum(tokens_of(one) > 2_500 for one in model.asked) <= 3


def test_an_error_of_another_kind_goes_through() -> None:
    def script(_: int, __: list[BaseMessage]) -> AIMessage:
        message = "rate_limit: too many requests"
        raise RefusedError(message)

    model = scripted(script)
    with pytest.raises(RefusedError):
        agent_of(model, middleware()).invoke({"messages": [("user", GOAL)]}, config())
    assert len(model.asked) == 1


def test_what_the_user_edits_or_removes_in_the_state_counts_as_it_is_left() -> None:
    saver = InMemorySaver()
    model = scripted(steps_of(STEPS))
    agent = agent_of(model, middleware(), saver=saver)
    agent.invoke({"messages": [("user", GOAL)]}, config())
    state = agent.get_state(config()).values
    goal = state["messages"][0]
    agent.update_state(config(), {"messages": [HumanMessage("Only report 2.", id=goal.id)]})
    model.script = steps_of(0)
    agent.invoke({"messages": [("user", "Go on.")]}, config())
    assert next(one.content for one in model.asked[-1] if one.type == "human") == "Only report 2."
    assert errors_in(model.asked[-1]) == []
    # All of it removed: nothing of it comes back, and nothing is kept.
    removed = [RemoveMessage(id=one.id) for one in agent.get_state(config()).values["messages"]]
    agent.update_state(config(), {"messages": removed})
    agent.invoke({"messages": [("user", "Hello.")]}, config())
    assert [one.content for one in model.asked[-1] if one.type != "system"] == ["Hello."]
    assert agent.get_state(config()).values["satchel_kept"] == {}


def test_what_other_middleware_adds_to_a_request_is_counted_and_not_stored() -> None:
    class Reminder(AgentMiddleware[Any, Any, Any]):
        """Adds a sentence to each request."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            reminder = HumanMessage("Remember the deadline. " * 20)
            return handler(request.override(messages=[*request.messages, reminder]))

    model = scripted(steps_of(STEPS))
    agent = agent_of(model, middleware(), saver=InMemorySaver(), before=[Reminder()])
    found = agent.invoke({"messages": [("user", GOAL)]}, config())
    check(model.asked, model.bound)
    assert all(str(one[-1].content).startswith("Remember") for one in model.asked)
    assert not any("deadline" in str(one.content) for one in found["messages"])
    assert len(found["messages"]) < 40


def test_without_persistence_the_state_keeps_all_and_the_requests_are_the_same() -> None:
    model, other = scripted(steps_of(STEPS)), scripted(steps_of(STEPS))
    found = agent_of(model, middleware(persist=False), saver=InMemorySaver()).invoke(
        {"messages": [("user", GOAL)]}, config()
    )
    agent_of(other, middleware(), saver=InMemorySaver()).invoke(
        {"messages": [("user", GOAL)]}, config()
    )
    assert len(found["messages"]) == 2 * STEPS + 2
    assert all(same(one, two) for one, two in zip(model.asked, other.asked, strict=True))


def test_a_middleware_serves_many_threads_at_once() -> None:
    context, saver = middleware(), InMemorySaver()
    models = [scripted(steps_of(20, 1 + number % 2)) for number in range(8)]

    async def run() -> None:
        await asyncio.gather(
            *(
                agent_of(model, context, saver=saver).ainvoke(
                    {"messages": [("user", GOAL)]}, config(f"t{number}")
                )
                for number, model in enumerate(models)
            )
        )

    asyncio.run(run())
    for model in models:
        check(model.asked, model.bound)
    assert same(models[0].asked[-1], models[2].asked[-1])


def test_reasoning_in_blocks_stays_as_it_came_or_goes_with_its_step() -> None:
    steps = steps_of(30)

    def script(number: int, messages: list[BaseMessage]) -> Any:
        reply = steps(number, messages)
        if not reply.tool_calls:
            return reply
        thought = {
            "type": "thinking",
            "thinking": f"thought {number} " * 9,
            "signature": f"s{number}",
        }
        used = [
            {"type": "tool_use", "id": one["id"], "name": one["name"], "input": one["args"]}
            for one in reply.tool_calls
        ]
        text = {"type": "text", "text": str(reply.content)}
        return AIMessage([thought, text, *used], tool_calls=reply.tool_calls)

    model = scripted(script)
    agent = agent_of(model, middleware(), saver=InMemorySaver())
    agent.invoke({"messages": [("user", GOAL)]}, config())
    said: dict[str, Any] = {}
    for messages in model.asked:
        for message in messages:
            if not isinstance(message, AIMessage) or not isinstance(message.content, list):
                continue
            content: list[Any] = message.content
            assert [one["id"] for one in content if one["type"] == "tool_use"] == [
                one["id"] for one in message.tool_calls
            ]
            for one, made in zip(
                [one for one in content if one["type"] == "tool_use"],
                message.tool_calls,
                strict=True,
            ):
                assert one["input"] == made["args"]
            thoughts = [one for one in content if one["type"] == "thinking"]
            assert len(thoughts) == 1
            assert said.setdefault(str(message.id), thoughts) == thoughts


def test_a_request_that_is_tried_again_is_the_same() -> None:
    class Retrying(AgentMiddleware[Any, Any, Any]):
        """Asks once more after a failure."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            try:
                return handler(request)
            except BrokenError:
                return handler(request)

    model = scripted(breaking(steps_of(STEPS), 40))
    agent = agent_of(model, middleware(), saver=InMemorySaver(), before=[Retrying()])
    found = agent.invoke({"messages": [("user", GOAL)]}, config())
    assert same(model.asked[39], model.asked[40])
    assert found["messages"][-1].content == f"All {STEPS} steps are done."
    assert len(model.asked) == STEPS + 2


def test_a_run_from_an_earlier_checkpoint_asks_for_what_it_asked_then() -> None:
    model = scripted(steps_of(STEPS))
    agent = agent_of(model, middleware(), saver=InMemorySaver())
    agent.invoke({"messages": [("user", GOAL)]}, config())
    first = list(model.asked)
    past = [one for one in agent.get_state_history(config()) if one.next == ("model",)]
    # The newest comes first; each is the state before one request.
    for back in (10, 45):
        model.asked.clear()
        agent.invoke(None, {**past[back].config, "recursion_limit": 2_000})
        again = first[len(first) - back - 1 :]
        assert len(model.asked) == len(again)
        assert all(same(one, other) for one, other in zip(model.asked, again, strict=True))


def test_the_schemas_of_the_agent_do_not_show_its_keys() -> None:
    agent = agent_of(scripted(steps_of(1)), middleware())
    for schema in (agent.get_input_jsonschema(), agent.get_output_jsonschema()):
        assert "messages" in schema["properties"]
        assert "satchel" not in str(schema)


def test_an_agent_takes_one_of_them() -> None:
    with pytest.raises(AssertionError):
        agent_of(scripted(steps_of(1)), middleware(), before=[middleware()])


@pytest.mark.parametrize(
    "options",
    [
        {"budget": 0},
        {"budget": "many"},
        {"reserve_tokens": -1, "budget": None},
        {"reserve_tokens": 5},
        {"max_result_tokens": -1},
        {"max_result_tokens": 1.5},
        {"persist": "yes"},
        {"report": 3},
        {"redactor": "mask"},
        {"model": 3},
        {"model": "a family that nobody knows", "budget": None},
        {"policy": "no such preset"},
        {"policy": 3},
        {"summarizer": object()},
    ],
)
def test_settings_that_cannot_be_are_refused_at_once(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        middleware(**options)


def test_a_model_that_tells_its_window_needs_no_name() -> None:
    model = scripted(steps_of(STEPS))
    model.profile = {"max_input_tokens": 6_000, "max_output_tokens": 1_000}
    windows: list[Window] = []
    context = ContextMiddleware(report=windows.append)
    agent_of(model, context, saver=InMemorySaver()).invoke({"messages": [("user", GOAL)]}, config())
    assert {window.budget for window in windows} == {5_000}
    assert not windows[-1].exact
    assert all(window.tokens_upper <= 5_000 for window in windows)


def test_a_model_that_nobody_knows_needs_a_budget() -> None:
    agent = agent_of(scripted(steps_of(1)), ContextMiddleware())
    with pytest.raises(InputError, match="budget") as caught:
        agent.invoke({"messages": [("user", GOAL)]}, config())
    assert caught.value.code == "unknown_model"


def test_inputs_are_not_changed() -> None:
    given = [HumanMessage(GOAL, id="goal")]
    before = [one.model_copy(deep=True) for one in given]
    agent_of(scripted(steps_of(STEPS)), middleware(), saver=InMemorySaver()).invoke(
        {"messages": given}, config()
    )
    assert given == before


def test_the_page_in_tool_says_so_where_the_middleware_is_not() -> None:
    [page_in] = middleware().tools
    assert "only in an agent" in page_in.invoke({"pointer": "p_1"})


def test_satchel_errors_are_its_own() -> None:
    assert issubclass(BudgetError, satchel.SatchelError)
