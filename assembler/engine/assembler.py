"""The conductor: every operation validates, then commits; `flush` shows what came of it.

The order of things in one operation: check the input, ask the Definitions whose it is (`match`,
`cadence`, `retires`), and only then change anything. From there on nothing can fail. States,
values and Nodes are made when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from assembler.engine.anomalies import AnomalyLog
from assembler.engine.asking import NOTHING, Guard, Inquiry, Plan
from assembler.engine.attempts import DUPLICATE, LATE, TORN, Attempts
from assembler.engine.contexts import (
    ContextView,
    Entry,
    order_key,
)
from assembler.engine.definition import (
    NONE,
    NOW,
    Anomaly,
    Cadence,
    Context,
    Definition,
    GroupDefinition,
    Match,
    Role,
)
from assembler.engine.dependencies import (
    BUILD,
    LIVE,
)
from assembler.engine.derived import Derived
from assembler.engine.errors import AssemblerError, DefinitionError, InputError
from assembler.engine.events import (
    INDEX_BITS,
    Delta,
    Event,
    Outcome,
    Position,
    as_delta,
    as_event,
    as_page,
    need_bool,
    need_text,
    position,
)
from assembler.engine.locations import Floor, Location
from assembler.engine.making import Making
from assembler.engine.patches import Patch
from assembler.engine.registry import Registry
from assembler.engine.settling import settle
from assembler.engine.timeline import BOUNDARIES, boundary, coordinates
from assembler.engine.views import Change, View
from assembler.engine.window import Window, WindowView, check_page

__all__ = ["Assembler"]

INDEX_END = 1 << INDEX_BITS


def _by_place(anomaly: Anomaly) -> tuple[int, str, str]:
    return anomaly.position, anomaly.key, anomaly.kind


class Assembler:
    """One conversation: durable events and transient deltas in, ordered Nodes out.

    `definitions` are Definitions and Group Definitions; `views` the targets that are active from
    the beginning. `strict=True` raises `DefinitionError` when a Definition raises, and then
    nothing has changed; it is for development and costs O(loaded) per operation.

    For one thread at a time.
    """

    __slots__ = (
        "__weakref__",
        "_attempts",
        "_derived",
        "_grouped",
        "_guard",
        "_inquiry",
        "_live",
        "_log",
        "_registry",
        "_strict",
        "_views",
        "_window",
    )

    def __init__(
        self,
        definitions: Iterable[Definition | GroupDefinition],
        views: Iterable[str] = ("chat",),
        *,
        strict: bool = False,
        anomalies_max: int = 1_000,
        settled_ahead_max: int = 1_000,
    ) -> None:
        self._registry = Registry.of(definitions)
        self._strict = strict
        self._window = Window()
        self._attempts = Attempts(settled_ahead_max)
        self._log = AnomalyLog(anomalies_max)
        self._views: dict[str, View] = {}
        self._live: bool | None = None
        self._grouped: set[Anomaly] = set()
        """Those of the findings that Group Definitions raised."""
        self._derived = self._fresh()
        self._guard = Guard()
        self._inquiry = Inquiry(self._registry, self._guard, strict=strict)
        for name in (views,) if isinstance(views, str) else views:
            self.activate(name)

    def _fresh(self) -> Derived:
        return Derived(
            self._registry, self._window, self._views, live=self._live, strict=self._strict
        )

    # == operations ======================================================================

    def load(self, events: Iterable[Event | Mapping[str, Any]], has_more: bool = False) -> Cadence:
        """Replace the loaded events by a complete contiguous window.

        Held deltas and memory stay; equal Nodes keep their identity. Raises `GapError`,
        `ConflictError`, `InputError`. O(n log n).
        """
        self._guard.check()
        page = as_page(events)
        need_bool("has_more", has_more)
        check_page(page)
        plans = [self._inquiry.event(event) for event in page]
        deltas = [(delta, self._inquiry.delta(delta)) for delta in self._attempts.deltas()]
        undo = self._remember() if self._strict else None
        self._window.replace(page, has_more=has_more)
        self._rebuild(plans, deltas)
        return self._done(undo, NOW)

    def append(self, event: Event | Mapping[str, Any]) -> Cadence:
        """Take the next durable event.

        A repeat changes nothing. Raises `GapError` beyond the end, `ConflictError` for a loaded
        seq with another content, `InputError`. O(definitions that take its type + what changes).
        """
        self._guard.check()
        event = as_event(event)
        known = self._window.is_next(event)
        if known is None:
            self._incident("stale-event", f"event:{event.seq}", position(event.seq, 0))
            return NONE
        if not known:
            return NONE
        plan = self._inquiry.event(event)
        undo = self._remember() if self._strict else None
        was_empty = not self._window.loaded
        loaded = self._window.append(event)
        timeline = self._derived.facts.timeline
        before = timeline.floor
        timeline.append(event)
        urgent = plan.cadence
        if was_empty:
            urgent = max(urgent, self._derived.set_complete())
        if boundary(event) is not None:
            urgent = max(urgent, self._derived.boundary_changed((event,), before))
        self._learn(event)
        urgent = max(urgent, self._retire_by_name(event, plan))
        urgent = max(urgent, self._close(timeline.floor))
        loaded.owners = self._derived.take(plan)
        self._derived.keep_faults(position(event.seq, 0), "", plan)
        return self._done(undo, urgent)

    def emit(self, delta: Delta | Mapping[str, Any]) -> Cadence:  # noqa: C901, PLR0912 - inlined
        """Take one delta, or drop it and note why (`late-delta`, `torn-attempt`).

        A repeated ordinal is ignored. Raises `ConflictError` when the attempt changed its place
        or its positions do not rise, `InputError`. O(definitions that take its type) in
        position order.
        """
        if type(delta) is not Delta or self._strict:
            return self._emit_checked(as_delta(delta))
        # The common case, without a call more than it needs: the next ordinal of a held attempt,
        # which one Definition accepts, at the end of its Context. All else goes the checked way.
        try:
            held = self._attempts.held.get(delta.attempt)
            specs = self._registry.by_type.get(delta.type, ())
        except TypeError:  # no text, and not even hashable
            return self._emit_checked(as_delta(delta))
        guard = self._guard
        if (
            held is None
            or guard.busy
            or not specs
            or delta.ordinal != len(held.deltas)
            or held.torn
            or delta.step != held.step
            or delta.turn != held.turn
            or delta.number != held.number
            or type(delta.after) is not int
            or type(delta.ordinal) is not int
            or type(delta.step) is not int
            or type(delta.turn) is not int
            or type(delta.number) is not int
            or type(delta.time) is not int
            or type(delta.index) is not int
            or not 0 < delta.index < INDEX_END
        ):
            return self._emit_checked(as_delta(delta))
        place = (delta.after << INDEX_BITS) | delta.index
        if place <= held.last:
            return self._emit_checked(as_delta(delta))
        urgent = NONE
        entry = None
        plain = guard.busy = True
        try:
            for spec in specs:
                took = spec.match(delta)
                if took is None:
                    continue
                plain = entry is None
                match = Match(Position(place), delta, took[1])
                urgent = NOW if spec.cadence is None else spec.cadence(match)
                entry = self._derived.tables[spec.kind].get(took[0])
                if not (
                    plain
                    and entry is not None
                    and place > entry.last
                    and entry.start_at is not None
                    and type(took[1]) is Role
                    and type(urgent) is Cadence
                ):
                    plain = False
                    break
        except Exception:
            plain = False
        finally:
            guard.busy = False
        if not plain:
            # Asked once more, where it is noted.
            return self._emit_checked(as_delta(delta))
        if entry is not None:
            entry.push(match)
            if held.newest is not entry:
                held.newest = entry
                held.entries[entry] = None
            if not entry.stale:
                entry.stale = True
                self._derived.stale[entry] = None
        held.deltas.append(delta)
        held.last = place
        return urgent

    def _emit_checked(self, delta: Delta) -> Cadence:
        self._guard.check()
        verdict = self._attempts.judge(delta)
        if verdict == DUPLICATE:
            return NONE
        if verdict == LATE:
            self._attempts.refuse(delta)
            self._incident("late-delta", delta.attempt, delta.position)
            return NONE
        plan = Plan()
        if verdict != TORN:
            plan = self._inquiry.delta(delta)
        undo = self._remember() if self._strict else None
        held, beaten = self._attempts.admit(delta)
        for attempt in beaten:
            self._derived.retire(attempt)
        urgent = max(plan.cadence, NOW if beaten else NONE)
        if verdict == TORN:
            if not held.torn:
                held.torn = True
                self._incident("torn-attempt", delta.attempt, delta.position)
            return self._done(undo, urgent)
        held.torn = False
        held.deltas.append(delta)
        held.last = delta.position
        self._derived.take(plan, held)
        self._derived.keep_faults(delta.position, delta.attempt, plan)
        return self._done(undo, urgent)

    def prepend(self, events: Iterable[Event | Mapping[str, Any]], has_more: bool) -> Cadence:
        """Take the older page just before the window (it may overlap it).

        An empty page only says whether older events exist; to an empty window it is a `load`.
        Raises `GapError`, `ConflictError`, `InputError`. O(page · log window + what changes).
        """
        self._guard.check()
        page = as_page(events)
        need_bool("has_more", has_more)
        if not page:
            undo = self._remember() if self._strict else None
            return self._done(undo, self._set_has_more(has_more=has_more))
        if not self._window.loaded:
            return self.load(page, has_more)
        older = self._window.older(page)
        reaches = page[0].seq <= self._window.first
        plans = [self._inquiry.event(event) for event in older]
        undo = self._remember() if self._strict else None
        urgent = NONE
        if older:
            self._prepend(older, plans)
            urgent = NOW
        if reaches:
            urgent = max(urgent, self._set_has_more(has_more=has_more))
        return self._done(undo, urgent)

    def _prepend(self, older: Sequence[Event], plans: Sequence[Plan]) -> None:
        timeline = self._derived.facts.timeline
        head, before = timeline.first_boundary, timeline.floor
        first, end = self._window.first, self._window.end or 0
        loaded = self._window.prepend(older)
        timeline.prepend(older)
        boundaries = [each for each in older if each.type in BOUNDARIES and boundary(each)]
        if boundaries:
            self._derived.relocate_events(first, end + 1 if head is None else head)
            self._derived.boundary_changed(boundaries, before)
        for event in older:
            self._learn(event)
        for event, plan in zip(older, plans, strict=True):
            if plan.retired:
                self._retire_by_name(event, plan)
        self._close(timeline.floor)
        for held, plan in zip(loaded, plans, strict=True):
            if plan is not NOTHING:
                held.owners = self._derived.take(plan)
                self._derived.keep_faults(position(held.event.seq, 0), "", plan)

    def evict(self, before: int) -> Cadence:
        """Forget loaded events older than seq `before`, up to the first event of an open step.

        O(what is forgotten).
        """
        self._guard.check()
        if type(before) is not int:
            raise InputError(f"before: expected an integer, got {before!r}")
        undo = self._remember() if self._strict else None
        timeline = self._derived.facts.timeline
        floor, first = timeline.floor, self._window.first
        before = self._evictable(before)
        gone = self._window.evict(before)
        if not gone:
            return NONE
        timeline.evict([held.event for held in gone])
        for held in gone:
            self._derived.forget_event(held.event, held.owners)
        self._derived.set_complete()
        events = [held.event for held in gone]
        boundaries = [each for each in events if each.type in BOUNDARIES and boundary(each)]
        if boundaries or first == 1:
            head = timeline.first_boundary
            self._derived.relocate_events(
                before, (self._window.end or 0) + 1 if head is None else head
            )
        if timeline.floor != floor:
            # Rare: the last closing event itself was forgotten, which opens old places again.
            for table in self._derived.tables.values():
                for entry in table.values():
                    self._derived.touch(entry)
        elif boundaries:
            self._derived.boundary_changed(boundaries, floor)
        return self._done(undo, NOW)

    def _evictable(self, before: int) -> int:
        """The seq below which may be forgotten: not into an open step."""
        timeline, complete = self._derived.facts.timeline, not self._window.has_more
        loaded = self._window.loaded
        if not loaded:
            return before
        for seq in range(self._window.first, min(before, (self._window.end or 0) + 1)):
            place = timeline.locate(loaded[seq].event, self._window, complete=complete)
            if place.step is not None and not timeline.is_closed((place.turn or 0, place.step)):
                return seq
        return before

    def settle(self, attempt: str, outcome: Outcome | str) -> Cadence:
        """An attempt ended. All but `completed` give it up: its deltas go at once.

        O(its deltas + the Matches of their Contexts).
        """
        self._guard.check()
        need_text("attempt", attempt)
        try:
            outcome = Outcome(outcome)
        except ValueError:
            known = ", ".join(each.value for each in Outcome)
            raise InputError(f"outcome: expected one of {known}, got {outcome!r}") from None
        undo = self._remember() if self._strict else None
        held = self._attempts.settle(attempt, outcome)
        if held is None:
            return NONE
        self._derived.retire(held)
        return self._done(undo, NOW)

    def liveness(self, live: bool | None) -> Cadence:
        """Whether anybody is still working on this conversation; None: not known.

        O(the Nodes that read it).
        """
        self._guard.check()
        if live is not None and type(live) is not bool:
            raise InputError(f"live: expected true, false or null, got {live!r}")
        if live is self._live:
            return NONE
        self._live = self._derived.facts.live = live
        self._derived.key_changed(LIVE)
        return NOW

    def flush(self) -> dict[str, Patch]:
        """What changed since the last flush: a Patch (false when empty) per active view.

        O(what changed).
        """
        self._settle()
        with self._guard:
            changes = self._prepare()
        self._derived.went.clear()
        window = self._window.wire()
        open_now = self._derived.facts.timeline.open_now(self._window)
        patches = {
            view.name: view.commit(change, window, self._live, open_now) for view, change in changes
        }
        self._note_findings()
        return patches

    def _settle(self) -> None:
        """Fold every State that is behind."""
        if self._derived.stale:
            with self._guard:
                settle(self._derived)

    def _note_findings(self) -> None:
        """Enter the findings that hold now and did not hold before. Costs those that changed."""
        news = set(self._derived.findings.settle())
        grouped = {odd for view in self._views.values() for odd in view.findings()}
        news |= grouped - self._grouped
        self._grouped = grouped
        self._log.findings(sorted(news, key=_by_place))

    def _prepare(self) -> list[tuple[View, Change]]:
        """Make again what is dirty, and put it into the views; nothing is shown yet."""
        made = Making(self._derived, self._views).make()
        changes: list[tuple[View, Change]] = []
        try:
            for name, view in self._views.items():
                changes.append((view, view.prepare(made.get(name, {}), self._derived.went)))
        except BaseException:
            self._show_again(changes)
            raise
        return changes

    def _show_again(self, changes: Sequence[tuple[View, Change]]) -> None:
        """A Group Definition raised: nothing is shown, and all is to be made again."""
        for view, change in changes:
            view.roll_back(change)
        for name, view in self._views.items():
            self._derived.orphans[name].update(dict.fromkeys(node.key for node in view.nodes))
        for table in self._derived.tables.values():
            self._derived.dirty[BUILD].update(dict.fromkeys(table.values()))

    def activate(self, view: str) -> None:
        """Show one more target, from the next flush on. No other view changes."""
        self._guard.check()
        if view in self._views:
            return
        groups = self._registry.groups.get(view, ())
        self._views[view] = View(
            view,
            groups,
            window=self._window.wire(),
            live=self._live,
            open_now=self._derived.facts.timeline.open_now(self._window),
            strict=self._strict,
        )
        self._derived.orphans[view] = {}
        for spec in self._registry.specs:
            if spec.target == view:
                self._derived.dirty[BUILD].update(
                    dict.fromkeys(self._derived.tables[spec.kind].values())
                )

    def deactivate(self, view: str) -> None:
        """Show a target no more. No other view changes."""
        self._guard.check()
        if self._views.pop(view, None) is None:
            return
        del self._derived.orphans[view]
        for spec in self._registry.specs:
            if spec.target == view:
                for entry in self._derived.tables[spec.kind].values():
                    entry.node_key = None
                    if entry.findings:
                        self._derived.dirty[BUILD][entry] = None
                    elif spec.notes is None:
                        self._derived.dependencies.record(entry, BUILD, ())

    # == reading =========================================================================

    def view(self, name: str = "chat") -> View:
        """The View of an active target, as of the last flush."""
        try:
            return self._views[name]
        except KeyError:
            known = ", ".join(self._views) or "none"
            raise AssemblerError(f"the view {name!r} is not active (active: {known})") from None

    def state(self, kind: str, id: str) -> Any:
        """The State of one Context now, or None."""
        self._settle()
        entry = self._table(kind).get(id)
        return None if entry is None else entry.state

    def contexts(self, kind: str) -> list[Context]:
        """All Contexts of a kind, by position. O(n log n)."""
        self._settle()
        entries = sorted(
            self._table(kind).values(), key=lambda entry: (*order_key(entry.lead), entry.id)
        )
        return [ContextView(entry) for entry in entries]

    def location(self, kind: str, id: str) -> Location | None:
        """Where a Context belongs; None when there is no such Context."""
        self._settle()
        entry = self._table(kind).get(id)
        return None if entry is None else Location(entry.turn, entry.step, entry.resolved)

    def _table(self, kind: str) -> dict[str, Entry]:
        try:
            return self._derived.tables[kind]
        except KeyError:
            known = ", ".join(self._registry.kinds)
            raise AssemblerError(f"no Definition has the kind {kind!r} (kinds: {known})") from None

    @property
    def window(self) -> WindowView:
        """What is loaded."""
        return self._window.view

    @property
    def events(self) -> list[Event]:
        """The loaded events, oldest first, as a new list. O(n)."""
        return list(self._window.events())

    @property
    def deltas(self) -> list[Delta]:
        """The held deltas in position order, as a new list. O(n log n)."""
        return self._attempts.deltas()

    def event(self, seq: int) -> Event | None:
        """The loaded event of that `seq`; None when it is not loaded. O(1)."""
        loaded = self._window.loaded.get(seq)
        return None if loaded is None else loaded.event

    @property
    def held(self) -> dict[str, int]:
        """The held attempts, each with the number of its deltas, as a new dict. O(attempts)."""
        return {name: len(attempt.deltas) for name, attempt in self._attempts.held.items()}

    def delta(self, attempt: str, ordinal: int) -> Delta:
        """One held delta. O(1); `LookupError` when it is not held."""
        return self._attempts.held[attempt].deltas[ordinal]

    def behind(self, view: str, key: str) -> ContextView | None:
        """The Context whose Node has that key on a view, as of the last flush; None: no such Node.

        O(kinds of the view).
        """
        if key not in self.view(view):
            return None
        ident = self.view(view)[key].id  # a Node bears the id of its Context
        for spec in self._registry.specs:
            entry = self._derived.tables.find(spec.kind, ident)
            if spec.target == view and entry is not None and entry.node_key == key:
                return ContextView(entry)
        return None

    @property
    def live(self) -> bool | None:
        return self._live

    @property
    def anomalies(self) -> AnomalyLog:
        """The newest anomalies and their counts."""
        return self._log

    def findings(self) -> list[Anomaly]:
        """The findings that hold, as of the last flush. O(their number · log)."""
        return sorted({*self._derived.findings, *self._grouped}, key=_by_place)

    def statistics(self) -> dict[str, Any]:
        """Counts for an operator, as plain JSON values. O(attempts + kinds)."""
        attempts = self._attempts.held.values()
        return {
            "events": len(self._window),
            "deltas": sum(len(attempt.deltas) for attempt in attempts),
            "attempts": len(attempts),
            "torn": sorted(attempt.name for attempt in attempts if attempt.torn),
            "contexts": {kind: len(self._table(kind)) for kind in self._registry.kinds},
            "nodes": {name: len(view) for name, view in self._views.items()},
            "groups": {name: len(view.groups) for name, view in self._views.items()},
            "anomalies": dict(self._log.counts),
        }

    def audit(self) -> list[str]:
        """Check every invariant, slowly: what is wrong, in words; empty when all is well."""
        from assembler.engine.audit import audit  # noqa: PLC0415 - the audit reads the Assembler

        return audit(self)

    # == what the events say =============================================================

    def _learn(self, event: Event) -> None:
        """What is remembered of an event, however it was learned."""
        turn, newest = event.data.get("turn"), self._attempts.newest_turn
        if type(turn) is int and (newest is None or turn > newest) and coordinates(event):
            self._attempts.learn_turn(turn)

    def _retire_by_name(self, event: Event, plan: Plan) -> Cadence:
        urgent = NONE
        for name in plan.retired:
            held = self._attempts.give_up_name(name, coordinates(event))
            if held is not None:
                self._derived.retire(held)
                urgent = NOW
        return urgent

    def _close(self, floor: Floor) -> Cadence:
        """Retire what the loaded events have closed, up to `floor`."""
        gone = self._attempts.close(floor)
        for attempt in gone:
            self._derived.retire(attempt)
        return NOW if gone else NONE

    def _set_has_more(self, *, has_more: bool) -> Cadence:
        self._window.set_has_more(has_more=has_more)
        return self._derived.set_complete()

    # == the rest ========================================================================

    def _incident(self, kind: str, key: str, place: Position) -> None:
        self._log.incident(Anomaly(kind, key, place))

    def _rebuild(
        self,
        plans: Sequence[Plan] | None = None,
        deltas: Sequence[tuple[Delta, Plan]] = (),
    ) -> None:
        """Make everything again from the facts: the loaded events and the held deltas.

        With `plans` the events are news, which may close steps and give attempts up; `deltas` are
        those that were held until now, with theirs.
        """
        fresh = self._fresh()
        events = list(self._window.events())
        for event in events:
            fresh.facts.timeline.append(event)
        if plans is None:
            plans = [self._inquiry.event(event) for event in events]
            deltas = [(delta, self._inquiry.delta(delta)) for delta in self._attempts.deltas()]
        else:
            # What they retire is withdrawn from what is shown until now.
            for event, plan in zip(events, plans, strict=True):
                self._learn(event)
                self._retire_by_name(event, plan)
            self._close(fresh.facts.timeline.floor)
        fresh.went = self._derived.went
        fresh.findings.succeed(self._derived.findings)
        for name, view in self._views.items():
            fresh.orphans[name].update(dict.fromkeys(node.key for node in view.nodes))
        for held in self._attempts.held.values():
            held.entries, held.newest = {}, None
        self._derived = fresh
        for event, plan in zip(events, plans, strict=True):
            self._window.loaded[event.seq].owners = self._derived.take(plan)
            self._derived.keep_faults(position(event.seq, 0), "", plan)
        for delta, plan in deltas:
            held_now = self._attempts.held.get(delta.attempt)
            if held_now is not None:
                self._derived.take(plan, held_now)
                self._derived.keep_faults(delta.position, delta.attempt, plan)

    def _remember(self) -> tuple[Any, ...]:
        """The facts and the memory, to go back to when a Definition raises under `strict`."""
        window = self._window
        return (
            list(window.events()),
            window.end,
            window.has_more,
            self._attempts.copy(),
            self._log.copy(),
        )

    def _done(self, undo: tuple[Any, ...] | None, urgent: Cadence) -> Cadence:
        """Under `strict` an operation folds at once, and is undone by making all again."""
        if undo is None:
            return urgent
        try:
            self._settle()
        except DefinitionError:
            events, end, has_more, self._attempts, self._log = undo
            self._window.replace(events, has_more=has_more)
            self._window.end, self._window.has_more = end, has_more
            self._rebuild()
            raise
        return urgent
