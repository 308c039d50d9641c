"""The conversations of a Hub as a `Source`: live, durable, and open to remote writers.

Here live the list over a store, and how a remote writer is present. Not here: Sessions (`live`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    ExitStack,
    aclosing,
    asynccontextmanager,
)
from typing import Any, Protocol

from msgspec.structs import replace

from assembler.engine.definition import Definition, GroupDefinition
from assembler.engine.errors import AssemblerError, ConflictError, LimitError
from assembler.engine.events import Delta, Draft, Event, Outcome, as_draft
from assembler.live import Hub, LiveAttempt, Session, wall_clock
from assembler.recordings.running import views_of
from assembler.server.sources import (
    BusyError,
    Entry,
    Listing,
    Place,
    Source,
    UnknownError,
    Writer,
    matches,
)
from assembler.server.titles import Titles
from assembler.stores import Listed, Store
from assembler.stores.addresses import SCHEMA, store_at

__all__ = ["Sessions", "StoreSource", "database"]

_log = logging.getLogger("assembler.server")
_SCANNED_AT_ONCE = 200
_LAST_NAME = "\U0010ffff"
"""Behind every name that is likely; a list that begins there goes on at the next time."""
_OPENING_EVENTS = 20
"""So many are looked at for the first words of a conversation."""
_OPENED_MAX = 10_000


class Sessions(Protocol):
    """What a `Hub` is for a server: one Session for each conversation, shared by who uses it."""

    @property
    def store(self) -> Store:
        """Where they are kept."""

    def use(self, conversation: str) -> AbstractAsyncContextManager[Session]:
        """The open Session of a conversation, as long as the block goes on."""

    def awake(self, conversation: str) -> Session | None:
        """The Session of a conversation, if there is one now."""


class StoreSource(Source):
    """What a Hub holds, or whatever else gives Sessions. It is opened and closed by its owner.

    `titles` are the types of events whose `title` is what a conversation is called (or `Titles`,
    which also know the first words of one without). `writes`:
    whether remote processes may write; a writer that says nothing for `silence_ms_max` while a turn
    is open is taken for dead. `empty`: whether one may follow a conversation that nobody has
    written to yet. `poll_ms`: how often to look for what other processes have stored, where the
    store hears of its own writers alone; None: never. `search_scanned_max`: how many entries one
    list looks at, at most.
    """

    def __init__(  # noqa: PLR0913 - given by name
        self,
        hub: Sessions,
        *,
        views: Sequence[str] = ("chat",),
        titles: Iterable[str] | Titles = (),
        writes: bool = False,
        empty: bool = False,
        poll_ms: float | None = None,
        search_scanned_max: int = 5_000,
        silence_ms_max: float = 60_000,
        now: Callable[[], int] = wall_clock,
    ) -> None:
        self._hub = hub
        self._views = tuple(views)
        self._titles = titles if isinstance(titles, Titles) else Titles(titles)
        self._opened: dict[str, str] = {}
        """The first words of conversations without a title; they do not change."""
        self._writer = _HubWriter(hub, silence_ms_max, now) if writes else None
        self._empty = empty or writes
        self._poll_ms = poll_ms
        self._search_scanned_max = search_scanned_max

    @property
    def hub(self) -> Sessions:
        """Whose conversations they are."""
        return self._hub

    @property
    def views(self) -> Sequence[str]:
        return self._views

    @property
    def writer(self) -> Writer | None:
        return self._writer

    # -- lists ---------------------------------------------------------------------------

    async def conversations(
        self, *, search: str = "", before: str | None = None, limit: int = 50
    ) -> Listing:
        """O(limit · log events); with a search, of what it looks at."""
        found: list[Entry] = []
        start = None if before is None else Place.of(before)
        reached = start or Place(0, 0)
        scanned = 0
        chunk = _SCANNED_AT_ONCE if search else limit + 1
        async with aclosing(self._walk(start, chunk)) as walk:
            async for place, listed in walk:
                if len(found) == limit or scanned == self._search_scanned_max:
                    return Listing(tuple(found), str(reached))
                scanned += 1
                reached = place
                entry = await self._entry(listed)
                if not search or matches(entry, search):
                    found.append(entry)
        return Listing(tuple(found))

    async def _walk(
        self, start: Place | None, chunk: int
    ) -> AsyncGenerator[tuple[Place, Listed], None]:
        """What is stored behind a Place, each entry with the Place behind it."""
        before, skip = None, 0
        if start is not None:
            before, skip = Listed(_LAST_NAME, 0, 0, start.time + 1, {}), start.passed
        place = Place(0, 0)
        while True:
            part = await self._hub.store.conversations(
                newest=self._titles.types, before=before, limit=chunk
            )
            for listed in part:
                place = place.then(listed.last_time)
                if start is None or listed.last_time < start.time or place.passed > skip:
                    yield place, listed
            if len(part) < chunk:
                return
            before = part[-1]

    async def _entry(self, listed: Listed) -> Entry:
        newest = sorted(listed.newest.values(), key=lambda event: event.seq)
        title = self._titles.given((event.type, event.data) for event in newest)
        title = title or await self._first_words(listed.conversation)
        session = self._hub.awake(listed.conversation)
        return Entry(
            listed.conversation,
            title,
            listed.events,
            listed.first_time,
            listed.last_time,
            None if session is None else session.live,
        )

    async def _first_words(self, conversation: str) -> str | None:
        if not self._titles.has_opening:
            return None
        known = self._opened.get(conversation)
        if known is None:
            events = await self._hub.store.read(conversation, 0, _OPENING_EVENTS)
            known = self._titles.opened((event.type, event.data) for event in events)
            if known is None:
                return None  # it may still be said
            if len(self._opened) >= _OPENED_MAX:
                del self._opened[next(iter(self._opened))]
            self._opened[conversation] = known
        return known

    # -- one conversation ----------------------------------------------------------------

    @asynccontextmanager
    async def open(self, conversation: str) -> AsyncGenerator[Session]:
        if not self._empty and not await self._hub.store.last(conversation):
            raise UnknownError("there is no such conversation")
        async with AsyncExitStack() as stack:
            session = await _used(self._hub, conversation, stack)
            if self._poll_ms is not None:
                polling = asyncio.create_task(_poll(session, self._poll_ms / 1_000))
                stack.push_async_callback(_ended, polling)
            yield session

    async def aclose(self) -> None:
        """Let go of what remote writers hold. Before the Hub is closed."""
        if self._writer is not None:
            await self._writer.aclose()


async def _used(hub: Sessions, conversation: str, stack: AsyncExitStack) -> Session:
    try:
        return await stack.enter_async_context(hub.use(conversation))
    except LimitError as error:
        raise BusyError(str(error)) from None


async def _poll(session: Session, seconds: float) -> None:
    while True:
        await asyncio.sleep(seconds)
        try:
            await session.catch_up()
        except AssemblerError as error:
            _log.warning("what others wrote was not read: %s", type(error).__name__)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


# Remote writers


class _Presence:
    """A remote writer at work on one conversation, which stays awake meanwhile, and is `live`.

    Its attempts are those of the Session here, so that other processes hear of them as well, and
    so that they go with this process, if it goes.
    """

    def __init__(self, session: Session, stack: AsyncExitStack) -> None:
        self.session = session
        self.stack = stack
        self.attempts: dict[str, LiveAttempt] = {}
        self.handle: asyncio.TimerHandle | None = None
        self._work = ExitStack()
        self._work.enter_context(session.working())

    @property
    def over(self) -> bool:
        """Nothing of it goes on, and nothing of the conversation is open."""
        going_on = any(each.outcome is None for each in self.attempts.values())
        return not going_on and self.session.open_now is None

    def emit(self, delta: Delta) -> None:
        """The next piece; one that came before changes nothing. Raises `ConflictError`."""
        attempt = self.attempts.get(delta.attempt)
        expected = 0 if attempt is None else attempt.ordinal
        if delta.ordinal > expected:
            said = f"attempt {delta.attempt!r:.80}: pieces {expected} to {delta.ordinal - 1} are"
            raise ConflictError(f"{said} missing", expected, delta.ordinal)
        if delta.ordinal < expected:
            return
        if attempt is None:
            attempt = self.session.attempt(
                delta.turn, delta.step, number=delta.number, name=delta.attempt
            )
            self.attempts[delta.attempt] = attempt
        attempt.emit(delta.type, delta.data)

    def leave(self) -> None:
        if self.handle is not None:
            self.handle.cancel()
        with contextlib.suppress(AssemblerError):  # the Hub is closed: nobody follows
            for attempt in self.attempts.values():
                if attempt.outcome is None:
                    attempt.settle(Outcome.INTERRUPTED)
            self._work.close()


class _HubWriter(Writer):
    def __init__(self, hub: Sessions, silence_ms_max: float, now: Callable[[], int]) -> None:
        self._hub = hub
        self._silence = silence_ms_max / 1_000
        self._now = now
        self._present: dict[str, _Presence] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def append(
        self, conversation: str, drafts: Iterable[Draft | Mapping[str, Any]], expected_seq: int
    ) -> Sequence[Event]:
        now = self._now()
        dated = [self._dated(each, now) for each in drafts]
        events = await self._hub.store.append(conversation, dated, expected_seq)
        async with self._at_work(conversation) as presence:
            await presence.session.catch_up()
        return events

    @staticmethod
    def _dated(value: Draft | Mapping[str, Any], now: int) -> Draft:
        draft = as_draft(value)
        return draft if draft.time else replace(draft, time=now)

    async def emit(self, conversation: str, deltas: Sequence[Delta]) -> None:
        async with self._at_work(conversation) as presence:
            for delta in deltas:
                presence.emit(delta)

    async def settle(self, conversation: str, attempt: str, outcome: Outcome) -> bool:
        async with self._at_work(conversation) as presence:
            known = presence.attempts.get(attempt)
            if known is not None:
                known.settle(outcome)
            return known is not None

    # -- presence ------------------------------------------------------------------------

    @asynccontextmanager
    async def _at_work(self, conversation: str) -> AsyncGenerator[_Presence]:
        """The writer is there, now and until it is silent for too long or all is closed."""
        presence = self._present.get(conversation)
        if presence is None:
            stack = AsyncExitStack()
            session = await _used(self._hub, conversation, stack)
            presence = self._present.get(conversation)
            if presence is None:
                presence = self._present[conversation] = _Presence(session, stack)
            else:  # another request was quicker
                await stack.aclose()
        try:
            yield presence
        finally:
            self._heard(conversation, presence)

    def _heard(self, conversation: str, presence: _Presence) -> None:
        if presence.handle is not None:
            presence.handle.cancel()
        if self._present.get(conversation) is not presence:
            return
        if presence.over:
            self._leave(conversation)
            return
        loop = asyncio.get_running_loop()
        presence.handle = loop.call_later(self._silence, self._leave, conversation)

    def _leave(self, conversation: str) -> None:
        """The writer is done, or it is taken for dead: what it left open goes."""
        presence = self._present.pop(conversation)
        presence.leave()
        task = asyncio.ensure_future(presence.stack.aclose())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def aclose(self) -> None:
        for conversation in tuple(self._present):
            self._leave(conversation)
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))


@asynccontextmanager
async def database(
    address: str | os.PathLike[str],
    definitions: Iterable[Definition | GroupDefinition],
    *,
    titles: Iterable[str] | Titles = (),
    schema: str = SCHEMA,
) -> AsyncGenerator[StoreSource]:
    """The conversations of a SQLite file or a PostgreSQL database (its `postgresql://` URI, and
    the schema there), which other processes may be writing; to be read."""
    known = list(definitions)
    async with (
        store_at(os.fspath(address), schema=schema, create=False) as store,
        Hub(store, known, elsewhere=None, page_events=200) as hub,
    ):
        yield StoreSource(hub, views=views_of(known), titles=titles)
