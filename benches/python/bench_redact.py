"""Redaction beside one regular expression of the same kinds in Python, in megabytes a second.

The rival is what one would write with ``re``: one union, a named group for each kind, without check
digits. Run as a script for the table; pytest runs it once, untimed.
"""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import satchel
from satchel.testing import require_release

if TYPE_CHECKING:
    from collections.abc import Callable

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"
RIVAL = re.compile(
    r"(?P<private_key>-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----)"
    r"|(?P<jwt>\beyJ[\w-]{10,}\.[\w-]{3,}\.[\w-]*)"
    r"|(?P<api_key>\b(?:sk-[\w-]{20,}|AKIA[A-Z0-9]{16}|gh[pousr]_\w{30,}|glpat-[\w-]{20,}"
    r"|xox[abeoprs]-[\w-]{20,}|AIza[\w-]{35}|npm_\w{36}|hf_\w{30,}|SG\.[\w.-]{50,}))"
    r"|(?P<connection_string>\b[a-z][a-z0-9+.-]+://[^\s:/@]*:[^\s/@]+@\S+)"
    r"|(?i:bearer )(?P<bearer_token>[\w.~+/=-]{8,})"
    r"|(?i:password|passwd|pwd|api_?key|secret|token)[\"']?\s*[:=]\s*[\"']?(?P<password>[^\s\"',]+)"
    r"|(?P<resident_number>\b\d{6}-[1-8]\d{6}\b)"
    r"|(?P<card>\b\d(?:[ -]?\d){12,18}\b)"
    r"|(?P<iban>\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b)"
    r"|(?P<email>[\w.%+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<phone>\b01[016-9][- .]?\d{3,4}[- .]?\d{4}\b|\+\d[\d ().-]{7,16}\d)"
)
HOSTILE = {
    "digits": "1",
    "digits and dashes": "12-34 ",
    "at signs": "a@a@",
    "key headers": "-----BEGIN ",
    "token headers": "eyJ-",
    "names": "password=",
    "URLs": "a://b:c@",
}
MEGABYTE = 1_000_000


def rival(text: str) -> str:
    """The text with the kind in place of each match."""
    return RIVAL.sub(lambda found: f"[{(found.lastgroup or '').upper()}]", text)


def mixed(count: int) -> str:
    """The transcripts of the tests, one after the other, up to ``count`` characters."""
    paths = sorted(path for path in DATA.rglob("*") if path.suffix in {".json", ".jsonl"})
    parts: list[str] = []
    held = 0
    while held < count:
        for path in paths:
            part = path.read_text(encoding="utf-8", errors="replace")
            parts.append(part)
            held += len(part)
            if held >= count:
                break
    return "".join(parts)[:count]


def hostile(piece: str, count: int) -> str:
    """One piece again and again."""
    return piece * (count // len(piece))


def speeds(run: Callable[[str], object], text: str, rounds: int) -> list[float]:
    """Megabytes for each second of CPU time of the process, one entry a round."""
    size = len(text.encode())
    found: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        run(text)
        found.append(size / (time.process_time() - start) / MEGABYTE)
    return sorted(found)


def test_bench_redact_finds_what_the_rival_finds() -> None:
    text = mixed(20_000) + " kim@example.com, 900101-1234567, sk-" + "a1B2" * 12
    for cleaned in (satchel.redact(text).text, rival(text)):
        assert "kim@example.com" not in cleaned
        assert "900101-1234567" not in cleaned
        assert "sk-a1B2" not in cleaned
    for piece in HOSTILE.values():
        assert satchel.redact(hostile(piece, 2_000)) is not None


def main() -> None:
    """Prints the table; the rival gets less of what slows it down."""
    require_release()
    rounds = 5 if "--quick" not in sys.argv else 1
    print(f"{'text':<22}{'satchel MB/s (min / median / max)':>36}{'re':>10}{'ratio':>8}")
    cases = {"mixed": (mixed(8 * MEGABYTE), mixed(MEGABYTE))}
    for name, piece in HOSTILE.items():
        cases[name] = (hostile(piece, 10 * MEGABYTE), hostile(piece, 20_000))
    for name, (text, short) in cases.items():
        ours = speeds(satchel.redact, text, rounds)
        theirs = median(speeds(rival, short, 1 if name != "mixed" else rounds))
        shown = f"{ours[0]:.1f} / {median(ours):.1f} / {ours[-1]:.1f}"
        print(f"{name:<22}{shown:>36}{theirs:>10.2f}{median(ours) / theirs:>8.0f}")
    print("growth: time of 20 MB by time of 10 MB, 2 is linear")
    for name, piece in HOSTILE.items():
        single = median(speeds(satchel.redact, hostile(piece, 10 * MEGABYTE), rounds))
        double = median(speeds(satchel.redact, hostile(piece, 20 * MEGABYTE), rounds))
        print(f"{name:<22}{2 * single / double:>36.2f}")


if __name__ == "__main__":
    main()
