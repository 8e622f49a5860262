"""A model on this machine that speaks the wire formats of OpenAI and Anthropic, as scripted.

It looks at every request as the provider would: the messages are linted and counted as they came
over the wire.
"""

from __future__ import annotations

import itertools
import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, cast

import satchel

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

Body = dict[str, Any]

DIALECTS = {
    "/chat/completions": "openai",
    "/responses": "openai-responses",
    "/messages": "anthropic",
}
PIECE = 7
NUMBERS = itertools.count()
FIGURES = (50, 9)
"""Tokens that an answer says it took and gave, where the script says nothing else."""


@dataclass(frozen=True)
class Say:
    """An answer: text, calls as (id, name, arguments), why it ends, and what it cost."""

    text: str = ""
    calls: tuple[tuple[str, str, dict[str, Any]], ...] = ()
    stop: str | None = None
    input_tokens: int | None = None


@dataclass(frozen=True)
class Refuse:
    """An error: the status and the sentence, in the provider's envelope."""

    status: int
    message: str
    code: str | None = None
    is_streamed: bool = False


@dataclass(frozen=True)
class Break:
    """A stream of this answer that ends after a share of its events; cleanly, or with a cut."""

    answer: Say
    share: float = 0.5
    is_clean: bool = True


@dataclass(frozen=True)
class Events:
    """Events as they are, for what no other answer says."""

    events: tuple[str, ...]


Answer = Say | Refuse | Break | Events


@dataclass
class Request:
    """What was sent: the dialect, the body, and the parts that a window gives."""

    dialect: str
    body: Body
    path: str = ""

    @property
    def messages(self) -> list[Any]:
        found = self.body["input" if self.dialect == "openai-responses" else "messages"]
        return cast("list[Any]", found)

    @property
    def system(self) -> Any:
        return self.body.get("instructions" if "input" in self.body else "system")

    @property
    def tools(self) -> Any:
        return self.body.get("tools")

    def errors(self) -> list[str]:
        """What the provider would refuse."""
        found = satchel.lint(self.messages, self.dialect, system=self.system, tools=self.tools)
        return [str(one) for one in found if one.severity == "error"]

    def tokens(self, model: str) -> int:
        """The whole request by satchel's count."""
        counter = satchel.counter(model)
        counted = counter.count_messages(
            self.messages, system=self.system, tools=self.tools, dialect=self.dialect
        )
        return counted.total


@dataclass
class Wire:
    """Where to send requests, and what was sent."""

    url: str = ""
    requests: list[Request] = field(default_factory=list[Request])
    script: Callable[[Request, int], Answer] = lambda _request, _number: Say("Done.")

    def errors(self) -> list[str]:
        """What the provider would have refused, in any request."""
        return [error for request in self.requests for error in request.errors()]


# --- OpenAI chat ----------------------------------------------------------------------------------


def _usage(answer: Say, names: tuple[str, str]) -> dict[str, int]:
    given = FIGURES[0] if answer.input_tokens is None else answer.input_tokens
    return {names[0]: given, names[1]: FIGURES[1], "total_tokens": given + FIGURES[1]}


def chat(answer: Say) -> Body:
    message: Body = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": name,
                "type": "function",
                "function": {"name": tool, "arguments": json.dumps(given)},
            }
            for name, tool, given in answer.calls
        ]
    reason = answer.stop or ("tool_calls" if answer.calls else "stop")
    return {
        "id": f"chatcmpl-{next(NUMBERS)}",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": _usage(answer, ("prompt_tokens", "completion_tokens")),
    }


def chat_events(answer: Say) -> Iterator[str]:
    whole = chat(answer)
    head: Body = {**whole, "object": "chat.completion.chunk"}
    usage: Body = head.pop("usage")
    choice: Body = head.pop("choices")[0]

    def chunk(delta: Body, reason: str | None = None) -> str:
        choices = [{"index": 0, "delta": delta, "finish_reason": reason}]
        return f"data: {json.dumps({**head, 'choices': choices})}\n\n"

    yield chunk({"role": "assistant", "content": ""})
    for start in range(0, len(answer.text), PIECE):
        yield chunk({"content": answer.text[start : start + PIECE]})
    for index, call in enumerate(choice["message"].get("tool_calls", ())):
        function = call["function"]
        first: Body = {**call, "index": index, "function": {**function, "arguments": ""}}
        yield chunk({"tool_calls": [first]})
        text: str = function["arguments"]
        for start in range(0, len(text), PIECE):
            piece: Body = {"index": index, "function": {"arguments": text[start : start + PIECE]}}
            yield chunk({"tool_calls": [piece]})
    yield chunk({}, choice["finish_reason"])
    yield f"data: {json.dumps({**head, 'choices': [], 'usage': usage})}\n\n"
    yield "data: [DONE]\n\n"


# --- OpenAI Responses -----------------------------------------------------------------------------


def responses(answer: Say) -> Body:
    output: list[Body] = []
    if answer.text:
        text: Body = {"type": "output_text", "text": answer.text, "annotations": []}
        output.append(
            {
                "id": f"msg_{next(NUMBERS)}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
        )
    output += [
        {
            "id": f"fc_{name}",
            "type": "function_call",
            "call_id": name,
            "name": tool,
            "arguments": json.dumps(given),
            "status": "completed",
        }
        for name, tool, given in answer.calls
    ]
    is_cut = answer.stop == "length"
    return {
        "id": f"resp_{next(NUMBERS)}",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": {
            **_usage(answer, ("input_tokens", "output_tokens")),
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        },
    }


def responses_events(answer: Say) -> Iterator[str]:
    whole = responses(answer)
    empty: Body = {**whole, "status": "in_progress", "output": [], "usage": None}
    yield event("response.created", response=empty, sequence_number=0)
    for place, item in enumerate(whole["output"]):
        yield event("response.output_item.added", output_index=place, item=item, sequence_number=1)
        if item["type"] == "message":
            for start in range(0, len(answer.text), PIECE):
                yield event(
                    "response.output_text.delta",
                    output_index=place,
                    item_id=item["id"],
                    content_index=0,
                    delta=answer.text[start : start + PIECE],
                    logprobs=[],
                    sequence_number=2,
                )
        yield event("response.output_item.done", output_index=place, item=item, sequence_number=3)
    end = "response.incomplete" if answer.stop == "length" else "response.completed"
    yield event(end, response=whole, sequence_number=4)


def event(name: str, **more: Any) -> str:
    return f"event: {name}\ndata: {json.dumps({'type': name, **more})}\n\n"


# --- Anthropic ------------------------------------------------------------------------------------


def messages(answer: Say) -> Body:
    content: list[Body] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {"type": "tool_use", "id": name, "name": tool, "input": given}
        for name, tool, given in answer.calls
    ]
    stops = {"length": "max_tokens", None: "tool_use" if answer.calls else "end_turn"}
    return {
        "id": f"msg_{next(NUMBERS)}",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": stops.get(answer.stop, answer.stop),
        "stop_sequence": None,
        "usage": {
            "input_tokens": FIGURES[0] if answer.input_tokens is None else answer.input_tokens,
            "output_tokens": FIGURES[1],
        },
    }


def messages_events(answer: Say) -> Iterator[str]:
    whole = messages(answer)
    start: Body = {**whole, "content": [], "stop_reason": None}
    yield event("message_start", message=start)
    yield event("ping")
    for index, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        empty: Body = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield event("content_block_start", index=index, content_block=empty)
        text = block["text"] if is_text else json.dumps(block["input"])
        for at in range(0, len(text), PIECE):
            piece = text[at : at + PIECE]
            delta = (
                {"type": "text_delta", "text": piece}
                if is_text
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield event("message_delta", delta=ended, usage={"output_tokens": FIGURES[1]})
    yield event("message_stop")


WHOLE = {"openai": chat, "openai-responses": responses, "anthropic": messages}
STREAMED = {
    "openai": chat_events,
    "openai-responses": responses_events,
    "anthropic": messages_events,
}


def refusal(answer: Refuse, dialect: str) -> Body:
    """The envelope of an error."""
    if dialect == "anthropic":
        kinds = {429: "rate_limit_error", 529: "overloaded_error"}
        kind = answer.code or kinds.get(answer.status, "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": answer.message}}
    kind = "invalid_request_error"
    return {"error": {"message": answer.message, "type": kind, "code": answer.code}}


def refused_events(answer: Refuse, dialect: str) -> list[str]:
    """An error that comes within a stream that began with 200."""
    body = refusal(answer, dialect)
    match dialect:
        case "anthropic":
            return [event("error", **{key: body[key] for key in body if key != "type"})]
        case "openai-responses":
            failed = {**responses(Say()), "status": "failed", "error": body["error"]}
            return [
                event("response.created", response=responses(Say()), sequence_number=0),
                event("response.failed", response=failed, sequence_number=1),
            ]
        case _:
            return [f"data: {json.dumps(body)}\n\n"]


def told(answer: Answer, request: Request) -> tuple[int, str, str, int]:
    """Status, kind and text of an answer, and how many bytes that were promised are missing."""
    dialect = request.dialect
    match answer:
        case Say() if request.body.get("stream"):
            return 200, "text/event-stream", "".join(STREAMED[dialect](answer)), 0
        case Say():
            return 200, "application/json", json.dumps(WHOLE[dialect](answer)), 0
        case Refuse(is_streamed=True):
            return 200, "text/event-stream", "".join(refused_events(answer, dialect)), 0
        case Refuse():
            return answer.status, "application/json", json.dumps(refusal(answer, dialect)), 0
        case Break():
            events = list(STREAMED[dialect](answer.answer))
            shown = "".join(events[: max(1, int(len(events) * answer.share))])
            return 200, "text/event-stream", shown, 0 if answer.is_clean else 99
        case Events():
            kind = "text/event-stream" if request.body.get("stream") else "application/json"
            return 200, kind, "".join(answer.events), 0


@contextmanager
def scripted(script: Callable[[Request, int], Answer] | None = None) -> Generator[Wire]:
    """A server for as long as the block runs; ``script`` gets a request and its number from 0."""
    wire = Wire()
    if script is not None:
        wire.script = script
    guard = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            path = self.path.partition("?")[0]
            [dialect] = [name for end, name in DIALECTS.items() if path.endswith(end)]
            request = Request(dialect, body, path)
            with guard:
                number = len(wire.requests)
                wire.requests.append(request)
            status, kind, text, missing = told(wire.script(request, number), request)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(text.encode()) + missing))
            self.end_headers()
            self.wfile.write(text.encode())
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base's name
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that gave up is no error here."""

    server = Server(("127.0.0.1", 0), Handler)
    wire.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
