"""The terms of a text: one analyser for every backend, so that all of them rank alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from satchel import _core

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ANALYSER", "terms_of", "terms_of_all"]

ANALYSER: Final = "satchel-1"
"""Name and version of the analyser; kept with a store, for terms of another cannot be compared."""

_STOP_WORDS: Final = frozenset(_core.stop_words())


def terms_of(text: str) -> list[str]:
    """The terms of a text without its stop words, in order, as often as they occur."""
    return [term for term in _core.analyse(text) if term not in _STOP_WORDS]


def terms_of_all(texts: Sequence[str]) -> list[list[str]]:
    """The terms of each text."""
    found = _core.analyse_many(list(texts))
    return [[term for term in terms if term not in _STOP_WORDS] for terms in found]
