"""Following one conversation: every event behind a seq, as it comes.

A notice only says that there is something to read, so that a lost or a doubled one does no harm.
Not here: who gives notice (`base`, `listen`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from assembler.engine.errors import InputError
from assembler.engine.events import Event
from assembler.stores.base import StoreClosed, SyncStore

__all__ = ["Feed"]

Run = Callable[[Callable[[SyncStore], Any]], Awaitable[Any]]


class Feed:
    """An async iterator of the events behind seq `after`: in order, no gap, no repeat.

    First what is stored, then what is appended, until it is closed or the store is. For one task.
    It begins to listen when it is made: close it (`aclose`, or `async with`). It holds at most
    `page_events_max` events; a slow reader makes it read later, and loses nothing.
    """

    def __init__(self, store: SyncStore, run: Run, conversation: str, after: int = 0) -> None:
        if type(after) is not int or after < 0:
            raise InputError(f"after: expected an integer of at least 0, got {after!r:.80}")
        self._run = run
        self._store = store
        self._conversation = conversation
        self._after = after
        self._held: deque[Event] = deque()
        self._news = asyncio.Event()
        self._news.set()
        self._loop = asyncio.get_running_loop()
        self._closed = False
        self._stop = store.listen(conversation, self._hear)

    def _hear(self, _seq: int) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._news.set)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while not self._held:
            await self._news.wait()
            if self._closed or self._store.closed:
                raise StopAsyncIteration
            await self._fetch()
        event = self._held.popleft()
        self._after = event.seq
        return event

    async def _fetch(self) -> None:
        most = self._store.limits.page_events_max
        self._news.clear()
        try:
            found = await self._run(lambda store: store.read(self._conversation, self._after, most))
        except StoreClosed:
            self._news.set()
            raise StopAsyncIteration from None
        except BaseException:
            self._news.set()
            raise
        self._held.extend(found)
        if len(found) == most:
            self._news.set()

    async def aclose(self) -> None:
        """Listen no more; a reader that waits comes to its end. A second time changes nothing."""
        self._closed = True
        self._held.clear()
        self._stop()
        self._news.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()
