"""What `place`, `notes` and `build` read beside their Context, recorded read by read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from assembler.engine.contexts import Entry, Tables
from assembler.engine.definition import Match
from assembler.engine.dependencies import (
    BUILD,
    COMPLETE,
    LIVE,
    STEP_VALUE,
    TURN_VALUE,
    Key,
    Phase,
    status_key,
)
from assembler.engine.locations import Status
from assembler.engine.places import Places
from assembler.engine.timeline import Timeline

__all__ = ["Facts", "ScopeView"]

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Facts:
    """What scopes read from: one per Assembler, kept up to date by it."""

    __slots__ = ("complete", "live", "places", "tables", "timeline")

    def __init__(self, tables: Tables) -> None:
        self.timeline = Timeline()
        self.places = Places()
        self.tables = tables
        self.live: bool | None = None
        self.complete = True


class ScopeView:
    """The Scope of one call. Good for that call alone: what is read later is not recorded."""

    __slots__ = ("_facts", "_phase", "_resolved", "reads", "step", "turn")

    def __init__(self, facts: Facts, entry: Entry, phase: Phase) -> None:
        self._facts = facts
        self._phase = phase
        self._resolved = entry.resolved
        self.turn = entry.turn
        self.step = None if phase == TURN_VALUE else entry.step
        self.reads: dict[Key, None] = {}

    def _status(self, turn: int | None, step: int | None) -> Status:
        if turn is None:
            return Status.OPEN if self._resolved else Status.UNKNOWN
        facts = self._facts
        place = (turn, step)
        if facts.timeline.is_closed(place):
            # Closed stays closed while its events are loaded; nothing to wait for.
            return Status.CLOSED
        self.reads[status_key(turn, step)] = None
        self.reads[COMPLETE] = None
        return facts.timeline.status(place, complete=facts.complete)

    @property
    def turn_status(self) -> Status:
        return self._status(self.turn, None)

    @property
    def step_status(self) -> Status:
        return self._status(self.turn, self.step)

    @property
    def closed(self) -> bool:
        if self.turn is None or self._facts.timeline.is_closed((self.turn, self.step)):
            return self.turn is not None
        self.reads[status_key(self.turn, self.step)] = None
        return False

    @property
    def live(self) -> bool | None:
        self.reads[LIVE] = None
        return self._facts.live

    @property
    def complete(self) -> bool:
        self.reads[COMPLETE] = None
        return self._facts.complete

    def step_values(self, kind: str) -> Mapping[str, Any]:
        if self.turn is None or self._phase == STEP_VALUE:
            return _NOTHING
        self.reads[f"step:{kind}:{self.turn}:{self.step}"] = None
        places = self._facts.places
        if self.step is None:
            return places.of_steps(kind, self.turn)
        return places.of_step(kind, self.turn, self.step)

    def turn_values(self, kind: str) -> Mapping[str, Any]:
        if self.turn is None or self._phase != BUILD:
            return _NOTHING
        self.reads[f"turn:{kind}:{self.turn}"] = None
        return self._facts.places.of_turn(kind, self.turn)

    def other(self, kind: str, id: str) -> Any:
        if kind not in self._facts.tables.kinds:
            return None
        self.reads[f"other:{kind}:{id}"] = None
        entry = self._facts.tables.find(kind, id)
        return None if entry is None else entry.state

    def has(self, kind: str, id: str) -> bool:
        if kind not in self._facts.tables.kinds:
            return False
        self.reads[f"has:{kind}:{id}"] = None
        entry = self._facts.tables.find(kind, id)
        return entry is not None and entry.start_at is not None

    def turn_status_of(self, kind: str, id: str) -> Status | None:
        if kind not in self._facts.tables.kinds:
            return None
        self.reads[f"place:{kind}:{id}"] = None
        entry = self._facts.tables.find(kind, id)
        if entry is None or entry.turn is None:
            return None
        return self._status(entry.turn, None)

    def unstarted(self, kind: str, id: str) -> Sequence[Match]:
        if kind not in self._facts.tables.kinds:
            return ()
        self.reads[f"other:{kind}:{id}"] = None
        entry = self._facts.tables.find(kind, id)
        return () if entry is None or entry.start_at is not None else tuple(entry.matches)
