"""The examples of the bridges' pages run as they stand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from test_docs import BRIDGES, ROOT, run_page

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("name", sorted(BRIDGES))
def test_the_examples_of_a_bridge_run(name: str, tmp_path: Path) -> None:
    run_page(ROOT / "docs" / f"{name}.md", tmp_path)
