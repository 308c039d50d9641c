"""The facts over time: loaded events, held deltas and the last word of liveness at each moment.

They are taken from an Assembler behind each operation, at the cost of what changed, and give an
Assembler of any moment again (`FactsTrack.assembler`): what it shows is a pure function of them.
Not here: what was shown (`shown`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Definition, GroupDefinition
from assembler.engine.events import Delta, Event
from assembler.engine.window import WindowView
from assembler.server.inspecting.tracks import Track

__all__ = ["FactsTrack", "News"]

_NOWHERE = WindowView(None, None, has_more=False)


class News(NamedTuple):
    """What one operation brought: events and deltas that are held now, attempts that are not."""

    events: Sequence[Event]
    deltas: Sequence[Delta]
    gone: Sequence[str]


class _Held:
    """One attempt while it is held: its deltas, when each came, and when all went."""

    __slots__ = ("came", "deltas", "gone")

    def __init__(self) -> None:
        self.deltas: list[Delta] = []
        self.came: list[int] = []
        self.gone: int | None = None

    def at(self, moment: int) -> Iterable[Delta]:
        if self.gone is not None and self.gone <= moment:
            return ()
        return (delta for delta, came in zip(self.deltas, self.came, strict=True) if came <= moment)


class FactsTrack:
    """E, D and L over time."""

    def __init__(self) -> None:
        self._window: Track[WindowView] = Track(_NOWHERE)
        self._live: Track[bool | None] = Track(None)
        self._events: dict[int, Track[Event | None]] = {}
        self._held: list[_Held] = []
        self._now: dict[str, _Held] = {}

    def take(self, moment: int, assembler: Assembler) -> News:
        """What the operation of `moment` changed. O(what changed + the attempts that are held)."""
        self._live.put(moment, assembler.live)
        return News(self._take_events(moment, assembler), *self._take_deltas(moment, assembler))

    def _take_events(self, moment: int, assembler: Assembler) -> list[Event]:
        before, now = self._window.values[-1], assembler.window
        if now != before:
            self._window.put(moment, now)
        if now.first is None or now.last is None:
            return []
        known = range(before.first or 0, (before.last or -1) + 1)
        if self._is_another_load(known, now, assembler):
            known = range(0)
        return [
            self._put_event(moment, seq, assembler)
            for part in _beyond(range(now.first, now.last + 1), known)
            for seq in part
        ]

    def _is_another_load(self, known: range, now: WindowView, assembler: Assembler) -> bool:
        """Whether events were read again: then the first or the last of them is another object."""
        both = [seq for seq in (known.start, now.first, known.stop - 1, now.last) if seq in known]
        return any(
            (event := assembler.event(seq)) is not None
            and event is not self._events[seq].values[-1]
            for seq in both
            if seq is not None
        )

    def _put_event(self, moment: int, seq: int, assembler: Assembler) -> Event:
        event = assembler.event(seq)
        assert event is not None  # noqa: S101 - the window says that it is loaded
        self._events.setdefault(seq, Track(None)).put(moment, event)
        return event

    def _take_deltas(self, moment: int, assembler: Assembler) -> tuple[list[Delta], list[str]]:
        held, came = assembler.held, []
        gone = [name for name in self._now if name not in held]
        for name in gone:
            self._now.pop(name).gone = moment
        for name, count in held.items():
            mine = self._now.get(name)
            if mine is None:
                mine = self._now[name] = _Held()
                self._held.append(mine)
            for ordinal in range(len(mine.deltas), count):
                delta = assembler.delta(name, ordinal)
                mine.deltas.append(delta)
                mine.came.append(moment)
                came.append(delta)
        return came, gone

    # -- reading -------------------------------------------------------------------------

    def window(self, moment: int) -> WindowView:
        return self._window.at(moment)

    def events(self, moment: int) -> list[Event]:
        """The events that were loaded. O(their number)."""
        window = self._window.at(moment)
        if window.first is None or window.last is None:
            return []
        found = (self._events[seq].at(moment) for seq in range(window.first, window.last + 1))
        return [event for event in found if event is not None]

    def deltas(self, moment: int) -> list[Delta]:
        """The deltas that were held, in position order. O(all that ever were)."""
        found = [delta for held in self._held for delta in held.at(moment)]
        return sorted(found, key=lambda delta: (delta.position, delta.attempt))

    def assembler(
        self,
        moment: int,
        definitions: Iterable[Definition | GroupDefinition],
        views: Sequence[str] = (),
    ) -> Assembler:
        """A new Assembler with the facts of a moment. It shows what was shown, but for the keys of
        groups and what only happened (incidents). O(n log n) in its facts."""
        made = Assembler(definitions, views=views)
        made.liveness(self._live.at(moment))
        made.load(self.events(moment), has_more=self._window.at(moment).has_more)
        for delta in self.deltas(moment):
            made.emit(delta)
        made.flush()
        return made


def _beyond(now: range, known: range) -> tuple[range, ...]:
    """The parts of `now` that lie before and behind `known`."""
    if not known:
        return (now,)
    return (
        range(now.start, min(now.stop, known.start)),
        range(max(now.start, known.stop), now.stop),
    )
