"""The Publisher: one Assembler, flushed as urgently as its operations say, and followed by many.

Not here: what the operations do (`engine`), and what a slow subscriber gets (`feed`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Self

from assembler.engine.assembler import Assembler
from assembler.engine.definition import NONE, NOW, Cadence
from assembler.engine.errors import AssemblerError, InputError
from assembler.engine.events import Delta, Event, Outcome
from assembler.engine.patches import Patch
from assembler.engine.views import View
from assembler.live.feed import Counts, Feed, Queue
from assembler.live.scheduling import Handle, Scheduler, running_loop
from assembler.live.shared import SharedSnapshot
from assembler.live.subscription import Subscription

__all__ = ["Publisher"]


class Publisher:
    """Operates one Assembler and sends what changes to all who follow.

    The operations are those of the Assembler: plain functions, done at once, which raise what it
    raises and give back their cadence. What they change is flushed in the current turn of the
    loop (`NOW`, once for all operations of that turn), within `frame_ms` (`FRAME`), or with the
    next flush (`NONE`). Without a running loop it waits for the next operation in one, the next
    subscriber, or `flush`.

    A subscriber that has `queue_patches_max` Patches to take falls behind, and gets one Patch for
    all when it comes back. `scheduler` calls back later; the default is the running loop.

    Operate and flush the Assembler through its publisher alone. For one event loop.
    """

    def __init__(
        self,
        assembler: Assembler,
        *,
        frame_ms: float = 33,
        queue_patches_max: int = 64,
        scheduler: Scheduler | None = None,
    ) -> None:
        if not frame_ms >= 0:
            raise InputError(f"frame_ms: expected 0 or more, got {frame_ms!r}")
        if not queue_patches_max >= 1:
            raise InputError(f"queue_patches_max: expected 1 or more, got {queue_patches_max!r}")
        self._assembler = assembler
        self._frame = frame_ms / 1_000
        self._queue_patches_max = queue_patches_max
        self._scheduler = scheduler
        self._handle: Handle | None = None
        self._urgency = NONE
        """How urgent the flush is that is to come (`_handle`)."""
        self._feeds: dict[str, Feed] = {}
        self._activated: set[str] = set()
        """The followed views that were not active before."""
        self._counts = Counts()
        self._closed = False

    @property
    def assembler(self) -> Assembler:
        """For reading. Its views are as of the last flush."""
        return self._assembler

    # == operations ======================================================================

    def load(self, events: Iterable[Event | Mapping[str, Any]], has_more: bool = False) -> Cadence:
        return self._done(self._open().load(events, has_more))

    def append(self, event: Event | Mapping[str, Any]) -> Cadence:
        return self._done(self._open().append(event))

    def emit(self, delta: Delta | Mapping[str, Any]) -> Cadence:
        return self._done(self._open().emit(delta))

    def prepend(self, events: Iterable[Event | Mapping[str, Any]], has_more: bool) -> Cadence:
        return self._done(self._open().prepend(events, has_more))

    def evict(self, before: int) -> Cadence:
        return self._done(self._open().evict(before))

    def settle(self, attempt: str, outcome: Outcome | str) -> Cadence:
        return self._done(self._open().settle(attempt, outcome))

    def liveness(self, live: bool | None) -> Cadence:
        return self._done(self._open().liveness(live))

    def flush(self) -> dict[str, Patch]:
        """Send what is pending now, not later. O(what changed + subscribers)."""
        self._open()
        return self._flush()

    def _open(self) -> Assembler:
        if self._closed:
            raise AssemblerError("the publisher is closed")
        return self._assembler

    # == following =======================================================================

    def subscribe(self, view: str = "chat") -> Subscription:
        """Follow a view: `async with` it for its snapshot, `async for` the Patches.

        A view that is not active is so while somebody follows it, at the cost of making all its
        Nodes for the first one; name those that should stay in `Assembler(views=...)`.
        """
        return Subscription(partial(self._join, view), partial(self._leave, view))

    def _join(self, view: str) -> tuple[SharedSnapshot, Queue]:
        assembler = self._open()
        if _active(assembler, view) is None:
            assembler.activate(view)
            self._activated.add(view)
        try:
            self._flush()
            feed = self._feeds.get(view)
            if feed is None:
                shown = assembler.view(view)
                feed = self._feeds[view] = Feed(shown, self._queue_patches_max, self._counts)
            return feed.join()
        except BaseException:
            self._leave(view)
            raise

    def _leave(self, view: str) -> None:
        """Somebody left: what nobody follows any more costs nothing any more."""
        if self._feeds.get(view):
            return
        feed = self._feeds.pop(view, None)
        if view in self._activated:
            self._activated.remove(view)
            if feed is None or _active(self._assembler, view) is feed.view:
                self._assembler.deactivate(view)

    # == flushing ========================================================================

    def _done(self, urgent: Cadence) -> Cadence:
        """Something changed: see to it that it is flushed in time."""
        if urgent > self._urgency:
            self._schedule(urgent)
        return urgent

    def _schedule(self, urgent: Cadence) -> None:
        scheduler = self._scheduler or running_loop()
        if scheduler is None:
            return
        self._unschedule()
        if urgent is NOW:
            self._handle = scheduler.call_soon(self._flush)
        else:
            self._handle = scheduler.call_later(self._frame, self._flush)
        self._urgency = urgent

    def _unschedule(self) -> None:
        handle, self._handle = self._handle, None
        self._urgency = NONE
        if handle is not None:
            handle.cancel()

    def _flush(self) -> dict[str, Patch]:
        self._unschedule()
        for view, feed in tuple(self._feeds.items()):
            if _active(self._assembler, view) is feed.view:
                feed.make_room()
            else:
                del self._feeds[view]
                self._activated.discard(view)
                feed.end(AssemblerError(f"the view {view!r} was deactivated while it was followed"))
        patches = self._assembler.flush()
        self._counts.flushes += 1
        for view, feed in self._feeds.items():
            patches[view] = feed.publish(patches[view])
        return patches

    # == the end =========================================================================

    def close(self) -> None:
        """Flush, and end every subscription: it gets what is pending, and then its end.

        From then on no operation is taken. Closing again does nothing.
        """
        if self._closed:
            return
        self._closed = True
        try:
            self._flush()
        finally:
            for feed in self._feeds.values():
                feed.end()

    async def aclose(self) -> None:
        """`close`, for `contextlib.aclosing` and its like. It waits for nobody."""
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()

    # == reading =========================================================================

    def statistics(self) -> dict[str, Any]:
        """Counts for an operator, as plain JSON values. O(subscribers).

        `views`: of each followed view its `subscribers`, those of them that are `behind`, and the
        Patches that are `queued`. `flushes`, `patches` and `merges` count since the beginning.
        """
        return {
            "views": {view: feed.statistics() for view, feed in self._feeds.items()},
            "flushes": self._counts.flushes,
            "patches": self._counts.patches,
            "merges": self._counts.merges,
        }


def _active(assembler: Assembler, view: str) -> View | None:
    try:
        return assembler.view(view)
    except AssemblerError:
        return None
