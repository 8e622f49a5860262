"""What a working set does about a history that the provider would reject.

The planner packs steps, so it refuses results without calls and messages it cannot read; the rest
of the damage (blank texts, ids, roles) shows only in a window. Both are mended by `satchel.repair`:
the history before it is packed, a window after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from satchel import _core
from satchel._arguments import one_of
from satchel.errors import InputError, SatchelError
from satchel.linting import lint, traits_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from satchel.linting import Violation

__all__ = ["DAMAGE", "OnDamage", "Repairs", "checked"]

OnDamage = Literal["repair", "raise"]

DAMAGE: Final = frozenset({"invalid_message", "orphan_result", "duplicate_result"})
"""Codes of a history that cannot be packed as it is, and may be after a repair."""


def checked(on_damage: OnDamage) -> OnDamage:
    """The value, if it is one of the two.

    Raises:
        InputError: ``invalid_value``.
    """
    return cast("OnDamage", one_of("on_damage", on_damage, ("repair", "raise")))


class Repairs:
    """The repairs of one working set.

    Attributes:
        raw: what the caller gave, once it is damaged; None before. Each repair starts from it, so
            that a rebuild finds the same.
    """

    __slots__ = (
        "_build",
        "_dialect",
        "_is_on",
        "_model",
        "_progress",
        "_request",
        "raw",
    )

    def __init__(
        self,
        on_damage: OnDamage,
        *,
        dialect: str,
        model: str,
        request: Callable[[], tuple[object, object]],
        build: Callable[[Iterable[Any]], _core.WorkingSet],
    ) -> None:
        """``request`` gives system and tools; ``build`` makes a working set of messages."""
        self._is_on = on_damage == "repair"
        self._dialect = dialect
        self._model = model
        self._request = request
        self._build = build
        # Of the last two revisions: one with placeholders for open calls comes between two others.
        self._progress: dict[tuple[int, int, int], tuple[_core.LintProgress, object, object]] = {}
        self.raw: list[Any] | None = None

    def open(self, messages: Iterable[Any]) -> _core.WorkingSet:
        """A working set of these messages, repaired if they cannot be packed."""
        given = list(messages) if isinstance(messages, Iterator) else messages
        try:
            return self._build(given)
        except InputError as error:
            if self._is_on and error.code == "invalid_event":
                # Events stand in the history as it was repaired, which may have more messages.
                raw = list(given)
                mended = raw
                with suppress(SatchelError):
                    mended = self._mended(raw)
                if len(mended) <= len(raw):
                    raise
            elif self._may_mend(error):
                raw = list(given)
                mended = self._mended(raw)
            else:
                raise
        self.raw = raw
        return self._build(mended)

    def append(self, core: _core.WorkingSet, messages: Iterable[Any]) -> _core.WorkingSet:
        """The working set with these messages; the same one, unless its past had to change."""
        # A list first: asking an abstract class costs 0.3 us.
        is_list = isinstance(messages, list)
        given = list(messages) if not is_list and isinstance(messages, Iterator) else messages
        if self.raw is None:
            try:
                core.append(given)
            except InputError as error:
                if not self._may_mend(error):
                    raise
            else:
                return core
        raw = [*(core.messages() if self.raw is None else self.raw), *given]
        mended, known = self._mended(raw), core.messages()
        if mended[: len(known)] == known:
            core.append(mended[len(known) :])
        else:
            core = self._build(mended)
        self.raw = raw
        return core

    def window(
        self, messages: list[Any], revision: int, originals: Callable[[], list[Any]]
    ) -> list[Any] | None:
        """The window's messages, repaired; None if there is no error in them.

        Windows of one ``revision`` are checked from where the last one ended; ``originals`` gives
        the history, for the index in an error.

        Raises:
            InputError: ``invalid_message`` where nothing is repaired.
        """
        system, tools = self._request()
        known = (revision, id(system), id(tools))
        if known not in self._progress:
            progress = _core.LintProgress(self._dialect, traits_of(self._model))
            # Both are held, so that no other object gets their identity.
            newest = progress, system, tools
            self._progress = {**dict([*self._progress.items()][-1:]), known: newest}
        if self._progress[known][0].is_valid(messages, system, tools):
            return None
        found = lint(messages, self._dialect, system=system, tools=tools, model=self._model)
        wrong = next((one for one in found if one.severity == "error"), None)
        if wrong is None:
            return None
        if not self._is_on:
            raise _refused(wrong, messages, originals())
        return self._mended(messages, for_planner=False)

    def _may_mend(self, error: InputError) -> bool:
        return self._is_on and error.code in DAMAGE and error.index is not None

    def _mended(self, messages: list[Any], *, for_planner: bool = True) -> list[Any]:
        system, tools = self._request()
        return _core.repair_messages(
            messages,
            self._dialect,
            mode="synthesize",
            traits=traits_of(self._model),
            system=system,
            tools=tools,
            for_planner=for_planner,
        )


def _refused(wrong: Violation, window: list[Any], originals: list[Any]) -> InputError:
    """The error for a window that its provider would refuse."""
    index = None
    if wrong.index is not None:
        found = window[wrong.index]
        index = next((at for at, message in enumerate(originals) if message is found), None)
    place = "" if index is None else f"message {index}: "
    message = f"{place}{wrong.message} ({wrong.code}: the provider would refuse the window)"
    return InputError(message, code="invalid_message", index=index)
