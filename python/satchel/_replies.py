"""The assistant's messages in what a provider's client returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["messages_in"]

_NOT_SENT: Final = frozenset({"audio", "annotations", "refusal", "function_call", "tool_calls"})
"""Fields of a chat reply that providers refuse as null when they come back."""


def messages_in(response: object, dialect: str) -> list[Any]:
    """The messages to append after a call: the reply in the form of ``dialect``.

    Args:
        response: what the client returned, as an object or a dict; or the message itself.
        dialect: the dialect of the request.

    Returns:
        One message; for ``openai-responses`` the items of the output.

    Raises:
        InputError: ``invalid_message`` if there is no reply in it.
    """
    if isinstance(response, (list, tuple)):
        return list(cast("Sequence[Any]", response))
    found = _READERS[dialect](response) if dialect in _READERS else None
    if found is None:
        message = f"no reply of dialect {dialect} found in {type(response).__name__}"
        raise InputError(message, code="invalid_message")
    return found


def _get(holder: object, name: str) -> Any:  # noqa: ANN401 - a provider's own form
    if isinstance(holder, Mapping):
        return cast("Mapping[str, Any]", holder).get(name)
    return getattr(holder, name, None)


def _chat(response: object) -> list[Any] | None:
    choices = _get(response, "choices")
    message = _get(choices[0], "message") if choices else response
    if _get(message, "role") is None:
        return None
    dump = getattr(message, "model_dump", None)
    fields = cast("dict[str, Any]", dump() if callable(dump) else message)
    return [
        {
            name: value
            for name, value in fields.items()
            if not (name in _NOT_SENT and value is None) and value != []
        }
    ]


def _items(response: object) -> list[Any] | None:
    output = _get(response, "output")
    if isinstance(output, (list, tuple)):
        return list(cast("Sequence[Any]", output))
    is_item = _get(response, "type") is not None or _get(response, "role") is not None
    return [response] if is_item else None


def _blocks(response: object) -> list[Any] | None:
    content, role = _get(response, "content"), _get(response, "role")
    if role is None or content is None:
        return None
    return [{"role": role, "content": content}]


def _content(response: object) -> list[Any] | None:
    candidates = _get(response, "candidates")
    content = _get(candidates[0], "content") if candidates else response
    return None if _get(content, "parts") is None else [content]


def _converse(response: object) -> list[Any] | None:
    message = _get(_get(response, "output"), "message") or response
    return None if _get(message, "role") is None else [message]


_READERS: Final = {
    "openai": _chat,
    "openai-responses": _items,
    "anthropic": _blocks,
    "gemini": _content,
    "bedrock": _converse,
}
