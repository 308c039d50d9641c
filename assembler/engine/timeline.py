"""Turns and steps: what the boundary events and explicit coordinates of the loaded events say.

Pure in what is loaded: what it knows goes when the events go. What was ever known closed, for
deciding about the next delta, is `attempts`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sortedcontainers import SortedList

from assembler.engine.events import INT_END, Event
from assembler.engine.locations import SESSION, TURN_END, UNRESOLVED, Floor, Location, Status
from assembler.engine.values import Object, freeze_object

__all__ = ["BOUNDARIES", "NOTHING_CLOSED", "Timeline", "boundary", "closes", "coordinates"]

TURN_START = "turn/start"
TURN_END_TYPE = "turn/end"
STEP_START = "step/start"
STEP_END = "step/end"
BOUNDARIES = frozenset((TURN_START, TURN_END_TYPE, STEP_START, STEP_END))

NOTHING_CLOSED: Floor = (-TURN_END, -TURN_END)

Place = tuple[int, int | None]


def coordinates(event: Event) -> Place | None:
    """The turn and step that an event names itself; None when it names no turn."""
    turn = event.data.get("turn")
    if type(turn) is not int or not -INT_END < turn < INT_END:
        return None
    step = event.data.get("step")
    named = type(step) is int and -INT_END < step < INT_END
    return turn, step if named else None


def boundary(event: Event) -> Place | None:
    """What a boundary event opens or closes; None for every other event."""
    if event.type not in BOUNDARIES:
        return None
    place = coordinates(event)
    if place is None:
        return None
    if event.type in (TURN_START, TURN_END_TYPE):
        return place[0], None
    return None if place[1] is None else place


def closes(event: Event) -> Floor | None:
    """Up to where an event closes what came before; None when it closes nothing.

    Turns and steps close in order, so that a start closes all that is earlier.
    """
    place = boundary(event)
    if place is None:
        return None
    turn, step = place
    if event.type == TURN_START:
        return turn - 1, TURN_END
    if event.type == TURN_END_TYPE or step is None:
        return turn, TURN_END
    return (turn, step - 1) if event.type == STEP_START else (turn, step)


def _bracket(event: Event) -> Location:
    """Where an event right behind this boundary belongs."""
    place = boundary(event)
    if place is None or event.type == TURN_END_TYPE:
        return SESSION
    return Location(place[0], None if event.type == STEP_END else place[1])


def _text(place: Place) -> str:
    return f"{place[0]}.{place[1]}"


def _place(text: str) -> Place:
    turn, _, step = text.partition(".")
    return int(turn), None if step == "None" else int(step)


class Timeline:
    """The boundaries of the loaded events. Look-up is by bisection."""

    __slots__ = ("_closers", "_open", "_open_now", "_seqs", "_starts")

    def __init__(self) -> None:
        self._seqs: Any = None  # made with the first boundary
        # By text: a tuple would make the collector walk the dict each time one is new.
        self._starts: dict[str, int | tuple[int, ...]] = {}
        self._closers: list[tuple[int, Floor]] = []
        self._open: set[Place] = set()
        self._open_now: tuple[Object | None] | None = None

    # -- changes: the events of one call are contiguous ---------------------------------

    def append(self, event: Event) -> None:
        """An event behind all that is loaded. O(1) amortised."""
        place = boundary(event) if event.type in BOUNDARIES else None
        if place is None:
            return
        self._seqs = self._seqs or SortedList()
        self._seqs.add(event.seq)
        self._add_start(event, place)
        floor = closes(event)
        if floor is not None:
            # Only an event with nothing higher behind it can ever be the highest again.
            while self._closers and self._closers[-1][1] <= floor:
                self._closers.pop()
            self._closers.append((event.seq, floor))
        self._prune()

    def prepend(self, events: Sequence[Event]) -> None:
        """Older events, oldest first. O(page)."""
        seqs = []
        for event in reversed(events):
            place = boundary(event) if event.type in BOUNDARIES else None
            if place is None:
                continue
            seqs.append(event.seq)
            self._add_start(event, place)
            floor = closes(event)
            if floor is not None and (not self._closers or floor > self._closers[0][1]):
                self._closers.insert(0, (event.seq, floor))
        if seqs:
            self._seqs = self._seqs or SortedList()
            self._seqs.update(seqs)
        self._prune()

    def evict(self, events: Sequence[Event]) -> None:
        """The oldest events go. O(events), and O(open) when the floor falls."""
        floor = self.floor
        self._open_now = None
        for event in events:
            place = boundary(event) if event.type in BOUNDARIES else None
            if place is None:
                continue
            self._seqs.remove(event.seq)
            self._remove_start(event, place)
            if self._closers and self._closers[0][0] == event.seq:
                del self._closers[0]
        if self.floor != floor:
            self._open = {place for place in map(_place, self._starts) if not self.is_closed(place)}

    def _add_start(self, event: Event, place: Place) -> None:
        if event.type not in (TURN_START, STEP_START):
            return
        key = _text(place)
        held = self._starts.get(key)
        if held is None:
            self._starts[key] = event.seq
        else:
            seqs = held if isinstance(held, tuple) else (held,)
            self._starts[key] = tuple(sorted((*seqs, event.seq)))
        self._open.add(place)

    def _remove_start(self, event: Event, place: Place) -> None:
        if event.type not in (TURN_START, STEP_START):
            return
        key = _text(place)
        held = self._starts[key]
        rest = tuple(s for s in held if s != event.seq) if isinstance(held, tuple) else ()
        if rest:
            self._starts[key] = rest if len(rest) > 1 else rest[0]
        else:
            del self._starts[key]
            self._open.discard(place)

    def _prune(self) -> None:
        self._open_now = None
        self._open = {place for place in self._open if not self.is_closed(place)}

    # -- what holds ----------------------------------------------------------------------

    @property
    def floor(self) -> Floor:
        """The highest (turn, step) that the loaded events close."""
        return self._closers[0][1] if self._closers else NOTHING_CLOSED

    def is_closed(self, place: Place) -> bool:
        turn, step = place
        return (turn, TURN_END if step is None else step) <= self.floor

    def status(self, place: Place, *, complete: bool) -> Status:
        """Whether a turn, or with a step a step, is open, closed or unknown."""
        if self.is_closed(place):
            return Status.CLOSED
        return Status.OPEN if complete or _text(place) in self._starts else Status.UNKNOWN

    def locate(self, event: Event, loaded: Any, *, complete: bool) -> Location:
        """Where an event belongs. `loaded[seq]` gives the loaded events."""
        place = coordinates(event)
        if place is not None:
            return Location(place[0], place[1])
        seqs = self._seqs
        if not seqs:
            return SESSION if complete else UNRESOLVED
        last = seqs[-1]
        if last > event.seq:
            at = seqs.bisect_right(event.seq)
            if at == 0:
                return SESSION if complete else UNRESOLVED
            last = seqs[at - 1]
        return _bracket(loaded[last])

    @property
    def first_boundary(self) -> int | None:
        """The seq of the first loaded boundary."""
        return self._seqs[0] if self._seqs else None

    def open_now(self, loaded: Any) -> Object | None:
        """The newest open turn, its newest open step, and since when (milliseconds).

        The same object while no boundary came or went.
        """
        if self._open_now is None:
            self._open_now = (self._newest_open(loaded),)
        return self._open_now[0]

    def _newest_open(self, loaded: Any) -> Object | None:
        if not self._open:
            return None
        turn = max(place[0] for place in self._open)
        steps = [step for t, step in self._open if t == turn and step is not None]
        step = max(steps, default=None)
        opened = _text((turn, None))
        seq = self._starts[opened if opened in self._starts else _text((turn, step))]
        first = seq[0] if isinstance(seq, tuple) else seq
        return freeze_object({"turn": turn, "step": step, "since": loaded[first].time})

    def check(self, events: Sequence[Event]) -> list[str]:
        """What is wrong with it, in words, if `events` are loaded."""
        wrong = []
        places = {event.seq: boundary(event) for event in events}
        if list(self._seqs or ()) != [seq for seq, place in places.items() if place is not None]:
            wrong.append("timeline: its boundaries are not those that are loaded")
        if self.floor != max((closes(e) or NOTHING_CLOSED for e in events), default=NOTHING_CLOSED):
            wrong.append("timeline: its floor is not that of the loaded events")
        floors = [floor for _, floor in self._closers]
        if floors != sorted(floors, reverse=True):
            wrong.append("timeline: the closers do not fall")
        if any(self.is_closed(place) for place in self._open):
            wrong.append("timeline: a closed place counts as open")
        return wrong
