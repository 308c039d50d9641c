"""The description of the interface (OpenAPI 3.1), written from the types of `wire`.

Not here: what the routes do (`routes`).
"""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assembler import __version__
from assembler.server import wire
from assembler.server.answers import answer
from assembler.server.routes import Service

__all__ = ["describe", "description_route", "schemas"]

_TYPES = (
    wire.Snapshot,
    wire.Patch,
    wire.End,
    wire.Listing,
    wire.Shown,
    wire.Older,
    wire.Appending,
    wire.Appended,
    wire.Emitting,
    wire.Settling,
    wire.Taken,
    wire.Draft,
    wire.Delta,
    wire.Refusal,
    wire.Health,
)


def schemas(template: str = "#/components/schemas/{name}") -> dict[str, Any]:
    """The JSON Schema of every type on the wire, by name."""
    return msgspec.json.schema_components(_TYPES, ref_template=template)[1]


def describe(service: Service | None = None) -> dict[str, Any]:
    """The description, as plain JSON values."""
    del service
    return {
        "openapi": "3.1.0",
        "info": {"title": "conversation-assembler", "version": __version__},
        "paths": {},
        "components": {"schemas": schemas()},
    }


def description_route(service: Service) -> Route:
    """The route that gives it. It is made once."""
    made = answer(describe(service))

    async def description(_: Request) -> Response:
        return made

    return Route("/openapi.json", description, methods=["GET"])
