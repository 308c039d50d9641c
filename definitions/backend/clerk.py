"""Who waits in an event loop, so that what was begun is done, whatever becomes of the caller.

Not here: what is to be done (`turns`, `attempts`, `dispatches`), the calls of the facade.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, TypeVar

from assembler.live import Session, drive_async
from assembler.stores import Store
from definitions.backend.asking import Ask, Decide, Older, Work
from definitions.backend.desk import Desk

__all__ = ["Clerk"]

T = TypeVar("T")
_log = logging.getLogger("definitions.backend")


class Clerk:
    """Does the work of one conversation, one piece after the other, in tasks of its own: what was
    begun is done, also when whoever asked for it is cancelled."""

    def __init__(self, desk: Desk, session: Session, store: Store) -> None:
        self._desk = desk
        self._session = session
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._order = asyncio.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()

    async def do(self, work: Work[T]) -> T:
        """Do it, to its end. Cancelled, it goes on behind its caller's back."""
        task = self.begin(work)
        await asyncio.wait([task])  # which leaves the task alone when it is cancelled
        return task.result()

    def begin(self, work: Work[T]) -> asyncio.Task[T]:
        """Begin it, behind all that was begun before."""
        task = self._loop.create_task(self._do(work))
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    async def _do(self, work: Work[T]) -> T:
        async with self._order:
            return await drive_async(work, self._answer)

    async def _answer(self, ask: Ask) -> object:
        if isinstance(ask, Decide):
            return await self._session.decide(ask.drafts)
        if isinstance(ask, Older):
            return await self._session.older(ask.events)
        return await self._store.read(self._session.conversation, ask.after, ask.limit)

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:  # its caller is told as well, if there still is one
            _log.debug("%s: %s", self._desk.name, type(error).__name__)

    def drop(self, drop: Callable[[], None]) -> None:
        """Do it soon, in the thread of the loop: somebody let go of what nobody left."""
        if self._loop.is_closed():
            drop()
        else:
            self._loop.call_soon_threadsafe(drop)

    @property
    def is_here(self) -> bool:
        """Whether the loop runs in this thread: else nothing can be awaited."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    async def leave(
        self,
        end: Callable[[], Work[T]],
        error: BaseException | None,
        *,
        drop: Callable[[], None],
        withdraw: Callable[[], None] | None = None,
    ) -> T | None:
        """Leave a block: `end` it. Where nobody can wait, it is ended behind the caller's back, or
        at least dropped.

        What fails while an exception is on its way is logged: the exception goes on. Cancelled
        (again) meanwhile, it does not wait: what is live is withdrawn now (`withdraw`).
        """
        if isinstance(error, GeneratorExit):
            if withdraw is not None:
                withdraw()
            if self.is_here:
                self.begin(end())
            else:
                drop()
            return None
        try:
            return await self.do(end())
        except Exception as failed:
            if error is None:
                raise
            _log.error("%s: an end was not stored: %s", self._desk.name, type(failed).__name__)
            return None
        except BaseException:
            if withdraw is not None:
                withdraw()
            raise

    async def enter(self, begin: Work[T], end: Callable[[BaseException], Work[Any]]) -> T:
        """Enter a block. Cancelled on the way, it is left behind the caller's back."""
        try:
            return await self.do(begin)
        except Exception:
            raise
        except BaseException as error:
            if self.is_here:
                self.begin(end(error))
            raise

    async def close(self) -> None:
        """Wait for all that was begun."""
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))
