"""The checkpoint of a stored session: what its log had come to at the newest compaction.

A named value of the session, so it goes with it. A log is not folded again up to its checkpoint,
which is most of the work of opening a long one, and its window stays as it is even where a later
planner would choose otherwise. It is derived from the log: one that is lost, or is of another log,
costs time and nothing else.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from satchel.errors import SatchelError, StoreError
from satchel.stores.base import CHECKPOINT
from satchel.stores.codec import decode, encode

if TYPE_CHECKING:
    from satchel.stores.base import SessionInfo, SessionStore

__all__ = ["drop_checkpoint", "read_checkpoint", "write_checkpoint"]


async def read_checkpoint(store: SessionStore, info: SessionInfo) -> str:
    """The checkpoint of a session that is at ``info``; empty if it has none that holds.

    Raises:
        StoreError: whatever the store says, but for a value that cannot be read.
    """
    try:
        found = await store.get_value(info.session_id, CHECKPOINT)
    except StoreError as error:
        if error.code != "corrupt_entry":
            raise
        return ""
    said: Any = None
    if found is not None:
        with suppress(SatchelError):
            said = decode(found.payload)
    value = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    text = value.get("fold") if value.get("log") == _log(info) else None
    return text if isinstance(text, str) else ""


async def write_checkpoint(store: SessionStore, info: SessionInfo, fold: str) -> None:
    """Stores the checkpoint of a session that is at ``info``, in place of the one before.

    Whatever the store says to that is nobody's concern: the log is what counts.
    """
    with suppress(StoreError):
        now = await store.info(info.session_id)
        # Deleted and made again it may be somebody else's.
        if _log(now) == _log(info):
            await store.put_value(
                info.session_id, CHECKPOINT, encode({"log": _log(info), "fold": fold})
            )


async def drop_checkpoint(store: SessionStore, session_id: str) -> None:
    """Empties the checkpoint of a session, if it has one.

    Raises:
        StoreError: whatever the store says.
    """
    if await store.get_value(session_id, CHECKPOINT) is not None:
        await store.put_value(session_id, CHECKPOINT, encode(None))


def _log(info: SessionInfo) -> list[Any]:
    """What tells one log from another.

    An append adds as much to its version as to its length, and a cut does not.
    """
    return [info.user_id, info.created_at, info.version - info.length]
