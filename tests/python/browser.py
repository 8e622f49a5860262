"""A page in headless Chromium, asked over the pipe of its DevTools protocol."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome")


@dataclass
class Browser:
    """One tab; ``errors`` are what its console and its scripts complained about."""

    reader: IO[bytes]
    writer: IO[bytes]
    session: str | None = None
    number: int = 0
    errors: list[str] = field(default_factory=list[str])
    requests: list[str] = field(default_factory=list[str])
    seen: set[str] = field(default_factory=set[str])

    def send(self, method: str, **params: Any) -> Any:
        """Calls a method and waits for its result."""
        self.number += 1
        message: dict[str, Any] = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        self.writer.write(json.dumps(message).encode() + b"\0")
        self.writer.flush()
        while True:
            answer = self._next()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer["error"]
                return answer["result"]

    def open(self, path: Path) -> None:
        """Loads a file and waits until it is there."""
        self.seen.clear()
        self.send("Page.navigate", url=path.as_uri())
        while "Page.loadEventFired" not in self.seen:
            self._next()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def prefer(self, scheme: str) -> None:
        """Sets the colour scheme that the person prefers."""
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.send("Emulation.setEmulatedMedia", features=[feature])

    def attach(self) -> None:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def _next(self) -> dict[str, Any]:
        message = bytearray()
        while not message.endswith(b"\0"):
            byte = self.reader.read(1)
            assert byte, "the browser went away"
            message += byte
        told: dict[str, Any] = json.loads(message[:-1])
        method, params = told.get("method", ""), told.get("params", {})
        self.seen.add(method)
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning"}:
            self.errors.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.errors.append(str(params["entry"]["text"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        return told


@contextmanager
def browser() -> Generator[Browser]:
    """A tab of a browser of its own; skips where there is none."""
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no Chromium: `make browser` installs it on Debian")
    to_browser, from_browser = os.pipe(), os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        # The protocol's pipe is on descriptors 3 and 4; the shell puts ours there.
        script = f'exec "$@" 3<&{to_browser[0]} 4>&{from_browser[1]}'
        options = (
            "--headless=new",
            "--no-sandbox",  # the tests may run as root
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--window-size=1200,1600",
            f"--user-data-dir={profile}",
            "--remote-debugging-pipe",
        )
        process = subprocess.Popen(  # noqa: S603 - the program that was just found
            ["/bin/bash", "-c", script, "browser", program, *options],
            pass_fds=(to_browser[0], from_browser[1]),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser[0])
        os.close(from_browser[1])
        with open(to_browser[1], "wb") as writer, open(from_browser[0], "rb") as reader:  # noqa: PTH123 - descriptors, not paths
            try:
                tab = Browser(reader, writer)
                tab.attach()
                yield tab
            finally:
                process.terminate()
                process.wait(timeout=30)
