"""Stored transcripts written anew in bulk, on all cores of one machine.

`rewrite` reads files and folders and writes one file; a run that was killed goes on where it was.
`rewrite_batches` is the same for Arrow record batches, for engines to call. Parquet, zstd and Arrow
need the extra ``batch`` (pyarrow), more than one machine the extra ``ray``. `forecast` tells
beforehand what a rewrite would do and cost.
"""

from __future__ import annotations

from satchel.batch.columns import rewrite_batches
from satchel.batch.forecast import Estimate, Forecast, forecast
from satchel.batch.options import At
from satchel.batch.running import Engine, Progress, rewrite
from satchel.batch.summary import Summary

__all__ = [
    "At",
    "Engine",
    "Estimate",
    "Forecast",
    "Progress",
    "Summary",
    "forecast",
    "rewrite",
    "rewrite_batches",
]
