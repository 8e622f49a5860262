"""A server on this machine that is asked for summaries and answers as providers do on bad days."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

FAULTS = (
    "none",
    "429",
    "500",
    "stalls",
    "breaks off",
    "is no json",
    "says nothing",
    "refuses",
    "calls a tool",
    "copies",
    "is too long",
    "ends in the middle",
)
SUMMARY = "## Progress\n- The harbour table was checked."
_PIECE = 9


@dataclass
class Wire:
    """Where to send requests, what goes wrong with them, and how many there were."""

    url: str = ""
    fault: str = "none"
    requests: int = 0


def asked_for(body: dict[str, Any]) -> str:
    """The text of the newest message of a request."""
    content: Any = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(one["text"] for one in content)


def answer_of(fault: str, body: dict[str, Any]) -> tuple[str, str]:
    """The text of an answer and why it ends, in the words of the tests."""
    answers = {
        "says nothing": ("", "stop"),
        "refuses": ("", "refusal"),
        "calls a tool": ("", "call"),
        "copies": (asked_for(body), "stop"),
        "is too long": ("A point of no weight at all, again.\n" * 2_000, "stop"),
        "ends in the middle": (SUMMARY[:30], "length"),
    }
    return answers.get(fault, (SUMMARY, "stop"))


# --- the format of chat completions ---------------------------------------------------------------

_USAGE = {"prompt_tokens": 40, "completion_tokens": 9, "total_tokens": 49}
_CALL: dict[str, Any] = {
    "index": 0,
    "id": "call_1",
    "type": "function",
    "function": {"name": "look", "arguments": "{}"},
}
_CHAT_REASONS = {"stop": "stop", "refusal": "stop", "call": "tool_calls", "length": "length"}


def chat_message(text: str, why: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if why == "refusal":
        message["refusal"] = "I cannot help with that."
    if why == "call":
        message["tool_calls"] = [_CALL]
    return message


def chat(text: str, why: str) -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": _CHAT_REASONS[why],
        "message": chat_message(text, why),
    }
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": _USAGE,
    }


def chat_chunks(text: str, why: str) -> Iterator[str]:
    def chunk(choices: list[dict[str, Any]], **more: Any) -> str:
        event = {
            "id": "c",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": "m",
            "choices": choices,
            **more,
        }
        return f"data: {json.dumps(event)}\n\n"

    if why != "stop" and not text:
        yield chunk([{"index": 0, "delta": chat_message(text, why), "finish_reason": None}])
    for start in range(0, len(text), _PIECE):
        delta = {"role": "assistant", "content": text[start : start + _PIECE]}
        yield chunk([{"index": 0, "delta": delta, "finish_reason": None}])
    yield chunk([{"index": 0, "delta": {}, "finish_reason": _CHAT_REASONS[why]}])
    yield chunk([], usage=_USAGE)
    yield "data: [DONE]\n\n"


# --- the format of Anthropic's messages -----------------------------------------------------------

_REASONS = {"stop": "end_turn", "refusal": "refusal", "call": "tool_use", "length": "max_tokens"}
_TOOL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}


def message(text: str, why: str) -> dict[str, Any]:
    blocks = [{"type": "text", "text": text}] if text else []
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [*blocks, _TOOL] if why == "call" else blocks,
        "stop_reason": _REASONS[why],
        "stop_sequence": None,
        "usage": {"input_tokens": 40, "output_tokens": 9},
    }


def message_events(text: str, why: str) -> Iterator[str]:
    def event(name: str, **more: Any) -> str:
        return f"event: {name}\ndata: {json.dumps({'type': name, **more})}\n\n"

    whole = message(text, why)
    yield event("message_start", message={**whole, "content": [], "stop_reason": None})
    block = _TOOL if why == "call" else {"type": "text", "text": ""}
    yield event("content_block_start", index=0, content_block=block)
    for start in range(0, len(text), _PIECE):
        delta = {"type": "text_delta", "text": text[start : start + _PIECE]}
        yield event("content_block_delta", index=0, delta=delta)
    yield event("content_block_stop", index=0)
    ended = {"stop_reason": _REASONS[why], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": 9})
    yield event("message_stop")


# --- the server -----------------------------------------------------------------------------------


@contextmanager
def misbehaving() -> Generator[Wire]:
    """A server for as long as the block runs; it does what ``fault`` says at the moment."""
    wire, over = Wire(), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            wire.requests += 1
            fault = wire.fault
            if fault == "stalls":
                over.wait(20)
                return
            if fault.isdigit():
                error = {"type": "error", "error": {"type": "api_error", "message": "not now"}}
                self.say(int(fault), "application/json", json.dumps(error).encode())
                return
            if fault == "is no json":
                self.say(200, "application/json", b"<html>The gateway had a bad day.</html>")
                return
            is_chat = self.path.partition("?")[0].endswith("/chat/completions")
            told = answer_of(fault, body)
            if body.get("stream"):
                events = list((chat_chunks if is_chat else message_events)(*told))
                # A stream that breaks off ends without what says that it is over.
                shown = events[: len(events) // 2] if fault == "breaks off" else events
                self.say(200, "text/event-stream", "".join(shown).encode())
                return
            whole = json.dumps((chat if is_chat else message)(*told)).encode()
            cut = len(whole) // 2 if fault == "breaks off" else 0
            self.say(200, "application/json", whole[: len(whole) - cut], missing=cut)

        def say(self, status: int, kind: str, body: bytes, missing: int = 0) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body) + missing))
            self.end_headers()
            self.wfile.write(body)
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that gave up is no error here."""

    server = Server(("127.0.0.1", 0), Handler)
    wire.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join()
