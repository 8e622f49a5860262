"""`satchel.litellm.ContextCallback` inside litellm: SDK, router and the proxy's hooks."""

from __future__ import annotations

import asyncio
import copy
import os
import subprocess
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from model_wire import Request, Say, scripted
from provider_models import plain, tool
from satchel import sync
from satchel.litellm.conversations import Conversations

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from model_wire import Answer, Wire

# What litellm warns of, and what it leaves open, is its own business.
pytestmark = pytest.mark.filterwarnings("ignore")

STEPS = 62
BUDGET = 3_000
MODEL = "openai/gpt-4o"
TOOLS = [tool("openai")]
Chat = list[dict[str, Any]]


@pytest.fixture(scope="module")
def litellm() -> Any:
    """litellm with the model list of the package: nothing is fetched."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("litellm")


@pytest.fixture
def registered(litellm: Any) -> Iterator[Any]:
    """litellm, whose callbacks are as before after the test."""
    before = list(litellm.callbacks)
    yield litellm
    litellm.callbacks = before


def callback_of(**options: Any) -> Any:
    from satchel.litellm import ContextCallback  # noqa: PLC0415 - takes seconds, and only here

    given: Any = {"budget": BUDGET, **options}
    return ContextCallback(**given)


def contents(number: int) -> str:
    return "\n".join(f"part_{number}.line_{at} = {number * at % 97}" for at in range(40))


def agent(request: Request, number: int) -> Answer:
    if number >= STEPS:
        return Say("All parts were read.")
    assert request.dialect == "openai"
    return Say("", ((f"call_{number}", "read", {"path": f"src/part_{number}.py"}),))


def history(steps: int = 30) -> Chat:
    found: Chat = [{"role": "user", "content": "Read all the parts."}]
    for number in range(steps):
        function = {"name": "read", "arguments": f'{{"path": "src/part_{number}.py"}}'}
        call = {"id": f"call_{number}", "type": "function", "function": function}
        found.append({"role": "assistant", "content": None, "tool_calls": [call]})
        result = contents(number)
        found.append({"role": "tool", "tool_call_id": f"call_{number}", "content": result})
    return found


def arguments(wire: Wire, messages: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": MODEL,
        "messages": messages,
        "tools": TOOLS,
        "api_base": wire.url,
        "api_key": "-",
        "max_retries": 0,
        **more,
    }


def test_a_long_run_over_a_restart(registered: Any, tmp_path: Path) -> None:
    """The program keeps the history in a session; another process goes on with the same bytes."""
    windows: list[Any] = []

    async def run(wire: Wire, most: int) -> None:
        url = f"sqlite:///{tmp_path}/agent.db"
        async with satchel.open_session(url, session_id="run", model="gpt-4o") as session:
            if not await session.messages():
                await session.append({"role": "user", "content": "Read all the parts."})
            for _ in range(most):
                reply = await registered.acompletion(
                    **arguments(wire, await session.messages()),
                    stream=len(wire.requests) % 2 == 1,
                )
                if hasattr(reply, "__aiter__"):
                    chunks = [chunk async for chunk in reply]
                    reply = registered.stream_chunk_builder(chunks)
                message = reply.choices[0].message
                await session.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls or ():
                    text = contents(int(call.id.removeprefix("call_")))
                    result = {"role": "tool", "tool_call_id": call.id, "content": text}
                    await session.append(result)
                if not message.tool_calls:
                    return

    with scripted(agent) as wire:
        registered.callbacks = [callback_of(on_window=windows.append)]
        asyncio.run(run(wire, 30))
        registered.callbacks = [callback_of(on_window=windows.append)]
        asyncio.run(run(wire, STEPS))
    assert len(wire.requests) == STEPS + 1 == len(windows)
    assert wire.errors() == []
    sizes = [request.tokens("gpt-4o") for request in wire.requests]
    assert BUDGET * 0.6 < max(sizes) <= BUDGET
    assert windows[-1].report.compactions > 3
    # What went out is what the history gives when it is packed from nothing.
    whole = windows[-1].report.messages
    assert whole == 2 * STEPS + 1
    for window, request in zip(windows, wire.requests, strict=True):
        assert len(window.messages) == len(request.messages)
        assert plain(window.messages[-1:]) == plain(request.messages[-1:])


def test_a_long_run_that_waits_over_a_restart(registered: Any, tmp_path: Path) -> None:
    """The same with ``ContextCallback.completion``, whole and as streams."""
    url = f"sqlite:///{tmp_path}/agent.db"

    def run(wire: Wire, most: int) -> None:
        callback = callback_of()
        with sync.open_session(url, session_id="run", model="gpt-4o") as session:
            if not session.messages():
                session.append({"role": "user", "content": "Read all the parts."})
            for _ in range(most):
                is_streamed = len(wire.requests) % 2 == 1
                given = arguments(wire, session.messages(), stream=is_streamed)
                reply = callback.completion(**given)
                if is_streamed:
                    reply = registered.stream_chunk_builder(list(reply))
                message = reply.choices[0].message
                session.append(message.model_dump(exclude_none=True))
                for call in message.tool_calls or ():
                    text = contents(int(call.id.removeprefix("call_")))
                    session.append({"role": "tool", "tool_call_id": call.id, "content": text})
                if not message.tool_calls:
                    return

    with scripted(agent) as wire:
        run(wire, 30)
        run(wire, STEPS)
    assert len(wire.requests) == STEPS + 1
    assert wire.errors() == []
    sizes = [request.tokens("gpt-4o") for request in wire.requests]
    assert BUDGET * 0.6 < max(sizes) <= BUDGET


@pytest.mark.parametrize("steps", [3, 30])
def test_packed_from_nothing_it_is_the_same(litellm: Any, steps: int) -> None:
    assert litellm is not None
    callback, chat = callback_of(), history(steps)
    for end in range(1, len(chat) + 1, 2):
        given = chat[:end]
        before = copy.deepcopy(given)
        window = callback.window({"model": MODEL, "messages": given, "tools": TOOLS})
        packer = satchel.Assembler(MODEL, budget=BUDGET, dialect="openai")
        assert window.messages == packer.assemble(given, tools=TOOLS).messages
        assert given == before
    assert len(callback._conversations) == 1


# --- each trap of the peers' ----------------------------------------------------------------------


def test_calls_that_do_not_wait_have_a_window_too(registered: Any) -> None:
    """litellm's own ``completion`` calls no callback: the whole history goes out."""
    callback, chat = callback_of(), history()
    registered.callbacks = [callback]
    with scripted() as wire:
        registered.completion(**arguments(wire, chat))
        callback.completion(**arguments(wire, chat))
        given = arguments(wire, chat)
        callback.completion(given.pop("model"), given.pop("messages"), **given)
        streamed = list(callback.completion(**arguments(wire, chat, stream=True)))
    theirs, *ours = wire.requests
    assert len(theirs.messages) == len(chat)
    assert theirs.tokens("gpt-4o") > BUDGET
    for request in ours:
        assert request.tokens("gpt-4o") <= BUDGET
        assert request.errors() == []
        assert request.messages == ours[0].messages
    assert len(ours) == 3
    assert streamed


def test_messages_by_position_are_noticed(registered: Any) -> None:
    callback, chat = callback_of(), history()
    registered.callbacks = [callback]

    async def run(wire: Wire) -> None:
        given = arguments(wire, chat)
        model, messages = given.pop("model"), given.pop("messages")
        with pytest.warns(RuntimeWarning, match="by position do not reach callbacks"):
            await registered.acompletion(model, messages, **given)
        await callback.acompletion(model, messages, **given)
        registered.callbacks = []
        await callback.acompletion(model, messages, **given)

    with scripted() as wire:
        asyncio.run(run(wire))
    theirs, *ours = wire.requests
    assert len(theirs.messages) == len(chat)
    assert [request.tokens("gpt-4o") <= BUDGET for request in ours] == [True, True]
    assert ours[0].messages == ours[1].messages
    for wrong in (lambda: callback.completion(MODEL, model=MODEL), lambda: many(callback)):
        with pytest.raises(satchel.InputError, match="position"):
            wrong()


def many(callback: Any) -> None:
    callback.completion(*range(400))


def test_steps_are_whole_where_litellm_tears_them_apart(litellm: Any) -> None:
    """BerriAI/litellm#10696: its trim leaves results whose call is gone."""
    callback, chat = callback_of(budget=900), history(12)
    theirs = litellm.utils.trim_messages(chat, "gpt-4o", max_tokens=900)
    assert [one for one in satchel.lint(theirs, "openai") if one.severity == "error"]
    for end in range(1, len(chat) + 1):
        window = callback.window({"model": MODEL, "messages": chat[:end]})
        ours = satchel.lint(window.messages, "openai")
        assert [one for one in ours if one.severity == "error"] == []


def test_the_event_loop_goes_on(litellm: Any) -> None:
    """BerriAI/litellm#36174 and #26193: counting on the loop holds up every other request."""
    assert litellm is not None
    threads: set[int] = set()

    def count(text: str) -> int:
        threads.add(threading.get_ident())
        return len(text) // 4

    callback, chat = callback_of(counter=count), history()

    async def run() -> int:
        kwargs = {"model": MODEL, "messages": chat, "tools": TOOLS, "response_format": {"a": 1}}
        await callback.async_pre_call_deployment_hook(kwargs, "acompletion")
        await callback.async_pre_call_hook(None, None, kwargs, "completion")
        return threading.get_ident()

    here = asyncio.run(run())
    assert threads
    assert here not in threads


def test_trimming_does_not_load_litellm() -> None:
    """BerriAI/litellm#2677: importing it costs seconds and hundreds of megabytes."""
    program = (
        "import sys, satchel.litellm as ours\n"
        "ours.trim_messages([{'role': 'user', 'content': 'a'}], 'gpt-4o')\n"
        "import satchel.litellm.conversations, satchel.openai, satchel.anthropic\n"
        "assert not {'litellm', 'openai', 'anthropic'} & set(sys.modules)\n"
        "sys.modules['litellm'] = None\n"
        "try:\n    ours.ContextCallback\n"
        "except ImportError as error:\n    assert 'extra litellm' in str(error)\n"
        "else:\n    raise AssertionError\n"
        "try:\n    ours.NoSuchName\n"
        "except AttributeError:\n    pass\n"
        "else:\n    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - written here


PIXELS = (1920, 1080)


def picture() -> str:
    """The head of a PNG of 1920 x 1080, which is all that is looked at."""
    import base64  # noqa: PLC0415 - for this one picture
    import struct  # noqa: PLC0415 - as above

    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", *PIXELS)
    return base64.b64encode(head + b"\x08\x00\x00\x00\x00" + b"\x00" * 8).decode()


def test_images_are_counted_by_the_rule_of_their_provider(litellm: Any) -> None:
    """BerriAI/litellm#39910: 85 tokens for any image, though Claude takes 1,500 for this one."""
    assert litellm is not None
    url = {"url": f"data:image/png;base64,{picture()}"}
    shot = {"role": "user", "content": [{"type": "image_url", "image_url": url}]}
    source = {"type": "base64", "media_type": "image/png", "data": picture()}
    block = {"type": "image", "source": source}
    callback = callback_of(budget=9_000)
    kwargs = {"model": "anthropic/claude-sonnet-4-5", "messages": [shot]}
    assert callback.window(kwargs).tokens > 1_400
    used: dict[str, Any] = {"type": "tool_use", "id": "t", "name": "shot", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    messages: Chat = [
        {"role": "user", "content": "Take a picture."},
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result]},
    ]
    window = callback.window({**kwargs, "messages": messages}, call_type="anthropic_messages")
    assert window.tokens > 1_400
    # So what does not fit is not sent.
    with pytest.raises(satchel.BudgetError):
        callback_of(budget=1_000).window(kwargs)


# --- what else a request can be -------------------------------------------------------------------


def test_anthropic_s_messages(registered: Any) -> None:
    chat = satchel.convert(history(), "openai", "anthropic").messages
    registered.callbacks = [callback_of()]
    given: dict[str, Any] = {
        "model": "anthropic/claude-sonnet-5",
        "max_tokens": 99,
        "system": "Say what you find.",
        "tools": [tool("anthropic")],
        "api_key": "-",
    }

    async def run(wire: Wire) -> None:
        create = registered.anthropic.messages.acreate
        await create(messages=chat, api_base=wire.url, **given)

    with scripted() as wire:
        asyncio.run(run(wire))
    [request] = wire.requests
    assert request.dialect == "anthropic"
    assert request.errors() == []
    assert request.tokens("claude-sonnet-5") <= BUDGET
    assert request.body["system"] == "Say what you find."


def test_messages_that_cannot_be_exchanged_are_not_sent(litellm: Any) -> None:
    """Of Anthropic's messages by position litellm's hook can exchange everything but the list."""
    assert litellm is not None
    chat = satchel.convert(history(), "openai", "anthropic").messages
    callback, model = callback_of(), "anthropic/claude-sonnet-5"
    hook = callback.async_pre_request_hook
    with pytest.raises(satchel.InputError, match="by position cannot be exchanged"):
        asyncio.run(hook(model, chat, {"max_tokens": 99}))
    assert len(chat) == 61
    window = callback.window({"model": model, "messages": chat}, call_type="anthropic_messages")
    assert asyncio.run(hook(model, window.messages, {"max_tokens": 99})) is None


def test_responses(registered: Any) -> None:
    items = satchel.convert(history(), "openai", "openai-responses").messages
    registered.callbacks = [callback_of()]

    async def run(wire: Wire) -> None:
        ask = registered.aresponses
        given: dict[str, Any] = {"model": MODEL, "api_base": wire.url, "api_key": "-"}
        await ask(input=items, instructions="Say what you find.", **given)
        await ask(input="A question.", **given)

    with scripted(lambda _request, _number: Say("Done.")) as wire:
        asyncio.run(run(wire))
    first, second = wire.requests
    assert first.dialect == "openai-responses"
    assert first.errors() == []
    assert first.tokens("gpt-4o") <= BUDGET
    assert second.body["input"] == "A question."
    callback = callback_of()
    kept = {"model": MODEL, "input": items, "previous_response_id": "resp_1"}
    assert callback.window(kept, call_type="aresponses") is None
    assert callback.window({"model": MODEL, "input": ["text"]}, call_type="aembedding") is None
    assert callback.window({"model": MODEL}) is None


def test_a_router_s_deployments(registered: Any) -> None:
    """The model is called by a name of the router's; the deployment says what it is."""
    seen: list[Any] = []
    registered.callbacks = [callback_of(budget=None, on_window=seen.append)]

    async def run(wire: Wire) -> None:
        given = {"api_base": wire.url, "api_key": "-"}
        deployments = [
            {
                "model_name": "main",
                "litellm_params": {"model": "openai/my-deployment", **given},
                "model_info": {"base_model": "gpt-4o"},
            },
            {"model_name": "other", "litellm_params": {"model": "openai/gpt-4.1", **given}},
        ]
        router = registered.Router(model_list=deployments, num_retries=0)
        for name in ("main", "other"):
            await router.acompletion(model=name, messages=history(4), max_tokens=900)

    with scripted() as wire:
        asyncio.run(run(wire))
    assert [window.budget for window in seen] == [
        satchel.models.get("gpt-4o").window - 900,
        satchel.models.get("gpt-4.1").window - 900,
    ]


def test_the_proxy_s_hook(litellm: Any) -> None:
    assert litellm is not None
    callback, chat = callback_of(), history()
    data = {"model": "gpt-4o", "messages": chat, "metadata": {"team": "a"}}
    edited = asyncio.run(callback.async_pre_call_hook(None, None, data, "completion"))
    assert edited is not None
    assert data["messages"] is chat
    assert edited["metadata"] is data["metadata"]
    assert len(edited["messages"]) < len(chat)
    # The second hook finds nothing left to do.
    again = callback.async_pre_call_deployment_hook(
        edited, litellm.types.utils.CallTypes.acompletion
    )
    assert asyncio.run(again) is None
    # What the proxy knows of the model is read if it is a mapping.
    for info in ("x", [1], 7, None):
        known = {**data, "model_info": info}
        assert (
            asyncio.run(callback.async_pre_call_hook(None, None, known, "completion")) is not None
        )
    # A name of the proxy's own is left to the hook that knows what it stands for.
    alias = {**data, "model": "team-model"}
    assert asyncio.run(callback.async_pre_call_hook(None, None, alias, "completion")) is None


def test_the_budget_is_the_request_s(litellm: Any) -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"title": "b " * 300}}}
    kwargs: dict[str, Any] = {"model": MODEL, "messages": history(2)}
    plainly = callback_of().window(kwargs).budget
    formatted = callback_of().window({**kwargs, "response_format": schema}).budget
    assert plainly == BUDGET
    assert 300 < plainly - formatted < 400
    with pytest.raises(satchel.BudgetError, match="response format"):
        callback_of(budget=200).window({**kwargs, "response_format": schema})
    window = satchel.models.get("gpt-4o").window
    reserved = callback_of(budget=None, reserve_tokens=4_000)
    assert reserved.window(kwargs).budget == window - 4_000
    assert reserved.window({**kwargs, "max_tokens": 100}).budget == window - 4_000
    assert reserved.window({**kwargs, "max_completion_tokens": 9_000}).budget == window - 9_000
    # A model that only litellm knows: its limits, and an upper estimate.
    name = "acme-unknown"
    litellm.register_model(
        {
            name: {
                "max_input_tokens": 20_000,
                "max_output_tokens": 2_000,
                "litellm_provider": "openai",
            }
        }
    )
    found = callback_of(budget=None).window({**kwargs, "model": name})
    assert (found.budget, found.exact) == (18_000, False)
    with pytest.raises(satchel.InputError, match="knows the limits") as caught:
        callback_of(budget=None).window({**kwargs, "model": "nobody-knows-it"})
    assert caught.value.code == "unknown_model"


def test_what_cannot_fit_is_not_sent(registered: Any) -> None:
    registered.callbacks = [callback_of(budget=50)]

    async def run(wire: Wire) -> None:
        chat = [{"role": "user", "content": "word " * 500}]
        with pytest.raises(satchel.BudgetError) as caught:
            await registered.acompletion(**arguments(wire, chat))
        assert caught.value.limit == 50

    with scripted() as wire:
        asyncio.run(run(wire))
    assert wire.requests == []


def test_untouched_messages_are_the_same_objects(litellm: Any) -> None:
    assert litellm is not None
    chat = history(3)
    callback = callback_of()
    kwargs = {"model": MODEL, "messages": chat}
    hook = callback.async_pre_call_deployment_hook
    assert asyncio.run(hook(kwargs, "acompletion")) is None
    longer = history(30)
    edited = asyncio.run(hook({"model": MODEL, "messages": longer}, "acompletion"))
    assert edited["messages"][0] is longer[0]
    assert edited["messages"][-1] is longer[-1]


def test_conversations_are_told_apart_by_content() -> None:
    packer = satchel.Assembler("gpt-4o", budget=BUDGET)
    kept = Conversations(2)
    ada: Chat = [{"role": "user", "content": "I am Ada."}]
    bob: Chat = [{"role": "user", "content": "I am Bob."}]
    for chat in (ada, bob, [*ada, {"role": "assistant", "content": "Hello, Ada."}]):
        kept.window(packer, chat, system=None, tools=None)
    assert len(kept) == 2
    # Changed in place: another conversation, though the objects are the same.
    bob[0]["content"] = "I am Eve."
    window = kept.window(packer, bob, system=None, tools=None)
    assert window.messages == [{"role": "user", "content": "I am Eve."}]
    assert len(kept) == 2
    # What another call changed in place since does not come back here.
    ada[0]["content"] = "I am Mallory."
    again: Chat = [
        {"role": "user", "content": "I am Ada."},
        {"role": "assistant", "content": "Hello, Ada."},
        {"role": "user", "content": "Who am I?"},
    ]
    window = kept.window(packer, again, system=None, tools=None)
    assert [one["content"] for one in window.messages] == ["I am Ada.", "Hello, Ada.", "Who am I?"]
    assert all(one is other for one, other in zip(window.messages, again, strict=True))
    # A history that was cut back is packed anew.
    window = kept.window(packer, ada, system=None, tools=None)
    assert window.messages == ada


def test_many_threads_share_a_callback(litellm: Any) -> None:
    assert litellm is not None
    callback, chat = callback_of(conversations=3), history(20)
    expected = callback_of().window({"model": MODEL, "messages": chat}).messages
    found: list[Any] = []

    def work(name: int) -> None:
        for end in range(1, len(chat) + 1, 2):
            mine = [{"role": "user", "content": f"I am {name}."}, *chat[1:end]]
            callback.window({"model": MODEL, "messages": mine})
        found.append(callback.window({"model": MODEL, "messages": chat}).messages)

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4
    assert len(callback._conversations) <= 3


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"policy": 7}, "invalid_value"),
        ({"policy": "no such"}, "invalid_value"),
        ({"policy": "clear-tool-uses:server"}, "invalid_value"),
        ({"budget": "7"}, "invalid_value"),
        ({"budget": 0}, "invalid_value"),
        ({"budget": 7, "reserve_tokens": 7}, "invalid_value"),
        ({"budget": None, "reserve_tokens": -1}, "invalid_value"),
        ({"model": 7}, "invalid_value"),
        ({"model": "no such model"}, "unknown_model"),
        ({"counter": 7}, "invalid_value"),
        ({"on_window": 7}, "invalid_value"),
        ({"conversations": 0}, "invalid_value"),
    ],
)
def test_wrong_arguments(litellm: Any, options: dict[str, Any], code: str) -> None:
    assert litellm is not None
    with pytest.raises(satchel.InputError) as caught:
        callback_of(**options)
    assert caught.value.code == code


def test_wrong_arguments_of_a_window(litellm: Any) -> None:
    assert litellm is not None
    callback = callback_of()
    kwargs: dict[str, Any] = {"model": MODEL, "messages": history(1)}
    cases: list[Any] = [
        lambda: callback.window(7),
        lambda: callback.window(None),
        lambda: callback.window(kwargs, call_type=7),
        lambda: callback.window({**kwargs, "messages": [7]}),
        lambda: callback.window({**kwargs, "tools": 7}),
        lambda: callback_of(budget=None).window({**kwargs, "model": None}),
    ]
    for wrong in cases:
        with pytest.raises(satchel.InputError):
            wrong()
