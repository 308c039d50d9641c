"""Attempts: the held deltas (D) and the memory (M) that decides whether the next one is taken.

An attempt is held from its first delta to its retirement. What lies at or below the closed floor
is forgotten, because the floor answers for it. Nothing here is ever shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from assembler.engine.errors import ConflictError
from assembler.engine.events import Delta, Outcome
from assembler.engine.locations import TURN_END, Floor
from assembler.engine.timeline import NOTHING_CLOSED, Place

__all__ = ["Attempt", "Attempts", "Verdict"]

DUPLICATE = "duplicate"
LATE = "late"
TORN = "torn"
TAKE = "take"
Verdict = str


class Attempt:
    """One held attempt: its fixed place, its whole prefix of deltas, the Contexts they are in."""

    __slots__ = (
        "deltas",
        "entries",
        "last",
        "name",
        "newest",
        "number",
        "step",
        "torn",
        "turn",
    )

    def __init__(self, delta: Delta) -> None:
        self.name = delta.attempt
        self.turn = delta.turn
        self.step = delta.step
        self.number = delta.number
        self.deltas: list[Delta] = []
        self.last = -1
        self.torn = False
        self.entries: dict[Any, None] = {}
        self.newest: Any = None
        """The Context that the last delta went to."""

    def copy(self) -> Attempt:
        twin = Attempt.__new__(Attempt)
        twin.name, twin.turn, twin.step = self.name, self.turn, self.step
        twin.number, twin.last, twin.torn = self.number, self.last, self.torn
        twin.deltas = list(self.deltas)
        twin.entries = {}
        twin.newest = None
        return twin


class StepMemory:
    """What is remembered of one step above the floor."""

    __slots__ = ("given_up", "highest", "names")

    def __init__(self) -> None:
        self.highest = 0
        self.given_up: set[str] = set()
        self.names: set[str] = set()


class Attempts:
    """Every call is O(1) or O(what is open)."""

    __slots__ = ("_ahead_max", "ahead", "floor", "held", "newest_turn", "steps")

    def __init__(self, settled_ahead_max: int) -> None:
        self.held: dict[str, Attempt] = {}
        self.steps: dict[tuple[int, int], StepMemory] = {}
        self.floor: Floor = NOTHING_CLOSED
        self.newest_turn: int | None = None
        self.ahead: dict[str, tuple[Outcome, int | None]] = {}
        self._ahead_max = settled_ahead_max

    def copy(self) -> Attempts:
        twin = Attempts(self._ahead_max)
        twin.held = {name: attempt.copy() for name, attempt in self.held.items()}
        for place, memory in self.steps.items():
            mine = twin.steps[place] = StepMemory()
            mine.highest = memory.highest
            mine.given_up = set(memory.given_up)
            mine.names = set(memory.names)
        twin.floor, twin.newest_turn = self.floor, self.newest_turn
        twin.ahead = dict(self.ahead)
        return twin

    # -- one delta -----------------------------------------------------------------------

    def judge(self, delta: Delta) -> Verdict:
        """Whether a (checked) delta is taken. Changes nothing; raises `ConflictError`."""
        held = self.held.get(delta.attempt)
        if held is not None and delta.ordinal < len(held.deltas):
            return DUPLICATE
        if self._is_late(delta):
            return LATE
        if held is not None and (held.turn, held.step, held.number) != (
            delta.turn,
            delta.step,
            delta.number,
        ):
            raise ConflictError(
                f"attempt {delta.attempt!r} is number {held.number} of turn {held.turn}, step "
                f"{held.step}, and cannot become number {delta.number} of {delta.turn}, "
                f"{delta.step}",
                (held.turn, held.step, held.number),
                (delta.turn, delta.step, delta.number),
            )
        if delta.ordinal > (len(held.deltas) if held else 0):
            return TORN
        if held is not None and delta.position <= held.last:
            raise ConflictError(
                f"ordinal {delta.ordinal} of attempt {delta.attempt!r} stands at or before the "
                "ordinal before it"
            )
        return TAKE

    def _is_late(self, delta: Delta) -> bool:
        place = (delta.turn, delta.step)
        if place <= self.floor:
            return True
        ahead = self.ahead.get(delta.attempt)
        if ahead is not None and ahead[0] is not Outcome.COMPLETED:
            return True
        memory = self.steps.get(place)
        if memory is None:
            return False
        return delta.attempt in memory.given_up or 0 < delta.number < memory.highest

    def refuse(self, delta: Delta) -> None:
        """A late delta tells where an attempt that was settled ahead belongs: from now on its
        name is remembered until that step closes."""
        if delta.attempt in self.ahead and (delta.turn, delta.step) > self.floor:
            del self.ahead[delta.attempt]
            self._memory((delta.turn, delta.step)).given_up.add(delta.attempt)

    def admit(self, delta: Delta) -> tuple[Attempt, list[Attempt]]:
        """The attempt of a delta that speaks, and the attempts that its number gives up."""
        held = self.held.get(delta.attempt)
        if held is not None:
            return held, []
        held = self.held[delta.attempt] = Attempt(delta)
        self.learn_turn(delta.turn)
        self._date_ahead()
        self.ahead.pop(delta.attempt, None)
        memory = self._memory((delta.turn, delta.step))
        memory.names.add(held.name)
        beaten: list[Attempt] = []
        if held.number > memory.highest:
            memory.highest = held.number
            beaten = [
                self.held[name]
                for name in sorted(memory.names)
                if 0 < self.held[name].number < held.number
            ]
            for attempt in beaten:
                self.give_up(attempt)
        return held, beaten

    # -- endings -------------------------------------------------------------------------

    def give_up(self, attempt: Attempt) -> None:
        """It is held no more; its name is remembered until its step closes."""
        del self.held[attempt.name]
        memory = self._memory((attempt.turn, attempt.step))
        memory.names.discard(attempt.name)
        memory.given_up.add(attempt.name)

    def give_up_name(self, name: str, place: Place | None) -> Attempt | None:
        """An event that names a step gave `name` up there; the attempt, if it is held."""
        if place is None or place[1] is None or (step := (place[0], place[1])) <= self.floor:
            return None
        held = self.held.get(name)
        if held is not None and (held.turn, held.step) == step:
            self.give_up(held)
            return held
        self._memory(step).given_up.add(name)
        return None

    def settle(self, name: str, outcome: Outcome) -> Attempt | None:
        """The attempt that this settlement gives up; None when it gives up nothing held."""
        held = self.held.get(name)
        if held is None:
            self._settle_ahead(name, outcome)
            return None
        if outcome is Outcome.COMPLETED:
            return None
        self.give_up(held)
        return held

    def _settle_ahead(self, name: str, outcome: Outcome) -> None:
        if any(name in memory.given_up for memory in self.steps.values()):
            return
        before = self.ahead.get(name)
        if before is not None:
            if before[0] is Outcome.COMPLETED:
                self.ahead[name] = (outcome, before[1])
            return
        self.ahead[name] = (outcome, self._until())
        if len(self.ahead) > self._ahead_max:
            del self.ahead[next(iter(self.ahead))]

    def learn_turn(self, turn: int) -> None:
        """A turn is spoken of."""
        if self.newest_turn is None or turn > self.newest_turn:
            self.newest_turn = turn

    def _date_ahead(self) -> None:
        """Settlements told ahead before any turn was known wait for the one known now."""
        until = self._until()
        if until is not None:
            for name, (outcome, dated) in self.ahead.items():
                if dated is None:
                    self.ahead[name] = outcome, until

    def _until(self) -> int | None:
        """The newest turn known, or the next one when that one is closed."""
        newest = self.newest_turn
        return newest + 1 if newest is not None and (newest, TURN_END) <= self.floor else newest

    def close(self, floor: Floor) -> list[Attempt]:
        """All up to `floor` is closed; the attempts that go with it. O(what is open)."""
        gone: list[Attempt] = []
        if floor > self.floor:
            self.floor = floor
            gone = self._close_steps(floor)
        self._date_ahead()
        return gone

    def _close_steps(self, floor: Floor) -> list[Attempt]:
        gone = []
        for place in sorted(place for place in self.steps if place <= floor):
            gone += [self.held.pop(name) for name in sorted(self.steps.pop(place).names)]
        for name in [
            name
            for name, (_, until) in self.ahead.items()
            if until is not None and (until, TURN_END) <= floor
        ]:
            del self.ahead[name]
        return gone

    def _memory(self, place: tuple[int, int]) -> StepMemory:
        memory = self.steps.get(place)
        if memory is None:
            memory = self.steps[place] = StepMemory()
        return memory

    # -- what holds ----------------------------------------------------------------------

    def deltas(self) -> list[Delta]:
        """All held deltas in position order, ties by attempt name."""
        found: Iterable[Delta] = (d for a in self.held.values() for d in a.deltas)
        return sorted(found, key=lambda delta: (delta.position, delta.attempt))

    def check(self) -> list[str]:
        """What is wrong with it, in words."""
        wrong = []
        for attempt in self.held.values():
            ordinals = [delta.ordinal for delta in attempt.deltas]
            if ordinals != list(range(len(ordinals))):
                wrong.append(f"attempt {attempt.name}: its ordinals are no prefix")
            places = [delta.position for delta in attempt.deltas]
            if any(a >= b for a, b in pairwise(places)):
                wrong.append(f"attempt {attempt.name}: its positions do not rise")
            if (attempt.turn, attempt.step) <= self.floor:
                wrong.append(f"attempt {attempt.name}: held in a closed step")
            memory = self.steps.get((attempt.turn, attempt.step))
            if memory is None or attempt.name not in memory.names:
                wrong.append(f"attempt {attempt.name}: its step does not know it")
        if any(place <= self.floor for place in self.steps):
            wrong.append("attempts: a closed step is remembered")
        return wrong
