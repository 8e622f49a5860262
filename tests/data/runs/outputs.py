"""What tools print: listings, searches, diffs, test reports. Pure functions of their arguments."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random


def numbered(text: str, first: int = 1) -> str:
    """A file as an agent's read tool shows it."""
    return "\n".join(f"{at:>5}\t{line}" for at, line in enumerate(text.splitlines(), first))


def search(files: Mapping[str, str], pattern: str) -> str:
    """Lines that match, as ``path:line:text``."""
    hits = [
        f"{path}:{at}:{line}"
        for path, text in sorted(files.items())
        for at, line in enumerate(text.splitlines(), 1)
        if re.search(pattern, line)
    ]
    return "\n".join(hits) if hits else "(no matches)"


def diff(path: str, before: str, after: str) -> str:
    """A unified diff of one file."""
    name = path.lstrip("/")
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm=""
    )
    return "\n".join(lines)


def listing(entries: Iterable[tuple[str, int]], rng: Random) -> str:
    """A long directory listing."""
    rows: list[str] = []
    for path, size in entries:
        day, hour, minute = rng.randrange(1, 29), rng.randrange(24), rng.randrange(60)
        month = rng.choice(("Aug", "Sep", "Oct", "Nov"))
        kind = "drwxr-xr-x" if path.endswith("/") else "-rw-r--r--"
        rows.append(f"{kind}  1 dev dev {size:>8} {month} {day:>2} {hour:02}:{minute:02} {path}")
    return f"total {sum(-(-int(row.split()[4]) // 1024) for row in rows)}\n" + "\n".join(rows)


def pytest_report(
    tests: Sequence[str], failures: Mapping[str, str], *, seconds: float, root: str = "/srv/build"
) -> str:
    """A verbose pytest run; ``failures`` gives the section printed for a failed test."""
    out = [
        "============================= test session starts ==============================",
        "platform linux -- Python 3.12.6, pytest-8.3.3, pluggy-1.5.0",
        f"rootdir: {root}",
        "configfile: pyproject.toml",
        f"collected {len(tests)} items",
        "",
    ]
    for at, name in enumerate(tests, 1):
        word = "FAILED" if name in failures else "PASSED"
        out.append(f"{name} {word:<10} [{100 * at // len(tests):>3}%]")
    if failures:
        out += [
            "",
            "=================================== FAILURES ===================================",
        ]
        for name, section in failures.items():
            title = name.split("::")[-1]
            out += [f"{' ' + title + ' ':_^80}", "", section.rstrip(), ""]
        out.append(
            "=========================== short test summary info ============================"
        )
        for name, section in failures.items():
            reason = [line[1:].strip() for line in section.splitlines() if line.startswith("E ")]
            out.append(f"FAILED {name} - {reason[0] if reason else 'error'}")
    passed = len(tests) - len(failures)
    counts = (f"{len(failures)} failed, " if failures else "") + f"{passed} passed"
    out.append(f"{f' {counts} in {seconds:.2f}s ':=^80}")
    return "\n".join(out)
