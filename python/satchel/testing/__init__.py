"""For tests and benchmarks: histories, and the conformance suite of session stores.

Histories come from seeded generators, for scale, and from strategies, for corners. They are pure
functions of their arguments: the same seed gives the same bytes on every run, machine and hash
seed. The texts are believable rather than random (prose, code, JSON, logs, listings, some Korean):
they are recombined from seeded fragments, so words and identifiers recur as they do in real runs
while nearly every text is new (very short ones repeat).

Sizes of tool results follow a two-piece log-normal fitted to 1,357 results of recorded coding-agent
runs (median 212, p90 5,163, p99 39,905 characters; a tenth of the results holds most of the text).
With z a standard normal value::

    ln(chars) = ln 212   + 2.491 * z              up to the 90th percentile (z = 1.2816)
    ln(chars) = ln 5,163 + 1.957 * (z - 1.2816)   above it

kept within 1 and 100,000 characters, where tools cut their output.

Cost: about 12 microseconds a message plus the copying of its text; the fragments of a seed are
built once per process (about 0.15 s). Nothing but the standard library is imported before
:func:`histories` is called, which needs hypothesis.
"""

from __future__ import annotations

import importlib
import math
import warnings
from random import Random
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, cast

from satchel._fragments import CHUNK, Texts, near
from satchel._history_forms import DIALECTS, INSTRUCTED, Dialect, Message, Row, said, step

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from hypothesis.strategies import SearchStrategy

    from satchel.stores.base import SessionStore
    from satchel.testing.stores import Capability, StoreCase, StorePlace

__all__ = [
    "Dialect",
    "generate_chat",
    "generate_history",
    "histories",
    "iter_history",
    "require_release",
    "store_conformance",
]

LARGEST_RESULT = 100_000
"""Characters at which a generated tool result is cut."""

MESSAGES_PER_TURN = 24
"""Messages between two user turns, on average, unless ``turns`` says otherwise."""


def require_release() -> None:
    """Warn with a ``RuntimeWarning`` if the native module is a debug build.

    Timings of a debug build mean nothing; benchmarks call this once before they measure.

    Raises:
        ImportError: the native module has not been built.
    """
    core = importlib.import_module("satchel._core")
    if core.debug_build:
        warnings.warn(
            "satchel._core is a debug build: timings are meaningless, build with --release",
            RuntimeWarning,
            stacklevel=2,
        )


def generate_history(
    count: int,
    *,
    seed: int = 0,
    dialect: Dialect = "openai",
    result_chars: Literal["heavy-tailed"] | int = "heavy-tailed",
    turns: int | None = None,
) -> list[Message]:
    """An agent's history of exactly ``count`` messages, valid for its dialect.

    System prompt with standing instructions (in the dialects of OpenAI: elsewhere it is not a
    message), user turns, assistant messages with one to four calls, and their results. Every call
    is answered at once and has its own id; paths and order ids come back again and again.

    Args:
        count: messages, 0 or more. The expected text is about 1 KB a message when heavy-tailed.
        seed: another seed gives other text, identifiers and structure.
        dialect: one of the five. ``openai`` has a message per result, ``openai-responses`` one
            per call too; in the others one message holds all results of a step, and user and
            assistant alternate.
        result_chars: ``heavy-tailed`` (see the module's description), or a number: every result
            then has that many characters, give or take a quarter, evenly.
        turns: user turns, roughly evenly spaced; by default one per 24 messages.

    Raises:
        ValueError: an argument is out of range.
    """
    return list(
        iter_history(count, seed=seed, dialect=dialect, result_chars=result_chars, turns=turns)
    )


def iter_history(
    count: int,
    *,
    seed: int = 0,
    dialect: Dialect = "openai",
    result_chars: Literal["heavy-tailed"] | int = "heavy-tailed",
    turns: int | None = None,
) -> Iterator[Message]:
    """The messages of :func:`generate_history`, one at a time; arguments are checked at once."""
    if count < 0:
        msg = f"count is {count}, least 0"
        raise ValueError(msg)
    if dialect not in DIALECTS:
        msg = f"dialect is {dialect!r}, known are {', '.join(DIALECTS)}"
        raise ValueError(msg)
    if isinstance(result_chars, int) and result_chars < 1:
        msg = f"result_chars is {result_chars}, least 1"
        raise ValueError(msg)
    if turns is not None and turns < 1:
        msg = f"turns is {turns}, least 1"
        raise ValueError(msg)
    per_turn = MESSAGES_PER_TURN if turns is None else max(2.0, count / turns)
    rng = Random(seed)  # noqa: S311 - not for secrets
    return _history(count, rng, Texts(seed), dialect, result_chars, per_turn)


def generate_chat(count: int, *, seed: int = 0, chars: int = 400) -> list[Message]:
    """Plain messages, user and assistant in turn, of about ``chars`` characters each.

    Args:
        count: messages, 0 or more.
        seed: another seed gives other text.
        chars: mean size in characters, at least 1; sizes spread evenly by a quarter to both sides.
            Of the texts 50 % are prose, 20 % code, 15 % JSON, 15 % Korean.

    Raises:
        ValueError: an argument is out of range.
    """
    if count < 0 or chars < 1:
        msg = f"count is {count} (least 0), chars is {chars} (least 1)"
        raise ValueError(msg)
    rng, texts = Random(seed), Texts(seed)  # noqa: S311 - not for secrets
    kinds = ("prose",) * 10 + ("code",) * 4 + ("json",) * 3 + ("korean",) * 3
    return [
        {
            "role": "assistant" if index & 1 else "user",
            "content": texts.make(
                rng, kinds[int(rng.random() * 20)], near(rng, chars), CHUNK // 16
            ),
        }
        for index in range(count)
    ]


def _history(  # noqa: PLR0917 - private, and called once
    count: int,
    rng: Random,
    texts: Texts,
    dialect: Dialect,
    result_chars: Literal["heavy-tailed"] | int,
    per_turn: float,
) -> Iterator[Message]:
    """A small state machine: whoever is next, and how many messages are left."""
    left = count
    if left and dialect in INSTRUCTED:
        yield {"role": "system", "content": texts.instructions(rng)}
        left -= 1
    turn_left = 0.0
    users_turn = True
    while left:
        if users_turn:
            yield said(dialect, "user", texts.request(rng))
            left -= 1
            turn_left = per_turn * (0.5 + rng.random()) - 2
            users_turn = False
            continue
        # The answer that ends a turn; also when there is no room left for a call and its result.
        if turn_left <= 0 or left == 1:
            yield said(dialect, "assistant", texts.make(rng, "prose", near(rng, 320), 256))
            left -= 1
            users_turn = True
            continue
        width = 1 if rng.random() < 0.8 else 2 + int(rng.random() * 3)  # noqa: PLR2004 - a share
        if dialect == "openai":
            width = min(width, left - 1)
        elif dialect == "openai-responses":
            width = min(width, left // 2)
        for message in _step(rng, texts, dialect, result_chars, width, left):
            yield message
            left -= 1
            turn_left -= 1


def _step(  # noqa: PLR0917 - private, and called once
    rng: Random,
    texts: Texts,
    dialect: Dialect,
    result_chars: Literal["heavy-tailed"] | int,
    width: int,
    room: int,
) -> Iterator[Message]:
    """An assistant message with ``width`` calls, and their results; at most ``room`` messages."""
    words = texts.make(rng, "prose", near(rng, 90), 256) if rng.random() < 0.6 else ""  # noqa: PLR2004 - a share
    rows: list[Row] = []
    for _ in range(width):
        name, kind, arguments = texts.call(rng)
        size = _heavy(rng) if result_chars == "heavy-tailed" else near(rng, result_chars)
        content = texts.make(rng, kind, size, CHUNK)
        bits, prefix = (88, "toolu_01") if dialect == "anthropic" else (96, "call_")
        call_id = f"{prefix}{rng.getrandbits(bits):0{bits // 4}x}"
        rows.append((call_id, name, arguments, content))
    if dialect == "openai-responses" and 2 * width + 1 > room:
        words = ""
    yield from step(dialect, rows, text=words or None)


_MEDIAN, _P90 = math.log(212), math.log(5_163)
_Z90, _Z99 = NormalDist().inv_cdf(0.90), NormalDist().inv_cdf(0.99)
_LOW_SIGMA = (_P90 - _MEDIAN) / _Z90
_HIGH_SIGMA = (math.log(39_905) - _P90) / (_Z99 - _Z90)


def _heavy(rng: Random) -> int:
    """A result's size in characters, as the module's description says."""
    z = rng.gauss(0.0, 1.0)
    log = _MEDIAN + _LOW_SIGMA * z if z <= _Z90 else _P90 + _HIGH_SIGMA * (z - _Z90)
    return min(LARGEST_RESULT, max(1, round(math.exp(log))))


def histories(
    dialect: Dialect = "openai", *, max_steps: int = 12, damage: bool = False
) -> SearchStrategy[list[Message]]:
    """A hypothesis strategy for small histories of ``dialect``, up to ``max_steps`` steps each.

    Without damage every history is valid: it begins with a user (after system messages in the
    dialects of OpenAI), every call is answered at once, ids are unique, no text is blank. Contents
    are strings and part lists, texts reach over all of Unicode, results may be errors or images.

    With damage one to four things are then broken: results without a call, calls without a result,
    repeated ids, empty or missing content, wrong order, unknown blocks and roles, wrong types, lone
    surrogates. A damaged history may happen to be valid still.

    Raises:
        ImportError: hypothesis is not installed.
        ValueError: ``dialect`` is none of the five.
    """
    strategies = importlib.import_module("satchel._histories")
    return cast(
        "SearchStrategy[list[Message]]",
        strategies.history(dialect, max_steps=max_steps, damage=damage),
    )


def store_conformance(
    factory: Callable[[StorePlace], SessionStore],
    *,
    capabilities: Collection[Capability] = ("durable", "shared"),
) -> list[StoreCase]:
    """The cases that every session store must pass, for ``pytest.mark.parametrize`` or a loop.

    Each is called without arguments and raises ``AssertionError``, or returns. What the factory
    gets, and how a case is written into a test, is told in `satchel.testing.stores`.

    Args:
        factory: makes a store at a place; called several times with one place, it makes several
            stores over the same sessions.
        capabilities: what the store can do besides what all can: ``durable``, ``shared``,
            ``clock``.

    Raises:
        ValueError: a capability that there is none of.
    """
    suite = importlib.import_module("satchel.testing.stores")
    return cast("list[StoreCase]", suite.store_conformance(factory, capabilities=capabilities))
