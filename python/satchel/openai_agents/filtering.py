"""A ``call_model_input_filter`` that packs what each model call gets.

The SDK hands over the whole input before every call, inside the tool loop too, and never stores
what comes back, so the window is computed anew each time: a pure function of the input. Within a
run the working set of the call before is carried on, as long as the input continues the one it saw.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, cast

from satchel._arguments import invalid, name_of_type, optional_text
from satchel.assembler import Assembler, Budget
from satchel.openai_agents.items import DIALECT, Replay, is_delta
from satchel.openai_agents.request import definitions, model_of
from satchel.paging import PAGE_TOOL_NAME, page_tool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.counting import AnyCounter
    from satchel.policy import Policy
    from satchel.window import Window
    from satchel.working_set import WorkingSet

__all__ = ["ContextFilter", "context_filter"]


def context_filter(
    *,
    model: str | None = None,
    policy: str | Policy = "adaptive",
    budget: int | None = None,
    reserve_tokens: int | None = None,
    counter: AnyCounter | None = None,
    server_managed: bool | None = None,
    on_window: Callable[[Window], object] | None = None,
) -> ContextFilter:
    """For ``RunConfig(call_model_input_filter=...)``: each call gets a valid window that fits.

    The budget is that of the whole request: instructions, tools, handoffs, the answer's schema and
    the reserve are taken off before the items. Items that stay as they were are the same objects.

    Args:
        model: the model that is called; None for the agent's. Name it where the run's config
            overrules the agent, and where the agent's is an object that does not say.
        policy: as for `satchel.Assembler`.
        budget: input tokens of the request; None for the model's window less the reserve.
        reserve_tokens: tokens kept for the answer, as for `satchel.Budget`.
        counter: as for `satchel.Assembler`.
        server_managed: whether the provider keeps the conversation and the input is only what is
            new to it; that is passed on as it is. None to see it from the input: it begins with
            outputs and has nothing that the model said.
        on_window: called with each window; for figures, and for what a test wants to see.

    Raises:
        InputError: ``unknown_model``, ``unknown_policy``, ``invalid_value``.

    Example:
        >>> pack = context_filter(model="gpt-5", policy="adaptive", reserve_tokens=8_000)
        >>> pack.model
        'gpt-5'
    """
    return ContextFilter(
        model=model,
        policy=policy,
        budget=budget,
        reserve_tokens=reserve_tokens,
        counter=counter,
        server_managed=server_managed,
        on_window=on_window,
    )


class _Conversation:
    """A working set and the items it saw, as they were then."""

    __slots__ = ("is_busy", "items", "key", "replay", "working_set")

    def __init__(self, key: tuple[str, bool], working_set: WorkingSet) -> None:
        self.key: Final = key
        self.working_set: Final = working_set
        self.replay: Final = Replay(is_stored=key[1])
        self.items: list[Any] = []
        self.is_busy = False

    def is_continued_by(self, key: tuple[str, bool], given: Sequence[Any]) -> bool:
        """Whether a call's input is what was seen and more."""
        seen = self.items
        return (
            not self.is_busy
            and self.key == key
            and len(seen) <= len(given)
            and seen == list(given[: len(seen)])
        )


_NEWEST: Final[ContextVar[tuple[ContextFilter, _Conversation] | None]] = ContextVar(
    "satchel.openai_agents", default=None
)
"""The conversation of the run that this task belongs to; tools run in tasks of it."""


class ContextFilter:
    """Made by `context_filter`; shared freely by agents and runs.

    Attributes:
        model: the model that was named; None for the agent's.
    """

    def __init__(
        self,
        *,
        model: str | None,
        policy: str | Policy,
        budget: int | None,
        reserve_tokens: int | None,
        counter: AnyCounter | None,
        server_managed: bool | None,
        on_window: Callable[[Window], object] | None,
    ) -> None:
        self.model: Final = optional_text("model", model)
        if server_managed not in (True, False, None):
            message = f"server_managed must be a bool or None, not {name_of_type(server_managed)}"
            raise invalid(message)
        if on_window is not None and not callable(on_window):
            message = f"on_window must be a function, not {name_of_type(on_window)}"
            raise invalid(message)
        self._policy: Final = policy
        self._budget: Final = Budget(budget, reserve_tokens)
        self._counter: Final = counter
        self._server_managed: Final = server_managed
        self._on_window: Final = on_window
        self._assemblers: Final[dict[str, Assembler]] = {}
        # What is wrong with the settings is said here, not in the middle of a run.
        self._assembler(self.model if self.model is not None else "gpt-5")

    def __repr__(self) -> str:
        return f"ContextFilter(model={self.model!r})"

    async def __call__(self, data: Any) -> Any:
        """The input of the next call, from the SDK's ``CallModelData``.

        Raises:
            BudgetError: ``over_budget`` with index, size and limit, if what must stay does not fit.
            InputError: ``unknown_model``; as `satchel.Assembler.assemble`.
        """
        model_data = data.model_data
        given: list[Any] = list(model_data.input)
        if self._is_delta(given):
            return model_data
        name = self.model if self.model is not None else model_of(data.agent)
        assembler = self._assembler(name)
        tools = await definitions(data.agent, data.context)
        # Without a word about it, the provider stores.
        key = name, getattr(data.agent.model_settings, "store", None) is not False
        conversation = self._conversation(key, given)
        if conversation is None:
            conversation = _Conversation(
                key, assembler.working_set(system=model_data.instructions, tools=tools)
            )
        conversation.is_busy = True
        # Forgotten first: one that failed half-way is not carried on.
        _NEWEST.set(None)
        window = await asyncio.to_thread(
            _next_window, conversation, given, model_data.instructions, tools
        )
        conversation.is_busy = False
        _NEWEST.set((self, conversation))
        if self._on_window is not None:
            self._on_window(window)
        return dataclasses.replace(model_data, input=window.messages)

    def page_tool(self) -> Any:
        """The ``page_in`` tool for ``Agent(tools=[...])``: reads what a window only points to.

        It reads pages of the run that calls it and of no other. What was paged out of a window of a
        nested run (an agent as a tool) is read by the agents of that run.

        Raises:
            ImportError: the SDK is not installed; the message names the extra.
        """
        try:
            from agents import FunctionTool  # noqa: PLC0415 - an optional package
        except ImportError as error:
            message = (
                "the page-in tool needs openai-agents: install satchel with the extra openai-agents"
            )
            raise ImportError(message, name="agents") from error
        tool = page_tool(DIALECT)

        async def read(context: Any, arguments: str) -> str:
            newest = _NEWEST.get()
            if newest is None or newest[0] is not self:
                return f"{PAGE_TOOL_NAME} failed: nothing was moved out of this conversation"
            call = {
                "type": "function_call",
                "call_id": getattr(context, "tool_call_id", "page"),
                "name": PAGE_TOOL_NAME,
                "arguments": arguments,
            }
            result = newest[1].working_set.handle_page_call(call)
            return cast("str", result["output"])

        return FunctionTool(
            name=tool["name"],
            description=tool["description"],
            params_json_schema=tool["parameters"],
            on_invoke_tool=read,
            strict_json_schema=False,
        )

    def _is_delta(self, given: Sequence[Any]) -> bool:
        if self._server_managed is not None:
            return self._server_managed
        return is_delta(given)

    def _assembler(self, model: str) -> Assembler:
        found = self._assemblers.get(model)
        if found is None:
            found = self._assemblers[model] = Assembler(
                model,
                budget=self._budget,
                policy=self._policy,
                counter=self._counter,
                dialect=DIALECT,
            )
        return found

    def _conversation(self, key: tuple[str, bool], given: Sequence[Any]) -> _Conversation | None:
        """That of the call before, if this one carries it on."""
        newest = _NEWEST.get()
        if newest is None or newest[0] is not self:
            return None
        found = newest[1]
        return found if found.is_continued_by(key, given) else None


def _next_window(
    conversation: _Conversation, given: Sequence[Any], instructions: object, tools: Sequence[Any]
) -> Window:
    """The window over the given items; those that it did not see yet are appended."""
    working_set = conversation.working_set
    # Copies: whoever changes an item later must not change what was packed.
    fresh = [copy.deepcopy(item) for item in given[len(conversation.items) :]]
    conversation.items += fresh
    sendable = [conversation.replay.sendable(item) for item in fresh]
    working_set.append([item for item in sendable if item is not None])
    # Calls that nobody answered yet are not the filter's to refuse: they get a marked placeholder.
    window = working_set.window(system=instructions, tools=tools, open_calls="synthesize")
    own = {id(seen): item for seen, item in zip(conversation.items, given, strict=True)}
    messages = [own.get(id(message), message) for message in window.messages]
    return dataclasses.replace(window, messages=messages)
