"""A history in the message format of another provider, and a list of what was lost on the way.

What the target has no form for becomes text or goes; either way it stands in ``Converted.losses``.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from satchel import _core
from satchel._arguments import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Converted", "Loss", "convert"]


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that the target could not hold as it was.

    Attributes:
        index: raw index of the source message, or None for the ``system`` argument and the tools.
        kind: stable ``snake_case`` name: ``"reasoning"``, ``"signature"``, ``"image"``,
            ``"audio"``, ``"document"``, ``"video"``, ``"refusal"``, ``"name"``, ``"error_flag"``,
            ``"opaque"``, ``"instruction"``, ``"arguments"``, ``"call_kind"``, ``"stray_result"``,
            ``"placeholder"``, ``"blank"``, ``"empty_message"``, ``"character"``,
            ``"cache_mark"``, ``"citations"``, ``"field"``, ``"tool_name"``, ``"server_tool"``,
            ``"tool_option"``, ``"schema"``. More may come.
        detail: what became of it; names fields and kinds, never text of the conversation.
    """

    index: int | None
    kind: str
    detail: str

    def __str__(self) -> str:
        """As one line for people."""
        place = "" if self.index is None else f"message {self.index}: "
        return f"{place}{self.kind}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Converted:
    """A request in another dialect.

    Attributes:
        messages: the messages as dicts of the target's JSON; media of ``bedrock`` are ``bytes``,
            as its client wants them.
        system: the ``system`` argument where the target wants instructions outside the messages:
            a string or text blocks (``anthropic``), text blocks (``bedrock``), an object with
            ``parts`` (``gemini``), a string of ``instructions`` (``openai-responses``, only if
            there was an argument before); else None.
        tools: the definitions of the functions as a list in the target's form, or None.
        losses: what could not be carried over, by message; what belongs to none comes first.
    """

    messages: list[Any]
    system: Any
    tools: Any
    losses: list[Loss]


def convert(
    messages: Iterable[object],
    source: str,
    target: str,
    *,
    system: object = None,
    tools: object = None,
) -> Converted:
    """The same history in the dialect ``target``.

    Leading system and developer messages become the ``system`` argument where the target has one,
    and the argument becomes a message where it has none; later ones become labelled text of the
    user there. Roles alternate where they must, and a user comes first. Calls get unique ids that
    every provider takes, a pure function of what came before; arguments change between string and
    object, and what is no JSON object stands in ``{"_raw_arguments": ...}``. Reasoning, signatures
    and encrypted content never travel. A damaged history comes out valid: results behind their
    calls, a marked placeholder where one is missing, labelled text where a call is.

    Args:
        messages: the messages, as dicts or SDK objects; never changed.
        source: their dialect: ``"openai"``, ``"openai-responses"``, ``"anthropic"``, ``"gemini"``
            or ``"bedrock"``.
        target: the dialect wanted; the same one gives back the caller's own objects.
        system: the ``system`` argument of the request (``instructions``, ``systemInstruction``).
        tools: its tool definitions, in any of the five forms.

    Raises:
        InputError: ``invalid_message``, ``too_deep``, ``dialect_changed`` with the index of a
            message that cannot be read; ``unknown_dialect``; ``invalid_value`` for no list.

    Example:
        >>> found = convert([{"role": "system", "content": "Be brief."}], "openai", "anthropic")
        >>> found.system
        'Be brief.'
    """
    plain_text("source", source)
    plain_text("target", target)
    converted, system, tools, rows = _core.convert_messages(
        messages, source, target, system=system, tools=tools
    )
    if target == "bedrock" and source != target:
        for message in converted:
            _decode_blocks(message["content"])
    return Converted(converted, system, tools, [Loss(*row) for row in rows])


def _decode_blocks(blocks: list[dict[str, Any]]) -> None:
    """Give the media of Bedrock blocks their bytes, in place; base64 that is none stays text."""
    for block in blocks:
        for kind, value in block.items():
            if kind == "toolResult":
                _decode_blocks(value["content"])
            elif kind in {"image", "document", "video", "audio"}:
                source = cast("dict[str, Any]", value["source"])
                if isinstance(source.get("bytes"), str):
                    source["bytes"] = _decoded(source["bytes"])


def _decoded(text: str) -> bytes | str:
    try:
        return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        return text
