"""What a provider would reject in a request, found before it is sent.

The rules have stable codes; ``RULES`` is the catalogue. Linting never raises on messages: one that
cannot be read is a finding too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, cast

from satchel import _core, models
from satchel._arguments import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from satchel.window import Window

__all__ = ["RULES", "Rule", "Violation", "lint"]

Severity = Literal["error", "warning"]

_TRAITS: Final[Mapping[str, str]] = {
    "prefix_bound_reasoning": "prefix_bound",
    "no_prefill": "no_prefill",
    "reasoning_with_calls": "reasoning_with_calls",
    "signed_calls": "signed_calls",
}
"""What the checks ask about a model, and the field of `satchel.models.Model` that says it."""


class Rule(NamedTuple):
    """One rule of the catalogue.

    Attributes:
        code: stable ``snake_case`` name.
        id: the rule's id among the provider rules, or ``""``.
        severity: ``"error"`` if the provider rejects the request, ``"warning"`` if it accepts it
            and it is still wrong.
        sentence: what the rule asks for.
        provider_error: a piece of the provider's error text, to be matched without regard to
            case, or ``""`` where it accepts the request or the text is not known.
    """

    code: str
    id: str
    severity: Severity
    sentence: str
    provider_error: str


RULES: tuple[Rule, ...] = tuple(Rule(*row) for row in _core.lint_rules())


@dataclass(frozen=True, slots=True)
class Violation:
    """One finding.

    Attributes:
        code: the rule's stable code, such as ``"oc1_unanswered_call"``.
        severity: ``"error"`` or ``"warning"``.
        index: raw index of the message, or None for the ``system`` argument, the tools and the
            list itself.
        message: what is wrong, without any content of the conversation.
        provider_error: a piece of the provider's error text, or ``""``.
    """

    code: str
    severity: Severity
    index: int | None
    message: str
    provider_error: str

    def __str__(self) -> str:
        """As one line for people."""
        place = "" if self.index is None else f"message {self.index}: "
        return f"{self.severity} {self.code}: {place}{self.message}"


def traits_of(model: str | None) -> list[str]:
    """What a model asks of a request beside its dialect, by name; nothing for None."""
    if model is None:
        return []
    found = models.get(model)
    return [name for name, field in _TRAITS.items() if getattr(found, field, False)]


def lint(
    messages: Iterable[object],
    dialect: str,
    *,
    system: object = None,
    tools: object = None,
    model: str | None = None,
    previous: Window | Iterable[object] | None = None,
) -> list[Violation]:
    """What the provider would reject, and what it accepts although it is wrong.

    Pairing of calls and results is positional: an id may come again later in the history. A list
    without any message besides instructions is a beginning and no damage: ``no_messages`` is a
    warning, although most providers refuse such a request. Values that no JSON text can say (a
    number that is not finite, half a surrogate pair, bytes where the client takes none) are an
    error wherever in a message they are.

    Args:
        messages: the messages, as dicts or SDK objects.
        dialect: the message format, such as ``"openai"`` or ``"anthropic"``.
        system: the ``system`` argument of the request, if it has one.
        tools: the tool definitions of the request; calls of other tools are then a warning.
        model: the model the request is for; adds the rules that hold for some models only.
        previous: the window or the messages of the request before. Reasoning of it that is still
            there must be unchanged, and where the model binds it to what stood before it (without
            ``model``, that is assumed), so must everything before it. Of a window, the system
            prompt and the tools are compared as well.

    Returns:
        The findings in the order of the messages, those without a message first; empty if the
        request is valid.

    Raises:
        InputError: ``unknown_dialect``, ``unknown_model``, ``invalid_value`` for a ``previous``
            that is neither a window nor messages. Never because of the messages.

    Example:
        >>> lint([{"role": "tool", "tool_call_id": "a", "content": "42"}], "openai")[0].code
        'oc2_orphan_result'
    """
    plain_text("dialect", dialect)
    traits = traits_of(model)
    same_prompt = True
    if previous is not None:
        if model is None:
            traits = [*traits, "prefix_bound_reasoning"]
        before = getattr(previous, "messages", previous)
        if before is not previous:
            same_prompt = (getattr(previous, "system", None), getattr(previous, "tools", None)) == (
                system,
                tools,
            )
        previous = cast("Iterable[object]", before)
    rows = _core.lint_rows(
        messages,
        dialect,
        system=system,
        tools=tools,
        traits=traits,
        previous=previous,
        same_prompt=same_prompt,
    )
    return [Violation(*row) for row in rows]
