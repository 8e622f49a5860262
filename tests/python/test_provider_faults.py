"""`satchel.openai` and `satchel.anthropic` on bad days, and with what servers write in odd ways."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

import satchel
from model_wire import STREAMED, Break, Events, Refuse, Say, event, scripted
from model_wire import chat as chat_body
from model_wire import messages as messages_body
from model_wire import responses as responses_body
from provider_models import (
    CLASSES,
    DIALECTS,
    chatting,
    client_of,
    model_of,
    session_of,
    tool,
)
from satchel.clients.chat import ChatCollector
from satchel.stores.codec import plain

if TYPE_CHECKING:
    from satchel.clients import Reply

WHOLE = {"openai": chat_body, "openai-responses": responses_body, "anthropic": messages_body}
CALL = ("call_1", "read", {"path": "a.py", "lines": [1, 2], "quote": '"ü'})


def whole(dialect: str, answer: Say, **more: Any) -> Events:
    """A response that is not streamed, with fields changed."""
    return Events((json.dumps({**WHOLE[dialect](answer), **more}),))


def asked(model: Any, *, is_streamed: bool) -> Reply:
    if not is_streamed:
        found: Reply = model.ask()
        return found
    with model.stream() as events:
        streamed: Reply = events.collect()
        return streamed


BOTH = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
EACH = pytest.mark.parametrize("dialect", DIALECTS)


@BOTH
@EACH
def test_a_reply_in_the_same_words_for_all(dialect: str, is_streamed: bool) -> None:
    with (
        scripted(lambda _request, _number: Say("I look: ü.", (CALL, ("c2", "read", {})))) as wire,
        chatting(wire, dialect) as (session, model),
    ):
        reply = asked(model, is_streamed=is_streamed)
        assert reply.text == "I look: ü."
        assert [(call.id, call.name, call.arguments) for call in reply.calls] == [
            CALL,
            ("c2", "read", {}),
        ]
        assert json.loads(reply.calls[0].text) == CALL[2]
        assert reply.usage == satchel.Usage(50, 0, 0, 9)
        assert reply.stop in ("tool_calls", "completed", "tool_use")
        assert reply.overflows == 0
        kinds = (openai.BaseModel, anthropic.BaseModel)
        assert isinstance(reply.response, kinds)
        session.append(reply.results(["one", {"two": 2}], errors=["c2"]))
        wire.script = lambda _request, _number: Say("Done.")
        assert asked(model, is_streamed=is_streamed).text == "Done."
    assert wire.errors() == []
    last = json.dumps(wire.requests[-1].messages)
    assert "two" in last
    assert ("is_error" in last) == (dialect == "anthropic")


@EACH
def test_streamed_or_not_the_history_is_the_same(dialect: str) -> None:
    histories: list[Any] = []
    for is_streamed in (False, True):
        with (
            scripted(lambda _request, _number: Say("I look.", (CALL,))) as wire,
            chatting(wire, dialect) as (session, model),
        ):
            asked(model, is_streamed=is_streamed)
            reread: Any = plain(session.messages())
            ids = {"id"} if dialect == "openai-responses" else set[str]()
            histories.append([{k: v for k, v in one.items() if k not in ids} for one in reread])
    assert histories[0] == histories[1]


@EACH
def test_events_are_the_client_s_own(dialect: str) -> None:
    async def run(wire: Any) -> None:
        async with session_of("memory://", dialect, is_async=True) as session:
            await session.append({"role": "user", "content": "Hello."})
            model = model_of(wire, session, dialect, is_async=True)
            async with model._client, model.stream(service_tier="auto") as events:
                with pytest.raises(satchel.UsageError) as caught:
                    events.reply  # noqa: B018 - it is not there yet
                assert caught.value.code == "reply_pending"
                assert events.window.tokens > 0
                shown = [one async for one in events]
                assert [one async for one in events] == []
            assert events.reply.text == "Hello to you too."
            assert len(await session.messages()) > 1
        direct: Any = client_of(wire, dialect, is_async=True)
        async with direct:
            call = CLASSES[dialect, True]._api.create(direct)
            body = wire.requests[0].body
            expected = [one async for one in await call(**body)]
        assert [type(one) for one in shown] == [type(one) for one in expected]
        assert model.session is session

    with scripted(lambda _request, _number: Say("Hello to you too.")) as wire:
        asyncio.run(run(wire))
    assert wire.requests[0].body["service_tier"] == "auto"


@EACH
def test_who_leaves_a_stream_early_has_no_reply(dialect: str) -> None:
    with (
        scripted(lambda _request, _number: Say("A long answer. " * 9)) as wire,
        chatting(wire, dialect) as (session, model),
    ):
        with model.stream() as events:
            for _ in events:
                break
        with pytest.raises(satchel.UsageError, match="the reply is not over"):
            events.reply  # noqa: B018 - as above
        with pytest.raises(satchel.UsageError, match="not entered"):
            model.stream().window  # noqa: B018 - as above
        assert len(session.messages()) == 1
        assert model.ask().text.startswith("A long answer.")


@BOTH
@EACH
def test_a_server_that_gives_an_id_twice(dialect: str, is_streamed: bool) -> None:
    """Some draw it from a few hundred; a reply must not be lost for that."""

    def script(request: Any, number: int) -> Any:
        if request.body.get("stream"):
            text = "".join(STREAMED[dialect](Say(f"Answer {number}.")))
            return Events((re.sub(r'"id": "[^"]*"', '"id": "id-1"', text),))
        return whole(dialect, Say(f"Answer {number}."), id="id-1")

    with scripted(script) as wire, chatting(wire, dialect) as (session, model):
        for number in range(3):
            assert asked(model, is_streamed=is_streamed).text == f"Answer {number}."
            session.append({"role": "user", "content": "And then?"})
        assert len(session.messages()) == 7


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("is_clean", [False, True], ids=["cut", "clean"])
@EACH
def test_a_stream_that_breaks_off_is_no_reply(dialect: str, is_clean: bool, share: float) -> None:
    answer = Break(Say("An answer that takes a while.", (CALL,)), share, is_clean)
    if dialect == "openai" and share == 0.95:
        answer = Break(answer.answer, 0.8, is_clean)  # the end of the reply is not the last event
    with (
        scripted(lambda _request, _number: answer) as wire,
        chatting(wire, dialect) as (session, model),
    ):
        before, version = session.messages(), session.version
        with pytest.raises(satchel.ReplyError) as caught:
            asked(model, is_streamed=True)
        assert caught.value.code == "reply_broken_off"
        assert session.messages() == before
        # Nothing of it is in the way of another try.
        wire.script = lambda _request, _number: Say("Here it is.")
        assert asked(model, is_streamed=True).text == "Here it is."
        assert session.version > version
    assert len(wire.requests) == 2


@BOTH
@pytest.mark.parametrize("status", [401, 429, 500, 529])
@EACH
def test_errors_of_the_client_come_out(dialect: str, status: int, is_streamed: bool) -> None:
    package: Any = anthropic if dialect == "anthropic" else openai
    refused = Refuse(status, "Rate limit reached for requests: 200000 tokens > 100000 maximum")
    with (
        scripted(lambda _request, _number: refused) as wire,
        chatting(wire, dialect) as (session, model),
    ):
        with pytest.raises(package.APIStatusError) as caught:
            asked(model, is_streamed=is_streamed)
        assert caught.value.status_code == status
        assert len(session.messages()) == 1
    # Trying again is the client's business, which knows how long to wait.
    assert len(wire.requests) == 1


@EACH
def test_the_client_s_own_retries_go_through(dialect: str) -> None:
    def script(_request: Any, number: int) -> Any:
        return Refuse(429, "slow down") if number == 0 else Say("Now.")

    with scripted(script) as wire, session_of("memory://", dialect, is_async=False) as session:
        session.append({"role": "user", "content": "Hello."})
        client: Any = client_of(wire, dialect, is_async=False).with_options(max_retries=1)
        with client:
            reply = CLASSES[dialect, False](client, session).ask()
    assert (reply.text, reply.overflows, len(wire.requests)) == ("Now.", 0, 2)


@EACH
def test_nobody_there(dialect: str) -> None:
    package: Any = anthropic if dialect == "anthropic" else openai
    with scripted() as wire:
        pass
    with (
        session_of("memory://", dialect, is_async=False) as session,
        client_of(wire, dialect, is_async=False) as client,
    ):
        session.append({"role": "user", "content": "Hello."})
        with pytest.raises(package.APIConnectionError):
            CLASSES[dialect, False](client, session).ask()
        assert len(session.messages()) == 1


CUT = Say("Half of a", stop="length")


@BOTH
@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Say(), "reply_empty"),
        (Say(stop="length"), "reply_cut"),
        (Say("I look", (CALL,), stop="length"), "reply_cut"),
    ],
    ids=["empty", "nothing said", "cut call"],
)
@EACH
def test_what_cannot_stand_in_a_history(
    dialect: str, answer: Say, code: str, is_streamed: bool
) -> None:
    with (
        scripted(lambda _request, _number: answer) as wire,
        chatting(wire, dialect) as (session, model),
    ):
        with pytest.raises(satchel.ReplyError) as caught:
            asked(model, is_streamed=is_streamed)
        assert caught.value.code == code
        assert len(session.messages()) == 1


@BOTH
@EACH
def test_a_text_that_ran_into_its_limit_is_a_reply(dialect: str, is_streamed: bool) -> None:
    with (
        scripted(lambda _request, _number: CUT) as wire,
        chatting(wire, dialect) as (session, model),
    ):
        reply = asked(model, is_streamed=is_streamed)
        assert reply.text == "Half of a"
        assert reply.stop in ("length", "max_output_tokens", "max_tokens")
        assert len(session.messages()) == 2


REFUSED: dict[str, dict[str, Any]] = {
    "openai": {
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": None, "refusal": "No."},
            }
        ]
    },
    "openai-responses": {
        "output": [
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "refusal", "refusal": "No."}],
            }
        ]
    },
    "anthropic": {"stop_reason": "refusal"},
}
NONE: dict[str, dict[str, Any]] = {
    "openai": {"choices": []},
    "openai-responses": {"status": "failed", "error": {"code": "server_error", "message": "x"}},
    "anthropic": {"content": None},
}


@pytest.mark.parametrize(("changes", "code"), [(REFUSED, "reply_refused"), (NONE, "reply_failed")])
@EACH
def test_no_reply(dialect: str, changes: Any, code: str) -> None:
    with (
        scripted(lambda _request, _number: whole(dialect, Say(), **changes[dialect])) as wire,
        chatting(wire, dialect) as (session, model),
    ):
        with pytest.raises(satchel.ReplyError) as caught:
            model.ask()
        assert caught.value.code == code
        assert "No." not in str(caught.value)
        assert len(session.messages()) == 1


def test_a_stop_reason_that_means_too_long() -> None:
    """Claude 4.5 and later answer 200 with a stop reason."""

    def script(_request: Any, number: int) -> Any:
        if number == 0:
            stop = "model_context_window_exceeded"
            return whole("anthropic", Say("Only thi"), stop_reason=stop)
        return Say("All of this.")

    with scripted(script) as wire, chatting(wire, "anthropic", budget=2_000) as (session, model):
        for number in range(12):
            session.append({"role": "assistant", "content": f"Note {number}. " + "word " * 99})
            session.append({"role": "user", "content": "Go on."})
        reply = model.ask()
        assert (reply.text, reply.overflows) == ("All of this.", 1)
    first, second = wire.requests
    assert second.tokens("claude-sonnet-5") < first.tokens("claude-sonnet-5")


@EACH
def test_usage_calibrates_the_session(dialect: str) -> None:
    with (
        scripted(lambda _request, _number: Say("Yes.", input_tokens=9_000)) as wire,
        chatting(wire, dialect) as (session, model),
    ):
        for _ in range(3):
            model.ask()
            session.append({"role": "user", "content": "Sure?"})
        kinds = [event["kind"] for event in session.events()]
    assert "calibration" in kinds


# --- arguments ------------------------------------------------------------------------------------


@EACH
def test_options_of_all_calls_and_of_one(dialect: str) -> None:
    limit = {"openai": "max_completion_tokens", "openai-responses": "max_output_tokens"}.get(
        dialect, "max_tokens"
    )
    with scripted() as wire, session_of("memory://", dialect, is_async=False) as session:
        session.append({"role": "user", "content": "Hello."})
        options = {limit: 50, "service_tier": "auto", "model": "my-deployment"}
        model = model_of(wire, session, dialect, is_async=False, **options)
        with model._client:
            model.ask(service_tier="flex")
            session.append({"role": "user", "content": "And again."})
            model.ask()
    first, second = (request.body for request in wire.requests)
    assert (first[limit], first["service_tier"], first["model"]) == (50, "flex", "my-deployment")
    assert second["service_tier"] == "auto"


def test_anthropic_s_limit_has_a_default() -> None:
    with scripted() as wire, chatting(wire, "anthropic") as (_session, model):
        model.ask()
    assert wire.requests[0].body["max_tokens"] == 8_192


def test_responses_that_nobody_keeps() -> None:
    reasoning: dict[str, Any] = {
        "id": "rs_1",
        "type": "reasoning",
        "summary": [],
        "encrypted_content": "gAAA",
    }

    def script(_request: Any, _number: int) -> Any:
        body = responses_body(Say("Yes."))
        return Events((json.dumps({**body, "output": [reasoning, *body["output"]]}),))

    with scripted(script) as wire, chatting(wire, "openai-responses") as (session, model):
        reply = model.ask(store=False, include=["message.output_text.logprobs"])
        assert reply.text == "Yes."
        session.append({"role": "user", "content": "Sure?"})
        model.ask(store=False)
    first, second = (request.body for request in wire.requests)
    assert first["store"] is second["store"] is False
    assert first["include"] == ["message.output_text.logprobs", "reasoning.encrypted_content"]
    assert second["include"] == ["reasoning.encrypted_content"]
    assert [item.get("id") for item in second["input"]] == [None] * 4
    assert second["input"][1]["encrypted_content"] == "gAAA"


@EACH
def test_wrong_arguments(dialect: str) -> None:
    made, waiting = CLASSES[dialect, True], CLASSES[dialect, False]
    other = "anthropic" if dialect != "anthropic" else "openai"
    with scripted() as wire, session_of("memory://", dialect, is_async=False) as session:
        client = client_of(wire, dialect, is_async=False)
        behind = client_of(wire, dialect, is_async=True)
        unopened = satchel.open_session("memory://", session_id="a", model="gpt-4o")
        owned = ["tools", "stream", "messages" if dialect != "openai-responses" else "input"]
        wrong: list[Any] = [
            lambda: waiting(behind, session),
            lambda: made(client, unopened),
            lambda: made(behind, session),
            lambda: waiting(client, unopened),
            lambda: waiting(object(), session),
            lambda: waiting(None, session),
            *(lambda name=name: waiting(client, session).ask(**{name: 1}) for name in owned),
            *(lambda name=name: waiting(client, session).stream(**{name: 1}) for name in owned),
            lambda: waiting(client, session, **{owned[-1]: []}),
        ]
        for call in wrong:
            with pytest.raises((satchel.InputError, TypeError)) as caught:
                call()
            if isinstance(caught.value, satchel.InputError):
                assert caught.value.code == "invalid_value"
        with session_of("memory://", other, is_async=False) as foreign:
            foreign.append({"role": "user", "content": "Hello."})
            model = waiting(client, foreign)
            for ask in (model.ask, model.stream().__enter__):
                with pytest.raises(satchel.InputError, match="speaks"):
                    ask()
        client.close()
        asyncio.run(behind.close())
    assert wire.requests == []


def test_results_name_what_is_missing() -> None:
    with (
        scripted(lambda _request, _number: Say("", (CALL, ("c2", "read", {})))) as wire,
        chatting(wire, "openai") as (_session, model),
    ):
        reply = model.ask()
    for outputs in ({"call_1": "a"}, {"call_1": "a", "c2": "b", "c3": "c"}, ["a"], "ab", 7):
        with pytest.raises(satchel.InputError, match="outputs"):
            reply.results(outputs)
    with pytest.raises(satchel.InputError, match="errors names 'c9'"):
        reply.results(["a", "b"], errors=["c9"])
    with pytest.raises(satchel.InputError, match="neither text nor JSON"):
        reply.results(["a", object()])
    blocks = [{"type": "text", "text": "b"}]
    assert [one["content"] for one in reply.results({"c2": blocks, "call_1": "a"})] == ["a", blocks]


@EACH
def test_results_go_by_order_where_a_server_gives_an_id_twice(dialect: str) -> None:
    twice = Say("", (("c", "read", {}), ("c", "read", {"path": "b"})))
    with (
        scripted(lambda _request, _number: twice) as wire,
        chatting(wire, dialect) as (_session, model),
    ):
        reply = model.ask()
    results = reply.results(["one", "two"])
    if dialect == "anthropic":
        results = results[0]["content"]
    key = "output" if dialect == "openai-responses" else "content"
    assert [one[key] for one in results] == ["one", "two"]


# --- what servers write in odd ways ---------------------------------------------------------------


def chunk(delta: dict[str, Any], reason: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**head, "choices": [choice], **more}


def collected(*chunks: dict[str, Any]) -> Any:
    collector = ChatCollector()
    for one in chunks:
        collector.take(one)
    return collector.whole().choices[0].message.model_dump(exclude_unset=True)


def test_pieces_of_chat_are_put_together_whoever_writes_them() -> None:
    def piece(**fields: Any) -> dict[str, Any]:
        return {"tool_calls": [fields]}

    # Ids and names again in every piece, and no index.
    first = {"id": "a", "type": "function", "function": {"name": "f", "arguments": '{"x":'}}
    second = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "1}"}}
    other = {"id": "b", "type": "function", "function": {"name": "g", "arguments": "{}"}}
    found = collected(
        chunk({"role": "assistant", "content": None}),
        chunk(piece(**first)),
        chunk(piece(**second)),
        chunk(piece(**other)),
        chunk({}, "tool_calls"),
    )
    assert [call["function"] for call in found["tool_calls"]] == [
        {"name": "f", "arguments": '{"x":1}'},
        {"name": "g", "arguments": "{}"},
    ]
    # Two calls whose pieces take turns.
    found = collected(
        chunk(piece(index=0, **first)),
        chunk(piece(index=1, **other)),
        chunk(piece(index=0, function={"arguments": "1}"})),
        chunk({}, "tool_calls"),
    )
    assert [call["function"]["arguments"] for call in found["tool_calls"]] == ['{"x":1}', "{}"]
    assert all("index" not in call for call in found["tool_calls"])
    # Reasoning and signatures of other vendors stay with the message.
    signed = {**other, "extra_content": {"google": {"thought_signature": "c2ln"}}}
    found = collected(
        chunk({"role": "assistant", "reasoning_content": "Hm, "}),
        chunk({"reasoning_content": "yes."}),
        chunk({"content": "Yes"}),
        chunk({"content": ".", **piece(index=0, **signed)}),
        {**chunk({}, "stop"), "choices": [*chunk({}, "stop")["choices"], {"index": 1}]},
    )
    assert (found["reasoning_content"], found["content"]) == ("Hm, yes.", "Yes.")
    assert found["tool_calls"][0]["extra_content"] == signed["extra_content"]
    # A custom tool of OpenAI's.
    custom = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "sel"}}
    found = collected(
        chunk(piece(index=0, **custom)),
        chunk(piece(index=0, custom={"input": "ect"})),
        chunk({}, "tool_calls"),
    )
    assert found["tool_calls"][0]["custom"] == {"name": "sql", "input": "select"}


def test_a_custom_tool_is_answered_in_its_own_form() -> None:
    item = {"id": "ctc_1", "type": "custom_tool_call", "call_id": "a", "name": "q", "input": "one"}

    def script(_request: Any, number: int) -> Any:
        body = responses_body(Say("Yes." if number else ""))
        output = [] if number else [item]
        return Events((json.dumps({**body, "output": [*output, *body["output"]]}),))

    with scripted(script) as wire, chatting(wire, "openai-responses") as (session, model):
        reply = model.ask()
        [call] = reply.calls
        assert (call.kind, call.arguments, call.text) == ("custom", None, "one")
        session.append(reply.results(["two"]))
        model.ask()
    sent = wire.requests[1].messages[-1]
    assert sent == {"type": "custom_tool_call_output", "call_id": "a", "output": "two"}
    assert wire.errors() == []


def test_thinking_is_recorded_byte_for_byte() -> None:
    thinking = {"type": "thinking", "thinking": "", "signature": ""}
    block = {"type": "text", "text": "", "citations": None}
    citation = {
        "type": "char_location",
        "cited_text": "a",
        "document_index": 0,
        "document_title": None,
        "start_char_index": 0,
        "end_char_index": 1,
    }

    def delta(index: int, **fields: Any) -> str:
        return event("content_block_delta", index=index, delta=fields)

    start = {**messages_body(Say()), "stop_reason": None}
    events = (
        event("message_start", message=start),
        event("content_block_start", index=0, content_block=thinking),
        delta(0, type="thinking_delta", thinking="Well, "),
        delta(0, type="thinking_delta", thinking="yes."),
        delta(0, type="signature_delta", signature="c2lnbmF0dXJl"),
        event("content_block_stop", index=0),
        event("content_block_start", index=1, content_block=block),
        delta(1, type="text_delta", text="Yes."),
        delta(1, type="citations_delta", citation=citation),
        event("content_block_stop", index=1),
        event(
            "message_delta",
            delta={"stop_reason": "end_turn", "stop_sequence": None},
            usage={"output_tokens": 7, "input_tokens": None, "cache_read_input_tokens": 40},
        ),
        event("message_stop"),
    )
    with (
        scripted(lambda _request, number: Events(events) if number == 0 else Say("Done.")) as wire,
        chatting(wire, "anthropic") as (session, model),
    ):
        reply = asked(model, is_streamed=True)
        assert reply.usage == satchel.Usage(90, 40, 0, 7)
        session.append({"role": "user", "content": "Sure?"})
        model.ask()
    first, second = wire.requests[1].messages[1]["content"]
    assert first == {"type": "thinking", "thinking": "Well, yes.", "signature": "c2lnbmF0dXJl"}
    assert (second["text"], second["citations"]) == ("Yes.", [citation])


def test_a_chat_stream_without_its_options() -> None:
    with scripted() as wire, chatting(wire, "openai") as (session, model):
        asked(model, is_streamed=True)
        session.append({"role": "user", "content": "Sure?"})
        with model.stream(stream_options=None) as events:
            events.collect()
    assert wire.requests[0].body["stream_options"] == {"include_usage": True}
    assert "stream_options" not in wire.requests[1].body


def test_tools_and_memories_are_sent() -> None:
    for dialect in DIALECTS:
        with scripted() as wire, chatting(wire, dialect) as (_session, model):
            model.ask(
                memories=["Part 7 squeaks."], query="parts", stakes="high", open_calls="synthesize"
            )
        assert "Part 7 squeaks." in json.dumps(wire.requests[0].messages)
        assert wire.requests[0].tools[0].keys() >= tool(dialect).keys()
