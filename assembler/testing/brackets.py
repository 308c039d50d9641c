"""Turns and steps as the oracle finds them: by reading all events, from the first to the last.

Here lives where an item belongs and whether that place is open. Not here: what is shown there
(`picture`), and which attempts end with a step (`oracle`).
"""

from __future__ import annotations

from collections.abc import Sequence

from assembler.engine.events import Delta, Event, Item
from assembler.engine.locations import SESSION, TURN_END, UNRESOLVED, Floor, Location, Status

__all__ = ["BOUNDARIES", "NOTHING", "Brackets", "closes", "explicit"]

BOUNDARIES = ("turn/start", "turn/end", "step/start", "step/end")
NOTHING: Floor = (-(1 << 64), 0)
"""A floor below everything: no step is known closed."""


def explicit(event: Event) -> tuple[int, int | None] | None:
    """The turn and step that an event names itself; a bool is no number."""
    turn, step = event.data.get("turn"), event.data.get("step")
    if type(turn) is not int:
        return None
    return turn, step if type(step) is int else None


def closes(event: Event) -> Floor:
    """The highest turn and step that `event` closes."""
    turn, step = explicit(event) or (None, None)
    if turn is not None and event.type == "turn/start":
        return turn - 1, TURN_END
    if turn is not None and event.type == "turn/end":
        return turn, TURN_END
    if turn is not None and step is not None and event.type == "step/start":
        return turn, step - 1
    if turn is not None and step is not None and event.type == "step/end":
        return turn, step
    return NOTHING


class Brackets:
    """The places of all items, from the facts alone."""

    def __init__(self, events: Sequence[Event], deltas: Sequence[Delta], *, complete: bool) -> None:
        self.floor = max(map(closes, events), default=NOTHING)
        self._locations: dict[int, Location] = {}
        self._named: list[tuple[str, tuple[int, int | None]]] = []
        self._complete = complete
        bracket = SESSION if complete else UNRESOLVED
        for event in events:
            named = explicit(event)
            if closes(event) != NOTHING:
                bracket = _behind(event)
            self._locations[event.seq] = bracket if named is None else Location(*named)
            if named is not None:
                self._named.append((event.type, named))
        self._named += [("", (delta.turn, delta.step)) for delta in deltas]

    def location(self, item: Item) -> Location:
        """Where an item belongs: where it says itself, else in the bracket around it."""
        if isinstance(item, Delta):
            return Location(item.turn, item.step)
        return self._locations[item.seq]

    def status(self, at: Location) -> Status:
        """Whether a turn (a place without step) or a step is open; the conversation always is.

        What is not closed is open when its start is loaded or, where the beginning of the log is
        known, when anything names it.
        """
        if at.turn is None:
            return Status.OPEN if at.resolved else Status.UNKNOWN
        if (at.turn, TURN_END if at.step is None else at.step) <= self.floor:
            return Status.CLOSED
        start = "turn/start" if at.step is None else "step/start"
        for type_, (turn, step) in self._named:
            inside = turn == at.turn and at.step in (None, step)
            if inside and (self._complete or type_ == start):
                return Status.OPEN
        return Status.UNKNOWN


def _behind(boundary: Event) -> Location:
    """The place of what follows a boundary and names no place itself."""
    turn, step = boundary.data["turn"], boundary.data.get("step")
    if boundary.type == "turn/end":
        return SESSION
    return Location(turn, step if boundary.type == "step/start" else None)
