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

import threading
import tomllib
import warnings
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypedDict, Unpack, cast

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
    model = _find(normalised(name), _registered.rows)
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
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs more to import than all of this
            document: Fields = tomllib.load(file)
    except (OSError, ValueError) as error:
        message = f"model file {str(path)!r} cannot be read: {error}"
        raise InputError(message, code="invalid_value") from error
    models = document.pop("models", None)
    if document or not isinstance(models, dict):
        message = f'model file {str(path)!r}: expected tables [models."name"] and nothing else'
        raise InputError(message, code="invalid_value")
    tables = cast("Fields", models)
    _registered.add({normalised(name): checked(name, fields) for name, fields in tables.items()})
    return list(tables)


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
                message = f"model {name!r} is not registered"
                raise InputError(message, code="unknown_model")
            self.rows = _Rows(left)


_registered: Final = _Registered()

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
            f"model {key!r} is not known; register it with "
            f"satchel.models.register({key!r}, window=..., encoding=...)"
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
        tools=ToolCosts(*(fields[cost] for cost in TOOL_COSTS)),
        known=known,
        tag=fields["tag"],
        source=fields["source"],
        read=fields["read"],
    )
