"""What a provider would reject in a request, found before it is sent.

The rules have stable codes; ``RULES`` is the catalogue. Linting never raises on messages: one that
cannot be read is a finding too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from satchel import _core

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RULES", "Rule", "Violation", "lint"]

Severity = Literal["error", "warning"]


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


def lint(
    messages: Iterable[object],
    dialect: str,
    *,
    system: object = None,
    tools: object = None,
    model: str | None = None,  # noqa: ARG001 - for rules that hold for some models only
    previous: Iterable[object] | None = None,  # noqa: ARG001 - for rules about what has changed
) -> list[Violation]:
    """What the provider would reject, and what it accepts although it is wrong.

    Pairing of calls and results is positional: an id may come again later in the history.

    Args:
        messages: the messages, as dicts or SDK objects.
        dialect: ``"openai"`` or ``"anthropic"``.
        system: the ``system`` argument of the request, if it has one.
        tools: the tool definitions of the request; calls of other tools are then a warning.
        model: the model the request is for. No rule of these two dialects asks for it yet.
        previous: the messages of the request before. No rule asks for them yet.

    Returns:
        The findings in the order of the messages, those without a message first; empty if the
        request is valid.

    Raises:
        InputError: ``unknown_dialect``. Never because of the messages.

    Example:
        >>> lint([{"role": "tool", "tool_call_id": "a", "content": "42"}], "openai")[0].code
        'oc2_orphan_result'
    """
    rows = _core.lint_rows(messages, dialect, system=system, tools=tools)
    return [Violation(*row) for row in rows]
