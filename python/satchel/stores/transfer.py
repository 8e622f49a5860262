"""A session as a file: all that a store keeps of it, as lines of JSON, and back into any store.

The first line says which session it is and how many lines follow; then there is a line for each
page, value and entry of the log. Payloads are strings where they are UTF-8, else base64, so they
come back byte for byte.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final, cast

from satchel._arguments import name_of_type, shown
from satchel.errors import InputError, StoreError
from satchel.stores.base import CHECKPOINT, Entry, exists

if TYPE_CHECKING:
    from satchel.stores.base import SessionInfo, SessionStore

__all__ = ["export_session", "import_session"]

_FORMAT: Final = 1
_ROUNDS: Final = 5


async def export_session(store: SessionStore, session_id: str) -> bytes:
    """All of a session as JSON lines in UTF-8, at one version of its log.

    Raises:
        StoreError: ``session_not_found``; ``version_conflict`` if others write it all the time.
    """
    for _ in range(_ROUNDS):
        before = await store.info(session_id)
        entries = await store.read(session_id)
        names = await store.value_names(session_id)
        values = [(name, await store.get_value(session_id, name)) for name in names]
        pointers = await store.page_pointers(session_id)
        pages = [(pointer, await store.get_page(session_id, pointer)) for pointer in pointers]
        if (await store.info(session_id)).version == before.version:
            break
    else:
        message = "the session is written all the time; export it while nobody writes"
        raise StoreError(message, code="version_conflict")
    given = [(name, value) for name, value in values if name != CHECKPOINT]
    kept = [(name, value.payload) for name, value in given if value is not None]
    lines: list[dict[str, Any]] = [
        {
            "satchel_session": _FORMAT,
            "session_id": session_id,
            "user_id": before.user_id,
            "created_at": before.created_at,
            "lines": len(pages) + len(kept) + len(entries),
        }
    ]
    lines += [{"page": pointer, **_written(page)} for pointer, page in pages if page is not None]
    lines += [{"value": name, **_written(payload)} for name, payload in kept]
    for entry in entries:
        keyed = {} if entry.key is None else {"key": entry.key}
        lines.append({"entry": entry.kind, **keyed, **_written(entry.payload)})
    return b"".join(
        json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
        for line in lines
    )


async def import_session(
    store: SessionStore,
    exported: bytes,
    *,
    session_id: str | None = None,
    user_id: str | None = None,
    ttl_s: float | None = None,
) -> SessionInfo:
    """A session as it was exported.

    Its log is written last and at once: until then the session is empty, and an import that broke
    off can be done again.

    Args:
        store: where to.
        exported: what `export_session` gave.
        session_id: its id; by default that which it had.
        user_id: whose it is; by default whose it was.
        ttl_s: as for `SessionStore.open`.

    Raises:
        InputError: ``invalid_value`` for other bytes, or where lines are missing; for a session id
            or user id in them that no store takes, too.
        StoreError: ``session_exists`` if there is a session that is not empty; ``wrong_user``.
    """
    head, lines = _read(exported)
    target = head.get("session_id") if session_id is None else session_id
    owner = head.get("user_id") if user_id is None else user_id
    entries: list[Entry] = []
    pages: dict[str, bytes] = {}
    values: dict[str, bytes] = {}
    for number, line in enumerate(lines, start=2):
        payload = _payload(line, number)
        if "entry" in line:
            key = None if line.get("key") is None else _name(line, "key", number)
            kind: Any = _name(line, "entry", number)
            if kind not in ("message", "event"):
                raise _wrong(number)
            entries.append(Entry(kind, payload, key))
        elif "page" in line:
            pages[_name(line, "page", number)] = payload
        elif (name := _name(line, "value", number)) != CHECKPOINT:
            values[name] = payload
    info = await store.open(target, user_id=owner, ttl_s=ttl_s)
    if info.length:
        raise exists()
    if pages:
        await store.put_pages(target, pages)
    for name, payload in values.items():
        await store.put_value(target, name, payload)
    return await store.append(target, entries, expected_version=info.version)


def _written(payload: bytes) -> dict[str, str]:
    try:
        return {"text": payload.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(payload).decode()}


def _read(exported: bytes) -> tuple[Any, list[dict[str, Any]]]:
    found: list[Any] = []
    if not isinstance(cast("object", exported), bytes | bytearray):
        message = f"exported must be bytes, not {name_of_type(exported)}"
        raise InputError(message, code="invalid_value")
    for number, line in enumerate(exported.splitlines(), start=1):
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            raise _wrong(number) from None
        if not isinstance(found[-1], dict):
            raise _wrong(number)
    head: dict[str, Any] = found[0] if found else {}
    if head.get("satchel_session") != _FORMAT:
        message = "the bytes are no exported session, or that of a newer satchel"
        raise InputError(message, code="invalid_value")
    wanted = head.get("lines")
    if wanted != len(found) - 1:
        message = f"the exported session has {len(found) - 1} lines, should have {shown(wanted)}"
        raise InputError(message, code="invalid_value")
    return head, found[1:]


def _payload(line: dict[str, Any], number: int) -> bytes:
    text, packed = line.get("text"), line.get("base64")
    if not {"entry", "page", "value"} & line.keys():
        raise _wrong(number)
    if isinstance(text, str):
        try:
            return text.encode()
        except UnicodeEncodeError:
            raise _wrong(number) from None
    if not isinstance(packed, str):
        raise _wrong(number)
    try:
        return base64.b64decode(packed, validate=True)
    except (binascii.Error, ValueError):
        raise _wrong(number) from None


def _name(line: dict[str, Any], field: str, number: int) -> str:
    found: object = line[field]
    if not isinstance(found, str):
        raise _wrong(number)
    return found


def _wrong(number: int) -> InputError:
    return InputError(
        f"line {number} is none of an exported session", code="invalid_value", value=number
    )
