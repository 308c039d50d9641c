"""A Subscription: a Snapshot of one view, and the Patches that lead on from it.

Not here: what it has not taken yet (`feed`), and whose view it is (`publisher`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self

from assembler.engine.errors import AssemblerError
from assembler.live.feed import Queue
from assembler.live.shared import SharedPatch, SharedSnapshot

__all__ = ["Subscription"]

Join = Callable[[], tuple[SharedSnapshot, Queue]]


class Subscription:
    """Follows one view, without a gap or a repeat, as slowly as it likes.

        async with publisher.subscribe("chat") as view:
            await send(view.snapshot.encoded)
            async for patch in view:
                await send(patch.encoded)

    Who is slow gets one Patch for many, never less content. The loop ends when the publisher is
    closed, after what was pending. To be read by one task at a time; leaving the block, at
    any time and in any way, leaves nothing behind.
    """

    def __init__(self, join: Join, leave: Callable[[], None]) -> None:
        self._join: Join | None = join
        self._leave = leave
        self._snapshot: SharedSnapshot | None = None
        self._queue: Queue | None = None

    async def __aenter__(self) -> Self:
        """Join. Raises what the flush raises that brings the view up to date."""
        join, self._join = self._join, None
        if join is None:
            raise AssemblerError("a subscription is entered once: subscribe again")
        self._snapshot, self._queue = join()
        return self

    async def __aexit__(self, *_: object) -> None:
        queue, self._queue = self._queue, None
        if queue is not None:
            queue.leave()
            self._leave()

    @property
    def snapshot(self) -> SharedSnapshot:
        """What was shown when this was entered."""
        if self._snapshot is None:
            raise AssemblerError("the subscription has no snapshot before it is entered")
        return self._snapshot

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SharedPatch:
        """The next Patch, as soon as there is one. Cancelling it loses nothing.

        Raises `ConflictError` when somebody flushed the Assembler behind the publisher's back.
        """
        while (queue := self._queue) is not None:
            patch = queue.take()
            if patch is not None:
                return patch
            if queue.fault is not None:
                raise queue.fault
            if queue.ended:
                break
            if queue.waiter is not None:
                raise AssemblerError("another task waits for this subscription already")
            queue.waiter = waiter = asyncio.get_running_loop().create_future()
            try:
                await waiter
            finally:
                queue.waiter = None
        raise StopAsyncIteration
