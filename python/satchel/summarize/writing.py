"""From a part of a conversation to a summary that is worth having, whatever summarizers do.

A summarizer may fail, stall, lie or write too much. Here is what is done about each: a time limit,
a bounded number of tries with growing pauses, the next summarizer of the chain, and at its end the
extractive one, which cannot fail. A text counts as a summary only if it is smaller than what it
stands for and not a copy of it.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from satchel._compaction_report import Attempt
from satchel._giving_way import giving_way
from satchel.errors import InputError, SatchelError, SummaryError
from satchel.summarize.base import (
    SuffixRequest,
    SuffixSummarizer,
    SummaryRequest,
    SummaryResult,
)
from satchel.summarize.extractive import ExtractiveSummarizer, extract
from satchel.summarize.prompts import (
    has_heading,
    instructions,
    request_text,
    suffix_instruction,
)
from satchel.summarize.transcript import chunks, language_of, said_in, transcript_of
from satchel.telemetry import observed_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from satchel.counting import Counter
    from satchel.summarize.base import Language, Summarizer
    from satchel.summarize.transcript import Said
    from satchel.usage import Usage

__all__ = ["Attempt", "LivePrefix", "Patience", "Written", "write_summary"]

_Request = TypeVar("_Request", SummaryRequest, SuffixRequest)

_COPIED_SHARE: Final = 0.8
_SHINGLE_WORDS: Final = 8
_LEAST_SHINGLES: Final = 12
_LEAST_INPUT_TOKENS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a summary is waited for.

    Attributes:
        timeout_s: seconds for one answer.
        attempts: how often one summarizer is asked for one piece, at least 1.
        backoff_s: seconds before the second try; twice as many before each further one.
    """

    timeout_s: float = 60.0
    attempts: int = 2
    backoff_s: float = 0.5

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.timeout_s <= 0 or self.backoff_s < 0:
            message = (
                f"attempts is {self.attempts}, timeout_s {self.timeout_s}, backoff_s "
                f"{self.backoff_s}: must be at least 1, above 0 and at least 0"
            )
            raise InputError(message, code="invalid_value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A summary.

    Attributes:
        text: the summary.
        summarizer: the name of the one that wrote it.
        tokens: its tokens.
        source_tokens: tokens of what it stands for.
        requests: how many requests were made.
        failures: the tries that gave none.
        usage: what all requests cost, as far as providers said.
    """

    text: str
    summarizer: str
    tokens: int
    source_tokens: int
    requests: int
    failures: tuple[Attempt, ...]
    usage: Usage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePrefix:
    """The newest request of a conversation, which the provider has in its cache.

    Attributes:
        call: its arguments, as ``Window.as_kwargs`` gave them.
        dialect: their dialect.
        kept: its newest messages that no summary covers.
    """

    call: Mapping[str, Any]
    dialect: str
    kept: int


class _Journal:
    """What was tried so far."""

    def __init__(self) -> None:
        self.requests = 0
        self.failures: list[Attempt] = []
        self.usage: Usage | None = None

    def add(self, usage: Usage | None) -> None:
        if usage is not None:
            parts = zip(self.usage or (0, 0, 0, 0), usage, strict=True)
            self.usage = type(usage)(*map(sum, parts))


async def write_summary(
    messages: Iterable[Any],
    dialect: str,
    *,
    first: int,
    previous: str | None,
    chain: Sequence[Summarizer],
    counter: Counter,
    max_tokens: int,
    focus: str | None = None,
    language: Language | None = None,
    patience: Patience | None = None,
    live: LivePrefix | None = None,
) -> Written:
    """The summary of these messages, going on from the one before.

    Args:
        messages: what it is to cover, oldest first.
        dialect: their dialect.
        first: raw index of the first of them.
        previous: the summary of what came before; None if there is none.
        chain: who is asked, one after the other until one writes a usable summary.
        counter: counts source and summary.
        max_tokens: the most tokens of the summary.
        focus: what it should dwell on.
        language: None to follow the conversation.
        patience: how long answers are waited for.
        live: the newest request of the conversation: who can is asked at its end first, and by a
            request of its own only if what comes back is no summary.

    Raises:
        SummaryError: ``summary_failed`` if nobody in the chain wrote one; the message says what
            each did.
        InputError: ``invalid_message``.
    """
    patience = patience or Patience()
    # Rendering and counting are native or plain text work of milliseconds to seconds.
    elements, told = await asyncio.to_thread(_prepared, list(messages), dialect, first, counter)
    # Of the pieces and their line breaks; joined they would be megabytes to copy.
    source_tokens = int((await asyncio.to_thread(counter.count_many, elements)).sum())
    source_tokens += len(elements)
    if previous is not None:
        source_tokens += await asyncio.to_thread(counter.count, previous)
    request = SummaryRequest(
        transcript="",
        previous=previous,
        max_tokens=max_tokens,
        language=language or told,
        focus=focus,
        counter=counter,
    )
    journal = _Journal()
    for summarizer in chain:
        text = None
        if live is not None:
            text = await _ask_live(
                summarizer, live, request, elements, source_tokens, patience, journal
            )
        if text is None:
            text = await _ask(summarizer, request, elements, source_tokens, patience, journal)
        if text is not None:
            return Written(
                text=text,
                summarizer=_name(summarizer),
                tokens=await asyncio.to_thread(counter.count, text),
                source_tokens=source_tokens,
                requests=journal.requests,
                failures=tuple(journal.failures),
                usage=journal.usage,
            )
    tried = "; ".join(f"{one.summarizer}: {one.message}" for one in journal.failures)
    message = f"no usable summary ({tried or 'nobody was asked'})"
    raise SummaryError(message, code="summary_failed", value=journal.requests)


def _prepared(
    messages: list[Any], dialect: str, first: int, counter: Counter
) -> tuple[list[str], Language]:
    spoken: list[str] = []

    def noted() -> Iterator[Said]:
        # One at a time: ten thousand objects at once would be the garbage collector's to walk.
        for one in said_in(messages, dialect, first=first):
            if one.role == "user":
                spoken.append(one.text)
            yield one

    return transcript_of(noted(), counter), language_of(spoken)


def _name(summarizer: Summarizer) -> str:
    name: object = getattr(summarizer, "name", None)
    return name if isinstance(name, str) else type(summarizer).__name__


async def _ask(  # noqa: PLR0917 - one step of a loop, in a file of its own topic
    summarizer: Summarizer,
    request: SummaryRequest,
    elements: Sequence[str],
    source_tokens: int,
    patience: Patience,
    journal: _Journal,
) -> str | None:
    """A usable summary by one summarizer, piece by piece; None if it gave none."""
    is_own = isinstance(summarizer, ExtractiveSummarizer)
    pieces = await asyncio.to_thread(_fitting, summarizer, request, elements)
    text = request.previous
    try:
        for piece in pieces:
            asked = replace(request, transcript=piece, previous=text)
            text = await _answer(summarizer, summarizer.summarize, asked, patience, journal)
        if text is None:
            return None
        if not is_own:
            await asyncio.to_thread(_check, text, request, elements, source_tokens)
        if not await asyncio.to_thread(request.counter.fits, text, request.max_tokens):
            text = await _shortened(summarizer, request, text, patience, journal)
    except SummaryError as error:
        journal.failures.append(
            Attempt(summarizer=_name(summarizer), code=error.code, message=str(error))
        )
        return None
    return text if text.strip() else None


async def _ask_live(  # noqa: PLR0917 - as `_ask`
    summarizer: Summarizer,
    live: LivePrefix,
    request: SummaryRequest,
    elements: Sequence[str],
    source_tokens: int,
    patience: Patience,
    journal: _Journal,
) -> str | None:
    """A usable summary written at the end of the live conversation; None if there is none."""
    if not isinstance(summarizer, SuffixSummarizer) or summarizer.suffix_dialect != live.dialect:
        return None
    asked = SuffixRequest(
        call=live.call,
        dialect=live.dialect,
        instruction=suffix_instruction(
            request.language, kept=live.kept, max_tokens=request.max_tokens, focus=request.focus
        ),
        max_tokens=request.max_tokens,
    )
    try:
        # Once: where this fails, the request of its own is the second try.
        once = replace(patience, attempts=1)
        text = await _answer(summarizer, summarizer.summarize_suffix, asked, once, journal)
        if not has_heading(text):
            message = "it went on with the conversation instead of writing the summary"
            raise SummaryError(message, code="summary_malformed")  # noqa: TRY301 - one way out
        await asyncio.to_thread(_check, text, request, elements, source_tokens)
        if not await asyncio.to_thread(request.counter.fits, text, request.max_tokens):
            text = await _shortened(summarizer, request, text, patience, journal)
    except SummaryError as error:
        name = f"{_name(summarizer)}, at the end of the conversation"
        journal.failures.append(Attempt(summarizer=name, code=error.code, message=str(error)))
        return None
    return text


def _fitting(summarizer: Summarizer, request: SummaryRequest, elements: Sequence[str]) -> list[str]:
    """The transcript in pieces that the summarizer can read."""
    limit: object = getattr(summarizer, "input_tokens", None)
    if not isinstance(limit, int):
        return ["\n".join(elements)] if elements else []
    around = request.counter.count(instructions(request)) + request.counter.count(
        request_text(replace(request, transcript=".", previous="."))
    )
    # The summary so far stands before each piece. A tenth for what the counts leave out.
    room = int(0.9 * limit) - around - request.max_tokens
    return chunks(elements, request.counter, max(room, _LEAST_INPUT_TOKENS // 4))


async def _answer(
    summarizer: Summarizer,
    ask: Callable[[_Request], Awaitable[SummaryResult]],
    request: _Request,
    patience: Patience,
    journal: _Journal,
) -> str:
    """One answer, asked for again as long as that may help.

    Raises:
        SummaryError: the last one.
    """
    pause, attempt = patience.backoff_s, 0
    said = request.transcript if isinstance(request, SummaryRequest) else request.instruction
    while True:
        attempt += 1
        journal.requests += 1
        try:
            with observed_request(_name(summarizer), request.max_tokens, said) as answers:
                async with asyncio.timeout(patience.timeout_s):
                    result = await ask(request)
                text = _text_of(result, journal)
                answers.append((text, result.usage))
        except TimeoutError:
            error = SummaryError(f"no answer within {patience.timeout_s} s", code="summary_timeout")
        except SummaryError as known:
            error = known
            if known.code in ("summary_refused", "summary_failed"):
                raise
        except SatchelError as own:
            raise SummaryError(str(own), code="summary_failed") from own
        except Exception as unknown:
            # A summarizer of the caller's may raise anything; the history must survive it.
            message = f"it raised {type(unknown).__name__}"
            raise SummaryError(message, code="summary_failed") from unknown
        else:
            return text
        if attempt == patience.attempts:
            raise error
        await asyncio.sleep(pause)
        pause *= 2


def _text_of(result: SummaryResult, journal: _Journal) -> str:
    known: Any = result  # whatever a summarizer of the caller's returned
    if not isinstance(known, SummaryResult) or not isinstance(known.text, str):
        message = f"it returned {type(result).__name__}, not a SummaryResult with a text"
        raise SummaryError(message, code="summary_failed")
    journal.add(result.usage)
    # A text that no provider takes would spoil every window it stands in.
    text = result.text.encode("utf-8", "replace").decode().replace("\0", "").strip()
    if not text:
        message = "it wrote nothing"
        raise SummaryError(message, code="summary_empty")
    return text


async def _shortened(
    summarizer: Summarizer,
    request: SummaryRequest,
    text: str,
    patience: Patience,
    journal: _Journal,
) -> str:
    """A summary above its limit, written once more by its author; failing that, its best lines."""
    shorter = text
    if not isinstance(summarizer, ExtractiveSummarizer):
        again = replace(request, transcript="", previous=text)
        try:
            once = replace(patience, attempts=1)
            shorter = await _answer(summarizer, summarizer.summarize, again, once, journal)
        except SummaryError as error:
            journal.failures.append(
                Attempt(summarizer=_name(summarizer), code=error.code, message=str(error))
            )
    if await asyncio.to_thread(request.counter.fits, shorter, request.max_tokens):
        return shorter
    best = await asyncio.to_thread(
        extract, replace(request, transcript="", previous=shorter, focus=None)
    )
    return best or await asyncio.to_thread(request.counter.truncate, shorter, request.max_tokens)


def _check(text: str, request: SummaryRequest, elements: Sequence[str], source_tokens: int) -> None:
    """Refuses what is no summary.

    Raises:
        SummaryError: ``summary_not_smaller``.
    """
    tokens = request.counter.count(text)
    if tokens >= source_tokens:
        message = f"the summary has {tokens} tokens, what it stands for {source_tokens}"
        raise SummaryError(message, code="summary_not_smaller", value=tokens, limit=source_tokens)
    shingles = list(_shingles(text))
    if len(shingles) < _LEAST_SHINGLES or 2 * tokens < source_tokens:
        return
    known = {one for element in giving_way(elements) for one in _shingles(element)}
    copied = sum(one in known for one in shingles) / len(shingles)
    if copied > _COPIED_SHARE:
        message = f"{copied:.0%} of the summary is copied from what it stands for"
        raise SummaryError(message, code="summary_not_smaller")


def _shingles(text: str) -> Iterable[bytes]:
    words = text.split()
    for start in range(len(words) - _SHINGLE_WORDS + 1):
        run = " ".join(words[start : start + _SHINGLE_WORDS]).encode("utf-8", "replace")
        yield hashlib.blake2b(run, digest_size=8).digest()
