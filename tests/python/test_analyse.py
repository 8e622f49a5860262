"""The terms of texts, as every store of memories gets them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import satchel
from satchel import _core


def test_a_text_gives_its_terms_in_order() -> None:
    assert _core.analyse("The user_id는 1,024") == ["the", "user", "id", "userid", "1024"]


def test_a_long_text_gives_what_its_parts_give() -> None:
    text = "Meetings about budgets: 회의록을 보냈다. "
    assert _core.analyse(text * 200) == _core.analyse(text) * 200


@given(st.lists(st.text(st.characters(codec=None), max_size=40), max_size=5))
def test_many_are_each(texts: list[str]) -> None:
    assert _core.analyse_many(texts) == [_core.analyse(text) for text in texts]


@given(st.text(st.characters(codec=None), max_size=60))
def test_terms_are_letters_and_digits(text: str) -> None:
    for term in _core.analyse(text):
        assert term
        assert len(term.encode()) <= 64
        # Python and Rust know letters of different versions of Unicode; separators are ASCII.
        assert all(char.isalnum() or char > "\x7f" for char in term)
        assert not any(char.isspace() or "A" <= char <= "Z" for char in term)


def test_a_lone_surrogate_separates() -> None:
    assert _core.analyse("one\ud800two") == ["one", "two"]


def test_stop_words_are_sorted_terms() -> None:
    words = _core.stop_words()
    assert words == sorted(words)
    assert {"the", "ani"} <= set(words)


def test_threads_agree() -> None:
    texts = [f"session {number} 회의 {number}" * 300 for number in range(20)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_core.analyse, texts)) == _core.analyse_many(texts)


@pytest.mark.parametrize("wrong", [None, 1, b"text", ["text"]])
def test_another_type_is_an_error(wrong: Any) -> None:
    with pytest.raises(satchel.InputError):
        _core.analyse(wrong)
    with pytest.raises(satchel.InputError):
        _core.analyse_many([wrong])
