"""Responses of another form than the provider's: one typed error, and nothing recorded."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

import satchel
from provider_models import CLASSES, session_of

START: dict[str, Any] = {
    "type": "message_start",
    "message": {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "c"},
}


def completion(message: object) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


def chunk(delta: object, reason: str | None = None) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


WHOLE: list[tuple[str, Any]] = [
    ("openai", {"choices": 5}),
    ("openai", {"choices": {"a": 1}}),
    ("openai", completion({"role": "assistant", "content": "x", "tool_calls": 5})),
    ("openai-responses", {"output": 5}),
    ("openai-responses", {"output": [{"type": "message", "content": 5}]}),
    ("anthropic", {"content": 5}),
]
STREAMED: list[tuple[str, list[Any]]] = [
    ("openai", [None]),
    ("openai", ["x"]),
    ("openai", [{"choices": 5}]),
    ("openai", [{"choices": [None]}]),
    ("openai", [chunk({"tool_calls": [None]})]),
    ("openai", [chunk({"content": "a"}), chunk({"content": {"b": 1}}), chunk({}, "stop")]),
    ("openai", [chunk({"tool_calls": 5}), chunk({}, "stop")]),
    ("openai-responses", [{"type": "response.completed", "response": {"output": 5}}]),
    ("anthropic", [None]),
    ("anthropic", [START, {"type": "content_block_delta"}]),
    ("anthropic", [{"type": "message_start", "message": None}]),
    ("anthropic", [START, {"type": "message_delta", "delta": None}]),
]


def model_of(dialect: str, response: Any, session: Any) -> Any:
    """The class under test, over a client that gives this response."""

    def create(**_call: Any) -> Any:
        return response

    made = SimpleNamespace(create=create)
    client = SimpleNamespace(chat=SimpleNamespace(completions=made), responses=made, messages=made)
    return CLASSES[dialect, False](client, session)


def asked(session: Any, dialect: str, response: Any) -> Any:
    session.append({"role": "user", "content": "Which part is broken?"})
    return model_of(dialect, response, session).ask()


@pytest.mark.parametrize(("dialect", "response"), WHOLE)
def test_a_response_of_another_form(dialect: str, response: Any) -> None:
    with session_of("memory://", dialect, is_async=False) as session:
        with pytest.raises(satchel.ReplyError, match="another form") as caught:
            asked(session, dialect, response)
        assert caught.value.code == "reply_failed"
        assert caught.value.__cause__ is not None
        assert len(session.messages()) == 1


@pytest.mark.parametrize("is_late", [False, True], ids=["first", "late"])
@pytest.mark.parametrize(("dialect", "events"), STREAMED)
def test_an_event_of_another_form(dialect: str, events: list[Any], is_late: bool) -> None:
    text = {"type": "text_delta", "text": "a"}
    shown: dict[str, list[Any]] = {
        "openai": [chunk({"content": "a"})],
        "openai-responses": [{"type": "response.output_text.delta", "delta": "a"}],
        "anthropic": [START, {"type": "content_block_delta", "index": 0, "delta": text}],
    }
    given = [*(shown[dialect] if is_late else ()), *events]
    with session_of("memory://", dialect, is_async=False) as session:
        session.append({"role": "user", "content": "Which part is broken?"})
        model = model_of(dialect, iter(given), session)
        with (
            pytest.raises(satchel.ReplyError, match="another form") as caught,
            model.stream() as stream,
        ):
            stream.collect()
        assert caught.value.code == "reply_failed"
        assert len(session.messages()) == 1


def test_a_content_in_parts_is_its_text() -> None:
    parts: list[Any] = [
        {"type": "thinking", "thinking": []},
        *({"type": "text", "text": one} for one in "ab"),
    ]
    given: list[Any] = [(parts, "ab"), ("ab", "ab"), ([{"type": "text", "text": "b"}], "b")]
    for content, text in given:
        with session_of("memory://", "openai", is_async=False) as session:
            reply = asked(session, "openai", completion({"role": "assistant", "content": content}))
            assert reply.text == text
            assert session.messages()[-1]["content"] == content
    blank: list[Any] = [[], [{"type": "text", "text": " "}], [None, 7, "x"], {"type": "text"}, 7]
    for content in blank:
        with session_of("memory://", "openai", is_async=False) as session:
            with pytest.raises(satchel.ReplyError) as caught:
                asked(session, "openai", completion({"role": "assistant", "content": content}))
            assert caught.value.code == "reply_empty"


def test_an_error_that_was_handled_before_is_not_the_client_s() -> None:
    class BusyError(Exception):
        status_code = 503

    def create(**_call: Any) -> Any:
        sent.append(1)
        raise BusyError

    sent: list[int] = []
    made = SimpleNamespace(chat=SimpleNamespace(completions=SimpleNamespace(create=create)))
    with session_of("memory://", "openai", is_async=False) as session:
        session.append({"role": "user", "content": "Which part is broken?"})
        model = CLASSES["openai", False](made, session)
        before = session.events()
        try:
            int("maximum context length is smaller")
        except ValueError:
            with pytest.raises(BusyError) as caught:
                model.ask()
            assert satchel.is_overflow_error(caught.value.__context__)
        assert len(sent) == 1
        kinds = [event["kind"] for event in session.events()[len(before) :]]
        assert "overflow" not in " ".join(kinds)
