"""An application at an address: uvicorn, as `assembler serve` runs it.

Not here: the application (`app`) and the command line (`cli.serve`).
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import uvicorn

from assembler.server.app import ServerApp

__all__ = ["bound", "serve"]

_LEAVING_SECONDS = 5
_BACKLOG = 1024


def bound(host: str, port: int) -> socket.socket:
    """A socket at an address; port 0 is any that is free. Raises `OSError`."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(_BACKLOG)
        made.setblocking(False)
    except OSError:
        made.close()
        raise
    return made


class _Server(uvicorn.Server):
    """Ends its streams before it waits for its requests, so that it stops at once."""

    def __init__(self, app: ServerApp, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._app = app
        self._ready = ready

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end it in order, which is no fault to be told again afterwards."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        loop = asyncio.get_running_loop()
        signals = (signal.SIGINT, signal.SIGTERM)
        for each in signals:
            loop.add_signal_handler(each, self.handle_exit, each, None)
        try:
            yield
        finally:
            for each in signals:
                loop.remove_signal_handler(each)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.end_streams()
        await super().shutdown(sockets)


async def serve(
    app: ServerApp, at: socket.socket, ready: Callable[[], None] = lambda: None
) -> None:
    """Serve until Ctrl-C, SIGTERM or cancellation; `ready` is called when it answers.

    Access is told to the log `assembler.server`, without what was asked for behind a `?`.
    """
    config = uvicorn.Config(
        app,
        access_log=False,
        log_level="warning",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=_LEAVING_SECONDS,
        lifespan="on",
        ws="none",
    )
    server = _Server(app, config, ready)
    running = asyncio.ensure_future(server.serve(sockets=[at]))
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        server.should_exit = True
        await running
        raise
