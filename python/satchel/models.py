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

import math
import re
import threading
import tomllib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import (
    Any,
    Final,
    NamedTuple,
    TypeAlias,
    TypedDict,
    Unpack,
    cast,
)

from satchel.errors import InputError

__all__ = [
    "ContentFactors",
    "Model",
    "ModelFields",
    "ToolCosts",
    "UnknownModelWarning",
    "get",
    "register",
    "register_file",
    "unregister",
]

_Fields: TypeAlias = dict[str, Any]

_SHIPPED: Final = Path(__file__).with_name("models.toml")
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
        tools: what tool definitions cost.
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
    tools: ToolCosts
    known: bool
    tag: str
    source: str
    read: str

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
        elif reserve_tokens < 0:
            message = f"reserve_tokens is {reserve_tokens}, expected at least 0"
            raise InputError(message, code="invalid_value", value=reserve_tokens, limit=0)
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
    tool_init: int
    tool_properties: int
    tool_property: int
    tool_enum: int
    tool_enum_item: int
    tool_end: int
    tool_preamble: int
    tool_preamble_forced: int
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
    model = _find(_key(name), _registered.rows)
    if not model.known:
        warnings.warn(
            f"model {name!r} is not known: cautious figures of the family {model.family!r} are "
            "used; satchel.models.register(...) sets its own",
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
    _registered.add({_key(name): _checked(name, fields)})


def register_file(path: str | Path) -> list[str]:
    """Adds every model of a TOML file: a table ``[models."name"]`` each, with `register`'s fields.

    Args:
        path: the file.

    Returns:
        The names it registered, in the order of the file. Either all are registered or none.

    Raises:
        InputError: ``invalid_value`` if the file cannot be read or a field is at fault.
    """
    try:
        document: _Fields = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        message = f"model file {str(path)!r} cannot be read: {error}"
        raise InputError(message, code="invalid_value") from error
    models = document.pop("models", None)
    if document or not isinstance(models, dict):
        message = f'model file {str(path)!r}: expected tables [models."name"] and nothing else'
        raise InputError(message, code="invalid_value")
    tables = cast("_Fields", models)
    _registered.add({_key(name): _checked(name, fields) for name, fields in tables.items()})
    return list(tables)


def unregister(name: str) -> None:
    """Takes back what was registered under this name.

    Args:
        name: as it was registered.

    Raises:
        InputError: ``unknown_model`` if nothing was.
    """
    _registered.remove(_key(name))


# --- the caller's rows ----------------------------------------------------------------------------


class _Rows:
    """One state of the caller's rows; it never changes, so its identity can key a cache."""

    def __init__(self, by_name: dict[str, _Fields]) -> None:
        self.by_name = by_name


class _Registered:
    """The caller's rows; a change replaces the state whole, so that readers need no lock."""

    def __init__(self) -> None:
        self.rows = _Rows({})
        self._lock = threading.Lock()

    def add(self, rows: dict[str, _Fields]) -> None:
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
                message = f"model {name!r} is not registered"
                raise InputError(message, code="unknown_model")
            self.rows = _Rows(left)


_registered: Final = _Registered()

# --- what a row may say ---------------------------------------------------------------------------

_TEXTS: Final = frozenset({"family", "dialect", "encoding", "tag", "source", "read"})
_FLAGS: Final = frozenset({"exact", "overhead_exact"})
_RATIOS: Final = frozenset({"factor", "margin"})
_TOOL_COSTS: Final = (
    "tool_init",
    "tool_properties",
    "tool_property",
    "tool_enum",
    "tool_enum_item",
    "tool_end",
    "tool_preamble",
    "tool_preamble_forced",
)
_TOKENS: Final = frozenset(
    {
        "window",
        "input_limit",
        "output_limit",
        "message_overhead",
        "name_overhead",
        "request_overhead",
        *_TOOL_COSTS,
    }
)
# Every other count starts at 0; these may take off what another figure has added.
_LEAST: Final = {"window": 1, "name_overhead": -16, "tool_enum": -16}


def _key(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        message = f"a model name is {name!r}, expected a string that is not empty"
        raise InputError(message, code="invalid_value")
    return name.strip().lower()


def _checked(name: str, fields: object) -> _Fields:
    """A copy of one row's fields, each of the right type and in range."""
    if not isinstance(fields, dict):
        message = f"model {name!r} is {type(fields).__name__}, expected a table"
        raise InputError(message, code="invalid_value")
    row = dict(cast("_Fields", fields))
    for field, value in row.items():
        problem = _problem(field, value)
        if problem is not None:
            message = f"{field!r} of model {name!r} {problem}"
            raise InputError(message, code="invalid_value")
    if row.get("exact") and (row.get("factor", 1) != 1 or row.get("margin", 0) != 0):
        message = f"model {name!r} is exact, so its factor is 1 and its margin 0"
        raise InputError(message, code="invalid_value")
    return row


def _problem(field: str, value: object) -> str | None:
    """What is wrong with the value of one field, as the end of a sentence."""
    if field in _TEXTS:
        fits, expected = isinstance(value, str) and value != "", "a text"
    elif field in _FLAGS:
        fits, expected = isinstance(value, bool), "true or false"
    elif field in _RATIOS:
        fits, expected = _is_ratio(value), "a number of at least 0"
    elif field in _TOKENS:
        least = _LEAST.get(field, 0)
        fits, expected = _is_whole(value, least), f"a whole number of at least {least}"
    elif field == "factors":
        fits, expected = _is_factors(value), f"numbers for {', '.join(ContentFactors._fields)}"
    else:
        return "is no field of a model"
    return None if fits else f"is {value!r}, expected {expected}"


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_ratio(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value < math.inf


def _is_factors(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    factors = cast("Mapping[object, object]", value)
    return set(factors) == set(ContentFactors._fields) and all(map(_is_ratio, factors.values()))


# --- the shipped rows -----------------------------------------------------------------------------

_Version: TypeAlias = tuple[int, int]
_NO_VERSION: Final[_Version] = (0, 0)
_VERSION: Final = re.compile(r"-(\d{1,3})(?:[-.](\d{1,2}))?(?![\d.])")
_ROW_KEYS: Final = frozenset({"names", "from", "to"})


def _version(text: str) -> _Version | None:
    """The version that ``text`` starts with: ``-4-5-20250929`` and ``-4.5`` are (4, 5)."""
    found = _VERSION.match(text)
    return None if found is None else (int(found[1]), int(found[2] or 0))


class _Entry(NamedTuple):
    """A row under one of its names."""

    name: str
    floor: _Version | None
    top: _Version | None
    fields: _Fields

    def version(self, name: str) -> _Version | None:
        """The version in ``name`` if this row can apply to it, else None."""
        if not _is_or_extends(name, self.name):
            return None
        if self.floor is None:
            return _NO_VERSION
        version = _version(name[len(self.name) :])
        return version if version is not None and version >= self.floor else None


class _Family(NamedTuple):
    """A group of models with common rules."""

    recognise: str
    base: _Fields
    unknown: _Fields
    entries: list[_Entry]


class _Shipped(NamedTuple):
    """The parsed data file."""

    sources: dict[str, _Fields]
    routes: dict[str, str]
    vendors: dict[str, str]
    tokenizers: dict[str, _Fields]
    defaults: _Fields
    families: list[_Family]


@cache
def _shipped() -> _Shipped:
    document = tomllib.loads(_SHIPPED.read_text(encoding="utf-8"))
    return _Shipped(
        sources=document["sources"],
        routes=document["routes"],
        vendors=document["vendors"],
        tokenizers=document["tokenizers"],
        defaults=document["defaults"],
        families=[_family(name, table) for name, table in document["families"].items()],
    )


def _family(name: str, table: _Fields) -> _Family:
    entries: list[_Entry] = []
    for row in table["models"]:
        fields = {field: value for field, value in row.items() if field not in _ROW_KEYS}
        floor, top = (_version(f"-{row[end]}") if end in row else None for end in ("from", "to"))
        entries += [_Entry(alias, floor, top, fields) for alias in row["names"]]
    base = {"family": name, "dialect": table["dialect"], **table["base"]}
    return _Family(table["recognise"], base, table["unknown"], entries)


# --- finding a row --------------------------------------------------------------------------------


def _is_or_extends(name: str, start: str) -> bool:
    return name == start or name.startswith(f"{start}-")


def _bare(key: str) -> tuple[str, str | None]:
    """The model's own name, and the dialect that its route asks for, if any."""
    data = _shipped()
    *path, name = key.split("/")
    head, colon, tail = name.partition(":")
    if colon and head in data.routes:
        path.append(head)
        name = tail
    dialects = [data.routes.get(segment, "") for segment in path]
    name = name.removeprefix("ft:")
    for vendor, dialect in data.vendors.items():
        region, found, rest = name.partition(vendor)
        if found and (not region or region.endswith(".")):
            name = rest
            dialects.append(dialect)
    for mark in ("@", ":", "["):
        name = name.partition(mark)[0]
    return name, next(filter(None, dialects), None)


def _shipped_fields(name: str) -> tuple[_Fields, bool] | None:
    """The fields of the best row and whether the version is a known one; None for a stranger."""
    families = _shipped().families
    best: tuple[tuple[int, _Version], _Family, _Entry, _Version] | None = None
    for family in families:
        for entry in family.entries:
            version = entry.version(name)
            if version is None:
                continue
            rank = (len(entry.name), entry.floor or _NO_VERSION)
            if best is None or rank > best[0]:
                best = (rank, family, entry, version)
    if best is not None:
        _, family, entry, version = best
        if entry.top is None or version <= entry.top:
            return {**family.base, **entry.fields}, True
        return {**family.base, **family.unknown}, False
    for family in families:
        if re.match(family.recognise, name):
            return {**family.base, **family.unknown}, False
    return None


def _own_row(key: str, bare: str, rows: _Rows) -> tuple[str, _Fields] | None:
    """The caller's row for a name: the longest registered one, a name with its route first."""
    for name in (key, bare):
        found = [start for start in rows.by_name if _is_or_extends(name, start)]
        if found:
            longest = max(found, key=len)
            return longest, rows.by_name[longest]
    return None


@lru_cache(maxsize=512)
def _find(key: str, rows: _Rows) -> Model:
    bare, dialect = _bare(key)
    own = _own_row(key, bare, rows)
    shipped = _shipped_fields(bare)
    if own is None and shipped is None:
        message = (
            f"model {key!r} is not known; register it with "
            f"satchel.models.register({key!r}, window=..., encoding=...)"
        )
        raise InputError(message, code="unknown_model")
    data = _shipped()
    fields, known = shipped or ({}, False)
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


def _drop_what_it_replaces(fields: _Fields, own: _Fields) -> None:
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


def _model(key: str, fields: _Fields, *, known: bool) -> Model:
    missing = [field for field in ("window", "encoding") if field not in fields]
    if missing:
        message = f"model {key!r} needs {' and '.join(missing)}: its family is not known"
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
        tools=ToolCosts(*(fields[cost] for cost in _TOOL_COSTS)),
        known=known,
        tag=fields["tag"],
        source=fields["source"],
        read=fields["read"],
    )
