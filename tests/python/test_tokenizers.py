"""Tokenizers of the caller's own: ranks of tiktoken encodings, and ``tokenizer.json`` files."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

import reference
from satchel import counter
from satchel._core import Counter
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

UNKNOWN = "[UNK]"


def pattern_of(name: str) -> str:
    encoding: Any = reference.encoding(name)
    return str(encoding._pat_str)


PATTERNS = {name: pattern_of(name) for name in ("o200k_base", "cl100k_base")}
TEXTS = [
    "",
    "The quick brown fox jumps over the lazy dog.",
    "def f(x):\n    return [x, 'a', 12345]\n\n\n",
    "안녕하세요, 세계! 日本語 และ ελληνικά",
    "a" * 500 + " " * 300 + "\n" * 40,
    "I'LL can't \u017f's  \t x",
    '{"key": [1, 2.5, null], "nested": {"k": "v\\n"}}',
]


def custom(pattern: str, *, keep: int = 5_000) -> tiktoken.Encoding:
    """An encoding of its own: the first tokens of cl100k_base with other ranks from 256 on."""
    tokens = reference.tokens("cl100k_base")[:keep]
    # Gaps between ranks, and special tokens that text must never become.
    ranks = {token: rank if rank < 256 else rank + 1_000 for rank, token in enumerate(tokens)}
    return tiktoken.Encoding(
        "tiny",
        pat_str=pattern,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 100_000},
    )


@pytest.fixture(scope="module", params=sorted(PATTERNS))
def encoding(request: pytest.FixtureRequest) -> tiktoken.Encoding:
    return custom(PATTERNS[request.param])


def test_ranks_feed_the_native_encoder(encoding: tiktoken.Encoding) -> None:
    native = counter("tiny", tokenizer=encoding)
    assert (native.encoding, native.exact, native.margin) == ("tiny", True, 0)
    expected = [len(encoding.encode_ordinary(text)) for text in TEXTS]
    assert [native.count(text) for text in TEXTS] == expected
    assert native.count_many(TEXTS).tolist() == expected
    assert native.count("<|endoftext|>") == len(encoding.encode_ordinary("<|endoftext|>")) > 1


@settings(max_examples=300)
@given(text=st.text(max_size=200), name=st.sampled_from(sorted(PATTERNS)))
def test_ranks_count_as_tiktoken_does(text: str, name: str) -> None:
    encoding = ENCODINGS[name]
    native = NATIVE[name]
    assert native.count(text) == len(encoding.encode_ordinary(text))
    limit = max(0, native.count(text) - 1)
    assert native.count(native.truncate(text, limit)) <= limit


ENCODINGS = {name: custom(pattern) for name, pattern in PATTERNS.items()}
NATIVE = {name: Counter(encoding) for name, encoding in ENCODINGS.items()}


def test_public_ranks_are_the_linked_in_vocabulary() -> None:
    native = Counter(reference.encoding("o200k_base"))
    assert native.encoding == "o200k_base"
    assert native.count_many(TEXTS).tolist() == Counter("o200k_base").count_many(TEXTS).tolist()


def test_another_pattern_is_left_to_tiktoken() -> None:
    encoding = custom(r"\w+|\W+")
    foreign = counter("tiny", tokenizer=encoding)
    expected = [len(encoding.encode_ordinary(text)) for text in TEXTS]
    assert foreign.count_many(TEXTS).tolist() == expected


def test_counters_of_ranks_compare_and_pickle(encoding: tiktoken.Encoding) -> None:
    native = Counter(encoding)
    again = pickle.loads(pickle.dumps(native))
    assert again.count_many(TEXTS).tolist() == native.count_many(TEXTS).tolist()
    assert Counter(native) == native
    assert native == Counter(encoding)
    assert native != Counter("o200k_base")


def test_ranks_with_holes_are_refused() -> None:
    class Broken:
        name = "broken"
        _pat_str = PATTERNS["cl100k_base"]

        def __init__(self) -> None:
            self._mergeable_ranks = {b"a": 0}

        def encode_ordinary(self, text: str) -> list[int]:
            return [0] * len(text)

    with pytest.raises(InputError) as caught:
        Counter(Broken())
    assert caught.value.code == "invalid_value"


# --- tokenizer.json -------------------------------------------------------------------------------


def byte_level() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|end|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    return tokenizer, trainer


def unigram() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=[UNKNOWN], unk_token=UNKNOWN, show_progress=False
    )
    return tokenizer, trainer


def wordpiece() -> tuple[Tokenizer, Any]:
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=300, special_tokens=[UNKNOWN, "[CLS]"], show_progress=False
    )
    return tokenizer, trainer


@pytest.fixture(scope="module", params=[byte_level, unigram, wordpiece])
def file(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build: Callable[[], tuple[Tokenizer, Any]] = request.param
    tokenizer, trainer = build()
    corpus = [
        f"{text} {number} the lazy fox returns to the river" for number, text in enumerate(TEXTS)
    ]
    tokenizer.train_from_iterator(corpus * 3, trainer)
    # A file may ask for cuts and padding; a count has neither.
    limited: Any = tokenizer
    limited.enable_truncation(4)
    limited.enable_padding(length=50)
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return path


def expected_counts(path: Path, texts: list[str]) -> list[int]:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return [len(tokenizer.encode(text, add_special_tokens=False).ids) for text in texts]


def test_a_file_counts_as_its_own_package_does(file: Path) -> None:
    of_file = counter("some-open-model", tokenizer=file)
    assert of_file.exact
    expected = expected_counts(file, TEXTS)
    assert [of_file.count(text) for text in TEXTS] == expected
    counts = of_file.count_many(TEXTS)
    assert counts.dtype == np.uint32
    assert counts.tolist() == expected
    counted = of_file.count_messages([{"role": "user", "content": TEXTS[1]}], dialect="openai")
    assert counted.per_message.tolist() == [4 + expected[1]]


@settings(max_examples=60)
@given(texts=st.lists(st.text(max_size=60), max_size=6))
def test_any_texts_of_a_file(file: Path, texts: list[str]) -> None:
    of_file = counter("some-open-model", tokenizer=str(file))
    assert of_file.count_many(texts).tolist() == expected_counts(file, texts)


def test_counters_of_files_compare_and_pickle(file: Path) -> None:
    of_file = counter("some-open-model", tokenizer=file)
    again = pickle.loads(pickle.dumps(of_file))
    assert again == of_file == counter("other-model", tokenizer=str(file))
    assert again.count(TEXTS[1]) == of_file.count(TEXTS[1])


def test_files_that_are_none(tmp_path: Path) -> None:
    wrong = tmp_path / "tokenizer.json"
    wrong.write_text("{}")
    for path in (wrong, tmp_path / "missing.json"):
        with pytest.raises(InputError) as caught:
            counter("some-open-model", tokenizer=path)
        assert caught.value.code == "invalid_value"


def test_a_tokenizer_for_a_known_model_keeps_its_other_rules(file: Path) -> None:
    own = counter("claude-sonnet-4-5")
    with_file = counter("claude-sonnet-4-5", tokenizer=file)
    tools = [{"name": "look", "input_schema": {"type": "object"}}]
    assert with_file.name != own.name
    bare = with_file.count_messages([], tools=tools, dialect="anthropic")
    assert bare.overhead == own.count_messages([], dialect="anthropic").overhead
    assert bare.tools > 496
    # No factor: the file is the tokenizer.
    assert with_file.count(TEXTS[1]) == expected_counts(file, TEXTS[:2])[1]
