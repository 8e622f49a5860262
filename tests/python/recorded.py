"""Recorded requests with their responses: shared data, not part of the repository."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest


@dataclass(frozen=True)
class Exchange:
    """One request to a provider and what came back."""

    file: str
    request: dict[str, Any]
    response: dict[str, Any]
    status: int | None


def exchanges(folder: str) -> list[Exchange]:
    """Every recorded exchange of one format that has messages; skips where there is no data."""
    root = os.environ.get("SATCHEL_SHARED")
    roots = [Path(root)] if root else [up / "shared" for up in Path(__file__).resolve().parents]
    folders = [root / "data" / "dev" / folder for root in roots]
    paths = [path for folder in folders if folder.is_dir() for path in folder.glob("*.json")]
    if not paths:
        pytest.skip("no shared data: recorded requests are not part of the repository")
    found: list[Exchange] = []
    for path in sorted(paths):
        document = json.loads(path.read_text())
        entries = cast("list[dict[str, Any]]", document if isinstance(document, list) else [])
        for entry in entries:
            request = cast("dict[str, Any]", entry.get("request") or {})
            if "messages" in request:
                response = cast("dict[str, Any]", entry.get("response") or {})
                found.append(Exchange(path.name, request, response, entry.get("status")))
    return found
