"""What a provider reports that a request cost, whichever provider it is.

Every provider names the same figures differently, and some leave the cached tokens out of the
input. `usage_tokens` brings them to one meaning: ``input`` is everything the model read.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, cast

from satchel._core import Calibration
from satchel.errors import InputError

__all__ = ["Calibration", "Usage", "usage_tokens"]


class Usage(NamedTuple):
    """Tokens of one request.

    Attributes:
        input: all input tokens: what was read from a cache and written to one included.
        cache_read: input tokens that came from a cache.
        cache_write: input tokens that were written to a cache.
        output: output tokens, reasoning included.
    """

    input: int
    cache_read: int
    cache_write: int
    output: int


# Where a response keeps its usage record, in the order in which they are tried.
_RECORDS: Final = ("usage", "usageMetadata", "usage_metadata", "token_usage", "last_token_usage")
# Where else it may be: inside the response of an SDK or of a framework's message.
_WRAPPERS: Final = ("response", "message", "response_metadata", "llm_output", "metrics")


def usage_tokens(response: object) -> Usage:
    """The usage in a response or usage record of any provider.

    Args:
        response: a response or its usage record, as a dict or an object with attributes: OpenAI
            (chat and Responses), Anthropic, Gemini, Bedrock, DeepSeek, LiteLLM and what follows
            them. Anthropic's ``iterations`` (server-side compaction) are summed, since the figures
            beside them leave compaction out.

    Returns:
        Tokens with one meaning for all of them, see `Usage`.

    Raises:
        InputError: ``invalid_value`` if there is no usage in it.

    Example:
        >>> usage_tokens({"usage": {"input_tokens": 5, "cache_read_input_tokens": 95,
        ...                         "cache_creation_input_tokens": 0, "output_tokens": 7}})
        Usage(input=100, cache_read=95, cache_write=0, output=7)
    """
    record = _record(response, 0)
    if record is None:
        message = f"no usage found in {type(response).__name__}"
        raise InputError(message, code="invalid_value")
    return record


def _record(value: object, depth: int) -> Usage | None:
    if value is None or depth > len(_WRAPPERS):
        return None
    for name in _RECORDS:
        inner = _get(value, name)
        if inner is not None and (found := _read(inner)) is not None:
            return found
    found = _read(value)
    if found is not None:
        return found
    for name in _WRAPPERS:
        inner = _get(value, name)
        if inner is not None and (found := _record(inner, depth + 1)) is not None:
            return found
    return None


def _read(record: object) -> Usage | None:
    """One record, by the names that it uses."""
    iterations = _get(record, "iterations")
    if isinstance(iterations, (list, tuple)) and iterations:
        parts = [_read(part) for part in cast("list[object]", iterations)]
        found = [part for part in parts if part is not None]
        if found:
            return Usage(*map(sum, zip(*found, strict=True)))
    for read in (_chat, _gemini, _bedrock, _messages_or_responses, _agent_log):
        usage = read(record)
        if usage is not None:
            return usage
    return None


def _chat(record: object) -> Usage | None:
    """OpenAI chat and what follows it; DeepSeek splits the input into hits and misses."""
    prompt = _number(record, "prompt_tokens")
    if prompt is None:
        return None
    details = _get(record, "prompt_tokens_details")
    read = _first(
        _number(details, "cached_tokens"),
        _number(record, "prompt_cache_hit_tokens"),
        _number(record, "cache_read_input_tokens"),
        _number(record, "cached_tokens"),
    )
    write = _first(
        _number(details, "cache_creation_tokens"),
        _number(details, "cache_write_tokens"),
        _number(record, "cache_creation_input_tokens"),
    )
    return Usage(prompt, read, write, _first(_number(record, "completion_tokens")))


def _gemini(record: object) -> Usage | None:
    """Gemini: reasoning and the prompts of server-side tools stand beside the rest."""
    prompt = _either(record, "promptTokenCount", "prompt_token_count")
    if prompt is None:
        return None
    tools = _first(_either(record, "toolUsePromptTokenCount", "tool_use_prompt_token_count"))
    read = _first(_either(record, "cachedContentTokenCount", "cached_content_token_count"))
    answer = _first(_either(record, "candidatesTokenCount", "candidates_token_count"))
    thoughts = _first(_either(record, "thoughtsTokenCount", "thoughts_token_count"))
    return Usage(prompt + tools, read, 0, answer + thoughts)


def _bedrock(record: object) -> Usage | None:
    """Bedrock Converse: the input leaves cached tokens out."""
    fresh = _number(record, "inputTokens")
    if fresh is None:
        return None
    read = _first(_either(record, "cacheReadInputTokens", "cacheReadInputTokenCount"))
    write = _first(_either(record, "cacheWriteInputTokens", "cacheWriteInputTokenCount"))
    return Usage(fresh + read + write, read, write, _first(_number(record, "outputTokens")))


def _messages_or_responses(record: object) -> Usage | None:
    """Anthropic's input leaves cached tokens out; that of Responses and LangChain holds them."""
    given = _number(record, "input_tokens")
    if given is None:
        return None
    output = _first(_number(record, "output_tokens"))
    details = _either_value(record, "input_tokens_details", "input_token_details")
    read = _number(record, "cache_read_input_tokens")
    write = _number(record, "cache_creation_input_tokens")
    if read is not None or write is not None:
        return Usage(given + (read or 0) + (write or 0), read or 0, write or 0, output)
    read = _first(
        _number(details, "cached_tokens"),
        _number(details, "cache_read"),
        _number(record, "cached_input_tokens"),
    )
    write = _first(_number(details, "cache_creation"), _number(details, "cache_write_tokens"))
    return Usage(given, read, write, output)


def _agent_log(record: object) -> Usage | None:
    """Agents' own logs: the input leaves cached tokens out (pi, Kimi)."""
    fresh = _either(record, "input", "inputOther")
    if fresh is None:
        return None
    read = _first(_either(record, "cacheRead", "inputCacheRead"))
    write = _first(_either(record, "cacheWrite", "inputCacheCreation"))
    output = _first(_number(record, "output"))
    return Usage(fresh + read + write, read, write, output)


def _get(value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return cast("Mapping[str, object]", value).get(name)
    return getattr(value, name, None) if _has_fields(value) else None


def _has_fields(value: object) -> bool:
    return value is not None and not isinstance(value, (str, bytes, int, float, list, tuple))


def _number(value: object, name: str) -> int | None:
    found: Any = _get(value, name)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        return None
    return found


def _either(value: object, *names: str) -> int | None:
    return next((found for name in names if (found := _number(value, name)) is not None), None)


def _either_value(value: object, *names: str) -> object:
    return next((found for name in names if (found := _get(value, name)) is not None), None)


def _first(*numbers: int | None) -> int:
    return next((number for number in numbers if number is not None), 0)
