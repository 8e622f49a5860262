"""Sessions in Redis or Valkey, for several processes and machines.

A session is one key, so all of it expires or goes together; its name is a hash of the session's id,
so ids may hold anything, and its slot in a cluster is fixed. Each write is one script, which the
server runs whole or not at all, and which may be sent again after a lost connection without being
done twice. Beside the sessions there is an index of each user's, so keys are never searched.

The URL's query may say ``checks`` (``refuse`` a server that may lose what it acknowledged, only
``warn``, or ``off``), ``durability`` (``process``: what the server's append-only file does;
``power``: wait until it is on the disk), ``prefix`` of the keys, ``cluster=true`` and
``timeout_s``. Everything else in it is redis-py's.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import secrets
import struct
import zlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from satchel._arguments import whole_number
from satchel.errors import StoreError
from satchel.stores import _redis_scripts as scripts
from satchel.stores._redis_connections import Connections
from satchel.stores._write_ids import NEW_WRITE
from satchel.stores.base import (
    Entry,
    Lease,
    SessionInfo,
    Value,
    check_id,
    check_payload,
    checked_entries,
    checked_life,
    checked_limit,
    checked_pages,
    checked_version,
    checked_wait,
    conflict,
    exists,
    fresh_entries,
    held_lease,
    lease_lost,
    not_found,
    sought,
    wrong_user,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence

__all__ = ["RedisStore"]

_MOST: Final = 2**52
_CHUNK_BYTES: Final = 4 * 2**20
"""How much one answer or request carries, about: the server does nothing else meanwhile."""
_SQUEEZED_BYTES: Final = 256
"""Payloads from here on are compressed: memory is dear."""
_HEADER: Final = struct.Struct(">ccI")


class RedisStore:
    """Keeps sessions in a Redis or Valkey server.

    Args:
        url: ``redis://user:password@host:port/0?...``; also ``rediss``, ``valkey``, ``valkeys``.
        max_connections: of this store.

    Raises:
        InputError: ``invalid_value`` for a URL that cannot be read.
    """

    def __init__(self, url: str, *, max_connections: int = 20) -> None:
        self._connections: Final = Connections(url, most=max_connections)

    @property
    def is_durable(self) -> bool:
        """Whether the server keeps an append-only file; True before it was asked."""
        return self._connections.is_append_only

    async def open(
        self, session_id: str, *, user_id: str | None = None, ttl_s: float | None = None
    ) -> SessionInfo:
        """See `SessionStore.open`.

        Raises:
            StoreError: ``store_unsafe`` for a server that may lose what it acknowledged.
        """
        check_id("session_id", session_id)
        user = "" if user_id is None else b"u" + _bytes(check_id("user_id", user_id))
        ttl = "" if ttl_s is None else repr(checked_life("ttl_s", ttl_s))
        given = (scripts.FORMAT, _bytes(session_id), user, ttl)
        info = _info(await self._session(scripts.OPEN, session_id, *given))
        await self._admit(info)
        return info

    async def info(self, session_id: str) -> SessionInfo:
        """See `SessionStore.info`."""
        return _info(await self._session(scripts.INFO, session_id, is_write=False))

    async def append(
        self,
        session_id: str,
        entries: Sequence[Entry],
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """See `SessionStore.append`."""
        given: list[object] = [*_started(lease), _number(expected_version)]
        for entry in fresh_entries(checked_entries(entries), set()):
            given.append("" if entry.key is None else b"k" + _bytes(entry.key))
            given.append(_packed(entry))
        found = await self._session(scripts.APPEND, session_id, *given, expected=expected_version)
        return _info(found)

    async def read(
        self, session_id: str, *, after: int = 0, limit: int | None = None
    ) -> list[Entry]:
        """See `SessionStore.read`.

        Raises:
            StoreError: ``store_corrupt`` if entries are missing, ``corrupt_entry`` if one cannot be
                read back.
        """
        whole_number("after", after)
        checked_limit(limit)
        last = _MOST if limit is None else after + limit
        while True:
            found: list[Entry] = []
            cuts: bytes | None = None
            while True:
                start = after + len(found)
                given = (start, last, _CHUNK_BYTES)
                answer = await self._session(scripts.READ, session_id, *given, is_write=False)
                length = int(answer[0])
                if cuts not in (None, answer[1]):
                    break
                cuts = answer[1]
                found += [_entry(one, start + at) for at, one in enumerate(answer[2:], 1)]
                if after + len(found) >= min(last, length) or not answer[2:]:
                    return found
            # Cut in the middle of it: read once more.

    async def truncate(
        self,
        session_id: str,
        length: int,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> SessionInfo:
        """See `SessionStore.truncate`."""
        kept = whole_number("length", length)
        given = (*_started(lease), _number(expected_version), kept)
        found = await self._session(scripts.TRUNCATE, session_id, *given, expected=expected_version)
        return _info(found)

    async def branch(
        self, session_id: str, target_id: str, *, length: int, user_id: str | None = None
    ) -> SessionInfo:
        """See `SessionStore.branch`."""
        check_id("target_id", target_id)
        whole_number("length", length)
        if (await self.info(session_id)).user_id != user_id:
            raise wrong_user()
        entries = await self.read(session_id, limit=length)
        [ttl] = await self._session(scripts.GET, session_id, "s", is_write=False)
        write = secrets.token_bytes(8)
        target = self._key(target_id)
        staged = target + b":" + write.hex().encode()
        # Aside first, so that the branch is there whole or not at all.
        await self._stage(staged, _fields(entries))
        pointers = await self._session(scripts.NAMES, session_id, "P", is_write=False)
        for at in range(0, len(pointers), 16):
            names = pointers[at : at + 16]
            pages = await self._session(scripts.GET, session_id, *names, is_write=False)
            await self._stage(
                staged, [part for pair in zip(names, pages, strict=True) for part in pair]
            )
        user = "" if user_id is None else b"u" + _bytes(user_id)
        ids = (_bytes(target_id), _bytes(session_id))
        given = (write, scripts.FORMAT, *ids, len(entries), user, ttl or "")
        found = await self._connections.run(scripts.BRANCH, [target, staged], *given)
        info = _info(_checked(found, None))
        await self._admit(info)
        return info

    async def get_value(self, session_id: str, name: str) -> Value | None:
        """See `SessionStore.get_value`."""
        fields = (b"v" + _bytes(name), b"V" + _bytes(name))
        payload, stamp = await self._session(scripts.GET, session_id, *fields, is_write=False)
        return None if payload is None else Value(payload, int(stamp[8:]))

    async def put_value(
        self,
        session_id: str,
        name: str,
        payload: bytes,
        *,
        expected_version: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        """See `SessionStore.put_value`."""
        named = _bytes(check_id("name", name))
        expected = _number(expected_version)
        given = (*_started(lease), named, expected, check_payload(payload))
        found = await self._session(
            scripts.PUT_VALUE, session_id, *given, expected=expected_version
        )
        return int(found[0])

    async def value_names(self, session_id: str) -> list[str]:
        """See `SessionStore.value_names`."""
        return await self._names(session_id, "v")

    async def put_pages(self, session_id: str, pages: Mapping[str, bytes]) -> None:
        """See `SessionStore.put_pages`."""
        plain = checked_pages(pages)
        contents = await asyncio.to_thread(lambda: list(map(zlib.compress, plain.values())))
        given: list[object] = []
        for pointer, content in zip(plain, contents, strict=True):
            given += [_bytes(pointer), content]
        await self._session(scripts.PUT_PAGES, session_id, *given)

    async def get_page(self, session_id: str, pointer: str) -> bytes | None:
        """See `SessionStore.get_page`.

        Raises:
            StoreError: ``corrupt_entry`` if it cannot be read back.
        """
        field = b"P" + _bytes(pointer)
        [content] = await self._session(scripts.GET, session_id, field, is_write=False)
        if content is None:
            return None
        try:
            return await asyncio.to_thread(zlib.decompress, content)
        except zlib.error:
            message = f"a page of {len(content)} bytes cannot be read: restore it from a backup"
            raise StoreError(message, code="corrupt_entry", value=len(content)) from None

    async def page_pointers(self, session_id: str) -> list[str]:
        """See `SessionStore.page_pointers`."""
        return await self._names(session_id, "P")

    async def list_sessions(
        self, *, user_id: str | None = None, after: str | None = None, limit: int = 100
    ) -> list[SessionInfo]:
        """See `SessionStore.list_sessions`."""
        wanted = whole_number("limit", limit)
        found: list[SessionInfo] = []
        start = b"-" if after is None else b"(" + _bytes(after)
        index = self._index(user_id)
        while len(found) < wanted:
            count = min(max(wanted - len(found), 16), 256)
            pairs = await self._connections.run(scripts.LIST, index, start, count, is_write=False)
            ids, scores = pairs[::2], pairs[1::2]
            infos = await self._infos(ids)
            gone = [
                part
                for one, score, info in zip(ids, scores, infos, strict=True)
                if info is None or (user_id is not None and info.user_id != user_id)
                for part in (one, score)
            ]
            if gone:
                await self._connections.run(scripts.FORGET, index, *gone)
            found += [
                info
                for info in infos
                if info is not None and (user_id is None or info.user_id == user_id)
            ]
            if len(ids) < count:
                break
            start = b"(" + ids[-1]
        return found[:wanted]

    async def delete(self, session_id: str) -> bool:
        """See `SessionStore.delete`."""
        own = _bytes(session_id)
        found = await self._connections.run(scripts.INFO, [self._key(session_id)], is_write=False)
        if found[0] == b"none":
            return False
        # A session that is opened again meanwhile has another score then, and stays in the index.
        user = _info(_checked(found, None)[0:]).user_id
        indexes = [self._index(None), *([] if user is None else [self._index(user)])]
        scores = [
            await self._connections.run(scripts.LIST, index, b"[" + own, 1, is_write=False)
            for index in indexes
        ]
        gone = await self._connections.run(scripts.DELETE, [self._key(session_id)])
        for index, pair in zip(indexes, scores, strict=True):
            if pair and pair[0] == own:
                await self._connections.run(scripts.FORGET, index, *pair)
        return bool(gone[0] == b"ok")

    @asynccontextmanager
    async def lease(
        self,
        session_id: str,
        *,
        ttl_s: float = 30.0,
        timeout_s: float = 30.0,
        renew: bool = True,
    ) -> AsyncGenerator[Lease]:
        """See `SessionStore.lease`."""
        life = checked_life("ttl_s", ttl_s)
        wait = checked_wait("timeout_s", timeout_s)
        key = self._key(session_id)
        holder = secrets.token_bytes(16)

        async def take() -> Lease | None:
            keys = [key, key + b":fence"]
            [token] = _checked(await self._connections.run(scripts.LEASE, keys, holder, life), None)
            return Lease(int(token)) if int(token) else None

        async def keep(lease: Lease) -> bool:
            found = await self._connections.run(scripts.RENEW, [key], lease.token, life)
            return bool(_checked(found, None)[0])

        async def leave(lease: Lease) -> None:
            # If the session is gone, so is its lease.
            await self._connections.run(scripts.RELEASE, [key], lease.token)

        async with held_lease(take, keep, leave, ttl_s=life, timeout_s=wait, renew=renew) as lease:
            yield lease

    async def close(self) -> None:
        """See `SessionStore.close`."""
        await self._connections.close()

    # --- keys -------------------------------------------------------------------------------------

    def _key(self, session_id: str) -> bytes:
        return self._connections.prefix + b":{" + _hash(b"s" + _bytes(session_id)) + b"}"

    def _index(self, user_id: str | None) -> list[bytes]:
        name = b"all" if user_id is None else _hash(b"u" + _bytes(user_id))
        start = self._connections.prefix + b":{" + name + b"}"
        return [start + b":ids", start + b":due"]

    # --- calls ------------------------------------------------------------------------------------

    async def _session(
        self,
        script: str,
        session_id: str,
        *given: object,
        expected: int | None = None,
        is_write: bool = True,
    ) -> list[Any]:
        keys = [self._key(session_id)]
        found = await self._connections.run(script, keys, *given, is_write=is_write)
        return _checked(found, expected)

    async def _names(self, session_id: str, letter: str) -> list[str]:
        found = await self._session(scripts.NAMES, session_id, letter, is_write=False)
        return sorted(_text(name[1:]) for name in found)

    async def _stage(self, staged: bytes, fields: Sequence[bytes]) -> None:
        at = 0
        while at < len(fields):
            part: list[bytes] = []
            size = 0
            while at < len(fields) and size < _CHUNK_BYTES:
                part += fields[at : at + 2]
                size += len(fields[at + 1])
                at += 2
            await self._connections.run(scripts.STAGE, [staged], *part)

    async def _admit(self, info: SessionInfo) -> None:
        """Enters a session into the indexes; takes out a few that have ended."""
        ends = "" if info.expires_at is None else repr(info.expires_at)
        users = {None, info.user_id}
        for user in users:
            index = self._index(user)
            pairs = await self._connections.run(scripts.ADMIT, index, _bytes(info.session_id), ends)
            ids, scores = pairs[::2], pairs[1::2]
            for one, score, found in zip(ids, scores, await self._infos(ids), strict=True):
                if found is None:
                    await self._connections.run(scripts.FORGET, index, one, score)
                else:
                    later = "" if found.expires_at is None else repr(found.expires_at)
                    await self._connections.run(scripts.DELAY, index, one, score, later)

    async def _infos(self, ids: Iterable[bytes]) -> list[SessionInfo | None]:
        """How sessions stand; None for one that is not there."""

        async def one(name: bytes) -> SessionInfo | None:
            keys = [self._key(_text(name))]
            found = await self._connections.run(scripts.INFO, keys, is_write=False)
            return None if found[0] == b"none" else _info(_checked(found, None))

        return list(await asyncio.gather(*(one(name) for name in ids)))


def _checked(found: list[Any], expected: int | None) -> list[Any]:
    """What a script has found, if all is well."""
    said = found[0]
    if said == b"ok":
        return found[1:]
    if said == b"none":
        raise not_found()
    if said == b"user":
        raise wrong_user()
    if said == b"conflict":
        raise conflict(int(found[1]), expected or 0)
    if said == b"exists":
        raise exists()
    if said == b"lost":
        raise lease_lost()
    if said == b"newer":
        version = int(found[1])
        message = (
            f"the session has format {version}, this satchel knows {scripts.FORMAT}: "
            "use a newer satchel"
        )
        raise StoreError(message, code="schema_newer", value=version, limit=scripts.FORMAT)
    message = (
        f"entry {int(found[1])} of the log is missing: the server lost it, or something else "
        "changed it; restore it from a backup, or rewind the session"
    )
    raise StoreError(message, code="store_corrupt", value=int(found[1]))


def _info(row: Sequence[Any]) -> SessionInfo:
    session_id, user, version, length, created_at, changed_at, expires_at, parent = row
    return SessionInfo(
        _text(session_id),
        None if user is None else _text(user),
        int(version),
        int(length),
        created_at=float(created_at),
        changed_at=float(changed_at),
        expires_at=None if expires_at is None else float(expires_at),
        parent=None if parent is None else _text(parent),
    )


def _packed(entry: Entry) -> bytes:
    key = None if entry.key is None else _bytes(entry.key)
    coding, payload = b"0", entry.payload
    if len(payload) >= _SQUEEZED_BYTES:
        squeezed = zlib.compress(payload, 1)
        if len(squeezed) < len(payload):
            coding, payload = b"z", squeezed
    kind = b"m" if entry.kind == "message" else b"e"
    head = _HEADER.pack(kind, coding, 0 if key is None else len(key) + 1)
    return head + (key or b"") + payload


def _entry(packed: bytes, sequence: int) -> Entry:
    try:
        kind, coding, size = _HEADER.unpack_from(packed)
        start = _HEADER.size
        key = None
        if size:
            key = _text(packed[start : start + size - 1])
            start += size - 1
        payload = packed[start:] if coding == b"0" else zlib.decompress(packed[start:])
    except (struct.error, zlib.error, UnicodeDecodeError):
        message = f"entry {sequence} of {len(packed)} bytes cannot be read"
        raise StoreError(message, code="corrupt_entry", value=sequence) from None
    return Entry("message" if kind == b"m" else "event", payload, key, sequence)


def _fields(entries: Iterable[Entry]) -> list[bytes]:
    """The fields of entries, as the scripts keep them."""
    found: list[bytes] = []
    for entry in entries:
        found += [b"e%d" % entry.sequence, _packed(entry)]
        if entry.key is not None:
            found += [b"k" + _bytes(entry.key), b""]
    return found


def _started(lease: Lease | None) -> tuple[object, object]:
    """What writes begin with: an id of the write, and the token of the lease."""
    return NEW_WRITE, "" if lease is None else lease.token


def _number(value: int | None) -> str:
    version = checked_version(value)
    return "" if version is None else str(version)


def _hash(content: bytes) -> bytes:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=")


def _bytes(text: str) -> bytes:
    # What is looked for may be any text; what is kept was checked.
    return sought("an id", text).encode("utf-8", "surrogatepass")


def _text(content: bytes) -> str:
    return content.decode("utf-8", "surrogatepass")
