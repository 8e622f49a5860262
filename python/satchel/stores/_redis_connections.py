"""Connections to Redis or Valkey: scripts that are sent again, and how the server keeps data.

A script whose answer was lost is sent again until the time is over; scripts know the writes that
they have done. What the server says may name keys, so errors tell its first word only.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import warnings
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from redis import asyncio as client
from redis import exceptions as answers
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from satchel._arguments import one_of, shown
from satchel.errors import InputError, StoreError
from satchel.stores._write_ids import NEW_WRITE, WriteIds

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Connections"]

_OWN: Final = {
    "prefix": "satchel",
    "checks": "refuse",
    "durability": "process",
    "cluster": "false",
    "timeout_s": "30",
}
"""Our own options of the URL, with what they are by default."""

_OURS_ALONE: Final = frozenset({"protocol", "decode_responses", "encoding", "encoding_errors"})

_SAID: Final = (
    (
        ("OOM", "MISCONF"),
        "store_full",
        "the Redis server has no room left: make room; nothing of this write was kept",
    ),
    (
        ("READONLY",),
        "store_read_only",
        "the Redis server lets only read: use the primary server's address",
    ),
    (
        ("NOAUTH", "NOPERM", "WRONGPASS"),
        "store_refused",
        "the Redis server does not allow it: check user, password and rights",
    ),
    (
        ("BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN", "MOVED", "NOREPLICAS", "TRYAGAIN"),
        "store_unavailable",
        "the Redis server is not ready: try again later",
    ),
    (
        ("WRONGTYPE",),
        "store_corrupt",
        "a key of the store holds something else: give it a prefix of its own in the URL",
    ),
)
"""First words of the server's errors, and what they mean."""

_CLASSES: Final = (
    (answers.OutOfMemoryError, "OOM"),
    (answers.ReadOnlyError, "READONLY"),
    (answers.AuthenticationError, "WRONGPASS"),
    (answers.NoPermissionError, "NOPERM"),
    (answers.BusyLoadingError, "LOADING"),
    (answers.ClusterError, "CLUSTERDOWN"),
    (answers.TryAgainError, "TRYAGAIN"),
    (answers.AskError, "MOVED"),
    (answers.MasterDownError, "MASTERDOWN"),
)
"""Errors whose first word the client takes away."""


class Connections:
    """A client that connects when it is first used, once an event loop.

    Args:
        url: of the server, with our own options in its query.
        most: how many connections there are at most.

    Raises:
        InputError: ``invalid_value`` for a URL that cannot be read.
    """

    def __init__(self, url: str, *, most: int) -> None:
        options, self._url = _split(url)
        self.prefix: Final = options["prefix"].encode()
        self._checks: Final = one_of("checks", options["checks"], ("refuse", "warn", "off"))
        durability = one_of("durability", options["durability"], ("process", "power"))
        self._is_cluster: Final = one_of("cluster", options["cluster"], ("true", "false")) == "true"
        self._is_flushed: Final = durability == "power"
        try:
            self._timeout_s: Final = float(options["timeout_s"])
        except ValueError:
            message = f"timeout_s must be a number, not {shown(options['timeout_s'])}"
            raise InputError(message, code="invalid_value") from None
        if self._is_cluster and self._is_flushed:
            message = "durability=power is for one server, not for a cluster"
            raise InputError(message, code="invalid_value")
        self._most: Final = most
        # Made at once, so that a URL that cannot be read is said to be so at once.
        self._client: Any = self._made()
        self._write_ids = WriteIds()
        self._opened_in: asyncio.AbstractEventLoop | None = None
        self._opening = asyncio.Lock()
        self._is_checked = False
        self._is_closed = False
        self.is_append_only: bool = True

    async def run(
        self, script: str, keys: Sequence[bytes], *given: object, is_write: bool = True
    ) -> Any:  # noqa: ANN401 - whatever the script returns
        """What a script returns; sent again while that may help. `NEW_WRITE` becomes an id.

        Raises:
            StoreError: see `SessionStore`; ``store_unsafe``.
        """
        with self._write_ids.taken() if NEW_WRITE in given else nullcontext() as write:
            sent = [write if one is NEW_WRITE else one for one in given]
            return await self._sent(script, keys, sent, is_write=is_write)

    async def _sent(
        self, script: str, keys: Sequence[bytes], given: Sequence[object], *, is_write: bool
    ) -> Any:  # noqa: ANN401 - as above
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._timeout_s
        pause = 0.01
        while True:
            if self._is_closed:
                message = "the store was closed"
                raise StoreError(message, code="store_closed")
            try:
                async with asyncio.timeout_at(ends):
                    await self._ready()
                    return await self._once(script, keys, given, is_write=is_write)
            except (
                answers.RedisError,
                answers.RedisClusterException,
                OSError,
                TimeoutError,
            ) as error:
                found = _typed(error, self._timeout_s)
                if found.code != "store_unavailable" or ends - loop.time() <= pause:
                    raise found from None
            await asyncio.sleep(pause * random.uniform(0.5, 1.5))  # noqa: S311 - spreads tries
            pause = min(pause * 2, 1.0)

    async def close(self) -> None:
        """Ends the connections."""
        self._is_closed = True
        if self._opened_in is asyncio.get_running_loop():
            self._opened_in = None
            await self._client.aclose()

    async def _once(
        self, script: str, keys: Sequence[bytes], given: Sequence[object], *, is_write: bool
    ) -> Any:  # noqa: ANN401 - as above
        command = (len(keys), *keys, *given)
        digest = hashlib.sha1(script.encode(), usedforsecurity=False).hexdigest()
        if not (is_write and self._is_flushed):
            try:
                return await self._client.evalsha(digest, *command)
            except answers.NoScriptError:
                return await self._client.eval(script, *command)
        patience = max(1, round(self._timeout_s * 1000))
        async with self._client.pipeline(transaction=False) as pipeline:
            # On one connection: the server waits for what this connection has written.
            pipeline.eval(script, *command)
            pipeline.execute_command("WAITAOF", 1, 0, patience)
            found, flushed = await pipeline.execute()
        if int(flushed[0]) < 1:
            raise TimeoutError
        return found

    async def _ready(self) -> None:
        loop = asyncio.get_running_loop()
        if self._opened_in is loop and self._is_checked:
            return
        if self._opened_in is not loop:
            # What is left of a loop that has ended cannot be closed from here.
            self._client, self._opening = self._made(), asyncio.Lock()
            self._opened_in = loop
        async with self._opening:
            if not self._is_checked:
                await self._check()
                self._is_checked = True

    async def _check(self) -> None:
        """Whether the server may lose what it has acknowledged.

        Raises:
            StoreError: ``store_unsafe`` if it may, and ``checks`` is ``refuse``.
        """
        try:
            said: dict[str, Any] = {}
            for section in ("persistence", "memory"):
                said |= _merged(await self._client.info(section))
        except (answers.NoPermissionError, answers.ResponseError):
            said = {}
        self.is_append_only = said.get("aof_enabled") in (1, "1")
        faults: list[str] = []
        if not said:
            faults.append("it does not say how it keeps data (INFO)")
        elif not self.is_append_only:
            faults.append(
                "it keeps no append-only file, so a crash loses sessions (appendonly yes)"
            )
        policy = str(said.get("maxmemory_policy", "noeviction"))
        if policy != "noeviction" and int(said.get("maxmemory", 0)) > 0:
            faults.append(f"when full, it deletes sessions ({shown(policy)}: set noeviction)")
        if not faults or self._checks == "off":
            return
        message = f"the server may lose what it acknowledged: {'; '.join(faults)}"
        if self._checks == "warn":
            warnings.warn(message, RuntimeWarning, stacklevel=2)
            return
        await self._client.aclose()
        message += ". Change that, or accept it with checks=warn in the URL"
        raise StoreError(message, code="store_unsafe")

    def _made(self) -> Any:  # noqa: ANN401 - a client of a server or of a cluster
        settings: dict[str, Any] = {
            "protocol": 2,
            "max_connections": self._most,
            # Sent again by `run`, which knows what may be.
            "retry": Retry(NoBackoff(), 0),
            "socket_timeout": self._timeout_s,
            "socket_connect_timeout": min(10.0, self._timeout_s),
        }
        try:
            if self._is_cluster:
                return client.RedisCluster.from_url(self._url, **settings)
            settings["timeout"] = self._timeout_s
            # Whoever finds all connections in use waits for one.
            kind: Any = client.BlockingConnectionPool
            pool = kind.from_url(self._url, **settings)
            # Made, not opened: an option that there is none of is said to be so at once.
            pool.connection_class(**pool.connection_kwargs)
            return client.Redis.from_pool(pool)
        except (ValueError, TypeError):
            # The reason may repeat the URL, and that may hold a password.
            message = "the redis:// URL cannot be read"
            raise InputError(message, code="invalid_value") from None


def _split(url: str) -> tuple[dict[str, str], str]:
    """Our own options, and the URL without them."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        message = "the redis:// URL cannot be read"
        raise InputError(message, code="invalid_value") from None
    options, others = dict(_OWN), list[tuple[str, str]]()
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name in options:
            options[name] = value
        elif name not in _OURS_ALONE:
            others.append((name, value))
    scheme = {"valkey": "redis", "valkeys": "rediss"}.get(parts.scheme, parts.scheme)
    return options, urlunsplit(parts._replace(scheme=scheme, query=urlencode(others)))


def _merged(said: dict[str, Any]) -> dict[str, Any]:
    """What a server says, or the nodes of a cluster: of several, whoever is least safe."""
    nodes = [cast("dict[str, Any]", one) for one in said.values() if isinstance(one, dict)]
    if not nodes or "aof_enabled" in said or "maxmemory" in said:
        return said
    merged: dict[str, Any] = {}
    for node in nodes:
        if "aof_enabled" in node:
            merged["aof_enabled"] = min(int(node["aof_enabled"]), merged.get("aof_enabled", 1))
        if node.get("maxmemory_policy", "noeviction") != "noeviction" or not merged:
            merged |= {
                name: node[name] for name in ("maxmemory", "maxmemory_policy") if name in node
            }
    return merged


def _typed(error: Exception, timeout_s: float) -> StoreError:
    """The error without what the server said."""
    if isinstance(error, (TimeoutError, answers.TimeoutError)):
        message = f"the Redis server gave no answer within {timeout_s:g} s"
        return StoreError(message, code="store_unavailable")
    found = re.match(r"[A-Z]{2,20}\b", str(error))
    word = found[0] if found else type(error).__name__
    word = next((said for one, said in _CLASSES if isinstance(error, one)), word)
    for words, code, message in _SAID:
        if word in words:
            return StoreError(f"{message} ({word})", code=code)
    if isinstance(error, answers.ResponseError):
        message = f"the server refused the command ({word}): is it Redis 5 or Valkey, or newer?"
        return StoreError(message, code="store_refused")
    message = f"the Redis server cannot be reached ({type(error).__name__}): try again later"
    return StoreError(message, code="store_unavailable")
