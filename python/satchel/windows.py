"""Windows, budgets, scores and pruning: one call each, on plain lists of messages.

Messages are dicts of any dialect. These functions never fail on what
a message holds: one that cannot be read counts as a plain message whose text is its JSON. They
change nothing in place and return the caller's own objects. They promise neither a request that
its provider accepts nor one that fits; `satchel.Assembler` does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, SupportsFloat, TypeVar, cast

from satchel import _core
from satchel._arguments import (
    fraction,
    invalid,
    listed,
    name_of_type,
    optional_text,
    plain_text,
    plain_texts,
    shown,
    whole_number,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from satchel.counting import AnyCounter
    from satchel.models import Model

__all__ = [
    "TokenBudget",
    "allocate_budget",
    "prune_tool_outputs",
    "score_messages",
    "sliding_window",
    "token_window",
]

_MessageT = TypeVar("_MessageT")


_DEFAULT_ENCODING: Final = "o200k_base"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBudget:
    """Tokens of the sections of a request.

    Attributes:
        system_prompt: tokens of the system prompt.
        memory_summary: tokens of the running summary.
        retrieved_context: tokens of retrieved documents and memories.
        recent_messages: tokens of the newest messages.
        output_reserve: tokens kept free for the reply.
        total: what was divided; the sections may leave a few tokens of it over.
    """

    system_prompt: int
    memory_summary: int
    retrieved_context: int
    recent_messages: int
    output_reserve: int
    total: int


def allocate_budget(total_tokens: int, *, shares: Mapping[str, float] | None = None) -> TokenBudget:
    """Divide a total of tokens among the sections of a request.

    Each section is ``floor(total_tokens * share)`` of a float64 product.

    Args:
        total_tokens: tokens to divide, 0 to 2**53.
        shares: shares that replace the default ones, by section: ``system_prompt`` .10,
            ``memory_summary`` .10, ``retrieved_context`` .20, ``recent_messages`` .35,
            ``output_reserve`` .25. All five together are at most 1.

    Returns:
        The tokens of each section.

    Raises:
        InputError: ``invalid_value`` for a negative total, an unknown section, a share that is
            negative or not finite, or shares that sum to more than 1.

    Example:
        >>> import satchel
        >>> satchel.allocate_budget(180).recent_messages
        62
        >>> satchel.allocate_budget(1000, shares={"output_reserve": 0.2}).output_reserve
        200
    """
    total = whole_number("total_tokens", total_tokens)
    named = [] if shares is None else _numbers("shares", shares)
    system_prompt, memory_summary, retrieved, recent, reserve = _core.allocate_budget(total, named)
    return TokenBudget(
        system_prompt=system_prompt,
        memory_summary=memory_summary,
        retrieved_context=retrieved,
        recent_messages=recent,
        output_reserve=reserve,
        total=total,
    )


def sliding_window(
    messages: Iterable[_MessageT], max_messages: int, *, dialect: str | None = None
) -> list[_MessageT]:
    """All system and developer messages, then the newest of the others.

    Steps stay whole: an assistant message with calls and the results right after it are kept
    together or not at all, so a window may hold fewer than ``max_messages``. Results at the cut
    whose calls are not in the window are left out.

    Args:
        messages: the history, oldest first.
        max_messages: most messages to keep besides the system messages; 0 keeps none.
        dialect: the messages' dialect; None recognises calls and results of all.

    Returns:
        A new list of the same objects; each of its two parts is in the order of the history.

    Raises:
        InputError: ``invalid_value`` if ``max_messages`` is negative or no integer, or
            ``messages`` no list of messages; ``unknown_dialect``.

    Example:
        >>> import satchel
        >>> history = [{"role": role, "content": role} for role in ("user", "system", "assistant")]
        >>> [message["role"] for message in satchel.sliding_window(history, 1)]
        ['system', 'assistant']
    """
    limit = whole_number("max_messages", max_messages)
    return _core.sliding_window(
        listed("messages", messages), limit, dialect=optional_text("dialect", dialect)
    )


def token_window(
    messages: Iterable[_MessageT],
    max_tokens: int,
    *,
    model: str | None = None,
    counter: AnyCounter | None = None,
    dialect: str | None = None,
) -> list[_MessageT]:
    """All system and developer messages, then the newest of the others that fit.

    What the system messages leave of ``max_tokens`` is filled from the newest message back, up to
    the first step that does not fit; nothing older is tried. Steps stay whole, as in
    `sliding_window`. System messages are kept even where they alone exceed the limit.

    Counting goes from the newest message back too and stops with the window: the cost is that of
    the window, not of the history.

    Args:
        messages: the history, oldest first.
        max_tokens: tokens of the whole window, system messages included.
        model: count each message as this model is billed for it, with role, calls and overhead.
        counter: count the content text (string content, text blocks and the text of results) with
            this counter; together with ``model``, the counter for that model's formula. By default
            content text in ``o200k_base``.
        dialect: the messages' dialect; None recognises calls and results of all.

    Returns:
        A new list of the same objects; each of its two parts is in the order of the history.

    Raises:
        InputError: ``invalid_value`` if ``max_tokens`` is negative or no integer, or ``messages``
            no list of messages; ``unknown_dialect``, ``unknown_model``, ``unknown_encoding``;
            ``counter_failed`` if a counter of the caller's own fails.

    Example:
        >>> import satchel
        >>> history = [{"role": "user", "content": text} for text in ("one two three", "four", "")]
        >>> satchel.token_window(history, 2) == history[1:]
        True
    """
    limit = whole_number("max_tokens", max_tokens)
    figures = _model(model)
    return _core.token_window(
        listed("messages", messages),
        limit,
        counter=_counter(figures, counter),
        dialect=optional_text("dialect", dialect),
        model_dialect=None if figures is None else figures.dialect,
    )


def score_messages(
    messages: Iterable[object],
    *,
    weights: Literal["keywords"] | Mapping[str, float] | None = None,
    query: str | None = None,
    model: str | None = None,
    counter: AnyCounter | None = None,
) -> NDArray[np.float32]:
    """How much each message matters for the next call.

    The default is a weighted sum of features from 0 to 1, clamped to 0..1:

    ==============  =======  ==================================================================
    ``recency``         .25  position, ``(i + 1) / n``
    ``role``            .25  instructions 1, user .8, assistant .5, tool .3
    ``references``      .20  ``k / (k + 2)`` for ``k`` identifiers (paths, ids, symbols, numbers
                             of three digits or more) that later messages or calls hold again
    ``decision``        .15  a user, system or assistant message speaks of a decision (English,
                             Korean)
    ``constraint``      .15  a user or system message speaks of what must, must not or is
                             important
    ``error``           .10  a tool reports a failure
    ``code``            .05  a code fence, or the word for code in Korean
    ``query``           .30  the share of the query's terms in the text, rare terms weighing more
    ``brief``          -.20  fewer than 10 tokens and nothing of the above
    ==============  =======  ==================================================================

    ``weights="keywords"`` is the founding documents' importance score instead, with ``i`` from 0:
    ``.3 * i / n + .2 * role`` (system 1, user .8, all others .5), ``+ .15`` if the text holds 결정
    or 확정, ``+ .10`` for 중요 or 반드시, ``+ .10`` for 코드 or a code fence, ``- .15`` below 10
    tokens, ``+ .05`` above 100; ``query`` plays no part.

    Args:
        messages: the history, oldest first.
        weights: None, ``"keywords"``, or weights that replace the default ones by name.
        query: what the next call is about.
        model: count the content text with this model's encoding.
        counter: count the content text with this counter; by default ``o200k_base``.

    Returns:
        Scores of shape ``(len(messages),)``, float32, 0 to 1.

    Raises:
        InputError: ``invalid_value`` for an unknown weight or one that is not finite, or if
            ``messages`` is no list of messages; ``unknown_model``, ``unknown_encoding``;
            ``counter_failed``.

    Example:
        >>> import satchel
        >>> history = [
        ...     {"role": "user", "content": "Never book above 90 EUR. The booking is BK-20771."},
        ...     {"role": "user", "content": "ok"},
        ...     {"role": "assistant", "content": "BK-20771 is at 84 EUR."},
        ... ]
        >>> int(satchel.score_messages(history).argmin())
        1
    """
    history: list[object] = listed("messages", messages)
    return _core.score_messages(
        history,
        weights=_weights(weights),
        query=optional_text("query", query),
        counter=_counter(_model(model), counter),
    )


def prune_tool_outputs(
    messages: Iterable[_MessageT],
    *,
    max_chars: int = 150,
    keep_last: int = 3,
    strip: Sequence[str] = (),
) -> list[_MessageT]:
    """Cut old, long tool outputs to their first characters and a note of the full length.

    A tool message (or a ``tool_result`` block of a user message) that stands more than
    ``keep_last`` places from the end of the list and is longer than ``max_chars`` keeps its first
    ``max_chars`` characters; id, name and everything else stay. The text blocks of a list content
    are cut as one text, images stay. What a call of `satchel.page_tool` read back is never cut: the
    model would have to read it again. Pruning again changes nothing; with a smaller ``max_chars``
    it cuts further and the note keeps the length of the original.

    Args:
        messages: the history, oldest first.
        max_chars: characters (code points) to keep, 0 or more.
        keep_last: how many of the last messages are never touched, 0 or more.
        strip: names of JSON object keys. In those same old outputs, where the text is a JSON object
            or array, they are removed at any depth before its length is looked at; the rest is
            written as compact JSON. Of a key that occurs twice in one object the last value stays.

    Returns:
        A new list: shallow copies of the messages that changed, the same objects otherwise.

    Raises:
        InputError: ``invalid_value`` if a number is negative or no integer, ``strip`` no sequence
            of strings, or ``messages`` no list of messages.

    Example:
        >>> import satchel
        >>> output = {"role": "tool", "tool_call_id": "a", "content": "0123456789"}
        >>> print(satchel.prune_tool_outputs([output], max_chars=4, keep_last=0)[0]["content"])
        0123
        [tool output pruned: first 4 of 10 characters kept]
    """
    history = listed("messages", messages)
    limit, last = whole_number("max_chars", max_chars), whole_number("keep_last", keep_last)
    names = plain_texts("strip", strip)
    return _core.prune_tool_outputs(history, max_chars=limit, keep_last=last, strip=names)


def _weights(weights: object) -> list[tuple[str, float]] | None:
    """The weights that replace default ones; None for the keyword formula."""
    if weights is None:
        return []
    if isinstance(weights, str):
        if weights == "keywords":
            return None
        message = f"weights is {shown(weights)}, the only named set is 'keywords'"
        raise invalid(message)
    return _numbers("weights", weights)


def _counter(model: Model | None, counter: AnyCounter | None) -> _core.Counter:
    """The native counter that the options name: the caller's before the model's."""
    if counter is not None:
        return counter if isinstance(counter, _core.Counter) else _core.Counter(counter)
    if model is not None:
        return _core.Counter(model.encoding, exact=model.exact, margin=model.margin)
    return _core.Counter(_DEFAULT_ENCODING)


def _model(name: str | None) -> Model | None:
    """The figures of the model, if one is named."""
    named = optional_text("model", name)
    if named is None:
        return None
    # Here, because the registry is a file to parse and most calls name no model.
    from satchel import models  # noqa: PLC0415 - as above

    return models.get(named)


def _numbers(name: str, values: object) -> list[tuple[str, float]]:
    """The pairs of a mapping from names to numbers."""
    if not isinstance(values, Mapping):
        message = f"{name} must be a mapping from names to numbers, not {name_of_type(values)}"
        raise invalid(message)
    return [
        (plain_text(f"a key of {name}", key), _number(f"{name}[{shown(key)}]", value))
        for key, value in cast("Mapping[object, object]", values).items()
    ]


def _number(name: str, value: object) -> float:
    """A number, also one of numpy's; not NaN."""
    if isinstance(value, SupportsFloat) and not isinstance(value, bool | str | bytes | int | float):
        value = float(value)
    number = fraction(name, value)
    if math.isnan(number):
        message = f"{name} is nan, which is no number"
        raise invalid(message)
    return number
