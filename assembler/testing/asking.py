"""What the oracle lets a Definition see while it is asked.

Here live which items reach it, a Context, the Reader of `start` and the Scope of `place`, `notes`
and `build`, over plain lists that are searched from the start. Not here: who is asked when
(`picture`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from assembler.engine.definition import UNNAMED, Definition, Match
from assembler.engine.events import Event, Item, Position
from assembler.engine.locations import Location, Status
from assembler.testing.brackets import BOUNDARIES, Brackets

__all__ = ["Known", "Reader", "Scope", "Seen", "reaches"]


def reaches(definition: Definition, item: Item, named: set[str]) -> bool:
    """Whether `definition` sees `item` at all; `named` are the types that anybody names."""
    if item.type != UNNAMED and item.type in definition.takes:
        return True
    unnamed = item.type == UNNAMED or item.type not in named
    fallback = type(item) is Event and unnamed and item.type not in BOUNDARIES
    return fallback and UNNAMED in definition.takes


class Seen(Struct, eq=False):
    """A Context as the oracle sees it.

    `failure` is the name of the error and in what it was raised, once `start` or `update` did.
    """

    definition: Definition
    id: str
    matches: tuple[Match, ...]
    start: Match | None
    location: Location
    state: Any = None
    failure: tuple[str, str] | None = None
    anchor: Position = Position(0)

    @property
    def kind(self) -> str:
        return self.definition.kind

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.id}"


class Known:
    """What has been found so far: nobody can be asked for what comes later."""

    def __init__(self, brackets: Brackets, *, live: bool | None, complete: bool) -> None:
        self.brackets = brackets
        self.live = live
        self.complete = complete
        self.contexts: list[Seen] = []
        # What was published on steps and on turns, in anchor order.
        self.step_values: list[tuple[Seen, Any]] = []
        self.turn_values: list[tuple[Seen, Any]] = []

    def find(self, kind: str, id: str) -> Seen | None:
        for seen in self.contexts:
            if (seen.kind, seen.id) == (kind, id):
                return seen
        return None


class Reader:
    """The States of the Contexts that started before the asking one."""

    def __init__(self, earlier: Sequence[Seen], *, complete: bool) -> None:
        self._earlier = earlier
        self.complete = complete

    def previous(self, kind: str) -> tuple[str, Any] | None:
        for seen in reversed(self._earlier):
            if seen.kind == kind and seen.failure is None:
                return seen.id, seen.state
        return None


class Scope:
    """What a Definition may read beside its Context, seen from a turn and step."""

    def __init__(self, known: Known, at: Location) -> None:
        self._known = known
        self.turn, self.step = at.turn, at.step
        self.live, self.complete = known.live, known.complete
        self.turn_status = known.brackets.status(Location(at.turn, None, at.resolved))
        # Without a step, the turn's own status stands for it.
        self.step_status = known.brackets.status(at)
        self.closed = self.step_status is Status.CLOSED

    def step_values(self, kind: str) -> Mapping[str, Any]:
        return {
            seen.id: value
            for seen, value in self._known.step_values
            if seen.kind == kind and self._is_here(seen) and self.step in (None, seen.location.step)
        }

    def turn_values(self, kind: str) -> Mapping[str, Any]:
        return {
            seen.id: value
            for seen, value in self._known.turn_values
            if seen.kind == kind and self._is_here(seen)
        }

    def _is_here(self, seen: Seen) -> bool:
        return self.turn is not None and seen.location.turn == self.turn

    def other(self, kind: str, id: str) -> Any:
        seen = self._known.find(kind, id)
        return None if seen is None else seen.state

    def unstarted(self, kind: str, id: str) -> tuple[Match, ...]:
        seen = self._known.find(kind, id)
        return seen.matches if seen and seen.start is None else ()

    def has(self, kind: str, id: str) -> bool:
        seen = self._known.find(kind, id)
        return seen is not None and seen.start is not None

    def turn_status_of(self, kind: str, id: str) -> Status | None:
        seen = self._known.find(kind, id)
        if seen is None or seen.location.turn is None:
            return None
        return self._known.brackets.status(Location(seen.location.turn, None))
