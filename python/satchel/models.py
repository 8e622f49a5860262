"""What is known about each model: limits, tokenizer, overheads, message format.

The facts are data (``models.toml``, beside this file), read on first use and never edited by
code; `register` and `register_file` lay the caller's own data over them. Only the way a name finds
its row is decided here:

1. A route or vendor before the model is taken off (``bedrock/``, ``openai:``, ``us.anthropic.``,
   ``ft:``); where it changes the message format, it sets the dialect. What follows the model is
   taken off too (``@20250929``, ``-v1:0``, ``:free``).
2. The caller's rows are looked up before the shipped ones. A row applies to its name, and to what
   goes on with ``-`` after it, such as a date. The longest name wins.
3. A version is matched as a floor. Above the newest known version, and for a member of a known
   family without a row, the cautious figures of that family apply, with an `UnknownModelWarning`.

The first call reads the file (about 3 ms); a name that was asked before costs one dict lookup.
"""

from __future__ import annotations

import os
import threading
import tomllib
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, Unpack, cast

from satchel._arguments import invalid, name_of_type, shown, whole_number
from satchel._model_rows import (
    TOOL_COSTS,
    Fields,
    bare_name,
    checked,
    is_or_extends,
    normalised,
    shipped,
    shipped_fields,
)
from satchel.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

__all__ = [
    "CacheRules",
    "CallCosts",
    "ContentFactors",
    "ImageRules",
    "Model",
    "ModelFields",
    "Prices",
    "ToolCosts",
    "UnknownModelWarning",
    "get",
    "register",
    "register_file",
    "unregister",
]

_RESERVE_SHARE: Final = 4  # the output reserve is at most a quarter of the window


class UnknownModelWarning(UserWarning):
    """The family is known, this version is not: cautious figures are used."""


class ContentFactors(NamedTuple):
    """Tokens of a model for one token of its `Model.encoding`, by kind of content."""

    prose: float
    code: float
    json: float
    cjk: float


class ToolCosts(NamedTuple):
    """Tokens that a tool's definition costs beside its texts.

    For the tools of one request: ``end``, plus ``preamble`` (``preamble_forced`` where a tool is
    demanded), plus for each tool ``init``, ``properties`` if it has any, ``property`` for each, and
    for each with an enum ``enum`` and ``enum_item`` an item.
    """

    init: int
    properties: int
    property: int
    enum: int
    enum_item: int
    end: int
    preamble: int
    preamble_forced: int


class CallCosts(NamedTuple):
    """What a call and the framing of its result cost beside their texts.

    ``call`` for each call, ``argument`` for each argument. The tool's name is counted ``names``
    times; ``raw`` says that the model sees each argument as plain text, not the JSON of all.
    """

    call: int
    argument: int
    names: int
    raw: bool


class Prices(NamedTuple):
    """Prices in US dollars for a million tokens.

    A request of more than ``long_above`` input tokens costs ``long_input`` times as much for all of
    its input and ``long_output`` times for its output. Cached input: see `CacheRules`.
    """

    input: float
    output: float
    long_above: int | None
    long_input: float
    long_output: float


class ImageRules(NamedTuple):
    """The formula of a model's images; figures that it does not need are None. Sides in pixels.

    An image of unknown size costs the most that the formula gives for any.

    * ``grid`` (Anthropic): squares of ``side``, after a resize to at most ``max_side`` and
      ``max_tokens`` of them.
    * ``tiles`` (OpenAI): ``base`` for low detail, else ``tile`` more for each 512 by 512, after a
      fit into 2,048 by 2,048 and of the short side to 768.
    * ``patches`` (OpenAI): squares of 32, scaled down to ``budget`` and ``max_side``, times
      ``multiplier``; ``original`` has the two figures for that detail, which ``auto`` means if
      ``auto_original``.
    * ``squares`` (Gemini): ``tile`` if both sides are at most ``small``, else for each square of
      ``side``.
    * ``levels`` (Gemini): by the resolution asked for: ``low``, ``medium``, ``high``, ``ultra``.
    * ``flat``: ``tokens``.
    """

    kind: str
    side: int | None = None
    max_side: int | None = None
    max_tokens: int | None = None
    base: int | None = None
    tile: int | None = None
    budget: int | None = None
    original: tuple[int, int] | None = None
    auto_original: bool | None = None
    multiplier: float | None = None
    small: int | None = None
    low: int | None = None
    medium: int | None = None
    high: int | None = None
    ultra: int | None = None
    tokens: int | None = None


class CacheRules(NamedTuple):
    """How the provider caches prompts.

    Attributes:
        min_prefix: fewest tokens that are cached.
        breakpoints: most marks in a request; 0 if the provider places them.
        lookback: how many positions (``openai-5-6``: breakpoints) before a mark are searched.
        ttl_s: seconds that an entry lives, shortest first; empty if nothing is cached.
        write: price of a write for each of ``ttl_s``, as a multiple of the input price.
        read: price of a read, likewise.
    """

    min_prefix: int
    breakpoints: int
    lookback: int
    ttl_s: tuple[int, ...]
    write: tuple[float, ...]
    read: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model's figures. Tokens are in the model's own unit unless said otherwise.

    Attributes:
        name: the name as it was asked for, in lower case.
        family: the group of models whose rules apply.
        dialect: message format of its calls.
        window: input plus output, in tokens.
        input_limit: most input tokens, where the vendor sets one below the window, else None.
        output_limit: most output tokens.
        encoding: what text is counted with; any value that ``satchel.counter`` takes.
        exact: whether ``encoding`` is the model's own tokenizer.
        factor: the model's tokens for one token of ``encoding``.
        factors: the same by kind of content.
        margin: share that is added to an estimate for its upper bound; 0 if ``exact``.
        message_overhead: tokens added for each message.
        name_overhead: tokens added for a message with a ``name``.
        request_overhead: tokens added once.
        overhead_exact: whether these overheads are the vendor's published ones for this model.
        overhead_margin: share that is added for the upper bound where only they are estimates.
        tools: what tool definitions cost.
        tool_style: ``formula`` if they follow OpenAI's formula, ``json`` if they count as JSON.
        calls: what calls and their results cost.
        signature_fixed: characters of a reasoning signature that carry nothing.
        signature_chars: its further characters for a token of reasoning; 0 if it carries none.
        images: the formula of its images and the figures in it.
        audio_second_tokens: tokens of a second of sound.
        document_tokens: tokens of a document whose pages are not looked at.
        prices: in US dollars; None if not known.
        cache: how prompts are cached.
        prefix_bound: whether reasoning is only valid while nothing before it changes.
        known: False if the cautious figures of the family stand in for this version.
        tag: how well the row is founded; the letters are explained in ``models.toml``.
        source: where the row comes from.
        read: day on which the source was read, ``YYYY-MM-DD``; empty for the caller's own data.
    """

    name: str
    family: str
    dialect: str
    window: int
    input_limit: int | None
    output_limit: int
    encoding: str
    exact: bool
    factor: float
    factors: ContentFactors
    margin: float
    message_overhead: int
    name_overhead: int
    request_overhead: int
    overhead_exact: bool
    overhead_margin: float
    tools: ToolCosts
    tool_style: str
    calls: CallCosts
    signature_fixed: int
    signature_chars: int
    images: ImageRules
    audio_second_tokens: int
    document_tokens: int
    prices: Prices | None
    cache: CacheRules
    prefix_bound: bool
    known: bool
    tag: str
    source: str
    read: str

    def input_prices(self) -> dict[str, float | bool]:
        """What the prompt cache costs, as ``settings`` events say it.

        ``read``, ``write`` (for the shortest time to live) and ``output`` are multiples of the
        input price, ``min_prefix`` tokens; ``binds_reasoning`` is ``prefix_bound``. A model without
        a cache reads and writes at the input price; an unknown output price counts five times it.
        """
        cache, prices = self.cache, self.prices
        known = prices is not None and prices.input > 0
        return {
            "read": cache.read,
            "write": cache.write[0] if cache.write else 1.0,
            "output": round(prices.output / prices.input, 3) if prices and known else 5.0,
            "min_prefix": cache.min_prefix,
            "binds_reasoning": self.prefix_bound,
        }

    def input_budget(self, *, reserve_tokens: int | None = None) -> int:
        """Input tokens that a request may use: the window less the output reserve.

        Args:
            reserve_tokens: tokens kept for the answer. By default the output limit, at most a
                quarter of the window.

        Returns:
            Tokens, at most ``input_limit``; 0 if the reserve takes the whole window.

        Raises:
            InputError: ``invalid_value`` if the reserve is negative.
        """
        if reserve_tokens is None:
            reserve_tokens = min(self.output_limit, self.window // _RESERVE_SHARE)
        reserve_tokens = whole_number("reserve_tokens", reserve_tokens)
        budget = max(0, self.window - reserve_tokens)
        return budget if self.input_limit is None else min(budget, self.input_limit)


class ModelFields(TypedDict, total=False):
    """What `register` takes: the attributes of `Model`, tool costs one by one."""

    family: str
    dialect: str
    window: int
    input_limit: int
    output_limit: int
    encoding: str
    exact: bool
    factor: float
    factors: Mapping[str, float]
    margin: float
    message_overhead: int
    name_overhead: int
    request_overhead: int
    overhead_exact: bool
    overhead_margin: float
    tool_init: int
    tool_properties: int
    tool_property: int
    tool_enum: int
    tool_enum_item: int
    tool_end: int
    tool_preamble: int
    tool_preamble_forced: int
    tool_style: str
    call_tokens: int
    argument_tokens: int
    call_names: int
    raw_arguments: bool
    signature_fixed: int
    signature_chars: int
    images: str | Mapping[str, object]
    audio_second_tokens: int
    document_tokens: int
    input_price: float
    output_price: float
    long_above: int
    long_input: float
    long_output: float
    cache: str | Mapping[str, object]
    cache_min_prefix: int
    cache_read: float
    prefix_bound: bool
    tag: str
    source: str
    read: str


def get(name: str) -> Model:
    """The figures of a model.

    Args:
        name: a model's name, with or without a route, a date or an alias's suffix, such as
            ``"gpt-4o-2024-08-06"`` or ``"bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"``.

    Returns:
        The caller's row if one was registered, else the shipped one.

    Raises:
        InputError: ``unknown_model`` if the family is not known; the sentence says how to
            register it.

    Warns:
        UnknownModelWarning: the family is known, the version is not.

    Example:
        >>> from satchel import models
        >>> models.get("gpt-4o-2024-08-06").window
        128000
    """
    model = _find(normalised(name), _registered.rows)
    if not model.known:
        warnings.warn(
            f"model {shown(name)} is not known: cautious figures of the family {model.family!r} "
            "are used; satchel.models.register(...) sets its own",
            UnknownModelWarning,
            stacklevel=2,
        )
    return model


def register(name: str, **fields: Unpack[ModelFields]) -> None:
    """Adds a model or corrects one; the caller's figures win over the shipped ones.

    The row also applies to names that go on with ``-`` after ``name``. What is not given comes from
    the shipped row of the same name. A model of an unknown family needs at least ``window`` and
    ``encoding``; its output limit is then a quarter of the window, its dialect ``"openai"``, and
    its counts are taken as estimates unless ``exact=True``.

    Args:
        name: the model's name; with a route (``"acme/gpt-4o"``) the row applies to that route only.
        **fields: attributes of `Model`; the tool costs are ``tool_init`` and so on.

    Raises:
        InputError: ``invalid_value`` for a field that does not exist, has the wrong type or is out
            of range, or if a model of an unknown family lacks ``window`` or ``encoding``.

    Example:
        >>> from satchel import models
        >>> models.register("acme-7b", window=32_768, encoding="chars3", margin=0.2)
        >>> models.get("acme-7b").input_budget(reserve_tokens=768)
        32000
    """
    _registered.add({normalised(name): checked(name, fields)})


def register_file(path: str | PathLike[str]) -> list[str]:
    """Adds every model of a TOML file: a table ``[models."name"]`` each, with `register`'s fields.

    Args:
        path: the file.

    Returns:
        The names it registered, in the order of the file. Either all are registered or none.

    Raises:
        InputError: ``invalid_value`` if the file cannot be read or a field is at fault.
    """
    if not isinstance(cast("object", path), str | os.PathLike):
        message = f"path must be a str or os.PathLike, not {name_of_type(path)}"
        raise invalid(message)
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs more to import than all of this
            document: Fields = tomllib.load(file)
    except (OSError, ValueError) as error:
        message = f"model file {shown(str(path))} cannot be read: {_reason(error)}"
        raise InputError(message, code="invalid_value") from error
    models = document.pop("models", None)
    if document or not isinstance(models, dict):
        message = f'model file {shown(str(path))}: expected tables [models."name"] and nothing else'
        raise InputError(message, code="invalid_value")
    tables = cast("Fields", models)
    _registered.add({normalised(name): checked(name, fields) for name, fields in tables.items()})
    return list(tables)


def _reason(error: OSError | ValueError) -> str:
    """Why, without the file's name, which the sentence has already."""
    return error.strerror or "" if isinstance(error, OSError) else str(error)


def unregister(name: str) -> None:
    """Takes back what was registered under this name.

    Args:
        name: as it was registered.

    Raises:
        InputError: ``unknown_model`` if nothing was.
    """
    _registered.remove(normalised(name))


# --- the caller's rows ----------------------------------------------------------------------------


class _Rows:
    """One state of the caller's rows; it never changes, so its identity can key a cache."""

    def __init__(self, by_name: dict[str, Fields]) -> None:
        self.by_name = by_name


class _Registered:
    """The caller's rows; a change replaces the state whole, so that readers need no lock."""

    def __init__(self) -> None:
        self.rows = _Rows({})
        self._lock = threading.Lock()

    def add(self, rows: dict[str, Fields]) -> None:
        with self._lock:
            merged = _Rows(self.rows.by_name | rows)
            for name in rows:
                # A row that makes no model is refused now, not when it is asked for.
                _find(name, merged)
            self.rows = merged

    def remove(self, name: str) -> None:
        with self._lock:
            left = dict(self.rows.by_name)
            if left.pop(name, None) is None:
                message = f"model {shown(name)} is not registered"
                raise InputError(message, code="unknown_model")
            self.rows = _Rows(left)


_registered: Final = _Registered()


def registered() -> dict[str, Fields]:
    """The caller's rows, for another process; see `take`."""
    return dict(_registered.rows.by_name)


def take(rows: dict[str, Fields]) -> None:
    """Adds rows that `registered` gave in another process."""
    _registered.add(rows)


# --- finding a row --------------------------------------------------------------------------------


def _own_row(key: str, bare: str, rows: _Rows) -> tuple[str, Fields] | None:
    """The caller's row for a name: the longest registered one, a name with its route first."""
    for name in (key, bare):
        found = [start for start in rows.by_name if is_or_extends(name, start)]
        if found:
            longest = max(found, key=len)
            return longest, rows.by_name[longest]
    return None


@lru_cache(maxsize=512)
def _find(key: str, rows: _Rows) -> Model:
    bare, dialect = bare_name(key)
    own = _own_row(key, bare, rows)
    found = shipped_fields(bare)
    if own is None and found is None:
        message = (
            f"model {shown(key)} is not known; register it with "
            f"satchel.models.register({shown(key)}, window=..., encoding=...)"
        )
        raise InputError(message, code="unknown_model")
    data = shipped()
    fields, known = found or ({}, False)
    fields = data.defaults | data.tokenizers.get(fields.get("tokenizer", ""), {}) | fields
    source = data.sources.get(fields.get("source", ""), {})
    fields |= {"source": source.get("what", ""), "read": str(source.get("read", ""))}
    if dialect is not None:
        fields["dialect"] = dialect
    if own is not None:
        known = True
        registered, own_fields = own
        fields.setdefault("family", registered)
        _drop_what_it_replaces(fields, own_fields)
        fields |= {"tag": "", "source": "the caller's own data", "read": "", **own_fields}
    return _model(key, fields, known=known)


def _drop_what_it_replaces(fields: Fields, own: Fields) -> None:
    """Takes out the shipped figures of counting that make no sense beside the caller's."""
    if "encoding" in own or "exact" in own:
        dropped = ["exact", "factor", "factors", "margin"]
    elif "factor" in own:
        dropped = ["exact", "factors"]
    elif "margin" in own:
        dropped = ["exact"]
    else:
        dropped = []
    for field in dropped:
        fields.pop(field, None)


def _model(key: str, fields: Fields, *, known: bool) -> Model:
    missing = [field for field in ("window", "encoding") if field not in fields]
    if missing:
        message = f"model {shown(key)} needs {' and '.join(missing)}: its family is not known"
        raise InputError(message, code="invalid_value")
    factor = float(fields.get("factor", 1))
    factors = fields.get("factors", dict.fromkeys(ContentFactors._fields, factor))
    return Model(
        name=key,
        family=fields["family"],
        dialect=fields["dialect"],
        window=fields["window"],
        input_limit=fields.get("input_limit"),
        output_limit=fields.get("output_limit", fields["window"] // _RESERVE_SHARE),
        encoding=fields["encoding"],
        exact=fields.get("exact", False),
        factor=factor,
        factors=ContentFactors(**factors),
        margin=float(fields.get("margin", 0)),
        message_overhead=fields["message_overhead"],
        name_overhead=fields["name_overhead"],
        request_overhead=fields["request_overhead"],
        overhead_exact=fields["overhead_exact"],
        overhead_margin=float(fields["overhead_margin"]),
        tools=ToolCosts(*(fields[cost] for cost in TOOL_COSTS)),
        tool_style=fields["tool_style"],
        calls=CallCosts(
            fields["call_tokens"],
            fields["argument_tokens"],
            fields["call_names"],
            fields["raw_arguments"],
        ),
        signature_fixed=fields["signature_fixed"],
        signature_chars=fields["signature_chars"],
        images=_images(fields["images"]),
        audio_second_tokens=fields["audio_second_tokens"],
        document_tokens=fields["document_tokens"],
        prices=_prices(fields),
        cache=_cache(fields),
        prefix_bound=fields["prefix_bound"],
        known=known,
        tag=fields["tag"],
        source=fields["source"],
        read=fields["read"],
    )


def _images(rules: str | Fields) -> ImageRules:
    figures: Fields = dict(shipped().images[rules] if isinstance(rules, str) else rules)
    original = figures.get("original")
    if original is not None:
        figures["original"] = tuple(original)
    return ImageRules(**figures)


def _prices(fields: Fields) -> Prices | None:
    if "input_price" not in fields or "output_price" not in fields:
        return None
    return Prices(
        input=float(fields["input_price"]),
        output=float(fields["output_price"]),
        long_above=fields.get("long_above"),
        long_input=float(fields.get("long_input", 1)),
        long_output=float(fields.get("long_output", 1)),
    )


def _cache(fields: Fields) -> CacheRules:
    named = fields["cache"]
    rules: Fields = shipped().caches[named] if isinstance(named, str) else dict(named)
    rules = {
        **rules,
        "min_prefix": fields.get("cache_min_prefix", rules["min_prefix"]),
        "read": fields.get("cache_read", rules["read"]),
    }
    return CacheRules(
        min_prefix=rules["min_prefix"],
        breakpoints=rules["breakpoints"],
        lookback=rules["lookback"],
        ttl_s=tuple(rules["ttl_s"]),
        write=tuple(map(float, rules["write"])),
        read=float(rules["read"]),
    )
