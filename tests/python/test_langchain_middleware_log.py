"""The log behind the middleware: requests are those of the originals, whatever a state holds."""

# What is tested is inside.
# pyright: reportPrivateUsage=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportMissingTypeStubs=false

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph.message import add_messages

import satchel
from langchain_agents import COUNTER, errors_in, same
from satchel.errors import BudgetError
from satchel.langchain import ContextMiddleware
from satchel.langchain.middleware_log import merged, pack, unpack
from satchel.langchain.middleware_window import chat_of, message_of

BUDGET = 900
SERDE = JsonPlusSerializer()
MODEL = FakeListChatModel(responses=["x"])
FILLER = "the quick brown fox number {} jumps over file_{}.py at line {}\n"

KINDS = st.sampled_from(
    ["human", "ai", "system", "step", "parallel", "blocks", "orphan", "invalid", "empty", "twice"]
)
TURNS = st.lists(
    st.tuples(
        st.lists(KINDS, min_size=1, max_size=4), st.sampled_from(["", "", "restart", "edit"])
    ),
    min_size=1,
    max_size=8,
)


def text(at: int, lines: int) -> str:
    return "".join(FILLER.format(at, one, at * one) for one in range(lines))


def made(kind: str, at: int) -> list[BaseMessage]:  # noqa: PLR0911 - a return for each kind
    """Messages of a kind; ids are the state's to give, as they come from a caller."""
    if kind == "human":
        return [HumanMessage(f"question {at}: {text(at, 1)}")]
    if kind == "ai":
        return [AIMessage(f"answer {at}: {text(at, 3)}")]
    if kind == "system":
        return [SystemMessage(f"rule {at}")]
    if kind == "orphan":
        return [ToolMessage("alone", tool_call_id=f"x{at}")]
    if kind == "empty":
        return [AIMessage("")]
    if kind == "invalid":
        bad: Any = [{"name": "read", "args": "{", "id": f"c{at}", "error": None}]
        return [AIMessage("", invalid_tool_calls=bad), ToolMessage("no", tool_call_id=f"c{at}")]
    count = 2 if kind == "parallel" else 1
    # Ids of calls repeat in real histories.
    name = "c" if kind == "twice" else f"c{at}"
    calls: Any = [
        {"name": "read", "args": {"number": at, "why": text(at, 2)}, "id": f"{name}-{one}"}
        for one in range(count)
    ]
    content: Any = f"step {at}"
    if kind == "blocks":
        content = [
            {"type": "thinking", "thinking": "hm", "signature": f"s{at}"},
            {"type": "text", "text": text(at, 3)},
            *(
                {"type": "tool_use", "id": one["id"], "name": "read", "input": one["args"]}
                for one in calls
            ),
        ]
    return [
        AIMessage(content, tool_calls=calls),
        *(ToolMessage(text(at, 9), tool_call_id=one["id"]) for one in calls),
    ]


def middleware(budget: int = BUDGET) -> ContextMiddleware:
    return ContextMiddleware(model="gpt-4o", budget=budget)


def requested(
    context: ContextMiddleware, state: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The messages of a request, and the update of the state."""
    seen: list[Any] = []

    def handler(request: Any) -> Any:
        seen.extend(request.messages)
        return ModelResponse(result=[AIMessage("reply")])

    given_state: Any = state
    request: Any = ModelRequest(
        model=MODEL, messages=list(state["messages"]), state=given_state, tools=[]
    )
    found = context.wrap_model_call(request, handler)
    update: Any = {}
    if isinstance(found, ExtendedModelResponse) and found.command is not None:
        update = found.command.update
    return seen, update


def applied(state: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """The state after an update, by LangGraph's reducers."""
    return {
        **state,
        **update,
        "messages": add_messages(state["messages"], update.get("messages", [])),
        "satchel_kept": merged(state.get("satchel_kept"), update.get("satchel_kept")),
    }


def stored(state: dict[str, Any]) -> dict[str, Any]:
    """The state as a checkpointer gives it back."""
    kept: dict[str, Any] = SERDE.loads_typed(SERDE.dumps_typed(state))
    return kept


def context_events(update: dict[str, Any]) -> list[Any]:
    """The events that an update writes."""
    found: list[Any] = update.get("satchel_context", {}).get("events", [])
    return found


@given(turns=TURNS)
@example(
    turns=[(["system", "parallel", "parallel", "orphan"], ""), (["ai"], ""), (["parallel"], "")]
)
def test_requests_are_the_windows_of_the_originals_whatever_the_state_keeps(
    turns: list[tuple[list[str], str]],
) -> None:
    context = middleware()
    state: dict[str, Any] = {"messages": [], "satchel_kept": {}}
    raw: list[BaseMessage] = []
    oracle = satchel.Assembler("gpt-4o", budget=BUDGET)
    events: Any = ()
    number = 0
    for turn, (kinds, event) in enumerate(turns):
        fresh: list[BaseMessage] = [] if turn else [HumanMessage("the goal", id="goal")]
        for kind in kinds:
            number += 1
            fresh += made(kind, number)
        given_messages = [one.model_copy(deep=True) for one in fresh]
        state = applied(state, {"messages": fresh})
        raw += state["messages"][len(state["messages"]) - len(fresh) :]
        if event == "restart":
            context, state = middleware(), stored(state)
        if event == "edit":
            # Somebody else touches the newest message, which nobody has shortened yet.
            newest = state["messages"][-1].model_copy(update={"content": f"edited {number}"})
            state = applied(state, {"messages": [newest]})
            raw[-1] = newest
        chat = chat_of(raw)
        before = [one.model_copy(deep=True) for one in state["messages"]]
        try:
            expected = oracle.assemble(chat, events=events, open_calls="synthesize")
        except BudgetError:
            return
        events = expected.events
        try:
            seen, update = requested(context, state)
        except BudgetError:
            # As LangChain writes arguments, what must stay is a little larger.
            assert expected.tokens_upper > BUDGET - 64
            return
        assert state["messages"] == before
        counted = COUNTER.count_messages(chat_of(seen), dialect="openai")
        assert counted.total <= BUDGET
        assert errors_in(seen) == []
        if len(context_events(update)) > len(expected.events):
            return  # arguments took more room as LangChain writes them
        plain = [message_of(one) for one in expected.messages]
        wanted = [{**one, "id": None} for one in chat_of(plain)]
        found = [{**one, "id": None} for one in chat_of(seen)]
        assert [one.get("tool_calls") for one in found] == [one.get("tool_calls") for one in wanted]
        assert [one["role"] for one in found] == [one["role"] for one in wanted]
        assert found == wanted
        assert errors_in(seen) == []
        for one in update.get("messages", []):
            assert one.id in {held.id for held in state["messages"]}
        state = applied(state, update)
        # The state shows what the request did, but for the notes of the packer.
        ids = {one.id for one in state["messages"]}
        assert same(
            [one for one in seen if one.id in ids],
            [one for one in state["messages"] if one.id in {held.id for held in seen}],
        )
        assert [given.content for given in given_messages] == [one.content for one in fresh]
        reply = AIMessage(f"reply {turn}")
        state = applied(state, {"messages": [reply]})
        raw.append(state["messages"][-1])


@given(kinds=st.lists(KINDS, max_size=6))
def test_a_message_is_the_same_after_packing(kinds: list[str]) -> None:
    for at, kind in enumerate(kinds):
        for message in made(kind, at):
            message.id = f"m{at}"
            assert unpack(pack(message)) == message


def test_what_cannot_be_written_as_json_does_not_stop_packing() -> None:
    message = ToolMessage("text", tool_call_id="c", id="m", artifact=object())
    message.response_metadata = {"raw": object()}
    found = unpack(pack(message))
    assert (found.content, found.id) == ("text", "m")


def test_messages_without_an_id_or_with_one_that_repeats_are_left_in_the_state() -> None:
    # A reducer that gives no ids, and a list that was set as it is.
    messages: list[BaseMessage] = [HumanMessage("the goal")]
    for at in range(12):
        step = made("step", at)
        step[0].id = "same"
        messages += step
    state: dict[str, Any] = {"messages": messages}
    context = middleware()
    seen, update = requested(context, state)
    assert "messages" not in update
    assert len(seen) < len(messages)
    assert errors_in(seen) == []
    # And planned again to the same request.
    again, _ = requested(middleware(), {**state, **update})
    assert same(seen, again)


def test_removals_by_others_take_what_was_kept_along() -> None:
    context = middleware(2_500)
    state: dict[str, Any] = {"messages": [], "satchel_kept": {}}
    fresh: list[BaseMessage] = [HumanMessage("the goal", id="goal")]
    for at in range(12):
        call, result = made("step", at)
        fresh += [call, result.model_copy(update={"content": text(at, 30)})]
    state = applied(state, {"messages": fresh})
    _, update = requested(context, state)
    state = applied(state, update)
    edited = list(state["satchel_context"]["edited"])
    assert edited
    gone = next(one for one in state["messages"] if one.id == edited[0])
    step = [one.id for one in state["messages"] if one.id == gone.id or _answers(one, gone)]
    state = applied(state, {"messages": [RemoveMessage(id=name) for name in step]})
    seen, update = requested(context, state)
    assert errors_in(seen) == []
    state = applied(state, update)
    assert f"m:{edited[0]}" not in state["satchel_kept"]


def _answers(message: BaseMessage, call: BaseMessage) -> bool:
    ids = {one["id"] for one in getattr(call, "tool_calls", [])}
    return isinstance(message, ToolMessage) and message.tool_call_id in ids
