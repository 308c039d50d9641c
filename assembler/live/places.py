"""Which turn and step of a conversation are open, however little of it is loaded.

Read from the newest boundary events, which a store finds without a page. Not here: what the loaded
events say about each other (`engine.timeline`), and what to do about a turn that nobody works on.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from assembler.engine.events import Event
from assembler.engine.locations import TURN_END
from assembler.engine.timeline import BOUNDARIES, NOTHING_CLOSED, boundary, closes

__all__ = ["BOUNDARIES", "Open", "Places"]


class Open(Struct, frozen=True):
    """The newest open turn, its newest open step (None: between steps), and when the turn began
    (milliseconds; of the step, where the turn's own start is not there)."""

    turn: int
    step: int | None
    since: int


class Places:
    """Takes boundary events in any order, and forgets all but what is newest. O(1)."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.floor = NOTHING_CLOSED
        """The highest `(turn, step)` known closed."""
        self.last_turn = 0
        self.last_step = 0
        """The highest step of the last turn."""
        self._turn_since: int | None = None
        self._step_since = 0
        self._started = False
        for event in events:
            self.learn(event)

    def learn(self, event: Event) -> None:
        place = boundary(event)
        if place is None:
            return
        self.floor = max(self.floor, closes(event) or NOTHING_CLOSED)
        turn, step = place
        if turn > self.last_turn or not self._started:
            self.last_turn, self.last_step, self._turn_since = turn, 0, None
            self._started = True
        if turn != self.last_turn:
            return
        if event.type == "turn/start":
            self._turn_since = event.time
        if step is not None and step > self.last_step:
            self.last_step, self._step_since = step, event.time

    @property
    def open_now(self) -> Open | None:
        turn = self.last_turn
        if not self._started or (turn, TURN_END) <= self.floor:
            return None
        step = self.last_step if self.last_step and (turn, self.last_step) > self.floor else None
        since = self._step_since if self._turn_since is None else self._turn_since
        return Open(turn, step, since)
