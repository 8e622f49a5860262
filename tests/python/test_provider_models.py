"""`satchel.openai` and `satchel.anthropic` inside the real clients: whole agent runs."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from model_wire import Refuse, Request, Say, scripted
from provider_models import CLASSES, DIALECTS, MODELS, client_of, model_of, plain, session_of

if TYPE_CHECKING:
    from pathlib import Path

    from model_wire import Answer

STEPS = 64
BUDGET = 3_000


def contents(number: int) -> str:
    """What the tool gives: distinct lines, a few hundred tokens."""
    lines = [f"part_{number}.line_{at} = {number * at % 97}" for at in range(40)]
    return "\n".join(lines)


def agent(request: Request, number: int) -> Answer:
    """Reads a file a step, sometimes two at once, and then says that it is done."""
    if number >= STEPS:
        return Say("All parts were read.")
    paths = [f"src/part_{number}.py", f"src/side_{number}.py"][: 2 if number % 7 == 3 else 1]
    calls = tuple((f"call_{number}_{at}", "read", {"path": path}) for at, path in enumerate(paths))
    text = f"Part {number} is next." if number % 3 == 0 else ""
    # What it says it cost is a little more than satchel counts.
    return Say(text, calls, input_tokens=int(request.tokens(MODELS[request.dialect]) * 1.05))


class Halt(Exception):  # noqa: N818 - no error: the program ends here
    """The process is gone."""


async def loop(model: Any, *, is_streamed: bool, most: int) -> list[Any]:
    """An agent's loop; stops for good after ``most`` steps, between a reply and its results."""
    replies: list[Any] = []
    while True:
        if is_streamed:
            async with model.stream() as events:
                reply = await events.collect()
        else:
            reply = await model.ask()
        replies.append(reply)
        if not reply.calls:
            return replies
        await model.session.append(reply.results([contents(len(call.id)) for call in reply.calls]))
        if len(replies) == most:
            raise Halt


def waiting_loop(model: Any, *, is_streamed: bool, most: int) -> list[Any]:
    replies: list[Any] = []
    while True:
        if is_streamed:
            with model.stream() as events:
                reply = events.collect()
        else:
            reply = model.ask()
        replies.append(reply)
        if not reply.calls:
            return replies
        outputs = {call.id: contents(len(call.id)) for call in reply.calls}
        model.session.append(reply.results(outputs))
        if len(replies) == most:
            raise Halt


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_long_run_over_a_restart(tmp_path: Path, dialect: str, is_streamed: bool) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"

    async def part(wire: Any, most: int) -> list[Any]:
        async with session_of(url, dialect, is_async=True, budget=BUDGET) as session:
            if not await session.messages():
                await session.append({"role": "user", "content": "Read all the parts."})
            model = model_of(wire, session, dialect, is_async=True)
            async with model._client:
                replies = await loop(model, is_streamed=is_streamed, most=most)
            assert len(plain(await session.messages())) > STEPS * 400
            return replies

    with scripted(agent) as wire:
        with pytest.raises(Halt):
            asyncio.run(part(wire, 30))
        replies = asyncio.run(part(wire, STEPS))
    check(wire, dialect, replies)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_long_blocking_run_over_a_restart(tmp_path: Path, dialect: str) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"

    def part(wire: Any, most: int) -> list[Any]:
        with session_of(url, dialect, is_async=False, budget=BUDGET) as session:
            if not session.messages():
                session.append({"role": "user", "content": "Read all the parts."})
            model = model_of(wire, session, dialect, is_async=False)
            with model._client:
                return waiting_loop(model, is_streamed=dialect == "anthropic", most=most)

    with scripted(agent) as wire:
        with pytest.raises(Halt):
            part(wire, 30)
        replies = part(wire, STEPS)
    check(wire, dialect, replies)


def check(wire: Any, dialect: str, replies: list[Any]) -> None:
    """Every request was valid and within the budget, and the run went on where it had stopped."""
    assert len(wire.requests) == STEPS + 1
    assert wire.errors() == []
    sizes = [request.tokens(MODELS[dialect]) for request in wire.requests]
    assert max(sizes) <= BUDGET
    assert max(sizes) > BUDGET * 0.6
    assert replies[-1].text == "All parts were read."
    assert len(replies) == STEPS + 1 - 30
    assert replies[-1].usage.input == 50
    assert replies[0].usage.input > 1_000
    assert all(reply.overflows == 0 for reply in replies)
    window = replies[-2].window
    assert window.report.compactions > 0
    assert [call.name for reply in replies[:-1] for call in reply.calls][:3] == ["read"] * 3
    assert replies[0].calls[0].arguments == {"path": "src/part_30.py"}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_program_that_ended_between_a_call_and_its_result(tmp_path: Path, dialect: str) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    calls = tuple((f"call_{at}", "read", {"path": f"{at}.py"}) for at in range(3))

    def script(_request: Request, number: int) -> Answer:
        return Say("Both are read.", calls) if number % 2 == 0 else Say("Done.")

    async def begin(wire: Any) -> None:
        async with session_of(url, dialect, is_async=True) as session:
            await session.append({"role": "user", "content": "Read two files."})
            model = model_of(wire, session, dialect, is_async=True)
            assert await model.open_calls() == ()
            async with model._client:
                reply = await model.ask()
            assert await model.open_calls() == reply.calls

    async def go_on(wire: Any) -> None:
        async with session_of(url, dialect, is_async=True) as session:
            model = model_of(wire, session, dialect, is_async=True)
            found = await model.open_calls()
            assert [(call.id, call.name, call.arguments) for call in found] == list(calls)
            if dialect != "anthropic":  # whose results are one message
                await session.append(model.results(found[:1], ["one"]))
                assert await model.open_calls() == found[1:]
                found = found[1:]
            await session.append(model.results(found, {call.id: "more" for call in found}))
            assert await model.open_calls() == ()
            async with model._client:
                assert (await model.ask()).text == "Done."
            assert await model.open_calls() == ()

    with scripted(script) as wire:
        asyncio.run(begin(wire))
        asyncio.run(go_on(wire))
        with session_of(url, dialect, is_async=False) as session:
            session.append({"role": "user", "content": "Again."})
            model = model_of(wire, session, dialect, is_async=False)
            with model._client:
                reply = model.ask()
                assert model.open_calls() == reply.calls
                session.append(
                    model.results(model.open_calls(), ["a", "b", "c"], errors=["call_1"])
                )
                assert model.ask().text == "Done."
    assert wire.errors() == []
    assert len(wire.requests) == 4


# --- windows that the provider finds too long -----------------------------------------------------

LIMITS = {
    "openai": "This model's maximum context length is {limit} tokens. However, your messages "
    "resulted in {actual} tokens. Please reduce the length of the messages.",
    "openai-responses": "Your input exceeds the context window of this model. Please adjust your "
    "input and try again.",
    "anthropic": "prompt is too long: {actual} tokens > {limit} maximum",
}
CODES = {
    "openai": "context_length_exceeded",
    "openai-responses": "context_length_exceeded",
    "anthropic": None,
}


def stingy(real: float, limit: int, *, is_streamed: bool = False) -> Any:
    """A model whose tokens are ``real`` times satchel's, with room for ``limit`` of them."""

    def script(request: Request, number: int) -> Answer:
        actual = int(request.tokens(MODELS[request.dialect]) * real)
        if actual > limit:
            sentence = LIMITS[request.dialect].format(limit=limit, actual=actual)
            return Refuse(400, sentence, CODES[request.dialect], is_streamed)
        return agent(request, number)

    return script


def talk(session: Any, turns: int) -> None:
    """A conversation without tools."""
    session.append({"role": "user", "content": "Begin."})
    for number in range(turns):
        session.append({"role": "assistant", "content": contents(number)})
        session.append({"role": "user", "content": f"Go on with part {number}."})


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_window_that_is_too_long_is_made_smaller(dialect: str, is_streamed: bool) -> None:
    with (
        scripted(stingy(1.3, 3_200)) as wire,
        session_of("memory://", dialect, is_async=False, budget=BUDGET) as session,
    ):
        session.append({"role": "user", "content": "Read all the parts."})
        model = model_of(wire, session, dialect, is_async=False)
        with model._client:
            replies = waiting_loop(model, is_streamed=is_streamed, most=STEPS)
        history = session.messages()
    assert sum(reply.overflows for reply in replies) == STEPS + 1 - len(replies) > 0
    refused = [
        request for request in wire.requests if request.tokens(MODELS[dialect]) * 1.3 > 3_201
    ]
    assert 0 < len(refused) < len(wire.requests) // 8
    assert wire.errors() == []
    text = plain(history)
    assert all(call.id in text for reply in replies for call in reply.calls)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_refusal_within_a_stream_is_answered_too(dialect: str) -> None:
    answers: list[Answer] = [
        Refuse(
            400, LIMITS[dialect].format(limit=2_000, actual=2_200), CODES[dialect], is_streamed=True
        ),
        Say("It fits now."),
    ]
    with (
        scripted(lambda _request, number: answers[number]) as wire,
        session_of("memory://", dialect, is_async=False, budget=BUDGET) as session,
    ):
        talk(session, 8)
        model = model_of(wire, session, dialect, is_async=False)
        with model._client, model.stream() as events:
            shown = list(events)
    assert events.reply.text == "It fits now."
    assert events.reply.overflows == 1
    assert shown
    assert wire.requests[1].tokens(MODELS[dialect]) < wire.requests[0].tokens(MODELS[dialect])
    assert wire.errors() == []


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_gives_up_after_a_few_tries(dialect: str, is_streamed: bool) -> None:
    def script(request: Request, _number: int) -> Answer:
        tokens = request.tokens(MODELS[dialect])
        said = LIMITS[dialect].format(limit=int(tokens * 0.95), actual=int(tokens * 1.05))
        return Refuse(400, said, CODES[dialect])

    with (
        scripted(script) as wire,
        session_of("memory://", dialect, is_async=False, budget=BUDGET) as session,
    ):
        talk(session, 30)
        before = session.messages()
        model = model_of(wire, session, dialect, is_async=False)
        ask = model.stream().__enter__ if is_streamed else model.ask
        with model._client, pytest.raises(satchel.CompactionError) as caught:
            ask()
        assert caught.value.code == "overflow_persists"
        assert caught.value.__context__ is not None
        assert session.messages() == before
    sizes = [request.tokens(MODELS[dialect]) for request in wire.requests]
    assert len(sizes) == 4
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 4


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tasks_wait_for_one_another_and_nothing_is_mixed(dialect: str) -> None:
    """Several sessions with one client at a time."""

    def script(request: Request, _number: int) -> Answer:
        text = plain(request.messages)
        [name] = [name for name in ("ada", "bob", "eve") if name in text]
        return Say(f"Hello, {name}.")

    async def talk(client: Any, name: str) -> None:
        async with session_of("memory://", dialect, is_async=True, session_id=name) as session:
            model = CLASSES[dialect, True](client, session)
            for _ in range(5):
                await session.append({"role": "user", "content": f"I am {name}."})
                reply = await model.ask()
                assert reply.text == f"Hello, {name}."

    async def talks(wire: Any) -> None:
        async with client_of(wire, dialect, is_async=True) as client:
            await asyncio.gather(*(talk(client, name) for name in ("ada", "bob", "eve")))

    with scripted(script) as wire:
        asyncio.run(talks(wire))
    assert wire.errors() == []
