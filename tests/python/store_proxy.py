"""A proxy before a server, for tests: it loses connections and answers, or says nothing."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

__all__ = ["Proxy", "proxied"]


class Proxy:
    """Passes bytes on between clients and a server.

    Attributes:
        port: where it listens, on this machine.
        swallows: the next answer is lost, and its connection with it.
        lost: how many answers were lost.
    """

    def __init__(self, connect: Callable[[], Awaitable[Streams]]) -> None:
        self._connect = connect
        self._writers: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.swallows = False
        self._speaks = asyncio.Event()
        self._speaks.set()
        self.lost = 0

    def fall_silent(self) -> None:
        """Passes nothing on before `speak`."""
        self._speaks.clear()

    def speak(self) -> None:
        """Passes everything on, also what came in the meantime."""
        self._speaks.set()

    def cut(self) -> None:
        """Ends all connections."""
        for writer in self._writers:
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One client."""
        try:
            back, forth = await self._connect()
        except OSError:
            writer.transport.abort()
            return
        both = {writer, forth}
        self._writers |= both
        tasks = [
            asyncio.create_task(self._pass(reader, forth, is_answer=False)),
            asyncio.create_task(self._pass(back, writer, is_answer=True)),
        ]
        try:
            # One direction ends with the other.
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            for one in both:
                one.transport.abort()
            self._writers -= both

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_answer: bool
    ) -> None:
        with contextlib.suppress(OSError):
            while content := await reader.read(65_536):
                await self._speaks.wait()
                if is_answer and self.swallows:
                    self.swallows = False
                    self.lost += 1
                    return
                writer.write(content)
                await writer.drain()


@asynccontextmanager
async def proxied(connect: Callable[[], Awaitable[Streams]]) -> AsyncGenerator[Proxy]:
    """A proxy before what ``connect`` connects to."""
    proxy = Proxy(connect)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        proxy.speak()
        server.close()
        proxy.cut()
        await asyncio.sleep(0.02)
