"""Reasoning in the messages of each dialect: where it stands, and messages without it.

What a provider asks back stays. Items of the Responses API that follow a piece of reasoning lose
the ids under which the provider looks for it; a chat message that calls tools keeps its
``reasoning_content``, without which the models that return it refuse the call.

Source: Anthropic, context editing page (turns that keep thinking by default, read 2026-08-21);
OpenAI, Responses API reference; DeepSeek, thinking mode; Gemini, thought signatures.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal, cast

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["thinking_tail", "without_reasoning"]

_KINDS: Final = frozenset({"thinking", "redacted_thinking"})
_BESIDE: Final = ("reasoning_content", "thinking_blocks")
"""Where chat messages have reasoning beside their content; litellm signs the second."""

_CLAUDE: Final = re.compile(r"claude-(opus|sonnet|fable|mythos)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_KEEPING: Final = {"opus": (4, 5), "sonnet": (4, 6), "fable": (0, 0), "mythos": (0, 0)}
"""The first versions that keep all reasoning by default."""


def _turns_kept(model: str) -> int | Literal["all"]:
    """Turns before the running one whose reasoning stays where nobody says how many."""
    found = _CLAUDE.search(model)
    if found is None:
        return 1
    version = int(found[2]), int(found[3] or 0)
    return "all" if version >= _KEEPING[found[1]] else 1


def thinking_tail(messages: Sequence[Any], keep: int | Literal["all", "model"], model: str) -> int:
    """How many messages at the end keep their reasoning.

    They go back to the first of the ``keep`` newest turns with reasoning before the running turn;
    ``model`` stands for what the provider of this model keeps.
    """
    wanted = _turns_kept(model) if keep == "model" else keep
    if wanted == "all":
        return len(messages)
    turns = 0
    is_running, holds = True, False
    for back, message in enumerate(reversed(messages), 1):
        holds = holds or _has_reasoning(message)
        if _field(message, "role") != "user" or any(map(_is_result, _blocks(message))):
            continue
        turns += not is_running and holds
        if turns == wanted:
            return back
        is_running, holds = False, False
    return len(messages)


def without_reasoning(messages: Sequence[Any]) -> list[tuple[Any, Any]]:
    """Each message beside what stands for it: itself, a copy without reasoning, or None.

    None is for a message that is nothing but reasoning.
    """
    pairs: list[tuple[Any, Any]] = []
    is_cut = False
    for message in messages:
        if _field(message, "type") == "reasoning":
            is_cut = True
            pairs.append((message, None))
            continue
        is_cut = is_cut and _is_output(message)
        bare = _bare(message)
        if is_cut and bare is not None and _field(bare, "id") is not None:
            bare = _copy_without(bare, ("id",))
        pairs.append((message, bare))
    return pairs


def _bare(message: Any) -> Any:  # noqa: ANN401 - a message is whatever the caller has
    has_calls = bool(_field(message, "tool_calls") or _field(message, "function_call"))
    beside = [name for name in _BESIDE if _field(message, name)]
    if has_calls and "reasoning_content" in beside:
        beside.remove("reasoning_content")
    if beside:
        message = _copy_without(message, beside)
    name = _place(message)
    blocks = _blocks(message)
    kept = [block for block in blocks if not _is_reasoning(block)]
    if len(kept) == len(blocks):
        return message
    if not kept and has_calls:
        # Chat messages have their calls beside the content.
        return {**_copy_without(message, (name,)), name: None}
    if not kept:
        return None
    if isinstance(message, dict):
        return {**cast("dict[str, Any]", message), name: kept}
    return {"role": _field(message, "role"), name: kept}


def _copy_without(message: Any, names: Sequence[str]) -> Any:  # noqa: ANN401 - likewise
    if not isinstance(message, dict):
        # A model of a client, in the form it would be sent in.
        message = message.model_dump(exclude_unset=True)
    fields = cast("dict[str, Any]", message)
    return {name: value for name, value in fields.items() if name not in names}


def _has_reasoning(message: object) -> bool:
    is_item = _field(message, "type") == "reasoning"
    return is_item or _said(message) or any(map(_is_reasoning, _blocks(message)))


def _said(message: object) -> bool:
    return any(_field(message, name) for name in _BESIDE)


def _is_output(item: object) -> bool:
    """Whether a model wrote this item."""
    kind = _field(item, "type")
    if isinstance(kind, str) and kind != "message":
        return not kind.endswith("_output")
    return bool(_field(item, "role") == "assistant")


def _place(message: object) -> str:
    return "content" if _field(message, "parts") is None else "parts"


def _blocks(message: object) -> Sequence[Any]:
    found = _field(message, _place(message))
    return cast("Sequence[Any]", found) if isinstance(found, (list, tuple)) else ()


def _is_reasoning(block: object) -> bool:
    kind = _field(block, "type")
    is_named = isinstance(kind, str) and kind in _KINDS
    thought = _field(block, "thought")
    # As LangChain writes the signed blocks of all providers.
    is_signed = kind == "reasoning" and bool(_field(_field(block, "extras"), "signature"))
    is_named = is_named or is_signed
    return is_named or thought is True or _field(block, "reasoningContent") is not None


def _is_result(block: object) -> bool:
    return _field(block, "type") == "tool_result" or any(
        _field(block, name) is not None
        for name in ("toolResult", "functionResponse", "function_response")
    )


def _field(value: object, name: str) -> Any:  # noqa: ANN401 - likewise
    if isinstance(value, dict):
        return cast("dict[str, Any]", value).get(name)
    return getattr(value, name, None)
