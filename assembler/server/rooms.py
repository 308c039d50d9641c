"""Rooms: the conversations that are open because somebody reads them, each once for all readers.

A Room stays open for a while after its last reader left, and keeps the newest patches of each
followed view in a `PatchLog`, so that who lost the connection goes on where they were. Not here:
HTTP (`streams`), and what a conversation is (`sources`).
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from assembler.engine.errors import AssemblerError
from assembler.live import SharedPatch
from assembler.server.limits import ServerLimits, natural
from assembler.server.sources import BusyError, Opened, Source

__all__ = ["PatchLog", "Room", "Rooms"]

_REVISION_MAX = 2**53
_log = logging.getLogger("assembler.server")


class PatchLog:
    """The newest patches of one view, by which a reader catches up.

    A *cursor* names a revision of this log: `EPOCH.REVISION`. The log of the same view that is
    begun anew later has another epoch, as its revisions mean something else.
    """

    def __init__(self, limits: ServerLimits) -> None:
        self._epoch = secrets.token_hex(6)
        self._limits = limits
        self._patches: deque[SharedPatch] = deque()
        self._bytes = 0
        self._revision = -1
        self._changed: asyncio.Future[None] | None = None
        self.ended = False

    def cursor(self, revision: int) -> str:
        return f"{self._epoch}.{revision}"

    def revision(self, cursor: str | None) -> int | None:
        """The revision that a cursor names; None: it is none of this log's."""
        epoch, _, digits = (cursor or "").partition(".")
        return natural(digits, _REVISION_MAX) if epoch == self._epoch else None

    def begin(self, revision: int) -> None:
        """What follows leads on from `revision`."""
        self._revision = revision
        self._wake()

    def add(self, patch: SharedPatch) -> None:
        """Keep a patch; let the oldest go. O(1), and its bytes once."""
        self._patches.append(patch)
        self._bytes += len(patch.encoded)
        self._revision = patch.revision_to
        limits = self._limits
        while len(self._patches) > limits.log_patches_max or self._bytes > limits.log_bytes_max:
            self._bytes -= len(self._patches.popleft().encoded)
        self._wake()

    def end(self) -> None:
        self.ended = True
        self._patches.clear()
        self._bytes = 0
        self._wake()

    async def reach(self, revision: int) -> None:
        """Wait until what is kept leads as far as `revision`, or nothing more comes."""
        while self._revision < revision and not self.ended:
            if self._changed is None:
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)

    def between(self, start: int, end: int) -> list[SharedPatch] | None:
        """The patches that lead from one revision to another; None: not all are kept. O(kept)."""
        found = [
            patch for patch in self._patches if patch.revision_from >= start < patch.revision_to
        ]
        found = [patch for patch in found if patch.revision_to <= end]
        reached = start
        for patch in found:
            if patch.revision_from != reached:
                return None
            reached = patch.revision_to
        return found if reached == end else None

    def statistics(self) -> dict[str, int]:
        return {"patches": len(self._patches), "bytes": self._bytes}

    def _wake(self) -> None:
        changed, self._changed = self._changed, None
        if changed is not None and not changed.done():
            changed.set_result(None)


class Room:
    """One open conversation. A task of its own opens it, records its views and closes it."""

    def __init__(self, conversation: str, source: Source, limits: ServerLimits) -> None:
        self.conversation = conversation
        self.readers = 0
        self.over = False
        """It closes, or it is closed: nobody enters any more."""
        self.idle: asyncio.TimerHandle | None = None
        self._source = source
        self._limits = limits
        self._logs: dict[str, PatchLog] = {}
        self._recorders: set[asyncio.Task[None]] = set()
        self._leaving = asyncio.Event()
        self._opened: asyncio.Future[Opened] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._stay(), name="assembler-room")

    async def opened(self) -> Opened:
        """Wait until it is open. Raises what opening raises."""
        return await asyncio.shield(self._opened)

    def close(self) -> None:
        self.over = True
        self._leaving.set()

    async def log(self, view: str) -> PatchLog:
        """The log of a view, which is recorded from now on."""
        opened = await self.opened()
        log = self._logs.get(view)
        if log is None or log.ended:
            log = self._logs[view] = PatchLog(self._limits)
            task = asyncio.create_task(self._record(opened, view, log), name="assembler-record")
            self._recorders.add(task)
            task.add_done_callback(self._recorders.discard)
        await log.reach(0)
        return log

    async def _record(self, opened: Opened, view: str, log: PatchLog) -> None:
        try:
            async with opened.subscribe(view) as following:
                log.begin(following.snapshot.revision)
                async for patch in following:
                    log.add(patch)
            self.over = True  # its publisher is closed: who comes now opens it anew
        except AssemblerError as error:
            _log.warning("a view is not recorded any more: %s", type(error).__name__)
        finally:
            log.end()

    async def _stay(self) -> None:
        try:
            async with self._source.open(self.conversation) as opened:
                self._opened.set_result(opened)
                try:
                    await self._leaving.wait()
                finally:
                    await self._stop_recording()
        except Exception as error:
            if self._opened.done():
                _log.warning("a conversation did not close well: %s", type(error).__name__)
            else:
                self._opened.set_exception(error)
                self._opened.exception()  # told, whoever waits for it
        finally:
            self.over = True
            if not self._opened.done():
                self._opened.cancel()

    async def _stop_recording(self) -> None:
        tasks = tuple(self._recorders)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def statistics(self) -> dict[str, Any]:
        return {
            "readers": self.readers,
            "logs": {view: log.statistics() for view, log in self._logs.items()},
        }


class Rooms:
    """All Rooms of one application. For one event loop."""

    def __init__(self, source: Source, limits: ServerLimits) -> None:
        self._source = source
        self._limits = limits
        self._rooms: dict[str, Room] = {}
        self._idle: dict[Room, None] = {}
        """Those that nobody reads, the one that is so longest first."""
        self._ending: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def enter(self, conversation: str) -> AsyncIterator[Room]:
        """The Room of a conversation, which stays open while the block lasts.

        Raises what opening raises, and `BusyError` when too many are open.
        """
        room = self._room(conversation)
        room.readers += 1
        self._busy(room)
        try:
            await room.opened()
            yield room
        finally:
            room.readers -= 1
            if not room.readers:
                self._rest(room)

    def _room(self, conversation: str) -> Room:
        room = self._rooms.get(conversation)
        if room is not None and not room.over:
            return room
        if len(self._rooms) >= self._limits.rooms_max and not self._make_room():
            raise BusyError(f"more than rooms_max = {self._limits.rooms_max} are open")
        room = self._rooms[conversation] = Room(conversation, self._source, self._limits)
        self._ending.add(room.task)
        room.task.add_done_callback(self._ending.discard)
        return room

    def _make_room(self) -> bool:
        for room in self._idle:
            self._close(room)
            return True
        return False

    def _busy(self, room: Room) -> None:
        self._idle.pop(room, None)
        if room.idle is not None:
            room.idle.cancel()
            room.idle = None

    def _rest(self, room: Room) -> None:
        """Nobody reads it: close it in a while, or at once when too many rest."""
        if room.over:
            self._close(room)
            return
        self._idle[room] = None
        loop = asyncio.get_running_loop()
        room.idle = loop.call_later(self._limits.linger_ms / 1_000, self._close, room)
        while len(self._idle) > self._limits.rooms_idle_max:
            self._make_room()

    def _close(self, room: Room) -> None:
        self._busy(room)
        if self._rooms.get(room.conversation) is room:
            del self._rooms[room.conversation]
        room.close()

    async def aclose(self) -> None:
        """Close them all, and wait until they are closed."""
        for room in tuple(self._rooms.values()):
            self._close(room)
        while self._ending:
            await asyncio.wait(tuple(self._ending))

    def statistics(self) -> dict[str, int]:
        """Counts for an operator. O(rooms)."""
        return {
            "rooms": len(self._rooms),
            "idle": len(self._idle),
            "readers": sum(room.readers for room in self._rooms.values()),
        }
