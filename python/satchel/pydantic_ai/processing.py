"""The history processor: the same windows, where a function of the history is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelMessage  # noqa: TC002 - read at run time, by pydantic-ai
from pydantic_ai.tools import RunContext  # noqa: TC002 - likewise

from satchel._arguments import invalid, name_of_type, optional_text
from satchel.pydantic_ai.capability import next_messages
from satchel.pydantic_ai.packing import Packer, Settings, named_model
from satchel.pydantic_ai.request import instructions_in

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from satchel.counting import AnyCounter
    from satchel.policy import Policy
    from satchel.window import Window

__all__ = ["history_processor"]


def history_processor(
    *,
    model: str | None = None,
    policy: str | Policy = "adaptive",
    budget: int | None = None,
    reserve_tokens: int | None = None,
    counter: AnyCounter | None = None,
    on_window: Callable[[Window], object] | None = None,
) -> Callable[[RunContext[Any], list[ModelMessage]], Awaitable[list[ModelMessage]]]:
    """For ``capabilities=[ProcessHistory(history_processor(...))]``.

    pydantic-ai makes what a processor returns the history itself: what a window leaves out is gone
    from ``all_messages()``. `ContextCapability` packs the request alone, counts tools too, and
    brings the page-in tool; prefer it where you can.

    Args:
        model: as for `ContextCapability`.
        policy: as for `satchel.Assembler`.
        budget: input tokens of instructions and messages; a processor does not see the tools.
        reserve_tokens: tokens kept for the answer, as for `satchel.Budget`.
        counter: as for `satchel.Assembler`.
        on_window: as for `ContextCapability`.

    Returns:
        An async function of the run's context and the messages.

    Raises:
        InputError: ``unknown_model``, ``unknown_policy``, ``invalid_value``.
    """
    optional_text("model", model)
    if on_window is not None and not callable(on_window):
        message = f"on_window must be a function, not {name_of_type(on_window)}"
        raise invalid(message)
    packer = Packer(
        Settings(
            model=model,
            policy=policy,
            budget=budget,
            reserve_tokens=reserve_tokens,
            counter=counter,
            on_window=on_window,
        )
    )

    async def process(ctx: RunContext[Any], messages: list[ModelMessage]) -> list[ModelMessage]:
        return await next_messages(
            packer,
            messages,
            run_id=ctx.run_id,
            model=model or named_model(ctx.model),
            system=instructions_in(messages),
            tools=[],
        )

    return process
