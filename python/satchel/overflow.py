"""Whether a provider refused a request because it was too long.

Providers say so in many ways and reword their sentences; the table below is data, matched without
regard to case and only in error bodies. A rate limit and a refused key are never taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

__all__ = ["is_overflow_error", "overflow_details"]

# Every fragment of one entry must be there. Where each was seen: OpenAI chat (code, sentence),
# Responses, Anthropic (since Claude 3; before 4.5; request in bytes; stop reason since 4.5), Bedrock,
# Gemini, xAI.
_FRAGMENTS: Final = (
    ("context_length_exceeded",),
    ("maximum context length",),
    ("exceeds the context window",),
    ("prompt is too long",),
    ("exceed context limit",),
    ("input is too long for requested model",),
    ("input token count", "exceeds the maximum number of tokens allowed"),
    ("maximum prompt length",),
    ("request_too_large",),
    ("model_context_window_exceeded",),
)
# A body with one of these is about how often or by whom, whatever else it quotes.
_OTHER: Final = (
    "rate_limit",
    "rate limit",
    "tokens per min",
    "too many requests",
    "insufficient_quota",
    "authentication_error",
    "invalid_api_key",
    "permission_error",
    "overloaded_error",
)
_OTHER_STATUS: Final = frozenset({401, 403, 429})
# What was sent and what is allowed; each pair of patterns is of one provider.
_NUMBERS: Final = tuple(
    (re.compile(actual), re.compile(limit))
    for actual, limit in (
        (r"(\d+) tokens > \d+ maximum", r"\d+ tokens > (\d+) maximum"),
        (r"resulted in (\d+) tokens", r"maximum context length is (\d+)"),
        (r"requested (?:about )?(\d+) tokens", r"maximum context length is (\d+)"),
        (
            r"input token count[^()\d]*\(?(\d+)\)? exceeds",
            r"maximum number of tokens allowed[^()\d]*\(?(\d+)",
        ),
        (r"request contains (\d+) tokens", r"maximum prompt length is (\d+)"),
    )
)
_SUM: Final = re.compile(r"(\d+) \+ (\d+) > (\d+)")
_MAX_DEPTH: Final = 8
# Attributes of exceptions and responses that hold a body, and keys of bodies that hold sentences.
_ATTRIBUTES: Final = ("body", "response", "message", "error", "detail", "details", "code", "text")
_KEYS: Final = (
    *_ATTRIBUTES,
    "Error",
    "Message",
    "Code",
    "type",
    "status",
    "metadata",
    "raw",
    "stop_reason",
    "stopReason",
)


def is_overflow_error(error: object) -> bool:
    """Whether ``error`` says that the request was longer than the model takes.

    Args:
        error: an exception (its body, response, message and causes are looked at), the text or the
            parsed body of an error response, or a response that ended with the stop reason
            ``model_context_window_exceeded``. Contents of an answer are not looked at.

    Returns:
        True if a fragment of a known sentence is there, and nothing about rate limits, quotas or
        permissions beside it.

    Example:
        >>> is_overflow_error("prompt is too long: 203000 tokens > 200000 maximum")
        True
        >>> is_overflow_error("Rate limit reached: 30000 tokens per min")
        False
    """
    return _overflow_text(error) is not None


def overflow_details(error: object) -> tuple[int, int] | None:
    """The limit and what was sent, in tokens, where an overflow error names both.

    Args:
        error: as for `is_overflow_error`.

    Returns:
        ``(limit, actual)``; None if it is no overflow error or does not say.

    Example:
        >>> overflow_details("prompt is too long: 203000 tokens > 200000 maximum")
        (200000, 203000)
    """
    text = _overflow_text(error)
    if text is None:
        return None
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    for actual, limit in _NUMBERS:
        found, most = actual.search(text), limit.search(text)
        if found and most:
            return int(most[1]), int(found[1])
    added = _SUM.search(text)
    return (int(added[3]), int(added[1]) + int(added[2])) if added else None


def _overflow_text(error: object) -> str | None:
    texts: list[str] = []
    for text in _texts(error, 0, set()):
        if text is None:
            return None
        texts.append(text.lower())
    everything = "\n".join(texts)
    if any(other in everything for other in _OTHER):
        return None
    for fragments in _FRAGMENTS:
        if all(fragment in everything for fragment in fragments):
            return everything
    return None


def _texts(value: object, depth: int, seen: set[int]) -> Iterator[str | None]:
    """Every sentence of an error; None if its status says that it is about something else."""
    if value is None or depth > _MAX_DEPTH:
        return
    if isinstance(value, str):
        yield value
        return
    if isinstance(value, bytes):
        yield value.decode(errors="replace")
        return
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, Mapping):
        for key in _KEYS:
            yield from _texts(cast("Mapping[str, object]", value).get(key), depth + 1, seen)
        return
    if isinstance(value, (list, tuple)):
        for item in cast("tuple[object, ...]", value):
            yield from _texts(item, depth + 1, seen)
        return
    if isinstance(value, (bool, int, float)):
        return
    for name in ("status_code", "status", "http_status"):
        if getattr(value, name, None) in _OTHER_STATUS:
            yield None
    if isinstance(value, BaseException):
        yield str(value)
    for name in (*_ATTRIBUTES, "stop_reason"):
        found = _attribute(value, name)
        if not callable(found):
            yield from _texts(found, depth + 1, seen)
    for name in ("__cause__", "__context__"):
        yield from _texts(getattr(value, name, None), depth + 1, seen)


def _attribute(value: object, name: str) -> object:
    """An attribute; None where reading it fails, as with the text of a response not read yet."""
    try:
        return getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a property of somebody else's class may raise anything
        return None
