"""All that the facts can be made into again: Contexts, who reads whom, and what is to be redone.

Matches go into Contexts and out of them here, at once; what that makes stale (States) and dirty
(values, findings, Nodes) is only marked. Not here: folding (`settling`) and building (`making`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from assembler.engine.anomalies import Findings
from assembler.engine.asking import Fault, Plan
from assembler.engine.attempts import Attempt
from assembler.engine.contexts import REFOLD, ContextView, Entry, Tables, blame
from assembler.engine.definition import NONE, NOW, Anomaly, Cadence
from assembler.engine.dependencies import (
    BUILD,
    COMPLETE,
    STEP_VALUE,
    TURN_VALUE,
    Dependencies,
    Key,
    status_key,
)
from assembler.engine.events import Delta, Event, position
from assembler.engine.locations import TURN_END, Floor
from assembler.engine.predecessors import Predecessors
from assembler.engine.registry import Registry, Spec
from assembler.engine.scopes import Facts
from assembler.engine.timeline import boundary, coordinates
from assembler.engine.window import Window

__all__ = ["Derived"]


class Derived:
    """What one Assembler has made of its facts, and the marks of what is to be made again."""

    __slots__ = (
        "dependencies",
        "dirty",
        "facts",
        "faults",
        "findings",
        "orphans",
        "predecessors",
        "stale",
        "strict",
        "tables",
        "went",
        "window",
    )

    def __init__(
        self,
        registry: Registry,
        window: Window,
        views: Iterable[str],
        *,
        live: bool | None,
        strict: bool,
    ) -> None:
        self.window = window
        self.strict = strict
        self.tables = Tables(registry.kinds)
        self.facts = Facts(self.tables)
        self.facts.live = live
        self.facts.complete = not window.has_more
        self.predecessors = Predecessors(self.tables)
        self.dependencies = Dependencies()
        self.faults: dict[tuple[int, str], tuple[Fault, ...]] = {}
        self.stale: dict[Entry, None] = {}
        """Contexts whose Matches or predecessors changed since they were folded."""
        self.dirty: tuple[dict[Entry, None], ...] = ({}, {}, {})
        """Contexts to publish, place and build again, by phase."""
        self.findings = Findings()
        self.orphans: dict[str, dict[str, None]] = {name: {} for name in views}
        """By view: the keys of Nodes whose Context is gone since the last flush."""
        self.went: set[str] = set()
        """Keys of Nodes that were withdrawn, so that what comes again is another one."""

    def keep_faults(self, place: int, attempt: str, plan: Plan) -> None:
        if plan.faults:
            before = self.faults.get((place, attempt), ())
            self.faults[place, attempt] = plan.faults
            self.findings.change(_as_findings(before), _as_findings(plan.faults))

    def enter(self, spec: Spec, ident: str) -> Entry:
        entry = self.tables[spec.kind][ident] = Entry(spec, ident, f"{spec.kind}:{ident}")
        return entry

    def take(self, plan: Plan, held: Attempt | None = None) -> Any:
        """Put the Matches of one item into their Contexts; the Contexts, as the window keeps."""
        owners: Any = None
        for spec, ident, match in plan.matched:
            entry = self.tables[spec.kind].get(ident)
            if entry is None:
                entry = self.enter(spec, ident)
            entry.add(match)
            self.mark_stale(entry)
            if held is not None:
                held.newest = entry
                held.entries[entry] = None
            elif owners is None:
                owners = entry
            else:
                owners = (*owners, entry) if type(owners) is tuple else (owners, entry)
        return owners

    def mark_stale(self, entry: Entry) -> None:
        if not entry.stale:
            entry.stale = True
            self.stale[entry] = None

    def distrust(self) -> None:
        """Something was interrupted in the middle: fold and make everything again. O(all)."""
        for table in self.tables.values():
            for entry in table.values():
                entry.folded, entry.moved, entry.stale = REFOLD, True, True
                self.stale[entry] = None

    def retire(self, attempt: Attempt) -> None:
        """Take the deltas of an attempt that is held no more out of their Contexts."""
        for entry in attempt.entries:
            if entry.drop_attempt(attempt.name):
                self.mark_stale(entry)
            else:
                self._drop(entry)
                if entry.node_key is not None:
                    self.went.add(entry.node_key)
        if self.faults:
            for delta in attempt.deltas:
                self._forget_fault(delta.position, attempt.name)

    def forget_event(self, event: Event, owners: Any) -> None:
        entries = owners if type(owners) is tuple else (() if owners is None else (owners,))
        for entry in entries:
            if entry.drop_event(event.seq):
                self.mark_stale(entry)
            else:
                self._drop(entry)
        self._forget_fault(position(event.seq, 0), "")

    def _forget_fault(self, place: int, attempt: str) -> None:
        faults = self.faults.pop((place, attempt), None)
        if faults is not None:
            self.findings.change(_as_findings(faults), ())

    def _drop(self, entry: Entry) -> None:
        """A Context with nothing left leaves at once; its memory is freed."""
        entry.gone = True
        del self.tables[entry.spec.kind][entry.id]
        self.stale.pop(entry, None)
        self.predecessors.forget(entry, entry.asked_at)
        for asker in self.predecessors.moved(entry):
            self.mark_stale(asker)
        self.dependencies.forget(entry)
        for dirty in self.dirty:
            dirty.pop(entry, None)
        self.findings.change(entry.findings, ())
        for turn in (False, True):
            self.published(self.facts.places.clear(entry, turn=turn))
        for what in ("other", "has", "place"):
            self.key_changed(f"{what}:{entry.key}")
        if entry.node_key is not None and entry.spec.target in self.orphans:
            self.orphans[entry.spec.target][entry.node_key] = None

    def set_complete(self) -> Cadence:
        """Older history came to be known or unknown."""
        complete = not self.window.has_more
        if complete is self.facts.complete:
            return NONE
        self.facts.complete = complete
        self.key_changed(COMPLETE)
        for asker in list(self.predecessors.ask_complete):
            self.mark_stale(asker)
        head = self.facts.timeline.first_boundary
        end = (self.window.end or 0) + 1 if head is None else head
        self.relocate_events(self.window.first, end)
        return NOW

    def relocate_events(self, first: int, end: int) -> None:
        """The events from `first` to before `end` belong elsewhere, unless they say so
        themselves."""
        loaded = self.window.loaded
        for seq in range(first, end):
            held = loaded.get(seq)
            if held is None or held.owners is None:
                continue
            owners = held.owners if type(held.owners) is tuple else (held.owners,)
            for entry in owners:
                if not entry.gone and entry.bracketed:
                    entry.moved = True
                    self.mark_stale(entry)

    def boundary_changed(self, events: Sequence[Event], before: Floor) -> Cadence:
        """Statuses that boundary events have changed; `before`: the floor until now."""
        timeline = self.facts.timeline
        urgent = NONE
        if not self.dependencies.has_statuses:
            return urgent
        for event in events:
            place = boundary(event)
            if place is not None:
                urgent = max(urgent, self.key_changed(status_key(place[0], place[1])))
        if timeline.floor > before:
            for key in self.dependencies.statuses(before, timeline.floor):
                urgent = max(urgent, self.key_changed(key))
        return urgent

    def key_changed(self, key: Key) -> Cadence:
        """Whoever read this key is made again."""
        return NOW if self.dependencies.mark(key, self.dirty) else NONE

    def touch(self, entry: Entry) -> None:
        """All that is made from this Context is made again."""
        spec = entry.spec
        self._anchor(entry)
        if spec.place is not None:
            self.dirty[STEP_VALUE][entry] = None
            self.dirty[TURN_VALUE][entry] = None
        self.dirty[BUILD][entry] = None

    def relocate(self, entry: Entry) -> None:
        item = entry.lead.item
        if isinstance(item, Delta):
            entry.turn, entry.step, entry.resolved = item.turn, item.step, True
            entry.bracketed = False
            return
        place = self.facts.timeline.locate(item, self.window, complete=self.facts.complete)
        entry.turn, entry.step, entry.resolved = place.turn, place.step, place.resolved
        entry.bracketed = coordinates(item) is None

    def _anchor(self, entry: Entry) -> None:
        entry.anchor = entry.lead.position
        entry.anchor_failed = False
        if entry.spec.anchor is None or entry.failure is not None:
            return
        try:
            entry.anchor = entry.spec.anchor(ContextView(entry)).position
        except Exception as error:
            if self.strict:
                raise blame(error, entry.spec, "anchor", entry.key) from error
            entry.anchor_failed = True

    def published(self, spots: Iterable[tuple[str, int, int]]) -> None:
        for kind, turn, step in spots:
            if step == TURN_END:
                self.key_changed(f"turn:{kind}:{turn}")
            else:
                self.key_changed(f"step:{kind}:{turn}:{step}")
                self.key_changed(f"step:{kind}:{turn}:None")


def _as_findings(faults: Iterable[Fault]) -> list[Anomaly]:
    """What `match` and `retires` raised, as findings."""
    return [Anomaly("definition-error", key, place) for key, place in faults]
