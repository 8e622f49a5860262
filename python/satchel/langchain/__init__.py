"""The message functions of LangChain, quicker, and with whole steps where you ask for them.

Each function takes what the one of the same name in ``langchain_core.messages`` takes and returns
what it returns: the same lists, the same objects, the same exceptions. Further keywords are off by
default. ``langchain_core`` (the extra ``langchain``) is imported at the first call.
"""

from __future__ import annotations

from satchel.langchain.counting import count_tokens_approximately
from satchel.langchain.filtering import filter_messages
from satchel.langchain.merging import merge_message_runs
from satchel.langchain.report import TrimReport
from satchel.langchain.trimming import atrim_messages, trim_messages

__all__ = [
    "TrimReport",
    "atrim_messages",
    "count_tokens_approximately",
    "filter_messages",
    "merge_message_runs",
    "trim_messages",
]
