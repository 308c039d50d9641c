"""What the oracle remembers of attempts, and the two operations that speak of them.

Here lives which deltas are held, which attempts were given up, and when it is safe to forget
that, as plain dicts and sets. Not here: the window (`oracle`), which tells what it learns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from assembler.engine.definition import Anomaly, Definition
from assembler.engine.errors import ConflictError, InputError
from assembler.engine.events import Delta, Event, Outcome, Position, as_delta
from assembler.engine.locations import TURN_END, Floor
from assembler.testing.asking import reaches
from assembler.testing.brackets import NOTHING, closes, explicit

__all__ = ["Memory"]


class _Attempt:
    """An attempt and what is held of it, which may be nothing when it was torn from the start."""

    def __init__(self, delta: Delta) -> None:
        self.place = (delta.turn, delta.step)
        self.number = delta.number
        self.deltas: list[Delta] = []
        self.torn = False


class Memory:
    """D, and what decides which deltas are taken. `incidents` are what happened on the way."""

    def __init__(self, definitions: tuple[Definition, ...], settled_ahead_max: int) -> None:
        self.definitions = definitions
        self.settled_ahead_max = settled_ahead_max
        self.named = {name for each in definitions for name in each.takes | each.names}
        self.floor = NOTHING
        self.newest: int | None = None
        self.highest: dict[Floor, int] = {}
        self.given_up: set[tuple[Floor, str]] = set()
        self.attempts: dict[str, _Attempt] = {}
        self.ahead: dict[str, tuple[Outcome, int | None]] = {}
        self.incidents: list[Anomaly] = []

    @property
    def deltas(self) -> list[Delta]:
        """All that is held (D)."""
        return [delta for attempt in self.attempts.values() for delta in attempt.deltas]

    def emit(self, delta: Any) -> None:
        """One delta: ignored, dropped and noted, torn, refused or taken, in this order."""
        taken = as_delta(delta)
        held = self.attempts.get(taken.attempt)
        if held and taken.ordinal < len(held.deltas):
            return
        if self._refuses(taken):
            self._incident("late-delta", taken.attempt, taken.position)
            return
        if held and (held.place, held.number) != ((taken.turn, taken.step), taken.number):
            raise ConflictError(f"attempt {taken.attempt} changes its turn, step or number")
        fits = taken.ordinal == (len(held.deltas) if held else 0)
        if held and held.deltas and fits and taken.position <= held.deltas[-1].position:
            raise ConflictError(f"a position of attempt {taken.attempt} does not rise")
        attempt = self.attempts.setdefault(taken.attempt, _Attempt(taken))
        if fits:
            attempt.deltas.append(taken)
        elif not attempt.torn:
            self._incident("torn-attempt", taken.attempt, taken.position)
        attempt.torn = not fits
        self.ahead.pop(taken.attempt, None)
        self._speak(attempt)
        self._know(taken.turn)
        self._forget()

    def _refuses(self, delta: Delta) -> bool:
        place = (delta.turn, delta.step)
        if place <= self.floor or (place, delta.attempt) in self.given_up:
            return True
        outcome, _ = self.ahead.get(delta.attempt, (Outcome.COMPLETED, None))
        if outcome is not Outcome.COMPLETED:
            # It is seen now: from here on its step remembers it.
            del self.ahead[delta.attempt]
            self.given_up.add((place, delta.attempt))
            return True
        return 1 <= delta.number < self.highest.get(place, 0)

    def _speak(self, attempt: _Attempt) -> None:
        """A higher number gives up the lower ones of its step."""
        if attempt.number <= self.highest.get(attempt.place, 0):
            return
        self.highest[attempt.place] = attempt.number
        for name, other in self.attempts.items():
            if other.place == attempt.place and 1 <= other.number < attempt.number:
                self.given_up.add((other.place, name))

    def settle(self, attempt: str, outcome: Outcome | str) -> None:
        """An attempt ended."""
        if type(attempt) is not str or not attempt:
            raise InputError(f"attempt: expected a text that is not empty, got {attempt!r}")
        try:
            ended = Outcome(outcome)
        except ValueError:
            raise InputError(f"outcome: {outcome!r} is none") from None
        held = self.attempts.get(attempt)
        if held:
            if ended is not Outcome.COMPLETED:
                self.given_up.add((held.place, attempt))
        elif all(name != attempt for _, name in self.given_up):
            before, until = self.ahead.get(attempt, (Outcome.COMPLETED, self._newest_open()))
            if before is Outcome.COMPLETED:
                self.ahead[attempt] = (ended, until)
            while len(self.ahead) > self.settled_ahead_max:
                del self.ahead[next(iter(self.ahead))]
        self._forget()

    def _learn(self, events: Iterable[Event]) -> None:
        """What closes and what gives up acts whenever it is learned."""
        for event in events:
            self.floor = max(self.floor, closes(event))
            turn, step = explicit(event) or (None, None)
            if turn is not None:
                self._know(turn)
                if step is not None:
                    self.given_up |= {((turn, step), name) for name in self._retired_by(event)}
        self._forget()

    def _retired_by(self, event: Event) -> Iterator[str]:
        for definition in self.definitions:
            if reaches(definition, event, self.named):
                try:
                    name = definition.retires(event)
                except Exception:
                    continue  # a finding: made where the picture is made
                if name is not None:
                    yield name

    def _know(self, turn: int) -> None:
        self.newest = turn if self.newest is None else max(self.newest, turn)

    def _newest_open(self) -> int | None:
        if self.newest is None:
            return None
        return self.newest if (self.newest, TURN_END) > self.floor else self.newest + 1

    def _forget(self) -> None:
        """Drop what is given up, and all that the floor answers for."""
        self.given_up = {entry for entry in self.given_up if entry[0] > self.floor}
        self.highest = {at: number for at, number in self.highest.items() if at > self.floor}
        self.attempts = {
            name: attempt
            for name, attempt in self.attempts.items()
            if attempt.place > self.floor and (attempt.place, name) not in self.given_up
        }
        newest = self._newest_open()
        for name, (outcome, until) in list(self.ahead.items()):
            if until is None:  # settled before any turn was known: dated now
                self.ahead[name] = (outcome, newest)
            elif (until, TURN_END) <= self.floor:
                del self.ahead[name]

    def _incident(self, kind: str, key: str, at: Position) -> None:
        self.incidents.append(Anomaly(kind, key, at))
