"""What a Session makes of what others tell: their deltas, their endings, and whether they live.

Not here: how it is told (`base` and the backends), and what is asked of the store (`core`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from assembler.engine.errors import AssemblerError
from assembler.engine.events import Delta, Event
from assembler.live.base import Ended, Live, Seat
from assembler.live.core import Core
from assembler.live.places import Open

__all__ = ["Ears", "Orphaned"]

Orphaned = Callable[[Open], None]
_AGAIN_S = 1  # before a store or a server that failed is asked again
_log = logging.getLogger("assembler.live")


class Ears:
    """Hears for one Session (`base.Hears`).

    That others work on it is believed at once; that nobody does, only after everything has been
    read that they stored and heard that they told: else a turn that has just begun, or has just
    ended, would look as if its owner had crashed.
    """

    def __init__(
        self,
        core: Core,
        *,
        catch_up: Callable[[], Awaitable[None]],
        heard: Callable[[int], None],
    ) -> None:
        self._core = core
        self._catch_up = catch_up
        self._heard = heard
        self._seat: Seat | None = None
        self._asked = False
        self._task: asyncio.Task[None] | None = None
        self._orphaned: list[Orphaned] = []
        self._stopped = False

    async def join(self, live: Live) -> None:
        """Take a seat; what is held is shown when this returns."""
        core = self._core
        core.set_elsewhere(None)
        core.hear(self._hear)
        seat = await live.join(core.conversation, self)
        self._seat = core.seat = seat
        seat.claim(busy=core.busy)
        seat.retire(core.places.floor, wrote=True)
        await self.confirm()

    @property
    def seat(self) -> Seat | None:
        return self._seat

    def on_orphan(self, orphaned: Orphaned) -> Callable[[], None]:
        self._orphaned.append(orphaned)

        def stop() -> None:
            if orphaned in self._orphaned:
                self._orphaned.remove(orphaned)

        return stop

    # -- what is heard -------------------------------------------------------------------

    def delta(self, delta: Delta) -> None:
        core = self._core
        if (delta.turn, delta.step) > core.places.floor:  # else its event was quicker
            core.receive_delta(delta)

    def ended(self, ended: Ended) -> None:
        core = self._core
        own = core.attempts.get(ended.attempt)
        if own is not None:
            _log.warning("attempt %s was given up by others", ended.attempt)
            own.settle(ended.outcome)
        elif (ended.turn, ended.step) > core.places.floor:
            core.receive_end(ended)

    def stored(self, seq: int) -> None:
        end = self._core.end
        self._heard(seq or (end or 0) + 1)

    def elsewhere(self) -> None:
        seat = self._seat
        if seat is None:
            return
        if seat.elsewhere is False:
            self._doubt()
        else:  # cut off, it is not known until the backend is back and says so
            self._core.set_elsewhere(seat.elsewhere)

    def _hear(self, _event: Event, own: bool) -> None:
        """Somebody opened something, and may not have been heard yet."""
        if not own and self._core.elsewhere is False and self._core.places.open_now is not None:
            self._doubt()

    # -- whether nobody is there ---------------------------------------------------------

    def _doubt(self) -> None:
        if self._stopped:
            return
        self._core.set_elsewhere(None)
        self._asked = True
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._confirm_quietly())

    async def _confirm_quietly(self) -> None:
        while not await self._is_confirmed():
            seat = self._seat
            if seat is None or not (self._asked or seat.is_connected):
                return  # it stays unknown; the next news asks again
            await asyncio.sleep(_AGAIN_S)

    async def _is_confirmed(self) -> bool:
        try:
            await self.confirm()
        except AssemblerError as error:
            _log.warning("who works elsewhere is not known: %s", type(error).__name__)
            return False
        return True

    async def confirm(self) -> None:
        """Learn whether others work on it; tell when what is open was left by a crash."""
        seat = self._seat
        if seat is None:
            return
        self._asked = True
        while self._asked:
            self._asked = False
            await self._catch_up()
            await seat.fence()
        self._core.set_elsewhere(seat.elsewhere)
        orphan = self._core.orphan
        if orphan is not None:
            for orphaned in tuple(self._orphaned):
                orphaned(orphan)

    # -- the end -------------------------------------------------------------------------

    async def stop(self) -> None:
        """Doubt no more."""
        self._stopped = True
        self._orphaned.clear()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def leave(self) -> None:
        """Hear no more."""
        seat, self._seat, self._core.seat = self._seat, None, None
        if seat is not None:
            await seat.leave()
