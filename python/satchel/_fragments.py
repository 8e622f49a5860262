"""Seeded texts that read like an agent's traffic: the material of ``satchel.testing``.

A seed makes a few thousand fragments of each kind (sentences, functions, log lines, records); a
text is a chain of stretches of them, each begun by a line that occurs nowhere else. Sizes are
exact: a text has as many characters as were asked for.
"""

# ruff: noqa: SIM905 - long word lists are easier to read and to extend as text

from __future__ import annotations

import itertools
import json
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CHUNK", "Names", "Pool", "Texts", "near"]

CHUNK = 4_096
"""Longest stretch, in characters, taken from one place of a fragment pool."""


def near(rng: Random, size: int) -> int:
    """A size within a quarter of ``size``, evenly spread."""
    return max(1, round(size * (0.75 + 0.5 * rng.random())))


@dataclass(frozen=True)
class Pool:
    """Fragments of one kind, end to end.

    ``tape`` is the text, ``starts`` the offsets at which a fragment begins; no fragment begins in
    the last ``CHUNK`` characters, so a stretch of that length can be taken from any of them.
    """

    tape: str
    starts: tuple[int, ...]

    @classmethod
    def of(cls, fragments: Sequence[str]) -> Pool:
        ends = tuple(itertools.accumulate(len(fragment) for fragment in fragments))
        last = bisect_right(ends, ends[-1] - CHUNK)
        return cls("".join(fragments), (0, *ends[:last]))

    def take(self, rng: Random, size: int) -> str:
        """Exactly ``size`` characters, at most ``CHUNK``, from the start of a fragment on."""
        start = self.starts[int(rng.random() * len(self.starts))]
        return self.tape[start : start + size]

    def take_whole(self, rng: Random, size: int) -> str:
        """Whole fragments from one place, at least one, as many as end within ``size``."""
        first = int(rng.random() * (len(self.starts) - 1))
        last = bisect_right(self.starts, self.starts[first] + size)
        return self.tape[self.starts[first] : self.starts[max(first + 1, last - 1)]]


class Texts:
    """Texts of every kind from the pools of one seed."""

    def __init__(self, seed: int) -> None:
        self.names, self.pools = _pools(seed)

    def make(self, rng: Random, kind: str, size: int, chunk: int) -> str:
        """A new text of exactly ``size`` characters, recombined every ``chunk`` characters."""
        if kind == "json":
            return self._json(rng, size, chunk)
        pool = self.pools[kind]
        # A short text is one stretch; a longer one begins with something that was never there.
        pieces: list[str] = []
        left = size
        while left > 0:
            if size > 48:  # noqa: PLR2004 - room for a fresh head
                pieces.append(_FRESH[kind](rng, self.names))
                left -= len(pieces[-1])
            stretch = int(chunk * (0.5 + 0.5 * rng.random()))
            if left > stretch:
                pieces.append(pool.take_whole(rng, stretch))
                left -= len(pieces[-1])
            elif left > 0:
                pieces.append(pool.take(rng, left))
                left = 0
        text = "".join(pieces)[:size]
        # Blank text is invalid in some dialects, and a text should not end in white space either.
        return text if not text[-1].isspace() else text[:-1] + "."

    def _json(self, rng: Random, size: int, chunk: int) -> str:
        """A valid JSON object where there is room for one: records, then a note that fills up."""
        head = f'{{"id": "{rng.getrandbits(48):012x}", "records": ['
        tail = '], "note": "'
        room = size - len(head) - len(tail) - 2
        if room < 0:
            return f"{rng.getrandbits(250) | 1 << 249}"[:size]  # a number is valid JSON too
        records: list[str] = []
        while True:
            start = int(rng.random() * len(self.names.records))
            for record in self.names.records[start : start + max(1, chunk // 128)]:
                if len(record) + 2 > room:
                    break
                records.append(record)
                room -= len(record) + 2
            else:
                continue
            break
        if records:
            room += 2
        note = "".join(
            self.pools["prose"].take(rng, min(CHUNK, room - at)) for at in range(0, room, CHUNK)
        )
        return head + ", ".join(records) + tail + note.replace("\n", " ") + '"}'

    def instructions(self, rng: Random) -> str:
        """A system prompt with standing instructions."""
        names = self.names
        rules = "\n".join(f"- {names.rule(rng)}" for _ in range(5))
        return f"You are the engineer on call for {names.path(rng)}.\n{rules}\n" + self.make(
            rng, "prose", near(rng, 600), 256
        )

    def request(self, rng: Random) -> str:
        """What a user asks; now and then with an instruction or a decision that must last."""
        kind = "korean" if rng.random() < 0.12 else "prose"  # noqa: PLR2004 - a share
        text = self.make(rng, kind, near(rng, 160), 200)
        chance = rng.random()
        if chance < 0.15:  # noqa: PLR2004 - a share
            return f"{text} {self.names.rule(rng)}"
        if chance < 0.2:  # noqa: PLR2004 - a share
            return f"{text} 중요: {self.names.path(rng)} 파일은 반드시 그대로 두기로 결정했습니다."
        return text

    def call(self, rng: Random) -> tuple[str, str, dict[str, Any]]:
        """A tool's name, the kind of text it returns, and arguments."""
        names = self.names
        chance = int(rng.random() * 100)
        if chance < 34:  # noqa: PLR2004 - shares in percent
            line = 1 + int(rng.random() * 400)
            return "read_file", "code", {"path": names.path(rng), "from_line": line}
        if chance < 56:  # noqa: PLR2004 - a share
            return "run", "log", {"command": f"make -C {names.path(rng)} test", "timeout_s": 120}
        if chance < 68:  # noqa: PLR2004 - a share
            return "search", "listing", {"pattern": names.symbol(rng), "path": names.path(rng)}
        if chance < 84:  # noqa: PLR2004 - a share
            where = {"field": "order_id", "in": [names.order(rng), names.order(rng)]}
            return "query", "json", {"where": where, "limit": 50}
        if chance < 94:  # noqa: PLR2004 - a share
            return "fetch_page", "prose", {"url": f"https://docs.example/{names.path(rng)}"}
        return "find_note", "korean", {"제목": f"{names.order(rng)} 처리 기록", "최근": 5}


@dataclass(frozen=True)
class Names:
    """Identifiers and JSON records of one seed; the first ones of each come up most often."""

    paths: tuple[str, ...]
    symbols: tuple[str, ...]
    orders: tuple[str, ...]
    records: tuple[str, ...] = ()

    def path(self, rng: Random) -> str:
        return self.paths[int(len(self.paths) * rng.random() ** 2)]

    def symbol(self, rng: Random) -> str:
        return self.symbols[int(len(self.symbols) * rng.random() ** 2)]

    def order(self, rng: Random) -> str:
        return self.orders[int(len(self.orders) * rng.random() ** 2)]

    def rule(self, rng: Random) -> str:
        form = _RULES[int(rng.random() * len(_RULES))]
        return form.format(path=self.path(rng), symbol=self.symbol(rng), order=self.order(rng))


_FRESH: dict[str, Callable[[Random, Names], str]] = {
    "prose": lambda rng, names: f"{names.order(rng)} ({rng.getrandbits(24):x}): ",
    "korean": lambda rng, names: f"[{names.order(rng)}-{rng.getrandbits(24):x}] ",
    "code": lambda rng, names: f"# {names.path(rng)} @ {rng.getrandbits(40):010x}\n",
    "log": lambda rng, names: f"run {rng.getrandbits(40):010x} of {names.path(rng)}\n",
    "listing": lambda rng, names: f"{names.path(rng)}  {rng.getrandbits(32):>10} bytes\n",
}

_RULES = (
    "Never edit {path} without asking first.",
    "Always run the tests of {path} before you commit.",
    "Do not touch order {order}: it is under review.",
    "Keep the signature of {symbol} as it is, other teams call it.",
    "From now on write times in UTC and amounts in cents.",
    "Refunds above 200 EUR need an approval, whatever {order} says.",
)
_NOUNS = (
    "anchor archive badge balance basket beacon bridge bucket buffer cable calendar canal cargo "
    "channel chapter circuit clause cluster column courier crate customer deadline depot draft "
    "engine envelope estimate factory ferry field folder forecast freight garden gateway "
    "harbour header index invoice journal kernel ladder ledger lantern margin market meter "
    "mirror module notebook orchard order packet parcel partner pattern payload payment "
    "pipeline platform policy port postcode printer probe profile quarter queue receipt record "
    "reference region release report reservoir retry route sample scanner schedule sensor "
    "session shelf shipment signal snapshot socket station stock storage supplier table tenant "
    "ticket timeline tracker transfer tunnel turbine update valve vendor voucher warehouse "
    "weather window workshop yield zone"
).split()
_VERBS = (
    "accepts adjusts aligns appends archives balances blocks books carries checks closes "
    "collects compares copies counts covers cuts delays delivers drops duplicates empties "
    "explains exports fills filters flushes freezes guards holds imports joins keeps labels "
    "limits loads locks marks matches merges moves needs opens orders overwrites parses prints "
    "queues raises reads rebuilds refuses repeats replaces reports resets returns rounds saves "
    "scans sends shifts signs skips sorts splits stores swaps syncs tests traces trims updates "
    "validates waits wakes writes"
).split()
_ADJECTIVES = (
    "early late empty full broken stable partial quiet noisy remote local hidden visible narrow "
    "wide cold warm stale fresh manual automatic cheap costly second third former upper lower "
    "silent urgent optional required regional nightly weekly duplicate foreign internal unpaid "
    "paid sealed shared spare strict"
).split()
_SENTENCES = (
    "The {a} {n} {v} the {n2} before the {n3} {v2} it.",
    "We saw {k} cases in which the {n} {v} a {a} {n2}; {o} was one of them.",
    "After the change in {p} the {n} no longer {v} the {n2}.",
    "If the {n} {v} twice, the {a} {n2} keeps {k} entries and {s} returns early.",
    "Nobody knows why {s} {v} the {n}, but it costs {k} ms on every {n2}.",
    "It's the {a} {n} again: {o} {v}, then the {n2} {v2} and the {n3} is lost.",
    "As agreed, the {n} stays {a} until {d}; only the {n2} of {o} may change.",
    "Please compare the {n} of {d} with the {a} one, line {k} differs.",
    "That's not what I asked for; I'd rather have the {n} {a} than the {n2} {a2}.",
    "According to the {n} report the {a} {n2} rose from {k} to {k2} within a week.",
    'The word "{n}" means something else here: a {a} {n2} that {v} the {n3}.',
    "In short: {p} is {a}, {s} is {a2}, and the {n} can wait.",
    "I've read {p} from line {k}; the {n} looks {a}, the {n2} doesn't.",
    "Before {d} every {n} went through {s}, which {v} the {n2} {k} times.",
    "What if the {n} were {a}? Then {o} would wait for the {n2}, and that {v} nothing.",
    "Two things remain: the {a} {n} in {p}, and somebody who {v} the {n2}.",
    "{k2} rows later the same {n} turns up again, this time {a} and without its {n2}.",
    "They'll send the {n} on {d}, provided the {a} {n2} {v} in time.",
    "My guess (untested!): {s} {v} the {n} while the {n2} is still {a}.",
    "The difference between {k} and {k2} is exactly the {a} {n} of {o}.",
    "Could you check whether {p} {v} the {n}, and if so since when?",
    "There were three reasons: a {a} {n}, a {a2} {n2}, and plain bad luck with {o}.",
    "Done. The {n} {v} the {n2} in {k} ms now; it took {k2} ms before.",
    "Unlike the {n}, a {n2} isn't {a} by default -- see {p}:{k}.",
    "On the second try {s} failed with 'no {a} {n}', which is new.",
    "For the record, {o} was {a} on {d} and nobody had asked for its {n}.",
    "Keep in mind that a {n} {v} its {n2} only once; after that it's {a}.",
    "The team in charge of the {n} would like the {a} {n2} back by {d}.",
)
_KOREAN_NOUNS = (
    "주문 창고 배송 환불 일정 회의 예산 보고서 고객 재고 결제 계약 자료 코드 서버 화면 검토 승인 "
    "담당자 오류 기록 설정 시험 요청 문서"
).split()
# A gap of a noun carries its particle: topic, subject or object, in the form for its last letter.
_KOREAN_SENTENCES = (
    "{n} {o}의 {n2} 내역을 확인했습니다.",
    "{n} 담당자가 {d}까지 {n_obj} 다시 보내기로 결정했습니다.",
    "중요한 점은 {n}보다 {n_sub} 먼저 끝나야 한다는 것입니다.",
    "{k}건 가운데 {k2}건은 {n} 때문에 늦어졌고, 나머지는 {n2} 문제였습니다.",
    "그래서 {n_top} 그대로 두고 {n2}만 바꾸는 쪽으로 확정했어요.",
    "{p} 파일의 {n} 부분을 고치면 {n2} 오류가 사라질까요?",
    "지난번 {n_sub} 왜 {k2}분이나 걸렸는지 아직 모르겠습니다.",
    "{d} 회의에서 {n_obj} {k}개로 줄이자는 의견이 나왔어요.",
    "혹시 {o} 관련 {n_top} 어디에 남아 있나요?",
    "{n2} 화면에서 {n_obj} 누르면 {k}번 오류가 납니다.",
    "어제 말씀드린 대로 {n_top} {d} 이후에만 가능합니다.",
    "{n}, {n2} 순서로 처리하고 결과를 {p} 아래에 적어 두었습니다.",
    "반드시 {n_obj} 먼저 백업해 주세요.",
    "괜찮으시면 {n_top} 제가 맡고, {n2} 쪽은 {o} 담당자에게 넘기겠습니다.",
)
_CODE = (
    (
        "def {s}({n}: str, *, {n2}: int = {k}) -> bool:\n"
        '    """Whether the {a} {n} {v} the {n2}."""\n'
        "    if {n2} > {k2}:\n"
        "        return False\n"
        '    return {n}.startswith("{o}") and {s2}({n})\n'
        "\n"
        "\n"
    ),
    (
        "class {c}:\n"
        "    limit = {k}\n"
        "\n"
        "    def __init__(self, {n}: {c}) -> None:\n"
        "        self._{n} = {n}\n"
        "        self.{n2} = [{k}, {k2}]\n"
        "\n"
    ),
    (
        "    for {n} in self.{n2}[{k}:]:\n"
        "        if not {n}.{a}:\n"
        "            continue\n"
        "        {n3} += {n}.{n2} * {k2}  # {a} {n} first\n"
    ),
    (
        "export async function {s}({n}: {c}, {n2} = {k}): Promise<void> {{\n"
        "  const {n3} = await fetch(`/api/{n}/${{{n2}}}`);\n"
        "  if (!{n3}.ok) throw new Error('{a} {n} for {o}');\n"
        "}}\n"
        "\n"
    ),
    (
        "try:\n"
        "    {n} = {s}({k})\n"
        "except {c}Error as error:\n"
        '    log.warning("%s: {a} {n}", error)\n'
        "    raise\n"
    ),
    (
        "fn {s}({n}: &[u8], {n2}: usize) -> Option<{c}> {{\n"
        "    let {n3} = {n}.get({n2}..{n2} + {k})?;\n"
        "    {c}::from_{a}({n3})\n"
        "}}\n"
        "\n"
    ),
)
_LOG = (
    "{d}T{t}Z INFO  [{n}-{k}] {s}: {o} {v} in {k2} ms\n",
    "{d}T{t}Z DEBUG [{n}-{k}] cache {a}, key={h}\n",
    "{d}T{t}Z WARN  [{n}] {a} {n2}: retry {k} of {k2} for {o}\n",
    "{d}T{t}Z ERROR [{n}] {c}Error: {n2} {o} is {a} (code {k})\n",
    '  File "{p}", line {k}, in {s}\n    {n} = self.{n2}({k2})\n',
    "{p}::{s} PASSED                                          [{k2}]\n",
    "{p}::{s}[{n}-{k}] FAILED: assert {k} == {k2}\n",
    "E   AssertionError: {a} {n} {o!r} not in {{'{n2}': {k}}}\n",
)
_SUFFIXES = ("py", "py", "ts", "rs", "toml", "md")
_LISTING = (
    "{p}:{k}:    {n} = {s}({n2}, {k2})\n",
    "{p}:{k}: def {s}({n}, {n2}):\n",
    "-rw-r--r--  1 build build {k2:>8} {d} {t} {p}\n",
    "@@ -{k},7 +{k2},9 @@ {s}\n-    {n} = {k}\n+    {n} = {s2}({k2})\n",
)


def _stem(verb: str) -> str:
    return verb[:-3] + "y" if verb.endswith("ies") else verb[:-1]


@lru_cache(maxsize=4)
def _pools(seed: int) -> tuple[Names, dict[str, Pool]]:
    """The fragments of a seed; kept for the last few seeds, about 2 MB each."""
    rng = Random(f"fragments {seed}")  # noqa: S311 - not for secrets
    pick = rng.choice
    paths = tuple(
        f"{pick(_NOUNS)}/{pick(_NOUNS)}_{pick(_NOUNS)}.{pick(_SUFFIXES)}" for _ in range(240)
    )
    symbols = tuple(f"{_stem(pick(_VERBS))}_{pick(_ADJECTIVES)}_{pick(_NOUNS)}" for _ in range(240))
    orders = tuple(
        f"{pick('ABDFKQTW')}{pick('OXZ')}-{rng.randrange(10_000, 1_000_000)}" for _ in range(240)
    )
    names = Names(paths, symbols, orders)

    def fill(form: str) -> str:
        """One fragment: the form with its gaps filled."""
        return form.format(
            n=pick(_NOUNS), n2=pick(_NOUNS), n3=pick(_NOUNS), v=pick(_VERBS), v2=pick(_VERBS),
            a=pick(_ADJECTIVES), a2=pick(_ADJECTIVES), s=names.symbol(rng), s2=names.symbol(rng),
            c=pick(_NOUNS).title() + pick(_NOUNS).title(), p=names.path(rng), o=names.order(rng),
            k=rng.randrange(1, 1_000), k2=rng.randrange(1, 100_000),
            h=f"{rng.getrandbits(64):016x}",
            d=f"2026-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}",
            t=f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}",
        )  # fmt: skip

    def korean(form: str) -> str:
        noun = pick(_KOREAN_NOUNS)
        closed = (ord(noun[-1]) - 0xAC00) % 28 > 0  # whether the last syllable ends in a consonant
        return form.format(
            n=pick(_KOREAN_NOUNS), n2=pick(_KOREAN_NOUNS), n_top=noun + ("은" if closed else "는"),
            n_sub=noun + ("이" if closed else "가"), n_obj=noun + ("을" if closed else "를"),
            o=names.order(rng), p=names.path(rng),
            k=rng.randrange(2, 100), k2=rng.randrange(2, 60),
            d=f"{rng.randrange(1, 13)}월 {rng.randrange(1, 29)}일",
        )  # fmt: skip

    records = tuple(
        json.dumps(
            {
                "order_id": names.order(rng),
                "status": pick(_ADJECTIVES),
                pick(_NOUNS): rng.randrange(100_000),
                "path": names.path(rng),
                "tags": [pick(_NOUNS), pick(("긴급", "검토", "보류", "new", "done"))],
                "score": rng.random(),
                "note": None if rng.random() < 0.5 else f"{pick(_ADJECTIVES)} {pick(_NOUNS)}",  # noqa: PLR2004 - a share
            },
            ensure_ascii=False,
        )
        for _ in range(1_500)
    )
    gaps = (" ", " ", " ", "\n\n")
    pools = {
        "prose": Pool.of(
            [fill(pick(_SENTENCES)).replace('"', "'") + pick(gaps) for _ in range(3_000)]
        ),
        "korean": Pool.of([korean(pick(_KOREAN_SENTENCES)) + pick(gaps) for _ in range(1_500)]),
        "code": Pool.of([fill(pick(_CODE)) for _ in range(1_500)]),
        "log": Pool.of([fill(pick(_LOG)) for _ in range(3_000)]),
        "listing": Pool.of([fill(pick(_LISTING)) for _ in range(3_000)]),
    }
    return Names(paths, symbols, orders, records), pools
