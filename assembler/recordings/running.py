"""Plays a recording to an Assembler, operation by operation, a flush behind each.

Here live `Run` and the engine's operations. Not here: what an expectation means (`expecting`),
the other ways to arrive at the same conversation (`arriving`), and which recordings hold
(`checking`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from assembler.engine.assembler import Assembler
from assembler.engine.definition import Definition, GroupDefinition, Node
from assembler.engine.errors import (
    AssemblerError,
    ConflictError,
    GapError,
    InputError,
    RecordingError,
)
from assembler.engine.events import Delta, Event, Outcome, as_delta, as_event
from assembler.engine.patches import Patch
from assembler.plugins import Operations, operations
from assembler.recordings.arriving import Facts
from assembler.recordings.format import Fields, Operation, Place, Recording, time_of, unexpected
from assembler.recordings.matching import missing_from

__all__ = ["Run", "missing_needs", "views_of"]

Definitions = Iterable[Definition | GroupDefinition]

_USUAL = "chat"
"""The view that a recording speaks of when it names none."""


def views_of(definitions: Definitions) -> tuple[str, ...]:
    """The views that there are: the usual one, then the others that `definitions` show on."""
    targets = {each.target for each in definitions if each.target is not None}
    return (_USUAL, *sorted(targets - {_USUAL}))


def missing_needs(
    recording: Recording, *, expectations: bool = True, plugged: Operations | None = None
) -> tuple[Operation, str] | None:
    """The first line that cannot run here, and the words for what all of them need; None: all can.

    Without `expectations` only what changes something is looked at.
    """
    plugged = operations() if plugged is None else plugged
    lacking = plugged.fields.keys() - plugged.runners
    unasked = plugged.expects.keys() - plugged.expectations if expectations else frozenset()
    first: Operation | None = None
    words: dict[str, None] = {}
    for operation in recording.operations:
        fields = operation.fields
        if expectations and fields["op"] == "raises":
            fields = fields["of"]
        names = fields if fields["op"] == "expect" else [fields["op"]]
        for name in names:
            lacks = plugged.lacks.get(name)
            if name in lacking or name in unasked or (lacks is not None and lacks(fields)):
                first = first or operation
                words[plugged.needs.get(name, name)] = None
    return None if first is None else (first, " and ".join(words))


class Run:
    """A recording on its way through an Assembler.

    `assembler` is where it has come to, `patches` what its last flush gave. `views` are those it
    shows, the first of them what expectations speak of; all there are when left out. `memory` is
    for plugged-in operations, which may keep there what they need between two lines.
    """

    def __init__(
        self,
        recording: Recording,
        definitions: Definitions,
        *,
        views: Iterable[str] | None = None,
        plugged: Operations | None = None,
    ) -> None:
        self.recording = recording
        self.definitions = list(definitions)
        self.views = views_of(self.definitions) if views is None else tuple(views)
        self.plugged = operations() if plugged is None else plugged
        self.assembler = Assembler(self.definitions, views=self.views)
        self.patches: Mapping[str, Patch] = {}
        self.memory: dict[str, Any] = {}
        self.anomalies_seen = 0
        self.live: bool | None = None
        self.time: int | None = None
        """When the newest item happened, as its own `time` says."""
        self.attempts: dict[str, int] = {}
        """The attempts that have spoken, each with the ordinal that comes next."""
        self.last = 0
        """The last durable seq; 0 when there is none."""
        self._events: dict[int, Event] = {}
        self._oldest: tuple[int, bool] | None = None
        self._index = 0

    def do(self, operation: Operation) -> None:
        """One operation and a flush; not for `expect` and `converges`.

        What the engine refuses is a `RecordingError` with the line: the recording is wrong.
        """
        try:
            self.apply(operation.fields)
        except AssemblerError as fault:
            place = self.recording.source, operation.line
            raise _refused(operation.fields, fault, place) from fault

    def apply(self, fields: Fields) -> None:
        """The fields of an operation, and a flush; raises what the engine raises."""
        name = fields["op"]
        runner = _RUNNERS.get(name) or self.plugged.runners[name]
        runner(self, fields)
        self.flush()

    def flush(self) -> None:
        """Keeps what the flush gives as `patches`, and shows it to those that watch."""
        self.patches = self.assembler.flush()
        for watch in self.plugged.watches.values():
            watch(self)

    # What operations do, plugged-in ones too

    def load(self, events: Iterable[Fields], *, has_more: bool) -> None:
        """A complete window; each event's `time` may be left out."""
        page = [self._event(event) for event in events]
        self.assembler.load(page, has_more=has_more)
        self._learn(page)

    def prepend(self, events: Iterable[Fields], *, has_more: bool) -> None:
        """The page before the window; each event's `time` may be left out."""
        page = [self._event(event) for event in events]
        self.assembler.prepend(page, has_more=has_more)
        self._learn(page)

    def append(self, event: Fields) -> Event:
        """The next durable event; `seq` and `time` may be left out."""
        taken = self._event(event)
        self.assembler.append(taken)
        self._learn([taken])
        return taken

    def emit(self, fields: Fields) -> Delta:
        """The next delta; what may be left out counts on from the last one."""
        attempt = fields["attempt"]
        after = fields.get("after", self.last)
        index = fields.get("index", self._index + 1)
        delta = as_delta(
            {
                "ordinal": self.attempts.get(attempt, 0),
                "after": after,
                "index": index,
                "time": time_of(after) + min(index, 999),
                **{name: value for name, value in fields.items() if name != "op"},
            }
        )
        self.assembler.emit(delta)
        self.time = delta.time
        self.attempts[attempt] = max(self.attempts.get(attempt, 0), delta.ordinal + 1)
        self._index = max(self._index, delta.index)
        return delta

    def settle(self, attempt: str, outcome: Outcome) -> None:
        """An attempt ended."""
        self.assembler.settle(attempt, outcome)

    def set_liveness(self, *, live: bool | None) -> None:
        """Whether anybody still works on the conversation; None: not known."""
        self.assembler.liveness(live)
        self.live = live

    def give_up(self) -> bool:
        """Gives up all that is held, as when nobody is there any more; whether there was any."""
        if not self.held:
            return False
        for attempt in self.attempts:
            self.settle(attempt, Outcome.INTERRUPTED)
        self.flush()
        return True

    def reconnect(self, page: int) -> None:
        """A new Assembler, as of a reader who comes back: the newest page, then what is held.

        What is odd in what it reads again is no news.
        """
        if page < 1:
            raise InputError(f"page: expected at least 1, got {page}")
        facts, held = self.facts(), self.assembler.deltas
        newest = facts.events[-page:]
        self.assembler = Assembler(self.definitions, views=self.views)
        self.assembler.liveness(self.live)
        has_more = facts.has_more or len(newest) < len(facts.events)
        self.assembler.load(newest, has_more=has_more)
        for delta in held:
            self.assembler.emit(delta)
        self.flush()
        self.anomalies_seen = self.assembler.anomalies.total

    # What is asked about it

    @property
    def held(self) -> int:
        """How many deltas are held."""
        return int(self.assembler.statistics()["deltas"])

    def node(self, key: str) -> Node | None:
        """A visible Node of the first view, or None."""
        try:
            return self.assembler.view(self.views[0])[key]
        except KeyError:
            return None

    def missing_from(self, value: Any, pattern: Any) -> list[tuple[str, Any, Any]]:
        """Where `value` does not hold what `pattern` asks for: for expectations of others."""
        found = missing_from(value, pattern)
        return [(difference.path, difference.expected, difference.got) for difference in found]

    def facts(self) -> Facts:
        """The durable events so far, back to the first hole; and the last word of liveness."""
        first = end = max(self._events, default=0) + 1
        while first - 1 in self._events:
            first -= 1
        events = tuple(self._events[seq] for seq in range(first, end))
        has_more = self._oldest[1] if self._oldest and self._oldest[0] == first else first > 1
        return Facts(events, has_more, self.live)

    def _event(self, fields: Fields) -> Event:
        seq = fields.get("seq", self.last + 1)
        time = fields.get("time", time_of(seq) if type(seq) is int else 0)
        return as_event({**fields, "seq": seq, "time": time})

    def _learn(self, page: list[Event]) -> None:
        """Keeps what has become a fact: a part that the engine left aside is none."""
        window = self.assembler.window
        if window.first is None or window.last is None:
            return
        self.last = window.last
        if page:
            self.time = page[-1].time
        if self._oldest is None or window.first <= self._oldest[0]:
            self._oldest = window.first, window.has_more
        for event in page:
            if window.first <= event.seq <= window.last:
                self._events[event.seq] = event


def _refused(fields: Fields, fault: AssemblerError, place: Place) -> RecordingError:
    """What the engine refused, in the words of the file: the field, expected and got."""
    name = fields["op"]
    if isinstance(fault, GapError):
        if name == "append":
            got = f"{fault.last + 1}: {fault}"
            return unexpected(place, "event.seq", str(fault.first), got)
        return unexpected(place, "events", "all events without a hole", f"one: {fault}")
    if isinstance(fault, ConflictError):
        got = f"something else: {fault}"
        return unexpected(place, name, "what agrees with the lines before", got)
    return RecordingError(f"{place[0]}:{place[1]}: {name}.{fault}")


_RUNNERS: Mapping[str, Callable[[Run, Fields], object]] = {
    "load": lambda run, fields: run.load(fields["events"], has_more=fields.get("has_more", False)),
    "append": lambda run, fields: run.append(fields["event"]),
    "prepend": lambda run, fields: run.prepend(fields["events"], has_more=fields["has_more"]),
    "evict": lambda run, fields: run.assembler.evict(fields["before"]),
    "delta": lambda run, fields: run.emit(fields),
    "settle": lambda run, fields: run.settle(fields["attempt"], Outcome(fields["outcome"])),
    "liveness": lambda run, fields: run.set_liveness(live=fields["live"]),
}
