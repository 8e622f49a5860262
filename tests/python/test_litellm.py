"""`satchel.litellm.trim_messages`: litellm's shape, whole steps, never above the limit."""

from __future__ import annotations

import copy
import inspect
import os
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import satchel
from satchel.litellm import trim_messages

if TYPE_CHECKING:
    from collections.abc import Callable

COUNTER = satchel.counter("gpt-4o")
Chat = list[dict[str, Any]]


def tokens(chat: Chat, tools: Any = None) -> int:
    return COUNTER.count_messages(chat, tools=tools, dialect="openai").total


def chat_of(rng: random.Random) -> Chat:
    found: Chat = []
    if rng.random() < 0.6:
        found.append({"role": "system", "content": "rules " * rng.randrange(1, 60)})
    for _ in range(rng.randrange(1, 15)):
        draw = rng.random()
        if draw < 0.35:
            text = rng.choice(["ask ", "한국 ", "x\n"]) * rng.randrange(1, 200)
            found.append({"role": "user", "content": text})
        elif draw < 0.55:
            found.append({"role": "assistant", "content": "reply " * rng.randrange(1, 99)})
        elif draw < 0.6:
            image = {"type": "image_url", "image_url": {"url": "https://e.x/i", "detail": "low"}}
            words = {"type": "text", "text": "block " * rng.randrange(1, 99)}
            found.append({"role": "user", "content": [words, image]})
        else:
            names = [f"c{number}" for number in range(rng.randrange(1, 4))]
            function = {"name": "f", "arguments": '{"a": 1}'}
            calls = [{"id": name, "type": "function", "function": function} for name in names]
            found.append({"role": "assistant", "content": None, "tool_calls": calls})
            for name in names:
                text = "result " * rng.randrange(1, 150)
                found.append({"role": "tool", "tool_call_id": name, "content": text})
    return found


def errors(chat: Chat) -> list[str]:
    return [str(each) for each in satchel.lint(chat, "openai") if each.severity == "error"]


def test_windows_fit_are_valid_and_keep_the_newest() -> None:
    refused = 0
    for seed in range(400):
        rng = random.Random(seed)  # noqa: S311 - a case needs a seed, not a secret
        chat = chat_of(rng)
        before = copy.deepcopy(chat)
        limit = rng.randrange(1, 1_500)
        try:
            window, left = trim_messages(
                chat, "gpt-4o", max_tokens=limit, return_response_tokens=True
            )
        except satchel.BudgetError:
            refused += 1
            continue
        assert chat == before
        assert tokens(window) + left == limit
        assert left >= 0
        assert errors(window) == []
        assert window[-1]["role"] == chat[-1]["role"]
        users = [each for each in chat if each["role"] == "user"]
        kept = [each for each in window if each["role"] == "user"]
        assert bool(kept) == bool(users)
        if tokens(chat) <= limit:
            assert all(one is other for one, other in zip(window, chat, strict=True))
    assert 0 < refused < 100


def test_damaged_histories_give_valid_windows() -> None:
    for seed in range(300):
        rng = random.Random(seed)  # noqa: S311 - as above
        chat = chat_of(rng)
        del chat[rng.randrange(len(chat))]
        assert errors(trim_messages(chat, "gpt-4o", max_tokens=5_000)) == []


def test_the_middle_is_cut() -> None:
    text = "start " + "middle " * 500 + "end"
    window = trim_messages([{"role": "user", "content": text}], "gpt-4o", max_tokens=60)
    content = window[0]["content"]
    assert content.startswith("start ")
    assert content.endswith(" end")
    assert 50 <= tokens(window) <= 60


def test_what_cannot_fit_is_refused() -> None:
    chat: Chat = [{"role": "system", "content": "rules " * 99}, {"role": "user", "content": "go"}]
    with pytest.raises(satchel.BudgetError, match="what must stay has at least") as caught:
        trim_messages(chat, "gpt-4o", max_tokens=9)
    assert caught.value.value is not None
    least = caught.value.value + 3  # the request's own
    assert tokens(trim_messages(chat, "gpt-4o", max_tokens=least)) <= least


def test_limits() -> None:
    chat: Chat = [{"role": "user", "content": "hello " * 50}]
    assert trim_messages(chat, "no-such-model") == chat
    assert trim_messages(chat) == chat
    assert trim_messages(chat, return_response_tokens=True) == (chat, 0)
    window, left = trim_messages(chat, "gpt-4o", return_response_tokens=True)
    assert window == chat
    assert left == int(satchel.models.get("gpt-4o").window * 0.75) - tokens(chat)
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": {}}}]
    _, left = trim_messages(
        chat, "gpt-4o", max_tokens=500, return_response_tokens=True, tools=tools
    )
    assert left == 500 - tokens(chat, tools)
    assert trim_messages([], "gpt-4o", max_tokens=100) == []
    with pytest.raises(satchel.InputError) as caught:
        trim_messages([{"role": "user", "content": 5}], "gpt-4o", max_tokens=100)
    assert caught.value.index == 0


def test_litellm_is_not_imported() -> None:
    program = (
        "import sys; from satchel.litellm import trim_messages; "
        "trim_messages([{'role': 'user', 'content': 'a'}], 'gpt-4o'); "
        "assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)  # noqa: S603 - written here


@pytest.fixture(scope="module")
def peer() -> Callable[..., Any]:
    """litellm's function, with the model list of the package: nothing is fetched."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    utils: Any = pytest.importorskip("litellm.utils")
    found: Callable[..., Any] = utils.trim_messages
    return found


@pytest.mark.filterwarnings("ignore")  # what importing litellm warns of is its own business
def test_the_signature_is_theirs_and_ours_after_it(peer: Callable[..., Any]) -> None:
    def shown(function: Callable[..., Any]) -> list[tuple[Any, ...]]:
        found = inspect.signature(function).parameters.values()
        return [(each.name, each.kind, each.default) for each in found]

    assert shown(trim_messages)[:5] == shown(peer)
    assert [each[0] for each in shown(trim_messages)[5:]] == ["tools"]


@pytest.mark.filterwarnings("ignore")  # as above
def test_what_fits_comes_back_as_from_litellm(peer: Callable[..., Any]) -> None:
    for seed in range(12):
        chat = chat_of(random.Random(seed))  # noqa: S311 - as above
        limit = 2 * tokens(chat) + 100
        assert trim_messages(chat, "gpt-4o", max_tokens=limit) == peer(
            chat, "gpt-4o", max_tokens=limit
        )
        assert trim_messages(chat, "nobody") == peer(chat, "nobody")
