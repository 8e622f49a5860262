"""What sessions do, as OpenTelemetry spans and metrics and as structured log events.

Off until `instrument` is called, and a no-op without the package (extra ``otel``). Names of
requests to models are those of OpenTelemetry's semantic conventions for generative AI; what only
satchel does has names of its own:

=====================================  =========================================================
span ``chat {model}``                  one request for a summary: model, provider, tokens, error
span ``satchel.window``                a window that was given out
span ``satchel.compaction``            a summary, from the request to the log
``gen_ai.client.operation.duration``   histogram, seconds, of requests for summaries
``gen_ai.client.token.usage``          histogram, tokens, as providers reported them
``satchel.window.tokens``              histogram, tokens of windows
``satchel.window.duration``            histogram, seconds until a window was there
``satchel.compactions``                counter of summaries by outcome
=====================================  =========================================================

No text of a conversation is in any of it unless ``content=True`` asks for that; ids of sessions
are. Log events go to the logger ``satchel.session`` whether or not spans are on; their figures are
in the record's attribute ``satchel``, a dict.

Source:
    The package opentelemetry-semantic-conventions 0.66b2: attributes and client metrics of
    ``gen_ai``, which are still in development.
"""

from __future__ import annotations

import json
import logging
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from satchel._compaction_report import CompactionReport
    from satchel.usage import Usage
    from satchel.window import Window

__all__ = ["instrument", "is_instrumented", "uninstrument"]

_LOG: Final = logging.getLogger("satchel.session")
_NAME: Final = "satchel"


class _Span:
    """A span of OpenTelemetry."""

    def __init__(self, span: Any) -> None:  # noqa: ANN401 - an optional package's
        self._span: Final = span

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Adds attributes; those that are None are left out."""
        self._span.set_attributes({key: one for key, one in attributes.items() if one is not None})

    def fail(self, code: str) -> None:
        """Marks the span as failed, by a code and without the error's message."""
        self._span.set_attribute("error.type", code)
        self._span.set_status(self._status(code))

    @staticmethod
    def _status(code: str) -> Any:  # noqa: ANN401 - an optional package's
        from opentelemetry.trace import Status, StatusCode  # noqa: PLC0415 - an optional package

        return Status(StatusCode.ERROR, code)


@dataclass(frozen=True, slots=True)
class _Instruments:
    """What spans and figures are recorded with."""

    tracer: Any
    duration: Any
    usage: Any
    window_tokens: Any
    window_duration: Any
    compactions: Any
    has_content: bool


class _State:
    instruments: _Instruments | None = None


def instrument(
    *,
    tracer_provider: object = None,
    meter_provider: object = None,
    content: bool = False,
) -> bool:
    """Begins to record spans and metrics of all sessions of this process.

    Args:
        tracer_provider: an OpenTelemetry ``TracerProvider``; None for the global one.
        meter_provider: a ``MeterProvider``; likewise.
        content: whether requests for summaries and their answers are recorded as text.

    Returns:
        Whether anything is recorded: False without the package ``opentelemetry-api``.
    """
    try:
        from opentelemetry import metrics, trace  # noqa: PLC0415 - an optional package
    except ImportError:
        return False
    tracers: Any = trace.get_tracer_provider() if tracer_provider is None else tracer_provider
    meters: Any = metrics.get_meter_provider() if meter_provider is None else meter_provider
    meter = meters.get_meter(_NAME)

    def histogram(name: str, unit: str, description: str) -> Any:  # noqa: ANN401 - likewise
        return meter.create_histogram(name, unit=unit, description=description)

    _State.instruments = _Instruments(
        tracer=tracers.get_tracer(_NAME),
        duration=histogram("gen_ai.client.operation.duration", "s", "GenAI operation duration."),
        usage=histogram(
            "gen_ai.client.token.usage", "{token}", "Number of input and output tokens used."
        ),
        window_tokens=histogram("satchel.window.tokens", "{token}", "Tokens of windows."),
        window_duration=histogram("satchel.window.duration", "s", "Time until a window is there."),
        compactions=meter.create_counter(
            "satchel.compactions", unit="{compaction}", description="Summaries by outcome."
        ),
        has_content=content,
    )
    return True


def uninstrument() -> None:
    """Ends the recording."""
    _State.instruments = None


def is_instrumented() -> bool:
    """Whether spans and metrics are recorded."""
    return _State.instruments is not None


# --- what sessions call ---------------------------------------------------------------------------


@contextmanager
def observed_window(session_id: str) -> Generator[list[Window]]:
    """Records the window that the block puts into the list."""
    given: list[Window] = []
    instruments = _State.instruments
    if instruments is None:
        yield given
        return
    begun = time.perf_counter()
    with _span(instruments, "satchel.window", {"gen_ai.conversation.id": session_id}) as span:
        yield given
        window = given[-1]
        model = {"gen_ai.request.model": window.model}
        span.set(
            {
                **model,
                "satchel.window.tokens": window.tokens,
                "satchel.window.budget": window.budget,
                "satchel.window.messages": len(window.messages),
                "satchel.session.messages": window.report.messages,
                "satchel.window.compactions": window.report.compactions,
                "satchel.window.stable_prefix_tokens": window.stable_prefix_tokens,
            }
        )
        instruments.window_tokens.record(window.tokens, model)
        instruments.window_duration.record(time.perf_counter() - begun, model)


@contextmanager
def observed_compaction(session_id: str) -> Generator[list[CompactionReport]]:
    """Records the report that the block puts into the list, also if it ends in an error."""
    reports: list[CompactionReport] = []
    instruments = _State.instruments
    if instruments is None:
        try:
            yield reports
        finally:
            _told(reports)
        return
    with _span(instruments, "satchel.compaction", {"gen_ai.conversation.id": session_id}) as span:
        try:
            yield reports
        finally:
            _told(reports)
            for report in reports[-1:]:
                span.set({f"satchel.compaction.{key}": one for key, one in _fields(report).items()})
                instruments.compactions.add(1, {"satchel.compaction.outcome": report.outcome})
                if report.outcome == "failed":
                    span.fail(report.failures[-1].code)


@contextmanager
def observed_request(
    summarizer: str, max_tokens: int, asked: object
) -> Generator[list[tuple[str, Usage | None]]]:
    """Records one request for a summary; the block puts text and usage of the answer into the list.

    The extractive summarizer asks nobody: it has no span.
    """
    answers: list[tuple[str, Usage | None]] = []
    instruments = _State.instruments
    if instruments is None or summarizer == "extractive":
        yield answers
        return
    provider, _, model = summarizer.partition(":")
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        **({"gen_ai.request.model": model} if model else {}),
    }
    begun = time.perf_counter()
    failure: dict[str, str] = {}
    name = f"chat {model}".rstrip()
    more = {**attributes, "gen_ai.request.max_tokens": max_tokens}
    try:
        with _span(instruments, name, more, is_client=True) as span:
            if instruments.has_content:
                span.set({"gen_ai.input.messages": _as_message("user", asked)})
            yield answers
            text, usage = answers[-1]
            if instruments.has_content:
                span.set({"gen_ai.output.messages": _as_message("assistant", text)})
            if usage is not None:
                span.set(
                    {
                        "gen_ai.usage.input_tokens": usage.input,
                        "gen_ai.usage.output_tokens": usage.output,
                        "gen_ai.usage.cache_read.input_tokens": usage.cache_read,
                        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write,
                    }
                )
                for kind, tokens in (("input", usage.input), ("output", usage.output)):
                    instruments.usage.record(tokens, {**attributes, "gen_ai.token.type": kind})
    except BaseException as error:
        failure["error.type"] = _code_of(error)
        raise
    finally:
        instruments.duration.record(time.perf_counter() - begun, {**attributes, **failure})


# --- inside ---------------------------------------------------------------------------------------


@contextmanager
def _span(
    instruments: _Instruments,
    name: str,
    attributes: Mapping[str, Any],
    *,
    is_client: bool = False,
) -> Generator[_Span]:
    from opentelemetry.trace import SpanKind  # noqa: PLC0415 - an optional package, loaded already

    with instruments.tracer.start_as_current_span(
        name,
        kind=SpanKind.CLIENT if is_client else SpanKind.INTERNAL,
        attributes=dict(attributes),
        # Messages of errors are a provider's, and may hold what it was sent.
        record_exception=False,
        set_status_on_exception=False,
    ) as found:
        span = _Span(found)
        try:
            yield span
        except BaseException as error:
            span.fail(_code_of(error))
            raise


def _code_of(error: BaseException) -> str:
    code: object = getattr(error, "code", None)
    return code if isinstance(code, str) else type(error).__name__


def _as_message(role: str, content: object) -> str:
    part = {"type": "text", "content": str(content)}
    return json.dumps([{"role": role, "parts": [part]}], ensure_ascii=False)


def _fields(report: CompactionReport) -> dict[str, Any]:
    """The figures of a report, without texts."""
    first, end = report.covers or (None, None)
    return {
        "outcome": report.outcome,
        "first_message": first,
        "end_message": end,
        "freed_tokens": report.freed_tokens,
        "summary_tokens": report.summary_tokens,
        "summarizer": report.summarizer,
        "requests": report.requests,
        "failures": [one.code for one in report.failures],
    }


def _told(reports: list[CompactionReport]) -> None:
    for report in reports[-1:]:
        level = logging.WARNING if report.failures else logging.INFO
        fields = {"event": "satchel.compaction", **_fields(report)}
        _LOG.log(
            level,
            "compaction %s: %d tokens freed, %d requests, failures: %s",
            report.outcome,
            report.freed_tokens,
            report.requests,
            ", ".join(fields["failures"]) or "none",
            extra={"satchel": fields},
        )
