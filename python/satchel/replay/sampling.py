"""Which runs of many are replayed: a share of them, or so many, by lot.

The lot of a run depends on the seed, the number of its file and its place in it: equal files in
equal order give equal samples, whatever their folder is called and wherever the work is done. A
smaller sample is part of a larger one.
"""

from __future__ import annotations

import heapq
import re
import warnings
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from satchel._arguments import fraction, whole_number
from satchel.errors import InputError
from satchel.reading import read_transcripts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Literal

    from satchel.reading import Format, Transcript

__all__ = ["Sample", "sample_of", "sampled"]

_PERCENT: Final = re.compile(r"(\d{1,3}(?:\.\d{1,9})?)\s*%")
_ALL: Final = 2**64


@dataclass(frozen=True, slots=True)
class Sample:
    """Runs whose lot is below a limit.

    Attributes:
        seed: of the lots.
        limit: of 2^64.
    """

    seed: int
    limit: int

    def takes(self, file: int, index: int) -> bool:
        """Whether a run is in it, by the number of its file and its place there."""
        return self.limit >= _ALL or _lot(self.seed, file, index) < self.limit


def sample_of(
    sample: float | str,
    seed: int,
    files: Sequence[str],
    file_format: Format | Literal["auto"],
) -> Sample:
    """The sample that is asked for; a number of runs is found by reading all files once.

    Raises:
        InputError: ``invalid_value`` if it is neither a share nor a number.
    """
    if isinstance(sample, str):
        percent = _PERCENT.fullmatch(sample.strip())
        if percent:
            sample = float(percent[1]) / 100
        elif sample.strip().isdecimal() and len(sample) < len(str(_ALL)):
            sample = int(sample)
        else:
            message = "sample must be a share such as '10%' or a number of runs"
            raise InputError(message, code="invalid_value")
    if isinstance(sample, int) and not isinstance(sample, bool):
        wanted = whole_number("sample", sample, least=1, most=2**53)
        with warnings.catch_warnings():
            # What cannot be read is told when the sample itself is read.
            warnings.simplefilter("ignore")
            everything = sampled(files, None, file_format=file_format, on_error="skip")
            lots = (_lot(seed, file, found.index) for file, found in everything)
            chosen = heapq.nsmallest(wanted, lots)
        return Sample(seed, _ALL if len(chosen) < wanted else chosen[-1] + 1)
    share = fraction("sample", sample)
    if not 0 < share <= 1:
        message = f"sample is {share}, a share must be above 0 and at most 1"
        raise InputError(message, code="invalid_value")
    return Sample(seed, _ALL if share == 1 else int(share * _ALL))


def sampled(
    files: Sequence[str],
    sample: Sample | None,
    *,
    file_format: Format | Literal["auto"],
    on_error: Literal["raise", "skip"],
    on_read: Callable[[int], None] | None = None,
    first: int = 0,
) -> Iterator[tuple[int, Transcript]]:
    """The runs of these files that are in the sample, each with the number of its file.

    A run does not tell its file: what it was read from may be a URL with a signature, which must
    stand nowhere.

    Args:
        files: paths and URLs.
        sample: which runs; None for all.
        file_format: as in `read_transcripts`, like ``on_error`` and ``on_read``.
        on_error: see there.
        on_read: see there.
        first: the number of the first of these files.

    Raises:
        InputError: as `read_transcripts`.
    """
    for number, file in enumerate(files, first):
        runs = read_transcripts(file, format=file_format, on_error=on_error, on_read=on_read)
        for found in runs:
            if sample is None or sample.takes(number, found.index):
                yield number, found


def _lot(seed: int, file: int, index: int) -> int:
    told = f"{file}:{index}".encode()
    digest = blake2b(told, key=seed.to_bytes(8, "little"), digest_size=8).digest()
    return int.from_bytes(digest, "little")
