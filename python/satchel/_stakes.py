"""What a step with high stakes relies on: originals that the window only hints at.

A stub or a shortened text makes a claim about its original. The next step relies on it where the
newest user message or the newest step names something that the original holds. Where nothing in the
window holds a name, it relies on the newest original among what is gone that does. Names are the
planner's identifiers: paths, ids, symbols, numbers of three digits or more. Costs time in
proportion to the window and, while a name is not found, to what is gone.
"""

from __future__ import annotations

import json
import math
from collections import Counter as Tally
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from satchel import _core
from satchel._arguments import one_of
from satchel._page_reading import source_of
from satchel.errors import InputError, PageNotFoundError
from satchel.paging import fence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from satchel._era import Era
    from satchel._page_reading import Source
    from satchel.counting import Counter
    from satchel.window import Window

__all__ = ["Claim", "Stakes", "checked_stakes", "claims", "window_with_originals"]

Stakes = Literal["normal", "high"]

_ROUNDS: Final = 4
"""How often a window is looked at again: what comes back may shorten other steps."""

_READABLE: Final = ("text", "call", "result")
_SLACK: Final = 16
"""Tokens of the message or block around a text that comes back: more than any dialect takes."""


@dataclass(frozen=True, slots=True)
class Claim:
    """An original that the next step relies on.

    Attributes:
        pointer: its pointer.
        text: what comes back; None if it can only be read.
        label: where it is from, as the fence around it says.
    """

    pointer: str
    text: str | None
    label: str


def checked_stakes(stakes: Stakes) -> Stakes:
    """The value, if it is one of the two.

    Raises:
        InputError: ``invalid_value``.
    """
    return cast("Stakes", one_of("stakes", stakes, ("normal", "high")))


def claims(eras: Sequence[Era]) -> list[Claim]:
    """What the next step relies on and the newest window does not show, most telling first.

    ``eras`` has the newest first. A name weighs the more, the fewer originals hold it; among equals
    the newest comes first.
    """
    needed, asking = _needed(eras[0])
    held: dict[str, tuple[Claim, set[str]]] = {}
    for era, pointer in _shortened(eras):
        claim, text = _found(era, pointer, is_now=era is eras[0])
        names = needed & set(_names(text))
        if claim is not None and names:
            held.setdefault(claim.pointer, (claim, names))
    # Of what is gone, only names count that nothing in the window holds; the newest of each.
    open_names = needed - _verbatim(eras[0], asking)
    for _, names in held.values():
        open_names -= names
    gone: list[tuple[Claim, set[str]]] = []
    for era, pointer in _gone(eras):
        if not open_names:
            break
        claim, text = _found(era, pointer, is_now=era is eras[0])
        names = open_names & set(_names(text))
        if claim is not None and names:
            open_names -= names
            gone.append((claim, names))
    for claim, names in reversed(gone):
        held.setdefault(claim.pointer, (claim, names))
    shown = eras[0].core.recalls()
    tally = Tally(name for _, names in held.values() for name in names)
    missing = [
        (sum(sorted(1 / tally[name] for name in names)), order, claim)
        for order, (claim, names) in enumerate(held.values())
        if not any(_shows(recall, claim) for recall in shown)
    ]
    missing.sort(key=lambda row: (-row[0], -row[1]))
    return [claim for _, _, claim in missing]


def window_with_originals(
    ask: Callable[[], Window],
    place: Callable[[str], None],
    eras: Callable[[], Sequence[Era]],
    trigger: float | None,
    counter: Counter,
) -> Window:
    """A window with the originals that the next step relies on, as far as they fit.

    Args:
        ask: gives the window as it is.
        place: brings the original behind a pointer back.
        eras: gives the parts of the log.
        trigger: share of the budget above which a compaction happens; None if nothing may be
            placed, since calls wait for results.
        counter: what counts.
    """
    window, missing = ask(), claims(eras())
    for _ in range(_ROUNDS):
        fitting = [] if trigger is None else _fitting_claims(missing, window, trigger, counter)
        if not fitting:
            break
        for claim in fitting:
            place(claim.pointer)
        window, missing = ask(), claims(eras())
    pointers = tuple(claim.pointer for claim in missing)
    report = window.report.model_copy(update={"not_recalled": pointers})
    return replace(window, report=report)


def _fitting_claims(
    missing: Sequence[Claim], window: Window, trigger: float, counter: Counter
) -> list[Claim]:
    """The first of these originals that can come back without a compaction.

    Args:
        missing: the originals, the most telling first.
        window: the window as it is.
        trigger: share of the budget above which a compaction happens.
        counter: what counts.
    """
    room = math.floor(min(trigger, 1.0) * window.budget) - window.tokens_upper
    # Estimates and calibrated counts are above the counter's own.
    scale = max(1.0, window.tokens_upper / max(1, window.tokens))
    fitting: list[Claim] = []
    for claim in missing:
        tokens = _cost_of(claim, counter, scale) if claim.text is not None else room + 1
        if tokens <= room:
            fitting.append(claim)
            room -= tokens
    return fitting


def _cost_of(claim: Claim, counter: Counter, scale: float) -> int:
    """The most tokens that a claim's original takes in the window, times ``scale``."""
    return math.ceil(counter.count(fence(claim.label, claim.text or "")) * scale) + _SLACK


def _shortened(eras: Sequence[Era]) -> Iterator[tuple[Era, str]]:
    """Pointers of the window, oldest first; of the parts before, those handed on with a step."""
    for era in reversed(eras):
        handed_on = ""
        if era is not eras[0]:
            handed_on = json.dumps(eras[0].handed_on, default=str)
        for pointer, message, _ in era.core.pointers():
            if message is not None and (era is eras[0] or pointer in handed_on):
                yield era, pointer


def _gone(eras: Sequence[Era]) -> Iterator[tuple[Era, str]]:
    """Pointers of everything that is gone, newest first."""
    for era in eras:
        for pointer, _ in reversed(era.core.gone_pages()):
            yield era, pointer


def _found(era: Era, pointer: str, *, is_now: bool) -> tuple[Claim | None, str]:
    """The original behind a pointer, with its text; of a copy of a page, that page."""
    source = source_of([era], pointer)
    while source.copied is not None:
        earlier = source.copied.get("pointer")
        try:
            original = source_of([era], earlier if isinstance(earlier, str) else "")
        except (PageNotFoundError, InputError):
            break
        if original.message is None or original.message >= (source.message or 0):
            break
        source = original
    if source.kind not in _READABLE:
        return None, ""
    text = era.core.page_in(source.pointer, pattern=None, lines=None) if is_now else None
    return Claim(source.pointer, text, _label(era, source)), source.text


def _label(era: Era, source: Source) -> str:
    """The source as the fold writes it, which numbers messages from the start of the part."""
    inside = era.core.page_source(source.pointer)[1]
    return f"message {inside}, {source.role}, page {source.pointer}"


def _shows(recall: str, claim: Claim) -> bool:
    """Whether a text that was brought back is all of this original."""
    if claim.text is None:
        return False
    head, _, body = recall.partition("\n")
    content = body.rpartition("</")[0]
    whole = len(claim.text) + (0 if claim.text.endswith("\n") else 1)
    return f'source="{claim.label}"' in head and len(content) >= whole


def _needed(era: Era) -> tuple[set[str], set[int]]:
    """Names in the newest user message and in the newest step, and the messages of both."""
    length = len(era.core)
    if not length:
        return set(), set()
    [newest] = era.core.explain(length - 1)
    wanted = set(range(newest[0], length))
    for at in range(length - 1, -1, -1):
        [message] = era.core.messages(at, at + 1)
        described = _core.describe_message(message, era.dialect)
        if described["role"] == "user" and any(
            part["kind"] == "text" for part in described["parts"]
        ):
            wanted.add(at)
            break
    needed = (message for at in wanted for message in era.core.messages(at, at + 1))
    return {name for message in needed for name in _names_in(era, message)}, wanted


def _verbatim(era: Era, asking: set[int]) -> set[str]:
    """Names that the window shows as they were said, apart from the messages that ask."""
    found = {
        name
        for row in era.core.explain()
        if row[3] == "verbatim"
        for at, message in enumerate(era.core.messages(row[0], row[1]), row[0])
        if at not in asking
        for name in _names_in(era, message)
    }
    return found.union(*(_names(recall) for recall in era.core.recalls()))


def _names_in(era: Era, message: object) -> Iterator[str]:
    for part in _core.describe_message(message, era.dialect)["parts"]:
        if part["kind"] in _READABLE:
            yield from _names(_read(part))


def _read(part: dict[str, Any]) -> str:
    return bytes(part["page"]).decode("utf-8", "replace")


def _names(text: str) -> Iterator[str]:
    """The identifiers of a text, by which the planner values lines too."""
    return iter(_core.identifiers_of(text))
