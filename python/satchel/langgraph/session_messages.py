"""Messages in a satchel session, an id and a version in the state: checkpoints stay small.

A checkpointer writes the state again and again; what is not in it cannot grow there. The session
keeps every message once. A reference to an earlier state shows the session as it was then, and
whoever goes on from there gets a branch.
"""

# Parts of the package that are not its public face.
# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import secrets
from typing import TYPE_CHECKING, Any, Final, Self, cast

from langchain_core.messages import BaseMessage, ToolMessage, convert_to_messages
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import TypedDict  # before Python 3.12 pydantic reads no other

from satchel._arguments import invalid, name_of_type, whole_number
from satchel.assembler import Assembler
from satchel.errors import BudgetError
from satchel.langchain.middleware_window import chat_of, excess_of, message_of
from satchel.session import open_session
from satchel.stores import open_store
from satchel.stores.base import check_id
from satchel.sync import _LOOP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from types import TracebackType

    from satchel.assembler import Budget
    from satchel.counting import AnyCounter
    from satchel.policy import Policy
    from satchel.session import Session
    from satchel.stores.base import SessionStore
    from satchel.summarize.base import Summarizer

__all__ = ["SessionMessages", "SessionRef"]


_TRIES: Final = 6


class SessionRef(TypedDict):
    """What the state keeps of a thread's messages.

    Attributes:
        id: the session.
        version: its version when this was written.
        messages: how many messages it had.
    """

    id: str
    version: int
    messages: int


class SessionMessages:
    """The messages of a graph's threads, in the sessions of a store; from any thread or loop.

    A session keeps what a provider is sent: content, calls, names, ids, and whether a tool failed.
    ``usage_metadata``, ``response_metadata``, ``additional_kwargs`` and ``artifact`` are not kept.

    Args:
        url: as for `satchel.open_session`; or a store.
        model: likewise.
        user_id: likewise.
        budget: likewise.
        counter: likewise.
        policy: likewise.
        summarizer: likewise.
        ttl_s: likewise.

    Raises:
        InputError: as `satchel.open_session`.
    """

    def __init__(
        self,
        url: str | SessionStore,
        *,
        model: str,
        user_id: str | None = None,
        budget: int | Budget | None = None,
        counter: AnyCounter | None = None,
        policy: str | Policy = "adaptive",
        summarizer: Summarizer | Sequence[Summarizer] | None = None,
        ttl_s: float | None = None,
    ) -> None:
        self._assembler: Final = Assembler(
            model, budget=budget, counter=counter, policy=policy, dialect="openai"
        )
        self._store: Final = open_store(url) if isinstance(url, str) else url
        self._options: Final[dict[str, Any]] = {
            "model": model,
            "user_id": user_id,
            "budget": budget,
            "counter": counter,
            "policy": policy,
            "dialect": "openai",
            "summarizer": summarizer,
            "ttl_s": ttl_s,
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def append(
        self, ref: SessionRef | None, messages: Iterable[Any], *, session_id: str | None = None
    ) -> SessionRef:
        """Appends messages behind those that ``ref`` stands for; what the state is to keep next.

        A message whose id is there already is not appended again, so a node that runs once more
        does no harm. If the session has gone on since, in another way, these begin a branch.

        Args:
            ref: what the state holds; None for a new thread.
            messages: LangChain's messages, or what it makes messages of.
            session_id: the id of a new thread's session; a random one by default.

        Raises:
            InputError: as `satchel.Session.append`.
            StoreError: likewise; ``wrong_user``.
        """
        given = convert_to_messages(list(messages))
        return _LOOP.run(lambda: self._append(ref, given, session_id))

    async def aappend(
        self, ref: SessionRef | None, messages: Iterable[Any], *, session_id: str | None = None
    ) -> SessionRef:
        """As `append`."""
        return await asyncio.to_thread(self.append, ref, list(messages), session_id=session_id)

    def window(
        self,
        ref: SessionRef | None,
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
    ) -> list[BaseMessage]:
        """What the model is to be sent, within the budget; without the system prompt.

        Args:
            ref: what the state holds.
            system: the system prompt that the request will carry; counted.
            tools: its tools; likewise.

        Raises:
            BudgetError: ``over_budget``.
            StoreError: ``session_not_found``; whatever the store says.
        """
        return _LOOP.run(lambda: self._window(ref, system, tools))

    async def awindow(
        self,
        ref: SessionRef | None,
        *,
        system: str | None = None,
        tools: Sequence[Any] | None = None,
    ) -> list[BaseMessage]:
        """As `window`."""
        return await asyncio.to_thread(self.window, ref, system=system, tools=tools)

    def messages(self, ref: SessionRef | None) -> list[BaseMessage]:
        """All messages that ``ref`` stands for, as they came.

        Raises:
            StoreError: ``session_not_found``; whatever the store says.
        """
        return _LOOP.run(lambda: self._messages(ref))

    async def amessages(self, ref: SessionRef | None) -> list[BaseMessage]:
        """As `messages`."""
        return await asyncio.to_thread(self.messages, ref)

    def close(self) -> None:
        """Lets go of the store."""
        _LOOP.run(self._store.close)

    async def aclose(self) -> None:
        """As `close`."""
        await asyncio.to_thread(self.close)

    # --- on the loop ------------------------------------------------------------------------------

    def _session(self, session_id: str) -> Session:
        return open_session(self._store, session_id=session_id, **self._options)

    async def _append(
        self, ref: SessionRef | None, messages: list[BaseMessage], session_id: str | None
    ) -> SessionRef:
        chat = [
            _kept(one, message) for one, message in zip(chat_of(messages), messages, strict=True)
        ]
        if ref is None:
            name = secrets.token_urlsafe(16) if session_id is None else session_id
            check_id("session_id", name)
            had = 0
        else:
            name, had = _checked(ref)
            await self._store.info(name)  # which must be there
        async with self._session(name) as session:
            held = await session.messages()
            if len(held) > had and not _is_again(held[had:], chat):
                # Somebody went on from here before; this is another way on.
                async with await session.branch(had) as branch:
                    return await _appended(branch, chat)
            return await _appended(session, chat)

    async def _window(
        self, ref: SessionRef | None, system: str | None, tools: Sequence[Any] | None
    ) -> list[BaseMessage]:
        if ref is None:
            return []
        name, had = _checked(ref)
        await self._store.info(name)
        definitions = [convert_to_openai_tool(tool) for tool in tools] if tools else None
        async with self._session(name) as session:
            held = await session.messages()
            if len(held) == had:
                return await self._newest(session, system, definitions)
            # As it was then: a window is a function of the log up to there.
            events = [one for one in await session.events() if one["at"] <= had]
            window = await asyncio.to_thread(
                self._assembler.assemble,
                held[:had],
                events=events,
                system=system,
                tools=definitions,
                open_calls="synthesize",
            )
        return [_message(one) for one in window.messages]

    async def _newest(
        self, session: Session, system: str | None, tools: Sequence[Any] | None
    ) -> list[BaseMessage]:
        """The window of a session, within its budget as LangChain's messages, too."""
        counter = self._assembler.counter
        tries = 0
        while True:
            window = await session.window(system=system, tools=tools, open_calls="synthesize")
            shown = [_message(one) for one in window.messages]
            excess = await asyncio.to_thread(excess_of, window.messages, shown, counter)
            above = window.tokens_upper + excess - self._assembler.budget
            if above <= 0:
                return shown
            tries += 1
            if tries == _TRIES:
                message = f"shortened calls take {excess} tokens more than planned"
                size, limit = window.tokens_upper + excess, self._assembler.budget
                raise BudgetError(message, code="over_budget", value=size, limit=limit)
            # Of this boundary only: whoever opens the session next has the whole budget again.
            # The smaller window has other calls shortened, so there is room for those too.
            smaller = window.budget - excess - above * 2**tries
            await session.apply({"kind": "settings", "budget": max(1, smaller)})

    async def _messages(self, ref: SessionRef | None) -> list[BaseMessage]:
        if ref is None:
            return []
        name, had = _checked(ref)
        await self._store.info(name)
        async with self._session(name) as session:
            return [_message(one) for one in (await session.messages())[:had]]


async def _appended(session: Session, chat: list[dict[str, Any]]) -> SessionRef:
    if chat:
        await session.append(chat)
    held = await session.messages()
    return SessionRef(id=session.session_id, version=session.version, messages=len(held))


def _is_again(held: Sequence[Mapping[str, Any]], chat: Sequence[Mapping[str, Any]]) -> bool:
    """Whether what is there behind a reference is what is to be appended now."""
    names = [one.get("id") for one in held]
    return names == [one.get("id") for one in chat][: len(names)] and None not in names


def _checked(ref: object) -> tuple[str, int]:
    found = cast("SessionRef", ref)
    if not isinstance(ref, dict) or not {"id", "messages"} <= set(found):
        message = f"a reference has an id and a number of messages, not {name_of_type(found)}"
        raise invalid(message)
    return check_id("the id of a reference", found["id"]), whole_number(
        "the messages of a reference", found["messages"]
    )


def _message(chat: Mapping[str, Any]) -> BaseMessage:
    found = message_of(chat)
    name: object = chat.get("id")
    if isinstance(name, str):
        found.id = name
    if isinstance(found, ToolMessage) and chat.get("status") == "error":
        found.status = "error"
    return found


def _kept(chat: dict[str, Any], message: BaseMessage) -> dict[str, Any]:
    """The chat message that is kept: with the id of the message instead of its place."""
    found = {name: value for name, value in chat.items() if name != "id"}
    if message.id:
        found["id"] = message.id
    if isinstance(message, ToolMessage) and message.status == "error":
        found["status"] = "error"
    return found
