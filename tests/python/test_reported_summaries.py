"""Cases that users of other libraries reported, about summaries and stored sessions.

Each is told in words and data of our own: what went wrong elsewhere, and what happens here.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.policy import Policy, SummarySettings
from satchel.stores import MemoryStore
from satchel.summarize import Patience, SummaryRequest, SummaryResult

if TYPE_CHECKING:
    from collections.abc import Coroutine

NOTE = "The ferry timetable was agreed"
HASTY = Patience(timeout_s=1, attempts=1, backoff_s=0)


class Says:
    """A summarizer that says one thing, or raises it; maybe not at once."""

    name = "says"

    def __init__(
        self, what: str | BaseException = NOTE, *, wait: asyncio.Event | None = None
    ) -> None:
        self._what = what
        self._wait = wait
        self.asked = 0

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        assert request.transcript or request.previous
        self.asked += 1
        if self._wait is not None:
            await self._wait.wait()
        if isinstance(self._what, BaseException):
            raise self._what
        return SummaryResult(text=self._what)


class RateLimitError(Exception):
    """As a provider's client raises it."""


def settings(**options: Any) -> Policy:
    wanted = SummarySettings(
        above_messages=1_000, above_share=None, keep_messages=1, max_tokens=60, receipt_tokens=0
    )
    return Policy(name="test", summary=wanted.model_copy(update=options))


def opened(store: Any, summarizer: Any, **options: Any) -> satchel.Session:
    wanted: dict[str, Any] = {
        "session_id": "s",
        "model": "gpt-4o",
        "budget": 4_000,
        "policy": settings(),
        "patience": HASTY,
        **options,
    }
    return satchel.open_session(store, summarizer=summarizer, **wanted)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(work)


def talk(count: int) -> list[dict[str, Any]]:
    lines = ("When does the ferry leave", "It leaves at a quarter past")
    return [
        {
            "role": "assistant" if number % 2 else "user",
            "content": f"{lines[number % 2]}, pier {number}? " + "Gulls and gangways. " * 8,
        }
        for number in range(count)
    ]


def text_of(window: satchel.Window) -> str:
    return json.dumps(window.messages, ensure_ascii=False)


def test_visible_roles_alternate_where_the_format_wants_that() -> None:
    """B22: a summary beside a kept head made two user turns in a row, and every request failed."""

    async def work() -> None:
        def block(role: str, *content: dict[str, Any]) -> dict[str, Any]:
            return {"role": role, "content": list(content)}

        nothing: dict[str, str] = {}
        use = {"toolUse": {"toolUseId": "u1", "name": "tides", "input": nothing}}
        result = {"toolUseId": "u1", "content": [{"text": "high at noon"}], "status": "success"}
        history = [
            block("user", {"text": "Plan the crossing."}),
            block("assistant", use),
            block("user", {"toolResult": result}),
            block("assistant", {"text": "High water is at noon."}),
            block("user", {"text": "And the wind? " + "Gusts. " * 60}),
            block("assistant", {"text": "From the west. " + "Steady. " * 60}),
            block("user", {"text": "So when do we go?"}),
        ]
        model = "anthropic.claude-sonnet-4-5-20250929-v1:0"
        async with opened(MemoryStore(), Says(), model=model) as session:
            await session.append(history)
            await session.compact(force=True)
            window = await session.window()
        assert window.dialect == "bedrock"
        roles = [message["role"] for message in window.messages]
        assert all(mine != theirs for mine, theirs in itertools.pairwise(roles))
        assert [
            one for one in satchel.lint(window.messages, "bedrock") if one.severity == "error"
        ] == []
        assert text_of(window).count(NOTE) == 1
        assert "So when do we go?" in json.dumps(window.messages[-1])
        # For a server with a strict template a chat window is brought there and back.
        async with opened(MemoryStore(), Says()) as session:
            await session.append(talk(7))
            await session.compact(force=True)
            chat = await session.window()
        strict = satchel.convert(
            satchel.convert(chat.messages, "openai", "bedrock").messages, "bedrock", "openai"
        )
        spoken = [one["role"] for one in strict.messages if one["role"] in ("user", "assistant")]
        assert all(mine != theirs for mine, theirs in itertools.pairwise(spoken))
        assert json.dumps(strict.messages, ensure_ascii=False).count(NOTE) == 1

    run(work())


def test_a_finished_turn_stays_finished() -> None:
    """B30: a made-up request to go on restarted a job that was done, and overflowed again."""

    async def work() -> None:
        async with opened(MemoryStore(), Says()) as session:
            history = [*talk(6), {"role": "user", "content": "Sum up."}]
            history.append({"role": "assistant", "content": "All ferries are on time."})
            await session.append(history)
            report = await session.compact(force=True)
            assert report.is_done
            window = await session.window()
        assert window.messages[-1] == history[-1]
        own = [message["content"] for message in history if message["role"] == "user"]
        for message in window.messages:
            if message["role"] == "user" and message["content"] not in own:
                # What is not the user's is fenced and says so.
                assert message["content"].startswith("<satchel-index>")
                assert "Not the user's words" in message["content"]
        assert text_of(window).count(NOTE) == 1

    run(work())


def test_an_answer_stays_with_its_request_whatever_is_kept() -> None:
    """As B30: a request whose answer is summarised away would be answered once more."""

    async def work() -> None:
        async with opened(MemoryStore(), Says(), policy=settings(keep_messages=0)) as session:
            await session.append(talk(8))
            assert (await session.compact(force=True)).is_done
            window = await session.window()
        assert window.messages[-1] == talk(8)[-1]

    run(work())


def test_where_nothing_can_go_that_is_said_in_the_first_round() -> None:
    """B32: "keeping 5, forgetting 0", over and over until the step limit."""

    async def work() -> None:
        summarizer = Says()
        async with opened(MemoryStore(), summarizer) as session:
            await session.append({"role": "user", "content": "Hello."})
            await session.window()
            with pytest.raises(satchel.CompactionError) as caught:
                await session.compact(force=True)
            assert caught.value.code == "nothing_to_compact"
            with pytest.raises(satchel.SatchelError) as refused:
                await session.observe_overflow("context_length_exceeded")
            assert refused.value.code in ("nothing_to_compact", "over_budget")
            assert len(await session.messages()) == 1
        assert summarizer.asked == 0

    run(work())


def test_the_text_of_an_error_is_no_summary() -> None:
    """B36: one refused request wiped the history, and the error's text stood in for it."""

    async def work() -> None:
        store = MemoryStore()
        history = [
            {"role": "user", "content": "My locker has the number 5510."},
            {"role": "assistant", "content": "I will keep that in mind."},
            *talk(8),
            {"role": "user", "content": "Which number has my locker?"},
        ]
        failing = Says(RateLimitError("RateLimitError: slow down"))
        async with opened(store, failing, policy=settings(fallback=False)) as session:
            await session.append(history)
            before = await session.window()
            with pytest.raises(satchel.CompactionError) as caught:
                await session.compact(force=True)
            assert caught.value.code == "summary_failed"
            assert await session.messages() == history
            after = await session.window()
            assert after.messages == before.messages
            assert after.report.summary is not None
            assert after.report.summary.outcome == "failed"
            assert "slow down" not in text_of(after)
        # Trying again is possible, and here it works.
        async with opened(store, Says()) as again:
            await again.append([])
            assert (await again.compact(force=True)).is_done
            assert "5510" in text_of(await again.window())

    run(work())


def test_a_background_summary_that_fails_leaves_what_there_was() -> None:
    """B38: a failed summary was joined later as an empty list, in place of the history."""

    async def work() -> None:
        gate = asyncio.Event()
        failing = Says(ValueError("empty"), wait=gate)
        policy = settings(above_messages=4, fallback=False)
        async with opened(MemoryStore(), failing, policy=policy) as session:
            history = talk(7)
            await session.append(history)
            await session.window()
            await session.append({"role": "assistant", "content": "Noted."})
            gate.set()
            with pytest.raises(satchel.CompactionError):
                await session.compact(force=True)
            window = await session.window()
            assert await session.messages() == [
                *history,
                {"role": "assistant", "content": "Noted."},
            ]
            assert window.messages == await session.messages()
            assert failing.asked == 2  # in the background, and by the call

    run(work())


def test_a_summary_and_what_it_covers_are_stored_in_one_step() -> None:
    """B40: old messages were hidden by their flags, and the summary was in another list."""

    class Full(MemoryStore):
        is_full = False

        async def append(self, *given: Any, **options: Any) -> Any:
            if self.is_full:
                message = "the disk is full"
                raise satchel.StoreError(message, code="store_unavailable")
            return await super().append(*given, **options)

    async def work() -> None:
        store = Full()
        async with opened(store, Says()) as session:
            await session.append(talk(8))
            store.is_full = True
            with pytest.raises(satchel.StoreError):
                await session.compact(force=True)
            store.is_full = False
        async with opened(store, Says()) as reopened:
            untouched = await reopened.window()
            assert NOTE not in text_of(untouched)
            assert untouched.messages == talk(8)
            await reopened.compact(force=True)
        async with opened(store, Says()) as again:
            shown = text_of(await again.window())
            assert shown.count(NOTE) == 1
            assert talk(8)[3]["content"] not in shown

    run(work())


def test_ids_of_a_server_that_stores_nothing_are_left_out_together() -> None:
    """B66: ids of reasoning from a stored history were unknown to the server."""

    async def work() -> None:
        history: list[dict[str, Any]] = [
            {"type": "message", "role": "user", "content": "Is the lock open?"},
            {"type": "reasoning", "id": "rs_4", "summary": [], "encrypted_content": "Zm9n"},
            {
                "type": "function_call",
                "id": "fc_4",
                "call_id": "call_4",
                "name": "lock",
                "arguments": "{}",
            },
            {"type": "function_call_output", "call_id": "call_4", "output": "open"},
            {"type": "reasoning", "id": "rs_5", "summary": []},
            {
                "type": "message",
                "id": "msg_5",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "It is open.", "annotations": []}],
            },
            {"type": "message", "role": "user", "content": "Good."},
        ]
        store = MemoryStore()
        async with opened(store, Says(), dialect="openai-responses") as session:
            await session.append(history)
        async with opened(store, Says(), dialect="openai-responses") as again:
            window = await again.window()
            call = window.as_kwargs(store=False)
            assert window.messages == history
        sent = json.dumps(call["input"])
        assert not any(name in sent for name in ("rs_4", "fc_4", "rs_5", "msg_5"))
        assert call["store"] is False
        assert call["input"][1] == {"type": "reasoning", "summary": [], "encrypted_content": "Zm9n"}
        # Reasoning that nobody can read goes; calls and results keep what pairs them.
        assert [item["type"] for item in call["input"]].count("reasoning") == 1
        assert sent.count("call_4") == 2
        assert satchel.lint(call["input"], "openai-responses") == []
        # By default nothing is changed.
        assert window.as_kwargs()["input"] == history

    run(work())


def test_a_stored_session_keeps_to_its_budget_and_is_not_cut_itself() -> None:
    """B91: with a stored history nothing was trimmed, since only a copy was."""

    async def work() -> None:
        store = MemoryStore()
        history = talk(24)
        async with opened(store, Says()) as session:
            await session.append(history)
        async with opened(store, Says(), budget=500) as again:
            window = await again.window()
            assert window.tokens <= 500
            assert len(window.messages) < len(history)
            assert await again.messages() == history

    run(work())


def test_a_caller_with_an_older_handle_is_not_hurt_by_a_compaction() -> None:
    """B104: the next request after a compaction in the background failed as stale."""

    async def work() -> None:
        store, gate = MemoryStore(), asyncio.Event()
        policy = settings(above_messages=4)
        summarizer = Says(wait=gate)
        async with (
            opened(store, summarizer, policy=policy) as session,
            opened(store, Says(), policy=settings()) as older,
        ):
            await session.append(talk(7))
            await session.window()
            await older.messages()
            await session.append({"role": "assistant", "content": "In between."})
            gate.set()
            assert (await session.compact()).outcome in ("nothing_to_compact", "summarized")
            # Both go on: the handle that knows of the summary and the one that does not.
            await older.append({"role": "user", "content": "From the older handle."})
            await session.append({"role": "assistant", "content": "The last word."})
            window = await session.window()
            assert window.messages[-1]["content"] == "The last word."
            assert text_of(window).count(NOTE) == 1
            contents = [message["content"] for message in await older.messages()]
            assert contents == [
                *(message["content"] for message in talk(7)),
                "In between.",
                "From the older handle.",
                "The last word.",
            ]

    run(work())


@pytest.mark.parametrize("store", ["memory", "file"])
def test_what_is_read_back_is_what_was_there(store: str, tmp_path: Any) -> None:
    """B112: records of compactions came back from the database as something else."""
    if store == "file":
        pytest.importorskip("satchel.stores.sqlite")

    async def work() -> None:
        url = f"sqlite:///{tmp_path / 'agent.db'}" if store == "file" else MemoryStore()
        call = {"id": "c1", "type": "function", "function": {"name": "lock", "arguments": "{}"}}
        history = [
            *talk(4),
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [call],
                "metadata": {"n": [1, None]},
            },
            {"role": "tool", "tool_call_id": "c1", "content": "closed \ud83d\udea2"},
            *talk(3),
        ]
        async with opened(url, Says()) as session:
            await session.append(history)
            await session.compact(force=True)
            before = await session.window()
            rows = await session.explain()
        async with opened(url, Says()) as again:
            after = await again.window()
            assert after.messages == before.messages
            assert after.events == before.events
            assert (after.tokens, after.pages) == (before.tokens, before.pages)
            assert await again.explain() == rows
            assert await again.messages() == history
            await again.append({"role": "assistant", "content": "Goes on."})
            assert text_of(await again.window()).count(NOTE) == 1

    run(work())


def test_a_summary_passes_the_redactor_before_anybody_sees_it() -> None:
    """B115: the model copied a credential from the chat into what is kept for good."""
    key = "sk-harbour-000EXAMPLE000"

    def redactor(text: str) -> str:
        return text.replace(key, "[key]")

    async def work() -> None:
        seen: list[str] = []

        async def keep(part: Any, written: Any) -> None:
            assert part.end
            seen.append(written.text)

        store = MemoryStore()
        summarizer = Says(f"{NOTE}; the user's key is {key}.")
        policy = settings(receipt_tokens=200)
        options: dict[str, Any] = {"policy": policy, "flushed": keep, "redactor": redactor}
        async with opened(store, summarizer, **options) as session:
            await session.append(talk(4))
            words = f"Never use another key than {key}, always that."
            await session.append([{"role": "user", "content": words}, talk(2)[1], *talk(3)])
            await session.compact(force=True)
            window = await session.window()
            assert key not in text_of(window)
            assert "[key]" in text_of(window)
            assert talk(3)[-1]["content"] in text_of(window)
            assert seen == [f"{NOTE}; the user's key is [key]."]
            stored = [event for event in await session.events() if event["kind"] == "summary"]
            assert key not in json.dumps(stored)

    run(work())


def failing_redactor(text: str) -> str:
    raise RuntimeError(text)


def silent_redactor(text: str) -> None:
    assert text


@pytest.mark.parametrize("broken", [failing_redactor, silent_redactor])
def test_a_summary_that_no_redactor_looked_at_is_not_used(broken: Any) -> None:
    async def work() -> None:
        async with opened(MemoryStore(), Says(), redactor=broken) as session:
            await session.append(talk(8))
            with pytest.raises(satchel.CompactionError) as caught:
                await session.compact(force=True)
            assert caught.value.code == "summary_failed"
            assert NOTE not in text_of(await session.window())

    run(work())
