"""`satchel.langgraph.SessionMessages`: messages in a session, an id and a version in the state."""

# The peers are typed in part, and what they return is looked at as it comes.
# pyright: reportMissingTypeStubs=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownMemberType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportPrivateUsage=false, reportDeprecated=false

from __future__ import annotations

import asyncio
import sqlite3
from typing import TYPE_CHECKING, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from langchain_agents import (
    GOAL,
    SYSTEM,
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
from satchel.errors import BudgetError, InputError, StoreError
from satchel.langgraph import SessionMessages, SessionRef

if TYPE_CHECKING:
    from pathlib import Path

BUDGET = 4_000
STEPS = 62


class State(TypedDict, total=False):
    """What the checkpointer sees of a thread: what is asked, and a reference."""

    question: str | None
    session: SessionRef | None


class BrokenError(Exception):
    """A process that ends in the middle."""


def breaking(script: Any, at: int) -> Any:
    def broken(number: int, messages: Any) -> Any:
        if number == at:
            raise BrokenError
        return script(number, messages)

    return broken


def graph_of(model: Any, history: SessionMessages, saver: Any) -> Any:
    def ask(state: State) -> State:
        asked = [HumanMessage(state.get("question") or "")]
        return {"session": history.append(state.get("session"), asked), "question": None}

    def call(state: State) -> State:
        window = history.window(state.get("session"), system=SYSTEM, tools=[read])
        reply = model.invoke([SystemMessage(SYSTEM), *window])
        return {"session": history.append(state.get("session"), [reply])}

    def use(state: State) -> State:
        last: Any = history.messages(state.get("session"))[-1]
        results = [
            ToolMessage(read.invoke(one["args"]), tool_call_id=one["id"], name="read")
            for one in last.tool_calls
        ]
        return {"session": history.append(state.get("session"), results)}

    async def aask(state: State) -> State:
        asked = [HumanMessage(state.get("question") or "")]
        return {"session": await history.aappend(state.get("session"), asked), "question": None}

    async def acall(state: State) -> State:
        window = await history.awindow(state.get("session"), system=SYSTEM, tools=[read])
        reply = await model.ainvoke([SystemMessage(SYSTEM), *window])
        return {"session": await history.aappend(state.get("session"), [reply])}

    def way_on(state: State) -> str:
        last: Any = history.messages(state.get("session"))[-1]
        return "tools" if last.tool_calls else END

    graph: Any = StateGraph(State)
    graph.add_node("ask", RunnableLambda(ask, aask))
    graph.add_node("model", RunnableLambda(call, acall))
    graph.add_node("tools", use)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", "model")
    graph.add_conditional_edges("model", way_on, ["tools", END])
    graph.add_edge("tools", "model")
    return graph.compile(checkpointer=saver)


def history_of(folder: Path, **options: Any) -> SessionMessages:
    url = f"sqlite:///{folder / 'sessions.db'}"
    given: dict[str, Any] = {"model": "gpt-4o", "budget": BUDGET, **options}
    return SessionMessages(url, **given)


def test_a_long_run_goes_on_after_a_restart_and_its_checkpoints_stay_small(tmp_path: Path) -> None:
    # #7843: a checkpointer that writes all messages for every step took 905 times their text.
    script = steps_of(STEPS)
    first, second = scripted(breaking(script, 31)), scripted(script)
    database = tmp_path / "checkpoints.db"
    with SqliteSaver.from_conn_string(str(database)) as saver, history_of(tmp_path) as history:
        app = graph_of(first, history, saver)
        with pytest.raises(BrokenError):
            app.invoke({"question": GOAL}, config())
    with SqliteSaver.from_conn_string(str(database)) as saver, history_of(tmp_path) as history:
        app = graph_of(second, history, saver)
        found = app.invoke(None, config())
        everything = history.messages(found["session"])
    asked = [*first.asked, *second.asked]
    assert len(asked) == STEPS + 2
    for messages in asked:
        assert errors_in(messages) == []
        assert tokens_of(messages, [_definition()]) <= BUDGET
        assert GOAL in [one.content for one in messages]
    assert same(first.asked[-1], second.asked[0])
    assert len(everything) == 2 * STEPS + 2
    assert [one.content for one in everything if one.type == "tool"] == [
        report_of(at) for at in range(STEPS)
    ]
    assert set(found) == {"question", "session"}
    text = sum(len(str(one.content)) for one in everything)
    with sqlite3.connect(database) as connection:
        [[size]] = connection.execute(
            "SELECT (SELECT total(length(checkpoint)) FROM checkpoints) + "
            "(SELECT total(length(value)) FROM writes)"
        )
    connection.close()
    # About a kilobyte for each of three checkpoints a step, whatever the messages are.
    assert size < 4 * text
    assert size / STEPS < 4_000


def _definition() -> dict[str, Any]:
    from langchain_core.utils.function_calling import (  # noqa: PLC0415 - beside its use
        convert_to_openai_tool,
    )

    return convert_to_openai_tool(read)


def test_the_asynchronous_run_is_as_long_and_its_requests_grow_at_their_end(
    tmp_path: Path,
) -> None:
    script = steps_of(STEPS)
    plain, other = scripted(script), scripted(script)
    with SqliteSaver.from_conn_string(":memory:") as saver, history_of(tmp_path) as history:
        graph_of(plain, history, saver).invoke({"question": GOAL}, config())

    async def run() -> None:
        path = str(tmp_path / "checkpoints.db")
        history = SessionMessages("memory://", model="gpt-4o", budget=BUDGET)
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            await graph_of(other, history, saver).ainvoke({"question": GOAL}, config())
        await history.aclose()

    asyncio.run(run())
    # Pointers are each session's own, so the text of two sessions may differ.
    assert len(plain.asked) == len(other.asked) == STEPS + 1
    for messages in other.asked:
        assert errors_in(messages) == []
        assert tokens_of(messages, [_definition()]) <= BUDGET
    grown = sum(map(is_prefix, plain.asked, plain.asked[1:]))
    assert grown > STEPS // 3


def test_a_node_that_runs_again_appends_nothing_twice(tmp_path: Path) -> None:
    with history_of(tmp_path) as history:
        ref = history.append(None, [HumanMessage(GOAL, id="goal")])
        reply = AIMessage("Yes.", id="reply")
        first, again = history.append(ref, [reply]), history.append(ref, [reply])
        assert first == again
        assert [one.id for one in history.messages(again)] == ["goal", "reply"]


def test_an_earlier_reference_shows_what_was_then_and_begins_a_branch(tmp_path: Path) -> None:
    with history_of(tmp_path) as history:
        ref = history.append(None, [("user", GOAL)], session_id="mine")
        went_on = history.append(ref, [("ai", "One way.")])
        assert went_on["id"] == "mine"
        assert [one.content for one in history.window(ref)] == [GOAL]
        other = history.append(ref, [("ai", "Another way.")])
        assert other["id"] != "mine"
        assert [one.content for one in history.messages(went_on)] == [GOAL, "One way."]
        assert [one.content for one in history.messages(other)] == [GOAL, "Another way."]
        assert [one.content for one in history.window(other)] == [GOAL, "Another way."]


def test_an_earlier_window_is_the_one_that_was_given_then(tmp_path: Path) -> None:
    with history_of(tmp_path) as history:
        refs: list[SessionRef] = []
        windows: list[list[Any]] = []
        ref = history.append(None, [("user", GOAL)])
        for at in range(40):
            call: Any = {"name": "read", "args": {"number": at}, "id": f"c{at}"}
            ref = history.append(ref, [AIMessage("", tool_calls=[call])])
            ref = history.append(ref, [ToolMessage(report_of(at), tool_call_id=f"c{at}")])
            refs.append(ref)
            windows.append(history.window(ref, system=SYSTEM))
        for past, window in zip(refs, windows, strict=True):
            assert same(history.window(past, system=SYSTEM), window)


def test_messages_keep_ids_names_calls_and_blocks(tmp_path: Path) -> None:
    call: Any = {"name": "read", "args": {"number": 1}, "id": "c1", "type": "tool_call"}
    bad: Any = {"name": "read", "args": "{", "id": "c2", "error": None}
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    given = [
        HumanMessage([{"type": "text", "text": "Look"}], id="h", name="ada"),
        AIMessage(
            [thought, {"type": "text", "text": "x"}],
            tool_calls=[call],
            invalid_tool_calls=[bad],
            id="a",
        ),
        ToolMessage("one", tool_call_id="c1", id="t1"),
        ToolMessage("two", tool_call_id="c2", id="t2"),
    ]
    with history_of(tmp_path) as history:
        ref = history.append(None, given)
        found = history.messages(ref)
        assert [one.id for one in found] == ["h", "a", "t1", "t2"]
        assert [one.content for one in found] == [one.content for one in given]
        assert found[0].name == "ada"
        reply: Any = found[1]
        assert reply.tool_calls == [call]
        assert [one["args"] for one in reply.invalid_tool_calls] == ["{"]
        assert same(history.window(ref), given)


def test_images_keep_their_type_and_results_their_failure(tmp_path: Path) -> None:
    calls: Any = [{"name": "read", "args": {}, "id": f"c{at}"} for at in range(2)]
    images: Any = [
        {"type": "image", "base64": "/9j/AA==", "mime_type": "image/jpeg"},
        {"type": "image", "base64": "iVBORw=="},
    ]
    given = [
        HumanMessage(images, id="h"),
        AIMessage("", tool_calls=calls, id="a"),
        ToolMessage("broken", tool_call_id="c0", status="error", id="t0"),
        ToolMessage("fine", tool_call_id="c1"),
    ]
    with history_of(tmp_path) as history:
        ref = history.append(None, given)
        for found in (history.messages(ref), history.window(ref)):
            content: Any = found[0].content
            urls = [one["image_url"]["url"].split(",")[0] for one in content]
            assert urls == ["data:image/jpeg;base64", "data:image/png;base64"]
            results = [one for one in found if isinstance(one, ToolMessage)]
            assert [one.status for one in results] == ["error", "success"]


def test_a_session_belongs_to_one_user_and_must_be_there(tmp_path: Path) -> None:
    with history_of(tmp_path, user_id="ada") as mine, history_of(tmp_path, user_id="bob") as theirs:
        ref = mine.append(None, [("user", GOAL)])
        for act in (theirs.messages, theirs.window, lambda one: theirs.append(one, [])):
            with pytest.raises(StoreError) as caught:
                act(ref)
            assert caught.value.code == "wrong_user"
        with pytest.raises(StoreError) as caught:
            mine.window({"id": "nobody's", "version": 1, "messages": 1})
        assert caught.value.code == "session_not_found"


def test_what_cannot_fit_is_a_typed_error(tmp_path: Path) -> None:
    with history_of(tmp_path, budget=100) as history:
        ref = history.append(None, [("user", "word " * 500)])
        with pytest.raises(BudgetError):
            history.window(ref)


@pytest.mark.parametrize(
    "ref", [3, {}, {"id": "x"}, {"id": 3, "messages": 1}, {"id": "x", "messages": -1}]
)
def test_what_is_no_reference_is_refused(tmp_path: Path, ref: Any) -> None:
    with history_of(tmp_path) as history:
        for act in (history.messages, history.window, lambda one: history.append(one, [])):
            with pytest.raises(InputError):
                act(ref)


def test_nothing_yet_is_nothing(tmp_path: Path) -> None:
    with history_of(tmp_path) as history:
        assert history.messages(None) == history.window(None) == []
