"""What a dry run prints."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import typer

from satchel._cli_frame import print_json

if TYPE_CHECKING:
    from satchel.batch import Estimate, Forecast

__all__ = ["print_forecast"]

_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600


def print_forecast(found: Forecast, threads: int | None, *, as_json: bool) -> None:
    """A line for each figure, with the interval that holds it in 95 of 100 samples."""
    if as_json:
        print_json(found.as_dict())
        return
    cores = threads or os.cpu_count() or 1
    typer.echo(
        f"estimated from {found.sampled:,} of {found.units:,} parts "
        f"({found.input_bytes / 1e6:,.1f} MB); nothing was written"
    )
    for name, one, unit in (
        ("conversations", found.conversations, ""),
        ("windows", found.windows, ""),
        ("rejected", found.rejected, ""),
        ("tokens before", found.tokens_before, ""),
        ("tokens after", found.tokens_after, ""),
        ("cost before", found.cost_before, "$"),
        ("cost after", found.cost_after, "$"),
        ("output", found.output_bytes, "MB"),
        (f"time on {cores} core{'s' if cores > 1 else ''}", found.cpu_s, "s"),
    ):
        share = cores if unit == "s" else 1
        typer.echo(f"{name:<17} {_told(one, unit, share)}")


def _told(one: Estimate, unit: str, share: int) -> str:
    value, low, high = (_number(found / share, unit) for found in (one.value, one.low, one.high))
    return f"{value:>15}   {low} to {high}"


def _number(value: float, unit: str) -> str:
    if unit == "$":
        return f"${value:,.2f}"
    if unit == "MB":
        return f"{value / 1e6:,.1f} MB"
    if unit == "s":
        if value >= _HOUR_S:
            return f"{value / _HOUR_S:,.1f} h"
        return f"{value / _MINUTE_S:,.1f} min" if value >= _MINUTE_S else f"{value:,.1f} s"
    return f"{value:,.0f}"
