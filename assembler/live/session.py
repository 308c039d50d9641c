"""Sessions: one conversation's store and Assembler, held together.

`Session` is for an event loop, `SyncSession` the same without one. What both do is `core`; here
stand the calls, their promises, and the one difference: who waits for the store. Not here: what
an event means, and which one is to be written (that is business).
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from assembler.engine.assembler import Assembler
from assembler.engine.errors import AssemblerError
from assembler.engine.events import Delta, Draft, Event, Outcome
from assembler.engine.patches import Patch
from assembler.engine.views import View
from assembler.live.base import Live
from assembler.live.core import Core, Decision, Hear, LiveAttempt
from assembler.live.driving import Steps, drive, drive_async
from assembler.live.ears import Ears, Orphaned
from assembler.live.places import Open
from assembler.live.publisher import Publisher
from assembler.live.subscription import Subscription
from assembler.stores import Store, SyncStore

__all__ = ["Session", "SyncSession", "new_name", "wall_clock"]

T = TypeVar("T")
PAGE_EVENTS = 50
_log = logging.getLogger("assembler.live")


def wall_clock() -> int:
    """Milliseconds since the Unix epoch: what `now` is when nobody gives it."""
    return time.time_ns() // 1_000_000


def new_name() -> str:
    """A name that nobody bears: what `names` is when nobody gives it."""
    return uuid.uuid4().hex


class _Face:
    """What needs no store, and so no waiting: the same for both."""

    def __init__(self, core: Core) -> None:
        self._core = core

    # -- reading -------------------------------------------------------------------------

    @property
    def conversation(self) -> str:
        return self._core.conversation

    @property
    def assembler(self) -> Assembler:
        """For reading: States, findings, anomalies, the window. Operate it here alone."""
        return self._core.assembler

    @property
    def publisher(self) -> Publisher:
        """Who sends what changes to those who follow."""
        return self._core.publisher

    @property
    def last(self) -> int:
        """The seq of the last event that was taken; 0: nobody has written yet."""
        return self._core.last

    @property
    def now(self) -> Callable[[], int]:
        """The clock, in milliseconds: the one that was given."""
        return self._core.now

    def view(self, name: str = "chat") -> View:
        """A view, flushed: as of now. O(what changed)."""
        self._core.publisher.flush()
        return self._core.assembler.view(name)

    def statistics(self) -> dict[str, Any]:
        """Counts for an operator, as plain JSON values."""
        return self._core.statistics()

    # -- turns and steps -----------------------------------------------------------------

    @property
    def open_now(self) -> Open | None:
        """The newest open turn and its newest open step, whether loaded or not; None: all is
        closed. O(1)."""
        return self._core.places.open_now

    @property
    def last_turn(self) -> int:
        """The highest turn that began or ended, whether loaded or not; 0: none did."""
        return self._core.places.last_turn

    @property
    def last_step(self) -> int:
        """The highest step of that turn; 0: none."""
        return self._core.places.last_step

    @property
    def orphan(self) -> Open | None:
        """What is open although nobody works on it any more: its owner crashed.

        What to write to close it is business; written by `decide`, it is written once, whoever
        comes first:

            await session.decide(lambda: session.orphan and closing(session.orphan))
        """
        return self._core.orphan

    # -- who works on it -----------------------------------------------------------------

    @property
    def live(self) -> bool | None:
        """Whether somebody works on this conversation; None: not known. What the views show."""
        return self._core.live

    @contextmanager
    def working(self) -> Iterator[None]:
        """Around work on this conversation: `live` is true meanwhile. May be nested."""
        self._core.work(1)
        try:
            yield
        finally:
            if self._core.working:  # else it was closed meanwhile
                self._core.work(-1)

    @property
    def busy(self) -> bool:
        """Whether somebody works on it through this Session: within `working`, or by an attempt
        that goes on."""
        return self._core.busy

    @property
    def elsewhere(self) -> bool | None:
        """Whether others work on it, as far as is known (None: it is not).

        A Session that has a live backend hears of it there. Without one, set it when you hear of
        it; False, the default, says that whoever works on it works through this Session.
        """
        return self._core.elsewhere

    @elsewhere.setter
    def elsewhere(self, live: bool | None) -> None:
        self._core.set_elsewhere(live)

    # -- attempts ------------------------------------------------------------------------

    def attempt(
        self, turn: int, step: int, *, number: int | None = None, name: str | None = None
    ) -> LiveAttempt:
        """Begin an attempt: one try of the model call of `step`.

        `number` is the next one of its step (0: a side stream, beside the numbered ones). `name`
        comes from `names`; one of your own must be new in the conversation (`ConflictError` when
        it is that of an attempt that goes on). Until it is settled somebody is `live`.
        """
        return self._core.begin(turn, step, number, name)

    @property
    def attempts(self) -> list[LiveAttempt]:
        """The attempts of this Session that go on, oldest first."""
        return list(self._core.attempts.values())

    def receive_delta(self, delta: Delta) -> None:
        """Take a delta of an attempt that another process makes. A repeat changes nothing."""
        self._core.receive_delta(delta)

    def receive_settlement(self, attempt: str, outcome: Outcome | str) -> None:
        """Take how an attempt of another process ended."""
        self._core.publisher.settle(attempt, outcome)

    # -- the rest ------------------------------------------------------------------------

    def listen(self, hear: Hear) -> Callable[[], None]:
        """Have `hear(event, own)` called for each event that comes from now on; gives what ends it.

        Once for each, in order, after it is stored and taken; `own` says whether this Session
        wrote it. What opening and paging load is history and never heard, so that what
        is done because of it is done at most once. It must be quick; what it raises is logged.
        """
        return self._core.hear(hear)

    def evict(self, before: int) -> None:
        """Forget loaded events older than seq `before`; `older` loads them again."""
        self._core.publisher.evict(before)


class SyncSession(_Face):
    """A Session without an event loop: every call is done when it returns.

    For one thread at a time. See `Session`, whose calls these are; `flush` takes the place of
    `subscribe`.
    """

    def __init__(  # noqa: PLR0913 - given by name
        self,
        store: SyncStore,
        conversation: str,
        assembler: Assembler | Publisher,
        *,
        now: Callable[[], int] = wall_clock,
        names: Callable[[], str] = new_name,
        elsewhere: bool | None = False,
        conflicts_max: int = 100,
    ) -> None:
        publisher = Publisher(assembler) if isinstance(assembler, Assembler) else assembler
        core = Core(
            conversation,
            publisher,
            now=now,
            names=names,
            elsewhere=elsewhere,
            conflicts_max=conflicts_max,
        )
        super().__init__(core)
        self._store = store

    def _do(self, steps: Steps[T]) -> T:
        return drive(steps, lambda ask: ask(self._store))

    def open(self, page: int = PAGE_EVENTS) -> Self:
        """Load the newest `page` events."""
        self._do(self._core.opening(page))
        return self

    def append(self, *drafts: Draft | Mapping[str, Any], retry: bool = False) -> list[Event]:
        """Store drafts behind the last event, all or none, then show them."""
        return self._do(self._core.appending(drafts, retry=retry))

    def decide(self, decide: Decision) -> list[Event]:
        """Store what `decide` says, asked again when another writer was quicker."""
        return self._do(self._core.deciding(decide))

    def catch_up(self) -> None:
        """Take what other writers have stored."""
        self._do(self._core.catching_up())

    def receive(self, event: Event | Mapping[str, Any]) -> None:
        """Take an event that somebody brings, and first what is missing before it."""
        self._do(self._core.receiving(event))

    def older(self, limit: int = PAGE_EVENTS) -> bool:
        """Load the page before what is loaded; whether still older events exist."""
        return self._do(self._core.paging(limit))

    def flush(self) -> dict[str, Patch]:
        """What changed since the last flush: a Patch for each active view."""
        return self._core.publisher.flush()

    def close(self) -> None:
        """Withdraw the attempts that go on here. The store stays open."""
        self._core.close()

    def __enter__(self) -> Self:
        if self._core.end is None:
            self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class Session(_Face):
    """One conversation: its store, its Assembler, and everything between them.

        async with Session(store, "demo", Assembler(catalog())) as session:
            await session.append(Draft("turn/start", {"turn": session.last_turn + 1}))

    - **Durable.** `append` stores first and shows then; what it returns is stored and shown.
    - **In order.** Events are taken once each, without a gap, whoever wrote them: what the store
      hears of comes by itself, also from other processes; `catch_up` asks for it at once.
    - **Consistent when cancelled.** A call that is cancelled while the store works ends at once
      for its caller, and goes on behind it: what was stored is shown, once.
    - **History is silent.** What is loaded triggers nothing (`listen`).

    `assembler` may be a Publisher, to set its frame or its queues. `now` gives milliseconds,
    `names` the names of attempts, which must be new in the conversation. `elsewhere`: whether
    others may be working on it (see there). `conflicts_max`: how often a call begins
    again because another writer was quicker, before it raises `ConflictError`.

    `live` (a `Live`) tells other Sessions of the same conversation, in this process and in others,
    what goes on here, and what goes on there is shown here: their deltas from the first one on, how
    they end, that somebody works, and that something is stored. What an owner had going who died is
    withdrawn once his lease has ended; what he left open is an `orphan` then (`on_orphan`).

    For one event loop; any number of its tasks. The calls that wait take turns. Entering opens
    it; leaving closes it, and not the store. `sync` is the same Session without waiting.
    """

    def __init__(  # noqa: PLR0913 - given by name
        self,
        store: Store,
        conversation: str,
        assembler: Assembler | Publisher,
        *,
        now: Callable[[], int] = wall_clock,
        names: Callable[[], str] = new_name,
        elsewhere: bool | None = False,
        conflicts_max: int = 100,
        live: Live | None = None,
    ) -> None:
        self.sync = SyncSession(
            store.sync,
            conversation,
            assembler,
            now=now,
            names=names,
            elsewhere=elsewhere,
            conflicts_max=conflicts_max,
        )
        """The same Session as plain calls, which block the loop while the store works."""
        super().__init__(self.sync._core)  # noqa: SLF001 - two faces of one thing
        self._store = store
        self._turn = asyncio.Lock()
        self._heard = 0
        """The seq that the store last told of."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stop: Callable[[], None] | None = None
        self._closing = False
        self._live = live
        self._ears = Ears(self._core, catch_up=self.catch_up, heard=self._hear)

    # -- opening and closing -------------------------------------------------------------

    async def open(self, page: int = PAGE_EVENTS) -> Self:
        """Load the newest `page` events; a second time, load them again. O(page · log page).

        With a live backend, what goes on elsewhere is shown when this returns. Raises `StoreError`
        and `LiveError`.
        """
        if self._stop is None:
            loop = asyncio.get_running_loop()
            self._stop = self._store.sync.listen(
                self.conversation, lambda seq: _call(loop, self._hear, seq)
            )
        try:
            await self._do(self._core.opening(page))
        except AssemblerError:
            if self._core.end is None:
                self._stop()
                self._stop = None
            raise
        if self._live is not None and self._ears.seat is None:
            # Behind the page: who works on what is open in it has said so before.
            await self._ears.join(self._live)
        return self

    async def close(self) -> None:
        """Wait for what goes on behind cancelled calls, withdraw the attempts that go on here,
        and end every subscription. The store stays open. A second time changes nothing."""
        self._closing = True
        if self._stop is not None:
            self._stop()
        await self._ears.stop()
        while self._tasks:
            await asyncio.wait(tuple(self._tasks))
        self._core.close()
        await self._ears.leave()

    async def __aenter__(self) -> Self:
        if self._core.end is None:
            await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    # -- durable events ------------------------------------------------------------------

    async def append(self, *drafts: Draft | Mapping[str, Any], retry: bool = False) -> list[Event]:
        """Store drafts behind the last event, all or none, then show them.

        Gives an event for each. A draft without a time gets that of now. One whose `id` is stored
        already gives the stored event. When another writer was quicker, what they wrote is taken
        (`seq-conflict` is noted), and then: with `retry` it is tried again; without, it raises
        `ConflictError`, and you may look at what is new before you try again (or let `decide` do
        that). Raises `InputError`, `LimitError`, and `StoreError`, after which only the store knows
        whether they are stored: the next call finds out.
        """
        await self._claimed()
        return await self._do(self._core.appending(drafts, retry=retry))

    async def decide(self, decide: Decision) -> list[Event]:
        """Store what `decide()` says after reading what is loaded: drafts, one draft, or nothing.

        When another writer was quicker, what they wrote is taken and `decide` is asked again. So
        what it stores is decided in full knowledge of all that stands before it, and of two
        Sessions that would both write the same once, one does. Errors as `append`, and what
        `decide` raises.
        """
        await self._claimed()
        return await self._do(self._core.deciding(decide))

    async def _claimed(self) -> None:
        """Others hear that somebody works here before they can read what he writes."""
        seat = self._ears.seat
        if seat is not None:
            await seat.claimed()

    async def catch_up(self) -> None:
        """Take what others have stored, in other processes as well. O(what is new)."""
        await self._do(self._core.catching_up())

    async def receive(self, event: Event | Mapping[str, Any]) -> None:
        """Take an event that somebody brings, and before it, from the store, what is missing.

        A repeat changes nothing. Raises `GapError` when the store does not have what is missing
        (nothing is guessed over), `ConflictError` when a loaded event of its seq is another.
        """
        await self._do(self._core.receiving(event))

    async def older(self, limit: int = PAGE_EVENTS) -> bool:
        """Load the page before what is loaded; whether still older events exist. O(page)."""
        return await self._do(self._core.paging(limit))

    def on_orphan(self, orphaned: Orphaned) -> Callable[[], None]:
        """Have `orphaned(open)` called when it is learned that what is open was left by an owner
        who is gone; gives what ends it. Only with a live backend. Close what is open by `decide`,
        asking `orphan` again: the Sessions of all processes are told, and one of them writes.
        """
        return self._ears.on_orphan(orphaned)

    def subscribe(self, view: str = "chat") -> Subscription:
        """Follow a view: a snapshot, then patches, without a gap or a repeat.

        async with session.subscribe("chat") as view:
            await send(view.snapshot.to_json())
            async for patch in view:
                await send(patch.to_json())
        """
        return self._core.publisher.subscribe(view)

    # -- taking turns --------------------------------------------------------------------

    async def _do(self, steps: Steps[T]) -> T:
        """One call at a time. Cancelled while it waits for its turn, it does nothing; later, it is
        done behind its caller's back."""
        await self._turn.acquire()
        if self._closing:
            self._turn.release()
            raise AssemblerError(f"the session of {self.conversation!r} is closed")
        return await asyncio.shield(self._take_turn(steps))

    def _take_turn(self, steps: Steps[T]) -> asyncio.Task[T]:
        """Do it in a task of its own, which gives the turn back however it ends."""
        task = asyncio.ensure_future(drive_async(steps, self._store.run))
        self._tasks.add(task)
        task.add_done_callback(self._end_turn)
        return task

    def _end_turn(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._turn.release()
        if not task.cancelled():  # else the loop is about to end
            self._follow()

    def _hear(self, seq: int) -> None:
        self._heard = max(self._heard, seq)
        self._follow()

    def _follow(self) -> None:
        """See to it that what the store told of is taken. Whoever has the turn looks again."""
        end = self._core.end
        if end is None or self._heard <= end or self._closing or self._turn.locked():
            return
        self._heard = 0  # told again, or asked again, if it fails
        task = asyncio.ensure_future(self._catch_up_quietly())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _catch_up_quietly(self) -> None:
        try:
            await self.catch_up()
        except AssemblerError as error:
            # The next call reads on; a store that fails tells whoever calls.
            _log.warning("what others wrote was not taken: %s", type(error).__name__)


def _call(loop: asyncio.AbstractEventLoop, hear: Callable[[int], None], seq: int) -> None:
    """From the thread of a writer into that of the loop."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(hear, seq)
