"""`satchel.sync`: the names of `satchel.open_session` and `Session`, waiting for what they do."""

from __future__ import annotations

import asyncio
import inspect
import os
import subprocess
import sys
import threading
from typing import Any

import pytest

import satchel
import satchel.session
from satchel import sync
from satchel.policy import Policy, SummarySettings
from satchel.stores import MemoryStore
from satchel.summarize import SummaryRequest, SummaryResult

POLICY = Policy(
    name="test",
    summary=SummarySettings(
        above_messages=8,
        above_share=None,
        keep_messages=4,
        max_tokens=80,
        receipt_tokens=0,
        background=False,
    ),
)


def said(number: int) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    return {"role": role, "content": f"Remark {number}: " + f"word{number} " * 40}


def opened(store: MemoryStore, **options: Any) -> sync.Session:
    wanted: dict[str, Any] = {"session_id": "s", "model": "gpt-4o", "budget": 2_000, **options}
    return sync.open_session(store, **wanted)


def test_every_call_does_what_the_waiting_one_does() -> None:
    store = MemoryStore()
    with opened(store, user_id="ada") as session:
        assert session.append([said(number) for number in range(3)]) == session.version
        session.record({"role": "assistant", "content": "Noted."})
        assert len(session.messages()) == 4
        assert session.messages(1) == [{"role": "assistant", "content": "Noted."}]
        session.pin(1)
        session.unpin(1)
        session.apply({"kind": "cache", "cold": True})
        kinds = [event["kind"] for event in session.events()]
        assert kinds == ["settings", "pin", "unpin", "cache"]
        window = session.window(system="Be brief.", query="words")
        assert window.system == "Be brief."
        assert len(session.explain()) == len(session.explain(0)) + 3
        session.append([said(number) for number in range(4, 19)])
        window = session.window()
        assert session.observe_overflow("context_length_exceeded").tokens < window.tokens
        assert "Remark" in session.page_in(session.window().pages[0].pointer)
        assert session.state.set({"step": 1}) == 1
        assert session.state.get() == ({"step": 1}, 1)
        with session.branch(2, session_id="b") as branch:
            assert (branch.session_id, branch.user_id) == ("b", "ada")
            assert len(branch.messages()) == 2
        session.rewind(2)
        assert len(session.messages()) == 2
        assert "satchel.sync.Session" in repr(session)
    with opened(store, user_id="ada") as again:
        assert again.messages() == [said(0), said(1)]


def test_errors_come_through() -> None:
    store = MemoryStore()
    with opened(store, user_id="ada") as session:
        with pytest.raises(satchel.StoreError) as caught, opened(store, user_id="bob"):
            pass
        assert caught.value.code == "wrong_user"
        with pytest.raises(satchel.CompactionError) as empty:
            session.compact(force=True)
        assert empty.value.code == "nothing_to_compact"
        with pytest.raises(satchel.PageNotFoundError):
            session.page_in("p_000000000000000000")
    with pytest.raises(satchel.InputError):
        sync.open_session("nowhere://", session_id="s", model="gpt-4o")


def test_summaries_and_their_hooks_work_alike() -> None:
    handed_on: list[tuple[str, int, int]] = []

    def keep(part: Any, written: Any) -> None:
        assert written.text
        handed_on.append((threading.current_thread().name, part.first, part.end))

    with opened(MemoryStore(), policy=POLICY, flushed=keep) as session:
        session.append([said(number) for number in range(15)])
        report = session.window().report.summary
        assert report is not None
        assert report.is_done
        assert session.newest_compaction == report
    [(thread, first, end)] = handed_on
    assert (first, end) == report.covers
    assert thread != "satchel.sync"


def test_threads_take_turns() -> None:
    failed: list[BaseException] = []

    with opened(MemoryStore(), budget=20_000) as session:

        def write(writer: int) -> None:
            try:
                for number in range(10):
                    session.append([said(2 * number), said(2 * number + 1)], ids=None)
                    assert session.window().tokens > 0
                    session.pin(0)
            except BaseException as error:
                failed.append(error)
                raise
            assert writer >= 0

        threads = [threading.Thread(target=write, args=(writer,)) for writer in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        messages = session.messages()
    assert len(messages) == 100
    # What was appended in one call stays together.
    assert all(
        messages[at]["content"] == said(int(messages[at]["content"].split()[1][:-1]))["content"]
        and messages[at + 1]["role"] == "assistant"
        for at in range(0, 100, 2)
    )


def test_it_works_where_a_loop_is_running() -> None:
    async def notebook() -> int:
        # As in a notebook, whose loop waits while a cell runs.
        with opened(MemoryStore()) as session:
            session.append(said(0))
            return len(session.window().messages)

    assert asyncio.run(notebook()) == 1


def test_code_on_its_own_loop_is_told_that_it_would_wait_for_itself() -> None:
    class Calls:
        name = "calls"

        async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
            assert request.transcript
            session.messages()
            return SummaryResult(text="never")

    with opened(MemoryStore(), policy=POLICY, summarizer=Calls()) as session:
        session.append([said(number) for number in range(15)])
        report = session.window().report.summary
    assert report is not None
    assert "own event loop" in report.failures[0].message


def test_the_names_and_their_arguments_are_the_same() -> None:
    def arguments(call: Any) -> list[tuple[str, Any, Any]]:
        found = inspect.signature(call).parameters.values()
        return [(one.name, one.kind, one.default) for one in found]

    pairs = ((satchel.Session, sync.Session), (satchel.session.SessionState, sync.SessionState))
    for theirs, mine in pairs:
        names = [name for name in dir(theirs) if not name.startswith("_")]
        assert names == [name for name in dir(mine) if not name.startswith("_")]
        for name in names:
            static = inspect.getattr_static(theirs, name)
            if inspect.isroutine(static):
                assert arguments(getattr(theirs, name)) == arguments(getattr(mine, name)), name
    assert arguments(satchel.open_session) == arguments(sync.open_session)


PROGRAM = """
import threading, satchel.sync
{body}
print([thread.name for thread in threading.enumerate()])
"""


@pytest.mark.parametrize(
    "body",
    [
        "",
        "satchel.sync.open_session('memory://', session_id='s', model='gpt-4o').__enter__()",
        "with satchel.sync.open_session('memory://', session_id='s', model='gpt-4o'): exit()",
    ],
)
def test_a_program_ends_whatever_is_left_open(body: str) -> None:
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-W", "error", "-c", PROGRAM.format(body=body)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    # Nothing runs before it is needed.
    assert (b"satchel.sync" in done.stdout) == body.startswith("satchel")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_child_process_begins_anew() -> None:
    body = (
        "import os, sys\n"
        "open_ = lambda: satchel.sync.open_session('memory://', session_id='s', model='gpt-4o')\n"
        "with open_() as session: session.append({'role': 'user', 'content': 'hi'})\n"
        "child = os.fork()\n"
        "with open_() as session: assert len(session.messages()) == 1\n"
        "if child: sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))\n"
    )
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-c", PROGRAM.format(body=body)],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
