"""A short run of the walk over pages, restarts and branches: the same each time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import satchel
import soak_pages

if TYPE_CHECKING:
    from satchel.testing import Dialect


@pytest.mark.parametrize("dialect", soak_pages.DIALECTS)
def test_content_that_went_out_comes_back_byte_for_byte(dialect: Dialect) -> None:
    done = soak_pages.soak(dialect, 600, 5)
    assert done["out"] > 100
    assert done["in"] > 100
    assert done["restarts"] + done["branches"] > 0


def test_a_pointer_that_leads_elsewhere_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    read = satchel.WorkingSet.page_in

    def cut(self: satchel.WorkingSet, pointer: str, **options: Any) -> str:
        return read(self, pointer, **options)[:-1]

    monkeypatch.setattr(satchel.WorkingSet, "page_in", cut)
    with pytest.raises(AssertionError):
        soak_pages.soak("openai", 300, 5)
