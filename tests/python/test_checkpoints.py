"""Checkpoints of stored sessions: opened quickly, and to the same windows."""

# The working set of a session is seen by its parts.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, cast

import pytest

import satchel
from satchel.stores import open_store
from satchel.stores.base import CHECKPOINT, Entry
from satchel.stores.codec import decode, encode
from satchel.stores.transfer import export_session, import_session
from satchel.testing import generate_history
from servers import postgres_url, redis_url
from stored import run

if TYPE_CHECKING:
    from pathlib import Path

    from satchel.stores.base import SessionStore

Check = Callable[["SessionStore", str], Coroutine[Any, Any, None]]

BUDGET = 3_000
MESSAGES = 240


def opened(store: SessionStore, session_id: str, **others: Any) -> satchel.Session:
    given: dict[str, Any] = {"model": "gpt-4o", "budget": BUDGET, **others}
    return satchel.open_session(store, session_id=session_id, **given)


def history(count: int = MESSAGES, seed: int = 3) -> list[dict[str, Any]]:
    return generate_history(count, seed=seed, result_chars=300)


def resumed(session: satchel.Session) -> int | None:
    return session._log.working_set._era.core.resumed()


async def told(session: satchel.Session, messages: list[dict[str, Any]]) -> None:
    for message in messages:
        await session.append(message)


async def window_of(session: satchel.Session) -> Any:
    window = await session.window(open_calls="synthesize")
    return window.messages, window.tokens, window.report.compactions


async def stored(store: SessionStore, session_id: str) -> dict[str, Any] | None:
    found = await store.get_value(session_id, CHECKPOINT)
    return None if found is None else cast("dict[str, Any] | None", decode(found.payload))


def opened_store(kind: str, folder: Path) -> SessionStore:
    urls = {
        "memory": lambda: "memory://",
        "sqlite": lambda: f"sqlite:///{folder}/s.db",
        "postgres": postgres_url,
        "redis": redis_url,
    }
    return open_store(urls[kind]())


def over(*kinds: str) -> Callable[[Check], Callable[[str, Path], None]]:
    """Runs a check on an empty store of each of these kinds."""

    def wrap(check: Check) -> Callable[[str, Path], None]:
        @pytest.mark.parametrize("kind", kinds)
        def test(kind: str, tmp_path: Path) -> None:
            async def main() -> None:
                store = opened_store(kind, tmp_path)
                try:
                    await check(store, secrets.token_hex(6))
                finally:
                    await store.close()

            run(main())

        return test

    return wrap


@over("memory", "sqlite", "postgres", "redis")
async def test_a_session_goes_on_from_its_checkpoint_to_the_same_windows(
    store: SessionStore, one: str
) -> None:
    messages = history()
    async with opened(store, one) as first:
        await told(first, messages[:200])
        async with opened(store, one) as second:
            assert resumed(second) is not None
            assert await window_of(second) == await window_of(first)
            whole = satchel.Assembler("gpt-4o", budget=BUDGET).working_set(
                await second.messages(), events=await second.events()
            )
            window = whole.window(open_calls="synthesize")
            assert window.messages == (await window_of(second))[0]
            await told(second, messages[200:])
        assert await window_of(first) != ([], 0, 0)
        async with opened(store, one) as third:
            assert (resumed(third) or 0) > 150
            assert await window_of(third) == await window_of(first)
            assert await third.messages() == messages


@over("memory", "sqlite")
async def test_pins_pages_summaries_and_settings_come_back(store: SessionStore, one: str) -> None:
    messages = history()
    async with opened(store, one) as session:
        await told(session, messages[:90])
        await session.pin(4)
        await told(session, messages[90:120])
        window = await session.window(open_calls="synthesize")
        pointer = next(page.pointer for page in window.pages if page.message is not None)
        await session.apply({"kind": "page_in", "pointer": pointer})
        await session.unpin(4)
        await told(session, messages[120:180])
        async with opened(store, one, budget=2_500) as other:
            await told(other, messages[180:])
            expected = await window_of(other)
        async with opened(store, one, budget=2_500) as again:
            assert resumed(again) is not None
            assert await window_of(again) == expected


@over("memory", "sqlite")
async def test_another_planner_changes_nothing_before_the_next_compaction(
    store: SessionStore, one: str
) -> None:
    async with opened(store, one) as session:
        await told(session, history())
        info = await store.info(one)
    said = await stored(store, one)
    assert said is not None
    fold = json.loads(said["fold"])
    # What another release might have kept of a step: less.
    step = next(step for step in fold["shown"] if step.get("edits"))
    part, _, pointer, _ = step["edits"][0]
    step["edits"][0] = [part, f"[another planner's words: {pointer}]", pointer, []]
    async with opened(store, one) as session:
        await session.window(open_calls="synthesize")
    for wrong in (True, False):
        if not wrong:
            fold["history_tokens"] += _difference(fold, said)
        await store.put_value(
            one, CHECKPOINT, encode({"log": said["log"], "fold": json.dumps(fold)})
        )
        async with opened(store, one) as session:
            window = await session.window(open_calls="synthesize")
            has_words = "another planner's words" in json.dumps(window.messages)
            # Counts that are not those of its texts: not used.
            assert has_words is not wrong
            assert (resumed(session) is None) is wrong
    assert (await store.info(one)).version == info.version


def _difference(fold: dict[str, Any], said: dict[str, Any]) -> int:
    """Tokens by which the text that was put in differs from the one before."""
    count = satchel.counter("gpt-4o").count
    old, new = json.loads(said["fold"]), fold
    for before, after in zip(old["shown"], new["shown"], strict=True):
        for left, right in zip(before.get("edits", ()), after.get("edits", ()), strict=True):
            if left != right:
                return count(right[1]) - count(left[1])
    raise AssertionError


@over("memory", "sqlite")
async def test_a_damaged_one_is_not_used(store: SessionStore, one: str) -> None:
    async with opened(store, one) as session:
        await told(session, history())
    wrong = (
        b"null",
        b"\xff\xfe",
        b'{"log": null}',
        b'{"fold": "x"}',
        encode({"fold": 3, "log": 1}),
    )
    for payload in wrong:
        async with opened(store, one) as session:
            expected = await window_of(session)
        await store.put_value(one, CHECKPOINT, payload)
        async with opened(store, one) as session:
            assert resumed(session) is None
            assert await window_of(session) == expected
            # The next append writes it again.
            await session.append({"role": "user", "content": "go on"})
        assert await stored(store, one) is not None
        async with opened(store, one) as session:
            assert resumed(session) is not None


@over("memory", "sqlite", "postgres", "redis")
async def test_a_log_that_was_cut_or_is_another_one_does_not_use_it(
    store: SessionStore, one: str
) -> None:
    messages = history()
    async with opened(store, one) as session:
        await told(session, messages)
    said = await stored(store, one)
    assert said is not None
    info = await store.info(one)
    await store.truncate(one, info.length - 1)
    await store.append(one, [Entry("message", encode({"role": "user", "content": "other"}))])
    async with opened(store, one) as session:
        assert resumed(session) is None
        assert (await session.messages())[-1] == {"role": "user", "content": "other"}
    await store.delete(one)
    async with opened(store, one, user_id="somebody") as session:
        await told(session, messages[:100])
    await store.put_value(one, CHECKPOINT, encode(said))
    async with opened(store, one, user_id="somebody") as session:
        assert resumed(session) is None


@over("memory", "sqlite")
async def test_branches_and_exports_do_without(store: SessionStore, one: str) -> None:
    async with opened(store, one) as session:
        await told(session, history())
        expected = await window_of(session)
    info = await store.info(one)
    await store.branch(one, f"{one}-2", length=info.length)
    async with opened(store, f"{one}-2") as session:
        assert resumed(session) is None
        assert await window_of(session) == expected
    exported = await export_session(store, one)
    assert CHECKPOINT.encode() not in exported
    await import_session(store, exported, session_id=f"{one}-3")
    async with opened(store, f"{one}-3") as session:
        assert resumed(session) is None
        assert await window_of(session) == expected


@over("memory", "sqlite")
async def test_a_repaired_history_is_folded_whole(store: SessionStore, one: str) -> None:
    messages = history()
    # Two results of one call cannot be packed.
    place = next(at for at, of in enumerate(messages) if of["role"] == "tool" and at > 100)
    damaged = [*messages[: place + 1], messages[place], *messages[place + 1 :]]
    async with opened(store, one) as session:
        await told(session, damaged)
        expected = await window_of(session)
    async with opened(store, one) as session:
        assert await window_of(session) == expected
        assert len(await session.messages()) >= len(messages)


@over("memory", "sqlite")
async def test_a_model_with_another_counter_is_folded_whole(store: SessionStore, one: str) -> None:
    messages = history()
    async with opened(store, one) as session:
        await told(session, messages[:120])
    async with opened(store, one, model="claude-sonnet-4-5", dialect="openai") as session:
        await told(session, messages[120:])
        expected = await window_of(session)
    async with opened(store, one, model="claude-sonnet-4-5", dialect="openai") as session:
        assert await window_of(session) == expected


@over("memory", "sqlite")
async def test_two_writers_leave_one_that_holds(store: SessionStore, one: str) -> None:
    messages = history(300)
    pairs: list[list[dict[str, Any]]] = []
    for message in messages:
        if message["role"] == "tool" and pairs:
            pairs[-1].append(message)
        else:
            pairs.append([message])
    async with opened(store, one) as left, opened(store, one) as right:
        for number, pair in enumerate(pairs):
            await (left if number % 2 else right).append(pair)
        expected = await window_of(left)
    async with opened(store, one) as session:
        assert resumed(session) is not None
        assert await window_of(session) == expected


@over("memory", "sqlite")
async def test_what_is_cut_is_quoted_by_no_checkpoint(store: SessionStore, one: str) -> None:
    async with opened(store, one) as session:
        await told(session, history())
        before = await stored(store, one)
        assert before is not None
        assert before["fold"]
        await session.rewind(80)
        assert await stored(store, one) is None
        expected = await window_of(session)
    async with opened(store, one) as session:
        assert resumed(session) is None
        assert await window_of(session) == expected


@over("memory")
async def test_presets_that_move_on_with_every_call_write_one_now_and_then(
    store: SessionStore, one: str
) -> None:
    for number, policy in enumerate(("sliding-window", "token-window", "clear-tool-uses")):
        name = f"{one}-{number}"
        versions: set[int] = set()
        async with opened(store, name, policy=policy) as session:
            for message in history():
                await session.append(message)
                found = await store.get_value(name, CHECKPOINT)
                versions.add(0 if found is None else found.version)
            expected = await window_of(session)
        assert 1 < len(versions) < MESSAGES // 20
        async with opened(store, name, policy=policy) as session:
            assert resumed(session) is not None
            assert await window_of(session) == expected
