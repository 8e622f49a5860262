"""`satchel.counter` and `satchel.Counter`: names, limits, cuts, many texts, counters of others."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
import satchel
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from satchel import Counter

EXACT = ("o200k_base", "o200k_harmony", "cl100k_base")
ESTIMATES = ("scripts", "chars3", "chars4")
KEEPS: tuple[Literal["head", "tail", "both"], ...] = ("head", "tail", "both")

# Surrogates too: a Python str may hold them.
TEXTS = st.text(st.characters(), max_size=120) | st.text("ab '\n한국어é😀\u0301", max_size=200)


def count_bytes(text: str) -> int:
    return len(text.encode())


class Characters:
    """A counter as somebody else might write it."""

    encoding = "characters"
    exact = True
    margin = 0.25

    def count(self, text: str) -> int:
        return len(text)


def all_counters() -> list[Counter]:
    mine = [satchel.counter(name) for name in (*EXACT, *ESTIMATES)]
    return [*mine, satchel.Counter(count_bytes), satchel.Counter(Characters())]


def raised(work: Callable[..., object], *arguments: object, **options: object) -> InputError:
    with pytest.raises(InputError) as info:
        work(*arguments, **options)
    return info.value


# --- names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXACT)
def test_encodings_are_exact(name: str) -> None:
    counter = satchel.counter(name)
    assert (counter.encoding, counter.exact, counter.margin) == (name, True, 0.0)
    assert repr(counter) == f"Counter('{name}', exact=True, margin=0)"


@pytest.mark.parametrize("name", ESTIMATES)
def test_estimators_have_a_margin(name: str) -> None:
    counter = satchel.counter(name)
    assert (counter.encoding, counter.exact) == (name, False)
    assert counter.margin > 0


def test_model_names_are_looked_up() -> None:
    counter = satchel.counter("gpt-4o")
    assert (counter.encoding, counter.exact) == ("o200k_base", True)
    assert not satchel.counter("claude-sonnet-4-5").exact


def test_tokenizer_stands_in_for_the_model() -> None:
    stand_in = satchel.counter("gpt-4o", tokenizer="chars3")
    assert (stand_in.encoding, stand_in.name) == ("chars3", "chars3 for gpt-4o")
    assert stand_in.count("twelve chars") == satchel.counter("chars3").count("twelve chars")
    assert satchel.counter("my-own-model", tokenizer="cl100k_base").exact


def test_unknown_names_are_typed_errors() -> None:
    assert raised(satchel.counter, "nobody-made-this").code == "unknown_model"
    assert raised(satchel.counter, "gpt-4o", tokenizer="o300k").code == "unknown_encoding"
    assert raised(satchel.counter, 7).code == "invalid_value"
    assert raised(satchel.counter, "gpt-4o", tokenizer=7).code == "invalid_value"
    assert raised(satchel.Counter, "o200k_base", margin=-0.5).code == "invalid_value"


def test_numbers_of_the_estimators() -> None:
    chars3, chars4 = satchel.counter("chars3"), satchel.counter("chars4")
    for text in ("", "a", "abcdef", "한국어 문장", "😀😀😀", "x" * 1000):
        assert chars3.count(text) == (max(1, len(text) // 3) if text else 0)
        assert chars4.count(text) == (max(1, len(text) // 4) if text else 0)


def test_special_tokens_are_ordinary_text() -> None:
    for name in EXACT:
        assert satchel.counter(name).count("<|endoftext|>") == 7


# --- values --------------------------------------------------------------------------------------


def test_counters_are_values() -> None:
    for counter, same in zip(all_counters()[:6], all_counters()[:6], strict=True):
        assert counter == same
        assert hash(counter) == hash(same)
        assert counter != counter.encoding
    assert len(set(all_counters()[:6])) == 6
    assert satchel.Counter("o200k_base", exact=False, margin=0.5) != satchel.counter("o200k_base")
    assert satchel.Counter(count_bytes) == satchel.Counter(count_bytes)
    assert satchel.Counter(count_bytes) != satchel.Counter(len)


def test_counters_cannot_be_changed() -> None:
    counter: Any = satchel.counter("o200k_base")
    with pytest.raises(AttributeError):
        counter.margin = 1.0


def test_counters_pickle_and_copy() -> None:
    kept = [*all_counters()[:7], satchel.Counter("o200k_base", exact=False, margin=0.5)]
    for counter in kept:
        for again in (pickle.loads(pickle.dumps(counter)), copy.deepcopy(counter)):
            assert again == counter
            assert (again.exact, again.margin) == (counter.exact, counter.margin)
            assert again.count("one two") == counter.count("one two")


# --- limits --------------------------------------------------------------------------------------


@given(text=TEXTS, limit=st.integers(0, 100))
def test_fits_compares(text: str, limit: int) -> None:
    for counter in all_counters():
        assert counter.fits(text, limit) == (counter.count(text) <= limit)


@given(text=TEXTS, limit=st.integers(0, 100), keep=st.sampled_from(KEEPS))
def test_truncate_holds_its_limit(
    text: str, limit: int, keep: Literal["head", "tail", "both"]
) -> None:
    whole = _as_counted(text)
    for counter in all_counters():
        cut = counter.truncate(text, limit, keep=keep)
        assert counter.count(cut) <= limit
        if counter.fits(text, limit):
            assert cut == whole
        elif keep == "head":
            assert whole.startswith(cut)
        elif keep == "tail":
            assert whole.endswith(cut)
        else:
            splits = range(len(cut) + 1)
            assert any(whole.startswith(cut[:at]) and whole.endswith(cut[at:]) for at in splits)


def test_truncate_keeps_what_it_can() -> None:
    counter = satchel.counter("o200k_base")
    text = "one two three four five six seven eight"
    assert counter.truncate(text, 3) == "one two three"
    assert counter.truncate(text, 3, keep="tail") == " six seven eight"
    assert counter.truncate(text, 3, keep="both") == "one two eight"
    assert counter.truncate("a" * 100_000, 100) == "a" * 800


def test_limits_are_checked() -> None:
    counter = satchel.counter("o200k_base")
    assert counter.fits("any text", 2**70)
    assert counter.truncate("any text", 2**40) == "any text"
    wrong_limits: list[object] = [-1, -(2**70), 1.5, "3", None]
    for limit in wrong_limits:
        assert raised(counter.fits, "a", limit).code == "invalid_value"
        assert raised(counter.truncate, "a", limit).code == "invalid_value"
    wrong_keeps: list[object] = ["middle", 1, "\ud800"]
    for keep in wrong_keeps:
        assert raised(counter.truncate, "a", 1, keep=keep).code == "invalid_value"


# --- texts ---------------------------------------------------------------------------------------


@given(texts=st.lists(TEXTS, max_size=12))
def test_many_are_each(texts: list[str]) -> None:
    for counter in all_counters():
        counts = counter.count_many(texts)
        assert counts.dtype == np.uint32
        assert counts.shape == (len(texts),)
        assert counts.tolist() == [counter.count(text) for text in texts]


def test_many_on_all_cores() -> None:
    texts = [f"Message {number}: the same words again and again. " * 20 for number in range(500)]
    texts.append("one long text\n" * 40_000)
    for name in (*EXACT, *ESTIMATES):
        counter = satchel.counter(name)
        each = [counter.count(text) for text in texts]
        assert counter.count_many(iter(texts)).tolist() == each


def test_threads_share_a_counter() -> None:
    counter = satchel.counter("o200k_base")
    text = "Threads count at the same time, 동시에 셉니다. " * 2_000
    expected = counter.count(text)
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(counter.count(text))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 8


def test_only_texts_are_counted() -> None:
    counter = satchel.counter("o200k_base")
    no_text: list[object] = [b"bytes", 3, None, ["list"]]
    for text in no_text:
        assert raised(counter.count, text).code == "invalid_value"
    no_texts: list[object] = ["one text", 3, [1], ["a", b"b"]]
    for texts in no_texts:
        assert raised(counter.count_many, texts).code == "invalid_value"


# --- counters of others --------------------------------------------------------------------------


def test_tiktoken_counts_by_itself() -> None:
    theirs = reference.encoding("cl100k_base")
    counter = satchel.counter("gpt-4", tokenizer=theirs)
    assert (counter.encoding, counter.exact, counter.margin) == ("cl100k_base", True, 0.0)
    text = "Reference text with <|endoftext|> and \ud83d\ude00 in it."
    assert counter.count(text) == satchel.counter("cl100k_base").count(text)
    assert counter.truncate(text, 4) == satchel.counter("cl100k_base").truncate(text, 4)
    assert counter != satchel.counter("cl100k_base")


def test_an_object_says_what_it_is() -> None:
    counter = satchel.Counter(Characters())
    assert (counter.encoding, counter.exact, counter.margin) == ("characters", True, 0.25)
    assert counter.count("한국어") == 3
    plain = satchel.Counter(count_bytes)
    assert (plain.encoding, plain.exact, plain.margin) == ("custom", False, 0.0)
    assert plain.truncate("한국어", 7) == "한국"


def test_what_a_counter_raises_is_the_cause() -> None:
    fault = LookupError("no vocabulary")

    def broken(_text: str) -> int:
        raise fault

    counter = satchel.Counter(broken)
    for error in (
        raised(counter.count, "a"),
        raised(counter.count_many, ["a"]),
        raised(counter.fits, "a", 3),
        raised(counter.truncate, "a", 3),
    ):
        assert error.code == "counter_failed"
        assert error.__cause__ is fault
    assert raised(satchel.counter, "o300k", tokenizer="o300k").__cause__ is None


def test_an_interrupt_passes() -> None:
    def interrupted(_text: str) -> int:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        satchel.Counter(interrupted).count("a")


@pytest.mark.parametrize("wrong", [-1, 2**40, 1.0, "3", None, True])
def test_a_count_is_a_number_from_zero(wrong: object) -> None:
    def count(_text: str) -> Any:
        return wrong

    error = raised(satchel.Counter(count).count, "a")
    assert error.code == "counter_failed"
    assert error.__cause__ is None


@pytest.mark.parametrize("wrong", [7, None, ["a"], b"o200k_base"])
def test_other_objects_are_no_counters(wrong: object) -> None:
    assert raised(satchel.Counter, wrong).code == "invalid_value"


def test_counting_imports_no_numpy() -> None:
    code = (
        "import sys, satchel\n"
        "assert satchel.counter('o200k_base').count('one two') == 2\n"
        "assert not {'numpy', 'tiktoken', 'pydantic'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own code


def _as_counted(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
