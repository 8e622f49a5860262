"""LangChain's estimate by characters: natively where every message is of a known kind.

Whatever the native half cannot read (other classes, odd blocks, scaling by reported usage, figures
that are no positive numbers) is counted by LangChain's own function, so that it means what it means
there.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

from satchel import _core
from satchel.langchain.peer import as_messages, peer

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from langchain_core.messages import BaseMessage
    from langchain_core.tools import BaseTool

__all__ = ["Estimate", "count_tokens_approximately", "newest_fitting"]

_LARGEST: Final = 2**53  # above it an int is not always a float


def count_tokens_approximately(
    messages: Iterable[Any],
    *,
    chars_per_token: float = 4.0,
    extra_tokens_per_message: float = 3.0,
    count_name: bool = True,
    tokens_per_image: int = 85,
    use_usage_metadata_scaling: bool = False,
    tools: list[BaseTool | dict[str, Any]] | None = None,
) -> int:
    """LangChain's estimate: characters of content, role, name and calls over ``chars_per_token``.

    Args:
        messages: messages in any form that LangChain takes.
        chars_per_token: characters of a token.
        extra_tokens_per_message: tokens of each message beside its characters.
        count_name: whether names count.
        tokens_per_image: tokens of each block ``image`` or ``image_url``.
        use_usage_metadata_scaling: whether to scale by the usage that the newest reply reports.
        tools: tools whose definitions count too.

    Returns:
        Tokens, rounded up.

    Raises:
        ValueError: a message without role or content, of an unknown role, or that only removes one.
        TypeError: a text block whose text is None.
        ZeroDivisionError: ``chars_per_token`` is 0.
        ImportError: ``langchain_core`` is not installed.

    Example:
        >>> from langchain_core.messages import HumanMessage
        >>> count_tokens_approximately([HumanMessage("Hello there")])
        7
    """
    options: dict[str, Any] = {
        "chars_per_token": chars_per_token,
        "extra_tokens_per_message": extra_tokens_per_message,
        "count_name": count_name,
        "tokens_per_image": tokens_per_image,
        "use_usage_metadata_scaling": use_usage_metadata_scaling,
        "tools": tools,
    }
    return Estimate(options).count(as_messages(messages))


class Estimate:
    """The estimate with its figures, as `trim_messages` recognises it among counters."""

    __slots__ = ("_options", "_start")

    def __init__(self, options: dict[str, Any]) -> None:
        """``options`` are keywords of the counting function; others are its to refuse."""
        self._options = dict(options)
        self._start: int | None = None

    @classmethod
    def recognised(cls, counter: object) -> Estimate | None:
        """The estimate that a counter is: the shortcut, either function, or a partial of one."""
        if isinstance(counter, str):
            return cls({}) if counter == "approximate" else None
        options: dict[str, Any] = {}
        function = counter
        if type(counter) is partial:
            if counter.args or vars(counter) or not _NAMES.issuperset(counter.keywords):
                return None
            function, options = cast("object", counter.func), counter.keywords
        if function is count_tokens_approximately or function is peer().count:
            return cls(options)
        return None

    def count(self, messages: Sequence[BaseMessage]) -> int:
        """Tokens of message objects, rounded up."""
        found = self._native(list(messages), math.inf, backward=False)
        if found is None:
            return peer().count(messages, **self._options)
        return math.ceil(found[1])

    def fitting(self, messages: list[BaseMessage], budget: object, *, backward: bool) -> int | None:
        """How many messages fit, from the first or the last on; None if it takes probes to tell."""
        if not isinstance(budget, (int, float)) or not -_LARGEST < budget < _LARGEST:
            return None
        found = self._native(messages, budget, backward=backward)
        return None if found is None else found[0]

    def _native(
        self, messages: list[BaseMessage], limit: float, *, backward: bool
    ) -> tuple[int, float] | None:
        options = self._options
        if options.get("use_usage_metadata_scaling"):
            return None
        rates = [options.get(name, default) for name, default in _RATES.items()]
        if not all(
            isinstance(rate, (int, float)) and -_LARGEST < rate < _LARGEST for rate in rates
        ):
            return None
        if self._start is None:
            self._start = self._tools_tokens()
        chars_per_token, extra, image = rates
        return _core.approximate_fit(
            messages,
            peer().kinds,
            chars_per_token=chars_per_token,
            extra=extra,
            image=image,
            with_name=bool(options.get("count_name", True)),
            start=self._start,
            limit=limit,
            backward=backward,
        )

    def _tools_tokens(self) -> int:
        if not self._options.get("tools"):
            return 0
        return peer().count([], **self._options)


def newest_fitting(messages: list[Any], budget: object) -> list[BaseMessage] | None:
    """The newest messages that fit by the estimate as it is; None if it takes a closer look."""
    if type(budget) is not int or not -_LARGEST < budget < _LARGEST:
        return None
    count = len(messages)
    found = _core.approximate_fit(
        messages,
        peer().kinds,
        chars_per_token=4.0,
        extra=3.0,
        image=85,
        with_name=True,
        start=0,
        limit=budget,
        backward=True,
    )
    if found is None or len(messages) != count:
        return None
    return messages[count - found[0] :]


_RATES: Final[dict[str, float]] = {
    "chars_per_token": 4.0,
    "extra_tokens_per_message": 3.0,
    "tokens_per_image": 85,
}
_NAMES: Final = frozenset({*_RATES, "count_name", "use_usage_metadata_scaling", "tools"})
