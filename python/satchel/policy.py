"""How room is made in a window: settings that are data, and the presets by name."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

__all__ = ["Policy", "SalienceWeights"]

_Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False)]


class SalienceWeights(BaseModel):
    """How a step's salience is put together; each weight multiplies a figure from 0 to 1.

    Attributes:
        recency: newness, ``1 / (1 + age / half_life)`` with the age in steps.
        half_life: age in steps at which newness has fallen to one half.
        role: who speaks: user 1, assistant text 0.6, tool traffic 0.4.
        decision: a decision or a standing instruction in what user or assistant said.
        error: an error among the newest steps; an old one has usually been dealt with.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    recency: _Share = 0.5
    half_life: Annotated[float, Field(ge=0.01, le=1e9)] = 12.0
    role: _Share = 0.25
    decision: _Share = 0.15
    error: _Share = 0.1


class Policy(BaseModel):
    """Settings of the planner; immutable, compares by value.

    ``trigger``, ``target``, ``recent`` and ``newest`` are shares of the free part of the budget,
    which is the budget less what is pinned (system, tools, overhead, hard messages).

    Attributes:
        name: name of the preset, or your own.
        strategy: ``adaptive`` chooses a level for every step by salience per token;
            ``sliding-window`` keeps the newest ``max_messages`` messages, ``token-window`` the
            newest that fit. All three keep the hard parts and page out the rest.
        max_messages: most messages besides system messages; ``sliding-window`` only.
        trigger: share above which levels fall. 1.0, since the check runs before the call.
        target: share down to which they fall; a ceiling, not a quota.
        recent: share up to which the newest steps stay whole.
        newest: share up to which the newest step stays whole.
        trim_tokens: tokens to which a longer part is trimmed.
        stub_from_tokens: tokens from which a part is worth a stub.
        trimmed_value: what a trimmed step is worth beside the whole one.
        stub_value: what a stub is worth beside the whole step.
        salience: how salience is put together.

    Raises:
        pydantic.ValidationError: a ``ValueError``, for a setting out of range.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    name: str = "adaptive"
    strategy: Literal["adaptive", "sliding-window", "token-window"] = "adaptive"
    max_messages: Annotated[int, Field(ge=0, le=2**32 - 1)] | None = None
    trigger: Annotated[float, Field(ge=0.05, le=1.0, allow_inf_nan=False)] = 1.0
    target: _Share = 0.8
    recent: _Share = 0.3
    newest: _Share = 0.85
    trim_tokens: Annotated[int, Field(ge=16, le=1_000_000)] = 256
    stub_from_tokens: Annotated[int, Field(ge=0, le=1_000_000)] = 120
    trimmed_value: _Share = 0.7
    stub_value: _Share = 0.25
    salience: SalienceWeights = SalienceWeights()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.target > self.trigger:
            message = f"target is {self.target}, must be at most trigger ({self.trigger})"
            raise ValueError(message)
        if self.strategy == "sliding-window" and self.max_messages is None:
            message = "strategy sliding-window needs max_messages"
            raise ValueError(message)
        return self

    @classmethod
    def preset(cls, name: str) -> Policy:
        """The preset ``adaptive``, ``sliding-window`` (10 messages) or ``token-window``.

        Raises:
            InputError: ``invalid_value`` for any other name.
        """
        if name not in _PRESETS:
            message = f"no policy {name!r}; presets: {', '.join(_PRESETS)}"
            raise InputError(message, code="invalid_value")
        return cls.model_validate({"name": name, **_PRESETS[name]})

    @classmethod
    def from_toml(cls, source: str | PathLike[str]) -> Policy:
        """A policy from TOML text, or from a file if ``source`` is a path object.

        Raises:
            InputError: ``invalid_value`` for what is no TOML or no policy; the sentence names the
                setting.
            OSError: the file cannot be read.
        """
        try:
            if isinstance(source, str):
                settings = tomllib.loads(source)
            else:
                with open(source, "rb") as file:  # noqa: PTH123 - any os.PathLike, not only Path
                    settings = tomllib.load(file)
            return cls.model_validate(settings)
        except tomllib.TOMLDecodeError as error:
            message = f"the policy is no TOML: {error}"
            raise InputError(message, code="invalid_value") from error
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            place = ".".join(str(key) for key in first["loc"]) or "policy"
            message = f"policy {place}: {first['msg']}"
            raise InputError(message, code="invalid_value") from error

    def to_toml(self) -> str:
        """The policy as TOML text; ``from_toml`` reads it back to an equal policy."""
        settings = self.model_dump(exclude_none=True)
        salience = settings.pop("salience")
        lines = [f"{key} = {_toml(value)}" for key, value in settings.items()]
        lines += ["", "[salience]", *(f"{key} = {_toml(value)}" for key, value in salience.items())]
        return "\n".join(lines) + "\n"


_PRESETS: Final[Mapping[str, Mapping[str, object]]] = {
    "adaptive": {},
    "sliding-window": {"strategy": "sliding-window", "max_messages": 10},
    "token-window": {"strategy": "token-window"},
}


def _toml(value: str | float) -> str:
    # Every setting is a string or a number, whose JSON form is valid TOML as well.
    return json.dumps(value, ensure_ascii=False)
