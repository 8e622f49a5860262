"""One reply of a model, told in the same words for every API."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from satchel._arguments import name_of_type, shown
from satchel.errors import InputError, ReplyError, SatchelError
from satchel.overflow import is_overflow_error
from satchel.usage import Usage, usage_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence

    from satchel.window import Window

__all__ = [
    "Reading",
    "RefusedWindowError",
    "Reply",
    "ToolCall",
    "as_fields",
    "as_items",
    "broken_off",
    "check_refused",
    "checked",
    "field",
    "fields_of",
    "in_known_form",
    "parsed",
    "results_of",
]


class ToolCall(NamedTuple):
    """A tool call of a reply.

    Attributes:
        id: what its result has to name.
        name: the tool.
        arguments: what the tool is given; None where the model wrote no JSON object.
        text: the arguments as the model wrote them; for a custom tool of OpenAI's all there is.
        kind: ``function`` or, for a custom tool of OpenAI's, ``custom``.
    """

    id: str
    name: str
    arguments: dict[str, Any] | None
    text: str
    kind: str = "function"


class Reading(NamedTuple):
    """What an API's module finds in a response.

    Attributes:
        text: all text in it.
        calls: calls that the program has to answer.
        stop: why it ended, in the provider's word.
        is_cut: whether it ran into a limit.
        is_refused: whether the model or its provider declined.
        is_empty: whether there is nothing in it that could stand in a history.
        ends_in_call: whether the last thing in it is a call.
    """

    text: str
    calls: tuple[ToolCall, ...]
    stop: str
    is_cut: bool
    is_refused: bool
    is_empty: bool
    ends_in_call: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A reply that was recorded in its session.

    Attributes:
        response: the client's own object; of a stream, the same put together from its events.
        window: what was sent.
        text: all text of the reply.
        calls: the calls that the program has to answer, in order.
        stop: why the model stopped, in the provider's word, such as ``stop``, ``tool_calls``,
            ``end_turn`` or ``max_tokens``.
        usage: what the call cost; None where the provider does not say.
        overflows: windows that the provider refused as too long before it took this one.
    """

    response: Any
    window: Window
    text: str
    calls: tuple[ToolCall, ...]
    stop: str
    usage: Usage | None
    overflows: int

    def results(
        self, outputs: Mapping[str, Any] | Iterable[Any], *, errors: Iterable[str] = ()
    ) -> list[dict[str, Any]]:
        """The messages that answer the calls, in the session's dialect, for `Session.append`.

        Args:
            outputs: what the tools gave: by the call's id, or one for each call in order. A text,
                or content blocks of the dialect; anything else is written as JSON.
            errors: ids of calls whose output tells of a failure. Anthropic's format has a mark for
                it; in OpenAI's the text alone says so.

        Returns:
            One message a call; for Anthropic one message with all results.

        Raises:
            InputError: ``invalid_value`` if an output is missing or answers no call.
        """
        return results_of(self.calls, outputs, errors, self.window.dialect)

    @classmethod
    def of(cls, reading: Reading, response: object, window: Window, overflows: int) -> Reply:
        """A reply of what was read in a response."""
        try:
            usage = usage_tokens(response)
        except InputError:
            usage = None
        return cls(
            response=response,
            window=window,
            text=reading.text,
            calls=reading.calls,
            stop=reading.stop,
            usage=usage,
            overflows=overflows,
        )


def results_of(
    calls: Sequence[ToolCall],
    outputs: Mapping[str, Any] | Iterable[Any],
    errors: Iterable[str],
    dialect: str,
) -> list[dict[str, Any]]:
    """See `Reply.results`."""
    names = [call.id for call in calls]
    given = _in_order(names, outputs)
    failed = frozenset(errors)
    wrong = sorted(failed.difference(names))
    if wrong:
        message = f"errors names {shown(wrong[0])}, which is no call of this reply"
        raise InputError(message, code="invalid_value")
    pairs = [(call, _content(output)) for call, output in zip(calls, given, strict=True)]
    return _WRITERS[dialect](pairs, failed) if pairs else []


def _in_order(names: list[str], outputs: Mapping[str, Any] | Iterable[Any]) -> list[Any]:
    """An output for each name; a list goes by order alone, for servers that give an id twice."""
    if isinstance(outputs, Mapping):
        given = dict(cast("Mapping[str, Any]", outputs))
        odd = [name for name in names if name not in given]
        odd += [name for name in given if name not in names]
        if odd:
            message = f"outputs must have one for each call; {shown(odd[0])} is in one only"
            raise InputError(message, code="invalid_value")
        return [given[name] for name in names]
    if isinstance(cast("object", outputs), str) or not hasattr(outputs, "__iter__"):
        message = f"outputs must be a mapping or a list, not {name_of_type(outputs)}"
        raise InputError(message, code="invalid_value")
    listed = list(outputs)
    if len(listed) != len(names):
        message = f"{len(listed)} outputs for {len(names)} calls"
        raise InputError(message, code="invalid_value", value=len(listed), limit=len(names))
    return listed


class RefusedWindowError(Exception):
    """A response, and no error, that says that the request was too long."""

    def __init__(self, response: object) -> None:
        super().__init__("the request was too long for the model")
        self.response: Final = response


def check_refused(response: object) -> None:
    """Raises `RefusedWindowError` if a response says that the request was too long."""
    if is_overflow_error(response):
        raise RefusedWindowError(response)


def broken_off() -> ReplyError:
    """The error of a stream that ended before the reply did."""
    message = "the stream of the reply ended before the reply did"
    return ReplyError(message, code="reply_broken_off")


@contextmanager
def in_known_form() -> Generator[None]:
    """Where a provider's response is read: what is not there, or is another thing, is an error.

    Raises:
        ReplyError: ``reply_failed``, from the error.
    """
    try:
        yield
    except SatchelError:
        raise
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        message = "the provider's response has another form"
        raise ReplyError(message, code="reply_failed") from error


def checked(reading: Reading) -> Reading:
    """A reading, if it can stand in a history.

    Raises:
        ReplyError: ``reply_refused``, ``reply_cut`` or ``reply_empty``.
    """
    if reading.is_cut and (reading.ends_in_call or reading.is_empty):
        what = "in the middle of a call" if reading.ends_in_call else "before it had said anything"
        message = f"the reply ran into its limit {what}"
        raise ReplyError(message, code="reply_cut")
    if reading.is_empty:
        code = "reply_refused" if reading.is_refused else "reply_empty"
        what = "declined to reply" if reading.is_refused else "gave neither text nor a call"
        message = f"the model {what} (it stopped with {shown(reading.stop)})"
        raise ReplyError(message, code=code)
    return reading


def field(holder: object, name: str) -> Any:  # noqa: ANN401 - a provider's own form
    """A field of a client's object or of a dict; None if it is not there."""
    if isinstance(holder, Mapping):
        return cast("Mapping[str, Any]", holder).get(name)
    return getattr(holder, name, None)


def fields_of(event: object) -> dict[str, Any]:
    """The fields of a client's event, or of a dict; those that were said."""
    dump = getattr(event, "model_dump", None)
    return as_fields(dump(exclude_unset=True) if callable(dump) else event)


def as_fields(value: object) -> dict[str, Any]:
    """A value that is known to be a JSON object."""
    return cast("dict[str, Any]", value)


def as_items(value: object) -> list[Any]:
    """A value that is known to be a JSON array."""
    return cast("list[Any]", value)


def parsed(text: str) -> dict[str, Any] | None:
    """The object in the arguments of a call; None where there is none."""
    if not text.strip():
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def _content(output: Any) -> str | list[Any]:  # noqa: ANN401 - what a tool gave
    if isinstance(output, str):
        return output
    if type(output).__name__ == "list":
        return as_items(output)
    try:
        return json.dumps(output, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"an output of type {name_of_type(output)} is neither text nor JSON"
        raise InputError(message, code="invalid_value") from error


_Pairs = list[tuple[ToolCall, str | list[Any]]]


def _chat(pairs: _Pairs, _failed: frozenset[str]) -> list[dict[str, Any]]:
    return [
        {"role": "tool", "tool_call_id": call.id, "content": content} for call, content in pairs
    ]


def _items(pairs: _Pairs, _failed: frozenset[str]) -> list[dict[str, Any]]:
    kinds = {"custom": "custom_tool_call_output"}
    return [
        {
            "type": kinds.get(call.kind, "function_call_output"),
            "call_id": call.id,
            "output": content,
        }
        for call, content in pairs
    ]


def _blocks(pairs: _Pairs, failed: frozenset[str]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for call, content in pairs:
        block = {"type": "tool_result", "tool_use_id": call.id, "content": content}
        blocks.append({**block, "is_error": True} if call.id in failed else block)
    return [{"role": "user", "content": blocks}]


_WRITERS: Final[dict[str, Callable[[_Pairs, frozenset[str]], list[dict[str, Any]]]]] = {
    "openai": _chat,
    "openai-responses": _items,
    "anthropic": _blocks,
}
