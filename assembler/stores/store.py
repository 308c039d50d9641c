"""The async face of every store, for one event loop.

The promises are those of the plain core (`base`), which runs in a thread where it may block.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self, TypeVar

from assembler.engine.events import Event
from assembler.stores.base import Drafts, Limits, Listed, Page, StoreClosed, SyncStore
from assembler.stores.feed import Feed

__all__ = ["Store"]

T = TypeVar("T")


class Store:
    """The durable log of many conversations, for one event loop.

    An async context manager: entering opens it, leaving closes it for good. `sync` is the plain
    core with the same calls; both may be used side by side. Calls run in threads of the store's
    own: one after the other where there is one thread, side by side where there are several
    (`PostgresStore`). A call that is cancelled while its thread works is not undone: what it
    appends may be stored, or not. Read, or append again under the same ids.

    What each call gives, costs and raises is told at `SyncStore`.
    """

    def __init__(self, sync: SyncStore, threads_max: int = 1) -> None:
        self.sync = sync
        self._threads_max = threads_max
        self._workers: ThreadPoolExecutor | None = None
        self._closing = False

    @property
    def limits(self) -> Limits:
        return self.sync.limits

    async def append(self, conversation: str, drafts: Drafts, expected_seq: int) -> list[Event]:
        """Store drafts behind event `expected_seq`, all or none: see `SyncStore.append`."""
        checked = self.sync.checked(drafts)  # now: later the caller may have changed them
        return await self.run(lambda store: store.append(conversation, checked, expected_seq))

    async def page(
        self, conversation: str, before: int | None = None, limit: int | None = None
    ) -> Page:
        """The newest events, or the newest below seq `before`."""
        return await self.run(lambda store: store.page(conversation, before, limit))

    async def read(
        self, conversation: str, after: int = 0, limit: int | None = None
    ) -> list[Event]:
        """The events behind seq `after`, oldest first."""
        return await self.run(lambda store: store.read(conversation, after, limit))

    async def last(self, conversation: str) -> int:
        """The seq of the last event; 0 when there is none."""
        return await self.run(lambda store: store.last(conversation))

    async def newest(self, conversation: str, types: Iterable[str]) -> dict[str, Event]:
        """The newest event of each type that the conversation has, by type."""
        return await self.run(lambda store: store.newest(conversation, types))

    async def conversations(
        self, *, newest: Iterable[str] = (), limit: int | None = None, before: Listed | None = None
    ) -> list[Listed]:
        """The conversations, the one with the latest last event first."""
        return await self.run(
            lambda store: store.conversations(newest=newest, limit=limit, before=before)
        )

    def subscribe(self, conversation: str, after: int = 0) -> Feed:
        """The events behind seq `after`, as they come: see `Feed`."""
        return Feed(self.sync, self.run, conversation, after)

    async def run(self, ask: Callable[[SyncStore], T]) -> T:
        """What `ask` makes of the plain core, called where it may block."""
        if self.sync.closed or self._closing:
            raise StoreClosed
        if self._workers is None:
            self._workers = ThreadPoolExecutor(self._threads_max, "assembler-store")
        return await get_running_loop().run_in_executor(self._workers, ask, self.sync)

    async def close(self) -> None:
        """Close it for good, behind all calls that wait. A second time changes nothing."""
        self._closing = True
        if not self.sync.closed:
            await get_running_loop().run_in_executor(None, self._close)

    def _close(self) -> None:
        if self._workers is not None:
            self._workers.shutdown()
        self.sync.close()

    async def __aenter__(self) -> Self:
        await self.run(SyncStore.open)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
