"""Columns as tables of the packages that notebooks use, each imported where it is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["arrow_table", "pandas_frame", "polars_frame"]

Codes = tuple["NDArray[np.uint8]", tuple[str, ...]]
"""Numbers of names, and the names."""


def _package(name: str, what: str) -> Any:  # noqa: ANN401 - an optional package without types
    try:
        return import_module(name)
    except ImportError as error:
        message = f"{what} needs {name}, which is not installed"
        raise ImportError(message, name=name) from error


def arrow_table(numbers: Mapping[str, NDArray[Any]], codes: Mapping[str, Codes]) -> Any:  # noqa: ANN401 - a Table
    """A ``pyarrow.Table``; names are dictionary-encoded.

    Raises:
        ImportError: without pyarrow.
    """
    arrow = _package("pyarrow", "to_arrow")
    named = {
        key: arrow.DictionaryArray.from_arrays(arrow.array(at), arrow.array(list(names)))
        for key, (at, names) in codes.items()
    }
    return arrow.table({**{key: arrow.array(one) for key, one in numbers.items()}, **named})


def pandas_frame(numbers: Mapping[str, NDArray[Any]], codes: Mapping[str, Codes]) -> Any:  # noqa: ANN401 - a DataFrame
    """A ``pandas.DataFrame``; names are categories.

    Raises:
        ImportError: without pandas.
    """
    pandas = _package("pandas", "to_pandas")
    named = {
        key: pandas.Categorical.from_codes(at.astype("int16"), categories=list(names))
        for key, (at, names) in codes.items()
    }
    return pandas.DataFrame({**numbers, **named})


def polars_frame(numbers: Mapping[str, NDArray[Any]], codes: Mapping[str, Codes]) -> Any:  # noqa: ANN401 - a DataFrame
    """A ``polars.DataFrame``; names are enums.

    Raises:
        ImportError: without polars.
    """
    polars = _package("polars", "to_polars")
    named = {
        key: polars.Series(key, [names[code] for code in at], dtype=polars.Enum(list(names)))
        for key, (at, names) in codes.items()
    }
    return polars.DataFrame({**numbers, **named})
