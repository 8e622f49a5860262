"""The log in memory says what a plain list would, however it was written and cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from satchel.stores import Entry
from satchel.stores._memory_log import IN_BLOCK, MemoryLog, block_of_rows, row_of

if TYPE_CHECKING:
    from collections.abc import Sequence

SIZES = st.integers(0, 3) | st.integers(IN_BLOCK - 2, IN_BLOCK + 2) | st.integers(0, 3 * IN_BLOCK)
KEYED = st.sampled_from(["none", "own", "some", "known"])
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["rows", "blocks", "cut", "copy"]), SIZES, KEYED), max_size=8
)


def made(start: int, count: int, keyed: str) -> list[Entry]:
    """So many entries with numbered contents and keys of a kind."""

    def key(number: int) -> str | None:
        if keyed == "none" or (keyed == "some" and number % 3):
            return None
        return f"k{number % 5 if keyed == 'known' else number}"

    return [
        Entry("event" if number % 4 == 0 else "message", b"%d" % number, key(number))
        for number in range(start, start + count)
    ]


def told(log: MemoryLog, start: int, end: int) -> list[Entry]:
    return log.between(start, end).listed()


@given(ACTIONS, SIZES, SIZES)
def test_a_log_is_a_list(actions: Sequence[tuple[str, int, str]], start: int, size: int) -> None:
    log, plain, given_out = MemoryLog(), list[Entry](), 0
    for action, count, keyed in actions:
        if action == "cut":
            log.cut(count)
            del plain[count:]
        elif action == "copy":
            kept, log = log, log.copied(count)
            assert told(kept, 0, len(kept)) == plain
            kept.add([row_of(one) for one in made(0, 3, "own")])
            del plain[count:]
        else:
            entries = made(given_out, count, keyed)
            given_out += count
            known = {one.key for one in plain if one.key is not None}
            before = len(plain)
            for one in entries:
                if one.key is None or one.key not in known:
                    plain.append(one._replace(sequence=len(plain) + 1))
                    known.add(one.key or "")
            rows = [row_of(one) for one in entries]
            if action == "rows":
                added = log.add(rows)
            else:
                parts = [rows[at : at + IN_BLOCK] for at in range(0, len(rows), IN_BLOCK)]
                added = log.add_blocks([block_of_rows(1, part) for part in parts])
            assert added == len(plain) - before
        assert len(log) == len(plain)
        assert log.keys == {one.key for one in plain if one.key is not None}
    assert told(log, 0, len(log)) == plain
    assert told(log, start, start + size) == plain[start : start + size]
