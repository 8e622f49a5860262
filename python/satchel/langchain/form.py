"""The declarative form: without messages, a function becomes a step of a LangChain pipeline."""

from __future__ import annotations

from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, cast, overload

from satchel.langchain.peer import peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from langchain_core.messages import BaseMessage
    from langchain_core.prompt_values import PromptValue
    from langchain_core.runnables import Runnable

__all__ = ["runnable_form"]

_P = ParamSpec("_P")


class _Form(Protocol[_P]):
    """A function of messages that is a runnable where it gets none."""

    @property
    def __name__(self) -> str: ...

    @overload
    def __call__(
        self, messages: None = None, *args: _P.args, **kwargs: _P.kwargs
    ) -> Runnable[Any, list[BaseMessage]]: ...

    @overload
    def __call__(
        self, messages: Iterable[Any] | PromptValue, *args: _P.args, **kwargs: _P.kwargs
    ) -> list[BaseMessage]: ...


def runnable_form(
    function: Callable[Concatenate[Iterable[Any] | PromptValue, _P], list[BaseMessage]],
) -> _Form[_P]:
    """Adds the declarative form: nothing is checked before it is invoked."""

    @wraps(function)
    def form(messages: Any = None, *args: Any, **kwargs: Any) -> Any:
        if messages is None:
            return peer().runnable(partial(function, **kwargs), name=function.__name__)
        return function(messages, *args, **kwargs)

    return cast("_Form[_P]", form)
