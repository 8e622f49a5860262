"""Spans, metrics and log events of sessions: names of the conventions, and no word of the texts."""

from __future__ import annotations

import asyncio
import importlib
import logging
import subprocess
import sys
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import satchel
from satchel import telemetry
from satchel.policy import Policy, SummarySettings
from satchel.stores import MemoryStore
from satchel.summarize import Patience, SummaryRequest, SummaryResult
from satchel.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Iterator

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
WORD = "lighthouse"


class Writer:
    name = "openai:gpt-4o-mini"

    def __init__(self, *, fails: bool = False) -> None:
        self._fails = fails

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        if self._fails:
            message = f"the provider says {WORD}"
            raise satchel.SummaryError(message, code="summary_refused")
        assert request.transcript
        return SummaryResult(text=f"## Facts\n- The {WORD} is lit.", usage=Usage(70, 40, 0, 9))


class Recorded:
    def __init__(self) -> None:
        self.spans_ = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans_))
        self.meters = MeterProvider([self.reader])

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans_.get_finished_spans() if span.name == name]

    def points(self) -> dict[str, list[Any]]:
        data = self.reader.get_metrics_data()
        assert data is not None
        return {
            metric.name: list(metric.data.data_points)
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def everything(self) -> str:
        spans = "".join(span.to_json() for span in self.spans_.get_finished_spans())
        data = self.reader.get_metrics_data()
        return spans + ("" if data is None else data.to_json())


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    found = Recorded()
    try:
        yield found
    finally:
        telemetry.uninstrument()
        found.tracers.shutdown()
        found.meters.shutdown()


def talk(summarizer: Any) -> None:
    async def work() -> None:
        async with satchel.open_session(
            MemoryStore(),
            session_id="conv-1",
            model="gpt-4o",
            budget=2_500,
            policy=POLICY,
            summarizer=summarizer,
            patience=Patience(backoff_s=0),
        ) as session:
            for number in range(15):
                role = "assistant" if number % 2 else "user"
                text = f"Remark {number} on the {WORD}. " + f"tide {number} " * 20
                await session.append({"role": role, "content": text})
            await session.window()

    asyncio.run(work())


def on(recorded: Recorded, *, content: bool = False) -> None:
    assert telemetry.instrument(
        tracer_provider=recorded.tracers, meter_provider=recorded.meters, content=content
    )
    assert telemetry.is_instrumented()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_request_has_the_names_of_the_conventions(recorded: Recorded) -> None:
    on(recorded)
    talk(Writer())
    [span] = recorded.spans("chat gpt-4o-mini")
    assert span.kind.name == "CLIENT"
    assert attributes(span) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4o-mini",
        "gen_ai.request.max_tokens": 80,
        "gen_ai.usage.input_tokens": 70,
        "gen_ai.usage.output_tokens": 9,
        "gen_ai.usage.cache_read.input_tokens": 40,
        "gen_ai.usage.cache_creation.input_tokens": 0,
    }
    points = recorded.points()
    used = {
        point.attributes["gen_ai.token.type"]: point.sum
        for point in points["gen_ai.client.token.usage"]
    }
    assert used == {"input": 70, "output": 9}
    [duration] = points["gen_ai.client.operation.duration"]
    assert duration.count == 1
    assert duration.attributes["gen_ai.operation.name"] == "chat"


def test_the_names_are_those_of_the_package() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = importlib.import_module(
            "opentelemetry.semconv._incubating.attributes.gen_ai_attributes"
        )
        metrics = importlib.import_module(
            "opentelemetry.semconv._incubating.metrics.gen_ai_metrics"
        )
    known = {
        value
        for module in (names, metrics)
        for value in vars(module).values()
        if isinstance(value, str) and value.startswith("gen_ai.")
    }
    source = importlib.import_module("inspect").getsource(telemetry)
    used = set(importlib.import_module("re").findall(r'"(gen_ai\.[\w.]+)"', source))
    assert len(used) > 10
    assert used <= known


def test_windows_and_compactions_are_told_in_figures(recorded: Recorded) -> None:
    on(recorded)
    talk(Writer())
    [window] = recorded.spans("satchel.window")
    found = attributes(window)
    assert found["gen_ai.conversation.id"] == "conv-1"
    assert found["gen_ai.request.model"] == "gpt-4o"
    assert 0 < found["satchel.window.tokens"] <= found["satchel.window.budget"] == 2_500
    assert found["satchel.session.messages"] == 15
    [compaction] = recorded.spans("satchel.compaction")
    told = attributes(compaction)
    assert told["satchel.compaction.outcome"] == "summarized"
    assert told["satchel.compaction.requests"] == 1
    assert compaction.parent is not None
    assert window.context is not None
    assert compaction.parent.span_id == window.context.span_id
    [count] = recorded.points()["satchel.compactions"]
    assert (count.value, count.attributes) == (1, {"satchel.compaction.outcome": "summarized"})
    [tokens] = recorded.points()["satchel.window.tokens"]
    assert tokens.sum == found["satchel.window.tokens"]


@pytest.mark.parametrize("fails", [False, True])
def test_no_text_is_in_it_unless_asked_for(
    recorded: Recorded, caplog: pytest.LogCaptureFixture, fails: bool
) -> None:
    caplog.set_level(logging.DEBUG, "satchel")
    on(recorded)
    talk(Writer(fails=fails))
    assert WORD not in recorded.everything()
    assert WORD not in "".join(str(vars(record)) for record in caplog.records)
    on(recorded, content=True)
    talk(Writer(fails=fails))
    span = recorded.spans("chat gpt-4o-mini")[-1]
    assert WORD in attributes(span)["gen_ai.input.messages"]
    assert ("gen_ai.output.messages" in attributes(span)) == (not fails)


def test_what_failed_has_its_code(recorded: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "satchel.session")
    on(recorded)
    talk(Writer(fails=True))
    [span] = recorded.spans("chat gpt-4o-mini")
    assert attributes(span)["error.type"] == "summary_refused"
    assert span.status.status_code.name == "ERROR"
    assert span.events == ()
    [duration] = recorded.points()["gen_ai.client.operation.duration"]
    assert duration.attributes["error.type"] == "summary_refused"
    [record] = [one for one in caplog.records if hasattr(one, "satchel")]
    fields: dict[str, Any] = vars(record)["satchel"]
    assert fields["event"] == "satchel.compaction"
    assert (fields["outcome"], fields["failures"]) == ("summarized", ["summary_refused"])
    assert record.levelno == logging.WARNING


def test_nothing_is_recorded_before_it_is_asked_for(recorded: Recorded) -> None:
    talk(Writer())
    assert not telemetry.is_instrumented()
    assert recorded.spans_.get_finished_spans() == ()


def test_without_the_package_it_does_nothing() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from satchel import telemetry\n"
        "assert telemetry.instrument() is False\n"
        "import satchel.sync\n"
        "with satchel.sync.open_session('memory://', session_id='s', model='gpt-4o') as session:\n"
        "    session.append({'role': 'user', 'content': 'hi'}); session.window()\n"
    )
    done = subprocess.run(  # noqa: S603 - our own text
        [sys.executable, "-W", "error", "-c", program], capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
