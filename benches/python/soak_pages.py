"""The long run of the pages: content that goes out and comes back, over restarts and branches.

``python benches/python/soak_pages.py 100000`` moves content out of windows and back that often in
each of the five dialects; ``--dialect`` runs one of them, ``--seed`` other histories. After every
restart (a pickle) and in every branch (a second working set over the same beginning of the log)
each pointer that was ever shown gives the same bytes as the message that it is from. CI runs the
same walk a few hundred times (``test_pages.py``).
"""

from __future__ import annotations

import argparse
import json
import pickle
import re
import sys
import time
from collections import Counter
from random import Random
from typing import Any, Final, get_args

import satchel
from satchel.testing import Dialect, generate_history

Message = dict[str, Any]
DIALECTS: Final[tuple[Dialect, ...]] = get_args(Dialect)
MODELS: Final = {
    "openai": "gpt-4o",
    "openai-responses": "gpt-4o",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
    "bedrock": "anthropic.claude-sonnet-4-5-20250929-v1:0",
}
BUDGET: Final = 4_000
LONGEST: Final = 160
"""Messages of one history, before another one begins."""


class Walk:
    """One history, what is known of its pages, and what was done."""

    def __init__(self, dialect: Dialect, rng: Random) -> None:
        self.rng = rng
        self.dialect: Dialect = dialect
        self.done: Counter[str] = Counter()
        self.packer = satchel.Assembler(MODELS[dialect], dialect=dialect, budget=BUDGET)
        settings = self.packer.settings_event(system_tokens=0, tools_tokens=0)
        key = f"{rng.getrandbits(64):x}"
        self.set = self.packer.working_set(events=[{**settings, "page_key": key}])
        self.known: dict[str, tuple[int, str]] = {}
        """The message and the content of every pointer that was ever shown."""
        self.shown: set[str] = set()
        self.left = self.history()

    def history(self) -> list[Message]:
        """Other messages each time, the last one first."""
        size = self.rng.randrange(40, LONGEST)
        seed = self.rng.getrandbits(32)
        chars = self.rng.choice((60, 400, 1_500))
        found = generate_history(size, seed=seed, dialect=self.dialect, result_chars=chars)
        return found[::-1]

    def step(self) -> None:
        """Does one thing."""
        todo = self.rng.choices(
            (self.append, self.read, self.place, self.pin, self.restart, self.branch),
            (30, 60, 6, 3, 2, 2),
        )
        todo[0]()

    def append(self) -> None:
        """A few more messages, and a window, in which content may go out."""
        for _ in range(self.rng.randrange(1, 9)):
            if self.left:
                self.set.append(self.left.pop())
        self.look()

    def look(self) -> None:
        """Takes note of what the newest window points to."""
        try:
            window = self.set.window(open_calls="synthesize")
        except satchel.BudgetError:
            self.done["over budget"] += 1
            return
        pointers = {page.pointer: page.message for page in window.pages}
        if window.report.steps["gone"]:
            index = self.set.page_in(window.pages[0].pointer)
            for line in index.splitlines()[1:]:
                if found := re.match(r"(\d+) \w+ \w+ \d+ (p_\d{18})", line):
                    pointers[found[2]] = int(found[1])
        self.done["out"] += len(pointers.keys() - self.shown)
        self.shown = set(pointers)
        for pointer, message in pointers.items():
            if message is not None and pointer not in self.known:
                self.known[pointer] = (message, self.original(pointer, message))

    def original(self, pointer: str, message: int) -> str:
        """The content behind a new pointer, which its message must hold."""
        text = self.set.page_in(pointer)
        assert holds(self.set.messages[message], text), (pointer, message)
        return text

    def check(self, working_set: satchel.WorkingSet, pointer: str) -> None:
        """Reads a page, whole and in part, and compares it."""
        text = self.known[pointer][1]
        assert working_set.page_in(pointer) == text, pointer
        lines = text.split("\n")
        first = self.rng.randrange(1, len(lines) + 1)
        found = working_set.page_in(pointer, lines=(first, len(lines)))
        assert found == "\n".join(lines[first - 1 :]), (pointer, first)
        self.done["in"] += 1

    def read(self) -> None:
        """Reads a page that was once shown."""
        if self.known:
            self.check(self.set, self.rng.choice(list(self.known)))

    def place(self) -> None:
        """Places a page at the end of the log, and finds it in the window, fenced."""
        if not self.known:
            return
        pointer = self.rng.choice(list(self.known))
        self.set.apply({"kind": "page_in", "pointer": pointer})
        self.done["in"] += 1
        self.look()

    def pin(self) -> None:
        """Pins a step, or lets one go."""
        if not self.known:
            return
        message, text = self.known[self.rng.choice(list(self.known))]
        pinned = self.set.explain(message)[0].reason == "pinned"
        if pinned or len(text) > BUDGET // 2:
            self.set.unpin(message)
        else:
            self.set.pin(message)
        self.look()
        self.set.unpin(message)

    def restart(self) -> None:
        """Goes on with what a pickle gives back, in which no pointer may dangle."""
        before = self.set.messages
        self.set = pickle.loads(pickle.dumps(self.set))  # noqa: S301 - our own
        assert self.set.messages == before
        for pointer in self.known:
            self.check(self.set, pointer)
        self.look()
        self.done["restarts"] += 1

    def branch(self) -> None:
        """Goes on with a second working set over the beginning of the log, and other messages."""
        size = self.rng.randrange(len(self.set) + 1)
        events = [event for event in self.set.events if event["at"] <= size]
        messages = self.set.messages[:size]
        other = self.packer.working_set(messages, events=events)
        lost: list[str] = []
        for pointer, (message, _) in self.known.items():
            if message < size:
                self.check(other, pointer)
            else:
                lost.append(pointer)
                assert is_missing(other, pointer), pointer
        # The first one is as it was.
        for pointer in self.rng.sample(list(self.known), min(20, len(self.known))):
            self.check(self.set, pointer)
        self.done["branches"] += 1
        if self.rng.random() < 0.5:
            self.set = other
            for pointer in lost:
                del self.known[pointer]
            if open_calls(other):
                self.left = self.left[: len(self.left) // 2]
            self.left = self.after(size) or self.left
            self.look()

    def after(self, size: int) -> list[Message]:
        """Other messages that may follow; empty while a call waits for its result."""
        if size == 0 or open_calls(self.set):
            self.left = []
            return []
        found = self.history()
        while found and found[-1].get("role") != "user":
            found.pop()
        return found


def open_calls(working_set: satchel.WorkingSet) -> bool:
    """Whether a call waits for its result."""
    try:
        working_set.window()
    except satchel.InputError as error:
        return error.code == "open_calls"
    except satchel.BudgetError:
        pass
    return False


def is_missing(working_set: satchel.WorkingSet, pointer: str) -> bool:
    """Whether a pointer leads to nothing here."""
    try:
        working_set.page_in(pointer)
    except satchel.PageNotFoundError:
        return True
    return False


def holds(message: object, text: str) -> bool:
    """Whether a message holds this text, or the value that it is the JSON of."""
    try:
        value: object = json.loads(text)
    except ValueError:
        value = text
    left: list[Any] = [message]
    while left:
        piece = left.pop()
        if piece == text or (piece == value and type(piece) is type(value)):
            return True
        if isinstance(piece, dict):
            left += piece.values()
        elif isinstance(piece, list):
            left += piece
    return False


def soak(dialect: Dialect, moves: int, seed: int) -> Counter[str]:
    """Moves content out and back at least ``moves`` times; what was done.

    Raises:
        AssertionError: a pointer dangles, or gives other bytes.
    """
    rng = Random(f"{dialect} {seed}")  # noqa: S311 - not for secrets
    done: Counter[str] = Counter()
    while done["out"] + done["in"] < moves:
        walk = Walk(dialect, rng)
        while walk.left and done["out"] + done["in"] + walk.done["out"] + walk.done["in"] < moves:
            walk.step()
        stranger = Walk(dialect, rng)
        stranger.set.append(walk.set.messages)
        # The same messages under another key.
        assert all(is_missing(stranger.set, pointer) for pointer in list(walk.known)[:20])
        done += walk.done
        done["histories"] += 1
    return done


def main() -> int:
    """Runs the walk and prints what was done."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("moves", type=int, help="how often content goes out or comes back")
    parser.add_argument("--dialect", choices=DIALECTS, action="append")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for dialect in options.dialect or DIALECTS:
        start = time.process_time()
        done = soak(dialect, options.moves, options.seed)
        figures = ", ".join(f"{count:,} {name}" for name, count in sorted(done.items()))
        sys.stdout.write(f"{dialect}: {figures}; {time.process_time() - start:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
