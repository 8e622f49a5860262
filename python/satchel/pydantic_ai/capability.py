"""The capability: packs what each request of an agent gets."""

from __future__ import annotations

import asyncio
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import repair_messages
from pydantic_ai.tools import RunContext, Tool
from pydantic_ai.toolsets import FunctionToolset

from satchel._arguments import invalid, name_of_type, optional_text
from satchel.paging import PAGE_TOOL_NAME, page_tool
from satchel.pydantic_ai.packing import Packer, Settings, is_packable, named_model, packed
from satchel.pydantic_ai.request import definitions, instructions_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import ModelRequestContext

    from satchel.counting import AnyCounter
    from satchel.policy import Policy
    from satchel.window import Window

__all__ = ["ContextCapability"]

_KNOWS_ATTEMPTS = hasattr(AbstractCapability, "prepare_model_request")
"""Whether there is a hook that knows which model serves the request; from 2.68 on."""


@dataclass
class ContextCapability(AbstractCapability[Any]):
    """Packs the messages of every request, inside the tool loop too.

    The budget is that of the whole request: instructions, tools, the answer's schema and the
    reserve are taken off before the messages. Unless ``persist`` says so, only the request is
    packed: ``all_messages()`` and ``new_messages()`` have everything.

    Attributes:
        model: the model's name for `satchel.models`; None for that of the model that serves the
            request.
        policy: as for `satchel.Assembler`.
        budget: input tokens of the request; None for the model's window less the reserve.
        reserve_tokens: tokens kept for the answer, as for `satchel.Budget`.
        counter: as for `satchel.Assembler`.
        persist: whether the history itself becomes the window. What the window leaves out can then
            be read within the run only.
        with_page_tool: whether the agent gets the ``page_in`` tool, which reads what a window only
            points to.
        on_window: called with each `satchel.Window`; for figures. Its messages are drafts, not
            pydantic-ai's.

    Raises:
        InputError: ``unknown_model``, ``unknown_policy``, ``invalid_value``.
    """

    _: KW_ONLY
    model: str | None = None
    policy: str | Policy = "adaptive"
    budget: int | None = None
    reserve_tokens: int | None = None
    counter: AnyCounter | None = None
    persist: bool = False
    with_page_tool: bool = True
    on_window: Callable[[Window], object] | None = None
    _packer: Packer = field(init=False, repr=False, compare=False)

    fits_attempts: ClassVar[bool] = _KNOWS_ATTEMPTS
    """Whether requests are packed for the model that serves each attempt."""

    def __post_init__(self) -> None:
        optional_text("model", self.model)
        for name in ("persist", "with_page_tool"):
            if not isinstance(cast("object", getattr(self, name)), bool):
                message = f"{name} must be a bool, not {name_of_type(getattr(self, name))}"
                raise invalid(message)
        if self.on_window is not None and not callable(self.on_window):
            message = f"on_window must be a function, not {name_of_type(self.on_window)}"
            raise invalid(message)
        self._packer = Packer(
            Settings(
                model=self.model,
                policy=self.policy,
                budget=self.budget,
                reserve_tokens=self.reserve_tokens,
                counter=self.counter,
                on_window=self.on_window,
            )
        )

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Its name in an agent's specification."""
        return "SatchelContext"

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Packs the history once per step: to keep it, or where no later hook knows the model.

        Raises:
            BudgetError: ``over_budget``, if what must stay does not fit.
            InputError: ``unknown_model``.
        """
        if self.fits_attempts and not self.persist:
            return request_context
        messages = await self._window(ctx, request_context)
        if self.persist:
            ctx.messages[:] = messages
        return replace(request_context, messages=messages)

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Packs the messages of one attempt, for the model that serves it.

        Raises:
            BudgetError: ``over_budget``, if what must stay does not fit.
            InputError: ``unknown_model``.
        """
        if self.persist:
            return request_context
        return replace(request_context, messages=await self._window(ctx, request_context))

    def get_toolset(self) -> FunctionToolset[Any] | None:
        """The ``page_in`` tool, unless ``with_page_tool`` says no."""
        if not self.with_page_tool:
            return None
        definition = page_tool("openai")["function"]

        async def read(ctx: RunContext[Any], **arguments: Any) -> str:
            conversation = self._packer.of_run(ctx.run_id)
            if conversation is None:
                return f"{PAGE_TOOL_NAME} failed: nothing was moved out of this conversation"
            return conversation.page(arguments)

        tool = Tool[Any].from_schema(
            read,
            name=definition["name"],
            description=definition["description"],
            json_schema=definition["parameters"],
            takes_ctx=True,
        )
        return FunctionToolset[Any]([tool])

    async def _window(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> list[ModelMessage]:
        parameters = request_context.model_request_parameters
        return await next_messages(
            self._packer,
            list(request_context.messages),
            run_id=ctx.run_id,
            model=self.model or named_model(request_context.model),
            system=instructions_of(parameters, request_context.messages),
            tools=definitions(parameters),
        )


async def next_messages(
    packer: Packer,
    messages: list[ModelMessage],
    *,
    run_id: str | None,
    model: str,
    system: str | None,
    tools: list[dict[str, Any]],
) -> list[ModelMessage]:
    """The messages of the next request; packed in a thread, and begun anew after an error."""
    if not is_packable(messages):
        return messages
    valid = repair_messages(messages, repair_last_response=False)
    conversation = packer.conversation(run_id, model, valid)
    conversation.is_busy = True
    try:
        found, window = await asyncio.to_thread(packed, conversation, valid, system, tools)
    except BaseException:
        packer.forget(run_id, model)
        raise
    conversation.is_busy = False
    if packer.settings.on_window is not None:
        packer.settings.on_window(window)
    return found
