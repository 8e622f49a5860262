"""Shapes that real OpenAI logs have and tidy examples do not, as messages of one accountant's run.

Null content beside calls, dumped SDK fields, part lists in every role, images, empty results,
one id used again for another call, a developer message, words after the last answer.
"""

# ruff: noqa: E501 - the words of the conversation, kept in one piece

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

from runs.run import Json, number, sample, schema, text


def png(width: int, height: int, rgb: tuple[int, int, int]) -> str:
    """A data URL of a one-coloured image."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = (b"\0" + bytes(rgb) * width) * height
    data = (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(rows, 9))
        + chunk(b"IEND", b"")
    )
    return "data:image/png;base64," + base64.b64encode(data).decode()


def _call(call_id: str, name: str, arguments: Any) -> Json:
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _dumped(content: Any, *calls: Json) -> Json:
    """An assistant message as an SDK dumps it, all optional fields present."""
    return {
        "role": "assistant",
        "content": content,
        "refusal": None,
        "annotations": [],
        "audio": None,
        "function_call": None,
        "tool_calls": list(calls) or None,
    }


def build() -> Json:
    """The sample."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": parameters,
                "strict": False,
            },
        }
        for name, description, parameters in (
            (
                "read_receipt",
                "Read a photographed receipt.",
                schema(("page",), page=number("page")),
            ),
            ("book", "Book one expense.", schema((), account=text("4-digit account"))),
            ("ping", "Check that the ledger answers.", schema()),
        )
    ]
    receipt = {"date": "2026-10-02", "shop": "Kiosk Brandl", "gross": "23.80", "vat": "3.80"}
    messages: list[Json] = [
        {
            "role": "developer",
            "content": "Book receipts for Studio Kestrel. Never guess a VAT rate.",
        },
        {
            "role": "user",
            "name": "imke",
            "content": [
                {"type": "text", "text": "Three receipts from October, the first one is crumpled."},
                {
                    "type": "image_url",
                    "image_url": {"url": png(8, 12, (240, 236, 220)), "detail": "low"},
                },
                {"type": "image_url", "image_url": {"url": png(16, 9, (30, 60, 120))}},
            ],
        },
        _dumped(None, _call("call_0", "read_receipt", {"page": 1})),
        {"role": "tool", "tool_call_id": "call_0", "content": json.dumps(receipt)},
        # The same id for another call: some servers count from zero in every reply.
        _dumped(None, _call("call_0", "read_receipt", {"page": 2})),
        {"role": "tool", "tool_call_id": "call_0", "content": ""},
        _dumped(
            "Page 2 came back empty; I try it once more and check the ledger.",
            _call("call_0", "read_receipt", {"page": 2}),
            _call("call_1", "ping", ""),
        ),
        {
            "role": "tool",
            "tool_call_id": "call_0",
            "name": "read_receipt",
            "content": [
                {"type": "text", "text": "date: 2026-10-17\nshop: Papier Lindqvist"},
                {"type": "text", "text": "gross: 114.24\nvat: 18.24 (19 %)"},
            ],
        },
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "name": "ping",
            "content": [{"type": "text", "text": "pong 14 ms"}],
        },
        _dumped(
            [
                {
                    "type": "text",
                    "text": "Page 2 is Papier Lindqvist, 114.24 with 18.24 VAT. For page 1 the rate is "
                    "not printed: 3.80 of 23.80 is 19 % of the net. Is that right?",
                }
            ]
        ),
        {"role": "user", "content": "Yes, 19. And page 3 is private, leave it out!  "},
        _dumped(
            None,
            _call(
                "call_0", "book", {"account": "4930", "gross": "114.24", "text": "Papier Lindqvist"}
            ),
            _call(
                "call_0b", "book", '{"account": "4980", "gross": "23.80", "text": "Kiosk Brandl"'
            ),
        ),
        {"role": "tool", "tool_call_id": "call_0", "content": "booked as 2026-0417"},
        {
            "role": "tool",
            "tool_call_id": "call_0b",
            "content": "error: arguments are not valid JSON (expected ',' or '}' at column 62)",
        },
        {"role": "developer", "content": [{"type": "text", "text": "The period closes at 18:00."}]},
        _dumped("", _call("call_0", "book", {"account": "4980", "gross": "23.80"})),
        {"role": "tool", "tool_call_id": "call_0", "content": "booked as 2026-0418"},
        {"role": "assistant", "content": "Booked: 2026-0417 and 2026-0418. Page 3 was left out."},
        {"role": "assistant", "content": "Shall I file the photographs as well?"},
        {"role": "user", "content": [{"type": "text", "text": "ja, gerne 🙏"}]},
        {"role": "user", "content": "👍🏽 \u200d also: don't e-mail me the PDF"},
        _dumped(None, _call("call_0", "ping", "{}")),
        {"role": "tool", "tool_call_id": "call_0", "content": "\n"},
        {"role": "assistant", "content": "Filed. No e-mail will be sent.", "name": "ledger"},
    ]
    return sample("Receipts with odd message shapes", "openai", "gpt-4o-mini", tools, messages)
