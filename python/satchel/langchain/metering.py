"""What counts: LangChain's rules about which objects are counters, and the ones known natively."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from satchel._core import Counter
from satchel.errors import InputError
from satchel.langchain.counting import Estimate
from satchel.langchain.exact import Exact
from satchel.langchain.peer import peer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from langchain_core.messages import BaseMessage

    from satchel.langchain.search import Fitter

__all__ = ["CountsMessages", "Meter", "meter_of"]


class CountsMessages(Protocol):
    """A model that counts a list of messages."""

    def get_num_tokens_from_messages(self, messages: list[BaseMessage]) -> int:
        """Tokens of the messages."""
        ...


@dataclass(frozen=True, slots=True)
class Meter:
    """A counter of lists.

    Attributes:
        count: tokens of a list, or an awaitable of them.
        fitter: the counter, if it knows without probes how many messages fit.
        source: what the caller gave.
    """

    count: Callable[[Sequence[BaseMessage]], Any]
    fitter: Fitter | None
    source: Any

    def tools_tokens(self, tools: Sequence[Any]) -> int:
        """Tokens of the definitions of tools.

        Raises:
            InputError: ``invalid_value`` if the counter is ``len``, which counts no tokens.
        """
        if not tools:
            return 0
        if isinstance(self.fitter, Exact):
            return self.fitter.tools_tokens(tools)
        if self.source is len:
            message = "tools have no size where len counts messages: use a counter of tokens"
            raise InputError(message, code="invalid_value")
        return peer().count([], tools=list(tools))


def meter_of(  # noqa: PLR0911 - a return for each kind of counter
    counter: Any, *, per_message: bool | None
) -> Meter | None:
    """The meter of a counter; None if LangChain refuses it.

    Args:
        counter: what the caller gave.
        per_message: whether a function takes one message (True) or a list (False); None: one
            message if its first parameter is annotated so.
    """
    if isinstance(counter, Counter):
        exact = Exact(counter)
        return Meter(exact.count, exact, counter)
    estimate = Estimate.recognised(counter)
    if estimate is not None:
        return Meter(estimate.count, estimate, counter)
    if isinstance(counter, str):
        return None
    if hasattr(counter, "get_num_tokens_from_messages"):
        return Meter(counter.get_num_tokens_from_messages, None, counter)
    if not callable(counter):
        return None
    function: Callable[[Any], Any] = counter
    if per_message is None:
        first = next(iter(inspect.signature(function).parameters.values()))
        per_message = first.annotation is peer().base
    if not per_message:
        return Meter(function, None, counter)
    return Meter(lambda messages: sum(function(message) for message in messages), None, counter)
