"""A summary without a model: the lines that matter most, word for word.

The default, and the last resort when a model fails. Deterministic. It invents nothing, so it needs
no check; what it leaves out is behind pointers like everything that a summary covers.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from heapq import nsmallest
from typing import TYPE_CHECKING, Final

from satchel._giving_way import giving_way
from satchel.summarize.base import SummaryRequest, SummaryResult
from satchel.summarize.prompts import SECTIONS
from satchel.summarize.transcript import read_back

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from satchel.summarize.transcript import Said

__all__ = ["ExtractiveSummarizer", "extract", "is_decision", "is_error", "is_standing"]

_SHORTEST: Final = 3
_LONGEST: Final = 300
"""Characters of a line that may be quoted; longer ones are dumps, and quotes are never cut."""

_MOST_TRIED: Final = 1_000
"""Lines that are tried for a place, the most telling ones first; a summary has a few dozen."""

_HEAD: Final = 40
"""Characters of the beginning of a message, where nothing can be quoted whole."""

_GOAL, _PROGRESS, _DECISIONS, _OPEN, _FACTS, _FILES = range(6)

_DECIDED: Final = re.compile(
    r"\b(?:decid|agreed|agree on|confirm|approv|we will|we'll|i will|i'll|let's|settled)"
    r"|결정|확정|합의|하기로|하겠습니다",
    re.IGNORECASE,
)
_STANDING: Final = re.compile(
    r"\b(?:never|always|must|do not|don't|only|remember|without asking|unless|important)\b"
    r"|반드시|절대|항상|하지 마|잊지 마|중요|금지",
    re.IGNORECASE,
)
_ERROR: Final = re.compile(
    r"\b(?:error|exception|traceback|failed|failure|fatal|panicked)\b|오류|실패|예외", re.IGNORECASE
)
_PATH: Final = re.compile(r"(?<![\w/.])(?:[\w.-]+/)+[\w-]+\.\w{1,8}\b|\b[\w-]{2,}\.[a-z]{1,4}\b")
_NAME: Final = re.compile(
    r"\b(?:\w*\d{2,}\w*|[a-z]+_[a-z_]+|[a-z]+[A-Z]\w+)\b|[\"'`\u201c][^\"'`\u201d]{2,60}[\"'`\u201d]"
)
_MOST_FILES: Final = 12


@dataclass(frozen=True, slots=True)
class _Line:
    """A line that may be quoted."""

    place: int
    section: int
    text: str
    worth: float


class ExtractiveSummarizer:
    """Quotes the most telling lines, under the headings that a model would use."""

    @property
    def name(self) -> str:
        """What reports call it."""
        return "extractive"

    async def summarize(self, request: SummaryRequest, /) -> SummaryResult:
        """The summary; in a thread, since a long conversation takes seconds."""
        return SummaryResult(text=await asyncio.to_thread(extract, request))


def is_standing(text: str) -> bool:
    """Whether a line reads like a standing instruction or a prohibition."""
    return _STANDING.search(text) is not None


def is_decision(text: str) -> bool:
    """Whether a line reads like a decision, an agreement or a commitment."""
    return _DECIDED.search(text) is not None


def is_error(text: str) -> bool:
    """Whether a line speaks of an error."""
    return _ERROR.search(text) is not None


def extract(request: SummaryRequest) -> str:
    """The most telling lines that fit, and those of the summary before; empty if nothing is."""
    said = read_back(request.transcript)
    candidates = [
        *_carried(request),
        *_quoted(said, request.focus, has_before=bool(request.previous)),
    ]
    seen: set[str] = set()
    distinct: list[_Line] = []
    for line in candidates:
        known = line.text.casefold()
        if known not in seen:
            seen.add(known)
            distinct.append(line)
    kept: list[_Line] = []
    # A heading and its line breaks cost about this much.
    left = request.max_tokens
    opened: set[int] = set()
    # Not sorted as a whole: that would hold the interpreter for as long as it takes.
    most = max(_MOST_TRIED, request.max_tokens)
    for line in nsmallest(most, distinct, key=lambda line: (-line.worth, line.place)):
        cost = request.counter.count(line.text) + 3
        if line.section not in opened:
            cost += request.counter.count(SECTIONS[request.language][line.section]) + 3
        if cost <= left:
            left -= cost
            opened.add(line.section)
            kept.append(line)
    text = _rendered(kept, request)
    # Counts of pieces do not add up exactly.
    while kept and not request.counter.fits(text, request.max_tokens):
        kept.remove(min(kept, key=lambda line: (line.worth, -line.place)))
        text = _rendered(kept, request)
    return text or _heads(said, request)


def _heads(said: Sequence[Said], request: SummaryRequest) -> str:
    """How the messages begin, marked as cut, where no whole line fits: the user's first, then new.

    Nothing else can be said of long dumps, and the last resort must not write nothing.
    """
    ranked = sorted(
        (one for one in said if one.text.strip()), key=lambda one: (one.role != "user", -one.index)
    )
    kept: list[_Line] = []
    text = ""
    for place, one in enumerate(ranked):
        words = " ".join(one.text[: _LONGEST * 2].split())[:_HEAD]
        line = _Line(one.index, _PROGRESS, f"{words} \u2026", float(-place))
        longer = _rendered([*kept, line], request)
        if request.counter.fits(longer, request.max_tokens):
            kept.append(line)
            text = longer
        elif kept:
            break
    return text


def _rendered(lines: Sequence[_Line], request: SummaryRequest) -> str:
    found: list[str] = []
    for section, heading in enumerate(SECTIONS[request.language]):
        inside = sorted(
            (line for line in lines if line.section == section), key=lambda line: line.place
        )
        if inside:
            found.append(f"## {heading}")
            found += [f"- {line.text}" for line in inside]
    return "\n".join(found)


def _carried(request: SummaryRequest) -> Iterator[_Line]:
    """The lines of the summary before; each time around they are worth a little less."""
    section = _PROGRESS
    headings = {heading: at for names in SECTIONS.values() for at, heading in enumerate(names)}
    lines = (request.previous or "").splitlines()
    for place, line in enumerate(lines):
        text = line.strip()
        if text.startswith("## "):
            section = headings.get(text[3:].strip(), _PROGRESS)
            continue
        text = text.removeprefix("- ").strip()
        if text and len(text) <= _LONGEST:
            worth = 6.0 if section == _GOAL else 0.9 * _worth(text, "user", section)
            yield _Line(place - len(lines), section, text, worth)


def _quoted(said: Sequence[Said], focus: str | None, *, has_before: bool) -> Iterator[_Line]:
    wanted = set(re.findall(r"\w{3,}", (focus or "").casefold()))
    goal = None if has_before else next((one.index for one in said if one.role == "user"), None)
    place = 0
    files: dict[str, int] = {}
    for number, one in enumerate(giving_way(said)):
        is_last = number == len(said) - 1
        for raw in one.text.splitlines():
            place += 1
            text = " ".join(raw.split())
            if not one.is_speech:
                for path in _PATH.findall(text):
                    files[path] = files.get(path, 0) + 1
            if not _SHORTEST <= len(text) <= _LONGEST:
                continue
            section = _section(text, one, is_goal=one.index == goal, is_last=is_last)
            if section is None:
                continue
            worth = _worth(text, one.role, section)
            if wanted:
                words = set(re.findall(r"\w{3,}", text.casefold()))
                worth += 2.0 * len(wanted & words) / len(wanted)
            yield _Line(place, section, text, worth + 0.5 * number / max(1, len(said)))
    often = sorted(files.items(), key=lambda entry: (-entry[1], entry[0]))[:_MOST_FILES]
    if often:
        yield _Line(place + 1, _FILES, ", ".join(sorted(path for path, _ in often)), 1.6)


def _section(text: str, one: Said, *, is_goal: bool, is_last: bool) -> int | None:
    """Under which heading a line would stand; None if it is not worth quoting at all."""
    if not one.is_speech:
        return _FACTS if one.role == "tool" and _ERROR.search(text) else None
    if one.role == "user":
        if is_goal:
            return _GOAL
        if _STANDING.search(text) or _DECIDED.search(text):
            return _DECISIONS
        return _OPEN if is_last and text.endswith("?") else _FACTS
    if _DECIDED.search(text) or _STANDING.search(text):
        return _DECISIONS
    return _PROGRESS


def _worth(text: str, role: str, section: int) -> float:
    worth = {_GOAL: 6.0, _DECISIONS: 3.0, _OPEN: 2.5, _FACTS: 1.5, _PROGRESS: 1.0, _FILES: 1.6}
    names = min(4, len(_NAME.findall(text)) + len(_PATH.findall(text)))
    said = 1.0 if role == "user" else 0.0
    return worth[section] + said + 0.4 * names + (0.6 if _ERROR.search(text) else 0.0)
