"""The description of the interface (OpenAPI 3.1), written from the types of `wire`.

Not here: what the routes do (`routes`), and the types (`schemas`).
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from assembler import __version__
from assembler.server.answers import answer
from assembler.server.routes import Service
from assembler.server.schemas import schemas
from assembler.server.sources import BEFORE

__all__ = ["describe", "description_route"]

_PREFIX = "#/components/schemas/"


def describe(service: Service) -> dict[str, Any]:
    """The description, as plain JSON values. Made anew at each call."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "conversation-assembler",
            "version": __version__,
            "description": "Conversations as views: snapshots, and streams of what changes.",
        },
        "paths": _paths(service),
        "components": {
            "schemas": schemas(_PREFIX + "{name}"),
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"token": []}],
    }


def _paths(service: Service) -> dict[str, Any]:
    limits = service.limits
    one = "/conversations/{conversation}"
    view = _query("view", _text(enum=[*service.source.views]), "what is shown of it")
    cursor = "what was seen: the id of a frame, or a cursor"
    return {
        "/health": {"get": _operation("health", "That it answers", "Health")},
        "/conversations": {
            "get": _operation(
                "list",
                "The conversations that may be seen, the newest first",
                "Listing",
                _query("search", _text(limits.search_characters_max), "in the name or the title"),
                _query(
                    "before",
                    _text(pattern=BEFORE),
                    "the `next` of the list that this one goes on from",
                ),
                _query("limit", _number(limits.list_conversations_max), "at most so many"),
                refusals=(400,),
            )
        },
        one: {"get": _of_one("show", "What a view shows now", "Shown", view)},
        f"{one}/stream": {
            "get": _streaming(
                view,
                _query("cursor", _text(), cursor),
                _header("Last-Event-ID", _text(), f"{cursor}; it goes before `cursor`"),
            )
        },
        f"{one}/protocols/{{protocol}}": _protocols(service, view),
        f"{one}/older": {"post": _of_one("older", "Load the page before what is loaded", "Older")},
        f"{one}/append": {"post": _writing("append", "Store events", "Appending", "Appended")},
        f"{one}/emit": {"post": _writing("emit", "Show deltas", "Emitting", "Taken")},
        f"{one}/settle": {"post": _writing("settle", "End an attempt", "Settling", "Taken")},
    }


def _operation(
    name: str, about: str, gives: str, *parameters: dict[str, Any], refusals: tuple[int, ...] = ()
) -> dict[str, Any]:
    refused = {str(each): _json("Refusal", "why not") for each in (401, 403, 421, 429, *refusals)}
    return {
        "operationId": name,
        "summary": about,
        "parameters": [*parameters],
        "responses": {"200": _json(gives, about), **refused},
    }


def _of_one(
    name: str, about: str, gives: str, *parameters: dict[str, Any], refusals: tuple[int, ...] = ()
) -> dict[str, Any]:
    named = {
        "name": "conversation",
        "in": "path",
        "required": True,
        "description": "its name, URL-encoded: any text",
        "schema": {"type": "string", "minLength": 1},
    }
    usual = (400, 404, 413, 503)
    return _operation(name, about, gives, named, *parameters, refusals=(*usual, *refusals))


def _streaming(*parameters: dict[str, Any]) -> dict[str, Any]:
    about = "A snapshot, or what was missed; then patches, as they come"
    operation = _of_one("stream", about, "Patch", *parameters)
    frames = (
        "Frames `snapshot` (a Snapshot) and `patch` (a Patch), each with a cursor as its `id`; "
        "the last one is `end` (an End) where the server ends it."
    )
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    operation["responses"]["200"] = {"description": frames, "content": content}
    return operation


def _protocols(service: Service, view: dict[str, Any]) -> dict[str, Any]:
    schema = _text(enum=[*service.protocols])
    name = {"name": "protocol", "in": "path", "required": True, "schema": schema}
    looks = _speaking("speak", "What the view shows, in the frames of a protocol", name, view)
    looks["responses"]["204"] = {"description": "there is nothing to show, and nothing goes on"}
    if service.hears is None:
        return {"get": looks}
    hears = _speaking("hear", "What a client of a protocol says; what comes of it", name, view)
    content = {"application/json": {"schema": {"type": "object"}}}
    hears["requestBody"] = {"required": True, "content": content}
    for status in ("408", "415"):
        hears["responses"][status] = _json("Refusal", "why not")
    return {"get": looks, "post": hears}


def _speaking(operation_id: str, about: str, *parameters: dict[str, Any]) -> dict[str, Any]:
    operation = _of_one(operation_id, about, "Patch", *parameters)
    content = {"text/event-stream": {"schema": {"type": "string"}}}
    operation["responses"]["200"] = {"description": "One frame a `data:`", "content": content}
    return operation


def _writing(name: str, about: str, takes: str, gives: str) -> dict[str, Any]:
    operation = _of_one(name, about, gives, refusals=(408, 409, 415))
    operation["requestBody"] = {"required": True, "content": _content(takes)}
    return operation


def _json(name: str, about: str) -> dict[str, Any]:
    return {"description": about, "content": _content(name)}


def _content(name: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": _PREFIX + name}}}


def _query(name: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "description": about, "schema": schema}


def _header(name: str, schema: dict[str, Any], about: str) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": about, "schema": schema}


def _text(most: int | None = None, **more: Any) -> dict[str, Any]:
    limit = {} if most is None else {"maxLength": most}
    return {"type": "string", **limit, **more}


def _number(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


def description_route(service: Service) -> Route:
    """The route that gives it. It is made once."""
    made = answer(describe(service))

    async def description(_: Request) -> Response:
        return made

    return Route("/openapi.json", description, methods=["GET"])
