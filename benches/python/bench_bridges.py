"""Windows of other frameworks beside ours, in one run: two Markdown tables.

    python benches/python/bench_bridges.py [--cuts N] [--sizes N ...]

The first table is time: one window of a tool history, under a quarter of its tokens (or messages),
and the window after one more message. The peers count four characters as a token, the cheapest
count there is; satchel counts exactly. Best of three, CPU time of the process; what
takes longer than five seconds runs once; the peers' messages are built before the clock starts.

The second is validity: windows that a provider would refuse, of as many random cuts: a random
place where an agent would call its model, a random limit, each window written in every dialect as
it is and looked at by `satchel.lint`. A typed error of ours is no window.

The frameworks want other versions than the rest of this repository, so they have an environment of
their own: install ``benches/bridges.txt`` there and run this file by its Python with ``python/`` on
PYTHONPATH. What is not installed is left out, and said.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import satchel
from bridge_peers import Peer, estimate, in_dialect, installed
from satchel.testing import Dialect, generate_chat, require_release

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Message = dict[str, Any]

DIALECTS: tuple[str, ...] = get_args(Dialect)
MODELS = {
    "openai": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-sonnet-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}
SCHEMA: Message = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL: Message = {"type": "function", "function": {"name": "read", "parameters": SCHEMA}}
SHORT = 40
LONG_S = 5.0
POLICIES = ("adaptive", "token-window", "sliding-window")


def conversation(size: int, seed: int = 7) -> list[Message]:
    """A seeded history of an agent: runs of calls, some at once, about 400 characters a message."""
    rng = random.Random(seed)  # noqa: S311 - a history needs a seed, not a secret
    texts = [str(message["content"]) for message in generate_chat(size)]
    found: list[Message] = [{"role": "system", "content": "Mend the library of parts."}]
    while len(found) < size:
        found.append({"role": "user", "content": texts[len(found) % size]})
        for _ in range(rng.randrange(1, 9)):
            at = len(found)
            names = [f"call_{at}_{one}" for one in range(rng.choice((1, 1, 2, 3)))]
            calls = [
                {
                    "id": name,
                    "type": "function",
                    "function": {"name": "read", "arguments": f'{{"path": "src/{name}.py"}}'},
                }
                for name in names
            ]
            found.append({"role": "assistant", "content": None, "tool_calls": calls})
            found += [
                {"role": "tool", "tool_call_id": name, "content": texts[(at + 1) % size]}
                for name in names
            ]
        found.append({"role": "assistant", "content": texts[(len(found) + 2) % size]})
    return found


def call_sites(history: Sequence[Message]) -> list[int]:
    """Lengths of the history at which an agent calls its model."""
    return [
        at + 1
        for at, message in enumerate(history)
        if message["role"] == "user"
        or (
            message["role"] == "tool"
            and (at + 1 == len(history) or history[at + 1]["role"] != "tool")
        )
    ]


def whole(history: list[Message]) -> list[Message]:
    """A history that ends where an agent calls its model."""
    return history[: call_sites(history)[-1]]


def timed(work: Callable[[Any], object], prepare: Callable[[], Any], runs: int = 3) -> float:
    """Seconds of the best run; what takes long runs once."""
    seconds: list[float] = []
    while len(seconds) < runs and sum(seconds) < LONG_S:
        given = prepare()
        start = time.process_time()
        work(given)
        seconds.append(time.process_time() - start)
    return min(seconds)


# --- time -----------------------------------------------------------------------------------------


def row(name: str, size: int, window: float, following: float) -> None:
    print(f"| {name} | {size:,} | {window * 1e3:,.1f} ms | {following * 1e3:,.2f} ms |", flush=True)


def our_rows(history: list[Message]) -> None:
    sites = call_sites(history)
    before, after = history[: sites[-2]], history[sites[-2] : sites[-1]]
    counter = satchel.counter("gpt-4o")
    budget = counter.count_messages(before, tools=[TOOL], dialect="openai").total // 4
    for policy in POLICIES:
        packer = satchel.Assembler("gpt-4o", budget=budget, policy=policy)

        def cold(given: list[Message], packer: satchel.Assembler = packer) -> None:
            window = packer.assemble(given, tools=[TOOL])
            assert window.tokens <= budget

        def warm(working_set: satchel.WorkingSet) -> None:
            working_set.append(after)
            assert working_set.window().tokens <= budget

        def prepared(packer: satchel.Assembler = packer) -> satchel.WorkingSet:
            found = packer.working_set(before, tools=[TOOL])
            found.window()
            return found

        first = timed(cold, lambda: [dict(message) for message in before])
        row(f"satchel, {policy}, exact", len(before), first, timed(warm, prepared))


def peer_row(peer: Peer, history: list[Message]) -> None:
    sites = call_sites(history)
    before, after = history[: sites[-2]], history[: sites[-1]]
    tokens = sum(estimate(str(message["content"])) for message in before)
    limit = max(1, (tokens if peer.is_by_tokens else len(before)) // 4)

    def built(chat: list[Message]) -> list[Any]:
        return [message for message, _ in peer.build(chat)]

    first = timed(lambda given: peer.cut(given, limit), partial(built, before))
    # It has nothing to go on from: the next window is made like the first.
    row(
        peer.name,
        len(before),
        first,
        timed(lambda given: peer.cut(given, limit), partial(built, after)),
    )


def times(peers: Sequence[Peer], sizes: Sequence[int]) -> None:
    print(
        "| window of | messages | one window | the next, after one more step |\n|---|--:|--:|--:|"
    )
    for size in sizes:
        history = conversation(size)
        our_rows(history)
        for peer in peers:
            peer_row(peer, history)


# --- validity -------------------------------------------------------------------------------------


def is_invalid(messages: Sequence[Message], dialect: str) -> bool:
    return any(one.severity == "error" for one in satchel.lint(messages, dialect))


def cuts(number: int, seed: int = 11) -> list[tuple[int, float]]:
    """Where the model is called, and the share of what is there that may stay."""
    rng = random.Random(seed)  # noqa: S311 - as above
    sites = call_sites(conversation(SHORT))
    return [(rng.choice(sites), rng.random()) for _ in range(number)]


def invalid_windows(peer: Peer, number: int) -> dict[str, int]:
    """Windows that would be refused, by dialect."""
    history = conversation(SHORT)
    found = dict.fromkeys(DIALECTS, 0)
    for end, share in cuts(number):
        chat = history[:end]
        whole_size = (
            sum(estimate(str(message["content"])) for message in chat)
            if peer.is_by_tokens
            else len(chat)
        )
        window = peer.kept(peer.build(chat), chat, max(1, int(whole_size * share)))
        for dialect in DIALECTS:
            found[dialect] += is_invalid(in_dialect(window, dialect), dialect)
    return found


def our_invalid_windows(policy: str, number: int) -> tuple[dict[str, int], int]:
    """The same of ours, and how often what must stay did not fit."""
    history = conversation(SHORT)
    found, refused = dict.fromkeys(DIALECTS, 0), 0
    for dialect in DIALECTS:
        chat = in_dialect(history, dialect)
        counter = satchel.counter(MODELS[dialect])
        for end, share in cuts(number):
            given = in_dialect(history[:end], dialect)
            assert given == chat[: len(given)]
            size = counter.count_messages(given, dialect=dialect).total
            packer = satchel.Assembler(
                MODELS[dialect], budget=max(1, int(size * share)), policy=policy, dialect=dialect
            )
            try:
                window = packer.assemble(given)
            except satchel.BudgetError:
                refused += 1
            else:
                found[dialect] += is_invalid(window.messages, dialect)
                assert window.tokens_upper <= window.budget
    return found, refused


def validity(peers: Sequence[Peer], number: int) -> None:
    print(f"\n| invalid windows of {number:,} random cuts | {' | '.join(DIALECTS)} | |")
    print(f"|---|{'--:|' * len(DIALECTS)}---|")
    for peer in peers:
        bad = invalid_windows(peer, number)
        print(f"| {peer.name} | {' | '.join(f'{bad[one]:,}' for one in DIALECTS)} | |", flush=True)
    for policy in POLICIES:
        bad, refused = our_invalid_windows(policy, number)
        share = f"{refused / number / len(DIALECTS):.0%} refused: what must stay does not fit"
        counts = " | ".join(f"{bad[one]:,}" for one in DIALECTS)
        print(f"| satchel, {policy} | {counts} | {share} |", flush=True)


def bench_windows_of_random_cuts_are_valid(benchmark: Callable[..., object]) -> None:
    history = whole(conversation(SHORT))
    assert not any(is_invalid(in_dialect(history, dialect), dialect) for dialect in DIALECTS)
    for policy in POLICIES:
        found, refused = our_invalid_windows(policy, 4)
        assert set(found.values()) == {0}
        assert refused < 4 * len(DIALECTS)
    benchmark(our_invalid_windows, "adaptive", 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cuts", type=int, default=10_000)
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 5_000])
    given = parser.parse_args()
    require_release()
    warnings.simplefilter("ignore")  # what the frameworks say about themselves
    peers, missing = installed()
    for sentence in missing:
        print(sentence, file=sys.stderr)
    satchel.counter("gpt-4o").count("hello")  # the vocabulary, before the clock starts
    if given.sizes:
        times(peers, given.sizes)
    if given.cuts:
        validity(peers, given.cuts)


if __name__ == "__main__":
    main()
