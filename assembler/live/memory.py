"""Live in one process: Sessions tell each other through memory, in one event loop or in several.

Not here: what is told, and who hears it (`base`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from threading import RLock
from typing import Any

from assembler.engine.errors import LimitError
from assembler.engine.events import Outcome, need_text
from assembler.live.base import (
    Claimed,
    Ended,
    Hears,
    Live,
    LiveError,
    Record,
    Released,
    Said,
    Seat,
    process_of,
)

__all__ = ["MemoryLive"]

_log = logging.getLogger("assembler.live")


class _Room:
    """What is held of one conversation, and who sits there."""

    def __init__(self) -> None:
        self.seats: list[_MemorySeat] = []
        self.records: list[tuple[str, Said | Ended]] = []
        """In the order in which they were told, each with its attempt."""
        self.claims: dict[str, Claimed] = {}

    def held(self) -> list[Record]:
        return [*(record for _, record in self.records), *self.claims.values()]

    def forget(self, attempts: Iterable[str]) -> None:
        gone = set(attempts)
        self.records = [each for each in self.records if each[0] not in gone]


class _House:
    """What several `MemoryLive` share."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.rooms: dict[str, _Room] = {}
        self.processes = 0


class MemoryLive(Live):
    """Sessions of one process hear each other. Memory: what is held, once.

    `beside()` gives another one over the same conversations, as another process would have: what
    goes on through one of them ends when that one is closed, or dies (`die`).

    `held_records_max`: how many deltas one conversation may hold. Beyond it whoever emits gets no
    error: what comes later does not see that attempt whole, and it is noted in the log.
    """

    def __init__(self, *, held_records_max: int = 1_000_000) -> None:
        if type(held_records_max) is not int or held_records_max < 1:
            raise LimitError(f"held_records_max: expected 1 or more, got {held_records_max!r:.80}")
        self._held_records_max = held_records_max
        self._house = _House()
        self._settle_down()

    def _settle_down(self) -> None:
        house = self._house
        house.processes += 1
        self._process = f"memory-{house.processes}"
        self._seats: list[_MemorySeat] = []
        self._count = 0
        self._dropped = 0
        self._closed = False

    def beside(self) -> MemoryLive:
        """Another one over the same conversations."""
        other = MemoryLive(held_records_max=self._held_records_max)
        other._house = self._house
        other._settle_down()
        return other

    async def open(self) -> None:
        if self._closed:
            raise LiveError("the live backend is closed")

    async def join(self, conversation: str, hears: Hears) -> Seat:
        need_text("conversation", conversation)
        await self.open()
        with self._house.lock:
            self._count += 1
            room = self._house.rooms.setdefault(conversation, _Room())
            seat = _MemorySeat(self, conversation, f"{self._process}.{self._count}", hears)
            room.seats.append(seat)
            self._seats.append(seat)
            held = room.held()
        seat.take(held)
        return seat

    def die(self) -> None:
        """End as a process that is killed: nobody says goodbye, and the others see it go."""
        self._closed = True
        with self._house.lock:
            for seat in self._seats:
                seat.drop()
                self._stand_up(seat)
            self._seats = []
            for room in self._house.rooms.values():
                for seat in room.seats:
                    seat.post(lambda seat=seat: seat.lose(self._process))  # type: ignore[misc]
                self._bury(room)

    def _bury(self, room: _Room) -> None:
        """What nobody is there to withdraw is not held either."""
        ended = {record.attempt for _, record in room.records if type(record) is Ended}
        room.forget(
            name
            for name, record in room.records
            if name not in ended and process_of(record.owner) == self._process
        )
        for owner in [each for each in room.claims if process_of(each) == self._process]:
            del room.claims[owner]

    async def close(self) -> None:
        if not self._closed:
            self.die()

    def statistics(self) -> dict[str, Any]:
        with self._house.lock:
            return {
                "seats": len(self._seats),
                "conversations": len(self._house.rooms),
                "held": sum(len(room.records) for room in self._house.rooms.values()),
                "dropped": self._dropped,
            }

    # -- for its seats -------------------------------------------------------------------

    def tell(self, seat: _MemorySeat, record: Record) -> None:
        """To all others in the room, each in its own loop."""
        with self._house.lock:
            room = self._house.rooms[seat.conversation]
            self._hold(room, record)
            for other in room.seats:
                if other is not seat:
                    other.post(lambda other=other: other.take([record]))  # type: ignore[misc]

    def _hold(self, room: _Room, record: Record) -> None:
        if type(record) is Claimed:
            room.claims[record.owner] = record
        elif type(record) is Released:
            room.claims.pop(record.owner, None)
        elif type(record) is Ended:
            if record.outcome is not Outcome.COMPLETED:
                room.forget([record.attempt])
            room.records.append((record.attempt, record))
        elif type(record) is Said:
            if len(room.records) < self._held_records_max:
                room.records.append((record.delta.attempt, record))
            else:
                self._dropped += 1
                _log.warning("a delta is not held: held_records_max is reached")

    def forget(self, seat: _MemorySeat, attempts: Iterable[str]) -> None:
        with self._house.lock:
            self._house.rooms[seat.conversation].forget(attempts)

    def notice(self, seat: _MemorySeat, seq: int) -> None:
        with self._house.lock:
            for other in self._house.rooms[seat.conversation].seats:
                if other is not seat:
                    other.post(lambda other=other: other.hear_stored(seq))  # type: ignore[misc]

    def stand_up(self, seat: _MemorySeat) -> None:
        with self._house.lock:
            self._stand_up(seat)
            if seat in self._seats:
                self._seats.remove(seat)

    def _stand_up(self, seat: _MemorySeat) -> None:
        room = self._house.rooms.get(seat.conversation)
        if room is None or seat not in room.seats:
            return
        room.seats.remove(seat)
        if not (room.seats or room.records or room.claims):
            del self._house.rooms[seat.conversation]


class _MemorySeat(Seat):
    def __init__(self, live: MemoryLive, conversation: str, owner: str, hears: Hears) -> None:
        super().__init__(conversation, owner, hears)
        self._live = live
        self._loop = asyncio.get_running_loop()

    def post(self, call: Callable[[], None]) -> None:
        """Call it in this seat's loop, behind all that was posted before."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call)

    def drop(self) -> None:
        """Hear and tell nothing more, and say nothing about it."""
        self._left = True

    def hear_stored(self, seq: int) -> None:
        if not self._left:
            self._hear(lambda: self._hears.stored(seq))

    @property
    def is_connected(self) -> bool:
        return not self._left

    def stored(self, seq: int) -> None:
        if not self._left:
            self._live.notice(self, seq)

    async def claimed(self) -> None:
        return

    async def fence(self) -> None:
        passed = asyncio.Event()
        self.post(passed.set)
        await passed.wait()

    async def leave(self) -> None:
        if not self._left:
            self.claim(busy=False)
            self._left = True
            self._live.stand_up(self)

    def _tell_attempt(self, record: Said | Ended) -> None:
        self._live.tell(self, record)

    def _tell_claim(self, record: Claimed | Released) -> None:
        self._live.tell(self, record)

    def _forget(self, attempts: Iterable[str]) -> None:
        self._live.forget(self, attempts)
