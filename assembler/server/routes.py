"""The routes: lists, snapshots, streams, older pages, and what remote writers send.

Not here: their frames (`streams`), who may ask (`guard`), and what the whole is made of (`app`).
"""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote

from msgspec.structs import asdict
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from assembler import __version__
from assembler.engine.errors import LimitError
from assembler.engine.events import Outcome, as_delta
from assembler.server import wire
from assembler.server.answers import Refused, answer, body, count, explained, raw, refusal_of, text
from assembler.server.limits import ServerLimits
from assembler.server.rooms import Room, Rooms
from assembler.server.sources import BusyError, Entry, Source, UnknownError, Writer
from assembler.server.streams import (
    Ask,
    Encoder,
    EventStream,
    ending,
    frames,
    has_nothing,
    protocol_frames,
)

__all__ = ["Authorize", "Hears", "Service"]

Authorize = Callable[[Request, str], bool | Awaitable[bool]]
"""Whether a request may read (GET) or write (POST) one conversation."""
Hears = Callable[[str, str, Any], Awaitable[object]]
"""Takes what a client of a protocol sent: the conversation, the name of the protocol, the body."""
Asked = Callable[[Request, str], Awaitable[Response]]

_CHARACTERS_MAX = 1_000
"""Of a name of a view, a cursor, a place in a list."""
_LIST_USUAL = 50
_PROTOCOLS = "protocols/"
_MARK = b"/conversations/"
_BELOW = re.compile(r"^/conversations/(?P<rest>.*)\Z", re.DOTALL)
"""A name may have line ends, which the usual expression stops at."""


class Service:
    """What all routes of one application share."""

    def __init__(
        self,
        source: Source,
        limits: ServerLimits,
        authorize: Authorize | None,
        view: str | None = None,
        protocols: Mapping[str, Callable[[], Encoder]] = MappingProxyType({}),
        hears: Hears | None = None,
    ) -> None:
        self.source = source
        self.protocols = dict(protocols)
        self.usual_view = view or source.views[0]
        self.limits = limits
        self.rooms = Rooms(source, limits)
        self.ending = asyncio.Event()
        """Set: no stream goes on."""
        self.streams = 0
        self._authorize = authorize
        self.hears = hears
        self._gets: Mapping[str, Asked] = {
            "": self._show,
            "stream": self._stream,
        }
        self._posts: Mapping[str, Asked] = {
            "older": self._older,
            "append": self._append,
            "emit": self._emit,
            "settle": self._settle,
        }

    def routes(self) -> list[BaseRoute]:
        """The routes, below whatever prefix."""
        below = Route(
            "/conversations/{rest:path}", explained(self._conversation), methods=["GET", "POST"]
        )
        below.path_regex = _BELOW
        return [
            Route("/health", explained(self._health), methods=["GET"]),
            Route("/conversations", explained(self._list), methods=["GET"]),
            below,
        ]

    # -- lists ---------------------------------------------------------------------------

    async def _health(self, _: Request) -> Response:
        return answer(
            {
                "status": "ok",
                "version": __version__,
                **self.statistics(),
                "views": list(self.source.views),
                "writable": self.source.writer is not None,
            }
        )

    def statistics(self) -> dict[str, int]:
        counts = self.rooms.statistics()
        return {
            "rooms": counts["rooms"],
            "readers": counts["readers"],
            "streams": self.streams,
        }

    async def _list(self, request: Request) -> Response:
        limits = self.limits
        search = text(request, "search", limits.search_characters_max)
        before = text(request, "before", _CHARACTERS_MAX) or None
        limit = count(request, "limit", _LIST_USUAL, limits.list_conversations_max)
        seen: list[Entry] = []
        scanned = 0
        while True:
            wanted = limit - len(seen)
            part = await self.source.conversations(search=search, before=before, limit=wanted)
            scanned += len(part.conversations)
            seen += [
                each for each in part.conversations if await self.allows(request, each.conversation)
            ]
            before = part.next
            # A source that gives less and could go on has looked at enough for one request.
            is_enough = before is None or len(part.conversations) < wanted
            if is_enough or len(seen) >= limit or scanned >= limits.list_scanned_max:
                return answer({"conversations": [_entry(each) for each in seen], "next": before})

    async def allows(self, request: Request, conversation: str) -> bool:
        """Whether this request may do what it asks for with this conversation."""
        if self._authorize is None:
            return True
        said = self._authorize(request, conversation)
        return bool(await said if inspect.isawaitable(said) else said)

    # -- one conversation ----------------------------------------------------------------

    async def _conversation(self, request: Request) -> Response:
        conversation, action = named(request.scope)
        asked = self._asked(request.method, action)
        if not await self.allows(request, conversation):
            # As if there were none: whether there is one is nobody's business.
            raise unknown()
        return await asked(request, conversation)

    def _asked(self, method: str, action: str) -> Asked:
        """What a request asks for. Raises `Refused`."""
        actions = self._posts if method == "POST" else self._gets
        if action in actions:
            return actions[action]
        if action.startswith(_PROTOCOLS) and (method != "POST" or self.hears is not None):
            return partial(self._protocol, action.removeprefix(_PROTOCOLS))
        known = action in self._posts or action in self._gets
        raise Refused(405 if known else 404, "there is no such route for this method")

    def view(self, request: Request) -> str:
        """The view that a request asks for. Raises `Refused`."""
        views = self.source.views
        view = text(request, "view", _CHARACTERS_MAX) or self.usual_view
        if view not in views:
            raise Refused(400, f"view: expected one of {', '.join(views)}")
        return view

    async def _show(self, request: Request, conversation: str) -> Response:
        view = self.view(request)
        async with self.rooms.enter(conversation) as room:
            log = await room.log(view)
            async with (await room.opened()).subscribe(view) as following:
                snapshot = following.snapshot
                has_more = bool(snapshot.window.get("has_more"))
                cursor = log.cursor(snapshot.revision).encode()
                return raw(
                    b'{"snapshot":%b,"cursor":"%b","has_more":%b}'
                    % (snapshot.encoded, cursor, b"true" if has_more else b"false")
                )

    async def _older(self, _: Request, conversation: str) -> Response:
        most = self.limits.window_events_max
        async with self.rooms.enter(conversation) as room:
            opened = await room.opened()
            async with opened.subscribe(self.usual_view) as following:
                window = following.snapshot.window
            if window["has_more"] and window["last"] - window["first"] >= most:
                raise LimitError(f"older: window_events_max = {most} are loaded")
            return answer({"has_more": await opened.older()})

    async def _stream(self, request: Request, conversation: str) -> Response:
        view = self.view(request)
        cursor = request.headers.get("last-event-id") or text(request, "cursor", _CHARACTERS_MAX)
        heartbeat = self.limits.heartbeat_ms
        return await self._streaming(
            request,
            _Streaming(self, conversation, lambda room: frames(room, view, cursor, heartbeat)),
        )

    async def _protocol(self, name: str, request: Request, conversation: str) -> Response:
        make = self.protocols.get(name)
        if make is None:
            known = ", ".join(sorted(self.protocols)) or "none"
            raise Refused(404, f"protocols: expected one of {known}")
        view, heartbeat = self.view(request), self.limits.heartbeat_ms
        ask = await self._ask(name, request, conversation)
        encoder = make()
        streaming = _Streaming(
            self,
            conversation,
            lambda room: protocol_frames(room, view, encoder, heartbeat, ask),
            ending=lambda _: b"",
            headers=getattr(encoder, "HEADERS", {}),
            is_asked=ask is not None,
        )
        async with self._to_stream(request, conversation) as room:
            if ask is None:
                async with (await room.opened()).subscribe(view) as following:
                    if has_nothing(following.snapshot, make):
                        return Response(status_code=204, headers={"cache-control": "no-store"})
            return streaming

    async def _ask(self, name: str, request: Request, conversation: str) -> Ask | None:
        """What gives the backend what was sent; None: nothing was. Raises `Refused`."""
        if self.hears is None or request.method != "POST":
            return None
        said = await body(request, dict[str, Any], self.limits)
        return partial(self.hears, conversation, name, said)

    async def _streaming(self, request: Request, answer: _Streaming) -> Response:
        async with self._to_stream(request, answer.conversation):
            return answer

    @asynccontextmanager
    async def _to_stream(self, request: Request, conversation: str) -> AsyncGenerator[Room]:
        """What cannot be opened is refused as such, before the stream begins."""
        if request.method == "HEAD":
            raise Refused(405, "a stream has no head without its body")
        self.need_stream()
        async with self.rooms.enter(conversation) as room:
            yield room

    def leave_stream(self) -> None:
        self.streams -= 1

    def need_stream(self) -> None:
        """Raises `BusyError` when no stream may begin."""
        if self.streams >= self.limits.streams_max:
            raise BusyError(f"streams: more than streams_max = {self.limits.streams_max}")
        if self.ending.is_set():
            raise BusyError("the server ends")

    # -- remote writers ------------------------------------------------------------------

    def _writer(self) -> Writer:
        writer = self.source.writer
        if writer is None:
            raise Refused(403, "these conversations can only be read")
        return writer

    async def _append(self, request: Request, conversation: str) -> Response:
        writer = self._writer()
        asked = await body(request, wire.Appending, self.limits)
        events = await writer.append(
            conversation, [asdict(each) for each in asked.drafts], asked.expected_seq
        )
        return answer({"events": list(events)})

    async def _emit(self, request: Request, conversation: str) -> Response:
        writer = self._writer()
        asked = await body(request, wire.Emitting, self.limits)
        if len(asked.deltas) > self.limits.emit_deltas_max:
            most = self.limits.emit_deltas_max
            raise LimitError(f"deltas: expected at most emit_deltas_max = {most}")
        await writer.emit(conversation, [as_delta(asdict(each)) for each in asked.deltas])
        return answer({"taken": len(asked.deltas)})

    async def _settle(self, request: Request, conversation: str) -> Response:
        writer = self._writer()
        asked = await body(request, wire.Settling, self.limits)
        taken = await writer.settle(conversation, asked.attempt, Outcome(asked.outcome))
        return answer({"taken": int(taken)})


Told = Callable[[Room], AsyncGenerator[bytes, None]]


class _Streaming(Response):
    """A stream as an answer. It enters its Room when it is sent."""

    def __init__(
        self,
        service: Service,
        conversation: str,
        told: Told,
        *,
        ending: Callable[[str], bytes] = ending,
        headers: Mapping[str, str] = MappingProxyType({}),
        is_asked: bool = False,
    ) -> None:
        super().__init__()
        self._is_asked = is_asked
        self._service = service
        self.conversation = conversation
        self._told = told
        self._ending = ending
        self._stream_headers = {**_STREAM_HEADERS, **headers}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        service = self._service
        async with AsyncExitStack() as stack:
            try:
                service.need_stream()
                service.streams += 1
                stack.callback(service.leave_stream)
                room = await stack.enter_async_context(service.rooms.enter(self.conversation))
                told = self._told(room)
                stack.push_async_callback(told.aclose)
                if self._is_asked:
                    await anext(told)
            except Exception as error:  # since it was looked at, a moment ago
                await refusal_of(error)(scope, receive, send)
                return
            stream = EventStream(told, service.limits, service.ending, self._ending)
            await stream.send(receive, send, self._stream_headers)


_STREAM_HEADERS = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store",
    "x-accel-buffering": "no",  # a proxy that gathers an answer would make a stream a page
}


def named(scope: Scope, mark: bytes = _MARK) -> tuple[str, str]:
    """The conversation that a path names behind `mark`, and what is asked of it.

    A name is one part of the path, URL-encoded, so that it may hold any text, `/` too. Only the
    path as it came still tells a `/` of a name from one of the path.
    """
    rest: str = scope["path_params"]["rest"]
    whole: bytes = scope.get("raw_path") or b""
    at = whole.find(mark)
    while at >= 0:
        part = whole[at + len(mark) :]
        try:
            if unquote(part.decode("ascii"), errors="strict") == rest:
                return _split(part.decode("ascii"))
        except UnicodeDecodeError:
            break
        at = whole.find(mark, at + 1)
    raise unknown()


def _split(part: str) -> tuple[str, str]:
    name, slash, action = part.partition("/")
    conversation = unquote(name)
    if not conversation or (slash and not action):
        raise unknown()
    return conversation, unquote(action)


def unknown() -> UnknownError:
    return UnknownError("there is no such conversation")


def _entry(entry: Entry) -> dict[str, Any]:
    return {name: getattr(entry, name) for name in entry.__struct_fields__}
