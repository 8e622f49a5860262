"""From a history of pydantic-ai's to the window of the next request.

The window is a pure function of the history and the settings. Within a run the working set of the
request before is carried on, as long as the history continues the one that it saw; what it saw is
kept as copies, so that nobody's later change goes unnoticed.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pydantic_ai.messages import ModelRequest, ModelResponse, UserPromptPart, repair_messages

from satchel import models
from satchel._arguments import name_of_type
from satchel.assembler import Assembler, Budget
from satchel.errors import InputError
from satchel.paging import PAGE_TOOL_NAME
from satchel.pydantic_ai.drafts import DIALECT, drafted, is_bound, restored

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic_ai.messages import ModelMessage

    from satchel.counting import AnyCounter
    from satchel.policy import Policy
    from satchel.window import Window
    from satchel.working_set import WorkingSet

__all__ = ["Conversation", "Packer", "Settings", "is_packable", "named_model", "packed"]

_RUNS: Final = 64
"""How many runs are carried on at once; an older one starts anew from its history."""

_Key = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Settings:
    """How windows are made; fields as the arguments of `satchel.pydantic_ai.ContextCapability`."""

    model: str | None = None
    policy: str | Policy = "adaptive"
    budget: int | None = None
    reserve_tokens: int | None = None
    counter: AnyCounter | None = None
    on_window: Callable[[Window], object] | None = None

    def assembler(self, model: str) -> Assembler:
        """What makes the windows for a model."""
        return Assembler(
            model,
            budget=Budget(self.budget, self.reserve_tokens),
            policy=self.policy,
            counter=self.counter,
            dialect=DIALECT,
        )


def named_model(model: Any) -> str:
    """The name of a model as `satchel.models` may know it: with its provider, if it says one.

    Raises:
        InputError: ``unknown_model`` for an object without a name.
    """
    said = [model, getattr(model, "model_id", None), getattr(model, "model_name", None)]
    names = [name for name in said if isinstance(name, str)]
    for name in names:
        try:
            models.get(name)
        except InputError:
            continue  # the next one may be known
        return name
    if names:
        return names[0]
    message = f"a {name_of_type(model)} does not say its name: give model=..."
    raise InputError(message, code="unknown_model")


@dataclass(slots=True)
class Conversation:
    """The working set of a run, and what it saw.

    Attributes:
        model: whose windows they are.
        working_set: over the drafts.
        seen: the parts of each message, as they were, without metadata.
        drafts: the draft of each message; None for one that has none.
        before: the conversation of an earlier stretch of the run, whose history is another by now.
    """

    model: str
    working_set: WorkingSet
    seen: list[list[Any]] = field(default_factory=list[list[Any]])
    drafts: list[dict[str, Any] | None] = field(default_factory=list[dict[str, Any] | None])
    before: Conversation | None = None
    calls: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    is_busy: bool = False

    def is_continued_by(self, model: str, messages: Sequence[ModelMessage]) -> bool:
        """Whether a history is what was seen and more."""
        return (
            not self.is_busy
            and self.model == model
            and len(self.seen) <= len(messages)
            and all(
                seen == _sent_parts(message)
                for seen, message in zip(self.seen, messages, strict=False)
            )
        )

    def append(self, messages: Sequence[ModelMessage]) -> None:
        """Takes in what is new of a history."""
        fresh: list[dict[str, Any]] = []
        pinned: list[int] = []
        start = len(self.working_set)
        for message in messages[len(self.seen) :]:
            draft = drafted(message, len(self.seen), self.calls)
            self.seen.append(copy.deepcopy(_sent_parts(message)))
            self.drafts.append(draft)
            if draft is not None:
                if is_bound(message):
                    pinned.append(start + len(fresh))
                fresh.append(draft)
        self.working_set.append(fresh)
        for index in pinned:
            self.working_set.pin(index)

    def page(self, arguments: object) -> str:
        """The answer to a call of the page-in tool."""
        found: Conversation | None = self
        first = ""
        while found is not None:
            call = {"type": "tool_use", "id": "page", "name": PAGE_TOOL_NAME, "input": arguments}
            result = found.working_set.handle_page_call(call)
            [block] = result["content"]
            text = block["content"] if isinstance(block["content"], str) else _texts(block)
            if not block.get("is_error"):
                return text
            first = first or text
            found = found.before
        return first


class Packer:
    """Makes windows for many runs; one for each capability or processor."""

    def __init__(self, settings: Settings) -> None:
        self.settings: Final = settings
        self._assemblers: Final[dict[str, Assembler]] = {}
        self._runs: Final[OrderedDict[_Key, Conversation]] = OrderedDict()
        # What is wrong with the settings is said here, not in the middle of a run.
        self.assembler(settings.model or "gpt-5")

    def assembler(self, model: str) -> Assembler:
        """What makes the windows for a model."""
        found = self._assemblers.get(model)
        if found is None:
            found = self._assemblers[model] = self.settings.assembler(model)
        return found

    def conversation(
        self, run_id: str | None, model: str, messages: Sequence[ModelMessage]
    ) -> Conversation:
        """That of the run if it carries the history on, else a new one."""
        known = None if run_id is None else self._runs.get((run_id, model))
        if known is not None and known.is_continued_by(model, messages):
            self._runs.move_to_end((run_id or "", model))
            return known
        found = Conversation(model, self.assembler(model).working_set(), before=known)
        if run_id is not None:
            self._runs[run_id, model] = found
            while len(self._runs) > _RUNS:
                self._runs.popitem(last=False)
        return found

    def forget(self, run_id: str | None, model: str) -> None:
        """Starts the run anew the next time."""
        if run_id is not None:
            self._runs.pop((run_id, model), None)

    def of_run(self, run_id: str | None) -> Conversation | None:
        """The newest conversation of a run."""
        for key in reversed(self._runs):
            if key[0] == run_id:
                return self._runs[key]
        return None


def packed(
    conversation: Conversation,
    messages: Sequence[ModelMessage],
    system: str | None,
    tools: Sequence[dict[str, Any]],
) -> tuple[list[ModelMessage], Window]:
    """The messages of the window over a valid history that ends in a request."""
    conversation.append(messages)
    window = conversation.working_set.window(system=system, tools=tools or None)
    found: list[ModelMessage] = []
    for draft in window.messages:
        number: int | None = draft.get("at")
        if number is None:
            found.append(restored(draft, None, None))
        else:
            found.append(restored(draft, messages[number], conversation.drafts[number]))
    # What the framework puts an empty last request for must still be there.
    if isinstance(messages[-1], ModelRequest) and not messages[-1].parts:
        found.append(messages[-1])
    # Neighbours of one side are one message for providers, and for whoever compares.
    return repair_messages(found, repair_last_response=False), window


def is_packable(messages: Sequence[ModelMessage]) -> bool:
    """Whether a history ends where a request is made; one that resumes a response does not."""
    return bool(messages) and not isinstance(messages[-1], ModelResponse)


def _sent_parts(message: ModelMessage) -> list[Any]:
    """The parts of a message without metadata, which no model gets.

    It may be any object of the application: a lock, which cannot be copied, or an array, which does
    not compare to a bool.
    """
    found: list[Any] = []
    for part in message.parts:
        sent: Any = _without_metadata(part)
        if isinstance(sent, UserPromptPart) and not isinstance(sent.content, str):
            content = [_without_metadata(piece) for piece in sent.content]
            sent = dataclasses.replace(sent, content=content)
        found.append(sent)
    return found


def _without_metadata(value: Any) -> Any:
    if getattr(value, "metadata", None) is None:
        return value
    bare = copy.copy(value)
    bare.metadata = None
    return bare


def _texts(block: dict[str, Any]) -> str:
    return "\n".join(piece["text"] for piece in block["content"] if piece.get("type") == "text")
