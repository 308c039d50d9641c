"""The inside of a Session: what it owns, and what it asks its store, without any waiting.

Here lives the continuity of `seq`: every event is taken once, in order, from the store or from
whoever brings it, and a gap is filled before anything behind it is taken. What asks the store is
a generator (`driving`), so that both faces of a Session (`session`) are one code. Nothing here
knows a business word, a loop or a clock.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Anomaly
from assembler.engine.errors import AssemblerError, ConflictError, GapError, InputError
from assembler.engine.events import (
    Delta,
    Draft,
    Event,
    Outcome,
    as_draft,
    as_event,
    need_int,
    need_text,
    position,
)
from assembler.engine.timeline import boundary
from assembler.live.base import Ended, Seat
from assembler.live.driving import Ask, Steps
from assembler.live.places import BOUNDARIES, Open, Places
from assembler.live.publisher import Publisher
from assembler.stores import Page, StoreError

__all__ = ["Core", "Counts", "Decision", "Hear", "LiveAttempt", "OneOrMore"]

OneOrMore = Draft | Mapping[str, Any] | Iterable[Draft | Mapping[str, Any]]
Decision = Callable[[], OneOrMore | None]
"""Reads what is loaded, and says what is to be stored because of it: nothing, one draft, several.
Asked again when another writer was quicker; it must do nothing else."""
Hear = Callable[[Event, bool], None]
"""Told of each event that comes after opening, once and in order, and whether this Session wrote
it. What a page or an opening loads is no news, and is never told."""

_EMPTY: tuple[Draft, ...] = ()
_READ_EVENTS = 1_000  # at once, when events are missing
_log = logging.getLogger("assembler.live")


class Counts(Struct):
    """What a Session has done, for an operator."""

    appended: int = 0
    """Events that it wrote."""
    conflicts: int = 0
    """How often another writer was quicker."""
    repaired: int = 0
    """Events that it read because they were missing."""


class LiveAttempt:
    """One attempt of this Session, from its first delta to its outcome.

    `name` is unique in the conversation; `number` says which try of its step it is (0: a side
    stream). Made by `Session.attempt`. Nothing here waits.
    """

    def __init__(self, core: Core, name: str, turn: int, step: int, number: int) -> None:
        self._core = core
        self.name = name
        self.turn = turn
        self.step = step
        self.number = number
        self.ordinal = 0
        """Of the next delta, and so how many there were."""
        self.outcome: Outcome | None = None
        """How it ended; None: it goes on (or its step was closed)."""

    def emit(self, type: str, data: Mapping[str, Any] | None = None) -> Delta:
        """Show one more piece, at once, behind all that was shown; the Session gives it its place.

        Once the attempt is given up (its step has closed, a later number has spoken, an event
        named it), the piece is dropped and noted as `late-delta`. Raises `InputError` for what is
        no JSON, `ConflictError` when the attempt is settled; nothing has changed then.
        """
        if self.outcome is not None:
            raise ConflictError(
                f"attempt {self.name!r} has ended: {self.outcome.value}", None, self.outcome.value
            )
        delta = self._core.emit(self, type, data or {})
        self.ordinal += 1
        return delta

    def settle(self, outcome: Outcome | str = Outcome.COMPLETED) -> None:
        """It ended. All but `completed` withdraw what it showed, at once.

        `completed` may be followed by another outcome. Raises `InputError`.
        """
        self._core.settle(self, outcome)

    def __repr__(self) -> str:
        return f"<attempt {self.name} number {self.number} of {self.turn}.{self.step}>"


class Core:
    """One conversation: its window onto the store, its Publisher, and who works on it."""

    def __init__(
        self,
        conversation: str,
        publisher: Publisher,
        *,
        now: Callable[[], int],
        names: Callable[[], str],
        elsewhere: bool | None,
        conflicts_max: int,
    ) -> None:
        need_text("conversation", conversation)
        if type(conflicts_max) is not int or conflicts_max < 1:
            raise InputError(f"conflicts_max: expected 1 or more, got {conflicts_max!r:.80}")
        self.conversation = conversation
        self.publisher = publisher
        self.now = now
        self.counts = Counts()
        self.end: int | None = None
        """The seq of the last event taken; None before opening."""
        self.places = Places()
        self.working = 0
        self.attempts: dict[str, LiveAttempt] = {}
        """Those of this Session that go on."""
        self.seat: Seat | None = None
        """Where others are told of what goes on here."""
        self._elsewhere = elsewhere
        self._names = names
        self._conflicts_max = conflicts_max
        self._numbers: dict[tuple[int, int], int] = {}
        """The highest number begun in each step above the floor."""
        self._index = 0
        self._unsure = False
        """An append was left before its answer: only the store knows what became of it."""
        self._hears: list[Hear] = []
        self._closed = False

    @property
    def assembler(self) -> Assembler:
        return self.publisher.assembler

    @property
    def last(self) -> int:
        """The seq of the last event taken; `AssemblerError` before opening and after closing."""
        if self._closed:
            raise AssemblerError(f"the session of {self.conversation!r} is closed")
        if self.end is None:
            raise AssemblerError(f"the session of {self.conversation!r} is not open yet")
        return self.end

    # == what asks the store =============================================================

    def opening(self, page: int) -> Steps[None]:
        """Load the newest page. A second time: again, as a resync."""
        if self._closed:
            raise AssemblerError(f"the session of {self.conversation!r} is closed")
        name = self.conversation
        # The page first: a boundary that is written in between is then known too early, not never.
        newest: Page = yield lambda store: store.page(name, None, page)
        edges: Iterable[Event] = yield lambda store: store.newest(name, BOUNDARIES).values()
        if any(boundary(event) is None for event in edges):
            # One without numbers hides the others of its type: rare enough to read them all.
            edges = yield _reading(name, 0, None)
        self.publisher.load(newest.events, newest.has_more)
        self.places = Places([*edges, *newest.events])
        self.end = newest.events[-1].seq if newest.events else 0
        self._unsure = False
        self._forget_closed()
        self._tell_liveness()

    def appending(self, drafts: OneOrMore, *, retry: bool) -> Steps[list[Event]]:
        """Store drafts behind the last event, then show them."""
        some = self._stamped(drafts)
        if retry:
            return (yield from self.deciding(lambda: some))
        yield from self._sure()
        try:
            return (yield from self._append(some))
        except ConflictError as error:
            self._note_conflict()
            conflict = error
        yield from self.catching_up()
        raise conflict

    def deciding(self, decide: Decision) -> Steps[list[Event]]:
        """Store what `decide` says, which is asked again each time another writer was quicker."""
        yield from self._sure()
        for _ in range(self._conflicts_max):
            drafts = self._stamped(decide())
            if not drafts:
                return []
            try:
                return (yield from self._append(drafts))
            except ConflictError as error:
                self._note_conflict()
                conflict = error
            yield from self.catching_up()
            if self.last == conflict.expected:
                break  # the log ends before what is loaded: no retry will help
        raise conflict

    def _append(self, drafts: Sequence[Draft]) -> Steps[list[Event]]:
        """Stored first, then shown. Raises `ConflictError`."""
        expected, name = self.last, self.conversation
        self._unsure = True
        try:
            events, wrote = yield lambda store: store.write(name, drafts, expected)
        except AssemblerError as error:
            self._unsure = isinstance(error, StoreError)
            raise
        for event in sorted(events, key=_seq):
            if event.seq > self.last + 1:
                yield from self.catching_up(event.seq - 1)
            self._take(event, own=event.seq > expected and wrote > 0)
        self._unsure = False
        self.counts.appended += wrote
        if wrote and self.seat is not None:
            self.seat.stored(self.last)
        return list(events)

    def catching_up(self, until: int | None = None) -> Steps[None]:
        """Take what is stored behind the last event, up to seq `until`."""
        while until is None or self.last < until:
            after = self.last
            limit = _READ_EVENTS if until is None else min(_READ_EVENTS, until - after)
            found = yield _reading(self.conversation, after, limit)
            for event in found:
                self.counts.repaired += self._take(event, own=False)
            if len(found) < limit:
                break
        if until is None:
            self._unsure = False

    def receiving(self, event: Event | Mapping[str, Any]) -> Steps[None]:
        """Take an event that somebody brings; what is missing before it is read first."""
        given = as_event(event)
        if given.seq <= self.last:
            self.publisher.append(given)  # compared, and ignored
            return
        yield from self.catching_up(given.seq - 1)
        if self.last < given.seq - 1:
            raise GapError(self.last + 1, given.seq - 1)
        self._take(given, own=False)

    def paging(self, limit: int) -> Steps[bool]:
        """Load the page before the window; whether older ones exist."""
        while self.assembler.window.has_more:
            before = self._first()
            page: Page = yield _paging(self.conversation, before, limit)
            if before == self._first():  # nothing was forgotten in the meantime
                self.publisher.prepend(page.events, page.has_more)
                break
        return self.assembler.window.has_more

    def _first(self) -> int:
        """The seq before which an older page ends."""
        first = self.assembler.window.first
        return self.last + 1 if first is None else first

    def _sure(self) -> Steps[None]:
        """Learn what became of an append that was left."""
        self.last  # noqa: B018 - raises when it is not open
        if self._unsure:
            yield from self.catching_up()

    def _stamped(self, drafts: OneOrMore | None) -> Sequence[Draft]:
        """Checked drafts; those without a time get that of now."""
        if drafts is None:
            return _EMPTY
        some: Any = [drafts] if isinstance(drafts, (Draft, Mapping)) else drafts
        if isinstance(some, (str, bytes)) or not isinstance(some, Iterable):
            raise InputError(f"drafts: expected drafts, got {type(some).__name__}")
        now = self.now()
        return [_timed(as_draft(draft), now) for draft in some]

    def _note_conflict(self) -> None:
        self.counts.conflicts += 1
        place = position(self.last, 0)
        self.assembler.anomalies.incident(Anomaly("seq-conflict", f"event:{self.last}", place))

    # == taking ==========================================================================

    def _take(self, event: Event, *, own: bool) -> int:
        """Show one event, once, and tell of it; 0 when it was taken before."""
        if event.seq <= self.last:
            return 0
        self.publisher.append(event)
        self.end = event.seq
        floor = self.places.floor
        self.places.learn(event)
        if self.places.floor != floor:
            self._forget_closed()
            if self.seat is not None:
                self.seat.retire(self.places.floor, wrote=own)
        for hear in tuple(self._hears):
            try:
                hear(event, own)
            except Exception as error:  # whose words may hold contents
                _log.error("a listener raised %s at event %d", type(error).__name__, event.seq)
        return 1

    def hear(self, hear: Hear) -> Callable[[], None]:
        self._hears.append(hear)

        def stop() -> None:
            if hear in self._hears:
                self._hears.remove(hear)

        return stop

    # == attempts ========================================================================

    def begin(self, turn: int, step: int, number: int | None, name: str | None) -> LiveAttempt:
        self.last  # noqa: B018 - raises when it is not open
        need_int("turn", turn)
        need_int("step", step)
        if number is not None:
            need_int("number", number, 0)
        name = self._names() if name is None else name
        need_text("name", name)
        if name in self.attempts:
            raise ConflictError(f"attempt {name!r} goes on already", None, name)
        highest = self._numbers.get((turn, step), 0)
        number = highest + 1 if number is None else number
        attempt = LiveAttempt(self, name, turn, step, number)
        if (turn, step) > self.places.floor:
            self.attempts[name] = attempt
            self._numbers[turn, step] = max(highest, number)
            self._tell_liveness()
        return attempt

    def emit(self, attempt: LiveAttempt, type: str, data: Mapping[str, Any]) -> Delta:
        delta = Delta(
            attempt.name,
            attempt.turn,
            attempt.step,
            type,
            data,
            attempt.number,
            attempt.ordinal,
            self.last,
            self._index + 1,
            self.now(),
        )
        self.publisher.emit(delta)
        self._index += 1
        if self.seat is not None and attempt.name in self.attempts:
            self.seat.emit(delta)
        return delta

    def settle(self, attempt: LiveAttempt, outcome: Outcome | str) -> None:
        if self._closed:
            return  # all were settled then
        self.publisher.settle(attempt.name, outcome)
        attempt.outcome = Outcome(outcome)
        if self.seat is not None:
            self.seat.settle(
                attempt.name, attempt.turn, attempt.step, attempt.number, attempt.outcome
            )
        if self.attempts.pop(attempt.name, None) is not None:
            self._tell_liveness()

    def receive_delta(self, delta: Delta) -> None:
        self.publisher.emit(delta)
        self._index = max(self._index, delta.index)
        self._learn_number(delta.turn, delta.step, delta.number)

    def receive_end(self, ended: Ended) -> None:
        self.publisher.settle(ended.attempt, ended.outcome)
        self._learn_number(ended.turn, ended.step, ended.number)

    def _learn_number(self, turn: int, step: int, number: int) -> None:
        place = turn, step
        if place > self.places.floor:
            self._numbers[place] = max(self._numbers.get(place, 0), number)

    def _forget_closed(self) -> None:
        """What lies at or below the floor is over. O(what is open)."""
        floor = self.places.floor
        for place in [place for place in self._numbers if place <= floor]:
            del self._numbers[place]
        over = [each for each in self.attempts.values() if (each.turn, each.step) <= floor]
        for attempt in over:
            del self.attempts[attempt.name]
        if over:
            self._tell_liveness()

    # == who works on it =================================================================

    @property
    def busy(self) -> bool:
        """Whether somebody works here."""
        return bool(self.working or self.attempts)

    @property
    def live(self) -> bool | None:
        """True: somebody works here or elsewhere; False: nobody does; None: not known."""
        return True if self.busy or self._elsewhere else self._elsewhere

    @property
    def elsewhere(self) -> bool | None:
        return self._elsewhere

    def set_elsewhere(self, live: bool | None) -> None:
        if live is not None and type(live) is not bool:
            raise InputError(f"elsewhere: expected true, false or null, got {live!r:.80}")
        self._elsewhere = live
        self._tell_liveness()

    def work(self, more: int) -> None:
        self.working += more
        self._tell_liveness()

    @property
    def orphan(self) -> Open | None:
        return self.places.open_now if self.live is False else None

    def _tell_liveness(self) -> None:
        if self.seat is not None:
            self.seat.claim(busy=self.busy)
        if self.end is not None and not self._closed:
            self.publisher.liveness(self.live)

    # == the end =========================================================================

    def close(self) -> None:
        """Withdraw what goes on here, and end every subscription."""
        if self._closed:
            return
        for attempt in tuple(self.attempts.values()):
            attempt.settle(Outcome.INTERRUPTED)
        self.working = 0
        self._tell_liveness()
        self._closed = True
        self._hears.clear()
        self.publisher.close()

    def statistics(self) -> dict[str, Any]:
        counts = self.counts
        return {
            "last": self.end,
            "working": self.working,
            "attempts": len(self.attempts),
            "appended": counts.appended,
            "conflicts": counts.conflicts,
            "repaired": counts.repaired,
            "assembler": self.assembler.statistics(),
            "publisher": self.publisher.statistics(),
        }


def _reading(name: str, after: int, limit: int | None) -> Ask:
    return lambda store: store.read(name, after, limit)


def _paging(name: str, before: int, limit: int) -> Ask:
    return lambda store: store.page(name, before, limit)


def _seq(event: Event) -> int:
    return event.seq


def _timed(draft: Draft, now: int) -> Draft:
    if draft.time != 0:
        return draft
    return Draft(draft.type, draft.data, now, draft.id, draft.v, draft.more)
