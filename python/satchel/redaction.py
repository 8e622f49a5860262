"""Personal data and secrets in texts, found by form and replaced by typed placeholders.

A value is found by prefix, length, alphabet and check digits, or by the name it is given; no model,
no network, time linear in the text. The same value has the same placeholder within one text. The
originals are kept only where the caller asks for it, and no ``repr`` shows content.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, cast, get_args

from satchel import _core
from satchel._arguments import invalid, name_of_type, one_of, plain_texts

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Group", "Kind", "Redacted", "Span", "redact", "redact_many"]

Kind: TypeAlias = Literal[
    "private_key",
    "jwt",
    "api_key",
    "connection_string",
    "bearer_token",
    "password",
    "resident_number",
    "card",
    "iban",
    "email",
    "phone",
]
"""What a value is."""

Group: TypeAlias = Literal["personal", "secrets"]
"""Several kinds: ``"secrets"`` are those down to ``"password"``, ``"personal"`` the others."""

_ALL: Final = (*get_args(Group), *get_args(Kind))
_PLACEHOLDER: Final = re.compile(r"\[[A-Z_]{3,17}_[0-9]{1,10}\]")


class Span(NamedTuple):
    """Where a value was: characters (code points) ``start`` to ``end`` of the original."""

    kind: Kind
    start: int
    end: int


@dataclass(frozen=True, slots=True, repr=False)
class Redacted:
    """A text without its values.

    Attributes:
        text: with a placeholder such as ``[EMAIL_1]`` for each value. Numbers that the original
            writes in such brackets itself are not given.
        spans: where the values were in the original, in order, without overlap.
    """

    text: str
    spans: tuple[Span, ...]
    _originals: dict[str, str] | None = field(default=None, compare=False)

    def restore(self, text: str | None = None) -> str:
        """Put the values back.

        Args:
            text: a text with placeholders of this one, such as a model's answer; by default
                `text` itself. Placeholders of others stay.

        Returns:
            The original; of another text, that text with the values.

        Raises:
            InputError: ``invalid_value`` if ``keep_originals`` was not set, or ``text`` is no str.
        """
        originals = self._originals
        if originals is None:
            message = "the originals were not kept: redact with keep_originals=True"
            raise invalid(message)
        if text is not None and not isinstance(cast("object", text), str):
            message = "text must be a str"
            raise invalid(message)
        source = self.text if text is None else text
        return _PLACEHOLDER.sub(lambda found: originals.get(found[0], found[0]), source)

    def __repr__(self) -> str:
        """How many values of each kind; no content."""
        counts = Counter(span.kind for span in self.spans)
        return f"Redacted({', '.join(f'{kind}: {count}' for kind, count in counts.items())})"


def redact(
    text: str,
    *,
    kinds: Iterable[Kind | Group] | None = None,
    keep_originals: bool = False,
) -> Redacted:
    """Replace personal data and secrets by placeholders.

    Args:
        text: any text; lone surrogates stay as they are.
        kinds: what to replace; by default everything.
        keep_originals: whether `Redacted.restore` can put the values back. The result then holds
            them in memory (and in a pickle).

    Returns:
        The text with placeholders, and where the values were.

    Raises:
        InputError: ``invalid_value`` for another type or an unknown kind.

    Example:
        >>> import satchel
        >>> redacted = satchel.redact("Mail kim@example.com or call 010-1234-5678.")
        >>> redacted.text
        'Mail [EMAIL_1] or call [PHONE_1].'
        >>> redacted
        Redacted(email: 1, phone: 1)
    """
    _check_flag(keep_originals)
    cleaned, rows = _core.redact_text(text, kinds=names_of(kinds))
    return _wrapped(text, cleaned, rows, keep_originals=keep_originals)


def redact_many(
    texts: Iterable[str],
    *,
    kinds: Iterable[Kind | Group] | None = None,
    keep_originals: bool = False,
) -> list[Redacted]:
    """Redact each text by itself, all in one native call.

    Args:
        texts: the texts; numbers of placeholders start anew in each.
        kinds: as in `redact`.
        keep_originals: as in `redact`.

    Returns:
        One result for each text, equal to that of `redact`.

    Raises:
        InputError: as `redact`.
    """
    _check_flag(keep_originals)
    if isinstance(texts, str):
        message = "texts must be an iterable of str, not a str"
        raise invalid(message)
    try:
        originals = list(texts)
    except TypeError as error:
        message = f"texts must be an iterable of str, not {name_of_type(texts)}"
        raise invalid(message) from error
    return [
        _wrapped(text, cleaned, rows, keep_originals=keep_originals)
        for text, (cleaned, rows) in zip(
            originals, _core.redact_texts(originals, kinds=names_of(kinds)), strict=True
        )
    ]


def _check_flag(keep_originals: object) -> None:
    """Refuses what only looks true: originals are kept by an explicit True alone."""
    if not isinstance(keep_originals, bool):
        message = f"keep_originals must be a bool, not {name_of_type(keep_originals)}"
        raise invalid(message)


def names_of(kinds: Iterable[str] | None) -> list[str]:
    """The names of kinds, checked; None stands for all."""
    if kinds is None:
        return list(get_args(Group))
    return [one_of("kinds", kind, _ALL) for kind in plain_texts("kinds", kinds)]


def _wrapped(
    text: str, cleaned: str, rows: list[tuple[str, int, int, int]], *, keep_originals: bool
) -> Redacted:
    spans = tuple(Span(cast("Kind", kind), start, end) for kind, start, end, _ in rows)
    originals = (
        {
            _core.redaction_placeholder(kind, number): text[start:end]
            for kind, start, end, number in rows
        }
        if keep_originals
        else None
    )
    return Redacted(cleaned, spans, originals)
