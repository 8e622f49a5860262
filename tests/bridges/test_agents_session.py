"""`SatchelSession` against the SDK's protocol and its own SQLite session, over every store."""

# The SDK's own compaction uses a private part of its sessions; so do these tests.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any, cast

import pytest
from agents import Agent, RunConfig, Runner, SessionSettings, SQLiteSession
from agents.memory import OpenAIResponsesCompactionSession, Session
from agents.memory.session import is_openai_responses_compaction_aware_session
from agents.testing import ScriptedModel
from hypothesis import given
from hypothesis import strategies as st

import satchel
from agent_loops import MODEL, answer_step, errors_in, scripted, tool_run
from satchel.openai_agents import SatchelSession, context_filter, session_input_callback
from satchel.openai_agents import session as session_module
from satchel.openai_agents.items import is_delta
from satchel.stores import Entry, MemoryStore

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

USER: Any = {"role": "user", "content": "hello"}


def said(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def asked(*names: str) -> list[Any]:
    return [
        {"type": "function_call", "call_id": name, "name": "f", "arguments": "{}"} for name in names
    ]


def answered(*names: str) -> list[Any]:
    return [{"type": "function_call_output", "call_id": name, "output": "4"} for name in names]


def on(
    url: str, work: Callable[[SatchelSession], Coroutine[Any, Any, None]], **options: Any
) -> None:
    """Does it with a session that is new before and gone after."""

    async def run() -> None:
        async with SatchelSession("agents-tests", url, **options) as session:
            await session.clear_session()
            await work(session)
            await session.clear_session()

    asyncio.run(run())


def test_it_is_a_session_for_the_sdk() -> None:
    session = SatchelSession("s")
    assert isinstance(session, Session)
    assert not is_openai_responses_compaction_aware_session(session)
    assert session.session_id == "s"
    assert session.session_settings is None


def test_items_come_back_in_order_and_as_they_were(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        odd: list[Any] = [
            {"role": "user", "content": "half of \ud83d a pair"},
            {"z": 1, "a": [None, True, 2**70, 1.5], "type": "unknown", "content": {"$bytes": 1}},
            {"role": "user", "content": ""},
            *asked("one"),
            *answered("one"),
        ]
        await session.add_items(odd)
        await session.add_items([])
        await session.add_items(said("last"))
        assert await session.get_items() == [*odd, *said("last")]
        assert list((await session.get_items())[1]) == list(odd[1])
        found = await session.get_items()
        found[0]["content"] = "changed by the caller"
        assert (await session.get_items())[0] == odd[0]

    on(store_url, work)


def test_limits(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        await session.add_items(said("a", "b", "c"))
        assert await session.get_items(limit=2) == said("b", "c")
        assert await session.get_items(limit=9) == said("a", "b", "c")
        # openai-agents#4331: 0 is none, not all.
        assert await session.get_items(limit=0) == []
        with pytest.raises(satchel.InputError):
            await session.get_items(limit=-1)
        session.session_settings = SessionSettings(limit=1)
        assert await session.get_items() == said("c")
        assert await session.get_items(limit=2) == said("b", "c")
        session.session_settings = SessionSettings(limit=0)
        assert await session.get_items() == []
        assert SatchelSession("x", session_settings={"limit": 3}).session_settings.limit == 3

    on(store_url, work)


def test_a_limit_of_the_settings_begins_with_a_whole_step(store_url: str) -> None:
    thinking: list[Any] = [{"type": "reasoning", "id": "rs_1", "summary": []}]
    history = [*said("a"), *thinking, *asked("x", "y"), *answered("y", "x"), *said("b")]

    async def work(session: SatchelSession) -> None:
        await session.add_items(history)
        expected = {1: said("b"), 5: said("b"), 6: history[1:], 7: history, 9: history}
        for limit, items in expected.items():
            session.session_settings = SessionSettings(limit=limit)
            assert await session.get_items() == items
            assert errors_in(items) == []

    on(store_url, work)


def test_a_limited_run_never_orphans_a_call(tmp_path: Path) -> None:
    async def run() -> None:
        url = f"sqlite:///{tmp_path / 'agent.db'}"
        for callback in (None, session_input_callback):
            for limit in range(1, 14):
                settings = RunConfig(
                    session_settings=SessionSettings(limit=limit),
                    session_input_callback=callback,
                    call_model_input_filter=context_filter(model=MODEL),
                    tracing_disabled=True,
                )
                session = SatchelSession(f"s{limit}{callback is None}", url)
                for first in (0, 10):
                    agent, model = scripted(tool_run(first, 6))
                    await Runner.run(agent, "Go.", session=session, run_config=settings)
                    assert all(errors_in(call.input) == [] for call in model.calls)
                await session.close()

    asyncio.run(run())


def test_pop(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        assert await session.pop_item() is None
        await session.add_items(said("a", "b"))
        assert await session.pop_item() == said("b")[0]
        await session.add_items(said("c"))
        assert await session.pop_item() == said("c")[0]
        assert await session.pop_item() == said("a")[0]
        assert await session.pop_item() is None
        assert await session.get_items() == []

    on(store_url, work)


def test_clear_removes_everything(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        await session.add_items(said("a", "b"))
        await session._store.put_value("agents-tests", "state", b"{}")
        await session._store.put_pages("agents-tests", {"p_1": b"secret"})
        await session.clear_session()
        assert await session.get_items() == []
        assert await session._store.value_names("agents-tests") == []
        assert await session._store.page_pointers("agents-tests") == []
        # Others that have it open go on with the empty one.
        other = SatchelSession("agents-tests", session._store)
        await other.add_items(said("x"))
        await session.clear_session()
        await other.add_items(said("y"))
        assert await other.get_items() == said("y")
        assert await session.get_items() == said("y")

    on(store_url, work)


def test_two_that_write_see_one_another(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        other = SatchelSession("agents-tests", store_url)
        await session.add_items(said("a"))
        assert await other.get_items() == said("a")
        await other.add_items(said("b", "c"))
        assert await session.pop_item() == said("c")[0]
        # As many as before, but not the same.
        await session.add_items(said("d"))
        assert await other.get_items() == said("a", "b", "d")
        await asyncio.gather(
            *(
                one.add_items(said(f"{at}.1", f"{at}.2"))
                for at in range(12)
                for one in (session, other)
            )
        )
        texts = [item["content"] for item in await other.get_items()][3:]
        pairs = list(zip(texts[::2], texts[1::2], strict=True))
        assert all(first[:-2] == second[:-2] for first, second in pairs)
        popped = await asyncio.gather(
            *(one.pop_item() for _ in range(12) for one in (session, other))
        )
        assert sorted(item["content"] for item in popped) == sorted(texts[-24:])
        await other.close()

    on(store_url, work)


def test_the_sequence_is_the_store_s_and_no_clock(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # openai-agents#1900, #2843: items of one moment, or of a clock that goes back, change places.
    async def work(session: SatchelSession) -> None:
        monkeypatch.setattr("time.time", iter(range(10_000, 0, -1)).__next__)
        for at in range(30):
            await session.add_items(said(f"{at}a", f"{at}b"))
        monkeypatch.undo()
        texts = [item["content"] for item in await session.get_items()]
        assert texts == [f"{at}{letter}" for at in range(30) for letter in "ab"]

    on(store_url, work)


def test_a_damaged_item_is_passed_over() -> None:
    # openai-agents#3304: None from pop_item means that nothing is left, not that one was damaged.
    async def run() -> None:
        store = MemoryStore()
        session = SatchelSession("s", store)
        await session.add_items(said("a", "b"))
        await store.append("s", [Entry("message", b"{damaged")])
        await session.add_items(said("c"))
        await store.append("s", [Entry("message", b"\xff")])
        assert await session.get_items() == said("a", "b", "c")
        assert await session.get_items(limit=2) == said("b", "c")
        assert await session._get_compaction_snapshot(5) is None
        assert [await session.pop_item() for _ in range(4)] == [*said("c", "b", "a"), None]

    asyncio.run(run())


def test_it_belongs_to_one_user(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        await session.add_items(said("mine"))
        for other in (None, "bob"):
            theirs = SatchelSession("agents-tests", store_url, user_id=other)
            for act in (theirs.get_items, theirs.pop_item, theirs.clear_session):
                with pytest.raises(satchel.StoreError) as caught:
                    await act()
                assert caught.value.code == "wrong_user"
            await theirs.close()
        assert await session.get_items() == said("mine")

    on(store_url, work, user_id="alice")


def test_what_was_opened_is_not_read_when_the_id_is_somebody_else_s(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        await session.add_items(said("mine"))
        assert await session.get_items() == said("mine")
        await SatchelSession("agents-tests", session._store, user_id="alice").clear_session()
        theirs = SatchelSession("agents-tests", session._store, user_id="bob")
        await theirs.add_items(said("secret"))
        for act in (
            session.get_items,
            session.pop_item,
            session.clear_session,
            lambda: session.add_items(said("late")),
            lambda: session._get_compaction_snapshot(3),
        ):
            with pytest.raises(satchel.StoreError) as caught:
                await act()
            assert caught.value.code == "wrong_user"
        assert await theirs.get_items() == said("secret")
        # Free again, it is made anew for whoever comes first.
        await theirs.clear_session()
        await session.add_items(said("again"))
        assert await session.get_items() == said("again")

    on(store_url, work, user_id="alice")


def test_an_id_that_ran_out_may_go_to_somebody_else() -> None:
    async def run() -> None:
        now = [1_000.0]
        store = MemoryStore(clock=lambda: now[0])
        session = SatchelSession("s", store, user_id="alice", ttl_s=10)
        await session.add_items(said("mine"))
        now[0] += 11
        theirs = SatchelSession("s", store, user_id="bob")
        await theirs.add_items(said("secret"))
        with pytest.raises(satchel.StoreError) as caught:
            await session.add_items(said("late"))
        assert caught.value.code == "wrong_user"
        assert await theirs.get_items() == said("secret")

    asyncio.run(run())


def test_big_items_are_read_and_written_off_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    where: dict[str, list[bool]] = {"message_entries": [], "readable": []}

    def watch(name: str) -> None:
        own = getattr(session_module, name)

        def watched(*arguments: Any) -> Any:
            where[name].append(threading.current_thread() is threading.main_thread())
            return own(*arguments)

        monkeypatch.setattr(session_module, name, watched)

    async def run() -> None:
        session = SatchelSession("s", MemoryStore())
        big = said("x" * 20_000)
        await session.add_items(big)
        await session.add_items(said("a"))
        assert await session.get_items() == [*big, *said("a")]
        assert await session.get_items(limit=1) == said("a")

    watch("message_entries")
    watch("readable")
    asyncio.run(run())
    # Few bytes are read on the loop: a thread would take longer than they do.
    assert where == {"message_entries": [False, False], "readable": [False, True]}


def test_only_an_output_at_the_start_makes_one_look_further() -> None:
    strange: list[object] = [object()]
    assert not is_delta([])
    assert not is_delta([*said("a"), *strange])
    assert not is_delta([*answered("x"), *asked("y")])
    assert is_delta([*answered("x", "y"), *said("a")])
    with pytest.raises(satchel.InputError):
        is_delta([*answered("x"), *strange])


def test_the_run_s_context_may_be_passed(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        await session.add_items(said("a"), wrapper=None)
        assert await session.get_items(wrapper=object()) == said("a")
        assert await session.pop_item(wrapper=object()) == said("a")[0]
        await session.clear_session(wrapper=object())

    on(store_url, work)


def test_the_end_is_replaced_if_it_is_as_it_was(store_url: str) -> None:
    async def work(session: SatchelSession) -> None:
        await session.add_items(said("a", "b", "c", "d"))
        snapshot = await session._get_compaction_snapshot(3)
        assert snapshot is not None
        assert snapshot.items == said("b", "c", "d")
        assert not snapshot.complete
        assert not await snapshot.replace_suffix(3, said("x"))
        assert await snapshot.replace_suffix(1, said("x"))
        assert await session.get_items() == said("a", "b", "x")
        # Not a second time: what it saw is gone.
        assert not await snapshot.replace_suffix(1, said("y"))
        whole = await session._get_compaction_snapshot(3)
        assert whole is not None
        assert whole.complete
        await session.add_items(said("late"))
        assert not await whole.replace_suffix(0, said("y"))
        assert await session.get_items() == said("a", "b", "x", "late")
        # Items below a replaced stretch can still be taken off.
        assert [(await session.pop_item())["content"] for _ in range(3)] == ["late", "x", "b"]
        await session.add_items(said("e", "f"))
        pruning = await session._get_compaction_snapshot(
            1, prune_prefix=lambda item: item in said("a")
        )
        assert pruning is not None
        assert await pruning.replace_suffix(0, said("g"))
        assert await session.get_items() == said("e", "g")
        assert [(await session.pop_item())["content"] for _ in range(2)] == ["g", "e"]
        assert await session.pop_item() is None
        await session.add_items(said("new"))
        assert await session.get_items() == said("new")

    on(store_url, work)


class _Compacted:
    """What the client gives for a compaction."""

    def __init__(self, output: list[Any]) -> None:
        self.output = output
        self.usage = None


def test_the_sdk_s_compaction_session_works_over_it(store_url: str) -> None:
    class Responses:
        async def compact(self, **request: Any) -> _Compacted:
            calls.append(request)
            return _Compacted([{"role": "user", "content": "the gist"}])

    class Client:
        responses = Responses()

    calls: list[Any] = []

    async def work(session: SatchelSession) -> None:
        client: Any = Client()
        compacting = OpenAIResponsesCompactionSession(
            "agents-tests",
            session,
            client=client,
            model="gpt-4.1",
            should_trigger_compaction=bool,
            compaction_mode="input",
        )
        agent, _ = scripted(tool_run(0, 3))
        await Runner.run(
            agent, "Go.", session=compacting, run_config=RunConfig(tracing_disabled=True)
        )
        assert len(calls) >= 1
        texts = [item.get("content") for item in await session.get_items()]
        assert "the gist" in texts

    on(store_url, work)


def test_a_working_set_over_what_is_stored() -> None:
    async def run() -> None:
        windows: list[satchel.Window] = []
        pack = context_filter(model=MODEL, budget=3_000, on_window=windows.append)
        session = SatchelSession("s", "memory://working-set", model=MODEL)
        agent, _ = scripted(tool_run(0, 20))
        await Runner.run(
            agent,
            "Go.",
            session=session,
            max_turns=30,
            run_config=RunConfig(call_model_input_filter=pack, tracing_disabled=True),
        )
        working_set = await session.working_set(budget=3_000, instructions="Fix it.")
        found = working_set.window()
        pages = {page.pointer for page in windows[-1].pages}
        assert pages & {page.pointer for page in found.pages}
        pointer = next(page.pointer for page in found.pages if page.message is not None)
        assert working_set.page_in(pointer)
        with pytest.raises(satchel.InputError):
            await SatchelSession("s", "memory://working-set").working_set()

    asyncio.run(run())


def test_the_same_session_can_be_opened_by_satchel() -> None:
    async def run() -> None:
        session = SatchelSession("s", "memory://both")
        agent, _ = scripted(tool_run(0, 5))
        settings = RunConfig(tracing_disabled=True)
        await Runner.run(agent, "Go.", session=session, run_config=settings)
        before = await session.get_items()
        own = satchel.open_session(
            "memory://both", session_id="s", model=MODEL, dialect="openai-responses", budget=2_000
        )
        async with own:
            window = await own.window()
            assert window.tokens_upper <= 2_000
        assert await session.get_items() == before
        assert await session.pop_item() == before[-1]
        assert await session.get_items() == before[:-1]

    asyncio.run(run())


@pytest.mark.parametrize(
    "arguments",
    [
        {"session_id": 7},
        {"session_id": ""},
        {"url": 7},
        {"url": "mongodb://x"},
        {"model": 7},
        {"user_id": 7},
        {"session_settings": {"limit": -1}},
        {"session_settings": {"limit": "all"}},
    ],
)
def test_wrong_arguments(arguments: dict[str, Any]) -> None:
    with pytest.raises(satchel.InputError):
        SatchelSession(**cast("Any", {"session_id": "s", **arguments}))


@pytest.mark.parametrize("items", [None, 7, "text", {"role": "user"}, [object()], [{1: object()}]])
def test_wrong_items(items: Any) -> None:
    async def run() -> None:
        session = SatchelSession("s", MemoryStore())
        with pytest.raises(satchel.InputError):
            await session.add_items([USER, *items] if isinstance(items, list) else items)
        assert await session.get_items() == []

    asyncio.run(run())


Act = tuple[str, Any]
ACTS: st.SearchStrategy[Act] = st.one_of(
    st.tuples(st.just("add"), st.lists(st.text(max_size=3), max_size=4)),
    st.tuples(st.just("pop"), st.none()),
    st.tuples(st.just("get"), st.one_of(st.none(), st.integers(0, 9))),
    st.tuples(st.just("clear"), st.none()),
    st.tuples(
        st.just("replace"), st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 3))
    ),
)


@given(st.lists(ACTS, max_size=25))
def test_it_does_what_the_sdk_s_own_session_does(acts: list[Act]) -> None:
    async def run() -> None:
        oracle = SQLiteSession("s", ":memory:")
        ours = SatchelSession("s", MemoryStore())
        observer = SatchelSession("s", ours._store)
        for number, (name, value) in enumerate(acts):
            if name == "add":
                await oracle.add_items(said(*value))
                await ours.add_items(said(*value))
            elif name == "pop":
                assert await ours.pop_item() == await oracle.pop_item()
            elif name == "clear":
                await oracle.clear_session()
                await ours.clear_session()
            elif name == "get":
                assert await ours.get_items(value) == await oracle.get_items(value)
            else:
                limit, start, count = value
                theirs = await oracle._get_compaction_snapshot(limit)
                mine = await ours._get_compaction_snapshot(limit)
                assert theirs is not None
                assert mine is not None
                assert (mine.items, mine.complete) == (theirs.items, theirs.complete)
                new = said(*(f"r{number}.{at}" for at in range(count)))
                assert await mine.replace_suffix(start, new) == await theirs.replace_suffix(
                    start, new
                )
            # Somebody who only reads now and then sees the same.
            if number % 3 == 0:
                assert await observer.get_items() == await oracle.get_items()
        assert await ours.get_items() == await oracle.get_items()
        oracle.close()

    asyncio.run(run())


def test_nothing_is_lost_where_a_run_ends_early() -> None:
    # The SDK stores as it goes: what was acknowledged is there, whatever comes then.
    async def run() -> None:
        session = SatchelSession("s", "memory://early")
        agent: Agent[Any] = Agent(name="a", model=ScriptedModel([answer_step(1)]))
        settings = RunConfig(tracing_disabled=True)
        await Runner.run(agent, "First.", session=session, run_config=settings)
        assert [item.get("role") for item in await session.get_items()] == ["user", "assistant"]
        assert json.dumps(await session.get_items())

    asyncio.run(run())
