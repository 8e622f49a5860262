"""Working memory that the model keeps itself, at the end of each answer.

The model is told to end its answers with a block that says where the work stands. Here are the
instruction for it, a parser, and what takes the block out of the text that a user sees, also while
it is still being streamed. A block that is missing or malformed changes nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar, Final

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from satchel.summarize.base import Language

__all__ = ["BlockStripper", "SelfSummary", "instruction", "parse", "strip"]

OPEN: Final = "<working-state>"
"""What a block begins with."""

CLOSE: Final = "</working-state>"
"""What it ends with."""

_BLOCK: Final = re.compile(
    rf"{re.escape(OPEN)}((?:(?!{re.escape(OPEN)}).)*?){re.escape(CLOSE)}", re.DOTALL
)
_MOST_CHARS: Final = 8_000
"""A longer block is no summary; it is taken out and not believed."""

_FIELDS: Final[Mapping[str, str]] = {
    "goal": "goal",
    "progress": "progress",
    "open": "open_points",
    "decisions": "decisions",
    "목표": "goal",
    "진행": "progress",
    "남은 일": "open_points",
    "결정": "decisions",
}

_INSTRUCTION: Final[Mapping[Language, str]] = {
    "en": (
        "End every answer with a block in exactly this form. It is your own memory: users do not "
        "see it, and older messages may be gone next time. Write a few short lines under each "
        "heading, leave a heading empty if there is nothing to say, and write nothing behind the "
        f"block.\n\n{OPEN}\nGoal:\n- what you were asked to achieve\nProgress:\n- what is done\n"
        f"Open:\n- what is still to be done or answered\nDecisions:\n- what was settled\n{CLOSE}"
    ),
    "ko": (
        "모든 답변을 아래와 똑같은 형식의 블록으로 끝내세요. 이것은 당신 자신의 기억입니다. "
        "사용자에게는 보이지 않으며, 다음에는 오래된 메시지가 없을 수 있습니다. 각 제목 아래에 "
        "짧게 몇 줄만 쓰고, 쓸 것이 없으면 비워 두고, 블록 뒤에는 아무것도 쓰지 마세요.\n\n"
        f"{OPEN}\n목표:\n- 맡은 일\n진행:\n- 끝낸 일\n남은 일:\n- 아직 하거나 답해야 할 것\n결정:\n"
        f"- 정해진 것\n{CLOSE}"
    ),
}


class SelfSummary(BaseModel):
    """What a block says.

    Attributes:
        goal: what the work is for, a line each.
        progress: what is done.
        open_points: what is not.
        decisions: what was settled.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    goal: tuple[str, ...] = ()
    progress: tuple[str, ...] = ()
    open_points: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()

    def render(self, language: Language = "en") -> str:
        """The block as text, to be put into the next request."""
        names = dict(zip(("en", "ko"), _headings(), strict=True))[language]
        lines: list[str] = [OPEN]
        for heading, field in names.items():
            lines.append(f"{heading}:")
            lines += [f"- {point}" for point in getattr(self, field)]
        return "\n".join([*lines, CLOSE])


def instruction(language: Language = "en") -> str:
    """What the model is told, for the end of the system prompt."""
    return _INSTRUCTION[language]


def parse(text: str, before: SelfSummary | None = None) -> SelfSummary | None:
    r"""What the last whole block in an answer says; ``before`` if there is none to be read.

    Example:
        >>> answer = "Done.\n<working-state>\nGoal:\n- tests\nOpen:\n- docs\n</working-state>"
        >>> parse(answer).open_points
        ('docs',)
    """
    blocks = _BLOCK.findall(text)
    if not blocks or len(blocks[-1]) > _MOST_CHARS:
        return before
    found: dict[str, list[str]] = {}
    field: str | None = None
    for raw in blocks[-1].splitlines():
        line = raw.strip()
        heading, colon, rest = line.partition(":")
        named = _FIELDS.get(heading.strip(" #*").casefold()) if colon else None
        if named is not None:
            field = named
            found.setdefault(field, [])
            line = rest.strip()
        point = line.removeprefix("-").strip()
        if point and field is not None:
            found[field].append(point)
    if not any(found.values()):
        return before
    return SelfSummary.model_validate({name: tuple(points) for name, points in found.items()})


def strip(text: str) -> str:
    """The answer without its blocks, whole or broken off: what a user sees."""
    stripper = BlockStripper()
    return (stripper.feed(text) + stripper.finish()).rstrip()


class BlockStripper:
    """Takes blocks out of an answer that comes piece by piece.

    Example:
        >>> stripper = BlockStripper()
        >>> [stripper.feed(piece) for piece in ("Done. <work", "ing-state>Goal", ": x")]
        ['Done. ', '', '']
    """

    __slots__ = ("_inside", "_pending")

    def __init__(self) -> None:
        self._pending = ""
        self._inside = False

    def feed(self, piece: str) -> str:
        """What of the answer can be shown now."""
        self._pending += piece
        shown: list[str] = []
        while True:
            mark = CLOSE if self._inside else OPEN
            at = self._pending.find(mark)
            if at < 0:
                break
            if not self._inside:
                shown.append(self._pending[:at])
            self._pending = self._pending[at + len(mark) :]
            self._inside = not self._inside
        # The beginning of a mark may be all that has come of it.
        held = _overlap(self._pending, CLOSE if self._inside else OPEN)
        if not self._inside:
            shown.append(self._pending[: len(self._pending) - held])
        self._pending = self._pending[len(self._pending) - held :]
        return "".join(shown)

    def finish(self) -> str:
        """What is left at the end; of a block that was broken off nothing."""
        rest = "" if self._inside else self._pending
        self._pending = ""
        return rest


def _overlap(text: str, mark: str) -> int:
    """Length of the longest end of ``text`` that ``mark`` begins with."""
    for length in range(min(len(text), len(mark) - 1), 0, -1):
        if text.endswith(mark[:length]):
            return length
    return 0


def _headings() -> tuple[dict[str, str], dict[str, str]]:
    names = list(_FIELDS.items())
    half = len(names) // 2
    english = {name.capitalize(): field for name, field in names[:half]}
    return english, dict(names[half:])
