"""The native half of the package: types and functions as Rust defines them."""

from collections.abc import Callable, Iterable
from typing import Literal, Protocol, TypeVar, final

import numpy as np
from numpy.typing import NDArray

from satchel.counting import TextEncoder
from satchel.errors import SatchelError


__version__: str
debug_build: bool

_T = TypeVar("_T")

class _CountsText(Protocol):
    def count(self, text: str, /) -> int: ...

@final
class Counter:
    """Counts texts in tokens. Immutable, shared between threads; compares and hashes by value.

    Args:
        encoding: the name of an encoding or estimator, or what counts: a ``tiktoken.Encoding``,
            an object with ``count(text)``, or a callable ``text -> int``. An object may state
            ``encoding``, ``exact`` and ``margin``.
        exact: whether the counts are the provider's own; default: what the encoding says.
        margin: share by which the provider's count may lie above; default likewise.

    Raises:
        InputError: ``unknown_encoding``; ``invalid_value`` for the wrong type or a negative margin.

    A lone surrogate counts as U+FFFD and a surrogate pair as its character, as in tiktoken. Every
    method raises ``InputError``: ``invalid_value`` for an argument of the wrong type or a text of
    4 GiB or more; ``counter_failed`` if the caller's own counter raised (its exception is the
    cause) or returned anything but an int from 0.
    """

    def __new__(
        cls,
        encoding: str | TextEncoder | _CountsText | Callable[[str], int],
        /,
        *,
        exact: bool | None = None,
        margin: float | None = None,
    ) -> Counter: ...
    @property
    def exact(self) -> bool:
        """Whether the count is the provider's own."""
    @property
    def encoding(self) -> str:
        """Name of the encoding or estimator."""
    @property
    def margin(self) -> float:
        """Share by which the true count may lie above: ``ceil(tokens * (1 + margin))``."""
    def count(self, text: str, /) -> int:
        """Tokens of ``text``; text that looks like a special token is ordinary text."""
    def count_many(self, texts: Iterable[str], /) -> NDArray[np.uint32]:
        """Tokens of each text, shape ``(len(texts),)``.

        Releases the interpreter lock and uses all cores, unless the counter is the caller's own.
        """
    def fits(self, text: str, max_tokens: int) -> bool:
        """Whether ``text`` has at most ``max_tokens`` tokens; stops counting soon after."""
    def truncate(
        self, text: str, max_tokens: int, *, keep: Literal["head", "tail", "both"] = "head"
    ) -> str:
        """``text`` cut to at most ``max_tokens`` by this counter's own count.

        Never splits a character. ``"both"`` keeps half of the tokens from each end and puts
        nothing between. A counter of the caller's own must count empty text as 0.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __getnewargs_ex__(self) -> tuple[tuple[object], dict[str, object]]: ...

def error_codes() -> dict[str, type[SatchelError]]:
    """The exception class of every error code, in the order of the catalogue."""

def sliding_window(messages: list[_T], max_messages: int, /, *, dialect: str | None) -> list[_T]:
    """All instructions, then the newest steps of at most ``max_messages`` messages together."""

def token_window(
    messages: list[_T],
    max_tokens: int,
    /,
    *,
    counter: Counter,
    dialect: str | None,
    model_dialect: str | None,
) -> list[_T]:
    """All instructions, then the newest steps that fit into what they leave of ``max_tokens``.

    ``model_dialect`` asks for the chat formula, and is the dialect of messages that do not tell
    theirs; ``None`` counts content text.
    """

def allocate_budget(
    total_tokens: int, shares: list[tuple[str, float]], /
) -> tuple[int, int, int, int, int]:
    """Tokens of the five sections, in the order of their names."""

def score_messages(
    messages: list[object],
    /,
    *,
    weights: list[tuple[str, float]] | None,
    query: str | None,
    counter: Counter,
) -> NDArray[np.float32]:
    """One score per message, from 0 to 1.

    ``weights`` is ``None`` for the keyword formula, else the default weights with the named ones
    replaced.
    """

def prune_tool_outputs(
    messages: list[_T], /, *, max_chars: int, keep_last: int, strip: list[str]
) -> list[_T]:
    """The messages with old, long tool outputs cut to ``max_chars`` characters and a note."""
