"""JSON read by the core: the same values as Python's own reader, or none at all."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from satchel import _core
from satchel.stores.codec import decode, decode_joined, encode

NAMES = st.sampled_from(["role", "content", "a", "", "$", "$bytes", "이름"]) | st.text()
NUMBERS = st.integers() | st.floats(allow_nan=False)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner),
    max_leaves=12,
)
PIECES = st.sampled_from(
    [
        *(bytes([one]) for one in b'{}[],:"\\0-1 \n'),
        *(b"\\u", b"d83d", b"\\ude00", b".5", b"e9", b"true", b"null", b'"a"', b"\xed\xa0\x80"),
        "é한😀".encode(),
    ]
)


def same(found: object, expected: object) -> bool:
    """Equal, and of the same types at every level."""
    return repr(found) == repr(expected)


@given(st.lists(VALUES, max_size=6))
def test_what_is_encoded_comes_back(values: list[Any]) -> None:
    payloads = [encode(value) for value in values]
    found = decode_joined(b",".join(payloads), len(payloads))
    expected = [decode(payload) for payload in payloads]
    assert found is None or same(found, expected)
    is_plain = "$" not in repr(values) and all(len(repr(value)) < 18 for value in values)
    if is_plain and "\\ud" not in repr(values):
        assert found is not None


@given(st.lists(PIECES, max_size=12).map(b"".join) | st.binary(max_size=40))
def test_any_bytes_are_read_as_python_reads_them_or_not_at_all(joined: bytes) -> None:
    found = _core.json_values(joined)
    if found is not None:
        assert same(found, json.loads(b"[" + joined + b"]"))


READ: list[tuple[bytes, list[Any]]] = [
    (b"", []),
    (b' 1 , {"a" : [ ] } ', [1, {"a": []}]),
    (b"-0,-0.0,1e5,2.5E-1", [0, -0.0, 100_000.0, 0.25]),
    (b'"\\u00e9\\ud83d\\ude00\\n\\/"', ["é😀\n/"]),
    (b'{"a":1,"b":2,"a":3}', [{"a": 3, "b": 2}]),
    (b"999999999999999999", [999_999_999_999_999_999]),
    (b"[" * 64 + b"]" * 64, [json.loads("[" * 64 + "]" * 64)]),
]


@pytest.mark.parametrize(("joined", "expected"), READ)
def test_values(joined: bytes, expected: list[Any]) -> None:
    assert same(_core.json_values(joined), expected)


@pytest.mark.parametrize(
    "joined",
    [
        b"1,",
        b",1",
        b"1 2",
        b"01",
        b"1.",
        b"1e",
        b"-",
        b"+1",
        b"tru",
        b"NaN",
        b"1e999",
        b"1000000000000000000",
        b'"a\nb"',
        b'"a\x00' + b"b" * 70 + b'"',
        b'"' + b"b" * 70 + b'\x1f"',
        b'"open',
        b'"\\x"',
        b'"\\u12"',
        b'"\\ud800"',
        b'"\\ud800\\u0041"',
        b'"\\udc00"',
        b'"\xed\xa0\x80"',
        b'"\xff"',
        b'{"$bytes":""}',
        b'{"a":1,"$b":2}',
        b'{"a"}',
        b'{"a":1,}',
        b"{,}",
        b"[1,]",
        b"[" * 65 + b"]" * 65,
        b"[" * 1_000_000,
    ],
)
def test_what_is_out_of_the_ordinary_is_left_to_others(joined: bytes) -> None:
    assert _core.json_values(joined) is None


def test_keys_and_short_strings_are_made_once() -> None:
    found = _core.json_values(b'{"role":"user"},{"role":"user"}')
    assert found is not None
    [first, second] = found
    assert first["role"] is second["role"]


def test_terms_are_counted() -> None:
    counts, lengths = _core.term_counts(["a b a", "", "ab b", "a"], ["a", "b", "c"])
    assert counts.tolist() == [[2, 1, 0], [0, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert lengths.tolist() == [3, 0, 2, 1]
    counts, lengths = _core.term_counts([], ["a"])
    assert counts.shape == (0, 1)
    assert lengths.shape == (0,)
    assert _core.term_counts(["a"], [])[0].shape == (1, 0)
