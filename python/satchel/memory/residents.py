"""The scopes that are held in memory: made when first asked for, kept up with what is written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from satchel.memory.resident import Resident

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from satchel.memory.backend import Draft, Scope

    Row = tuple[int, int | None, bytes, Draft]

__all__ = ["Residents"]


class Residents:
    """Columns of the scopes that were used last.

    Args:
        most_items: items that are held in all; the scope in use is held whatever its size.
    """

    def __init__(self, most_items: int = 400_000) -> None:
        self._most_items: Final = most_items
        self._held: Final[dict[Scope, Resident]] = {}

    def get(self, scope: Scope, load: Callable[[Scope], Iterable[Row]]) -> Resident:
        """The columns of a scope; ``load`` gives its rows by ascending number."""
        found = self._held.pop(scope, None)
        if found is None:
            found = Resident()
            found.add(load(scope))
        self._held[scope] = found
        total = sum(map(len, self._held.values()))
        for other in list(self._held)[:-1]:
            if total <= self._most_items:
                break
            total -= len(self._held.pop(other))
        return found

    def holds(self, scope: Scope) -> bool:
        """Whether the columns of a scope are here."""
        return scope in self._held

    def added(self, rows: Sequence[Row]) -> None:
        """Takes in new rows, whose numbers are higher than all before."""
        for scope, held in self._held.items():
            mine = [row for row in rows if scope.holds(row[2])]
            if mine:
                held.add(mine)

    def superseded(self, numbers: Iterable[int]) -> None:
        """Marks rows as superseded."""
        known = list(numbers)
        for held in self._held.values():
            held.supersede(known)

    def drop(self, paths: Iterable[bytes] | None = None) -> None:
        """Lets go of the scopes that hold any of the paths; without paths, of all."""
        gone = None if paths is None else set(paths)
        for scope in list(self._held):
            if gone is None or any(scope.holds(path) for path in gone):
                del self._held[scope]
