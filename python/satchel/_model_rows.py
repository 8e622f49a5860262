"""Rows of model figures: what one may say, and how a name finds the shipped one.

`satchel.models` is the public side. A row is a plain dict of fields; fields are checked where they
come in, so whoever reads a row can trust their types.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias, cast

from satchel._arguments import name_of_type, shown
from satchel.errors import InputError

__all__ = [
    "CONTENT_KINDS",
    "TOOL_COSTS",
    "Fields",
    "bare_name",
    "checked",
    "details_of",
    "is_or_extends",
    "normalised",
    "shipped",
    "shipped_fields",
]

Fields: TypeAlias = dict[str, Any]
"""The figures of one row, by field."""

CONTENT_KINDS: Final = ("prose", "code", "json", "cjk")

# pathlib would double the cost of this module's import, which every first count pays.
_FILE: Final = os.path.join(os.path.dirname(__file__), "models.toml")  # noqa: PTH118, PTH120 - as above

# --- what a row may say ---------------------------------------------------------------------------

_TEXTS: Final = frozenset({"family", "dialect", "encoding", "tag", "source", "read"})
_FLAGS: Final = frozenset({"exact", "overhead_exact", "raw_arguments", "prefix_bound"})
_RATIOS: Final = frozenset(
    {
        "factor",
        "margin",
        "overhead_margin",
        "input_price",
        "output_price",
        "cache_read",
        "long_input",
        "long_output",
    }
)
TOOL_STYLES: Final = ("formula", "json")
TOOL_COSTS: Final = (
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
        "call_tokens",
        "argument_tokens",
        "call_names",
        "signature_fixed",
        "signature_chars",
        "audio_second_tokens",
        "document_tokens",
        "cache_min_prefix",
        "long_above",
        *TOOL_COSTS,
    }
)
# Every other count starts at 0; these may take off what another figure has added.
_LEAST: Final = {"window": 1, "name_overhead": -16, "tool_enum": -16}


def normalised(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        message = f"a model name is {shown(name)}, expected a string that is not empty"
        raise InputError(message, code="invalid_value")
    return name.strip().lower()


def checked(name: str, fields: object) -> Fields:
    """A copy of one row's fields, each of the right type and in range."""
    if not isinstance(fields, dict):
        message = f"model {shown(name)} is {name_of_type(fields)}, expected a table"
        raise InputError(message, code="invalid_value")
    row = dict(cast("Fields", fields))
    for field, value in row.items():
        problem = _problem(field, value)
        if problem is not None:
            message = f"{shown(field)} of model {shown(name)} {problem}"
            raise InputError(message, code="invalid_value")
    if row.get("exact") and (row.get("factor", 1) != 1 or row.get("margin", 0) != 0):
        message = f"model {shown(name)} is exact, so its factor is 1 and its margin 0"
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
    elif field == "tool_style":
        fits, expected = (
            isinstance(value, str) and value in TOOL_STYLES,
            f"one of {', '.join(TOOL_STYLES)}",
        )
    elif field in {"images", "cache"}:
        return _problem_of_rules(field, value)
    elif field == "factors":
        fits, expected = _is_factors(value), f"numbers for {', '.join(CONTENT_KINDS)}"
    else:
        return "is no field of a model"
    return None if fits else f"is {shown(value)}, expected {expected}"


def _problem_of_rules(field: str, value: object) -> str | None:
    """What is wrong with the rules of images or of a prompt cache: a shipped name, or a table."""
    named = shipped().images if field == "images" else shipped().caches
    if isinstance(value, str):
        return None if value in named else f"is {shown(value)}, expected one of {', '.join(named)}"
    if not isinstance(value, Mapping):
        return f"is {shown(value)}, expected a name or a table"
    fields = set(cast("Mapping[object, object]", value))
    if field == "cache" and fields != set(CACHE_FIELDS):
        return f"has the fields {sorted(map(str, fields))}, expected {', '.join(CACHE_FIELDS)}"
    if field == "images" and ("kind" not in fields or not fields <= IMAGE_FIELDS):
        return f"has the fields {sorted(map(str, fields))}, expected kind and figures of that kind"
    return None


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
    return set(factors) == set(CONTENT_KINDS) and all(map(_is_ratio, factors.values()))


IMAGE_FIELDS: Final[frozenset[object]] = frozenset(
    {"kind", "side", "max_side", "max_tokens", "base", "tile", "budget", "original"}
    | {"auto_original", "multiplier", "small", "low", "medium", "high", "ultra", "tokens"}
)
CACHE_FIELDS: Final = ("min_prefix", "breakpoints", "lookback", "ttl_s", "write", "read")

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
    fields: Fields

    def version(self, name: str) -> _Version | None:
        """The version in ``name`` if this row can apply to it, else None."""
        if not is_or_extends(name, self.name):
            return None
        if self.floor is None:
            return _NO_VERSION
        version = _version(name[len(self.name) :])
        return version if version is not None and version >= self.floor else None


class _Family(NamedTuple):
    """A group of models with common rules."""

    recognise: str
    base: Fields
    unknown: Fields
    entries: list[_Entry]


class _Shipped(NamedTuple):
    """The parsed data file."""

    sources: dict[str, Fields]
    routes: dict[str, str]
    vendors: dict[str, str]
    tokenizers: dict[str, Fields]
    images: dict[str, Fields]
    caches: dict[str, Fields]
    details: dict[str, Fields]
    defaults: Fields
    families: list[_Family]


@cache
def shipped() -> _Shipped:
    with open(_FILE, "rb") as file:  # noqa: PTH123 - as above
        document = tomllib.load(file)
    return _Shipped(
        sources=document["sources"],
        routes=document["routes"],
        vendors=document["vendors"],
        tokenizers=document["tokenizers"],
        images=document["images"],
        caches=document["caches"],
        details={_dashed(name): fields for name, fields in document["details"].items()},
        defaults=document["defaults"],
        families=[_family(name, table) for name, table in document["families"].items()],
    )


def _family(name: str, table: Fields) -> _Family:
    entries: list[_Entry] = []
    for row in table["models"]:
        fields = {field: value for field, value in row.items() if field not in _ROW_KEYS}
        floor, top = (_version(f"-{row[end]}") if end in row else None for end in ("from", "to"))
        entries += [_Entry(alias, floor, top, fields) for alias in row["names"]]
    base = {"family": name, "dialect": table["dialect"], **table["base"]}
    return _Family(table["recognise"], base, table["unknown"], entries)


# --- finding a row --------------------------------------------------------------------------------


def _dashed(name: str) -> str:
    return name.replace(".", "-")


def details_of(name: str) -> Fields:
    """Prices and the like of a known version: those of the longest name that it goes on from."""
    details = shipped().details
    name = _dashed(name)
    starts = [start for start in details if is_or_extends(name, start)]
    return details[max(starts, key=len)] if starts else {}


def is_or_extends(name: str, start: str) -> bool:
    return name == start or name.startswith(f"{start}-")


def bare_name(key: str) -> tuple[str, str | None]:
    """The model's own name, and the dialect that its route asks for, if any."""
    data = shipped()
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


def shipped_fields(name: str) -> tuple[Fields, bool] | None:
    """The fields of the best row and whether the version is a known one; None for a stranger."""
    families = shipped().families
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
            return {**family.base, **entry.fields, **details_of(name)}, True
        return {**family.base, **family.unknown}, False
    for family in families:
        if re.match(family.recognise, name):
            return {**family.base, **family.unknown}, False
    return None
