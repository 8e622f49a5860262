"""Errors that say a request was too long, and those that do not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from satchel import is_overflow_error, overflow_details

TOO_LONG: list[tuple[str, tuple[int, int] | None]] = [
    (
        "The maximum context length is 128000 tokens. Your messages resulted in 130512 tokens",
        (128_000, 130_512),
    ),
    (
        "This model's maximum context length is 8,192 tokens, however you requested 9,001 tokens",
        (8_192, 9_001),
    ),
    ("Your input exceeds the context window of this model. Please adjust your input.", None),
    ("prompt is too long: 203471 tokens > 200000 maximum", (200_000, 203_471)),
    (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        (200_000, 210_000),
    ),
    ("Input is too long for requested model.", None),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        (1_048_576, 1_200_000),
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        (131_072, 140_000),
    ),
    ("CONTEXT_LENGTH_EXCEEDED", None),
    (
        '{"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}',
        None,
    ),
]
OTHER = [
    "Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.",
    "429 Too Many Requests: prompt is too long for your tier, rate_limit_error",
    "Incorrect API key provided. invalid_api_key",
    "authentication_error: invalid x-api-key",
    "insufficient_quota",
    "messages: text content blocks must be non-empty",
    "An assistant message with 'tool_calls' must be followed by tool messages",
    "Expected a string with maximum length 40",
    "the input token count is fine",
    "",
]


class ApiError(Exception):
    """As SDKs raise them."""

    def __init__(
        self, message: str, *, body: object = None, response: object = None, **more: Any
    ) -> None:
        super().__init__(message)
        self.body = body
        self.response = response
        for name, value in more.items():
            setattr(self, name, value)


@pytest.mark.parametrize(("text", "details"), TOO_LONG)
def test_every_known_sentence(text: str, details: tuple[int, int] | None) -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
    reply = SimpleNamespace(text=text, status_code=400)
    for error in (
        text,
        text.upper().replace("TOKENS", "tokens"),
        text.encode(),
        body,
        {"error": {"code": 400, "message": "Error", "details": [{"detail": text}]}},
        ApiError(text),
        ApiError("Error code: 400", body=body),
        ApiError("Error code: 400", response=reply),
        ApiError("bedrock", response={"Error": {"Code": "ValidationException", "Message": text}}),
    ):
        assert is_overflow_error(error)
        assert overflow_details(error) == details


@pytest.mark.parametrize("text", OTHER)
def test_other_errors(text: str) -> None:
    for error in (text, {"error": {"message": text}}, ApiError(text, body={"message": text})):
        assert not is_overflow_error(error)
        assert overflow_details(error) is None


def test_causes_are_looked_at() -> None:
    outer = RuntimeError("the model call failed")
    outer.__cause__ = ApiError("prompt is too long: 5 tokens > 4 maximum")
    assert is_overflow_error(outer)
    assert overflow_details(outer) == (4, 5)


def test_a_status_about_limits_or_keys_decides() -> None:
    for status in (401, 403, 429):
        assert not is_overflow_error(
            ApiError("prompt is too long: 5 tokens > 4 maximum", status_code=status)
        )
    assert is_overflow_error(ApiError("prompt is too long: 5 tokens > 4 maximum", status_code=400))


def test_a_stop_reason_says_it_too() -> None:
    assert is_overflow_error({"role": "assistant", "stop_reason": "model_context_window_exceeded"})
    assert is_overflow_error(SimpleNamespace(stop_reason="model_context_window_exceeded"))
    assert not is_overflow_error({"role": "assistant", "stop_reason": "end_turn"})


def test_answers_are_no_errors() -> None:
    answer = {"role": "assistant", "content": "Your prompt is too long: 5 tokens > 4 maximum"}
    assert not is_overflow_error(answer)


def test_odd_things_are_no_errors_and_end() -> None:
    class Unreadable:
        @property
        def text(self) -> str:
            raise RuntimeError

    loop = ApiError("x")
    loop.body = loop
    nested: Any = {"error": {}}
    for _ in range(50):
        nested = {"error": nested}
    odd_things: list[object] = [None, 5, object(), [], Unreadable(), loop, nested, BaseException()]
    for odd in odd_things:
        assert not is_overflow_error(odd)


def test_what_was_handled_meanwhile_is_another_error() -> None:
    found = ApiError("busy", status_code=503)
    found.__context__ = ApiError("prompt is too long: 5 tokens > 4 maximum")
    assert not is_overflow_error(found)
    assert overflow_details(found) is None
