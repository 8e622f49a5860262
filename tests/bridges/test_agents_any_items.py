"""Any list of items becomes a request that the provider takes, or a typed error."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from agents import Agent
from agents.run_config import CallModelData, ModelInputData
from hypothesis import given
from hypothesis import strategies as st

import satchel
from agent_loops import MODEL, errors_in
from satchel.openai_agents import context_filter, session_input_callback
from satchel.openai_agents.items import first_whole

AGENT: Agent[Any] = Agent(name="a")
NAMES = st.sampled_from(["c1", "c2", "c3"])
TEXT = st.text("ab \n\u00e9\u4e2d", min_size=1, max_size=30).map(lambda text: text * 12)


def kind(name: str, /, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(name), **fields})


ITEM: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "assistant", "system", "developer"]), "content": TEXT}
    ),
    kind(
        "message",
        id=st.sampled_from(["msg_1", "msg_2", "__fake_id__"]),
        role=st.just("assistant"),
        status=st.just("completed"),
        content=TEXT.map(lambda text: [{"type": "output_text", "text": text, "annotations": []}]),
    ),
    kind("function_call", call_id=NAMES, name=st.just("f"), arguments=st.just('{"q": 1}')),
    kind("function_call_output", call_id=NAMES, output=TEXT),
    kind("custom_tool_call", call_id=NAMES, name=st.just("g"), input=TEXT),
    kind("custom_tool_call_output", call_id=NAMES, output=TEXT),
    kind(
        "shell_call",
        call_id=NAMES,
        action=st.just({"commands": ["ls"]}),
        status=st.just("completed"),
    ),
    kind(
        "shell_call_output",
        call_id=NAMES,
        output=TEXT.map(
            lambda text: [
                {"stdout": text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
            ]
        ),
    ),
    kind(
        "reasoning",
        id=st.sampled_from(["rs_1", "rs_2"]),
        summary=st.just([]),
        encrypted_content=st.sampled_from([None, "signed"]),
    ),
    kind("web_search_call", id=st.just("ws_1"), status=st.just("completed")),
)
ITEMS = st.lists(ITEM, max_size=16)
ASKED: Any = {"role": "user", "content": "And now?"}


@given(ITEMS, st.integers(150, 3_000))
def test_any_items_are_packed_into_a_valid_request(
    items: list[dict[str, Any]], budget: int
) -> None:
    windows: list[satchel.Window] = []
    pack = context_filter(
        model=MODEL, budget=budget, server_managed=False, on_window=windows.append
    )
    given_items: list[Any] = [*items, ASKED]
    before = json.dumps(given_items)
    data = CallModelData(ModelInputData(given_items, "Be brief."), AGENT, None)
    refused: satchel.BudgetError | None = None
    found: list[Any] = []
    try:
        found = asyncio.run(pack(data)).input
    except satchel.BudgetError as error:
        refused = error
    if refused is None:
        assert errors_in(found) == []
        assert windows[0].tokens_upper <= budget
        assert ASKED in found
    else:
        assert refused.limit is not None
    assert json.dumps(given_items) == before


@given(ITEMS, ITEMS)
def test_joined_items_are_the_same_objects_and_parted_from_nothing(
    history: list[dict[str, Any]], new: list[dict[str, Any]]
) -> None:
    joined = session_input_callback(history, new)
    assert joined[len(joined) - len(new) :] == new
    kept = joined[: len(joined) - len(new)]
    places = {id(item): at for at, item in enumerate(history)}
    order = [places[id(item)] for item in kept]
    assert order == sorted(order)
    codes = {"or1_unanswered_call", "or2_orphan_output", "or3_lone_reasoning"}
    found = satchel.lint(joined, "openai-responses")
    assert not [
        one
        for one in found
        if one.code in codes and one.index is not None and one.index < len(kept)
    ]


@given(ITEMS, st.integers(0, 20))
def test_a_cut_orphans_no_output(items: list[dict[str, Any]], start: int) -> None:
    def orphans(chosen: list[dict[str, Any]]) -> int:
        found = satchel.lint(chosen, "openai-responses")
        return sum(violation.code == "or2_orphan_output" for violation in found)

    cut = first_whole(items, start)
    assert cut >= min(start, len(items)) or start == 0
    # Those that had no call before have none now; no other lost its call.
    assert orphans(items[cut:]) <= orphans(items)


def test_calls_with_one_id_are_cut_off_together() -> None:
    def call(kind_of_call: str) -> dict[str, Any]:
        return {"type": kind_of_call, "call_id": "c", "name": "f", "arguments": "{}"}

    def output(kind_of_output: str) -> dict[str, Any]:
        return {"type": kind_of_output, "call_id": "c", "output": "4"}

    items = [
        ASKED,
        call("custom_tool_call"),
        call("function_call"),
        output("function_call_output"),
        output("custom_tool_call_output"),
        ASKED,
    ]
    assert [first_whole(items, start) for start in range(7)] == [0, 1, 5, 5, 5, 5, 6]
