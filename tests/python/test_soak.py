"""A short run of the soak: the same checks over the same few histories, each time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import satchel
import soak_repair

if TYPE_CHECKING:
    from satchel.testing import Dialect


@pytest.mark.parametrize("dialect", soak_repair.DIALECTS)
def test_damage_of_every_kind(dialect: Dialect) -> None:
    figures = soak_repair.soak(dialect, 200, 11)
    assert figures["histories"] == 200
    assert figures["repaired"] > 200
    assert figures["windows window"] > 50
    assert figures["windows over"] > 10


def test_a_broken_promise_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(messages: list[object], *_args: object, **_options: object) -> list[object]:
        return list(messages)

    monkeypatch.setattr(satchel, "repair", nothing)
    with pytest.raises(AssertionError):
        soak_repair.soak("openai", 50, 11)
