"""Counting beside tiktoken: rates on text that neither has seen, the worst inputs, and cuts.

As a script it prints one Markdown table::

    python benches/python/bench_counter.py [--quick]

Times are CPU times of one thread. Every repetition has texts of its own from a fixed seed, each
side has its own copies of them, and the counts must agree. Under pytest the satchel side is timed
by pytest-benchmark.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, ParamSpec, Protocol, TypeVar

if __name__ == "__main__":  # pytest finds it by its own settings
    sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "python"))

import reference
import satchel
from satchel import _core

if TYPE_CHECKING:
    from collections.abc import Callable

_P = ParamSpec("_P")
_T = TypeVar("_T")

ENCODINGS = ("o200k_base", "cl100k_base")


def words(text: str) -> list[str]:
    return text.split()


# Fresh words come from stems and endings, so that no repetition sees only what the last one saw.
ENGLISH = words(
    "order ship custom answer request wait review compute measure cover remember translate wonder "
    "paper budget window message agent context summary token planner forward question season river"
)
ENDINGS = ["", *words("s ed ing er ers able ation ly ness less ful ism wise")]
SMALL = words("the a of to in and is was for that with it as on by not be at this are from or")
KOREAN = words(
    "사용자 요청 결과 파일 서버 데이터 모델 함수 오류 시간 문제 방법 내용 설정 작업 "
    "기억 회의 일정 고객 주문 배송 환불 결제 상품 가격 학교 날씨 여행 음식 영화 음악 "
    "정부 경제 사회 문화 기술 연구 환경 교육 건강 병원 은행 보험 교통 공항 예약 계약 예산 비용"
)
PARTICLES = words("이 가 을 를 은 는 에서 으로 에게 까지 부터 와 과 도 만 의 처럼 보다 이라도")
VERBS = words("했습니다 합니다 하세요 하고 있습니다 할 수 있어요 했어요 되었습니다 예정입니다")
NAMES = words("김 이 박 최 정 강 조 윤 장 임 민 서 준 우 현 지 영 수 진 호 연 아 은 주")


def prose(rng: Random, size: int) -> str:
    parts: list[str] = []
    length = 0
    while length < size:
        count = rng.randint(6, 18)
        words = [
            rng.choice(SMALL) if rng.random() < 0.45 else rng.choice(ENGLISH) + rng.choice(ENDINGS)
            for _ in range(count)
        ]
        words[rng.randrange(count)] = str(rng.randrange(3_000))
        parts.append(" ".join(words).capitalize() + rng.choice((". ", "? ", ", so: ", ".\n\n")))
        length += len(parts[-1])
    return "".join(parts)[:size]


def code(rng: Random, size: int) -> str:
    def name() -> str:
        return "_".join(rng.choices(ENGLISH, k=rng.randint(1, 3))) + rng.choice(("", "_id", "s"))

    lines: list[str] = []
    length = 0
    while length < size:
        a, b, c = name(), name(), name().title().replace("_", "")
        lines.append(
            f"    def {a}(self, {b}: {c} | None = None) -> list[{c}]:\n"
            f"        if {b} is None or len(self.{a}) > {rng.randrange(5_000)}:\n"
            f'            raise ValueError(f"{a} must not be {{{b}!r}}")\n'
            f"        return [{c}(item) for item in self.{b}.{name()}()]  # {prose(rng, 40)!r}\n\n"
        )
        length += len(lines[-1])
    return "".join(lines)[:size]


def rows(rng: Random, size: int) -> str:
    lines: list[str] = []
    length = 0
    while length < size:
        row = {
            "id": rng.randrange(10**9),
            "name": f"{rng.choice(ENGLISH)}-{rng.randrange(10**6):x}",
            "price": round(rng.random() * 1_000, 2),
            "tags": rng.choices(ENGLISH, k=3),
            "at": f"2026-0{rng.randint(1, 9)}-{rng.randint(10, 28)}T{rng.randint(10, 23)}:04:00Z",
            "note": prose(rng, 60),
        }
        lines.append(json.dumps(row, indent=rng.choice((None, 2))))
        length += len(lines[-1])
    return "\n".join(lines)[:size]


def korean(rng: Random, size: int) -> str:
    parts: list[str] = []
    length = 0
    while length < size:
        for _ in range(rng.randint(2, 6)):
            stem = rng.choice(KOREAN) + (rng.choice(KOREAN) if rng.random() < 0.25 else "")
            if rng.random() < 0.15:
                stem = "".join(rng.choices(NAMES, k=rng.randint(2, 3)))
            parts.append(stem + rng.choice(PARTICLES))
        parts.append(rng.choice(KOREAN) + rng.choice(VERBS) + rng.choice((".", ".\n", "?")))
        length += sum(map(len, parts[-4:]))
    return " ".join(parts)[:size]


KINDS: dict[str, Callable[[Random, int], str]] = {
    "prose": prose,
    "code": code,
    "JSON": rows,
    "Korean": korean,
}


def messages(rng: Random, count: int) -> list[str]:
    """Short messages: half prose, a fifth code, the rest JSON and Korean; 40 to 400 bytes."""
    kinds = (prose, prose, prose, prose, prose, code, code, rows, rows, korean)
    return [rng.choice(kinds)(rng, rng.randint(40, 130)) for _ in range(count)]


_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_BASE64 = _LETTERS.upper() + _LETTERS + "0123456789+/"
HOSTILE: dict[str, Callable[[Random, int], str]] = {
    "one letter": lambda _rng, size: "a" * size,
    "spaces": lambda _rng, size: " " * size,
    "line feeds": lambda _rng, size: "\n" * size,
    "spaces and line feeds": lambda _rng, size: " \n" * (size // 2),
    "one symbol": lambda _rng, size: "!" * size,
    "two symbols": lambda _rng, size: "=-" * (size // 2),
    "random symbols": lambda rng, size: "".join(rng.choices("!@#$%^&*()-=_+[]{};:,.<>?", k=size)),
    "random letters": lambda rng, size: "".join(rng.choices(_LETTERS, k=size)),
    "base64": lambda rng, size: "".join(rng.choices(_BASE64, k=size)),
    "marks": lambda _rng, size: "\u0301" * (size // 2),
    "Han": lambda rng, size: "".join(chr(rng.randrange(0x4E00, 0x9FFF)) for _ in range(size // 3)),
    "Hangul": lambda rng, size: "".join(
        chr(rng.randrange(0xAC00, 0xD7A4)) for _ in range(size // 3)
    ),
    "emoji": lambda rng, size: "".join(
        chr(rng.randrange(0x1F300, 0x1F6FF)) for _ in range(size // 4)
    ),
    "mixed scripts": lambda rng, size: "".join(rng.choices("한漢яéक ก😀aA", k=size // 2)),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: CPU seconds of both sides, repetition by repetition."""

    name: str
    megabytes: float
    ours: list[float]
    theirs: list[float]

    @property
    def ratio(self) -> float:
        """How many times faster satchel is, by the medians."""
        return statistics.median(self.theirs) / statistics.median(self.ours)

    def __str__(self) -> str:
        ratios = sorted(theirs / ours for theirs, ours in zip(self.theirs, self.ours, strict=True))
        rate = self.megabytes / statistics.median(self.ours)
        spread = f"{ratios[0]:.1f} / {statistics.median(ratios):.1f} / {ratios[-1]:.1f}"
        return f"| {self.name} | {rate:.0f} MB/s | {spread} | {len(ratios)} |"


def cpu_seconds(work: Callable[[list[str]], _T], texts: list[str]) -> tuple[float, _T]:
    # Without the garbage collector, which would look through tiktoken's tables now and then.
    gc.disable()
    try:
        start = time.process_time()
        result = work(texts)
        return time.process_time() - start, result
    finally:
        gc.enable()


def compare(name: str, encoding: str, make: Callable[[int], list[str]], times: int) -> Row:
    count = satchel.counter(encoding).count
    encode = reference.encoding(encoding).encode_ordinary
    row = Row(name, sum(len(text.encode()) for text in make(1)) / 1e6, [], [])

    def counts(texts: list[str]) -> list[int]:
        return [count(text) for text in texts]

    def ids(texts: list[str]) -> list[list[int]]:
        return [encode(text) for text in texts]

    for seed in range(times + 1):
        ours, counted = cpu_seconds(counts, make(seed))
        theirs, encoded = cpu_seconds(ids, make(seed))
        assert counted == [len(found) for found in encoded]
        if seed:  # the first repetition warms up
            row.ours.append(ours)
            row.theirs.append(theirs)
    return row


def compare_all(encoding: str, *, size: int, times: int) -> tuple[list[Row], list[Row]]:
    """Rates on ``size`` characters a repetition, and the hostile inputs, slowest ratio first."""

    def of_kind(kind: Callable[[Random, int], str]) -> Callable[[int], list[str]]:
        return lambda seed: [kind(seeded(seed), 2_000) for seed in parts(seed, size // 2_000)]

    def hostile(kind: Callable[[Random, int], str]) -> Callable[[int], list[str]]:
        return lambda seed: [kind(seeded(seed), min(size, 100_000))]

    rates = [
        compare(
            "messages of 40 to 400 bytes",
            encoding,
            lambda seed: messages(seeded(seed), size // 90),
            times,
        )
    ]
    rates += [compare(name, encoding, of_kind(kind), times) for name, kind in KINDS.items()]
    worst = [
        compare(f"100 KB, {name}", encoding, hostile(kind), times) for name, kind in HOSTILE.items()
    ]
    return rates, sorted(worst, key=lambda row: row.ratio)


def seeded(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - the same texts in every run, no secret


def parts(seed: int, count: int) -> range:
    return range(seed * count, (seed + 1) * count)


# --- pytest --------------------------------------------------------------------------------------


class Bench(Protocol):
    """The ``benchmark`` fixture: times a call and returns what it returned."""

    def __call__(self, work: Callable[_P, _T], /, *args: _P.args, **options: _P.kwargs) -> _T:
        """Times ``work``."""
        ...


def test_count_messages(benchmark: Bench) -> None:
    count = satchel.counter("o200k_base").count
    texts = messages(seeded(0), 1_000)
    assert benchmark(lambda: [count(text) for text in texts])


def test_count_many(benchmark: Bench) -> None:
    texts = messages(seeded(0), 5_000)
    assert len(benchmark(satchel.counter("o200k_base").count_many, texts)) == len(texts)


def test_fits_stops_early(benchmark: Bench) -> None:
    text = prose(seeded(0), 200_000)
    assert not benchmark(satchel.counter("o200k_base").fits, text, 100)


def test_truncate_costs_its_limit(benchmark: Bench) -> None:
    counter = satchel.counter("o200k_base")
    text = prose(seeded(0), 200_000)
    cut = benchmark(lambda: counter.truncate(text, 1_000, keep="both"))
    assert counter.count(cut) <= 1_000


def test_sides_agree() -> None:
    for encoding in ENCODINGS:
        rates, worst = compare_all(encoding, size=8_000, times=1)
        assert len(rates) == len(KINDS) + 1
        assert len(worst) == len(HOSTILE)


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares counting with tiktoken.")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    quick = parser.parse_args().quick
    if _core.debug_build:
        print("This is a debug build: its figures mean nothing.", file=sys.stderr)
    for encoding in ENCODINGS:
        rates, worst = compare_all(encoding, size=20_000 if quick else 1_000_000, times=9)
        print(
            f"\n{encoding} | satchel | times tiktoken: least / median / most | n\n---|---|---|---"
        )
        for row in (*rates, *worst):
            print(row)


if __name__ == "__main__":
    main()
