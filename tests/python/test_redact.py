"""Redaction: what must go goes, what only looks so stays, and offsets are the original's."""

from __future__ import annotations

import pickle
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

import private_texts
import satchel
from satchel import _core, redaction

SEED = 20261130
EACH = 300
POSITIVES = private_texts.positives(SEED, EACH)
NEGATIVES = private_texts.negatives(SEED + 1, EACH)
ANY_TEXT = st.text(st.characters(codec=None), max_size=40)


def covers(redacted: satchel.Redacted, sample: private_texts.Sample) -> bool:
    """Whether a span of the right kind covers the value."""
    start = sample.text.index(sample.value)
    end = start + len(sample.value)
    return any(
        span.kind == sample.kind and span.start <= start and end <= span.end
        for span in redacted.spans
    )


def test_the_set_is_large_and_has_every_kind() -> None:
    assert len(POSITIVES) >= 2000
    assert len(NEGATIVES) >= 2000
    assert {sample.kind for sample in POSITIVES} == set(get_args(redaction.Kind))
    assert len({sample.text for sample in POSITIVES}) > 0.95 * len(POSITIVES)


@pytest.mark.parametrize("family", private_texts.POSITIVES)
def test_recall_of(family: str) -> None:
    samples = [sample for sample in POSITIVES if sample.family == family]
    found = satchel.redact_many([sample.text for sample in samples])
    missed = [
        sample.text
        for sample, redacted in zip(samples, found, strict=True)
        if not covers(redacted, sample)
    ]
    assert len(samples) >= EACH
    assert len(missed) <= 0.01 * len(samples), missed[:5]


@pytest.mark.parametrize("kind", get_args(redaction.Kind))
def test_precision_of(kind: str) -> None:
    right = wrong = 0
    stray: list[str] = []
    for sample in POSITIVES + NEGATIVES:
        for span in satchel.redact(sample.text).spans:
            value = sample.text[span.start : span.end]
            if span.kind != kind:
                continue
            if sample.kind == kind and (value in sample.value or sample.value in value):
                right += 1
            else:
                wrong += 1
                stray.append(value)
    assert right >= EACH
    assert right / (right + wrong) >= 0.98, stray[:5]


@pytest.mark.parametrize("family", private_texts.NEGATIVES)
def test_look_alikes_stay(family: str) -> None:
    samples = [sample for sample in NEGATIVES if sample.family == family]
    changed = [sample.text for sample in samples if satchel.redact(sample.text).spans]
    assert len(samples) >= EACH
    assert len(changed) <= 0.02 * len(samples), changed[:5]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("900101-1234567", "[RESIDENT_NUMBER_1]"),  # no check digit since October 2020
        ("000229-3000000", "[RESIDENT_NUMBER_1]"),
        ("010229-3000000", "010229-3000000"),  # no leap year
        ("9001011234567", "9001011234567"),  # bare, and its check digit is wrong
        ("a900101-1234567", "a900101-1234567"),
        ("주민번호는900101-1234567입니다", "주민번호는[RESIDENT_NUMBER_1]입니다"),
        ("kim@example.com으로", "[EMAIL_1]으로"),
        ("<kim@example.com>.", "<[EMAIL_1]>."),
        ("a@b.co, c@d.co, a@b.co", "[EMAIL_1], [EMAIL_2], [EMAIL_1]"),
        ("[EMAIL_1] is not a@b.co", "[EMAIL_1] is not [EMAIL_2]"),
        ("?to=kim%40example.com&x=1", "?to=[EMAIL_1]&x=1"),
        ("git@github.com:acme/tools.git", "git@github.com:acme/tools.git"),
        ("010-1234-5678, 02)345-6789", "[PHONE_1], [PHONE_2]"),
        ("전화 031 123 4567", "전화 [PHONE_1]"),
        ("tel: 4155552671", "tel: [PHONE_1]"),
        ("4155552671", "4155552671"),
        ("4111 1111 1111 1111", "[CARD_1]"),
        ("4111 1111 1111 1112", "4111 1111 1111 1112"),
        ("DE89 3704 0044 0532 0130 00", "[IBAN_1]"),
        ("postgresql://app:s3cret@db:5432/x now", "[CONNECTION_STRING_1] now"),
        ("redis://:pw12@cache/0", "[CONNECTION_STRING_1]"),
        ("https://example.com/a@b", "https://example.com/a@b"),
        ("Authorization: Basic dXNlcjpwYXNz", "Authorization: Basic [BEARER_TOKEN_1]"),
        ("Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln", "Authorization: Bearer [JWT_1]"),
        ("bearer abc.def.ghi", "bearer [BEARER_TOKEN_1]"),
        ("password is hunter2-EXAMPLE, ok", "password is [PASSWORD_1], ok"),
        ("password=correcthorse\nx=1", "password=[PASSWORD_1]\nx=1"),
        ("connect(password=password)", "connect(password=password)"),
        ("<password>letmein</password>", "<password>[PASSWORD_1]</password>"),
        ("mysql --password s3cretpw -h db", "mysql --password [PASSWORD_1] -h db"),
        ('{\\"password\\": \\"letmein\\"}', '{\\"password\\": \\"[PASSWORD_1]\\"}'),
    ],
)
def test_by_hand(text: str, cleaned: str) -> None:
    assert satchel.redact(text).text == cleaned
    assert satchel.redact(cleaned).text == cleaned


def test_a_key_that_was_cut_off_goes_too() -> None:
    body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQ"
    text = f"-----BEGIN PRIVATE KEY-----\n{body}\n{body}\n… 12 lines left out"
    assert satchel.redact(text).text == "[PRIVATE_KEY_1]\n… 12 lines left out"
    told = "-----BEGIN PRIVATE KEY----- is how such a file starts"
    assert satchel.redact(told).text == told


def test_offsets_count_characters() -> None:
    text = "🙂 가 \ud83d kim@example.com \U0001f600 010-1234-5678"
    redacted = satchel.redact(text, keep_originals=True)
    assert [text[span.start : span.end] for span in redacted.spans] == [
        "kim@example.com",
        "010-1234-5678",
    ]
    assert redacted.text == "🙂 가 \ud83d [EMAIL_1] \U0001f600 [PHONE_1]"
    assert redacted.restore() == text


def test_kinds_choose() -> None:
    text = "kim@example.com 010-1234-5678 password=hunter22"
    assert satchel.redact(text, kinds=["email"]).text.startswith("[EMAIL_1] 010-")
    assert satchel.redact(text, kinds=["secrets"]).text.endswith("5678 password=[PASSWORD_1]")
    assert satchel.redact(text, kinds=["personal", "password"]) == satchel.redact(text)
    assert satchel.redact(text, kinds=[]).text == text


def test_what_is_inside_goes_with_the_outer_one() -> None:
    text = "postgres://kim:010-1234-5678@example.com/x"
    (span,) = satchel.redact(text).spans
    assert span == ("connection_string", 0, len(text))
    (span,) = satchel.redact(text, kinds=["phone"]).spans
    assert span.kind == "phone"


def test_restoring_needs_the_originals() -> None:
    kept = satchel.redact("mail kim@example.com", keep_originals=True)
    assert kept.restore("Sent to [EMAIL_1] and [EMAIL_2].") == (
        "Sent to kim@example.com and [EMAIL_2]."
    )
    dropped = satchel.redact("mail kim@example.com")
    assert dropped == kept
    assert b"kim" not in pickle.dumps(dropped)
    with pytest.raises(satchel.InputError, match="keep_originals"):
        dropped.restore()
    wrong: Any = b"x"
    with pytest.raises(satchel.InputError):
        kept.restore(wrong)


def test_no_repr_shows_content() -> None:
    redacted = satchel.redact("note 7 kim@example.com", keep_originals=True)
    assert repr(redacted) == "Redacted(email: 1)"
    assert str(redacted) == repr(redacted)


def test_core_and_face_know_the_same_kinds() -> None:
    assert tuple(_core.redaction_kinds()) == get_args(redaction.Kind)


@given(st.lists(ANY_TEXT, max_size=4))
def test_texts_without_values_stay(texts: list[str]) -> None:
    for text, redacted in zip(texts, satchel.redact_many(texts), strict=True):
        assert redacted == satchel.redact(text)
        if not redacted.spans:
            assert redacted.text == text


@given(st.lists(st.one_of(ANY_TEXT, st.sampled_from(POSITIVES).map(lambda s: s.text)), max_size=5))
def test_spans_and_restoring_hold(pieces: list[str]) -> None:
    text = " ".join(pieces)
    redacted = satchel.redact(text, keep_originals=True)
    assert redacted.restore() == text
    at = 0
    for span in redacted.spans:
        assert at <= span.start < span.end <= len(text)
        at = span.end
    rest = list(redacted.text)
    for span in redacted.spans:
        assert text[span.start : span.end]
    assert len(rest) >= len(text) - sum(span.end - span.start for span in redacted.spans)


@pytest.mark.parametrize(
    "piece",
    ["1", "1-", "a@", "a@a.", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "eyJ", "eyJ-", "://",
     "12-34 ", "password=", "a://b:c@", "4111 ", "sk-", "DE89 ", 'token: "', "%40", "비밀번호는 "],
)  # fmt: skip
def test_hostile_texts_end(piece: str) -> None:
    text = piece * (10_000_000 // len(piece.encode()))
    redacted = satchel.redact(text)
    assert len(redacted.spans) < len(text)


def test_threads_agree() -> None:
    texts = [sample.text for sample in POSITIVES[::7]]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(satchel.redact, texts)) == satchel.redact_many(texts)


@pytest.mark.parametrize("wrong", [None, 1, b"text", ["text"]])
def test_another_type_is_an_error(wrong: Any) -> None:
    with pytest.raises(satchel.InputError):
        satchel.redact(wrong)
    with pytest.raises(satchel.InputError):
        satchel.redact_many([wrong])


@pytest.mark.parametrize("kinds", [["emails"], "email", [1], 3])
def test_an_unknown_kind_is_an_error(kinds: Any) -> None:
    with pytest.raises(satchel.InputError):
        satchel.redact("text", kinds=kinds)


def test_many_want_a_list() -> None:
    wrong: Any
    for wrong in ("text", None, 3):
        with pytest.raises(satchel.InputError):
            satchel.redact_many(wrong)


def test_positives_hold_all_families() -> None:
    families = Counter(sample.family for sample in POSITIVES)
    assert all(count >= EACH for count in families.values())
