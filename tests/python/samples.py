"""The shipped sample runs, by file name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "data"
NAMES = tuple(sorted(path.name for path in FOLDER.glob("*.json")))


def load_sample(name: str) -> dict[str, Any]:
    """The sample run of that file name."""
    sample: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return sample
