"""The native half of the package: types and functions as Rust defines them."""

from satchel.errors import SatchelError

__all__ = ["__version__", "debug_build", "error_codes"]

__version__: str
debug_build: bool

def error_codes() -> dict[str, type[SatchelError]]:
    """The exception class of every error code, in the order of the catalogue."""
