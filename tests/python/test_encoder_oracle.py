"""Exact counting against tiktoken itself: more than 10,000 hostile texts for each encoding."""

from __future__ import annotations

import hashlib
import json
from random import Random
from typing import TYPE_CHECKING

import pytest

import reference
import satchel

if TYPE_CHECKING:
    from collections.abc import Iterator

ENCODINGS = ("o200k_base", "o200k_harmony", "cl100k_base")

# What the two regular expressions tell apart, alone and in the combinations that they look for.
FRAGMENTS = [
    *"abcXYZ019 .,!?'\"/-_#{}[]()<>=+*&%$@\\|~^`;:",
    *("  ", "\n", "\n\n", "\r\n", "\r", "\t", "\u00a0", "\u3000", "\u0085", "\u2028", "\u1680"),
    *(
        "'s",
        "'S",
        "'\u017f",
        "'t",
        "'RE",
        "'Ve",
        "'m",
        "'LL",
        "'d",
        "'x",
        "\u017f",
        "K",
        "İ",
        "\u0131",
    ),
    *("é", "É", "ß", "ǅ", "ǈ", "ʰ", "ª", "Ω", "я", "Ж", "Ա", "ა", "א", "ب", "अ", "ि", "ำ", "ก"),
    *(
        "漢",
        "字",
        "ひ",
        "カ",
        "ー",
        "한",
        "국",
        "사용자",
        "했습니다",
        "고",
        "ᄀ",
        "ᅡ",
        "ᆨ",
        "𠀀",
        "𐩽",
    ),
    *(
        "\u0301",
        "\u0338",
        "\u200d",
        "\ufe0f",
        "\u20e3",
        "😀",
        "👍🏽",
        "👩‍💻",
        "🇰🇷",
        "©",
        "→",
        "—",
        "…",
    ),
    *("\x00", "\x07", "\x1b", "\x7f", "\ufeff", "\uffff", "\U0010ffff", "\ud7ff", "\ue000"),
    *("٣", "௧", "½", "²", "Ⅷ", "123", "4567", "<|endoftext|>", "<|im_start|>", "==", "-----", "//"),
    *("word", "Word", "WORD", "camelCase", "HTMLParser", "snake_case", "don't", "I'LL", "naïve"),
]


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - the same texts in every run, no secret


def hostile(rng: Random, count: int) -> Iterator[str]:
    """Texts of fragments, of any characters, and of bytes read as text."""
    for number in range(count):
        match number % 5:
            case 0 | 1 | 2:
                yield "".join(rng.choices(FRAGMENTS, k=rng.randint(1, 30)))
            case 3:
                codes = (rng.randrange(0x110000) for _ in range(rng.randint(1, 40)))
                yield "".join(chr(code) for code in codes if not 0xD800 <= code < 0xE000)
            case _:
                yield rng.randbytes(rng.randint(1, 120)).decode(errors="replace")


def believable(rng: Random, count: int) -> Iterator[str]:
    """JSON, code and Korean."""
    words = ["order", "Invoice", "getUser", "max_tokens", "주문", "결과를", "확인했습니다", "file"]
    for number in range(count):
        row = {rng.choice(words): rng.random(), "tags": rng.choices(words, k=3), "id": number}
        match number % 4:
            case 0:
                yield json.dumps(row)
            case 1:
                yield json.dumps(row, indent=2, ensure_ascii=False)
            case 2:
                name, other = rng.choices(words, k=2)
                yield f"def {name}(self, {other}: int = {number}) -> None:\n\treturn '{other}'s'\n"
            case _:
                yield " ".join(rng.choices(words, k=12)) + ("." if number % 8 else "?!\n\n")


def runs(rng: Random) -> dict[str, str]:
    """Texts of 100,000 bytes or so without a safe place to cut."""
    size = 100_000
    base64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    return {
        "letter": "a" * size,
        "capital": "A" * size,
        "spaces": " " * size,
        "line feeds": "\n" * size,
        "symbol": "!" * size,
        "two symbols": "=-" * (size // 2),
        "marks": "\u0301" * (size // 2),
        "letter and mark": "a\u0301" * (size // 3),
        "random letters": "".join(rng.choices(base64[26:52], k=size)),
        "random symbols": "".join(rng.choices("!@#$%^&*()-=_+[]{};:,.<>?", k=size)),
        "base64": "".join(rng.choices(base64, k=size)),
        "han": "".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(size // 3)),
        "hangul": "".join(chr(rng.randrange(0xAC00, 0xD7A4)) for _ in range(size // 3)),
        "emoji": "".join(chr(rng.randrange(0x1F300, 0x1F6FF)) for _ in range(size // 4)),
        "mixed scripts": "".join(
            rng.choices(["한", "漢", "я", "é", "क", "ก", "ب", "😀", "a", "A"], k=size // 3)
        ),
        "spaces and breaks": " \n" * (size // 2),
    }


def assert_same(name: str, texts: list[str]) -> None:
    theirs = [len(ids) for ids in map(reference.encoding(name).encode_ordinary, texts)]
    counter = satchel.counter(name)
    wrong = [
        (text[:80], count, expected)
        for text, count, expected in zip(texts, map(counter.count, texts), theirs, strict=True)
        if count != expected
    ]
    assert wrong == []
    assert counter.count_many(texts).tolist() == theirs


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("o200k_base", "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"),
        ("cl100k_base", "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"),
    ],
)
def test_vocabulary_is_the_published_one(name: str, digest: str) -> None:
    assert hashlib.sha256(reference.tiktoken_file(name)).hexdigest() == digest


@pytest.mark.parametrize("name", ENCODINGS)
def test_hostile_texts(name: str) -> None:
    assert_same(name, list(hostile(seeded(20_261), 9_000)))


@pytest.mark.parametrize("name", ENCODINGS)
def test_believable_texts(name: str) -> None:
    assert_same(name, list(believable(seeded(20_262), 2_000)))


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_character(name: str) -> None:
    codes = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    blocks = ("".join(map(chr, codes[at : at + 512])) for at in range(0, len(codes), 512))
    texts = [
        "".join(context.format(char) for char in block)
        for block in blocks
        for context in ("a{0}B ", "{0}'s ", " {0}{0}1\n")
    ]
    assert_same(name, texts)


@pytest.mark.parametrize("name", ENCODINGS)
def test_long_runs(name: str) -> None:
    assert_same(name, list(runs(seeded(20_263)).values()))


@pytest.mark.parametrize("name", ENCODINGS)
def test_lone_surrogates(name: str) -> None:
    halves = ["\ud800", "\udfff", "\ud83d", "\ude00", "a", " ", "\ufeff", "한"]
    rng = seeded(20_264)
    texts = ["".join(rng.choices(halves, k=rng.randint(1, 12))) for _ in range(500)]
    assert_same(name, texts)
    counter = satchel.counter(name)
    assert counter.count("a\ud800b") == counter.count("a\ufffdb")
    assert counter.count("\ud83d\ude00") == counter.count("\U0001f600")
