"""The tables of the command line, for people.

Every text that comes from a file is a ``Text`` of printable characters, so neither rich markup nor
terminal escapes in it mean anything.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Final

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from satchel._cli_text import message_line, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel._cli_commands import FileCount, Packed
    from satchel.assembler import StepReport

__all__ = ["print_counts", "print_window", "progress_bar"]

_STYLES: Final = {
    "verbatim": "green",
    "trimmed": "yellow",
    "stub": "magenta",
    "gone": "bright_black",
}
_MARKS: Final = {"verbatim": "█", "trimmed": "▓", "stub": "▒", "gone": "░"}
_FIDELITIES: Final = {"approximate": "approx."}
_PIPE_WIDTH: Final = 120  # cells, where there is no terminal to ask
_WIDE: Final = 100  # cells; a narrower terminal gets fewer columns
_LONGEST: Final = 240  # characters of a text that are handed to rich, which cuts it by cells
_LONGEST_BAR: Final = 60  # cells
_BESIDE_BAR: Final = 40  # cells of its label and figures
_STEP_TITLES: Final = (
    "messages",
    "role",
    "level",
    "tokens",
    "of",
    "salience",
    "fidelity",
    "reason",
    "begins with",
)
_NUMBERS: Final = frozenset({"messages", "tokens", "of", "salience"})
_NARROWEST: Final = 12  # cells that the column which gives way keeps


def print_counts(counts: Sequence[FileCount], total: FileCount) -> None:
    """One row per file and a total."""
    every = [*counts, total] if len(counts) > 1 else [*counts]
    single = len(total.encodings) == 1
    columns = [
        _Column("file", [Text(printable(one.file)) for one in every], left=True, keep_end=True),
        _Column.figures("conversations", every, "conversations"),
        _Column.figures("messages", every, "messages"),
        _Column.figures("in messages", every, "message_tokens"),
        _Column.figures("system", every, "system_tokens"),
        _Column.figures("tools", every, "tools_tokens"),
        _Column.figures("overhead", every, "overhead_tokens"),
        _Column.figures("tokens", every, "total"),
        _Column.figures("at most", every, "upper"),
        _Column("count", [_certainty(one, named=not single) for one in every], left=True),
    ]
    console = _console()
    left_out: set[str] = (
        set() if console.width >= _WIDE else {"in messages", "system", "tools", "overhead"}
    )
    if total.upper == total.total:
        left_out.add("at most")
    if all(counted.conversations == 1 for counted in counts):
        left_out.add("conversations")
    columns = [column for column in columns if column.title not in left_out]
    _print_table(console, columns, elastic=0, footer=len(counts) > 1)
    if single:
        console.print(Text(f"\ncounted with {total.encodings[0]}", style="bright_black"))


def print_window(packed: Packed, *, most_rows: int) -> None:
    """What happened to each step, then the totals."""
    console = _console()
    console.print(_heading(packed), no_wrap=True, overflow="ellipsis")
    rows = [
        _hidden_row(step) if isinstance(step, int) else _step_row(step, packed)
        for step in _middle_left_out(packed.steps, most_rows)
    ]
    columns = [
        _Column(title, [row[position] for row in rows], left=title not in _NUMBERS)
        for position, title in enumerate(_STEP_TITLES)
    ]
    if console.width < _WIDE:
        del columns[-1]
    _print_table(console, columns, elastic=len(columns) - 1)
    if len(rows) < len(packed.steps):
        console.print(Text("--rows 0 shows all of them", style="italic"))
    console.print()
    bar_width = min(_LONGEST_BAR, max(_NARROWEST, console.width - _BESIDE_BAR))
    for label, line in _totals(packed, bar_width):
        console.print(Text(f"{label:<15}", style="bright_black").append_text(line))


def progress_bar() -> Progress:
    """A progress bar of bytes on standard error, which it leaves clean."""
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    )


def _console() -> Console:
    terminal = sys.stdout.isatty()
    return Console(
        markup=False,
        emoji=False,
        highlight=False,
        soft_wrap=False,
        width=None if terminal else _PIPE_WIDTH,
    )


@dataclass(frozen=True, slots=True)
class _Column:
    """A title and its cells; numbers stand to the right, names of files are cut at their front."""

    title: str
    cells: list[Text]
    left: bool = False
    keep_end: bool = False

    @classmethod
    def figures(cls, title: str, counts: Sequence[FileCount], attribute: str) -> _Column:
        """A column of one figure of each count."""
        return cls(title, [Text(f"{getattr(counted, attribute):,}") for counted in counts])


def _print_table(
    console: Console, columns: list[_Column], *, elastic: int, footer: bool = False
) -> None:
    """Prints the columns; the one at ``elastic`` gives way where the terminal is too narrow.

    With a footer the last cell of each column stands below the others.
    """
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),  # with the box's own blank: two cells between columns
        pad_edge=False,
        show_footer=footer,
    )
    widths = [
        max([cell_len(column.title), *(cell.cell_len for cell in column.cells)])
        for column in columns
    ]
    others = sum(widths) - widths[elastic] + 2 * (len(widths) - 1)
    widths[elastic] = min(widths[elastic], max(_NARROWEST, console.width - others))
    for column, width in zip(columns, widths, strict=True):
        for cell in column.cells:
            _cut(cell, width, keep_end=column.keep_end)
        table.add_column(
            column.title,
            justify="left" if column.left else "right",
            width=width,
            no_wrap=True,
            footer=column.cells.pop() if footer else "",
        )
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    console.print(table)


def _cut(cell: Text, width: int, *, keep_end: bool) -> None:
    """Cuts a cell to so many terminal cells, with an ellipsis where something is missing."""
    if not keep_end:
        cell.truncate(width, overflow="ellipsis")
        return
    plain = cell.plain
    start = 0
    while cell_len(plain[start:]) > (width if start == 0 else width - 1):
        start += 1
    if start:
        cell.plain = f"…{plain[start:]}"


def _shown(text: str, style: str = "") -> Text:
    return Text(printable(text)[:_LONGEST], style=style)


# --- the table of steps ---------------------------------------------------------------------------


def _middle_left_out(steps: list[StepReport], most_rows: int) -> list[StepReport | int]:
    """At most so many steps, the first and the last; between them, how many there are more."""
    if most_rows == 0 or len(steps) <= most_rows:
        return [*steps]
    head = most_rows // 2
    tail = len(steps) - (most_rows - head)
    return [*steps[:head], tail - head, *steps[tail:]]


def _step_row(step: StepReport, packed: Packed) -> list[Text]:
    style = _STYLES.get(step.level, "")
    gone = step.level == "gone"
    last = step.end - 1
    place = f"{step.first}" if last == step.first else f"{step.first}-{last}"
    fidelity = _FIDELITIES.get(step.fidelity, step.fidelity)
    begin = message_line(packed.chosen.conversation.messages[step.first])
    return [
        Text(place),
        _shown(step.role),
        Text(f"{_MARKS.get(step.level, ' ')} {step.level}", style=style),
        Text(f"{step.tokens:,}", style="bright_black" if gone else "bold"),
        Text(f"{step.original_tokens:,}", style="bright_black"),
        Text(f"{step.salience:.2f}"),
        Text(fidelity),
        _shown(step.reason),
        _shown(begin, style="bright_black" if gone else ""),
    ]


def _hidden_row(steps: int) -> list[Text]:
    note = Text(f"{steps:,} more", style="italic")
    return [note, *(Text("") for _ in _STEP_TITLES[1:])]


# --- heading and totals ---------------------------------------------------------------------------


def _heading(packed: Packed) -> Text:
    found = packed.window
    heading = Text("\n")
    heading.append(printable(packed.chosen.file), style="bold")
    if packed.chosen.of > 1:
        heading.append(f", conversation {packed.chosen.number:,} of {packed.chosen.of:,}")
    title = packed.chosen.conversation.metadata.get("title")
    if isinstance(title, str) and title:
        heading.append(": ").append_text(_shown(title[:_LONGEST]))
    heading.append(
        f"\n{printable(found.report.model)}, dialect {found.dialect}, "
        f"policy {printable(found.report.policy)}, counted with {packed.counter.encoding}"
    )
    return heading


def _totals(packed: Packed, bar_width: int) -> list[tuple[str, Text]]:
    found = packed.window
    report = found.report
    before = packed.tokens_before
    saved = 1 - found.tokens / before if before else 0.0
    in_steps = sum(step.tokens for step in packed.steps)
    rest = found.tokens - in_steps - report.system_tokens - report.tools_tokens
    tokens = Text(f"{before:,} -> ").append(f"{found.tokens:,}", style="bold")
    tokens.append(f", {int(100 * saved)}% saved" if saved > 0 else "")
    tokens.append("" if found.exact else f" (estimate; at most {found.tokens_upper:,})")
    share = found.tokens_upper / found.budget
    levels = Text(", ").join(
        Text(f"{steps:,} {level}", style=_STYLES.get(level, "") if steps else "")
        for level, steps in report.steps.items()
    )
    parts = (
        f"{in_steps:,} steps, {report.system_tokens:,} system, {report.tools_tokens:,} tools, "
        f"{rest:,} index page and overhead"
    )
    return [
        ("tokens", tokens),
        ("budget", _bar(packed, bar_width).append(f" {share:.0%} of {found.budget:,}")),
        ("made of", Text(parts)),
        ("steps", levels),
        ("messages", Text(f"{report.messages:,} -> {len(found.messages):,}")),
        ("pages", Text(f"{len(found.pages):,}")),
        ("compactions", Text(f"{report.compactions:,}")),
        ("stable prefix", Text(f"{found.stable_prefix_tokens:,} tokens")),
    ]


def _bar(packed: Packed, width: int) -> Text:
    """The budget as a bar: what is fixed, then steps by level, then what is free."""
    found = packed.window
    by_level = dict.fromkeys(_STYLES, 0)
    ordered = sorted(packed.steps, key=lambda step: step.level)
    for level, steps in groupby(ordered, key=lambda step: step.level):
        by_level[level] = sum(step.tokens for step in steps)
    fixed = found.tokens - sum(by_level.values())
    # The upper estimate is what has to fit, so the bar is drawn in its unit.
    scale = found.tokens_upper / found.tokens if found.tokens else 1.0
    bar = Text()
    filled = reached = 0
    for tokens, mark, style in (
        (fixed, "█", "blue"),
        *((by_level[level], _MARKS[level], _STYLES[level]) for level in by_level),
    ):
        reached += tokens
        until = min(width, round(width * reached * scale / found.budget))
        bar.append(mark * (until - filled), style=style)
        filled = max(filled, until)
    return bar.append("·" * (width - filled), style="bright_black")


def _certainty(counted: FileCount, *, named: bool) -> Text:
    certainty = "exact" if counted.exact else "estimate"
    return Text(", ".join([certainty, *counted.encodings]) if named else certainty)
