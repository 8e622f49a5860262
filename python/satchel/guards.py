"""Guards of an agent loop: not too many steps, and not the same step for ever.

Values and small objects that work alone, over messages of any dialect.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final, cast

from satchel import _core
from satchel._arguments import whole_number
from satchel.errors import GuardError
from satchel.linting import lint
from satchel.state import MAX_STEPS, AgentState

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["LoopGuard", "StepGuard"]

_SHOWN_CHARS: Final = 80


class StepGuard:
    """Counts steps and stops at a limit.

    Args:
        max_steps: steps that may be taken, at least 1.

    Raises:
        InputError: ``invalid_value``.

    Example:
        >>> guard = StepGuard(max_steps=2)
        >>> guard.step(), guard.step()
        (1, 2)
    """

    __slots__ = ("_max_steps", "_steps")

    def __init__(self, max_steps: int = MAX_STEPS) -> None:
        self._max_steps: Final = whole_number("max_steps", max_steps, least=1)
        self._steps = 0

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        return self._steps

    def step(self) -> int:
        """Takes a step; returns how many there are now.

        Raises:
            GuardError: ``step_limit`` for one more than allowed. It is not counted.
        """
        if self._steps >= self._max_steps:
            raise _step_limit(self._steps + 1, self._max_steps)
        self._steps += 1
        return self._steps

    @staticmethod
    def advance(state: AgentState) -> AgentState:
        """The state one step further.

        Raises:
            GuardError: ``step_limit`` if that is more than its ``max_steps``.
        """
        step = state.current_step + 1
        if step > state.max_steps:
            raise _step_limit(step, state.max_steps)
        return state.model_copy(update={"current_step": step})


class LoopGuard:
    """Notices an agent that makes the same call with the same result again and again.

    Calls that were made together count one by one and as a whole. What a user says in between
    begins the count anew.

    Args:
        repeats: how many times in a row are too many, at least 2.
        dialect: the messages' dialect; None to tell it from the first of them.

    Raises:
        InputError: ``invalid_value``, ``unknown_dialect``.

    Example:
        >>> guard = LoopGuard()
        >>> call = {"id": "1", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
        >>> for _ in range(2):
        ...     guard.observe({"role": "assistant", "content": None, "tool_calls": [call]})
        ...     guard.observe({"role": "tool", "tool_call_id": "1", "content": "empty"})
    """

    __slots__ = ("_calls", "_dialect", "_open", "_repeats", "_step", "_steps")

    def __init__(self, repeats: int = 3, *, dialect: str | None = None) -> None:
        # With 1 any call would be one too many.
        self._repeats: Final = whole_number("repeats", repeats, least=2)
        self._dialect = dialect
        if dialect is not None:
            lint([], dialect)  # which says what is wrong with the name
        # Calls without a result yet, oldest first: id, name, digest of name and arguments.
        self._open: list[tuple[str | None, str, bytes]] = []
        self._calls = _Run()
        # The calls of the newest step with their results, and whole steps in a row.
        self._step: list[bytes] = []
        self._steps = _Run()

    def observe(self, messages: object) -> None:
        """Looks at a new message, or at several in order.

        Raises:
            GuardError: ``repeated_call``; the message names the tool, ``value`` how many times.
            InputError: ``invalid_message``.
        """
        for message in _listed(messages):
            if self._dialect is None:
                self._dialect = _core.detect_dialect([message])
            described = _core.describe_message(message, self._dialect or "openai")
            for part in described["parts"]:
                if described["role"] == "user" and part["kind"] == "text":
                    self.forget()
                self._look(part)

    def check(self, messages: Iterable[Any]) -> None:
        """Looks at a whole history; what was observed before is forgotten.

        Raises:
            GuardError: ``repeated_call`` if its end is such a loop.
            InputError: ``invalid_message``.
        """
        self.forget()
        found: GuardError | None = None
        for message in messages:
            try:
                self.observe(message)
                found = None if self._most < self._repeats else found
            except GuardError as error:
                found = error
        if found is not None:
            raise found

    def forget(self) -> None:
        """Begins anew, as after a change that makes trying again reasonable."""
        self._open.clear()
        self._step.clear()
        self._calls, self._steps = _Run(), _Run()

    @property
    def _most(self) -> int:
        return max(self._calls.count, self._steps.count)

    def _look(self, part: Mapping[str, Any]) -> None:
        if part["kind"] == "call":
            name = part["tool"] or ""
            digest = _digest(name.encode("utf-8", "replace"), _plain_json(bytes(part["page"])))
            self._open.append((part["id"], name, digest))
            return
        if part["kind"] != "result" or not self._open:
            return
        at = next((at for at, call in enumerate(self._open) if call[0] == part["id"]), 0)
        _, name, call = self._open.pop(at)
        seen = _digest(call, bytes(part["page"]))
        self._calls.add(seen)
        self._step.append(seen)
        if not self._open:
            self._steps.add(_digest(*sorted(self._step)))
            self._step.clear()
        if self._most >= self._repeats:
            message = (
                f"the tool {_shown(name)} was called {self._most} times in a row with the same "
                f"arguments and the same result; {self._repeats} are too many"
            )
            raise GuardError(message, code="repeated_call", value=self._most, limit=self._repeats)


class _Run:
    """How often the same came in a row."""

    __slots__ = ("_last", "count")

    def __init__(self) -> None:
        self._last: bytes | None = None
        self.count = 0

    def add(self, digest: bytes) -> None:
        self.count = self.count + 1 if digest == self._last else 1
        self._last = digest


def _listed(messages: object) -> Iterator[object]:
    if isinstance(messages, (list, tuple)):
        yield from cast("Sequence[object]", messages)
    else:
        yield messages


def _plain_json(arguments: bytes) -> bytes:
    """Arguments without differences of spelling: white space, order of keys."""
    try:
        value = json.loads(arguments)
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return arguments


def _digest(*pieces: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for piece in pieces:
        digest.update(len(piece).to_bytes(8))
        digest.update(piece)
    return digest.digest()


def _shown(name: str) -> str:
    """A tool's name for an error: it comes from a model, so it is bounded and escaped."""
    return ascii(name if len(name) <= _SHOWN_CHARS else name[:_SHOWN_CHARS] + "...")


def _step_limit(step: int, limit: int) -> GuardError:
    message = f"step {step} is beyond the limit of {limit} steps"
    return GuardError(message, code="step_limit", value=step, limit=limit)
