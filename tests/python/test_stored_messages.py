"""A log that is read back: the same windows and objects, made when somebody wants them."""

# The way back from a log is private: a session and a pickle take it.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import gc
import json
import pickle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel import _core
from satchel.errors import InputError, SatchelError, StoreError
from satchel.stores import Entry, MemoryStore
from satchel.stores.codec import decode, encode
from satchel.stores.entries import DEFLATED, EVENT, Block, Entries, load_entries
from satchel.testing import generate_history, histories
from satchel.working_set import WorkingSet
from stored import refused, run
from test_json_values import VALUES, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.testing import Dialect

DIALECTS: tuple[Dialect, ...] = ("openai", "openai-responses", "anthropic", "gemini", "bedrock")
MODELS = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-pro"}


def blocks(payloads: Sequence[bytes], forms: bytes | None = None, *, size: int = 3) -> Entries:
    """The payloads in blocks of so many."""
    kinds = bytes(len(payloads)) if forms is None else forms
    found: list[Block] = []
    for start in range(0, len(payloads), size):
        part = payloads[start : start + size]
        lengths = [len(payload) for payload in part]
        joined = b",".join(part)
        found.append(Block(start + 1, kinds[start : start + size], lengths, None, joined))
    return Entries(found)


def stored(messages: Sequence[Any]) -> _core.StoredMessages:
    return blocks([encode(message) for message in messages]).history()[0]


@given(st.lists(VALUES, max_size=8))
def test_what_is_stored_comes_back(values: list[Any]) -> None:
    payloads = [encode(value) for value in values]
    history, events = blocks(payloads).history()
    assert events == []
    assert len(history) == len(values)
    assert same(list(history), [decode(payload) for payload in payloads])


ODD: list[bytes] = [
    '{"a":"\ud83d"}'.encode("utf-8", "surrogatepass"),
    rb'{"a":"\ud83d","b":"\ud83d\ude00"}',
    b'{"$bytes":"AAEC"}',
    b'{"$$bytes":"AAEC"}',
    b'{"a":123456789012345678901234567890}',
    b"[1e5,1E5,1.50,1e-7,-0.0,-0,0.1,1e300,NaN,-Infinity,1.0,123456.789]",
    b'{"a":1,"b":2,"a":{"c":3,"c":4}}',
    b'{"' + b'","'.join(b'k%d":"v' % number for number in range(40)) + b'","k7":"last"}',
    b"[" * 70 + b"]" * 70,
    b' {"a" : [ 1 , "x" ] } ',
    b'{"role":"user","content":"caf\xc3\xa9 \\u00e9 \\n"}',
]


def test_what_is_out_of_the_ordinary_comes_back_too() -> None:
    for size in (1, 2, len(ODD)):
        history, _ = blocks(ODD, size=size).history()
        assert same(list(history), [decode(payload) for payload in ODD])


def test_numbers_are_packed_as_python_writes_them() -> None:
    numbers = "[1e5,1E5,1.50,1e-7,-0.0,-0,0.1,1e300,1.0,123456.789,12345678901234567890,5]"
    text = f'{{"role":"user","content":[{{"type":"other","n":{numbers}}}]}}'
    history, _ = blocks([text.encode()]).history()
    assembler = satchel.Assembler("gpt-4o")
    read = WorkingSet._restore(assembler, history, (), None, None)
    given_back = assembler.working_set([json.loads(text)])
    pages = [_pages(working_set) for working_set in (read, given_back)]
    assert pages[0] == pages[1]


def _pages(working_set: WorkingSet) -> list[object]:
    core = working_set._era.core
    described = [
        _core.describe_message(message, working_set.dialect) for message in core.messages()
    ]
    return [described, working_set.columns.tokens.tolist()]


def test_damage_is_told_in_the_order_of_the_log() -> None:
    good, bad = b'{"role":"user","content":"x"}', b'{"role":'
    for forms, number in ((bytes([0, 0, EVENT, 0]), 2), (bytes([EVENT, EVENT, 0, 0]), 2)):
        log = blocks([good, bad, bad, good], forms, size=4)
        with pytest.raises(StoreError, match="entry 2 of 8 bytes") as raised:
            log.history()
        assert (raised.value.code, raised.value.index) == ("corrupt_entry", number)
    packed = Block(1, bytes([DEFLATED]), [3], None, b"abc")
    with pytest.raises(StoreError) as raised:
        Entries([packed]).history()
    assert (raised.value.code, raised.value.index) == ("corrupt_entry", 1)


def test_events_and_messages_come_apart() -> None:
    entries = [
        Entry("event" if number % 3 == 0 else "message", b"%d" % number, None, number + 1)
        for number in range(1_000)
    ]
    for log in (Entries.of(entries), blocks([one.payload for one in entries], _forms(entries))):
        messages, events = log.history()
        assert events == list(range(0, 1_000, 3))
        assert list(messages) == [number for number in range(1_000) if number % 3]


def _forms(entries: Sequence[Entry]) -> bytes:
    return bytes(EVENT if entry.kind == "event" else 0 for entry in entries)


def windows(working_set: WorkingSet) -> list[object]:
    """What can be seen of a working set, or the error."""
    try:
        window = working_set.window(open_calls="synthesize")
    except SatchelError as error:
        return [type(error), error.code, error.index, str(error)]
    pages = [working_set.page_in(page.pointer) for page in window.pages]
    figures = (window.tokens, window.tokens_upper, window.stable_prefix_tokens)
    return [window.messages, figures, pages, working_set.explain(), working_set.messages]


@pytest.mark.parametrize("damage", [False, True])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_windows_are_the_same(dialect: Dialect, damage: bool) -> None:
    model = MODELS.get(dialect, "gpt-4o")
    assembler = satchel.Assembler(model, budget=600, dialect=dialect)

    @given(histories(dialect, damage=damage))
    def check(messages: list[Any]) -> None:
        payloads = [encode(message) for message in messages]
        objects = [decode(payload) for payload in payloads]
        outcomes: list[object] = []
        for history in (objects, blocks(payloads).history()[0]):
            try:
                events = (assembler.settings_event(system_tokens=0, tools_tokens=0),)
                outcomes.append(
                    windows(WorkingSet._restore(assembler, history, events, None, None))
                )
            except InputError as error:
                outcomes.append((error.code, error.index, str(error)))
        assert same(outcomes[1], outcomes[0])

    check()


def test_a_long_history_has_the_same_windows_and_goes_on_alike() -> None:
    messages = json.loads(json.dumps(generate_history(1_500, seed=3)))
    assembler = satchel.Assembler("gpt-4o", budget=20_000)
    events = (assembler.settings_event(system_tokens=0, tools_tokens=0),)
    given_back = WorkingSet._restore(assembler, messages[:1_000], events, None, None)
    read = WorkingSet._restore(assembler, stored(messages[:1_000]), events, None, None)
    for start in range(1_000, 1_500, 100):
        assert windows(read) == windows(given_back)
        for one in (read, given_back):
            one.append(messages[start : start + 100])
    assert windows(read) == windows(given_back)
    assert pickle.loads(pickle.dumps(read)).messages == messages


def test_objects_are_made_once_and_only_of_what_is_wanted() -> None:
    messages = generate_history(3_000, seed=5)
    store = MemoryStore()

    async def main() -> None:
        options: dict[str, Any] = {"session_id": "s", "model": "gpt-4o", "budget": 8_000}
        async with satchel.open_session(store, **options) as session:
            await session.append(messages)
        gc.collect()
        before = _dicts()
        async with satchel.open_session(store, **options) as session:
            first = await session.window(open_calls="synthesize")
            assert _dicts() - before < 1_000
            second = await session.window(open_calls="synthesize")
            assert first.messages == second.messages
            kept = [message for message in first.messages if message in messages]
            assert kept
            newest = await session.messages(7)
            again = await session.messages()
            assert all(one is other for one, other in zip(newest, again[-7:], strict=True))
            assert await session.messages(0) == []
            ids = {id(message) for message in again}
            assert sum(id(message) in ids for message in first.messages) >= len(kept)
            assert again == messages
            for one, other in zip(again, await session.messages(), strict=True):
                assert one is other

    run(main())


def _dicts() -> int:
    return sum(type(one) is dict for one in gc.get_objects())


def test_another_writer_s_calls_are_seen_after_loading() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
    ]
    store = MemoryStore()

    async def main() -> None:
        options: dict[str, Any] = {"session_id": "s", "model": "gpt-4o"}
        async with satchel.open_session(store, **options) as session:
            await session.append(messages)
        async with satchel.open_session(store, **options) as session:
            await refused(session.append({"role": "user", "content": "and?"}), "calls_pending")
            await session.append({"role": "tool", "tool_call_id": "c1", "content": "ok"})
            await session.append({"role": "user", "content": "and?"})
            assert len(await session.messages()) == len(messages) + 2

    run(main())


def test_appends_of_thousands_are_one_write() -> None:
    store = MemoryStore()
    entries = [Entry("message", b"%d" % number, f"k{number}") for number in range(2_500)]

    async def main() -> None:
        await store.open("s")
        info = await store.append("s", [*entries, entries[7]])
        assert (info.version, info.length) == (2_500, 2_500)
        found = await store.read("s", after=255, limit=3)
        assert [(one.payload, one.key, one.sequence) for one in found] == [
            (b"%d" % number, f"k{number}", number + 1) for number in range(255, 258)
        ]
        wrong: Any = [*entries[:2_000], "no entry"]
        with pytest.raises(InputError):
            await store.append("s", wrong)
        await store.truncate("s", 1_300)
        assert len(await load_entries(store, "s")) == 1_300
        await store.append("s", entries)
        assert [one.key for one in await store.read("s")] == [one.key for one in entries]

    run(main())
