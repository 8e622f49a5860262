"""Which counter counts for a model: exact where the vocabulary is public, an estimate elsewhere.

The counter of a model carries that model's rules (overheads, calls, tools, images, factors), so
that everything that counts with it counts alike. Its ``name`` is the model's, and `counter` finds
it again by that.
"""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, cast, runtime_checkable

from satchel._arguments import plain_text, shown
from satchel._core import Counter, MessageTokens
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from satchel.models import Model

__all__ = ["AnyCounter", "Counter", "CountsText", "MessageTokens", "TextEncoder", "counter"]


@runtime_checkable
class TextEncoder(Protocol):
    """What is needed of a tokenizer, such as ``tiktoken.Encoding``, to count with it."""

    @property
    def name(self) -> str:
        """Name of the encoding."""
        ...

    def encode_ordinary(self, text: str, /) -> Sequence[int]:
        """Token ids of ``text``; text that looks like a special token is ordinary text."""
        ...


@runtime_checkable
class BatchEncoder(Protocol):
    """A tokenizer that encodes a list of texts at once, such as ``tokenizers.Tokenizer``."""

    @property
    def encode_batch_fast(self) -> Callable[..., Sequence[object]]:
        """Takes the texts and ``add_special_tokens``; returns the encoding of each."""
        ...


class CountsText(Protocol):
    """A counter of the caller's own."""

    def count(self, text: str, /) -> int:
        """Tokens of ``text``."""
        ...


AnyCounter: TypeAlias = "str | TextEncoder | BatchEncoder | CountsText | Callable[[str], int]"
"""What counts: ours, the name of an encoding or estimator, a ``tiktoken.Encoding``, an object with
``count(text)``, or a callable ``text -> int``."""


def counter(
    model_or_encoding: str, *, tokenizer: str | os.PathLike[str] | TextEncoder | None = None
) -> Counter:
    """The counter of a model or of an encoding.

    Exact: ``o200k_base``, ``o200k_harmony`` and ``cl100k_base``, whose vocabularies are built in.
    Estimates: ``scripts`` weighs words, numbers, symbols and the letters of each script (margin
    0.3); ``chars3`` and ``chars4`` are ``max(1, len(text) // 3)`` and ``// 4``, 0 for empty text
    (margins 0.6 and 1.15). Of 1,300 texts of 800 characters (programs, documentation, JSON, agent
    messages, interface texts in 106 languages) 95 of 100 have at most ``1 + margin`` times the
    estimate in ``o200k_base``. Korean, Japanese and Chinese are the ones that ``chars3`` and
    ``chars4`` count too low: by up to 2 and 3 times.

    Args:
        model_or_encoding: an encoding or estimator (``"o200k_base"``, ``"o200k_harmony"``,
            ``"cl100k_base"``, ``"scripts"``, ``"chars3"``, ``"chars4"``), or the name of a model.
        tokenizer: what counts in its place: the name of an encoding or estimator; a
            ``tiktoken.Encoding``, whose ranks feed the native encoder if its pattern is that of
            ``o200k_base`` or ``cl100k_base``, and whose own ``encode_ordinary`` is called if not;
            or the path of a ``tokenizer.json`` (needs the extra ``tokenizers``). The rules of the
            model, if it is known, still hold for everything but text.

    Returns:
        An immutable counter. ``exact`` is False and ``margin`` above 0 where the provider's own
        tokenizer is not public.

    Raises:
        InputError: ``unknown_encoding`` if ``tokenizer`` names none, ``unknown_model`` if
            ``model_or_encoding`` is neither encoding nor known model, ``invalid_value`` for an
            argument of the wrong type or a file that is no tokenizer.

    Example:
        >>> counter("o200k_base").count("What's the weather like in San Francisco?")
        8
        >>> counter("claude-sonnet-4-5").exact
        False
    """
    plain_text("model_or_encoding", model_or_encoding)
    if tokenizer is not None:
        return _counter_with(model_or_encoding, tokenizer)
    try:
        return Counter(model_or_encoding)
    except InputError as error:
        if error.code != "unknown_encoding":
            raise
    # Here, because the registry is a file to parse and most callers name an encoding.
    from satchel import models  # noqa: PLC0415 - as above

    return _counter_of(models.get(model_or_encoding))


def resolved(name: str) -> Counter | None:
    """The counter that a settings event names; None for a counter of the caller's own."""
    try:
        return counter(name)
    except InputError:
        return None


@lru_cache(maxsize=64)
def _counter_of(model: Model) -> Counter:
    rules = json.dumps(_rules(model, factors=model.factor != 1 or len(set(model.factors)) > 1))
    exact = model.exact and model.overhead_exact
    margin = model.overhead_margin if model.exact and not exact else model.margin
    return Counter(model.encoding, exact=exact, margin=margin, rules=rules)


def _rules(model: Model, *, factors: bool) -> dict[str, Any]:
    """What the core's ``ModelRules`` reads."""
    tools = model.tools
    rules: dict[str, Any] = {
        "name": model.name,
        "chat": {
            "per_message": model.message_overhead,
            "per_role": 1,
            "per_name": model.name_overhead,
            "per_request": model.request_overhead,
            "exact": model.overhead_exact,
        },
        "calls": {
            "per_call": model.calls.call,
            "per_argument": model.calls.argument,
            "names": model.calls.names,
            "raw": model.calls.raw,
        },
        "tools": {
            "style": model.tool_style,
            "per_function": tools.init,
            "per_properties": tools.properties,
            "per_property": tools.property,
            "per_enum": tools.enum,
            "per_enum_item": tools.enum_item,
            # What a demand for a tool adds is within the margin.
            "per_request": tools.end + tools.preamble,
        },
        "images": {
            figure: value for figure, value in model.images._asdict().items() if value is not None
        },
        "media": {
            "audio_second": model.audio_second_tokens,
            "document": model.document_tokens,
        },
    }
    if model.signature_chars:
        rules["reasoning"] = {
            "signature_fixed": model.signature_fixed,
            "signature_chars": model.signature_chars,
        }
    if factors:
        rules["factors"] = model.factors._asdict()
    return rules


def _counter_with(model_or_encoding: str, tokenizer: object) -> Counter:
    if isinstance(tokenizer, os.PathLike) or (isinstance(tokenizer, str) and _is_path(tokenizer)):
        text = Counter(TokenizerFile(os.fspath(cast("str | os.PathLike[str]", tokenizer))))
    elif isinstance(tokenizer, (str, TextEncoder)):
        text = Counter(tokenizer)
    else:
        message = (
            "tokenizer must be the name of an encoding, a tiktoken.Encoding or the path of a "
            f"tokenizer.json, not {type(tokenizer).__name__}"
        )
        raise InputError(message, code="invalid_value")
    from satchel import models  # noqa: PLC0415 - the registry is a file to parse

    try:
        model = models.get(model_or_encoding)
    except InputError:
        return text
    rules = _rules(model, factors=False)
    # Another name than the model's own counter, which `counter` finds by that name.
    rules["name"] = f"{text.encoding} for {model.name}"
    return Counter(text, rules=json.dumps(rules))


def _is_path(tokenizer: str) -> bool:
    return tokenizer.endswith(".json") or "/" in tokenizer or os.sep in tokenizer


class TokenizerFile:
    """A ``tokenizer.json``, read by the ``tokenizers`` package. Compares and pickles by its path.

    Text that looks like a special token counts as the tokenizer's own ``encode`` takes it.
    """

    __slots__ = ("_path", "encode_batch_fast")

    def __init__(self, path: str) -> None:
        try:
            from tokenizers import Tokenizer  # noqa: PLC0415 - an optional package
        except ImportError as error:
            message = (
                f"{shown(path)} needs the package tokenizers: "
                "install satchel with the extra tokenizers"
            )
            raise InputError(message, code="invalid_value") from error
        try:
            tokenizer = Tokenizer.from_file(path)
        except Exception as error:  # the package raises plain Exception for every fault
            message = f"{shown(path)} cannot be read as a tokenizer: {error}"
            raise InputError(message, code="invalid_value") from error
        # A file may ask for cuts and padding, which are no part of a count.
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self._path = path
        self.encode_batch_fast: Final = tokenizer.encode_batch_fast

    @property
    def name(self) -> str:
        """The file's path."""
        return self._path

    def __repr__(self) -> str:
        return f"TokenizerFile({self._path!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenizerFile) and other._path == self._path

    def __hash__(self) -> int:
        return hash(self._path)

    def __reduce__(self) -> tuple[type[TokenizerFile], tuple[str]]:
        return TokenizerFile, (self._path,)
