"""A callback of litellm's that sends a window instead of the whole history.

Which of litellm's hooks sees which call (as of 1.110): ``async_pre_call_deployment_hook`` every
asynchronous call, after a router has chosen the deployment, with what was given by name;
``async_pre_call_hook`` what comes into the proxy, before that; ``async_pre_request_hook`` calls of
Anthropic's messages, of which it cannot exchange the messages. A call that does not wait
(``litellm.completion``) shows itself to none of them: `ContextCallback.completion` is there for it.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import threading
import warnings
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from satchel import models
from satchel._arguments import invalid, name_of_type, optional_text, whole_number
from satchel.assembler import Assembler, Budget
from satchel.counting import Counter
from satchel.counting import counter as counter_of
from satchel.errors import BudgetError, InputError
from satchel.litellm.conversations import Conversations
from satchel.policy import Policy

try:
    import litellm as _litellm
except ImportError as error:
    _MISSING = (
        "satchel.litellm.ContextCallback needs litellm: install satchel with the extra litellm"
    )
    raise ImportError(_MISSING, name="litellm") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.counting import AnyCounter
    from satchel.window import Window

    class _Logger:
        """The base class, whose types are not strict."""
else:
    from litellm.integrations.custom_logger import CustomLogger as _Logger

__all__ = ["ContextCallback"]

_CHAT: Final = frozenset({"completion", "acompletion"})
_RESPONSES: Final = frozenset({"responses", "aresponses"})
_MESSAGES: Final = frozenset({"anthropic_messages", "aanthropic_messages"})
_LIMITS: Final = ("max_completion_tokens", "max_tokens", "max_output_tokens")
_STAND_IN: Final = "gpt-4o"
"""Whose rules of framing hold for a model that nobody here knows."""

_ESTIMATE: Final = "scripts"
"""What its text is counted with: an upper estimate."""

_MOST_SETTINGS: Final = 64
"""Budgets differ by what a request asks for; those of the newest so many are kept."""


class _Request:
    """The parts of a call that make its window."""

    __slots__ = ("dialect", "key", "kwargs", "messages", "system", "tools")

    def __init__(self, kwargs: Mapping[str, Any], dialect: str, key: str, system: str) -> None:
        self.kwargs: Final = kwargs
        self.dialect: Final = dialect
        self.key: Final = key
        self.messages: Final = cast("Sequence[Any]", kwargs[key])
        self.system: Final[object] = kwargs.get(system) if system else None
        self.tools: Final = cast("Sequence[Any] | None", kwargs.get("tools") or None)


class ContextCallback(_Logger):
    """Packs the window of every call that litellm makes, in the SDK, its router and the proxy.

    Register it with ``litellm.callbacks = [ContextCallback(...)]``. Histories stay yours and are
    never changed: the request gets a list of its own, in which messages that need no change are the
    same objects. The budget is that of the whole request: system, tools, response format and the
    answer's reserve are taken off it. Work happens in threads, so the event loop goes on.

    Args:
        policy: a `Policy`, or the name of a preset.
        budget: input tokens of a request; None for the model's window less the reserve.
        reserve_tokens: tokens kept for the answer, or what the request asks for, if that is more;
            None for that, or else the model's output limit. Not with ``budget``.
        model: the name in `satchel.models` whose figures hold for all calls; None for the one that
            is called, by its own name or its deployment's ``base_model``. Of a model that satchel
            does not know, litellm's limits hold, and texts are counted by an upper estimate.
        counter: what counts; default: the model's own.
        on_window: called with each `Window`, for reports; what it raises ends the call.
        conversations: how many conversations are kept to take in only what is new of them.

    Raises:
        ImportError: without litellm.
        InputError: ``invalid_value``, ``unknown_model``.
    """

    def __init__(
        self,
        *,
        policy: str | Policy = "adaptive",
        budget: int | None = None,
        reserve_tokens: int | None = None,
        model: str | None = None,
        counter: AnyCounter | None = None,
        on_window: Callable[[Window], object] | None = None,
        conversations: int = 64,
    ) -> None:
        super().__init__()
        # Both checked here, so that a call does not find a mistake of the program.
        Budget(budget, reserve_tokens)
        found = Policy.preset(policy) if isinstance(policy, str) else policy
        if not isinstance(cast("object", found), Policy):
            message = f"policy must be a preset's name or a Policy, not {name_of_type(policy)}"
            raise invalid(message)
        if found.server:
            message = f"policy {found.name} leaves edits to the provider, which this cannot ask for"
            raise invalid(message)
        if on_window is not None and not callable(on_window):
            message = f"on_window must be a function, not {name_of_type(on_window)}"
            raise invalid(message)
        if optional_text("model", model) is not None:
            models.get(cast("str", model))
        self._counter: Final = (
            counter if counter is None or isinstance(counter, Counter) else Counter(counter)
        )
        self._policy: Final = found
        self._budget: Final = budget
        self._reserve_tokens: Final = reserve_tokens
        self._model: Final = model
        self._on_window: Final = on_window
        most = whole_number("conversations", conversations, least=1)
        self._conversations: Final = Conversations(most)
        self._guard: Final = threading.Lock()
        self._assemblers: Final[OrderedDict[tuple[str, int, str], Assembler]] = OrderedDict()

    # --- what litellm calls -----------------------------------------------------------------------

    async def async_pre_call_deployment_hook(
        self,
        kwargs: dict[str, Any],
        call_type: object,
    ) -> dict[str, Any] | None:
        """The arguments with a window in them, before they go to a deployment.

        Raises:
            BudgetError: ``over_budget`` if what must stay does not fit.
            InputError: as in `Assembler.assemble`; ``unknown_model`` if nobody knows its limits.
        """
        kind = _name_of(call_type)
        if kind in _CHAT and "messages" not in kwargs:
            # litellm shows what is given by name only.
            warnings.warn(
                "messages given to litellm by position do not reach callbacks and are sent whole: "
                "give them by name, or call ContextCallback.acompletion",
                RuntimeWarning,
                stacklevel=2,
            )
        return await asyncio.to_thread(self._edited, kwargs, kind)

    async def async_pre_call_hook(
        self,
        user_api_key_dict: object,  # noqa: ARG002 - litellm's signature
        cache: object,  # noqa: ARG002 - likewise
        data: dict[str, Any],
        call_type: str,
    ) -> dict[str, Any] | None:
        """As `async_pre_call_deployment_hook`, for what comes into the proxy.

        There a model may be called by a name of the proxy's own. Such calls are left to the other
        hook, which knows what it stands for.
        """
        if self._known(data, str(data.get("model"))) is None:
            return None
        return await asyncio.to_thread(self._edited, data, _name_of(call_type))

    async def async_pre_request_hook(
        self, model: str, messages: list[Any], kwargs: dict[str, Any]
    ) -> dict[str, Any] | None:
        """Makes sure that a call of Anthropic's messages carries a window.

        Raises:
            InputError: ``invalid_value`` where it does not: the messages were given by position,
                so that they could not be exchanged.
        """
        given = {**kwargs, "model": model, "messages": messages}
        edited = await asyncio.to_thread(self._edited, given, "anthropic_messages")
        if edited is not None and edited["messages"] != messages:
            message = (
                "messages given to litellm by position cannot be exchanged for a window: "
                "give them by name"
            )
            raise invalid(message)
        return None

    # --- what a program calls ---------------------------------------------------------------------

    def completion(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - litellm's signature
        """``litellm.completion`` with a window; arguments by position too.

        Raises:
            BudgetError: as `async_pre_call_deployment_hook`; InputError too.
        """
        call = cast("Callable[..., Any]", cast("Any", _litellm).completion)
        given = _by_name(call, args, kwargs)
        return call(**(self._edited(given, "completion") or given))

    async def acompletion(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - likewise
        """``litellm.acompletion`` with a window, whether registered or not; likewise."""
        call = cast("Callable[..., Any]", cast("Any", _litellm).acompletion)
        given = _by_name(call, args, kwargs)
        if self not in cast("list[object]", cast("Any", _litellm).callbacks):
            edited = await asyncio.to_thread(self._edited, given, "acompletion")
            given = given if edited is None else edited
        return await call(**given)

    def window(self, kwargs: Mapping[str, Any], *, call_type: str = "completion") -> Window | None:
        """The window for a call with these arguments; None for calls that have none.

        Args:
            kwargs: the arguments of ``litellm.completion`` (or ``responses``, or
                ``anthropic.messages.create``) by name.
            call_type: what litellm calls it.

        Raises:
            BudgetError: as `async_pre_call_deployment_hook`; InputError too.
        """
        given: object = kwargs
        if not isinstance(given, Mapping):
            message = f"kwargs must be a mapping, not {name_of_type(given)}"
            raise invalid(message)
        kind = _name_of(call_type)
        if kind is None:
            message = f"call_type must be a name of litellm's, not {name_of_type(call_type)}"
            raise invalid(message)
        request = _request(kwargs, kind)
        if request is None:
            return None
        assembler = self._assembler(request)
        return self._conversations.window(
            assembler, request.messages, system=request.system, tools=request.tools
        )

    # --- inside -----------------------------------------------------------------------------------

    def _edited(self, kwargs: Mapping[str, Any], kind: str | None) -> dict[str, Any] | None:
        """A copy of the arguments with a window; None where there is nothing to change."""
        request = _request(kwargs, kind)
        window = self.window(kwargs, call_type=kind or "completion")
        if request is None or window is None:
            return None
        if self._on_window is not None:
            self._on_window(window)
        given, made = request.messages, window.messages
        is_same = len(given) == len(made) and all(map(_is, given, made))
        return None if is_same else {**kwargs, request.key: made}

    def _known(self, kwargs: Mapping[str, Any], model: str) -> str | None:
        """The name whose figures hold; None if satchel knows none."""
        info: object = kwargs.get("model_info")
        has_info = isinstance(info, Mapping)
        base: object = cast("Mapping[str, Any]", info).get("base_model") if has_info else None
        names = (base, kwargs.get("base_model"), model) if self._model is None else (self._model,)
        for name in names:
            if isinstance(name, str):
                try:
                    models.get(name)
                except InputError:
                    continue
                return name
        return None

    def _assembler(self, request: _Request) -> Assembler:
        """The settings for a request; the same object for the same settings."""
        kwargs = request.kwargs
        model = str(kwargs.get("model"))
        known = self._known(kwargs, model)
        counter = self._counter or counter_of(_ESTIMATE if known is None else known)
        budget = self._input_tokens(kwargs, known, model)
        formats = [kwargs.get("response_format"), kwargs.get("functions"), kwargs.get("text")]
        taken = sum(counter.count(_written(one)) for one in formats if one is not None)
        if taken >= budget:
            message = f"response format and functions have {taken} tokens, budget {budget}"
            raise BudgetError(message, code="over_budget", value=taken, limit=budget)
        settings = (known or _STAND_IN, budget - taken, request.dialect)
        key = (f"{settings[0]} {counter.name}", *settings[1:])
        with self._guard:
            found = self._assemblers.pop(key, None)
            if found is None:
                found = Assembler(
                    settings[0],
                    budget=settings[1],
                    policy=self._policy,
                    counter=counter if known is None or self._counter else None,
                    dialect=settings[2],
                )
            self._assemblers[key] = found
            while len(self._assemblers) > _MOST_SETTINGS:
                self._assemblers.popitem(last=False)
            return found

    def _input_tokens(self, kwargs: Mapping[str, Any], known: str | None, model: str) -> int:
        """The budget before what stands beside the messages is taken off."""
        if self._budget is not None:
            return self._budget
        asked = [kwargs.get(name) for name in _LIMITS]
        wanted = [one for one in (self._reserve_tokens, *asked) if isinstance(one, int)]
        reserve = max(wanted) if wanted else None
        if known is not None:
            return models.get(known).input_budget(reserve_tokens=reserve)
        limits = _limits_of(model, kwargs.get("custom_llm_provider"))
        if limits is None:
            message = (
                "neither satchel nor litellm knows the limits of the model: give budget= or model= "
                "to ContextCallback, or register it with satchel.models.register"
            )
            raise InputError(message, code="unknown_model")
        most, output = limits
        # What litellm calls the input's limit may be the whole window.
        return max(1, most - (min(output, most // 4) if reserve is None else reserve))


def _name_of(call_type: object) -> str | None:
    value: object = getattr(call_type, "value", call_type)
    return value if isinstance(value, str) else None


def _request(kwargs: Mapping[str, Any], kind: str | None) -> _Request | None:
    """What of a call is its history; None where there is none, or it is kept by the provider."""
    if kind in _CHAT and isinstance(kwargs.get("messages"), (list, tuple)):
        return _Request(kwargs, "openai", "messages", "")
    if kind in _MESSAGES and isinstance(kwargs.get("messages"), (list, tuple)):
        return _Request(kwargs, "anthropic", "messages", "system")
    is_kept = kwargs.get("previous_response_id") or kwargs.get("conversation")
    if kind in _RESPONSES and not is_kept and isinstance(kwargs.get("input"), (list, tuple)):
        return _Request(kwargs, "openai-responses", "input", "instructions")
    return None


def _limits_of(model: str, provider: object) -> tuple[int, int] | None:
    """Input and output tokens of a model, as litellm knows them."""
    try:
        info = cast("Any", _litellm).get_model_info(model, custom_llm_provider=provider)
    except Exception:  # noqa: BLE001 - it raises a plain Exception for a model it does not know
        return None
    most, output = info.get("max_input_tokens"), info.get("max_output_tokens")
    return (most, output or 0) if isinstance(most, int) and most > 0 else None


def _by_name(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """All arguments by name."""
    parameters = list(inspect.signature(function).parameters.values())
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [one.name for one in parameters if one.kind in kinds]
    if len(args) > len(names):
        message = f"{len(args)} arguments by position, litellm takes {len(names)}"
        raise invalid(message)
    given = dict(zip(names, args, strict=False))
    twice = sorted(given.keys() & kwargs.keys())
    if twice:
        message = f"{twice[0]} was given by position and by name"
        raise invalid(message)
    return {**given, **kwargs}


def _written(value: object) -> str:
    """What a format takes in a request: a class is its schema."""
    schema: object = getattr(value, "model_json_schema", None)
    if isinstance(value, type) and callable(schema):
        value = schema()
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"a response format of type {name_of_type(value)} cannot be written"
        raise invalid(message) from error


def _is(left: object, right: object) -> bool:
    return left is right
