"""Writes the sample transcripts beside this file; the same bytes every time.

Run ``python tests/data/make_samples.py``. The test suite checks that the committed files are what
this script writes.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from runs import every_sample

HERE = Path(__file__).parent


def contents() -> dict[str, str]:
    """Every sample: file name to text."""
    files: dict[str, str] = {}
    for name, made in sorted(every_sample().items()):
        if name.endswith(".jsonl"):
            lines = (json.dumps(message, ensure_ascii=False) for message in made["messages"])
            files[name] = "\n".join(lines) + "\n"
        else:
            files[name] = json.dumps(made, ensure_ascii=False, indent=1) + "\n"
    return files


def main() -> None:
    """Write all of them and say how large they are."""
    total = 0
    for name, text in contents().items():
        (HERE / name).write_text(text, encoding="utf-8")
        size = len(text.encode())
        total += size
        sys.stdout.write(f"{name:44}{size:>10,} bytes\n")
    sys.stdout.write(f"{'total':44}{total:>10,} bytes\n")


if __name__ == "__main__":
    main()
