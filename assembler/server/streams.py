"""A view as an event stream that can be resumed: a snapshot, then patches, then why it ended.

Here live the frames and how a slow reader is let go. Not here: whose stream it is (`routes`), and
what a slow reader is sent (`live.feed`).

A frame is `id: CURSOR`, `event: snapshot | patch`, `data: JSON`, on one line each. A stream that
the server ends says so first: `event: end`, with `{"reason": closed | slow | error}`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from starlette.types import Receive, Send

from assembler.engine.errors import AssemblerError
from assembler.live import Subscription
from assembler.server.limits import ServerLimits
from assembler.server.rooms import PatchLog, Room

__all__ = ["EventStream", "frames"]

_log = logging.getLogger("assembler.server")
_BEGIN = b"retry: 1000\n\n"
_HEARTBEAT = b":\n\n"


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
        revision = following.snapshot.revision
        for each in await _caught_up(log, following, cursor):
            yield each
        log_cursor = log.cursor
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
            revision = patch.revision_to
            yield frame(b"patch", log_cursor(revision), patch.encoded)


async def _caught_up(log: PatchLog, following: Subscription, cursor: str | None) -> list[bytes]:
    """What leads a reader to where `following` begins: what they missed, or all."""
    snapshot = following.snapshot
    seen = log.revision(cursor)
    if seen is not None and seen <= snapshot.revision:
        await log.reach(snapshot.revision)
        missed = log.between(seen, snapshot.revision)
        if missed is not None:
            return [frame(b"patch", log.cursor(each.revision_to), each.encoded) for each in missed]
    return [frame(b"snapshot", log.cursor(snapshot.revision), snapshot.encoded)]


class EventStream:
    """Sends frames as the answer to one request, until the reader leaves or `end` is set.

    A reader that takes nothing for `stall_ms_max` is unsubscribed, which frees what is held for
    it. Should it read on within the same time again, it is told why (`slow`); else the connection
    is given up.
    """

    def __init__(
        self, source: AsyncGenerator[bytes, None], limits: ServerLimits, end: asyncio.Event
    ) -> None:
        self._source = source
        self._stall = limits.stall_ms_max / 1_000
        self._end = end

    async def send(self, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        """Answer a request. Returns when the stream is over, however it ended."""
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (name.encode("latin-1"), value.encode("latin-1"))
                    for name, value in headers.items()
                ],
            }
        )
        told = asyncio.ensure_future(self._tell(send))
        others = [asyncio.ensure_future(_left(receive)), asyncio.ensure_future(self._end.wait())]
        try:
            await asyncio.wait([told, *others], return_when=asyncio.FIRST_COMPLETED)
            if told.done():
                told.result()
            elif self._end.is_set():
                await _cancelled(told)
                await _send(send, ending("closed"), self._stall, last=True)
        except TimeoutError:
            _log.info("a reader that takes nothing was given up")
        finally:
            await _cancelled(told, *others)

    async def _tell(self, send: Send) -> None:
        async with aclosing(self._source) as source:
            reason = await self._tell_frames(source, send)
        await _send(send, ending(reason), self._stall, last=True)

    async def _tell_frames(self, source: AsyncGenerator[bytes, None], send: Send) -> str:
        """Send them all; gives why they end."""
        try:
            await _send(send, _BEGIN, self._stall)
            async for each in source:
                await _send(send, each, self._stall)
        except TimeoutError:
            return "slow"
        except AssemblerError as error:
            _log.warning("a stream ended: %s", type(error).__name__)
            return "error"
        return "closed"


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
