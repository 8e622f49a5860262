"""Transcript files as the command line takes them: bytes in, conversations out.

Forms that are told apart by their content, never by their name:

* JSON: a list of messages, an object with ``messages`` (and ``system``, ``tools``, ``model``,
  ``dialect``, ``title``), or a list of such objects.
* JSON Lines: a message a line, or a conversation (an object with ``messages``, or a list) a line.

A file with a conversation a line is read line by line, so its size does not matter; every other
form is held in memory once. Text is UTF-8, with or without a byte order mark. What is no such file
raises ``InputError`` with code ``invalid_file``, which names the file and the line and none of the
content.
"""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeGuard

from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator
    from typing import BinaryIO

__all__ = ["STDIN", "Conversation", "file_error", "is_list", "is_object", "read_conversations"]

STDIN: Final = "-"
_BOM: Final = b"\xef\xbb\xbf"
_OTHER_BOMS: Final = (b"\xff\xfe", b"\xfe\xff")
_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One conversation of a file.

    Attributes:
        messages: the messages as JSON gives them.
        system: the system prompt, where it stands outside the messages, else None.
        tools: the tool definitions; None if there are none.
        model: the model that the file names, or None.
        dialect: the dialect that the file names, or None.
        title: what the file calls the conversation, or an empty string.
        line: line on which the conversation begins, from 1.
    """

    messages: list[Any]
    system: Any = None
    tools: list[Any] | None = None
    model: str | None = None
    dialect: str | None = None
    title: str = ""
    line: int = 1


def file_error(source: str, what: str, *, line: int | None = None) -> InputError:
    """An ``invalid_file`` error about ``source``, ready to be raised."""
    place = _name(source) if line is None else f"{_name(source)}, line {line}"
    return InputError(f"{place}: {what}", code="invalid_file")


def read_conversations(
    source: str, *, on_read: Callable[[int], None] | None = None
) -> Iterator[Conversation]:
    """The conversations of a file, in order; lazily where the file has one a line.

    Args:
        source: path of the file, or ``-`` for standard input.
        on_read: is told how many bytes were read, each time some were.

    Raises:
        InputError: ``invalid_file``.
    """
    with _opened(source) as stream:
        yield from _Reader(source, stream, on_read or _ignore).conversations()


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a JSON value is a list."""
    return isinstance(value, list)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


class _NumberError(ValueError):
    """A number that no JSON value of ours can hold."""


class _Reader:
    """Reads one open file from its beginning."""

    def __init__(self, source: str, stream: BinaryIO, on_read: Callable[[int], None]) -> None:
        self._source = source
        self._stream = stream
        self._on_read = on_read
        self._line = 0

    def conversations(self) -> Iterator[Conversation]:
        first = self._first_line()
        try:
            value = _parsed(first)
        except json.JSONDecodeError:  # so it is one value over several lines, or broken
            yield from self._document(first)
            return
        except (ValueError, RecursionError) as error:
            self._fail(error)
        begin = self._line
        following = self._next_line()
        if following is None:
            yield from self._from_document(value, begin)
        elif is_object(value) and "messages" not in value:
            self._check_is_message(value)
            yield Conversation(messages=[value, *self._messages(following)], line=begin)
        else:
            yield self._conversation(value, begin)
            line: bytes | None = following
            while line is not None:
                yield self._conversation(self._value(line), self._line)
                line = self._next_line()

    # --- lines ------------------------------------------------------------------------------------

    def _first_line(self) -> bytes:
        line = self._next_line()
        if line is not None and self._line == 1 and line.startswith(_BOM):
            line = line.removeprefix(_BOM)
            if not line.strip():
                line = self._next_line()
        if line is None:
            raise file_error(self._source, "the file is empty")
        if line.startswith(_OTHER_BOMS):
            raise file_error(self._source, "the text is UTF-16, expected UTF-8", line=self._line)
        return line

    def _next_line(self) -> bytes | None:
        """The next line that is not blank; None at the end."""
        while line := self._stream.readline():
            self._line += 1
            self._on_read(len(line))
            if line.strip():
                return line
        return None

    def _value(self, line: bytes) -> object:
        try:
            return _parsed(line)
        except (ValueError, RecursionError) as error:
            self._fail(error)

    def _messages(self, line: bytes | None) -> Iterator[Any]:
        while line is not None:
            value = self._value(line)
            if not is_object(value) or "messages" in value:
                raise file_error(
                    self._source, "expected a message, as on the first line", line=self._line
                )
            yield value
            line = self._next_line()

    # --- documents --------------------------------------------------------------------------------

    def _document(self, first: bytes) -> Iterator[Conversation]:
        """The conversations of a file that is one JSON value over several lines."""
        begin = self._line
        pieces = [first]
        while piece := self._stream.read(_CHUNK):
            self._on_read(len(piece))
            pieces.append(piece)
        try:
            value = _parsed(b"".join(pieces))
        except (ValueError, RecursionError) as error:
            self._fail(error)
        yield from self._from_document(value, begin)

    def _from_document(self, value: object, begin: int) -> Iterator[Conversation]:
        if is_list(value):
            head: object = value[0] if value else None
            if is_list(head) or (is_object(head) and "messages" in head):
                for entry in value:
                    yield self._conversation(entry, begin)
                return
        elif is_object(value) and "messages" not in value:
            self._check_is_message(value)
            yield Conversation(messages=[value], line=begin)
            return
        yield self._conversation(value, begin)

    def _conversation(self, value: object, line: int) -> Conversation:
        if is_list(value):
            return Conversation(messages=value, line=line)
        if not is_object(value) or "messages" not in value:
            self._complain("expected a list of messages or an object with messages", line)
        for name, kind, called in (
            ("messages", list, "a list"),
            ("tools", list, "a list"),
            ("system", (str, list), "a string or a list"),
            ("model", str, "a string"),
            ("dialect", str, "a string"),
        ):
            found: object = value.get(name)
            if not isinstance(found, kind) and (found is not None or name == "messages"):
                self._complain(f"{name} must be {called}", line)
        title: object = value.get("title")
        return Conversation(
            messages=value["messages"],
            system=value.get("system"),
            tools=value.get("tools") or None,
            model=value.get("model"),
            dialect=value.get("dialect"),
            title=title if isinstance(title, str) else "",
            line=line,
        )

    def _check_is_message(self, value: dict[str, Any]) -> None:
        if "role" not in value:
            self._complain("expected a message with a role, or an object with messages", self._line)

    def _complain(self, what: str, line: int) -> NoReturn:
        raise file_error(self._source, what, line=line)

    def _fail(self, error: Exception) -> NoReturn:
        """Raises the error of a text that could not be parsed; it ends at the current line."""
        line = self._line
        if isinstance(error, json.JSONDecodeError):
            line = self._line + error.lineno - 1
            what = f"not valid JSON: {error.msg[:1].lower()}{error.msg[1:]} (column {error.colno})"
            if "\0" in error.doc:
                what = "binary data, expected JSON"
        elif isinstance(error, UnicodeDecodeError):
            line = self._line + error.object.count(b"\n", 0, error.start)
            binary = b"\0" in error.object
            what = "binary data, expected JSON" if binary else "the text is not UTF-8"
        elif isinstance(error, RecursionError):
            what = "nested too deeply"
        elif isinstance(error, _NumberError):
            what = str(error)
        else:
            what = "not valid JSON"
        raise file_error(self._source, what, line=line) from None


# --- one JSON text --------------------------------------------------------------------------------


def _parsed(text: bytes) -> object:
    """One JSON value; stricter than ``json`` about numbers, since a window must be JSON again."""
    return _DECODER.decode(text.decode("utf-8"))


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        message = "a number is out of range"
        raise _NumberError(message)
    return number


def _whole(digits: str) -> int:
    try:
        return int(digits)
    except ValueError:  # Python refuses to read more than some thousand digits
        message = f"a number has {len(digits)} digits"
        raise _NumberError(message) from None


def _no_constant(name: str) -> NoReturn:
    message = f"{name} is no JSON number"
    raise _NumberError(message)


_DECODER: Final = json.JSONDecoder(
    parse_float=_finite, parse_int=_whole, parse_constant=_no_constant
)

# --- the file -------------------------------------------------------------------------------------


@contextmanager
def _opened(source: str) -> Generator[BinaryIO]:
    """The file, open for reading; an error of the system becomes one of ours."""
    try:
        if source == STDIN:
            yield sys.stdin.buffer
        else:
            with open(source, "rb") as stream:  # noqa: PTH123 - the name is shown as it was given
                yield stream
    except OSError as error:
        raise file_error(source, (error.strerror or "cannot be read").lower()) from error


def _name(source: str) -> str:
    return "standard input" if source == STDIN else source


def _ignore(_: int) -> None:
    """Nobody wants to know how much was read."""
