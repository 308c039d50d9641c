"""The inspector: a page, and what it asks for that no other client does.

Here live the page's files (in `page/`), and moments, what was shown at one of them, and what is
behind a Node. Not here: the routes that every client reads (`routes`), and time travel itself
(`inspecting`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from assembler.engine.errors import LimitError
from assembler.server.answers import Refused, answer, explained, raw, text
from assembler.server.inspecting.behind import Behind
from assembler.server.inspecting.travels import Inspecting, Travels
from assembler.server.routes import Service, named, unknown

__all__ = ["inspector_routes"]

_MEDIA = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}
_MODULE = "plugin.js"
_NO_MODULE = b"// This catalog has no module of its own.\nexport {};\n"
_MARK = b"/inspect/"
_CHARACTERS_MAX = 4_000
_DIGITS_MAX = 9


def inspector_routes(service: Service, inspecting: Inspecting | None = None) -> list[BaseRoute]:
    """The page and what it alone asks for; without `inspecting` the page knows no past."""
    page = _Page(b"" if inspecting is None else inspecting.module)
    routes: list[BaseRoute] = [
        Route("/", page.index, methods=["GET"]),
        Route("/page/{name:path}", page.file, methods=["GET"]),
    ]
    if inspecting is not None:
        looking = _Looking(service, Travels(inspecting))
        routes.append(Route("/inspect/{rest:path}", explained(looking.look), methods=["GET"]))
    return routes


class _Page:
    """The files of the page. Browsers ask each time whether they still have the newest."""

    def __init__(self, module: bytes) -> None:
        self._module = module or _NO_MODULE

    async def index(self, request: Request) -> Response:
        return _file(request, "index.html", _files()["index.html"])

    async def file(self, request: Request) -> Response:
        name = request.path_params["name"]
        content = self._module if name == _MODULE else _files().get(name)
        return Response(status_code=404) if content is None else _file(request, name, content)


def _file(request: Request, name: str, content: bytes) -> Response:
    tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    return Response(content, headers=headers, media_type=_MEDIA[name.rpartition(".")[2]])


@cache
def _files() -> Mapping[str, bytes]:
    """All files of the page that a browser may have, by name."""
    return dict(_below(files("assembler.server") / "page", ""))


def _below(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for each in folder.iterdir():
        if each.is_dir():
            found += _below(each, f"{prefix}{each.name}/")
        elif each.name.rpartition(".")[2] in _MEDIA:
            found.append((prefix + each.name, each.read_bytes()))
    return found


class _Looking:
    """What is asked about one conversation: `moments`, `at` and `node`."""

    def __init__(self, service: Service, travels: Travels) -> None:
        self._service = service
        self._travels = travels
        self._actions: Mapping[str, Callable[[Request, str], Coroutine[Any, Any, Response]]] = {
            "moments": self._moments,
            "at": self._at,
            "node": self._node,
        }

    async def look(self, request: Request) -> Response:
        conversation, action = named(request.scope, _MARK)
        if action not in self._actions:
            raise Refused(404, "there is no such route")
        if not await self._service.allows(request, conversation):
            raise unknown()
        return await self._unless_ending(self._actions[action](request, conversation))

    async def _unless_ending(self, looking: Coroutine[Any, Any, Response]) -> Response:
        """What is asked, unless the server stops first: a pass may last longer than it waits."""
        asked = asyncio.ensure_future(looking)
        ending = asyncio.ensure_future(self._service.ending.wait())
        try:
            await asyncio.wait([asked, ending], return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return asked.result()
            self._travels.give_up()
            raise Refused(503, "the server stops")
        finally:
            asked.cancel()
            ending.cancel()
            await asyncio.gather(asked, ending, return_exceptions=True)

    async def _moments(self, _: Request, conversation: str) -> Response:
        """Every moment: `[op, type, text, time, marks]`, the first before anything happened.

        None, and why, where there are too many.
        """
        try:
            travel = (await self._travels.newest(conversation)).travel
        except LimitError as fault:
            return answer({"moments": [], "views": self._service.source.views, "fault": str(fault)})
        moments = [
            [each.op, each.type, each.text, each.time, each.marks] for each in travel.moments
        ]
        return answer({"moments": moments, "views": travel.views, "fault": None})

    async def _at(self, request: Request, conversation: str) -> Response:
        """What a view showed at a moment: all of it, or what differs from the moment `from`.

        The answer is a Snapshot or a Patch; its revisions are moments.
        """
        behind = await self._travels.known(conversation)
        travel, encoding = behind.travel, behind.encoding
        view, at = self._service.view(request), _number(request, "at")
        if at is None:
            raise Refused(400, "at: expected a moment")
        before = _number(request, "from")
        if before is None:
            return raw(encoding.snapshot(travel.snapshot(at, view)))
        return raw(encoding.patch(travel.patch(before, at, view)))

    async def _node(self, request: Request, conversation: str) -> Response:
        behind = await self._travels.known(conversation)
        view, key = self._service.view(request), text(request, "key", _CHARACTERS_MAX)
        moment = _number(request, "at")
        if moment is None:
            # Now: what has happened since the Travel was made counts too.
            behind = await self._travels.newest(conversation)
            moment = behind.travel.last
        told = await asyncio.to_thread(_behind, behind, key, moment, view)
        if told is None:
            raise Refused(404, "there is no such Node at this moment")
        return answer(told)


def _behind(behind: Behind, key: str, moment: int, view: str) -> dict[str, object] | None:
    if moment > behind.travel.last:
        raise Refused(400, f"at: expected at most {behind.travel.last}")
    return behind.node(key, moment, view)


def _number(request: Request, name: str) -> int | None:
    value = request.query_params.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdecimal() and len(value) <= _DIGITS_MAX):
        raise Refused(400, f"{name}: expected the number of a moment")
    return int(value)
