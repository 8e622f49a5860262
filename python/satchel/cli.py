"""The command ``satchel``: counts, checks, mends and converts transcripts, and packs windows.

Needs the extra ``cli`` (typer and rich), which is loaded when the command runs.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["application", "main"]

_EXTRA: Final = ("typer", "rich")
_COMMANDS: Final = (
    "satchel._cli_commands",
    "satchel._cli_lint",
    "satchel._cli_rewrite",
    "satchel._cli_batch",
    "satchel._cli_replay",
)


def application() -> Callable[[], None]:
    """The command line application, ready to be called.

    Raises:
        ImportError: typer or rich is not installed; the sentence names the extra.
    """
    try:
        for name in _EXTRA:
            import_module(name)
        for name in _COMMANDS:  # each adds its own to the application
            import_module(name)
        from satchel._cli_frame import app  # noqa: PLC0415 - needs the extra
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        message = (
            f"the satchel command needs {error.name}, which is not installed: "
            "install satchel with its extra, satchel[cli]"
        )
        raise ImportError(message, name=error.name) from error
    return app


def main() -> None:
    """Runs the command line; ends the process with its exit code."""
    try:
        run = application()
    except ImportError as error:
        sys.exit(f"satchel: {error}")
    run()
