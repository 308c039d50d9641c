"""The naive oracle: the engine's promises in their plainest form, for tests only.

`Oracle` takes the same operations as the `Assembler` and raises the same errors. It keeps the
facts (loaded events, held deltas, liveness) and the memory as plain lists, sets and dicts, and
makes everything that is shown from scratch whenever somebody looks: sort, match, fold, place,
build. No index, no increment, nothing shared with the engine but its values. Not here: comparing
the two (`compare`), and inputs for them (`strategies`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from assembler.engine.definition import (
    START,
    UNNAMED,
    Anomaly,
    Definition,
    Group,
    GroupDefinition,
    Match,
    Node,
    Role,
)
from assembler.engine.errors import ConflictError, DefinitionError, GapError, InputError
from assembler.engine.events import (
    Delta,
    Event,
    Item,
    Outcome,
    Position,
    as_delta,
    as_event,
    position,
    same_event,
)
from assembler.engine.locations import SESSION, TURN_END, UNRESOLVED, Floor, Location, Status
from assembler.engine.values import freeze_object

__all__ = ["Oracle", "Seen", "Shown", "Span"]

BOUNDARIES = ("turn/start", "turn/end", "step/start", "step/end")
NOTHING: Floor = (-(1 << 64), 0)
"""A floor below everything: no step is known closed."""


class Span(NamedTuple):
    """The loaded window: its first and last seq (None when empty), and whether there is more."""

    first: int | None
    last: int | None
    has_more: bool


class Seen(Struct, frozen=True):
    """A Context as the oracle sees it."""

    kind: str
    id: str
    matches: tuple[Match, ...]
    location: Location
    start: Match | None = None
    state: Any = None

    @property
    def key(self) -> str:
        return f"{self.kind}:{self.id}"


class Shown(NamedTuple):
    """One view: its Nodes in order and its groups (whose keys mean nothing here)."""

    nodes: list[Node]
    groups: list[Group]


class _Attempt:
    """What is remembered of an attempt that is held, or torn before anything of it was held."""

    def __init__(self, delta: Delta) -> None:
        self.place = (delta.turn, delta.step)
        self.number = delta.number
        self.next = 0
        self.last = -1
        self.torn = False


class Oracle:
    """The same operations as the Assembler, in the plainest form; O(everything) per look."""

    def __init__(
        self,
        definitions: Iterable[Definition | GroupDefinition],
        views: Iterable[str] = ("chat",),
        *,
        settled_ahead_max: int = 1_000,
    ) -> None:
        given = tuple(definitions)
        self.definitions = tuple(each for each in given if isinstance(each, Definition))
        self.groupings = tuple(each for each in given if isinstance(each, GroupDefinition))
        self.views = set(views)
        self.settled_ahead_max = settled_ahead_max
        self.named = {name for each in self.definitions for name in each.takes | each.names}
        # The facts: E, D, L.
        self.events: list[Event] = []
        self.has_more = False
        self.deltas: list[Delta] = []
        self.live: bool | None = None
        # The memory.
        self.end: int | None = None
        self.floor = NOTHING
        self.newest: int | None = None
        self.highest: dict[Floor, int] = {}
        self.given_up: set[tuple[Floor, str]] = set()
        self.attempts: dict[str, _Attempt] = {}
        self.ahead: dict[str, tuple[Outcome, int | None]] = {}
        # What happened, and what was made from the facts for the last look.
        self.incidents: list[Anomaly] = []
        self._picture: _Picture | None = None

    # --- operations: events

    def load(self, events: Iterable[Any], has_more: bool = False) -> None:
        """Replace the window."""
        page = _page(events)
        self._replace(page, has_more)
        self.end = page[-1].seq if page else None
        self._learn(page)

    def append(self, event: Any) -> None:
        """The next event; a repeated one is compared, an older one noted."""
        taken = as_event(event)
        if self.end is not None and taken.seq <= self.end:
            if not self.events or taken.seq < self.events[0].seq:
                self._incident("stale-event", f"event:{taken.seq}", position(taken.seq, 0))
            else:
                self._check_same([taken])
            return
        if self.end is not None and taken.seq > self.end + 1:
            raise GapError(self.end + 1, taken.seq - 1)
        more = self.has_more if self.end is not None else True
        self._replace([*self.events, taken], more)
        self.end = taken.seq
        self._learn([taken])

    def prepend(self, events: Iterable[Any], has_more: bool) -> None:
        """The page before the window; what overlaps is compared, what is beyond ignored."""
        page = _page(events)
        if not page:
            self._replace(self.events, has_more)
        elif not self.events:
            self.load(page, has_more)
        else:
            first = self.events[0].seq
            if page[-1].seq < first - 1:
                raise GapError(page[-1].seq + 1, first - 1)
            self._check_same(page)
            older = [event for event in page if event.seq < first]
            reaches = page[0].seq <= first
            self._replace([*older, *self.events], has_more if reaches else self.has_more)
            self._learn(older)

    def evict(self, before: int) -> None:
        """Forget loaded events older than `before`, but nothing from an open step on."""
        if type(before) is not int:
            raise InputError(f"before: expected an integer, got {before!r}")
        picture = self._look()
        stop = before
        for event in self.events:
            place = picture.locations[event.seq]
            if place.step is not None and _coordinates(place) > picture.floor:
                stop = min(stop, event.seq)
        kept = [event for event in self.events if event.seq >= stop]
        if len(kept) < len(self.events):
            self._replace(kept, True)

    def _replace(self, events: list[Event], has_more: bool) -> None:
        self.events = events
        self.has_more = has_more and not (events and events[0].seq == 1)
        self._picture = None

    def _check_same(self, page: Sequence[Event]) -> None:
        loaded = {event.seq: event for event in self.events}
        for event in page:
            if event.seq in loaded and not same_event(event, loaded[event.seq]):
                raise ConflictError(f"event {event.seq} is loaded with another content")

    # --- operations: deltas, settlements, liveness

    def emit(self, delta: Any) -> None:
        """One delta: ignored, dropped and noted, torn, refused or taken, in this order."""
        taken = as_delta(delta)
        held = self.attempts.get(taken.attempt)
        if held and taken.ordinal < held.next:
            return
        if self._refuses(taken):
            self._incident("late-delta", taken.attempt, taken.position)
            return
        if held and (held.place, held.number) != ((taken.turn, taken.step), taken.number):
            raise ConflictError(f"attempt {taken.attempt} changes its turn, step or number")
        expected = held.next if held else 0
        if held and taken.ordinal == expected and taken.position <= held.last:
            raise ConflictError(f"a position of attempt {taken.attempt} does not rise")
        self._picture = None
        attempt = self.attempts.setdefault(taken.attempt, _Attempt(taken))
        if taken.ordinal > expected:
            if not attempt.torn:
                self._incident("torn-attempt", taken.attempt, taken.position)
            attempt.torn = True
        else:
            attempt.next, attempt.last, attempt.torn = expected + 1, taken.position, False
            self.deltas.append(taken)
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
        self._picture = None
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

    def liveness(self, live: bool | None) -> None:
        """Whether anybody still works on this conversation."""
        if live is not None and type(live) is not bool:
            raise InputError(f"live: expected true, false or null, got {live!r}")
        self.live = live
        self._picture = None

    # --- the memory

    def _learn(self, events: Iterable[Event]) -> None:
        """What closes and what gives up acts whenever it is learned."""
        for event in events:
            self.floor = max(self.floor, _closes(event))
            place = _explicit(event)
            if place is None:
                continue
            if place.step is not None:
                for name in self._retired_by(event):
                    self.given_up.add((_coordinates(place), name))
            self._know(_coordinates(place)[0])
        self._forget()

    def _retired_by(self, event: Event) -> Iterator[str]:
        for definition in self.definitions:
            if self.reaches(definition, event):
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
        self.deltas = [delta for delta in self.deltas if delta.attempt in self.attempts]
        newest = self._newest_open()  # what was settled before any turn was known is dated now
        dated = {
            name: (outcome, newest if until is None else until)
            for name, (outcome, until) in self.ahead.items()
        }
        self.ahead = {
            name: (outcome, until)
            for name, (outcome, until) in dated.items()
            if until is None or (until, TURN_END) > self.floor
        }

    def _incident(self, kind: str, key: str, at: Position) -> None:
        self.incidents.append(Anomaly(kind, key, at))

    # --- looking

    def reaches(self, definition: Definition, item: Item) -> bool:
        """Whether `definition` sees `item` at all."""
        if item.type != UNNAMED and item.type in definition.takes:
            return True
        unnamed = item.type == UNNAMED or item.type not in self.named
        fallback = type(item) is Event and unnamed and item.type not in BOUNDARIES
        return fallback and UNNAMED in definition.takes

    def activate(self, view: str) -> None:
        """Show `view` from now on."""
        self.views.add(view)
        self._picture = None

    def deactivate(self, view: str) -> None:
        """Show `view` no more."""
        self.views.discard(view)
        self._picture = None

    @property
    def window(self) -> Span:
        first, last = (self.events[0].seq, self.events[-1].seq) if self.events else (None, None)
        return Span(first, last, self.has_more)

    def contexts(self, kind: str) -> list[Seen]:
        """All Contexts of `kind`."""
        return [seen for seen in self._look().contexts.values() if seen.kind == kind]

    def state(self, kind: str, id: str) -> Any:
        """A State, or None."""
        seen = self._look().contexts.get((kind, id))
        return None if seen is None else seen.state

    def findings(self) -> list[Anomaly]:
        """What is odd now, in order of position, key and kind."""
        return sorted(self._look().findings, key=lambda odd: (odd.position, odd.key, odd.kind))

    def view(self, name: str) -> Shown:
        """The Nodes and groups of an active view."""
        return self._look().views[name]

    def _look(self) -> _Picture:
        if self._picture is None:
            self._picture = _Picture(self)
        return self._picture


def _page(events: Iterable[Any]) -> list[Event]:
    page = [as_event(event) for event in events]
    for nth in range(1, len(page)):
        left, right = page[nth - 1], page[nth]
        if right.seq > left.seq + 1:
            raise GapError(left.seq + 1, right.seq - 1)
        if right.seq <= left.seq:
            raise ConflictError(f"event {right.seq} stands behind event {left.seq}")
    return page


def _explicit(event: Event) -> Location | None:
    """The coordinates that an event names itself; a bool is no number."""
    turn, step = event.data.get("turn"), event.data.get("step")
    if type(turn) is not int:
        return None
    return Location(turn, step if type(step) is int else None)


def _coordinates(place: Location) -> Floor:
    """Turn and step of a place that has both (or a turn alone: all of its steps)."""
    turn, step = place.turn, place.step
    return (0 if turn is None else turn, TURN_END if step is None else step)


def _is_boundary(event: Event) -> bool:
    place = _explicit(event)
    if event.type not in BOUNDARIES or place is None:
        return False
    return event.type.startswith("turn/") or place.step is not None


def _closes(event: Event) -> Floor:
    """The highest turn and step that `event` closes."""
    if not _is_boundary(event):
        return NOTHING
    turn, step = event.data["turn"], event.data.get("step")
    closes: dict[str, Callable[[], Floor]] = {
        "turn/start": lambda: (turn - 1, TURN_END),
        "turn/end": lambda: (turn, TURN_END),
        "step/start": lambda: (turn, step - 1),
        "step/end": lambda: (turn, step),
    }
    return closes[event.type]()


def _order(match: Match) -> tuple[int, str]:
    return match.position, match.attempt or ""


class _Picture:
    """Everything that is shown, made in one go from E, `has_more`, D and L.

    The Definitions are asked in the order of what they may read: match, fold (in the order of
    the starts), anchor, place for the step, place for the turn, notes, build, group.
    """

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.complete = not oracle.has_more
        self.findings: set[Anomaly] = set()
        self.floor = max(map(_closes, oracle.events), default=NOTHING)
        self.locations = self._locate()
        self.definitions = {each.kind: each for each in oracle.definitions}
        self.failed: dict[str, tuple[str, str]] = {}
        self.contexts = {(seen.kind, seen.id): seen for seen in self._matched()}
        self._fold()
        self.anchors = {seen.key: self._anchor(seen) for seen in self.contexts.values()}
        self.step_values: list[_Placed] = []
        self.turn_values: list[_Placed] = []
        self.step_values = self._place(lambda at: at, lambda at: at.step is not None)
        self.turn_values = self._place(
            lambda at: Location(at.turn, None), lambda at: at.turn is not None
        )
        for seen in self.contexts.values():
            self._note_all(seen)
        self.views = {name: self._show(name) for name in sorted(oracle.views)}

    # --- locations

    def _locate(self) -> dict[int, Location]:
        bracket = SESSION if self.complete else UNRESOLVED
        found = {}
        for event in self.oracle.events:
            explicit = _explicit(event)
            if _is_boundary(event):
                bracket = self._bracket(event)
            found[event.seq] = explicit or bracket
        return found

    def _bracket(self, event: Event) -> Location:
        if event.type == "turn/end":
            return SESSION
        return Location(
            event.data["turn"], event.data["step"] if event.type == "step/start" else None
        )

    def location(self, item: Item) -> Location:
        """Where an item belongs."""
        if isinstance(item, Delta):
            return Location(item.turn, item.step)
        return self.locations[item.seq]

    def status(self, at: Location) -> Status:
        """Whether a turn (without `step`) or a step is open; the conversation itself always is."""
        turn, step = at.turn, at.step
        if turn is None:
            return Status.OPEN if at.resolved else Status.UNKNOWN
        if _coordinates(at) <= self.floor:
            return Status.CLOSED
        opened = any(
            _is_boundary(event)
            and event.type == ("turn/start" if step is None else "step/start")
            and event.data["turn"] == turn
            and (step is None or event.data["step"] == step)
            for event in self.oracle.events
        )
        if opened or (self.complete and self._is_named(turn, step)):
            return Status.OPEN
        return Status.UNKNOWN

    def _is_named(self, turn: int, step: int | None) -> bool:
        places = [_explicit(event) for event in self.oracle.events]
        places += [Location(delta.turn, delta.step) for delta in self.oracle.deltas]
        return any(
            place is not None and place.turn == turn and step in (None, place.step)
            for place in places
        )

    # --- Contexts and their States

    def _matched(self) -> Iterator[Seen]:
        found: dict[tuple[str, str], list[Match]] = {}
        for definition in self.oracle.definitions:
            items: list[Item] = [*self.oracle.events, *self.oracle.deltas]
            for item in items:
                if self.oracle.reaches(definition, item):
                    self._match(definition, item, found)
        for (kind, id_), matches in found.items():
            matches.sort(key=_order)
            start = next((match for match in matches if match.role is START), None)
            at = self.location((start or matches[0]).item)
            yield Seen(kind, id_, tuple(matches), at, start)

    def _match(
        self, definition: Definition, item: Item, found: dict[tuple[str, str], list[Match]]
    ) -> None:
        at = position(item.seq, 0) if isinstance(item, Event) else item.position
        kind = definition.kind
        if isinstance(item, Event):
            self._ask(lambda: definition.retires(item), f"{kind}:", at)
        nobody: tuple[str, Role] | None = None
        answer = self._ask(lambda: definition.match(item), f"{kind}:", at, nobody)
        if answer is not None:
            match = Match(at, item, answer[1])
            found.setdefault((kind, answer[0]), []).append(match)
            self._ask(lambda: definition.cadence(match), f"{kind}:{answer[0]}", at)

    def _fold(self) -> None:
        started: list[tuple[tuple[int, str], Seen]] = [
            (_order(seen.start), seen) for seen in self.contexts.values() if seen.start
        ]
        started.sort(key=lambda pair: pair[0])
        for order, seen in started:
            earlier = [other for at, other in started if at < order]
            state = self._state(seen, _Reader(self, earlier))
            self.contexts[seen.kind, seen.id] = Seen(
                seen.kind, seen.id, seen.matches, seen.location, seen.start, state
            )

    def _state(self, seen: Seen, reader: _Reader) -> Any:
        definition, state = self.definitions[seen.kind], None
        start = seen.start
        assert start is not None
        for match in [start, *[other for other in seen.matches if other is not start]]:
            if _order(match) < _order(start):
                self._note("early-update", seen.key, match.position)
        for match in [start, *[other for other in seen.matches if other is not start]]:
            name = "start" if match is start else "update"
            try:
                if match is start:
                    state = definition.start(match, reader)
                else:
                    state = definition.update(state, match)
            except Exception as error:
                self._note("definition-error", seen.key, match.position)
                self.failed[seen.key] = (type(error).__name__, name)
                return None
        return state

    # --- places, notes, Nodes

    def _anchor(self, seen: Seen) -> Match:
        default = seen.start or seen.matches[0]
        definition = self.definitions[seen.kind]
        if seen.key in self.failed:
            return default
        anchor: Match = self._ask(
            lambda: definition.anchor(seen), seen.key, default.position, default
        )
        return anchor

    def _place(
        self, scope: Callable[[Location], Location], wanted: Callable[[Location], bool]
    ) -> list[_Placed]:
        placed = []
        for seen in self.contexts.values():
            if seen.key not in self.failed and wanted(seen.location):
                value = self._placed(seen, scope(seen.location))
                if value is not None:
                    anchor = self.anchors[seen.key].position
                    placed.append(_Placed(anchor, seen.key, seen, value))
        return sorted(placed, key=lambda each: each[:2])

    def _placed(self, seen: Seen, at: Location) -> Any:
        definition = self.definitions[seen.kind]
        anchor = self.anchors[seen.key].position
        return self._ask(lambda: definition.place(seen, _Scope(self, at)), seen.key, anchor)

    def _note_all(self, seen: Seen) -> None:
        if seen.key in self.failed:
            return
        definition = self.definitions[seen.kind]
        scope = _Scope(self, seen.location)
        anchor = self.anchors[seen.key].position
        nothing: list[tuple[str, Position]] = []
        noted = self._ask(lambda: list(definition.notes(seen, scope)), seen.key, anchor, nothing)
        for kind, at in noted:
            self._note(kind, seen.key, at)

    def _show(self, view: str) -> Shown:
        nodes = []
        for seen in self.contexts.values():
            if self.definitions[seen.kind].target == view:
                node = self._node(seen)
                if node is not None:
                    nodes.append(node)
        nodes.sort(key=lambda node: (node.position, node.key))
        grouped = [
            (nodes.index(members[0]), nth, self._group(grouping, members))
            for nth, grouping in enumerate(self.oracle.groupings)
            if grouping.target == view
            for members in self._together(grouping, nodes)
        ]
        return Shown(nodes, [group for _, _, group in sorted(grouped, key=lambda each: each[:2])])

    def _node(self, seen: Seen) -> Node | None:
        definition = self.definitions[seen.kind]
        at, anchor = seen.location, self.anchors[seen.key].position
        failure = self.failed.get(seen.key)
        if failure is None:
            try:
                node = definition.build(seen, _Scope(self, at))
                if node is None:
                    return None
                _check_node(definition, seen, node)
                return node.placed(anchor, at.turn, at.step)
            except Exception as error:
                self._note("definition-error", seen.key, anchor)
                failure = (type(error).__name__, "build")
        data = {"error": {"name": failure[0], "in": failure[1]}}
        return Node(seen.kind, seen.id, data).placed(anchor, at.turn, at.step)

    def _group(self, grouping: GroupDefinition, members: list[Node]) -> Group:
        first, keys = members[0], tuple(node.key for node in members)
        nothing: Mapping[str, Any] = {}
        data = self._ask(
            lambda: freeze_object(grouping.summary(members)), first.key, first.position, nothing
        )
        return Group("", grouping.kind, keys, data)

    def _together(self, grouping: GroupDefinition, nodes: list[Node]) -> Iterator[list[Node]]:
        """Runs of neighbours with an equal bracket that is not None."""
        run: list[Node] = []
        bracket: Any = None
        for node in nodes:
            own = self._joins(grouping, node)
            if run and own != bracket:
                yield run
                run = []
            bracket = own
            if own is not None:
                run.append(node)
        if run:
            yield run

    def _joins(self, grouping: GroupDefinition, node: Node) -> Any:
        return self._ask(lambda: grouping.joins(node), node.key, node.position)

    # --- isolation

    def _note(self, kind: str, key: str, at: Position) -> None:
        self.findings.add(Anomaly(kind, key, at))

    def _ask(self, call: Callable[[], Any], key: str, at: Position, instead: Any = None) -> Any:
        try:
            return call()
        except Exception:
            self._note("definition-error", key, at)
            return instead


def _check_node(definition: Definition, seen: Seen, node: Node) -> None:
    if node.id != seen.id or node.kind not in (definition.shows or {definition.kind}):
        raise DefinitionError(f"{seen.key} built the Node {node.kind}:{node.id}")


class _Placed(NamedTuple):
    """A value that a Context published."""

    anchor: int
    key: str
    seen: Seen
    value: Any


class _Reader:
    """The States of all Contexts that started before the asking one."""

    def __init__(self, picture: _Picture, earlier: list[Seen]) -> None:
        self._picture = picture
        self._earlier = earlier

    def previous(self, kind: str) -> tuple[str, Any] | None:
        for seen in reversed(self._earlier):
            if seen.kind == kind and seen.key not in self._picture.failed:
                return seen.id, self._picture.contexts[kind, seen.id].state
        return None

    @property
    def complete(self) -> bool:
        return self._picture.complete


class _Scope:
    """What a Definition may read beside its Context."""

    def __init__(self, picture: _Picture, at: Location) -> None:
        self._picture = picture
        self.turn, self.step = at.turn, at.step
        self.live = picture.oracle.live
        self.complete = picture.complete
        self.turn_status = picture.status(Location(at.turn, None, at.resolved))
        # Without a step, the turn's own status stands for it.
        self.step_status = picture.status(at)
        self.closed = self.step_status is Status.CLOSED

    def step_values(self, kind: str) -> Mapping[str, Any]:
        return self._values(self._picture.step_values, kind, self.step)

    def turn_values(self, kind: str) -> Mapping[str, Any]:
        return self._values(self._picture.turn_values, kind, None)

    def _values(self, placed: list[_Placed], kind: str, step: int | None) -> Mapping[str, Any]:
        return {
            each.seen.id: each.value
            for each in placed
            if each.seen.kind == kind
            and self.turn is not None
            and each.seen.location.turn == self.turn
            and step in (None, each.seen.location.step)
        }

    def other(self, kind: str, id: str) -> Any:
        seen = self._picture.contexts.get((kind, id))
        return None if seen is None else seen.state

    def unstarted(self, kind: str, id: str) -> tuple[Match, ...]:
        seen = self._picture.contexts.get((kind, id))
        return seen.matches if seen and seen.start is None else ()

    def has(self, kind: str, id: str) -> bool:
        seen = self._picture.contexts.get((kind, id))
        return seen is not None and seen.start is not None

    def turn_status_of(self, kind: str, id: str) -> Status | None:
        seen = self._picture.contexts.get((kind, id))
        if seen is None or seen.location.turn is None:
            return None
        return self._picture.status(Location(seen.location.turn, None))
