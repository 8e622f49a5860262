"""What a unit asks of the native half, written down: to be asked elsewhere, later, or not at all.

Cutting files into units is reading; the work is the native half's. A `Recorder` stands in for it
while files are cut, so that the same cuts serve other machines and estimates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from satchel.batch.options import Settings

if TYPE_CHECKING:
    from satchel import _core
    from satchel.batch.units import Output

__all__ = ["Call", "Recorder", "recording"]


@dataclass(slots=True)
class Call:
    """One request to a rewriter. Pickles.

    Attributes:
        method: name of the method: ``lines``, ``rows`` or ``file``.
        arguments: its arguments by position.
        options: its arguments by name.
        pieces: bytes that a reader of a whole file is fed.
        failure: why the rest of that file could not be read, or None.
    """

    method: str
    arguments: tuple[Any, ...]
    options: dict[str, Any]
    pieces: list[bytes] = field(default_factory=list[bytes])
    failure: str | None = None

    def on(self, rewriter: _core.Rewriter) -> Output:
        """The output, from this rewriter."""
        made = getattr(rewriter, self.method)(*self.arguments, **self.options)
        if self.method != "file":
            return cast("Output", made)
        for piece in self.pieces:
            made.feed(piece)
        if self.failure is not None:
            made.fail(self.failure)
        return cast("Output", made.finish())

    # A reader of a whole file is fed like the native one.

    def feed(self, piece: bytes) -> None:
        """Takes the next bytes."""
        self.pieces.append(piece)

    def fail(self, what: str) -> None:
        """Notes that the rest of the file cannot be read."""
        self.failure = what

    def finish(self) -> Call:
        """The request, complete."""
        return self


class Recorder:
    """Has the methods of a rewriter; each gives the `Call` that it was."""

    def lines(self, *arguments: Any, **options: Any) -> Call:  # noqa: ANN401 - passed on as they are
        """Notes the request."""
        return Call("lines", arguments, options)

    def rows(self, *arguments: Any, **options: Any) -> Call:  # noqa: ANN401 - passed on as they are
        """Notes the request."""
        return Call("rows", arguments, options)

    def file(self, *arguments: Any, **options: Any) -> Call:  # noqa: ANN401 - passed on as they are
        """Notes the request; takes the bytes of the file next."""
        return Call("file", arguments, options)


def recording(file_format: str | None) -> Settings:
    """Settings for cutting files: the work of their units gives a `Call`."""
    return Settings(cast("Any", Recorder()), file_format, "")
