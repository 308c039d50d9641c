"""What Contexts publish on steps and turns, and reading it in anchor order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from assembler.engine.contexts import Entry
from assembler.engine.events import Position
from assembler.engine.locations import TURN_END
from assembler.engine.values import alike

__all__ = ["Places"]

Spot = tuple[str, int, int]


def _text(spot: Spot) -> str:
    return f"{spot[0]}:{spot[1]}:{spot[2]}"


class Placed(Struct, frozen=True, gc=False, eq=False):
    """One published value, and where its Context stands."""

    anchor: Position
    key: str
    id: str
    value: Any


class Places:
    """Values by kind, turn and step (`TURN_END`: the turn's own). Change is O(1)."""

    __slots__ = ("_steps", "_values")

    def __init__(self) -> None:
        # One value stands for itself, several are a dict by id: most places have one of a kind.
        # Keys are texts: a tuple would make the collector walk the whole dict each time it is new.
        self._values: dict[str, Any] = {}
        self._steps: dict[str, tuple[int, ...]] = {}

    def put(self, entry: Entry, spot: Spot, value: Any) -> list[Spot]:
        """Publish `value` of `entry`; where what is read has changed."""
        on_turn = spot[2] == TURN_END
        old = entry.published[on_turn] if entry.published is not None else None
        placed = Placed(entry.anchor, entry.key, entry.id, value)
        changed = []
        if old == spot:
            before = self._find(spot, entry.id)
            if before.anchor == placed.anchor and alike(before.value, value):
                return []
        elif old is not None:
            changed = self.clear(entry, turn=on_turn)
        self._insert(spot, placed)
        self._note(entry, spot, on_turn=on_turn)
        return [*changed, spot]

    def clear(self, entry: Entry, *, turn: bool) -> list[Spot]:
        """Publish nothing on its step, or with `turn` on its turn."""
        spot: Spot | None = entry.published[turn] if entry.published is not None else None
        if spot is None:
            return []
        self._remove(spot, entry.id)
        self._note(entry, None, on_turn=turn)
        return [spot]

    def _note(self, entry: Entry, spot: Spot | None, *, on_turn: bool) -> None:
        step, turn = entry.published or (None, None)
        spots = (step, spot) if on_turn else (spot, turn)
        entry.published = None if spots == (None, None) else spots

    def _find(self, spot: Spot, ident: str) -> Placed:
        held = self._values[_text(spot)]
        return held[ident] if type(held) is dict else held  # type: ignore[no-any-return]

    def _insert(self, spot: Spot, placed: Placed) -> None:
        key = _text(spot)
        held = self._values.get(key)
        if type(held) is dict:
            held[placed.id] = placed
        elif held is None or held.id == placed.id:
            self._values[key] = placed
        else:
            self._values[key] = {held.id: held, placed.id: placed}
        if held is None:
            turn = f"{spot[0]}:{spot[1]}"
            self._steps[turn] = (*self._steps.get(turn, ()), spot[2])

    def _remove(self, spot: Spot, ident: str) -> None:
        key = _text(spot)
        held = self._values[key]
        if type(held) is dict:
            del held[ident]
            if held:
                return
        del self._values[key]
        turn = f"{spot[0]}:{spot[1]}"
        steps = tuple(each for each in self._steps[turn] if each != spot[2])
        if steps:
            self._steps[turn] = steps
        else:
            del self._steps[turn]

    # -- reading -------------------------------------------------------------------------

    def of_step(self, kind: str, turn: int, step: int) -> dict[str, Any]:
        return self._ordered(((kind, turn, step),))

    def of_steps(self, kind: str, turn: int) -> dict[str, Any]:
        """The values on all steps of a turn."""
        steps = self._steps.get(f"{kind}:{turn}", ())
        return self._ordered((kind, turn, step) for step in steps if step != TURN_END)

    def of_turn(self, kind: str, turn: int) -> dict[str, Any]:
        return self._ordered(((kind, turn, TURN_END),))

    def _at(self, spot: Spot) -> Iterable[Placed]:
        held = self._values.get(_text(spot))
        if held is None:
            return ()
        return held.values() if type(held) is dict else (held,)

    def _ordered(self, spots: Iterable[Spot]) -> dict[str, Any]:
        found = [placed for spot in spots for placed in self._at(spot)]
        found.sort(key=lambda placed: (placed.anchor, placed.key))
        return {placed.id: placed.value for placed in found}

    def check(self, entries: Iterable[Entry]) -> Iterator[str]:
        """What is wrong with it, in words, if `entries` are all that publish."""
        expected = {
            (_text(spot), entry.key)
            for entry in entries
            for spot in entry.published or ()
            if spot is not None
        }
        held = {
            (key, placed.key)
            for key, values in self._values.items()
            for placed in (values.values() if type(values) is dict else (values,))
        }
        steps = {
            f"{turn}:{step}" for turn, held_steps in self._steps.items() for step in held_steps
        }
        if held != expected or steps != self._values.keys():
            yield "places: values and who published them differ"
