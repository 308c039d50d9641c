"""The application: routes around one source, to be mounted in any backend or served by itself.

Not here: the routes (`routes`), and an address (`serving`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from assembler import plugins
from assembler.server.answers import refusal
from assembler.server.guard import LOOPBACK, Guard
from assembler.server.inspecting.travels import Inspecting
from assembler.server.inspector import inspector_routes
from assembler.server.limits import ServerLimits
from assembler.server.openapi import description_route
from assembler.server.routes import Authorize, Hears, Service
from assembler.server.sources import Source
from assembler.server.streams import Encoder

__all__ = ["ServerApp", "create_app"]


class ServerApp:
    """An ASGI application. Made by `create_app`.

    Mounted, it opens nothing by itself; leaving its block (or `aclose`) ends every stream and
    closes what it has opened. Served alone it does so when the server stops.
    """

    def __init__(
        self, service: Service, guard: Guard, inspecting: Inspecting | None = None
    ) -> None:
        self.service = service
        self._app = guard
        inner = guard.app = Starlette(
            routes=[
                *service.routes(),
                description_route(service),
                *inspector_routes(service, inspecting),
            ],
            exception_handlers={HTTPException: _no_route},
        )
        inner.router.redirect_slashes = False  # there is one address for each thing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        else:
            await self._app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.shutdown":
                await self.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return
            await send({"type": "lifespan.startup.complete"})

    def end_streams(self) -> None:
        """End every stream, each with its last event; none is begun any more.

        For a server that waits for its requests when it stops: call it before.
        """
        self.service.ending.set()

    async def aclose(self) -> None:
        """End every stream, and close every conversation that is open here."""
        self.end_streams()
        await self.service.rooms.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def statistics(self) -> dict[str, int]:
        """Counts for an operator: open `rooms`, those who read (`readers`), `streams`."""
        return self.service.statistics()


async def _no_route(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    return refusal(status, "there is nothing here that answers to this method")


def create_app(  # noqa: PLR0913 - given by name
    source: Source,
    *,
    limits: ServerLimits | None = None,
    authorize: Authorize | None = None,
    token: str | None = None,
    hosts: tuple[str, ...] | None = LOOPBACK,
    origins: tuple[str, ...] = (),
    view: str | None = None,
    inspecting: Inspecting | None = None,
    protocols: Mapping[str, Callable[[], Encoder]] | None = None,
    hears: Hears | None = None,
) -> ServerApp:
    """An application that shows the conversations of `source`; the source stays its owner's.

    `authorize(request, conversation)` says, plainly or awaited, whether a request may read (`GET`)
    or write (`POST`) a conversation; what it may not is unknown to it, and in no list. `token`:
    whoever asks must have it. `hosts` are the names under which it answers (None: any, for a
    framework that looks at them itself); `origins` those of other pages that may read it. `view` is
    what is shown unless asked; the first of the source when left out. `inspecting` opens the past
    and the inside of conversations to the page, raw events too; without it the page shows what
    every client sees. `protocols` make encoders, one for each client, by name; when left out, those
    that are installed. `hears(conversation, protocol, body)` is awaited with what a client of a
    protocol sends (`POST`), and is to begin what comes of it; what it raises is the answer. Without
    it nothing can be sent there.
    """
    if protocols is None:
        protocols = {name: plugins.protocol(name) for name in plugins.names("protocols")}
    held = limits or ServerLimits()
    service = Service(source, held, authorize, view, protocols, hears)
    return ServerApp(service, Guard(token, hosts, origins, held), inspecting)
