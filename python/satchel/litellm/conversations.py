"""Working sets of the newest conversations, found again by what they begin with.

A hook is shown the whole history of a call and nothing that says which conversation it is. Packing
it from nothing makes every compaction of the conversation again; a working set that has seen the
front of it only takes in what is new. Conversations are told apart by their content, never by
identity: a list that was changed in place is another conversation.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from satchel.stores.codec import plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.assembler import Assembler
    from satchel.window import Window
    from satchel.working_set import WorkingSet

__all__ = ["Conversations"]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A conversation.

    Attributes:
        assembler: whose settings it has.
        seen: copies of the messages that were seen.
        given: the messages themselves, as they came first; they may have been changed since.
        working_set: the working set over ``given``.
    """

    assembler: Assembler
    seen: list[Any]
    given: list[Any]
    working_set: WorkingSet


class Conversations:
    """At most so many conversations; the one that was used longest ago goes first.

    Safe to use from several threads: a working set is taken out while somebody works with it.
    """

    def __init__(self, most: int) -> None:
        self._most: Final = most
        self._guard: Final = threading.Lock()
        self._kept: Final[OrderedDict[int, _Kept]] = OrderedDict()
        self._number = 0

    def __len__(self) -> int:
        return len(self._kept)

    def window(
        self,
        assembler: Assembler,
        messages: Sequence[Any],
        *,
        system: object,
        tools: Sequence[Any] | None,
    ) -> Window:
        """The window for the next call of a conversation; errors as in `Assembler.assemble`."""
        told = [_copied(message) for message in messages]
        kept = self._taken(assembler, told)
        if kept is None:
            given = list(messages)
            working_set = assembler.working_set(given, system=system, tools=tools)
        else:
            working_set = kept.working_set
            fresh = messages[len(kept.seen) :]
            given = [*kept.given, *fresh]
            if fresh:
                working_set.append(fresh)
        window = working_set.window(system=system, tools=tools, open_calls="synthesize")
        self._keep(_Kept(assembler, told, given, working_set))
        # What is as it was given, is the object of this call: that of an earlier one is equal to
        # it, or was until its owner changed it.
        places = {id(message): place for place, message in enumerate(given)}
        mine = [
            message if (place := places.get(id(message))) is None else messages[place]
            for message in window.messages
        ]
        return replace(window, messages=mine)

    def _taken(self, assembler: Assembler, told: list[Any]) -> _Kept | None:
        """Takes out the conversation that knows most of this history."""
        with self._guard:
            best: int | None = None
            for number, kept in self._kept.items():
                seen = kept.seen
                if kept.assembler is not assembler or len(seen) > len(told):
                    continue
                if best is not None and len(seen) <= len(self._kept[best].seen):
                    continue
                # The newest first: what differs at all mostly differs there.
                if not seen or (seen[-1] == told[len(seen) - 1] and seen == told[: len(seen)]):
                    best = number
            return None if best is None else self._kept.pop(best)

    def _keep(self, kept: _Kept) -> None:
        with self._guard:
            self._number += 1
            self._kept[self._number] = kept
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)


def _copied(value: Any) -> Any:  # noqa: ANN401 - whatever a message is made of
    """The value in containers of its own; strings are shared."""
    if value is None or isinstance(value, (str, int, float, bool, bytes)):
        return value
    known: Any = value
    if type(value) is dict:
        return {key: _copied(inner) for key, inner in known.items()}
    if type(value) is list:
        return [_copied(inner) for inner in known]
    return plain(known)
