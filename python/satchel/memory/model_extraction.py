"""Extraction by a model: asked in the language of the conversation, its answer checked in full."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from satchel._arguments import invalid, name_of_type, plain_text
from satchel.errors import ExtractionError, InputError, SatchelError
from satchel.memory.extraction_prompts import instructions, request_text
from satchel.memory.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from satchel.memory.extraction_prompts import Language
    from satchel.memory.findings import Said

__all__ = ["Completion", "ModelExtractor", "litellm_completion", "openai_completion"]

Completion = Callable[[str, str], Awaitable[str]]
"""A coroutine function: instructions, request -> the model's text."""

_MOST_FINDINGS: Final = 64


class _Item(BaseModel):
    """One finding, as the model writes it."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True)

    text: Annotated[str, Field(min_length=1, max_length=500)]
    quote: Annotated[str, Field(min_length=1, max_length=500)]
    message: Annotated[int, Field(ge=0)]
    confidence: Annotated[float, Field(ge=0.0, le=1.0)]
    kind: Literal["episodic", "semantic", "procedural"] = "semantic"
    key: Annotated[str, Field(min_length=1, max_length=80)] | None = None


class _Reply(BaseModel):
    """The model's whole answer."""

    model_config = ConfigDict(extra="ignore")

    items: Annotated[list[_Item], Field(max_length=_MOST_FINDINGS)]


class ModelExtractor:
    """Asks a model what is worth keeping.

    What it finds is a claim, however sure the model is: see `satchel.memory.extraction`.

    Args:
        complete: asks the model; see `openai_completion` and `litellm_completion`.
        name: what the source of an item calls it.
        language: of the instructions; None for that of what was said.
    """

    def __init__(
        self, complete: Completion, *, name: str = "model", language: Language | None = None
    ) -> None:
        if not callable(complete):
            message = f"complete must be a coroutine function, not {name_of_type(complete)}"
            raise invalid(message)
        self._complete: Final = complete
        self._name: Final = plain_text("name", name)
        self._language: Final[Language | None] = language

    @property
    def name(self) -> str:
        """What the source of an item calls it."""
        return self._name

    async def extract(self, said: Sequence[Said], /) -> list[Finding]:
        """See `Extractor.extract`.

        Raises:
            ExtractionError: ``extraction_failed`` if the model fails or its answer is not what was
                asked for; ``extraction_unavailable`` where trying again may help.
        """
        if not said:
            return []
        prompt = instructions(said, self._language)
        try:
            answer = await self._complete(prompt, request_text(said))
        except SatchelError:
            raise
        except Exception as error:
            message = f"the model behind {self._name!r} failed: {name_of_type(error)}"
            raise ExtractionError(message, code="extraction_failed") from error
        spoken = {one.index: one for one in said}
        return [
            Finding(
                text=one.text,
                quote=one.quote,
                message=one.message,
                confidence=one.confidence,
                kind=one.kind,
                key=one.key,
                speaker=spoken[one.message].role,
                time=spoken[one.message].time,
            )
            for one in _parsed(answer)
            if one.message in spoken
        ]


def openai_completion(model: str, client: Any, **options: Any) -> Completion:  # noqa: ANN401 - an optional package's client
    """Asks an ``openai.AsyncOpenAI`` client, or anything that speaks its format.

    Args:
        model: the model's name.
        client: the client.
        options: further arguments of the call.
    """

    async def complete(system: str, request: str) -> str:
        reply = await client.chat.completions.create(
            model=model,
            messages=[
                {"role": "system", "content": system},
                {"role": "user", "content": request},
            ],
            **options,
        )
        return str(reply.choices[0].message.content or "")

    return complete


def litellm_completion(model: str, **options: Any) -> Completion:  # noqa: ANN401 - litellm's own
    """Asks any model that the package ``litellm`` knows (extra ``litellm``).

    Raises:
        InputError: ``missing_extra`` without the package.
    """
    try:
        import litellm  # noqa: PLC0415 - an optional package
    except ImportError as error:
        message = "litellm is not installed: install satchel with the extra litellm"
        raise InputError(message, code="missing_extra") from error
    asked: Any = litellm

    async def complete(system: str, request: str) -> str:
        reply = await asked.acompletion(
            model=model,
            messages=[
                {"role": "system", "content": system},
                {"role": "user", "content": request},
            ],
            **options,
        )
        return str(reply.choices[0].message.content or "")

    return complete


def _parsed(answer: str) -> list[_Item]:
    """The items of an answer: a JSON object, bare or in a code fence.

    Raises:
        ExtractionError: ``extraction_failed``.
    """
    start, end = answer.find("{"), answer.rfind("}")
    try:
        return _Reply.model_validate(json.loads(answer[start : end + 1])).items
    except (ValueError, RecursionError, ValidationError) as error:
        message = f"the model's answer of {len(answer)} characters is not what was asked for"
        # What pydantic says quotes the answer, so it does not go along.
        raise ExtractionError(message, code="extraction_failed") from (
            None if isinstance(error, ValidationError) else error
        )
