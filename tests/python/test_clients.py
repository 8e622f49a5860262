"""`Window.as_kwargs` through the providers' own clients, against a server on this machine."""

from __future__ import annotations

import base64
import importlib
import json
import warnings
from typing import TYPE_CHECKING, Any, cast

import anthropic
import openai
import pytest
from google import genai

import satchel
from samples import load_sample
from wire import Wire, serving

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

Message = dict[str, Any]
MODELS = {
    "openai": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4//8/AAX+Av4zEpUUAAAAAElFTkSuQmCC"
)


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with serving() as found:
        yield found


def quiet(call: Callable[[], Any]) -> Any:
    """Calls a client, which may say that a model or a part of itself is old."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return call()


def client_of(wire: Wire, dialect: str) -> Any:
    """The client of the dialect, which asks the server on this machine."""
    if dialect in ("openai", "openai-responses"):
        return openai.OpenAI(api_key="-", base_url=wire.url, max_retries=0)
    if dialect == "anthropic":
        return anthropic.Anthropic(api_key="-", base_url=wire.url, max_retries=0)
    if dialect == "gemini":
        options: Any = {"base_url": wire.url}
        return quiet(lambda: genai.Client(api_key="-", http_options=options))
    boto3: Any = importlib.import_module("boto3")  # which has no types
    return boto3.client(
        "bedrock-runtime",
        region_name="eu-north-1",
        endpoint_url=wire.url,
        aws_access_key_id="-",
        aws_secret_access_key="-",  # noqa: S106 - the server on this machine asks for none
    )


def send(wire: Wire, dialect: str, kwargs: dict[str, Any]) -> str:
    """Sends a request through the client of the dialect; the text of the answer."""
    client = client_of(wire, dialect)
    try:
        return str(quiet(lambda: answer(client, dialect, kwargs)))
    finally:
        client.close()


def answer(client: Any, dialect: str, kwargs: dict[str, Any]) -> Any:
    match dialect:
        case "openai":
            return client.chat.completions.create(**kwargs).choices[0].message.content
        case "openai-responses":
            return client.responses.create(**kwargs).output_text
        case "anthropic":
            return client.messages.create(max_tokens=9, **kwargs).content[0].text
        case "gemini":
            return client.models.generate_content(**kwargs).text
        case _:
            return client.converse(**kwargs)["output"]["message"]["content"][0]["text"]


def marks(body: object) -> int:
    text = json.dumps(body)
    return text.count('"cache_control"') + text.count('"cachePoint"')


def snake(name: str) -> str:
    return "".join(f"_{char.lower()}" if char.isupper() else char for char in name)


def plain(value: Any) -> Any:
    """JSON as the clients leave it: Google's writes names its own way, and base64 for URLs."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {snake(key): plain(inner) for key, inner in fields.items() if inner is not None}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in cast("Sequence[Any]", value)]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    return value.replace("-", "+").replace("_", "/") if isinstance(value, str) else value


@pytest.mark.parametrize("budget", [100_000, 3_000])
@pytest.mark.parametrize("dialect", MODELS)
def test_windows_reach_the_provider_as_they_are(wire: Wire, dialect: str, budget: int) -> None:
    sample = load_sample("service.openai.json")
    found = satchel.convert(
        [
            *sample["messages"],
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "And this?"},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}},
                ],
            },
        ],
        "openai",
        dialect,
        system="Answer in one line.",
        tools=sample["tools"],
    )
    packer = satchel.Assembler(MODELS[dialect], dialect=dialect, budget=budget)
    window = packer.assemble(found.messages, system=found.system, tools=found.tools)
    assert (window.report.compactions > 0) == (budget == 3_000)
    sent = window.as_kwargs()
    assert send(wire, dialect, sent) == "Hi"
    body = wire.last
    key = {"openai-responses": "input", "gemini": "contents"}.get(dialect, "messages")
    assert plain(body[key]) == plain(sent[key])
    assert "Answer in one line." in json.dumps(body)
    names = {tool["function"]["name"] for tool in sample["tools"]}
    assert all(f'"{name}"' in json.dumps(body) for name in names)
    expected = {"anthropic": 2, "bedrock": 2}.get(dialect, 0)
    assert marks(body) == expected


@pytest.mark.parametrize("dialect", ["anthropic", "bedrock"])
def test_marks_do_not_pile_up_over_calls(wire: Wire, dialect: str) -> None:
    packer = satchel.Assembler(MODELS[dialect], dialect=dialect, budget=9_000)
    content: Any = [{"text": "Hello"}] if dialect == "bedrock" else "Hello"
    history: list[Message] = []
    for _ in range(6):
        history.append({"role": "user", "content": content})
        window = packer.assemble(history, system="Be brief.")
        sent = window.as_kwargs()
        assert send(wire, dialect, sent) == "Hi"
        assert marks(wire.last) == 2
        [place] = window.cache_breakpoints
        assert place == len(window.messages) - 1
        assert marks(wire.last["messages"][place]) == 1
        # What was sent, marks and all, is the history of the next call.
        history = [*sent["messages"]]
        history.append({"role": "assistant", "content": [{"text": "Hi", "type": "text"}]})
        if dialect == "bedrock":
            history[-1]["content"] = [{"text": "Hi"}]


def test_base64_of_a_file_becomes_bytes_for_bedrock(wire: Wire) -> None:
    image = {"image": {"format": "png", "source": {"bytes": PIXEL}}}
    call = {"toolUse": {"toolUseId": "t", "name": "look", "input": {"bytes": "aGk="}}}
    result = {"toolResult": {"toolUseId": "t", "content": [{"json": {"bytes": "aGk="}}, image]}}
    messages: list[Message] = [
        {"role": "user", "content": [{"text": "Look."}, image]},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
    ]
    tools = [{"toolSpec": {"name": "look", "inputSchema": {"json": {"type": "object"}}}}]
    packer = satchel.Assembler(MODELS["bedrock"], dialect="bedrock", budget=9_000)
    sent = packer.assemble(messages, tools=tools).as_kwargs()
    source = sent["messages"][0]["content"][1]["image"]["source"]
    assert source["bytes"] == base64.b64decode(PIXEL)
    assert send(wire, "bedrock", sent) == "Hi"
    assert wire.last["messages"][0]["content"][1] == image
    assert wire.last["messages"][1]["content"] == [call]
    assert wire.last["messages"][2]["content"][0] == result
    assert messages[0]["content"][1]["image"]["source"]["bytes"] == PIXEL


def thinking(number: int) -> Message:
    return {"type": "thinking", "thinking": f"Thought {number}. " * 20, "signature": "c2ln" * 20}


def agent_run(steps: int) -> list[Message]:
    messages: list[Message] = [{"role": "user", "content": "Find the leak."}]
    for step in range(steps):
        call = {"type": "tool_use", "id": f"t{step}", "name": "look", "input": {"at": step}}
        messages.append({"role": "assistant", "content": [thinking(step), call]})
        result = {"type": "tool_result", "tool_use_id": f"t{step}", "content": f"line {step} " * 60}
        messages.append({"role": "user", "content": [result]})
    return messages


def thoughts(messages: list[Any]) -> list[Any]:
    blocks = [block for message in messages for block in message["content"]]
    return [block for block in blocks if isinstance(block, dict) and block["type"] == "thinking"]


def test_reasoning_bound_to_a_past_that_changed_is_not_sent(wire: Wire) -> None:
    packer = satchel.Assembler("claude-sonnet-5-5", budget=4_000)
    working_set = packer.working_set()
    previous: satchel.Window | None = None
    compactions = 0
    for message in agent_run(40):
        if message["role"] == "assistant":
            window = working_set.window()
            found = satchel.lint(
                window.messages, "anthropic", model="claude-sonnet-5-5", previous=previous
            )
            assert [str(one) for one in found if one.severity == "error"] == []
            counted = packer.counter.count_messages(window.messages, dialect="anthropic")
            assert (counted.total, counted.upper) == (window.tokens, window.tokens_upper)
            if window.report.compactions > compactions:
                compactions = window.report.compactions
                assert thoughts(window.messages) == []
            else:
                # What was thought since then stands there, byte for byte.
                kept = thoughts(window.messages)
                assert kept == [] or previous is not None
                assert kept == thoughts(working_set.messages)[-len(kept) :] or not kept
                if previous is not None:
                    assert window.messages[: len(previous.messages)] == previous.messages
            previous = window
        working_set.append(message)
    assert compactions > 1
    assert previous is not None
    assert send(wire, "anthropic", previous.as_kwargs()) == "Hi"
    rebuilt = packer.assemble(working_set.messages, events=working_set.events)
    assert rebuilt.messages == working_set.window().messages
    # Other instructions are another past, too.
    other = working_set.window(system="Be brief.")
    assert thoughts(other.messages) == []
    free = satchel.Assembler("claude-sonnet-5", budget=4_000).assemble(agent_run(40))
    assert thoughts(free.messages) != []
