"""A whole loop through each provider's own client, against a server on this machine.

The window shows a pointer, the model calls the page-in tool, the answer goes back, and the next
request holds what was missing.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from page_calls import DIALECTS, MODELS, call, log_run, pointer_of, texts
from test_clients import client_of, quiet
from wire import ANSWERS, Wire, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

LOG = "".join(f"[{number:04}] step {number} took {number * 37 % 91} ms\n" for number in range(300))
LINE = "[0123] step 123 took 1 ms"


def answers(dialect: str, arguments: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The server's answers, in which the model calls the tool."""
    found = copy.deepcopy(ANSWERS)
    asked = call(dialect, arguments)
    match dialect:
        case "openai":
            choice = found["/chat/completions"]["choices"][0]
            choice["finish_reason"] = "tool_calls"
            choice["message"] = {"role": "assistant", "content": None, "tool_calls": [asked]}
        case "openai-responses":
            found["/responses"]["output"] = [{**asked, "id": "fc_1", "status": "completed"}]
        case "anthropic":
            found["/messages"]["content"] = [{"type": "text", "text": "Let me look."}, asked]
            found["/messages"]["stop_reason"] = "tool_use"
        case "gemini":
            found[":generateContent"]["candidates"][0]["content"]["parts"] = [asked]
        case _:
            found["/converse"]["output"]["message"]["content"] = [asked]
            found["/converse"]["stopReason"] = "tool_use"
    return found


def ask(client: Any, dialect: str, kwargs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """A request; what is appended, the whole reply, and the call alone, as the client has them."""
    match dialect:
        case "openai":
            message = client.chat.completions.create(**kwargs).choices[0].message
            return message, message, message.tool_calls[0]
        case "openai-responses":
            response = client.responses.create(**kwargs)
            return response.output, response, response.output[0]
        case "anthropic":
            message = client.messages.create(max_tokens=9, **kwargs)
            reply = {"role": "assistant", "content": message.content}
            return reply, message, message.content[1]
        case "gemini":
            response = client.models.generate_content(**kwargs)
            content = response.candidates[0].content
            reply = content.model_dump(mode="json", by_alias=True, exclude_none=True)
            return reply, content, response.function_calls[0]
        case _:
            message = client.converse(**kwargs)["output"]["message"]
            return message, message, message["content"][0]


@pytest.fixture(params=DIALECTS)
def dialect(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


@pytest.fixture
def working_set(dialect: str) -> satchel.WorkingSet:
    policy = satchel.Policy.preset("sliding-window").model_copy(update={"max_messages": 8})
    packer = satchel.Assembler(MODELS[dialect], dialect=dialect, budget=3_000, policy=policy)
    return packer.working_set(log_run(dialect, LOG), tools=[satchel.page_tool(dialect)])


@pytest.fixture
def wire(dialect: str, working_set: satchel.WorkingSet) -> Iterator[Wire]:
    arguments = {"pointer": pointer_of(working_set, LINE), "pattern": "step 123"}
    with serving(answers(dialect, arguments)) as found:
        yield found


def test_a_pointer_is_followed(wire: Wire, dialect: str, working_set: satchel.WorkingSet) -> None:
    client = client_of(wire, dialect)
    try:
        window = working_set.window()
        assert LINE not in json.dumps(window.messages)
        appended, reply, alone = quiet(lambda: ask(client, dialect, window.as_kwargs()))
        assert LINE not in json.dumps(wire.last)
        assert '"page_in"' in json.dumps(wire.last.get("tools", wire.last.get("toolConfig")))
        result = working_set.handle_page_call(alone)
        assert working_set.handle_page_call(reply) == result
        assert working_set.handle_page_calls(reply) == [result]
        [(_, text, is_error)] = texts(dialect, result)
        assert LINE in text
        assert not is_error
        working_set.append(appended)
        working_set.append(result)
        following = working_set.window()
        found = satchel.lint(
            following.messages, dialect, tools=following.tools, previous=window, model=window.model
        )
        assert [str(one) for one in found if one.severity == "error"] == []
        assert following.tokens_upper <= following.budget
        quiet(lambda: ask(client, dialect, following.as_kwargs()))
        assert LINE in json.dumps(wire.last)
    finally:
        client.close()
