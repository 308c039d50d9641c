"""Time travel: a recording played once, and from then on every moment of it looked up.

Moment 0 is before the first operation, moment `k` behind the `k`-th. What a moment showed is what
the engine showed then, Node for Node: it is kept, not made again (`shown`). Here live the one pass
and what is said of each moment. Not here: HTTP (`routes`), what is behind a Node (`behind`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from assembler.engine.definition import Anomaly, Definition, GroupDefinition
from assembler.engine.errors import AssemblerError, InputError, LimitError, RecordingError
from assembler.engine.events import Event, Item, Outcome
from assembler.engine.patches import Patch, Snapshot
from assembler.plugins import operations
from assembler.recordings import Operation, Recording, Run
from assembler.recordings.expecting import is_expectation
from assembler.recordings.matching import short
from assembler.server.inspecting.facts import FactsTrack, News
from assembler.server.inspecting.shown import ShownTrack

__all__ = [
    "ANOMALY",
    "FAULT",
    "MOMENTS_MAX",
    "WITHDRAWN",
    "Moment",
    "StoppedError",
    "Travel",
    "recording_of",
]

MOMENTS_MAX = 50_000
"""So many operations are travelled at most."""

ANOMALY, WITHDRAWN, FAULT = "anomaly", "withdrawn", "fault"
"""Marks that need no knowledge of the business: something odd was entered, an attempt that was
not completed went, the operation was refused (nothing comes behind it)."""

_TEXT_MAX = 100


class StoppedError(AssemblerError):
    """A pass was given up before its end."""


Definitions = Iterable[Definition | GroupDefinition]


class Moment(Struct, frozen=True):
    """What happened between the moment before and this one.

    `op` is the operation, `type` that of the event or delta it brought (of several, the first);
    `time` that of the newest item so far, in milliseconds, None before the first.
    """

    op: str
    type: str = ""
    text: str = ""
    time: int | None = None
    marks: tuple[str, ...] = ()


class _Travelling(Run):
    """A Run that tells of every flush, and remembers how attempts ended."""

    def __init__(self, recording: Recording, known: Definitions, told: Any) -> None:
        self._told = told
        self.completed: set[str] = set()
        super().__init__(recording, known, plugged=replace(operations(), watches={}))

    def flush(self) -> None:
        super().flush()
        self._told(self)

    def settle(self, attempt: str, outcome: Outcome) -> None:
        super().settle(attempt, outcome)
        if outcome is Outcome.COMPLETED:
            self.completed.add(attempt)
        else:
            self.completed.discard(attempt)


class Travel:
    """A recording at every moment. Made in one pass, O(what its operations cost).

    `marks` says which event types are worth a mark, and which. What the engine refuses is the last
    moment, marked `fault`. `LimitError` for more than `moments_max` operations. `given_up` is asked
    before each operation; once it says so, `StoppedError`. Immutable once made, so that any number
    of threads may read it.
    """

    def __init__(
        self,
        recording: Recording,
        definitions: Definitions,
        marks: Mapping[str, str] | None = None,
        *,
        moments_max: int = MOMENTS_MAX,
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        self._given_up = given_up
        self._todo = [each for each in recording.operations if not is_expectation(each)]
        if len(self._todo) > moments_max:
            raise LimitError(
                f"{recording.name}: expected at most moments_max = {moments_max} operations, "
                f"got {len(self._todo)}"
            )
        self.recording = recording
        self.definitions = list(definitions)
        self.facts = FactsTrack()
        self.anomalies: list[tuple[int, Anomaly]] = []
        """Every anomaly that was entered, with its moment."""
        self.moments: list[Moment] = [Moment("begin")]
        self._marks = marks or {}
        self._odd = 0
        self._flushed: list[News] = []
        self._run = _Travelling(recording, self.definitions, self._flush)
        self.shown = {view: ShownTrack(view) for view in self._run.views}
        self._play()

    @property
    def views(self) -> tuple[str, ...]:
        return tuple(self.shown)

    @property
    def last(self) -> int:
        """The newest moment."""
        return len(self.moments) - 1

    def snapshot(self, moment: int, view: str) -> Snapshot:
        """What a view showed; its revision is the moment. O(n log n), and no Node is made."""
        return self._view(view).snapshot(self._known(moment))

    def patch(self, before: int, after: int, view: str) -> Patch:
        """What leads a view from one moment to another, forwards or backwards."""
        return self._view(view).patch(self._known(before), self._known(after))

    def _known(self, moment: int) -> int:
        if not 0 <= moment <= self.last:
            raise InputError(f"moment: expected 0 to {self.last}, got {moment}")
        return moment

    def _view(self, view: str) -> ShownTrack:
        if view not in self.shown:
            raise InputError(f"view: expected one of {', '.join(self.shown)}, got {view}")
        return self.shown[view]

    # -- the pass ------------------------------------------------------------------------

    def _play(self) -> None:
        for operation in self._todo:
            if self._given_up():
                raise StoppedError("nobody waits for it any more")
            self._flushed = []
            try:
                self._run.do(operation)
            except RecordingError as fault:
                # What an operation did before it was refused is shown, and is of this moment.
                self._run.flush()
                moment = self._moment(operation)
                text, marks = str(fault), (*moment.marks, FAULT)
                self.moments.append(replace(moment, text=text, marks=marks))
                break
            self.moments.append(self._moment(operation))
        del self._run, self._todo, self._flushed, self._given_up

    def _flush(self, run: _Travelling) -> None:
        moment, assembler = len(self.moments), run.assembler
        self._flushed.append(self.facts.take(moment, assembler))
        for name, shown in self.shown.items():
            shown.take(moment, assembler.view(name), run.patches.get(name))
        log = assembler.anomalies
        if log.total < self._odd:  # another Assembler, which begins to count anew
            self._odd = 0
        news = log.total - self._odd
        if news:
            self.anomalies += [(moment, odd) for odd in list(log)[-news:]]
            self._odd = log.total

    def _moment(self, operation: Operation) -> Moment:
        news = self._flushed
        events = [event for each in news for event in each.events]
        items: list[Item] = [*events, *(delta for each in news for delta in each.deltas)]
        gone = [name for each in news for name in each.gone]
        lost = [name for name in gone if name not in self._run.completed]
        type_, text = (items[0].type, _short(items[0].data)) if items else ("", _said(operation))
        if len(items) > 1:
            text = f"{len(items)} at once: {text}"
        if lost:
            text = f"{', '.join(lost)} withdrawn; {text}"
        marks = [*self._named(events), *([WITHDRAWN] if lost else [])]
        if self.anomalies and self.anomalies[-1][0] == len(self.moments):
            marks.append(ANOMALY)
        return Moment(operation.name, type_, text, self._run.time, tuple(dict.fromkeys(marks)))

    def _named(self, events: Sequence[Event]) -> list[str]:
        return [self._marks[event.type] for event in events if event.type in self._marks]


def recording_of(source: str, events: Iterable[Event]) -> Recording:
    """Stored events as a recording that appends them one by one."""
    operations_ = []
    for number, event in enumerate(events, 2):
        fields = {
            name: getattr(event, name) for name in ("seq", "type", "time", "data", "v") if name
        }
        if event.id is not None:
            fields["id"] = event.id
        operations_.append(Operation(number, "append", {"op": "append", "event": fields}))
    return Recording(source, {"recording": 1, "title": source}, tuple(operations_))


def _short(value: Any) -> str:
    said = short(value)
    return said if len(said) <= _TEXT_MAX else f"{said[: _TEXT_MAX - 1]}…"


def _said(operation: Operation) -> str:
    """What an operation that brought nothing says of itself."""
    rest = {name: value for name, value in operation.fields.items() if name != "op"}
    return _short(rest) if rest else ""
