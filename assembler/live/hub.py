"""The Hub: the Sessions of many conversations, shared by all who use them, asleep when nobody does.

Not here: what a Session does (`session`), who follows it (`publisher`), what is written (business).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Definition, GroupDefinition, Node
from assembler.engine.errors import AssemblerError, InputError, LimitError
from assembler.engine.events import need_text
from assembler.live.base import Live
from assembler.live.core import OneOrMore
from assembler.live.places import Open
from assembler.live.publisher import Publisher
from assembler.live.redacting import redacted
from assembler.live.scheduling import Handle, Scheduler, running_loop
from assembler.live.session import PAGE_EVENTS, Session, new_name, wall_clock
from assembler.stores import Listed, Store

__all__ = ["Hub"]

Closing = Callable[[Open], OneOrMore]
"""What is to be stored to close what somebody left open who is gone."""

_log = logging.getLogger("assembler.live")


class _Entry:
    """One conversation that is awake, is waking up, or is going to sleep."""

    def __init__(self, opening: asyncio.Task[Session]) -> None:
        self.opening = opening
        self.users = 0
        self.idle_since: float | None = None
        """When the last user left, in milliseconds of the Hub's clock; None: somebody uses it."""

    @property
    def session(self) -> Session | None:
        """The Session; None: it is not open yet, or could not be opened."""
        task = self.opening
        if not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result()

    @property
    def failed(self) -> bool:
        """It could not be opened: the next one tries again."""
        return self.opening.done() and self.session is None


class Hub:
    """The conversations of one store, each with one Session that its users share.

        async with Hub(store, catalog()) as hub:
            async with hub.use("demo") as session:
                async with session.subscribe("chat") as view:
                    ...

    The first user of a conversation wakes it (its newest `page_events` are loaded), later ones
    share its Session, and when the last one has left it stays awake for `idle_ms` more. At most
    `conversations_max` are awake: the one that was left longest ago goes to sleep for a new one,
    and when all are in use `use` raises `LimitError`. One that somebody works on (`Session.busy`)
    does not go to sleep. Asleep it costs nothing: what was stored is in the store.

    `live` tells other processes what goes on here, and shows here what goes on there.
    `closing(open)` gives what closes a turn whose owner crashed: it is stored once, by whoever
    comes first; without it, such a turn is left alone.

    `redact(node)` stands before every view and patch. `views` are those that stay active; any
    other is while somebody follows it. `frame_ms` and `queue_patches_max` are those of `Publisher`,
    `now`, `names`, `elsewhere` and `conflicts_max` those of `Session`. `clock` gives milliseconds
    that only rise and `scheduler` calls back later: by default those of the running loop.

    For one event loop. Leaving it closes every Session, and not the store.
    """

    def __init__(  # noqa: PLR0913 - given by name
        self,
        store: Store,
        definitions: Iterable[Definition | GroupDefinition],
        *,
        live: Live | None = None,
        closing: Closing | None = None,
        page_events: int = PAGE_EVENTS,
        conversations_max: int = 10_000,
        idle_ms: float = 60_000,
        redact: Callable[[Node], Node | None] | None = None,
        views: Iterable[str] = ("chat",),
        frame_ms: float = 33,
        queue_patches_max: int = 64,
        conflicts_max: int = 100,
        elsewhere: bool | None = False,
        now: Callable[[], int] = wall_clock,
        names: Callable[[], str] = new_name,
        scheduler: Scheduler | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        for name, value in (("page_events", page_events), ("conversations_max", conversations_max)):
            if type(value) is not int or value < 1:
                raise InputError(f"{name}: expected 1 or more, got {value!r:.80}")
        if not idle_ms >= 0:
            raise InputError(f"idle_ms: expected 0 or more, got {idle_ms!r:.80}")
        self.store = store
        self._definitions = list(definitions) if redact is None else redacted(definitions, redact)
        self._views = (views,) if isinstance(views, str) else tuple(views)
        self._publishing: dict[str, Any] = {
            "frame_ms": frame_ms,
            "queue_patches_max": queue_patches_max,
            "scheduler": scheduler,
        }
        self._sessions: dict[str, Any] = {
            "now": now,
            "names": names,
            "elsewhere": elsewhere,
            "conflicts_max": conflicts_max,
            "live": live,
        }
        self._closing_orphans = closing
        self._page_events = page_events
        self._conversations_max = conversations_max
        self._idle_ms = idle_ms
        self._scheduler = scheduler
        self._clock = clock
        self._awake: dict[str, _Entry] = {}
        self._idle: dict[str, _Entry] = {}
        """Those of them that nobody uses, the one that was left longest ago first."""
        self._going: dict[str, asyncio.Task[None]] = {}
        """Those that go to sleep: waking them waits for it."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._handle: Handle | None = None
        self._woken = 0
        self._slept = 0
        self._closed = False

    # -- using ---------------------------------------------------------------------------

    @asynccontextmanager
    async def use(self, conversation: str) -> AsyncGenerator[Session]:
        """The open Session of a conversation, new or stored, for as long as the block goes on.

        Whoever cancels while it waits leaves nothing behind. Raises `InputError` for what is no
        name, `LimitError` when `conversations_max` are in use, `StoreError`, and `AssemblerError`
        when the Hub is closed. O(page) for the one who wakes it, O(1) for the others.
        """
        need_text("conversation", conversation)
        entry = await self._enter(conversation)
        try:
            yield await asyncio.shield(entry.opening)
        finally:
            self._leave(conversation, entry)

    def awake(self, conversation: str) -> Session | None:
        """The Session of a conversation that is awake, for a look at it; None: it sleeps. O(1)."""
        entry = self._awake.get(conversation)
        return None if entry is None else entry.session

    async def _enter(self, conversation: str) -> _Entry:
        while (going := self._going.get(conversation)) is not None:
            await asyncio.wait([going])
        if self._closed:
            raise AssemblerError("the hub is closed")
        entry = self._awake.get(conversation)
        if entry is None or entry.failed:
            self._make_room()
            opening = asyncio.ensure_future(self._opening(conversation))
            entry = self._awake[conversation] = _Entry(opening)
        entry.users += 1
        entry.idle_since = None
        self._idle.pop(conversation, None)
        return entry

    def _leave(self, conversation: str, entry: _Entry) -> None:
        entry.users -= 1
        if entry.users or self._awake.get(conversation) is not entry:
            return
        if entry.failed:
            del self._awake[conversation]
            return
        entry.idle_since = self._time()
        self._idle[conversation] = entry
        self._watch()

    async def _opening(self, conversation: str) -> Session:
        assembler = Assembler(self._definitions, self._views)
        session = Session(
            self.store,
            conversation,
            Publisher(assembler, **self._publishing),
            **self._sessions,
        )
        closing = self._closing_orphans
        try:
            if closing is not None:
                session.on_orphan(lambda _: self._close_orphan(session, closing))
            await session.open(self._page_events)
            if closing is not None and session.orphan is not None:
                await _closing_orphan(session, closing)
        except BaseException:
            await session.close()
            raise
        self._woken += 1
        return session

    def _close_orphan(self, session: Session, closing: Closing) -> None:
        """An owner is gone: close what he left, unless another one is quicker."""
        task = asyncio.ensure_future(_closing_orphan(session, closing))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- going to sleep ------------------------------------------------------------------

    def _make_room(self) -> None:
        """Put one to sleep when there is no room for another."""
        if len(self._awake) < self._conversations_max:
            return
        for conversation, entry in self._idle.items():
            if self._may_sleep(entry):
                self._put_to_sleep(conversation)
                return
        raise LimitError(f"conversations: {len(self._awake)} are in use, conversations_max")

    def _watch(self) -> None:
        """See to it that the one that was left longest ago is looked at when its time is over."""
        if self._handle is not None or not self._idle or self._closed:
            return
        scheduler = self._scheduler or running_loop()
        if scheduler is None:
            return
        since = next(iter(self._idle.values())).idle_since or 0
        wait_ms = max(0, since + self._idle_ms - self._time())
        self._handle = scheduler.call_later(wait_ms / 1_000, self._look)

    def _look(self) -> None:
        """Put to sleep those whose time is over; one that may not gets its time again."""
        self._handle = None
        now = self._time()
        for conversation, entry in tuple(self._idle.items()):
            if entry.idle_since is None or entry.idle_since + self._idle_ms > now:
                break
            if self._may_sleep(entry):
                self._put_to_sleep(conversation)
                continue
            entry.idle_since = now
            del self._idle[conversation]
            self._idle[conversation] = entry
        self._watch()

    @staticmethod
    def _may_sleep(entry: _Entry) -> bool:
        session = entry.session
        return entry.opening.done() and not (session is not None and session.busy)

    def _put_to_sleep(self, conversation: str) -> None:
        entry = self._awake.pop(conversation)
        self._idle.pop(conversation, None)
        going = asyncio.ensure_future(self._closing(entry))
        self._going[conversation] = going
        going.add_done_callback(lambda _: self._going.pop(conversation, None))

    async def _closing(self, entry: _Entry) -> None:
        await asyncio.wait([entry.opening])
        session = entry.session
        if session is None:
            return
        try:
            await session.close()
        except AssemblerError as error:
            _log.warning("a session was not closed well: %s", type(error).__name__)
        self._slept += 1

    def _time(self) -> float:
        if self._clock is not None:
            return self._clock()
        return asyncio.get_running_loop().time() * 1_000

    # -- the rest ------------------------------------------------------------------------

    async def conversations(
        self, *, before: Listed | None = None, limit: int | None = None, newest: Iterable[str] = ()
    ) -> list[Listed]:
        """What is stored, awake or asleep, the one with the latest event first: see
        `Store.conversations`."""
        return await self.store.conversations(newest=newest, limit=limit, before=before)

    def statistics(self) -> dict[str, Any]:
        """Counts for an operator, as plain JSON values. O(conversations awake).

        `awake` of them `in_use`, and how often one was `woken` and was put to sleep (`slept`);
        `users` over all, and of each that is in use its Session's own counts (`sessions`).
        """
        users = {name: entry for name, entry in self._awake.items() if entry.users}
        return {
            "awake": len(self._awake),
            "in_use": len(users),
            "users": sum(entry.users for entry in users.values()),
            "woken": self._woken,
            "slept": self._slept,
            "sessions": {
                name: entry.session.statistics()
                for name, entry in users.items()
                if entry.session is not None
            },
        }

    async def close(self) -> None:
        """Close every Session, also those in use: their subscriptions end. A second time changes
        nothing."""
        self._closed = True
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None
        for conversation in tuple(self._awake):
            self._put_to_sleep(conversation)
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))
        while self._going:
            await asyncio.wait(tuple(self._going.values()))
            await asyncio.sleep(0)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def _closing_orphan(session: Session, closing: Closing) -> None:
    try:
        # Asked again when somebody was quicker: then it is none any more.
        await session.decide(lambda: None if (left := session.orphan) is None else closing(left))
    except AssemblerError as error:
        _log.warning("what was left open is not closed: %s", type(error).__name__)
