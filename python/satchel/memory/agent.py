"""An agent that remembers: a session for this conversation, a memory for all of them.

Each turn: recall what fits the question, take the window, ask the model, record both sides, and
keep what matters. A memory that fails costs its own contribution and nothing else: the turn goes
on, and says what went wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from satchel._arguments import one_of, plain_text, whole_number
from satchel.errors import SatchelError
from satchel.memory.extraction import ExtractionSettings, extract_memories
from satchel.memory.findings import Said
from satchel.memory.flushing import said_of
from satchel.memory.item import MemoryItem, Source
from satchel.memory.rendering import memories_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from satchel.memory.extraction import ExtractionReport, Extractor
    from satchel.memory.item import Recalled
    from satchel.memory.store import Memory
    from satchel.session import Session
    from satchel.window import Window

__all__ = ["AgentTurn", "AgentWithMemory"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentTurn:
    """What one turn came to.

    Attributes:
        reply: what the model returned.
        window: what it was asked with.
        recalled: the memories that were shown to it.
        extraction: what was kept of the turn; None if that failed or nothing is extracted.
        failures: what went wrong with the memory, by name; the session has the turn in any case.
    """

    reply: Any
    window: Window
    recalled: tuple[Recalled, ...] = ()
    extraction: ExtractionReport | None = None
    failures: tuple[SatchelError, ...] = field(default=())


class AgentWithMemory:
    """Session, memory and model as one loop.

    Args:
        session: this conversation, opened.
        memory: long-term memory, opened.
        namespace: whose memories, such as ``("users", "ada")``.
        model: a coroutine function: the window -> the provider's reply.
        system: the system prompt.
        k: most memories of a turn.
        token_budget: most tokens of their texts.
        placement: where they stand: ``"user"``: in a fence behind the words of the newest user
            message, so that the start of the prompt stays as it was and can be cached; they are an
            event of the session, and its messages stay as they were said;
            ``"system"``: in a fence at the end of the system prompt.
        extractor: who finds what matters, beside the rules.
        settings: what of that is kept; None to extract nothing.
        keep_episodes: whether both sides of each turn are remembered too, as they were said.

    Raises:
        InputError: ``invalid_value``.
    """

    def __init__(
        self,
        session: Session,
        memory: Memory,
        *,
        namespace: Sequence[str],
        model: Callable[[Window], Awaitable[Any]],
        system: str | None = None,
        k: int = 3,
        token_budget: int = 500,
        placement: Literal["user", "system"] = "user",
        extractor: Extractor | None = None,
        settings: ExtractionSettings | None = ExtractionSettings(),  # noqa: B008 - it is frozen
        keep_episodes: bool = True,
    ) -> None:
        self._session: Final = session
        self._memory: Final = memory
        self._namespace: Final = tuple(namespace)
        self._model: Final = model
        self._system: Final = system
        self._k: Final = whole_number("k", k)
        self._token_budget: Final = whole_number("token_budget", token_budget)
        self._placement: Final = one_of("placement", placement, ("user", "system"))
        self._extractor: Final = extractor
        self._settings: Final = settings
        self._keep_episodes: Final = keep_episodes

    async def ask(self, text: str) -> AgentTurn:
        """One turn: the user's words in, the model's reply out.

        Raises:
            BudgetError: what must stay in the window does not fit.
            StoreError: the session's store failed. What the memory does wrong is in the turn.
        """
        plain_text("text", text)
        failures: list[SatchelError] = []
        recalled = await self._recalled(text, failures)
        in_system = recalled if self._placement == "system" else []
        fence = memories_text(in_system, language="ko" if _is_korean(text) else "en")
        await self._session.append(self._message(text))
        asked_at = len(await self._session.messages()) - 1
        window = await self._session.window(
            system=self._prompt(fence), memories=[] if in_system else recalled
        )
        reply = await self._model(window)
        await self._session.record(reply)
        answer = await self._answer(asked_at + 1)
        extraction = await self._kept(text, answer, asked_at, failures)
        return AgentTurn(
            reply=reply,
            window=window,
            recalled=tuple(recalled),
            extraction=extraction,
            failures=tuple(failures),
        )

    async def _recalled(self, text: str, failures: list[SatchelError]) -> list[Recalled]:
        if not self._k or not self._token_budget:
            return []
        try:
            return await self._memory.recall(
                self._namespace, text, k=self._k, token_budget=self._token_budget
            )
        except SatchelError as error:
            failures.append(error)
            return []

    async def _kept(
        self, text: str, answer: str, asked_at: int, failures: list[SatchelError]
    ) -> ExtractionReport | None:
        said = [Said(role="user", text=text, index=asked_at)]
        if answer:
            said.append(Said(role="assistant", text=answer, index=asked_at + 1))
        report: ExtractionReport | None = None
        try:
            if self._settings is not None:
                report = await extract_memories(
                    self._memory,
                    self._namespace,
                    said,
                    extractor=self._extractor,
                    settings=self._settings,
                    session_id=self._session.session_id,
                    user_id=self._session.user_id,
                )
        except SatchelError as error:
            failures.append(error)
        try:
            if self._keep_episodes:
                await self._memory.remember(self._namespace, [self._episode(one) for one in said])
        except SatchelError as error:
            failures.append(error)
        return report

    def _episode(self, said: Said) -> MemoryItem:
        source = Source(session_id=self._session.session_id, message=said.index, speaker=said.role)
        item = MemoryItem(text=said.text, source=source, user_id=self._session.user_id)
        # What the assistant says may be a guess, and is not recalled as anything else.
        return item if said.role == "user" else replace(item, status="claim")

    def _message(self, text: str) -> dict[str, Any]:
        dialect = self._session.dialect
        if dialect == "gemini":
            return {"role": "user", "parts": [{"text": text}]}
        return {"role": "user", "content": [{"text": text}] if dialect == "bedrock" else text}

    def _prompt(self, fence: str) -> Any:  # noqa: ANN401 - as the dialect wants it
        parts = [part for part in (self._system, fence) if part]
        return "\n\n".join(parts) if parts else None

    async def _answer(self, start: int) -> str:
        """The text of what was recorded from message ``start`` on."""
        messages = (await self._session.messages())[start:]
        return "\n".join(one.text for one in said_of(messages, self._session.dialect))


def _is_korean(text: str) -> bool:
    return any("가" <= char <= "힣" for char in text)
