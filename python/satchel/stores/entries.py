"""Entries of a log, read as blocks: an `Entry` is made when it is looked at, and not before.

A long log is thousands of lines of which most are only ever parsed. A block is many of them as one
run of bytes, with what tells where each begins; its values are parsed in one go.
"""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, cast, overload, runtime_checkable

from satchel import _core
from satchel.errors import StoreError
from satchel.stores.base import Entry
from satchel.stores.codec import decode, decode_joined

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from satchel.stores.base import SessionStore

__all__ = [
    "DEFLATED",
    "EVENT",
    "Block",
    "Entries",
    "LoadingStore",
    "block_of",
    "load_entries",
    "packed_block",
    "unpacked_block",
]

EVENT: Final = 1
"""Bit of an entry's form: an event, no message."""

DEFLATED: Final = 2
"""Bit of a form: the content is compressed by zlib."""

_KINDS: Final[tuple[Literal["message", "event"], ...]] = ("message", "event")
_BETWEEN: Final = b","
_LENGTH: Final = 4
_MOST_FORM: Final = 255

_TOGETHER: Final = 256
"""Payloads that are parsed at once, where a store gives them one by one."""


@dataclass(frozen=True, slots=True)
class Block:
    """A run of entries.

    Attributes:
        first: sequence number of the first.
        forms: one byte an entry: `EVENT`, `DEFLATED`.
        lengths: bytes of each content.
        keys: the key of each; None where none has one.
        joined: the contents, with a comma between any two.
    """

    first: int
    forms: bytes
    lengths: Sequence[int]
    keys: Sequence[str | None] | None
    joined: bytes

    def __len__(self) -> int:
        return len(self.forms)

    def cut(self, start: int, end: int) -> Block:
        """The entries from place ``start`` up to ``end``."""
        if start == 0 and end == len(self):
            return self
        before = sum(self.lengths[:start]) + start
        size = sum(self.lengths[start:end]) + max(0, end - start - 1)
        return Block(
            self.first + start,
            self.forms[start:end],
            self.lengths[start:end],
            None if self.keys is None else self.keys[start:end],
            self.joined[before : before + size],
        )

    def contents(self) -> list[bytes]:
        """The contents, as they are stored."""
        ends = accumulate(length + 1 for length in self.lengths)
        joined = self.joined
        return [
            joined[end - length - 1 : end - 1]
            for end, length in zip(ends, self.lengths, strict=True)
        ]

    def payloads(self) -> list[bytes]:
        """The payloads.

        Raises:
            StoreError: ``corrupt_entry``.
        """
        contents = self.contents()
        if max(self.forms, default=0) < DEFLATED:
            return contents
        return [
            inflated(content, number) if form & DEFLATED else content
            for number, (form, content) in enumerate(
                zip(self.forms, contents, strict=True), self.first
            )
        ]

    def entries(self) -> Iterator[Entry]:
        """The entries."""
        kinds = [_KINDS[form & EVENT] for form in self.forms]
        keys = [None] * len(self) if self.keys is None else self.keys
        numbers = range(self.first, self.first + len(self))
        # `_make` takes no longer than a tuple does.
        return map(Entry._make, zip(kinds, self.payloads(), keys, numbers, strict=True))

    def values(self) -> list[Any]:
        """What the payloads say.

        Raises:
            StoreError: ``corrupt_entry``, with the sequence number of the entry as ``index``.
        """
        is_plain = max(self.forms, default=0) < DEFLATED
        joined = self.joined if is_plain else _BETWEEN.join(self.payloads())
        found = decode_joined(joined, len(self))
        if found is not None:
            return found
        return [
            _decoded(payload, number) for number, payload in enumerate(self.payloads(), self.first)
        ]

    def read_into(self, messages: _core.StoredMessages) -> list[Any]:
        """Adds the messages to ``messages``, as they stand.

        Returns:
            What the events say.

        Raises:
            StoreError: as `values`.
        """
        lengths, joined = self.lengths, self.joined
        if max(self.forms, default=0) >= DEFLATED:
            payloads = self.payloads()
            lengths, joined = list(map(len, payloads)), _BETWEEN.join(payloads)
        split: list[bytes] = []

        def read(place: int) -> Any:  # noqa: ANN401 - whatever was encoded
            if not split:
                split.extend(self.payloads())
            return _decoded(split[place], self.first + place)

        return messages.add(joined, lengths, self.forms, read)


class Entries(Sequence[Entry]):
    """Entries of a log in order, as a sequence; `values` is the way to what they say.

    Equal to any sequence of the same entries.
    """

    def __init__(
        self, blocks: Iterable[Block] = (), *, made: Iterable[Entry] | None = None
    ) -> None:
        self._blocks: Final = [block for block in blocks if len(block)]
        self._made = None if made is None else list(made)
        parts = self._blocks if self._made is None else [self._made]
        self._length: Final = sum(map(len, parts))

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Entries:
        """Entries that are there already."""
        return cls(made=entries)

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        return self.listed()[index]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.listed())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return self.listed() == list(cast("Sequence[object]", other))

    def __hash__(self) -> int:
        return hash(tuple(self.listed()))

    def __repr__(self) -> str:
        return f"<satchel.stores.Entries, {len(self)}>"

    def listed(self) -> list[Entry]:
        """All of them.

        Raises:
            StoreError: ``corrupt_entry``.
        """
        if self._made is None:
            self._made = [entry for block in self._blocks for entry in block.entries()]
        return self._made

    @property
    def kinds(self) -> list[Literal["message", "event"]]:
        """The kind of each."""
        if self._made is not None:
            return [entry.kind for entry in self._made]
        return [_KINDS[form & EVENT] for block in self._blocks for form in block.forms]

    @property
    def keys(self) -> set[str]:
        """The keys of all that have one."""
        if self._made is not None:
            return {entry.key for entry in self._made if entry.key is not None}
        return {
            key
            for block in self._blocks
            if block.keys is not None
            for key in block.keys
            if key is not None
        }

    def values(self) -> list[Any]:
        """What their payloads say, parsed as `decode` does it.

        Raises:
            StoreError: ``corrupt_entry``, with the sequence number of the entry as ``index``.
        """
        made = self._made
        if made is None or self._blocks:
            parts: Iterable[list[Any]] = (block.values() for block in self._blocks)
        else:
            parts = map(_parsed, _parts(made))
        found: list[Any] = []
        for part in parts:
            found += part
        return found

    def history(self) -> tuple[_core.StoredMessages, list[Any]]:
        """The messages as they are stored, of which objects are made when wanted; the events.

        Raises:
            StoreError: as `values`.
        """
        messages = _core.StoredMessages()
        made = self._made
        if made is None or self._blocks:
            blocks: Iterable[Block] = self._blocks
        else:
            blocks = map(_block_of_entries, _parts(made))
        events: list[Any] = []
        for block in blocks:
            events += block.read_into(messages)
        return messages, events


@runtime_checkable
class LoadingStore(Protocol):
    """A store that can read a log as blocks, which is quicker than `SessionStore.read`."""

    async def load(self, session_id: str, *, after: int = 0, limit: int | None = None) -> Entries:
        """As `SessionStore.read`."""
        ...


async def load_entries(
    store: SessionStore, session_id: str, *, after: int = 0, limit: int | None = None
) -> Entries:
    """The entries of a log, by the quickest way that the store has; as `SessionStore.read`.

    Raises:
        StoreError: ``session_not_found``; ``corrupt_entry``.
        InputError: ``invalid_value``.
    """
    if isinstance(store, LoadingStore):
        return await store.load(session_id, after=after, limit=limit)
    return Entries.of(await store.read(session_id, after=after, limit=limit))


def block_of(first: int, rows: Sequence[tuple[int, bytes, str | None]]) -> Block:
    """A block of rows: form, content, key.

    Raises:
        StoreError: ``corrupt_entry`` if one holds values of another type, as a damaged file may.
    """
    keys = [row[2] for row in rows]
    try:
        forms = bytes(row[0] for row in rows)
        lengths = [len(row[1]) for row in rows]
        joined = _BETWEEN.join([row[1] for row in rows])
    except (ValueError, TypeError):
        forms, lengths, joined = b"", [], b""
    has_keys = any(key is not None for key in keys)
    if len(forms) != len(rows) or (has_keys and not _are_keys(keys)):
        number = next(
            number for number, row in enumerate(rows, first) if not _is_row(cast("Any", row))
        )
        message = f"entry {number} of the log is damaged"
        raise StoreError(message, code="corrupt_entry", index=number)
    return Block(first, forms, lengths, keys if has_keys else None, joined)


def _is_row(row: tuple[object, object, object]) -> bool:
    form, content, key = row
    is_form = isinstance(form, int) and 0 <= form <= _MOST_FORM
    return is_form and isinstance(content, bytes) and _are_keys([key])


def _are_keys(keys: Iterable[object]) -> bool:
    return all(key is None or isinstance(key, str) for key in keys)


def packed_block(block: Block) -> tuple[bytes, bytes]:
    """A block as bytes: what tells where entries begin, and the entries."""
    lengths = array("I", block.lengths)
    keys = b"" if block.keys is None else json.dumps(list(block.keys)).encode()
    return b"".join((_little(lengths).tobytes(), block.forms, keys)), block.joined


def unpacked_block(first: int, count: int, heads: bytes, joined: bytes) -> Block:
    """What `packed_block` made.

    Raises:
        StoreError: ``corrupt_entry`` if the parts do not fit one another.
    """
    lengths = array("I")
    keys: Any = None
    forms = b""
    try:
        split = count * _LENGTH
        forms = heads[split : split + count]
        lengths.frombytes(heads[:split])
        lengths = _little(lengths)
        if len(heads) > split + count:
            keys = json.loads(heads[split + count :])
        is_whole = (
            len(lengths) == len(forms) == count
            and sum(lengths) + max(0, count - 1) == len(joined)
            and isinstance(cast("object", joined), bytes)
            and (
                keys is None
                or (type(keys).__name__ == "list" and len(keys) == count and _are_keys(keys))
            )
        )
    except (ValueError, TypeError, RecursionError):
        is_whole = False
    if not is_whole:
        many = isinstance(cast("object", count), int) and count > 1
        until = f" to {first + count - 1}" if many else " and those behind it"
        message = f"entries {first}{until} of the log are damaged"
        raise StoreError(message, code="corrupt_entry", index=first)
    return Block(first, forms, lengths, keys, joined)


def inflated(content: bytes, sequence: int) -> bytes:
    """What was compressed; ``sequence`` is the entry's, 0 for a value or page.

    Raises:
        StoreError: ``corrupt_entry``.
    """
    try:
        return zlib.decompress(content)
    except (zlib.error, TypeError) as error:
        what = f"entry {sequence}" if sequence else "a value or page"
        size = f" of {len(content)} bytes" if isinstance(cast("object", content), bytes) else ""
        message = f"{what}{size} cannot be unpacked: it is damaged"
        raise StoreError(message, code="corrupt_entry", index=sequence or None) from error


def _little(lengths: array[int]) -> array[int]:
    if sys.byteorder == "big":
        lengths.byteswap()
    return lengths


def _parts(entries: Sequence[Entry]) -> Iterator[Sequence[Entry]]:
    return (entries[at : at + _TOGETHER] for at in range(0, len(entries), _TOGETHER))


def _block_of_entries(entries: Sequence[Entry]) -> Block:
    payloads = [entry.payload for entry in entries]
    forms = bytes(EVENT if entry.kind == "event" else 0 for entry in entries)
    return Block(
        entries[0].sequence, forms, list(map(len, payloads)), None, _BETWEEN.join(payloads)
    )


def _parsed(entries: Sequence[Entry]) -> list[Any]:
    found = decode_joined(_BETWEEN.join([entry.payload for entry in entries]), len(entries))
    if found is not None:
        return found
    return [_decoded(entry.payload, entry.sequence) for entry in entries]


def _decoded(payload: bytes, sequence: int) -> Any:  # noqa: ANN401 - whatever was encoded
    try:
        return decode(payload)
    except StoreError as error:
        message = (
            f"entry {sequence} of {len(payload)} bytes cannot be read; those before it "
            "can: copy them, or truncate the session in its store"
        )
        raise StoreError(message, code=error.code, index=sequence) from error
