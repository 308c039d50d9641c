"""What is kept of a session log while it is read, because later records refer to it.

Here live numbers, names, queues and attempts, and the frames of the operations that are made: each
event has the next seq, each delta its attempt. Not here: what any type of record says.

Numbers: the log counts its records, chunks included, from 0; ours count events alone, from 1.
Times: a record may have one; else the clock stands still between what the log does say, which is
when the session was made and how far apart packed chunks came. A log that says neither has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, TypeAlias

from attrs import Factory, define, evolve, frozen

from definitions.importers.dsh_values import Place, named, outcome_of, with_rest
from definitions.importers.halves import may_hold_halves, mended, without_open_half
from definitions.importers.reading import Data, Fields, Line

__all__ = ["Attempt", "Call", "Log", "Operation", "Record", "kept"]

Operation: TypeAlias = dict[str, Any]

# What stands beside the data of a record and is read from there.
_ENVELOPE = ("type", "data", "seq", "time", "seq0", "time0", "surfaceOp", "sourceEventSeqs")


@frozen
class Record:
    """One line of the log."""

    type: str
    data: Fields
    envelope: Fields
    halves: bool  # may hold half a surrogate pair

    @classmethod
    def of(cls, line: Line) -> Record:
        envelope, kind = line.fields, line.fields.text("type")
        if kind == "session":  # the only one whose fields stand beside its type
            data = evolve(envelope, values=envelope.rest("type"))
        elif "data" in envelope.values:
            data = envelope.inner("data")
        else:
            data = evolve(envelope, values={}, path="data.")
        return cls(kind, data, envelope, may_hold_halves(line.text))


@define
class Attempt:
    """One stream of a step."""

    name: str
    number: int
    place: Place
    finish: str | None = None
    settled: bool = False
    usage: Data = Factory(dict)
    names: Data = Factory(dict)  # call id -> the name told last
    halves: dict[int, str] = Factory(dict)  # block -> the half character at its end

    def outcome(self) -> str:
        return outcome_of(self.finish)

    def whole(self, block: int, text: str) -> str:
        """Keep the half character at the end of a fragment back for the next one."""
        whole, half = without_open_half(self.halves.pop(block, "") + text)
        if half:
            self.halves[block] = half
        return str(mended(whole))


@frozen
class Call:
    """What a call was made with, and in which step."""

    place: Place | None
    name: str
    arguments: str


@define
class Log:
    """What later records refer to."""

    seq: int = 0
    now: int | None = None
    number: int = -1  # of the record at hand, as the log counts
    beside: Data = Factory(dict)  # what that record has beside its data
    numbers: dict[int, int] = Factory(dict)  # number in the log -> seq
    attempts: dict[Place, Attempt] = Factory(dict)
    tries: dict[Place, int] = Factory(dict)
    calls: dict[str, Call] = Factory(dict)
    asked: dict[str, str] = Factory(dict)  # request id -> call id
    commands: dict[str, str] = Factory(dict)
    queues: dict[str, list[str]] = Factory(lambda: defaultdict(list))
    arriving: dict[str, list[str]] = Factory(lambda: defaultdict(list))
    used: dict[str, int] = Factory(dict)  # message id -> how often

    def count(self, record: Record) -> None:
        """Turn to the next record: its number, its time and what it has beside its data."""
        if record.type == "session":  # has no number, and its fields beside its type
            made = record.data.values.get("createdAt")
        else:
            values = record.envelope.values
            self.beside = record.envelope.rest(*_ENVELOPE)
            told = values.get("seq", values.get("seq0"))
            self.number = told if type(told) is int else self.number + 1
            made = values.get("time", values.get("time0"))
        if type(made) is int and made > 0:  # 0: the time was taken out
            self.now = made

    def event(self, kind: str, told: Data, rest: Data | None = None) -> Operation:
        """Append an event: what we call by our names, and the rest of the source beside it."""
        self.seq += 1
        self.numbers[self.number] = self.seq
        data = with_rest(told, {**self.beside, **(rest or {})})
        event = {"seq": self.seq, "type": kind, **self._time(), "data": data}
        return {"op": "append", "event": event}

    def aside(self, kind: str, data: Data) -> Operation:
        """Append an event of what is no record of the log, so the log does not count it."""
        self.seq += 1
        event = {"seq": self.seq, "type": kind, **self._time(), "data": data}
        return {"op": "append", "event": event}

    def delta(self, attempt: Attempt, kind: str, told: Data, rest: Data) -> Operation:
        turn, step = attempt.place
        where = {"attempt": attempt.name, "number": attempt.number, "turn": turn, "step": step}
        data = with_rest(told, rest)
        return {"op": "delta", **where, **self._time(), "type": kind, "data": data}

    def _time(self) -> dict[str, int]:
        return {} if self.now is None else {"time": self.now}

    def settle(self, attempt: Attempt, outcome: str) -> Iterator[Operation]:
        if not attempt.settled:
            attempt.settled = True
            yield {"op": "settle", "attempt": attempt.name, "outcome": outcome}

    def settle_finished(self) -> Iterator[Operation]:
        """Settle, at the end of the log, what ended; the rest may still be running."""
        for attempt in self.attempts.values():
            if attempt.finish is not None:
                yield from self.settle(attempt, attempt.outcome())

    def close(self, before: Place) -> Iterator[Operation]:
        """Settle and forget what belongs to the steps before that one."""
        for place in [place for place in self.attempts if place < before]:
            attempt = self.attempts.pop(place)
            yield from self.settle(attempt, attempt.outcome())

    def begin(self, place: Place) -> Attempt:
        """Count the next attempt of a step."""
        number = self.tries[place] = self.tries.get(place, 0) + 1
        turn, step = place
        return Attempt(f"{turn}.{step}.{number}", number, place)

    def streaming(self, place: Place) -> Iterator[Operation]:
        """Have an attempt that still takes chunks: one that finished is followed by another."""
        attempt = self.attempts.get(place)
        if attempt is None or attempt.finish is not None or attempt.settled:
            if attempt is not None:
                yield from self.settle(attempt, attempt.outcome())
            self.attempts[place] = self.begin(place)

    def message_id(self, told: Any) -> dict[str, str]:
        """Name a message uniquely: an older log has no ids, a neutralised one repeats them."""
        known = isinstance(told, str) and told
        return named(self._unique(told if known else f"message-{self.seq + 1}"), told)

    def _unique(self, told: str) -> str:
        count = self.used[told] = self.used.get(told, 0) + 1
        return told if count == 1 else f"{told}#{count}"

    def arrives(self, told: str) -> str:
        """Name a message that goes to a queue: the same again when it only changes its place."""
        waiting = {name for queue in self.queues.values() for name in queue}
        for mine in self.arriving[told]:
            if mine not in waiting:
                return mine
        self.arriving[told].append(self._unique(told))
        return self.arriving[told][-1]

    def arrived(self, told: Any) -> dict[str, str]:
        """Name the message of a user: what it was called in its queue, if it was in one."""
        if isinstance(told, str) and self.arriving.get(told):
            return named(self.arriving[told].pop(0), told)
        return self.message_id(told)

    def seqs(self, numbers: list[int]) -> list[int] | None:
        """Translate numbers of the log, or None when one of them is no event here."""
        found = [self.numbers[number] for number in numbers if number in self.numbers]
        return found if len(found) == len(numbers) else None

    def translated(self, holder: Fields, key: str, ours: str) -> Data:
        """Say references to records in our numbers; what cannot be found stays as it was told."""
        if key not in holder.values:
            return {}
        seqs = self.seqs(holder.integers(key))
        return {key: holder.values[key]} if seqs is None else {ours: seqs}


def kept(log: Log, record: Record) -> Iterator[Operation]:
    """Say a record that has no counterpart: it keeps its name and its data."""
    yield log.event(record.type, record.data.values)
