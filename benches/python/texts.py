"""Seeded inputs of the benches; another seed gives texts that nobody has seen before."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from satchel._fragments import Texts, near
from satchel.testing import generate_chat

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["KINDS", "PATHOLOGICAL", "of_kind", "short_mixed", "total_bytes", "unseen_korean"]

KINDS = ("prose", "code", "json", "korean")

LEAST_BYTES, MOST_BYTES = 40, 400


def short_mixed(count: int, seed: int) -> list[str]:
    """Chat messages of 40 to 400 bytes: half prose, a fifth code, the rest JSON and Korean."""
    rng = Random(seed)  # noqa: S311 - not for secrets
    sizes = (60, 110, 170, 240, 300)
    found: list[str] = []
    part = 0
    while len(found) < count:
        chat = generate_chat(count // 4 + 8, seed=seed * 1_000 + part, chars=sizes[part % 5])
        contents: list[str] = [message["content"] for message in chat]
        found += [text for text in contents if LEAST_BYTES <= len(text.encode()) <= MOST_BYTES]
        part += 1
    rng.shuffle(found)
    return found[:count]


def of_kind(kind: str, size: int, seed: int, *, chars: int = 2_000) -> list[str]:
    """Texts of one kind, ``size`` characters in all, of about ``chars`` characters each."""
    rng, texts = Random(seed), Texts(seed)  # noqa: S311 - not for secrets
    found: list[str] = []
    while size > 0:
        length = min(size, near(rng, chars))
        found.append(texts.make(rng, kind, length, 512))
        size -= length
    return found


def unseen_korean(size: int, seed: int) -> list[str]:
    """Made-up Korean nouns with particles, hardly one twice; ``size`` characters in all."""
    rng = Random(seed)  # noqa: S311 - not for secrets
    syllables = (
        "가나다라마사자하고기도리미비시어에오우이인전정제조주지진하한해화성수서부보민상구국동문신"
    )
    particles = ("은", "는", "을", "를", "에서", "으로", "까지", "보다", "와", "의")
    found: list[str] = []
    while size > 0:
        words = (
            "".join(rng.choices(syllables, k=rng.randrange(3, 6))) + rng.choice(particles)
            for _ in range(40)
        )
        found.append(" ".join(words)[:size])
        size -= len(found[-1])
    return found


def total_bytes(texts: list[str]) -> int:
    """UTF-8 bytes of the texts."""
    return sum(len(text.encode()) for text in texts)


def _letters(alphabet: str) -> Callable[[Random, int], str]:
    return lambda rng, size: "".join(rng.choices(alphabet, k=size))


def _repeated(unit: str) -> Callable[[Random, int], str]:
    # A few characters more or less, so that no two repetitions see the same text.
    return lambda rng, size: unit * ((size - rng.randrange(64)) // len(unit.encode()))


PATHOLOGICAL: Mapping[str, Callable[[Random, int], str]] = {
    "one letter": _repeated("a"),
    "two letters": _repeated("ab"),
    "random lower case": _letters("abcdefghijklmnopqrstuvwxyz"),
    "random letters": _letters("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "base64": _letters("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
    "digits": _letters("0123456789"),
    "hexadecimal": _letters("0123456789abcdef"),
    "spaces": _repeated(" "),
    "new lines": _repeated("\n"),
    "white space": _letters(" \t\n\r"),
    "punctuation": _letters("!?.,;:-_=+*/\\|<>()[]{}#@$%^&~`'\""),
    "one sign": _repeated("="),
    "apostrophes": _repeated("'s"),
    "Hangul": lambda rng, size: "".join(
        chr(0xAC00 + rng.randrange(11_172)) for _ in range(size // 3)
    ),
    "one syllable": _repeated("가"),
    "Han": lambda rng, size: "".join(chr(0x4E00 + rng.randrange(20_000)) for _ in range(size // 3)),
    "emoji": lambda rng, size: "".join(
        chr(0x1F300 + rng.randrange(0x200)) for _ in range(size // 4)
    ),
    "joined emoji": _repeated("👩‍👩‍👧‍👦"),
    "combining marks": _repeated("e\u0301\u0323"),
    "special token": _repeated("<|endoftext|>"),
    "any code point": lambda rng, size: "".join(
        chr(rng.randrange(0x20, 0xD800)) for _ in range(size // 3)
    ),
}
"""Texts that make tokenizers slow, by name; each of about ``size`` UTF-8 bytes."""
