"""Text from outside, made safe to print: one line, no effect on the terminal, a known width.

What a transcript or a file name holds may be hostile: escape sequences, carriage returns, text that
runs backwards. A character that is not plainly visible is shown as its escape in Python.
"""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Any, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["message_line", "one_line", "printable"]

# Control, format (bidirectional and zero-width characters among them), surrogate, private use,
# not assigned, and the two separators that end a line.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_MARKS: Final = frozenset({"Mn", "Me"})
_MOST_MARKS: Final = 3  # what real writing stacks on one letter; more would paint over other lines
_LOOK_AT: Final = 2_000  # characters: more than any line that is shown
_OPENING: Final = {
    "image": "[image]",
    "image_url": "[image]",
    "input_audio": "[audio]",
    "document": "[document]",
    "file": "[file]",
    "thinking": "[reasoning]",
    "redacted_thinking": "[reasoning]",
}


def printable(text: str) -> str:
    """``text`` with every character escaped that could act on a terminal or hide from the eye."""
    shown: list[str] = []
    marks = 0
    for char in unicodedata.normalize("NFC", text):  # Korean in letters becomes syllables
        if " " <= char <= "~":
            marks = 0
            shown.append(char)
            continue
        category = unicodedata.category(char)
        marks = marks + 1 if category in _MARKS else 0
        if category in _HIDDEN or marks > _MOST_MARKS:
            shown.append(char.encode("unicode_escape").decode("ascii"))
        else:
            shown.append(" " if category == "Zs" else char)
    return "".join(shown)


def one_line(text: str) -> str:
    """The first line of ``text`` that is not blank, printable; only its beginning if it is long."""
    start = text[:_LOOK_AT].lstrip() or text.lstrip()
    line = start[:_LOOK_AT].split("\n", 1)[0]
    return printable(line.rstrip().replace("\t", " "))


def message_line(message: object) -> str:
    """What a message begins with: its text or, where there is none, its first call."""
    if not _is_object(message):
        return ""
    return next((line for line in _lines(message) if line), "")


def _lines(message: dict[str, Any]) -> Iterable[str]:
    content = message.get("content")
    calls = _dicts(message.get("tool_calls"))
    parts = _dicts(content)
    if isinstance(content, str):
        yield one_line(content)
    for part in parts:
        if isinstance(part.get("text"), str):
            yield one_line(part["text"])
    for call in calls:
        function: object = call.get("function")
        named = function if _is_object(function) else call
        yield _call(named.get("name"), named.get("arguments"))
    for part in parts:
        kind = part.get("type")
        if kind == "tool_use":
            yield _call(part.get("name"), part.get("input"))
        elif kind == "tool_result":
            yield next(iter(_lines({"content": part.get("content")})), "")
    for part in parts:
        kind = part.get("type")
        yield _OPENING.get(kind, "") if isinstance(kind, str) else ""


def _call(name: object, arguments: object) -> str:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    shown = " ".join(text[:_LOOK_AT].split())
    return f"{one_line(name) if isinstance(name, str) else '?'}({printable(shown)})"


def _dicts(value: object) -> list[dict[str, Any]]:
    return [entry for entry in value if _is_object(entry)] if _is_list(value) else []


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)
