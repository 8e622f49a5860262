"""A window as a reader sees it: a table of text for a terminal, one of HTML for a notebook.

Content of messages is data: control characters are shown as escapes, HTML is escaped, and only the
beginning of each message is there.
"""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Final, cast

from satchel._cli_text import message_line, one_line, printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from satchel.window import Window

__all__ = ["as_html", "as_text"]

_MOST_ROWS: Final = 40
_WIDTH: Final = 72


def _heading(window: Window) -> str:
    steps = ", ".join(f"{count} {level}" for level, count in window.report.steps.items() if count)
    about = "" if window.exact else f" (at most {window.tokens_upper:,})"
    return (
        f"{len(window.messages)} {printable(window.dialect)} messages for "
        f"{printable(window.model)}: {window.tokens:,}{about} of {window.budget:,} tokens; "
        f"steps: {steps or 'none'}"
    )


def _rows(window: Window) -> Iterator[tuple[str, str, str]]:
    """Index, role and beginning of each message; of many only the first and the last."""
    count = len(window.messages)
    left_out = range(_MOST_ROWS // 2, count - _MOST_ROWS // 2) if count > _MOST_ROWS else range(0)
    for index, message in enumerate(window.messages):
        if index not in left_out:
            yield str(index), _role(message), _begins(message)
        elif index == left_out.start:
            yield "…", "", f"{len(left_out):,} more messages"


def _field(message: object, *names: str) -> object:
    """The first of these fields that the message has."""
    if not isinstance(message, dict):
        return None
    fields = cast("dict[str, object]", message)
    return next((fields[name] for name in names if name in fields), None)


def _role(message: object) -> str:
    role = _field(message, "role", "type")
    return one_line(role) if isinstance(role, str) else "?"


def _begins(message: object) -> str:
    blocks = _field(message, "content", "parts", "output")
    if _field(message, "arguments") is not None:
        blocks = [{"type": "tool_use", **_call(message)}]
    elif isinstance(blocks, list):
        blocks = [_block(block) for block in cast("list[object]", blocks)]
    line = message_line(message) or message_line({"content": blocks})
    return line if len(line) <= _WIDTH else line[: _WIDTH - 1] + "…"


def _block(block: object) -> object:
    """A block of any dialect in a form that shows where it begins."""
    call = _field(block, "functionCall", "function_call", "toolUse")
    if call is not None:
        return {"type": "tool_use", **_call(call)}
    result = _field(block, "functionResponse", "function_response")
    if result is not None:
        return {"text": json.dumps(_field(result, "response"), ensure_ascii=False, default=repr)}
    result = _field(block, "toolResult")
    if result is not None:
        return {"type": "tool_result", "content": _field(result, "content")}
    return block


def _call(call: object) -> dict[str, object]:
    return {
        "name": _field(call, "name"),
        "input": _field(call, "args", "input", "arguments"),
    }


def as_text(window: Window) -> str:
    """A heading, and a line for each message."""
    rows = list(_rows(window))
    wide = max((len(role) for _, role, _ in rows), default=0)
    lines = [f"{index:>4}  {role:<{wide}}  {begins}".rstrip() for index, role, begins in rows]
    return "\n".join([f"Window: {_heading(window)}", *lines])


def as_html(window: Window) -> str:
    """The same as a table; holds no script, no style and no link."""
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
        for row in _rows(window)
    )
    return (
        f"<table><caption>{html.escape(_heading(window))}</caption>"
        "<thead><tr><th>message</th><th>role</th><th>begins</th></tr></thead>"
        f"<tbody>{cells}</tbody></table>"
    )
