"""The conformance suite of session stores: what `satchel.stores.SessionStore` says, as tests.

`store_conformance` gives a list of cases, each a function without arguments that raises
``AssertionError``, naming what is wrong, or returns. With pytest::

    @pytest.mark.parametrize("case", store_conformance(make_store), ids=str)
    def test_my_store(case: StoreCase) -> None:
        case()

A case makes its stores by the factory, at a `StorePlace` of its own: a folder and a name that no
other case has, for a file, a schema or a prefix of keys. A factory may as well ignore them and use
one database for everything: all ids and user ids of a case begin with the place's name.

Nothing is timed. The suite waits in real time only for a store that cannot be given a clock, and
then a few seconds in all.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, cast, get_args

from satchel.testing import _isolation_cases, _lasting_cases, _log_cases, _session_cases
from satchel.testing._cases import Body

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from satchel.stores.base import SessionStore

__all__ = ["Capability", "ManualClock", "StoreCase", "StorePlace", "store_conformance"]

Capability = Literal["durable", "shared", "clock"]
"""What not every store can do:

``durable``: a second store at the same place, made after the first was closed, has what it had.
``shared``: so has one that is made while the first is in use, in this process or another.
``clock``: the factory gives the place's clock to the store, and no other one decides about TTLs.
"""

_CAPABILITIES: Final[tuple[Capability, ...]] = get_args(Capability)
_MODULES: Final = (_log_cases, _session_cases, _isolation_cases, _lasting_cases)


@dataclass(slots=True)
class ManualClock:
    """A clock that stands until it is moved; called, it gives the seconds since 1970.

    Attributes:
        now: what it shows.
    """

    now: float = 1_700_000_000.0

    def __call__(self) -> float:
        """What it shows."""
        return self.now


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Where the stores of one case keep what they keep.

    Attributes:
        folder: an empty folder of its own, removed after the case.
        name: 20 lower-case letters and digits, a letter first; new each time.
        clock: the time, for a store that takes a clock.
    """

    folder: Path
    name: str
    clock: ManualClock = field(default_factory=ManualClock)


@dataclass(frozen=True, slots=True)
class StoreCase:
    """One case; call it, or await `check` where an event loop runs already.

    Attributes:
        name: what it is about.
        needs: what a store must be able to do.
    """

    name: str
    needs: frozenset[str]
    _body: Body
    _factory: Callable[[StorePlace], SessionStore]
    _capabilities: frozenset[Capability]

    def __str__(self) -> str:
        return self.name

    def __call__(self) -> None:
        """Runs it.

        Raises:
            AssertionError: the store does not do what it should.
        """
        asyncio.run(self.check())

    async def check(self) -> None:
        """Runs it within a running event loop; as a call does."""
        with tempfile.TemporaryDirectory(prefix="satchel-store-") as folder:
            place = StorePlace(Path(folder), f"s{secrets.token_hex(10)[1:]}")
            async with AsyncExitStack() as stack:
                await self._body.run(_Stage(place, self._factory, self._capabilities, stack))


class _Stage:
    """What the body of a case has; see `satchel.testing._cases.Stage`."""

    def __init__(
        self,
        place: StorePlace,
        factory: Callable[[StorePlace], SessionStore],
        capabilities: frozenset[Capability],
        stack: AsyncExitStack,
    ) -> None:
        self._place: Final = place
        self._factory: Final = factory
        self._stack: Final = stack
        self.capabilities: Final[Collection[str]] = capabilities

    def store(self) -> SessionStore:
        made = self._factory(self._place)
        self._stack.push_async_callback(made.close)
        return made

    def id(self, text: str = "") -> str:
        return self._place.name + text

    async def wait(self, seconds: float) -> None:
        if "clock" in self.capabilities:
            self._place.clock.now += seconds
        else:
            await asyncio.sleep(seconds)


def store_conformance(
    factory: Callable[[StorePlace], SessionStore],
    *,
    capabilities: Collection[Capability] = ("durable", "shared"),
) -> list[StoreCase]:
    """The cases that a store with these capabilities must pass.

    Args:
        factory: makes a store at a place; called several times with one place, it makes several
            stores over the same sessions.
        capabilities: what the store can do besides what all can.

    Raises:
        ValueError: a capability that there is none of.
    """
    given = frozenset(capabilities)
    unknown = sorted(cast("set[str]", given - set(_CAPABILITIES)))
    if unknown:
        message = f"capabilities are {', '.join(_CAPABILITIES)}, not {unknown[0]!r}"
        raise ValueError(message)
    found: list[StoreCase] = []
    for module in _MODULES:
        for name, body in vars(module).items():
            if isinstance(body, Body) and body.needs <= given:
                found.append(StoreCase(name, body.needs, body, factory, given))
    return found
