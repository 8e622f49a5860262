"""A server on this machine that answers as the providers do, and remembers what it was sent."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

_TEXT: dict[str, Any] = {"type": "output_text", "text": "Hi", "annotations": []}
_ITEM: dict[str, Any] = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [_TEXT],
}
_CALLS: list[Any] = []
ANSWERS: dict[str, dict[str, Any]] = {
    "/chat/completions": {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "Hi"},
            }
        ],
    },
    "/responses": {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "output": [_ITEM],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": _CALLS,
    },
    "/messages": {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [{"type": "text", "text": "Hi"}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    },
    ":generateContent": {"candidates": [{"content": {"role": "model", "parts": [{"text": "Hi"}]}}]},
    "/converse": {
        "output": {"message": {"role": "assistant", "content": [{"text": "Hi"}]}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    },
}
"""The answer to a request whose path ends so."""


class Wire:
    """Where to send requests, and what was sent."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.bodies: list[dict[str, Any]] = []

    @property
    def last(self) -> dict[str, Any]:
        """The newest request."""
        return self.bodies[-1]


@contextmanager
def serving(answers: Mapping[str, dict[str, Any]] = ANSWERS) -> Generator[Wire]:
    """A server for as long as the block runs; ``answers`` by the end of the path."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("content-length", 0))
            wire.bodies.append(json.loads(self.rfile.read(size)))
            [answer] = [
                answer
                for end, answer in answers.items()
                if self.path.partition("?")[0].endswith(end)
            ]
            body = json.dumps(answer).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - likewise
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    wire = Wire(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
