"""Whether a provider refused a request because it was too long.

Providers say so in many ways and reword their sentences; the table below is data, matched without
regard to case and only in error bodies. A rate limit and a refused key are never taken for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, cast

__all__ = ["is_overflow_error", "overflow_details"]

# Every fragment of one entry must be there, in the order: OpenAI chat (code, sentence), Responses,
# Anthropic (prompt; with max_tokens, before 4.5), Bedrock, Gemini, xAI, Anthropic (bytes of the
# request; stop reason since 4.5).
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
_OTHER_STATUS: Final[tuple[object, ...]] = (401, 403, 429)
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
    found = _Texts()
    found.look(error, 0)
    everything = "\n".join(found.texts).lower()
    if found.is_other or any(other in everything for other in _OTHER):
        return None
    for fragments in _FRAGMENTS:
        if all(fragment in everything for fragment in fragments):
            return everything
    return None


class _Texts:
    """Every sentence of an error, and whether its status says that it is about something else."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.is_other = False
        self._seen: set[int] = set()

    def look(self, value: object, depth: int) -> None:
        if isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, bytes):
            self.texts.append(value.decode(errors="replace"))
        elif value is not None and depth <= _MAX_DEPTH and id(value) not in self._seen:
            self._seen.add(id(value))
            for inner in self._inside(value):
                self.look(inner, depth + 1)

    def _inside(self, value: object) -> Iterator[object]:
        if isinstance(value, Mapping):
            fields = cast("Mapping[str, object]", value)
            yield from (fields.get(key) for key in _KEYS)
        elif isinstance(value, (list, tuple)):
            yield from cast("tuple[object, ...]", value)
        elif not isinstance(value, (bool, int, float)):
            statuses = (_attribute(value, name) for name in ("status_code", "status"))
            self.is_other |= any(status in _OTHER_STATUS for status in statuses)
            if isinstance(value, BaseException):
                yield str(value)
            # What was being handled when it was raised (the context) may be about anything.
            for name in (*_ATTRIBUTES, "stop_reason", "__cause__"):
                found = _attribute(value, name)
                if not callable(found):
                    yield found


def _attribute(value: object, name: str) -> object:
    """An attribute; None where reading it fails, as with the text of a response not read yet."""
    try:
        found: object = getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a property of somebody else's class may raise anything
        return None
    return found
