"""`satchel.langchain.ContextMiddleware` over messages that are broken, odd or somebody else's."""

# The peers are typed in part, and what they return is looked at as it comes.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessageChunk,
    HumanMessage,
    ToolMessage,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from langchain_agents import (
    COUNTER,
    agent_of,
    call,
    config,
    errors_in,
    scripted,
    tokens_of,
)
from satchel.langchain import ContextMiddleware
from satchel.langchain.middleware_log import pack, unpack
from satchel.langchain.middleware_results import shortened


class Custom(HumanMessage):
    """A class that LangChain knows nothing of."""

    type: Any = "custom"
    name: str | None = "ada"


def done(_: int, __: list[BaseMessage]) -> AIMessage:
    return AIMessage("done")


def filler(count: int = 30) -> list[BaseMessage]:
    """Turns that no small budget holds."""
    found: list[BaseMessage] = []
    for at in range(count):
        found.append(HumanMessage(f"question {at} " + "text " * 60, id=f"h{at}"))
        found.append(AIMessage(f"answer {at} " + "text " * 60, id=f"a{at}"))
    return found


def step(name: Any, at: int) -> list[BaseMessage]:
    """Two calls with one id, and their results."""
    calls: Any = [{"name": "read", "args": {"number": at}, "id": name} for _ in range(2)]
    results = [ToolMessage(f"{at}-{one}", tool_call_id=name or "") for one in range(2)]
    return [AIMessage("", tool_calls=calls), *results]


def one_call(name: Any, *, invalid: bool = False) -> list[BaseMessage]:
    if invalid:
        bad: Any = [{"name": None, "args": '{"a', "id": name, "error": "bad"}]
        return [AIMessage("", invalid_tool_calls=bad)]
    good: Any = [{"name": "read", "args": {}, "id": name}]
    return [AIMessage("", tool_calls=good)]


@pytest.mark.parametrize(
    "history",
    [
        [one for at in range(4) for one in step("same", at)],
        [*one_call(""), ToolMessage("a", tool_call_id="")],
        one_call(None),
        one_call(None, invalid=True),
    ],
    ids=["repeated", "empty", "none", "nameless"],
)
def test_calls_without_an_id_of_their_own_are_repaired_in_the_request(
    history: list[BaseMessage],
) -> None:
    # The repair of the window was lost on the way back to LangChain's messages.
    model = scripted(done)
    agent = agent_of(model, ContextMiddleware(budget=15_000), saver=InMemorySaver())
    agent.invoke({"messages": [HumanMessage("Go"), *history, HumanMessage("On")]}, config())
    agent.invoke({"messages": [HumanMessage("And on")]}, config())
    first, second = model.asked
    assert errors_in(first) == errors_in(second) == []
    results = [one.content for one in second if isinstance(one, ToolMessage)]
    said = [one.content for one in history if isinstance(one, ToolMessage)]
    assert [one for one in results if one in said] == said


def test_repaired_calls_are_repaired_in_the_blocks_too() -> None:
    calls: Any = [{"name": "read", "args": {"number": at}, "id": "same"} for at in range(2)]
    uses = [
        {"type": "tool_use", "id": "same", "name": "read", "input": {"number": at}}
        for at in range(2)
    ]
    reply = AIMessage([{"type": "text", "text": "Look"}, *uses], tool_calls=calls)
    results = [ToolMessage(f"{at}", tool_call_id="same") for at in range(2)]
    model = scripted(done)
    agent_of(model, ContextMiddleware(budget=15_000)).invoke(
        {"messages": [HumanMessage("Go"), reply, *results, HumanMessage("On")]}, config()
    )
    shown: Any = next(one for one in model.asked[0] if isinstance(one, AIMessage))
    ids = [one["id"] for one in shown.tool_calls]
    assert len({*ids}) == 2
    blocks = [one for one in shown.content if one["type"] == "tool_use"]
    assert [one["id"] for one in blocks] == ids
    assert [one["input"]["number"] for one in blocks] == [0, 1]
    asked = [one.tool_call_id for one in model.asked[0] if isinstance(one, ToolMessage)]
    assert asked == ids


def test_a_message_of_another_class_does_not_end_the_thread() -> None:
    history = filler()
    history.insert(3, Custom(content="custom " * 30, id="cm"))
    model = scripted(done)
    agent = agent_of(model, ContextMiddleware(budget=1_500), saver=InMemorySaver())
    agent.invoke({"messages": [*history, HumanMessage("Now")]}, config())
    for _ in range(2):
        agent.invoke({"messages": [HumanMessage("Again")]}, config())
    assert len(model.asked) == 3
    assert all(errors_in(messages) == [] for messages in model.asked)


def test_what_is_packed_is_read_as_one_of_langchains_classes() -> None:
    custom = unpack(pack(Custom(content="text", id="c")))
    assert type(custom) is HumanMessage
    assert (custom.content, custom.id, custom.name) == ("text", "c", "ada")
    chunk = ChatMessageChunk(content="text", role="critic", id="k")
    assert unpack(pack(chunk)) == chunk


def test_arguments_that_are_no_json_do_not_stop_packing() -> None:
    calls: Any = [{"name": "read", "args": {"where": {1j}, "number": 1}, "id": "c"}]
    found: Any = unpack(pack(AIMessage("x", id="a", tool_calls=calls)))
    assert (found.content, found.id) == ("x", "a")
    [kept] = found.tool_calls
    assert (kept["id"], kept["args"]["number"], kept["args"]["where"]) == ("c", 1, str({1j}))


def test_calls_that_another_middleware_adds_are_counted() -> None:
    why = "because of the long text that stands in file.py " * 60

    class Examples(AgentMiddleware):
        """Shows the model how it is done."""

        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            shown = AIMessage("", tool_calls=[call("read", 900, number=1, why=why)])
            result = ToolMessage("fine", tool_call_id=shown.tool_calls[0]["id"])
            return handler(request.override(messages=[shown, result, *request.messages]))

    model = scripted(done)
    context = ContextMiddleware(model="gpt-4o", budget=2_500)
    agent = agent_of(model, context, before=[Examples()])
    agent.invoke({"messages": [*filler(), HumanMessage("Now")]}, config())
    [messages] = model.asked
    assert any(why in str(getattr(one, "tool_calls", "")) for one in messages)
    assert tokens_of(messages, model.bound[0]) <= 2_500


def test_a_result_for_another_graph_stays_whole() -> None:
    # What is kept behind a pointer would be lost there.
    result = ToolMessage("line of a report\n" * 400, tool_call_id="c")
    here: Any = Command(update={"messages": [result]})
    there: Any = Command(graph=Command.PARENT, update={"messages": [result]})
    assert shortened(there, COUNTER, 100) is there
    assert shortened(here, COUNTER, 100) is not here
