"""The tables of the command line, for people.

Every text that comes from a file is a ``Text`` of printable characters, so neither rich markup nor
terminal escapes in it mean anything.
"""

from __future__ import annotations

import sys
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
_WIDE: Final = 100  # cells; narrower terminals get no preview
_LONGEST: Final = 240  # characters of a text that are handed to rich, which cuts it by cells
_BAR: Final = 60  # cells
_NARROWEST: Final = 12  # cells that the column which gives way keeps


def print_counts(counts: Sequence[FileCount], total: FileCount) -> None:
    """One row per file and a total."""
    rows = [_count_row(counted) for counted in counts]
    titles = ["file", "messages", "in messages", "system", "tools", "overhead", "tokens", "at most"]
    names = ", ".join(total.encodings)
    titles.append(f"counted with {names}" if len(total.encodings) == 1 else "counted with")
    if len(total.encodings) == 1:
        for row in rows:
            row[-1] = Text("exact" if row[-1].plain.startswith("exact") else "estimate")
    footer = _count_row(total) if len(counts) > 1 else None
    if any(counted.conversations != 1 for counted in counts):
        titles.insert(1, "conversations")
    else:
        for row in [*rows, *([footer] if footer else [])]:
            del row[1]
    _print_table(_console(), titles, rows, elastic=0, left={0, len(titles) - 1}, footer=footer)


def print_window(packed: Packed, *, most_rows: int) -> None:
    """What happened to each step, then the totals."""
    console = _console()
    console.print(_heading(packed))
    titles = ["messages", "role", "level", "tokens", "of", "salience", "fidelity", "reason"]
    titles += ["begins with"] if console.width >= _WIDE else []
    rows = [
        (_hidden_row(step) if isinstance(step, int) else _step_row(step, packed))[: len(titles)]
        for step in _middle_left_out(packed.steps, most_rows)
    ]
    _print_table(console, titles, rows, elastic=len(titles) - 1, left={1, 2, 6, 7, 8})
    console.print()
    for label, line in _totals(packed):
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


def _print_table(
    console: Console,
    titles: list[str],
    rows: list[list[Text]],
    *,
    elastic: int,
    left: set[int],
    footer: list[Text] | None = None,
) -> None:
    """Prints rows; the column ``elastic`` gives way where the terminal is too narrow for all."""
    table = Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        padding=(0, 1, 0, 0),  # with the box's own blank: two cells between columns
        pad_edge=False,
        show_footer=footer is not None,
    )
    every = [*rows, *([footer] if footer else [])]
    widths = [
        max([cell_len(title), *(row[column].cell_len for row in every)])
        for column, title in enumerate(titles)
    ]
    others = sum(widths) - widths[elastic] + 2 * (len(titles) - 1)
    widths[elastic] = min(widths[elastic], max(_NARROWEST, console.width - others))
    for column, title in enumerate(titles):
        for row in every:
            row[column].truncate(widths[column], overflow="ellipsis")
        table.add_column(
            title,
            justify="left" if column in left else "right",
            width=widths[column],
            no_wrap=True,
            footer=footer[column] if footer else "",
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)


def _shown(text: str, style: str = "") -> Text:
    return Text(printable(text[:_LONGEST])[:_LONGEST], style=style, end="")


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
    note = Text(f"{steps:,} steps not shown, --rows 0 shows all", style="italic")
    return [Text("..."), *[Text("")] * 6, note, Text("")]


# --- heading and totals ---------------------------------------------------------------------------


def _heading(packed: Packed) -> Text:
    found = packed.window
    heading = Text("\n")
    heading.append(printable(packed.chosen.file), style="bold")
    if packed.chosen.of > 1:
        heading.append(f", conversation {packed.chosen.number:,} of {packed.chosen.of:,}")
    if packed.chosen.conversation.title:
        heading.append(": ").append_text(_shown(packed.chosen.conversation.title))
    heading.append(
        f"\n{printable(found.report.model)}, dialect {found.dialect}, "
        f"policy {printable(found.report.policy)}, counted with {packed.counter.encoding}"
    )
    return heading


def _totals(packed: Packed) -> list[tuple[str, Text]]:
    found = packed.window
    report = found.report
    before = packed.tokens_before
    saved = 1 - found.tokens / before if before else 0.0
    in_steps = sum(step.tokens for step in packed.steps)
    rest = found.tokens - in_steps - report.system_tokens - report.tools_tokens
    tokens = Text(f"{before:,} -> ").append(f"{found.tokens:,}", style="bold")
    tokens.append(f", {saved:.0%} saved" if saved > 0 else "")
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
        ("budget", _bar(packed).append(f" {share:.0%} of {found.budget:,}")),
        ("made of", Text(parts)),
        ("steps", levels),
        ("messages", Text(f"{report.messages:,} -> {len(found.messages):,}")),
        ("pages", Text(f"{len(found.pages):,}")),
        ("compactions", Text(f"{report.compactions:,}")),
        ("stable prefix", Text(f"{found.stable_prefix_tokens:,} tokens")),
    ]


def _bar(packed: Packed) -> Text:
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
        until = min(_BAR, round(_BAR * reached * scale / found.budget))
        bar.append(mark * (until - filled), style=style)
        filled = max(filled, until)
    return bar.append("·" * (_BAR - filled), style="bright_black")


# --- rows of counts -------------------------------------------------------------------------------


def _count_row(counted: FileCount) -> list[Text]:
    upper = f"{counted.upper:,}" if counted.upper > counted.total else ""
    certainty = "exact" if counted.exact else "estimate"
    names = ", ".join(counted.encodings)
    return [
        _shown(counted.file, style="bold" if counted.file == "total" else ""),
        Text(f"{counted.conversations:,}"),
        Text(f"{counted.messages:,}"),
        Text(f"{counted.message_tokens:,}"),
        Text(f"{counted.system_tokens:,}"),
        Text(f"{counted.tools_tokens:,}"),
        Text(f"{counted.overhead_tokens:,}"),
        Text(f"{counted.total:,}", style="bold"),
        Text(upper, style="bright_black"),
        Text(f"{certainty}, {names}" if names else certainty),
    ]
