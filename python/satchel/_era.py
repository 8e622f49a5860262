"""One part of a log: from a change of dialect to the next.

The native working set of an era begins with what the era before handed on, and numbers its messages
from there. Outside, every index means the caller's messages. Here are both, and the way between.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter as Tally
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from satchel import _core
from satchel._handover import converted_request, joined_system, opening_of
from satchel.errors import InputError, SatchelError
from satchel.window import Page, Rewrite, StepReport

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from types import TracebackType

    from satchel._damage import Repairs
    from satchel._handover import Opening

__all__ = ["LEVELS", "Era"]

LEVELS: Final[tuple[str, ...]] = ("verbatim", "trimmed", "stub", "gone")


_PIECE: Final = 500
"""Messages of which objects are made at a time."""

CLOSED: Final = -2
"""Stands for the revision of an era that has ended."""


class _Outside:
    """Lets errors name the caller's index; a generator would cost 0.7 us more."""

    __slots__ = ("_era",)

    def __init__(self, era: Era) -> None:
        self._era: Final = era

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        if isinstance(error, SatchelError):
            self._era.name_outside(error)


class Era:
    """A part of a log in one dialect.

    Attributes:
        dialect: the dialect.
        start: the caller's messages before it.
        summary: the newest summary event, of this era or one before; None if there is none.
        opening: what the era before handed on; None for the first.
        shift: what is added to an index inside of a message of its own, for the caller's.
        events: its events with the caller's indices; the first one is all settings.
        repairs: what is done about damage.
        core: the native working set.
        closed: what became of the steps before it, when they were handed on.
        compactions: compactions before it.
    """

    __slots__ = (
        "_carried",
        "_checkpoints",
        "_kept",
        "_lefts",
        "_levels",
        "_pages",
        "_rewrites",
        "_starts",
        "closed",
        "compactions",
        "core",
        "dialect",
        "events",
        "opening",
        "repairs",
        "shift",
        "start",
        "summary",
    )

    core: _core.WorkingSet
    repairs: Repairs

    def __init__(
        self,
        events: Sequence[Mapping[str, Any]],
        *,
        start: int = 0,
        opening: Opening | None = None,
        closed: list[StepReport] | None = None,
        summary: Mapping[str, Any] | None = None,
        checkpoint: str | None = None,
    ) -> None:
        # Of the messages as they were stored: a history that is repaired is another one.
        self._checkpoints: Final = [] if checkpoint is None else ["", checkpoint]
        # Of the era before; ``summary`` goes on from it.
        self._carried: Final = summary
        self.summary = summary
        self.dialect: str = events[0].get("dialect", "")
        self.start: Final = start
        self.opening: Final = opening
        self.shift: Final = start - len(opening.messages if opening else ())
        self.events: tuple[Mapping[str, Any], ...] = tuple(events)
        pins = frozenset(opening.pins if opening else ())
        pinned = {first for first, _, left, _ in (opening.steps if opening else ()) if left in pins}
        self.closed: Final = [
            replace(row, level="verbatim") if row.first in pinned else row for row in closed or ()
        ]
        self.compactions: Final = max((row.compaction for row in self.closed), default=0)
        steps = opening.steps if opening else ()
        self._starts: Final = [first for first, _, _, _ in steps]
        self._kept: Final = [step for step in steps if step[2] < step[3]]
        self._lefts: Final = [left for _, _, left, _ in self._kept]
        self._pages: tuple[int, tuple[Page, ...]] = (-1, ())
        self._levels: tuple[int, Tally[str]] = (-1, Tally())
        self._rewrites: tuple[int, tuple[Rewrite, ...]] = (-1, ())

    def __len__(self) -> int:
        """The caller's messages up to the end of this era."""
        return len(self.core) + self.shift

    @property
    def handed_on(self) -> list[Any]:
        """The messages that it began with."""
        return self.opening.messages if self.opening else []

    @property
    def system(self) -> Any:  # noqa: ANN401 - a provider's own form
        """Instructions of the log that stand outside the messages in this dialect."""
        return self.opening.system if self.opening else None

    @property
    def gone(self) -> tuple[int, tuple[int, int, str] | None] | None:
        """What the native working set begins with."""
        return (len(self.opening.messages), self.opening.gone) if self.opening else None

    @property
    def raw(self) -> list[Any]:
        """The caller's own messages of this era, damaged as they came."""
        given = self.core.messages() if self.repairs.raw is None else self.repairs.raw
        return given[len(self.handed_on) :]

    @property
    def messages(self) -> list[Any]:
        """The messages of this era as they are packed."""
        return self.core.messages()[len(self.handed_on) :]

    def messages_between(self, first: int, end: int) -> list[Any]:
        """Those from place ``first`` of this era up to ``end``; no objects are made of others."""
        size = len(self.handed_on)
        found: list[Any] = []
        # Between the pieces other threads may run.
        for at in range(size + first, size + end, _PIECE):
            found += self.core.messages(at, min(at + _PIECE, size + end))
        return found

    def newest_first(self) -> Iterator[Any]:
        """The messages of this era from its end; no objects are made of those not reached."""
        for at in range(len(self.core) - 1, len(self.handed_on) - 1, -1):
            yield from self.core.messages(at, at + 1)

    # The two calls of every turn name the caller's index in errors without `errors_outside`: a
    # ``try`` costs nothing, and entering a context 0.3 us.

    def append(self, messages: Iterable[object]) -> None:
        """Appends messages; all of them or, on an error, none.

        Raises:
            InputError: as in `WorkingSet.append`.
        """
        try:
            core = self.repairs.append(self.core, messages)
        except SatchelError as error:
            self.name_outside(error)
            raise
        if core is not self.core:  # its past was repaired
            self.core = core
            self.forget()

    def window(self, *, synthesize: bool, query: str | None) -> tuple[list[Any], Any]:
        """The messages and figures of the window at the pending boundary.

        Raises:
            SatchelError: as in `WorkingSet.window`.
        """
        try:
            return self.core.window(synthesize=synthesize, query=query)
        except SatchelError as error:
            self.name_outside(error)
            raise

    def checkpoint(self) -> str | None:
        """The checkpoint that the next native working set may go on from; empty for none.

        None where none are to be kept.
        """
        return self._checkpoints.pop() if self._checkpoints else None

    def checkpointed(self) -> int:
        """The number of the newest checkpoint's compaction; 0 if there is none to be stored."""
        return self.core.checkpointed() if self.repairs.raw is None else 0

    def forget(self) -> None:
        """Forgets what is remembered of the newest window."""
        self._pages, self._levels, self._rewrites = (-1, ()), (-1, Tally()), (-1, ())

    def hand_over(self, dialect: str) -> Opening:
        """What the next era begins with, in its dialect.

        Raises:
            InputError: ``open_calls`` while calls wait for results; ``unknown_dialect``.
        """
        kept, _ = converted_request(self.system, None, self.dialect, dialect)
        opening = opening_of(self.core, self.dialect, dialect)
        return replace(
            opening,
            steps=tuple(
                (self.outside(first), self.outside(end - 1) + 1, left, right)
                for first, end, left, right in opening.steps
            ),
            system=joined_system(dialect, kept, opening.system),
        )

    def rewrites(self, revision: int) -> tuple[Rewrite, ...]:
        """What each compaction up to the window of this revision cost, a pending one included.

        All but the newest stay as they are: a long log has thousands.
        """
        if self._rewrites[0] != revision:
            past, shift = self._rewrites[1][:-1], self.shift
            newer = [Rewrite(*fields) for fields in self.core.rewrites(len(past))]
            newer = [replace(one, at=one.at + shift) for one in newer] if shift else newer
            self._rewrites = (revision, (*past, *newer))
        return self._rewrites[1]

    # --- indices ----------------------------------------------------------------------------------

    def inside(self, index: int) -> int:
        """The index inside of the caller's message ``index``.

        Raises:
            InputError: ``invalid_event`` for one that was not handed on.
        """
        if index >= self.start or self.opening is None:
            return index - self.shift
        at = bisect_right(self._starts, index) - 1
        first, end, left, right = self.opening.steps[at] if at >= 0 else (0, 0, 0, 0)
        if not first <= index < end or left == right:
            message = (
                f"message {index} was paged out before the dialect changed; it can be read only"
            )
            raise InputError(message, code="invalid_event", index=index)
        return min(left + index - first, right - 1)

    def outside(self, index: int) -> int:
        """The caller's index of message ``index`` inside; of its step, if it was handed on."""
        if self.opening is None or index >= len(self.opening.messages):
            return index + self.shift
        first, end, left, _ = self._kept[bisect_right(self._lefts, index) - 1]
        return min(first + index - left, end - 1)

    def event_inside(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """An event with the indices inside."""
        found = dict(event)
        if self.opening is None:
            return found
        if isinstance(found.get("at"), int):
            found["at"] -= self.shift
        if isinstance(found.get("index"), int):
            found["index"] = self.inside(found["index"])
        if found.get("kind") == "summary":
            first, end = found["covers"]
            found["covers"] = [self._inside_or_next(first), self._inside_or_next(end)]
            found["receipts"] = [self._receipt_inside(one) for one in found.get("receipts", ())]
        return found

    def handed_on_events(self) -> list[dict[str, Any]]:
        """The pins and the summary that the era before handed on, as events inside."""
        if self.opening is None:
            return []
        at = len(self.opening.messages)
        pins = [{"kind": "pin", "at": at, "index": index} for index in self.opening.pins]
        if self._carried is None:
            return pins
        receipts = [self._receipt_inside(one) for one in self._carried.get("receipts", ())]
        return [{**self._carried, "at": at, "covers": [0, 0], "receipts": receipts}, *pins]

    def summary_range(self, keep: int) -> tuple[int, int] | None:
        """The caller's messages that a summary may cover if the newest ``keep`` stay."""
        found = self.core.summary_range(keep)
        if found is None:
            return None
        return self.outside(found[0]), self.outside(found[1] - 1) + 1

    def _inside_or_next(self, index: int) -> int:
        """The index inside of message ``index``, or of the next one that was handed on."""
        if index >= self.start or self.opening is None:
            return index - self.shift
        later = (left for first, _, left, _ in self._kept if first >= index)
        return next(later, len(self.opening.messages))

    def _receipt_inside(self, receipt: Mapping[str, Any]) -> dict[str, Any]:
        """A receipt whose message can be looked at inside; of one before, the text alone."""
        message = receipt.get("message")
        known = {key: value for key, value in receipt.items() if key != "message"}
        if isinstance(message, int) and message >= self.start:
            return {**known, "message": message - self.shift}
        return known

    def errors_outside(self) -> _Outside:
        """Lets errors name the caller's index."""
        return _Outside(self)

    def name_outside(self, error: SatchelError) -> None:
        """Raises the error with the caller's index, if it names another one.

        Raises:
            SatchelError: of the same type and code.
        """
        if error.index is None or self.opening is None or error.code == "invalid_event":
            return
        index = self.outside(error.index)
        text = str(error)
        # The core's sentences about a message begin with its index.
        mine = f"message {error.index}"
        if text.startswith((f"{mine} ", f"{mine}:")):
            text = f"message {index}{text.removeprefix(mine)}"
        raise type(error)(
            text, code=error.code, index=index, value=error.value, limit=error.limit
        ) from error.__cause__

    # --- what happened ----------------------------------------------------------------------------

    def rows(self) -> list[StepReport]:
        """What happened to each step of the log up to the end of this era."""
        inside = [StepReport(*row) for row in self.core.explain()]
        if self.opening is None:
            return inside
        size = len(self.opening.messages)
        found: list[StepReport] = []
        handed_on = {step[0]: step for step in self.opening.steps}
        at = 0
        for row in self.closed:
            step = handed_on.get(row.first)
            pieces: list[StepReport] = []
            while step is not None and at < len(inside) and inside[at].first < step[3]:
                pieces.append(inside[at])
                at += 1
            found.append(self._now(row, pieces))
        found += [self._renumbered(row) for row in inside[at:] if row.first >= size]
        return found

    def columns(self) -> dict[str, Any]:
        """The same as numpy arrays by name, as the native working set gives them."""
        arrays = self.core.columns()
        if self.opening is None:
            return arrays
        rows = self.rows()
        found: dict[str, Any] = {}
        for name, array in arrays.items():
            names = _core.column_names.get(name)
            values = [getattr(row, name) for row in rows]
            if names is not None:
                numbers = {text: number for number, text in enumerate(names)}
                values = [numbers[value] for value in values]
            found[name] = array.__class__((len(rows),), array.dtype)
            found[name][:] = values
        return found

    def _now(self, row: StepReport, pieces: Iterable[StepReport]) -> StepReport:
        """The row of a step that was handed on as these pieces; none if it was gone before."""
        pieces = list(pieces)
        if not pieces:
            return replace(row, tokens=0)
        lowest = max(pieces, key=lambda piece: LEVELS.index(piece.level))
        level = max(row.level, lowest.level, key=LEVELS.index)
        is_new = lowest.compaction > 0
        return replace(
            row,
            level=level,
            tokens=sum(piece.tokens for piece in pieces),
            salience=lowest.salience,
            reason=lowest.reason if is_new or level == "verbatim" else row.reason,
            compaction=self.compactions + lowest.compaction if is_new else row.compaction,
        )

    def _renumbered(self, row: StepReport) -> StepReport:
        number = row.compaction + self.compactions if row.compaction else 0
        return replace(
            row, first=row.first + self.shift, end=row.end + self.shift, compaction=number
        )

    def levels(self, revision: int, figures: Sequence[int]) -> dict[str, int]:
        """Steps by level, of the figures that the native working set gives.

        Steps that were handed on may have become several, so these are looked at again whenever
        older ones may have changed.
        """
        verbatim, trimmed, stub, gone = figures
        counts = {"verbatim": verbatim, "trimmed": trimmed, "stub": stub, "gone": gone}
        if self.opening is None:
            return counts
        if self._levels[0] != revision:
            size = len(self.opening.messages)
            of_all = Tally(row.level for row in self.rows()[: len(self.closed)])
            inside = (StepReport(*row) for row in self.core.explain())
            of_all.subtract(row.level for row in inside if row.first < size)
            if self.opening.gone is not None:
                of_all["gone"] -= self.opening.gone[0]
            self._levels = (revision, of_all)
        return {level: counts[level] + self._levels[1][level] for level in LEVELS}

    def pages(self, revision: int) -> tuple[Page, ...]:
        """What the window of this revision points to."""
        if self._pages[0] != revision:
            pages = [Page(*page) for page in self.core.pointers()]
            if self.opening is not None:
                pages = [
                    page
                    if page.message is None
                    else replace(page, message=self.outside(page.message))
                    for page in pages
                ]
            self._pages = (revision, tuple(pages))
        return self._pages[1]
