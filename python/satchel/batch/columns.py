"""`rewrite_batches`: Arrow in, Arrow out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from satchel.batch.arrow import needed, output_columns, text_columns
from satchel.batch.options import settings
from satchel.batch.rejects import raise_first

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from satchel.batch.arrow import RecordBatch
    from satchel.batch.options import At, OnError, Redact
    from satchel.counting import Counter
    from satchel.policy import Policy

__all__ = ["rewrite_batches"]

_OURS = ("messages", "system", "tools", "report")


def rewrite_batches(
    batches: Iterable[RecordBatch],
    *,
    model: str,
    policy: str | Policy = "adaptive",
    budget: float | str | None = None,
    convert: str | None = None,
    at: At = "end",
    counter: str | Counter | None = None,
    messages: str | None = None,
    redact: Redact = False,
    on_error: OnError = "reject",
) -> Iterator[RecordBatch]:
    """Writes the conversations of record batches anew, a batch for a batch, in one thread.

    Args:
        batches: ``pyarrow.RecordBatch``, each with a column of conversations: lists of messages
            as JSON text, or as lists of structs, or whole conversations. ``system``, ``tools`` and
            ``dialect`` are used where they are there.
        model: as in `rewrite`, like ``policy``, ``budget``, ``convert``, ``at`` and ``counter``.
        policy: see there.
        budget: see there.
        convert: see there.
        at: see there.
        counter: see there.
        messages: name of that column; default ``messages``, ``conversation`` or
            ``conversations``.
        redact: as in `rewrite`.
        on_error: ``"reject"`` leaves rows without a window out, ``"raise"`` stops at the first.

    Yields:
        Record batches with a row for each window: ``messages``, ``system``, ``tools`` and
        ``report`` as JSON texts (large strings), and the other columns of the row it comes from.

    Raises:
        InputError: as `rewrite`; ``invalid_file`` if there is no such column.
        ImportError: pyarrow is not installed.
    """
    arrow = needed("rewrite_batches")
    chosen = settings(
        policy=policy,
        model=model,
        budget=budget,
        convert=convert,
        at=at,
        counter=counter,
        pages=False,
        file_format="auto",
        redact=redact,
    )
    row = 0  # lines are counted from 1
    for batch in batches:
        given = text_columns(batch, "batch", messages=messages)
        output = chosen.rewriter.rows(*given, "batch", row + 1, None, columns=True)
        raise_first("batch", output, on_error)
        taken: Any = arrow.array(np.asarray(output["lines"]) - row - 1, arrow.int64())
        row += batch.num_rows
        columns = output_columns(output)
        ours = {*_OURS, *((messages,) if messages else ("conversation", "conversations"))}
        for name in batch.schema.names:
            if name not in ours:
                columns[name] = batch.column(name).take(taken)
        yield arrow.record_batch(list(columns.values()), names=list(columns))
