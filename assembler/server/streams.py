"""A view as an event stream that can be resumed: a snapshot, then patches, then why it ended.

Here live the frames and how a slow reader is let go. Not here: whose stream it is (`routes`), and
what a slow reader is sent (`live.feed`).

A frame is `id: CURSOR`, `event: snapshot | patch`, `data: JSON`, on one line each. A stream that
the server ends says so first: `event: end`, with `{"reason": closed | slow | error}`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Protocol

from starlette.types import Receive, Send

from assembler.codec import encode
from assembler.engine.errors import AssemblerError
from assembler.engine.patches import Patch, Snapshot
from assembler.live import SharedPatch, SharedSnapshot, Subscription
from assembler.server.limits import ServerLimits
from assembler.server.rooms import PatchLog, Room

__all__ = ["Ask", "Encoder", "EventStream", "frames", "has_nothing", "protocol_frames"]

_log = logging.getLogger("assembler.server")
_BEGIN = b"retry: 1000\n\n"
_HEARTBEAT = b":\n\n"
_PIECE_BYTES = 1 << 16


def frame(kind: bytes, cursor: str, data: bytes) -> bytes:
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (cursor.encode(), kind, data)


def ending(reason: str) -> bytes:
    """The last frame. It has no id: who comes back asks for what follows the last patch."""
    return b'event: end\ndata: {"reason":"%b"}\n\n' % reason.encode()


async def frames(
    room: Room, view: str, cursor: str | None, heartbeat_ms: float
) -> AsyncGenerator[bytes, None]:
    """The frames of one reader, who has seen what `cursor` names; comments when nothing happens.

    Raises what subscribing and following raise.
    """
    log = await room.log(view)
    opened = await room.opened()
    async with opened.subscribe(view) as following:
        for each in await _caught_up(log, following, cursor):
            yield each
        heartbeat = heartbeat_ms / 1_000
        while True:
            try:
                async with asyncio.timeout(heartbeat):
                    patch = await anext(following, None)
            except TimeoutError:
                yield _HEARTBEAT
                continue
            if patch is None:
                return
            yield frame(b"patch", log.cursor(patch.revision_to), patch.encoded)


Ask = Callable[[], Awaitable[object]]
"""Gives a backend what a client said."""


async def protocol_frames(
    room: Room, view: str, encoder: Encoder, heartbeat_ms: float, ask: Ask | None = None
) -> AsyncGenerator[bytes, None]:
    """What one client of a protocol is sent, from a snapshot on; nothing first, when it is opened.

    What was sent before the connection was lost is told by no cursor, but by the protocol: a client
    that comes in the middle is brought to where the view is. With `ask` the client said something,
    which is given on as soon as nothing of what comes of it can be missed. Where a protocol has
    responses that end, this ends with the first one that did.
    """
    ends: Callable[[Any], bool] | None = getattr(encoder, "is_last", None)
    respond = getattr(encoder, "respond", None)
    if respond is not None:
        respond(asked=ask is not None)
    async with (await room.opened()).subscribe(view) as following:
        update: SharedSnapshot | SharedPatch | None = following.snapshot
        begun = [] if ask is None else [*encoder.feed(following.snapshot)]
        if ask is not None:
            await ask()
            update = None
        yield b""
        for each in begun:
            yield _data(each)
        while True:
            for each in () if update is None else encoder.feed(update):
                yield _data(each)
                if ends is not None and ends(each):
                    yield getattr(encoder, "DONE", b"")
                    return
            try:
                async with asyncio.timeout(heartbeat_ms / 1_000):
                    update = await anext(following)
            except TimeoutError:
                update = None
                yield _HEARTBEAT
            except StopAsyncIteration:
                return


def has_nothing(snapshot: Snapshot, make: Callable[[], Encoder]) -> bool:
    """Whether a client that only looks would wait for a response that nobody begins."""
    encoder = make()
    if getattr(encoder, "is_last", None) is None or snapshot.open is not None:
        return False
    encoder.respond(asked=False)  # type: ignore[attr-defined]
    return not encoder.feed(snapshot)


def _data(frame: Any) -> bytes:
    return b"data: %b\n\n" % encode(frame)


async def _caught_up(log: PatchLog, following: Subscription, cursor: str | None) -> list[bytes]:
    """What leads a reader to where `following` begins: what they missed, or all."""
    snapshot = following.snapshot
    seen = log.revision(cursor)
    if seen is not None:
        await log.reach(snapshot.revision)
        missed = log.between(seen, snapshot.revision)
        if missed is not None:
            return [frame(b"patch", log.cursor(each.revision_to), each.encoded) for each in missed]
    return [frame(b"snapshot", log.cursor(snapshot.revision), snapshot.encoded)]


class Encoder(Protocol):
    """Says in the frames of a protocol what a view shows.

    Looked for as well, and used where they are there: `HEADERS`, those of its answers; `is_last`,
    whether a frame ends a response, and `DONE`, the bytes behind it; `respond(asked=…)`, called
    before the first `feed`: one response follows, to a client that said something, or to one that
    only looks.
    """

    def feed(self, update: Snapshot | Patch) -> Iterable[Any]:
        """The frames that a client needs now, as plain JSON values."""


class EventStream:
    """Sends frames as the answer to one request, until the reader leaves or `end` is set.

    A reader that takes nothing for `stall_ms_max` is unsubscribed, which frees what is held for
    it. Should it read on within the same time again, it is told why (`slow`); else the connection
    is given up. `ending(reason)` is the last frame. Long frames are sent in pieces, so that a
    connection holds no more of them than one.
    """

    def __init__(
        self,
        source: AsyncGenerator[bytes, None],
        limits: ServerLimits,
        end: asyncio.Event,
        ending: Callable[[str], bytes] = ending,
    ) -> None:
        self._source = source
        self._ending = ending
        self._stall = limits.stall_ms_max / 1_000
        self._lasts = limits.stream_ms_max / 1_000
        self._end = end
        self._rest = memoryview(b"")
        """What is still to be sent of the frame that was begun."""

    async def send(self, receive: Receive, send: Send, headers: Mapping[str, str]) -> None:
        """Answer a request. Returns when the stream is over, however it ended."""
        head = [(name.encode("latin-1"), said.encode("latin-1")) for name, said in headers.items()]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        told = asyncio.ensure_future(self._tell(send))
        left = asyncio.ensure_future(_left(receive))
        ended = asyncio.ensure_future(self._end.wait())
        waiting = asyncio.wait(
            [told, left, ended], timeout=self._lasts, return_when=asyncio.FIRST_COMPLETED
        )
        try:
            await waiting
            if told.done():
                told.result()
            elif not left.done():
                await _cancelled(told)
                await self._finish(send, "closed")
        except TimeoutError:
            _log.info("a reader that takes nothing was given up")
        finally:
            await _cancelled(told, left, ended)

    async def _tell(self, send: Send) -> None:
        async with aclosing(self._source) as source:
            reason = await self._tell_frames(source, send)
        await self._finish(send, reason)

    async def _tell_frames(self, source: AsyncGenerator[bytes, None], send: Send) -> str:
        """Send them all; gives why they end."""
        try:
            await self._put(send, _BEGIN)
            async for each in source:
                await self._put(send, each)
        except TimeoutError:
            return "slow"
        except AssemblerError as error:
            _log.warning("a stream ended: %s", type(error).__name__)
            return "error"
        return "closed"

    async def _put(self, send: Send, frame: bytes) -> None:
        if len(frame) <= _PIECE_BYTES:
            await _send(send, frame, self._stall)
            return
        await self._put_pieces(send, memoryview(frame))

    async def _put_pieces(self, send: Send, rest: memoryview) -> None:
        while rest:
            await _send(send, bytes(rest[:_PIECE_BYTES]), self._stall)
            rest = self._rest = rest[_PIECE_BYTES:]

    async def _finish(self, send: Send, reason: str) -> None:
        """The rest of what was begun, and the last frame. Raises `TimeoutError`."""
        await self._put_pieces(send, self._rest)
        await _send(send, self._ending(reason), self._stall, last=True)


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _send(send: Send, body: bytes, seconds: float, *, last: bool = False) -> None:
    async with asyncio.timeout(seconds):
        await send(_body(body, last=last))


def _body(body: bytes, *, last: bool = False) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": not last}


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
