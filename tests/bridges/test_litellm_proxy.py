"""litellm's own proxy with the callback in it, asked by the real client of OpenAI's.

The proxy is a process of its own, as ``litellm --config`` starts it; behind it stands a server that
speaks the wire format, so that what a provider would have been sent is seen as it came.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.error import URLError
from urllib.request import urlopen

import openai
import pytest

import satchel
from model_wire import Say, scripted
from provider_models import tool

if TYPE_CHECKING:
    from collections.abc import Generator

    from model_wire import Answer, Request, Wire

for _needed in ("litellm", "fastapi", "apscheduler", "backoff", "uvloop"):
    pytest.importorskip(_needed, reason="litellm's proxy is not installed")

STEPS = 62
BUDGET = 3_000
KEY = "sk-of-this-test-alone-0123456789abcdef"
TOOLS = [tool("openai")]
MODULE = Path(__file__).with_name("loops") / "proxy_context.py"
# The proxy's own name of a model, which says nothing; and the model's name.
NAMES = ("team-model", "gpt-4o")
_START_S = 240


def contents(number: int) -> str:
    return "\n".join(f"part_{number}.line_{at} = {number * at % 97}" for at in range(40))


def agent(request: Request, number: int) -> Answer:
    """One call in each reply, two in every fifth; then an answer."""
    assert request.dialect == "openai"
    done = sum(message["role"] == "assistant" for message in request.messages)
    assert done <= number
    if number >= STEPS:
        return Say("All parts were read.")
    calls = [(f"call_{number}_{at}", "read", {"path": f"p{number}.py"}) for at in range(2)]
    return Say("", tuple(calls[: 1 + (number % 5 == 0)]))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def settings(wire: Wire) -> str:
    """The proxy's configuration, which is YAML, and so may be JSON."""
    params = {"model": "openai/gpt-4o", "api_base": wire.url, "api_key": "-", "max_retries": 0}
    models = [{"model_name": name, "litellm_params": params} for name in NAMES]
    return json.dumps(
        {
            "model_list": models,
            "litellm_settings": {"callbacks": "proxy_context.context"},
            "router_settings": {"num_retries": 0},
            "general_settings": {"master_key": KEY},
        }
    )


@contextmanager
def proxy(wire: Wire, folder: Path) -> Generator[tuple[str, Path]]:
    """The proxy's URL and what it prints, for as long as the block runs."""
    (folder / "config.yaml").write_text(settings(wire), encoding="utf-8")
    shutil.copy(MODULE, folder / MODULE.name)
    port, log = free_port(), folder / f"log-{len(list(folder.iterdir()))}.txt"
    program = "from litellm_cli.main import proxy_server; proxy_server()"
    options = ["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)]
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONWARNINGS": "ignore"}
    with log.open("wb") as file:
        process = subprocess.Popen(  # noqa: S603 - litellm's own command
            [sys.executable, "-c", program, *options],
            cwd=folder,
            env=os.environ | quiet,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            url = f"http://127.0.0.1:{port}"
            until = time.monotonic() + _START_S
            while not _is_alive(url):
                if process.poll() is not None or time.monotonic() > until:
                    pytest.fail(f"the proxy does not start: {log.read_text('utf-8')[-3_000:]}")
                time.sleep(0.2)
            yield url, log
        finally:
            process.terminate()
            process.wait(30)


def _is_alive(url: str) -> bool:
    try:
        with urlopen(f"{url}/health/liveliness", timeout=2) as answer:  # noqa: S310 - this machine
            return bool(answer.status == 200)
    except (URLError, OSError):
        return False


def told(log: Path) -> list[tuple[int, int]]:
    """Tokens and budget of each window that the proxy made."""
    found = re.findall(r"^window (\d+) of (\d+)$", log.read_text("utf-8"), re.MULTILINE)
    return [(int(tokens), int(budget)) for tokens, budget in found]


async def taken(chunks: Any) -> dict[str, Any]:
    """The message of a stream."""
    text, calls = "", dict[int, dict[str, Any]]()
    async for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.id or ""
                call["name"] += piece.function.name or ""
                call["arguments"] += piece.function.arguments or ""
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["arguments"]},
            }
            for call in calls.values()
        ]
    return message


def asked(number: int, messages: list[Any]) -> dict[str, Any]:
    return {"model": NAMES[number % 2], "messages": messages, "tools": TOOLS}


async def reply(url: str, number: int, messages: list[Any]) -> dict[str, Any]:
    """The next message: asked in turn by the blocking client, the other one, and as a stream."""
    given: dict[str, Any] = {"base_url": f"{url}/v1", "api_key": KEY, "max_retries": 0}
    if number % 3 == 0:

        def ask() -> Any:
            with openai.OpenAI(**given) as client:
                create: Any = client.chat.completions.create
                return create(**asked(number, messages))

        done: Any = await asyncio.to_thread(ask)
    else:
        async with openai.AsyncOpenAI(**given) as client:
            create: Any = client.chat.completions.create
            if number % 3 == 1:
                return await taken(await create(**asked(number, messages), stream=True))
            done = await create(**asked(number, messages))
    whole: dict[str, Any] = done.choices[0].message.model_dump(exclude_none=True)
    return {key: whole[key] for key in ("role", "content", "tool_calls") if key in whole}


async def run(wire: Wire, url: str, store: str, most: int) -> bool:
    """Goes on with the stored conversation; whether the agent said its last word."""
    async with satchel.open_session(store, session_id="run", model="gpt-4o") as session:
        if not await session.messages():
            await session.append({"role": "user", "content": "Read all the parts."})
        for _ in range(most):
            messages = await session.messages()
            message = await reply(url, len(wire.requests), messages)
            await session.append(message)
            for call in message.get("tool_calls") or ():
                number = int(call["id"].split("_")[1])
                result = {"role": "tool", "tool_call_id": call["id"], "content": contents(number)}
                await session.append(result)
            if not message.get("tool_calls"):
                return True
    return False


def check_what_cannot_fit(url: str) -> None:
    """The client gets the error, under either name of the model."""
    chat: Any = [{"role": "user", "content": "word " * 9_000}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as client:
        for name in NAMES:
            with pytest.raises(openai.APIStatusError, match="budget 3000"):
                client.chat.completions.create(model=name, messages=chat)


def test_a_long_run_through_the_proxy_over_a_restart(tmp_path: Path) -> None:
    """Program and proxy both end in the middle; what goes out stays the window of the history."""
    store = f"sqlite:///{tmp_path}/agent.db"
    folder = tmp_path / "proxy"
    folder.mkdir()
    logs: list[Path] = []
    with scripted(agent) as wire:
        for most, is_last in ((31, False), (STEPS, True)):
            with proxy(wire, folder) as (url, log):
                logs.append(log)
                assert asyncio.run(run(wire, url, store, most)) is is_last
                if is_last:
                    check_what_cannot_fit(url)
    # Of what could not fit the provider saw nothing.
    assert len(wire.requests) == STEPS + 1
    assert wire.errors() == []
    sizes = [request.tokens("gpt-4o") for request in wire.requests]
    assert BUDGET * 0.6 < max(sizes) <= BUDGET
    # The hook packed each call, under either name, before and after the restart.
    windows = [window for log in logs for window in told(log)]
    assert len(windows) >= STEPS + 1
    assert all(tokens <= budget == BUDGET for tokens, budget in windows)

    async def stored() -> list[Any]:
        async with satchel.open_session(store, session_id="run", model="gpt-4o") as session:
            return await session.messages()

    history = asyncio.run(stored())
    assert len(history) == 1 + (STEPS + 1) + STEPS + len(range(0, STEPS, 5))
    # What went out is what the history gives when it is packed from nothing.
    places = [at for at, message in enumerate(history) if message["role"] == "assistant"]
    packer = satchel.Assembler("gpt-4o", budget=BUDGET, dialect="openai")
    for place, request in zip(places, wire.requests, strict=True):
        window = packer.assemble(history[:place], tools=TOOLS)
        assert len(request.messages) == len(window.messages)
        assert request.messages[-1]["content"] == window.messages[-1]["content"]
