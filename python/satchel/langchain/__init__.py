"""The message functions of LangChain, quicker, and with whole steps where you ask for them.

Each function takes what the one of the same name in ``langchain_core.messages`` takes and returns
what it returns: the same lists, the same objects, the same exceptions. Further keywords are off by
default. ``langchain_core`` (the extra ``langchain``) is imported at the first call.

`ContextMiddleware` packs the requests of an agent of ``langchain.agents``; that package is imported
when the name is first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from satchel.langchain.counting import count_tokens_approximately
from satchel.langchain.filtering import filter_messages
from satchel.langchain.merging import merge_message_runs
from satchel.langchain.report import TrimReport
from satchel.langchain.trimming import atrim_messages, trim_messages

if TYPE_CHECKING:
    from satchel.langchain.middleware import ContextMiddleware

__all__ = [
    "ContextMiddleware",
    "TrimReport",
    "atrim_messages",
    "count_tokens_approximately",
    "filter_messages",
    "merge_message_runs",
    "trim_messages",
]

if not TYPE_CHECKING:  # a visible __getattr__ would make every misspelt name pass the checkers

    def __getattr__(name: str) -> object:
        """Loads the middleware on first use (PEP 562).

        Raises:
            ImportError: ``langchain`` is not installed; the message names the extra.
        """
        if name != "ContextMiddleware":
            message = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(message)
        try:
            from satchel.langchain.middleware import ContextMiddleware  # noqa: PLC0415 - optional
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("satchel"):
                raise
            message = f"{error.name} is not installed: install satchel with the extra 'langchain'"
            raise ImportError(message) from error
        globals()[name] = ContextMiddleware
        return ContextMiddleware
