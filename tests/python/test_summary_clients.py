"""Summaries through the providers' own clients, against a server on this machine that misbehaves.

Whatever comes back, the history is intact, the window valid and within its budget, and the report
says what went wrong.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import warnings
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest

import satchel
from satchel.policy import Policy, SummarySettings
from satchel.stores import MemoryStore
from satchel.summarize import (
    AnthropicSummarizer,
    LiteLLMSummarizer,
    OpenAISummarizer,
    Patience,
)
from summary_wire import FAULTS, SUMMARY, Wire, misbehaving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from satchel.summarize import Summarizer

pytestmark = pytest.mark.filterwarnings("ignore")  # clients warn of what is theirs

POLICY = Policy(
    name="test",
    summary=SummarySettings(
        above_messages=8,
        above_share=None,
        keep_messages=4,
        max_tokens=80,
        receipt_tokens=60,
        background=False,
    ),
)
CODES = {
    "429": "summary_unavailable",
    "500": "summary_unavailable",
    "stalls": "summary_timeout",
    "breaks off": "summary_unavailable",
    "is no json": "summary_unavailable",
    "says nothing": "summary_empty",
    "refuses": "summary_refused",
    "calls a tool": "summary_empty",
    "copies": "summary_not_smaller",
    "is too long": "summary_not_smaller",
    "ends in the middle": "summary_cut",
}
ONCE = {"refuses", "copies", "is too long"}
"""Faults after which the same model is not asked again."""


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with misbehaving() as found:
        yield found


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("LITELLM_LOG", "CRITICAL")


def summarizer_of(kind: str, wire: Wire) -> Summarizer:
    name, _, way = kind.partition(" ")
    stream = way == "streamed"
    if name == "openai":
        chat = openai.AsyncOpenAI(api_key="-", base_url=wire.url, max_retries=0)
        return OpenAISummarizer("gpt-4o-mini", client=chat, stream=stream)
    if name == "anthropic":
        messages = anthropic.AsyncAnthropic(api_key="-", base_url=wire.url, max_retries=0)
        return AnthropicSummarizer("claude-sonnet-4-5", client=messages, stream=stream)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package: Any = importlib.import_module("litellm")
    package.suppress_debug_info = True
    return LiteLLMSummarizer("openai/gpt-4o-mini", options={"api_base": wire.url, "api_key": "-"})


def said(number: int) -> dict[str, Any]:
    role = "assistant" if number % 2 else "user"
    text = f"Remark {number} about pier {number * 7 + 100}. " + f"Tide table {number}. " * 12
    return {"role": role, "content": text}


KINDS = ("openai", "openai streamed", "anthropic", "anthropic streamed", "litellm")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_a_provider_does_nothing_is_lost(kind: str, fault: str, wire: Wire) -> None:
    async def work() -> None:
        wire.fault, wire.requests = fault, 0
        messages = [said(number) for number in range(15)]
        patience = Patience(timeout_s=0.4 if fault == "stalls" else 20, attempts=2, backoff_s=0)
        summarizer = summarizer_of(kind, wire)
        store = MemoryStore()
        async with satchel.open_session(
            store,
            session_id="s",
            model="gpt-4o",
            budget=2_500,
            policy=POLICY,
            summarizer=summarizer,
            patience=patience,
        ) as session:
            await session.append(messages)
            window = await session.window()
            assert await session.messages() == messages
        assert satchel.lint(window.messages, "openai") == []
        assert window.tokens <= window.budget
        shown = json.dumps(window.messages)
        assert shown.count("<summary source=") == 1
        assert all(shown.count(json.dumps(said["content"])) <= 1 for said in messages)
        assert messages[-1]["content"] in shown
        report = window.report.summary
        assert report is not None
        assert report.is_done
        codes = [one.code for one in report.failures]
        if fault == "none":
            assert codes == []
            assert report.summarizer == summarizer.name
            assert report.usage is not None
            assert (report.usage.input, report.usage.output) == (40, 9)
            assert json.dumps(SUMMARY)[1:-1] in shown
        else:
            assert codes == [CODES[fault]]
            assert report.failures[0].summarizer == summarizer.name
            assert report.summarizer == "extractive"
        assert wire.requests == (1 if fault in ONCE or fault == "none" else 2)

    asyncio.run(work())


def test_a_report_is_a_model_that_reads_back(wire: Wire) -> None:
    async def work() -> None:
        wire.fault = "refuses"
        async with satchel.open_session(
            MemoryStore(),
            session_id="s",
            model="gpt-4o",
            budget=2_500,
            policy=POLICY,
            summarizer=summarizer_of("openai", wire),
        ) as session:
            await session.append([said(number) for number in range(15)])
            report = (await session.window()).report
        again = type(report).model_validate_json(report.model_dump_json())
        assert again == report
        assert again.summary is not None
        assert again.summary.failures[0].code == "summary_refused"
        assert "Remark" not in report.model_dump_json()

    asyncio.run(work())
