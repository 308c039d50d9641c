"""What Contexts publish on steps and turns, and reading it in anchor order."""

from __future__ import annotations

from typing import Any

from assembler.engine.contexts import Entry
from assembler.engine.locations import TURN_END

__all__ = ["Places"]

Spot = tuple[str, int, int]


class Places:
    """Values by kind, turn and step (`TURN_END`: the turn's own). Change is O(1)."""

    __slots__ = ("_spots", "_steps", "_values")

    def __init__(self) -> None:
        self._values: dict[Spot, dict[str, tuple[int, str, Any]]] = {}
        self._steps: dict[tuple[str, int], set[int]] = {}
        self._spots: dict[tuple[str, str, bool], Spot] = {}

    def put(self, entry: Entry, spot: Spot | None, value: Any) -> list[Spot]:
        """Publish `value` (None: nothing) of `entry`; where what is read has changed."""
        owner = (entry.spec.kind, entry.id, spot[2] == TURN_END if spot else False)
        return self._put(owner, entry, spot if value is not None else None, value)

    def clear(self, entry: Entry, *, turn: bool) -> list[Spot]:
        """Publish nothing on its step, or with `turn` on its turn."""
        return self._put((entry.spec.kind, entry.id, turn), entry, None, None)

    def _put(
        self, owner: tuple[str, str, bool], entry: Entry, spot: Spot | None, value: Any
    ) -> list[Spot]:
        old = self._spots.get(owner)
        if spot is None and old is None:
            return []
        placed = (entry.anchor, entry.key, value)
        if spot is not None and spot == old:
            before = self._values[spot][entry.id]
            if before[0] == placed[0] and _equal(before[2], value):
                return []
            self._values[spot][entry.id] = placed
            return [spot]
        changed = []
        if old is not None:
            changed.append(old)
            self._remove(owner, old, entry.id)
        if spot is not None:
            changed.append(spot)
            self._spots[owner] = spot
            self._values.setdefault(spot, {})[entry.id] = placed
            self._steps.setdefault(spot[:2], set()).add(spot[2])
        return changed

    def _remove(self, owner: tuple[str, str, bool], spot: Spot, ident: str) -> None:
        del self._spots[owner]
        values = self._values[spot]
        del values[ident]
        if not values:
            del self._values[spot]
            steps = self._steps[spot[:2]]
            steps.discard(spot[2])
            if not steps:
                del self._steps[spot[:2]]

    def of_step(self, kind: str, turn: int, step: int) -> dict[str, Any]:
        return self._ordered(((kind, turn, step),))

    def of_steps(self, kind: str, turn: int) -> dict[str, Any]:
        """The values on all steps of a turn."""
        steps = self._steps.get((kind, turn), ())
        return self._ordered(tuple((kind, turn, step) for step in steps if step != TURN_END))

    def of_turn(self, kind: str, turn: int) -> dict[str, Any]:
        return self._ordered(((kind, turn, TURN_END),))

    def _ordered(self, spots: tuple[Spot, ...]) -> dict[str, Any]:
        found = [
            (placed[0], placed[1], ident, placed[2])
            for spot in spots
            for ident, placed in self._values.get(spot, {}).items()
        ]
        found.sort(key=lambda value: value[:2])
        return {ident: value for _, _, ident, value in found}

    def check(self) -> list[str]:
        """What is wrong with it, in words."""
        spots = {(owner[0], owner[1], spot) for owner, spot in self._spots.items()}
        values = {(spot[0], ident, spot) for spot, held in self._values.items() for ident in held}
        steps = {(*key, step) for key, held in self._steps.items() for step in held}
        well = spots == values and steps == self._values.keys()
        return [] if well else ["places: values and who published them differ"]


def _equal(old: Any, new: Any) -> bool:
    if old is new:
        return True
    try:
        return type(old) is type(new) and bool(old == new)
    except Exception:
        return False
