"""The backend operations of recordings: what a chat backend does, without a loop and without I/O.

A model call begins, its chunks go through an adapter, it ends or is given up, its calls are
dispatched and have results. Here lives what these lines do to a recording's run and what is
expected of it (`calls`, `prepared`). Not here: the rules of ending (`answering`), reading streams
(`providers`), which fields the lines have (`operations`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from assembler.engine.definition import Anomaly
from assembler.engine.errors import InputError
from assembler.engine.events import Outcome, json_kind, position
from assembler.engine.values import same
from definitions.answering import (
    CallIdsInUse,
    Ending,
    GivenUp,
    call_draft,
    ended,
    given_up,
    result_draft,
)
from definitions.providers import ADAPTERS, Adapter, Call, adapter

__all__ = ["EXPECTATIONS", "LACKS", "RUNNERS", "given_up_in"]

_CONVERSATION = "recording"
"""Ids are minted under it: a recording is one conversation, and any two runs of it are the same."""

_MARK_DIGITS_MAX = 9

_REASONS: Mapping[str, GivenUp] = {
    "retry": "retry",
    "fallback": "fallback",
    "cancel": "cancel",
    "error": "error",
}


class _Attempt:
    """A model call that goes on."""

    def __init__(self, fields: Mapping[str, Any], reads: Adapter) -> None:
        self.name: str = fields["attempt"]
        self.number: int = fields.get("number", 1)
        self.turn: int = fields["turn"]
        self.step: int = fields["step"]
        self.adapter = reads
        self.chunks = 0
        self.has_lost = False
        """A later try of its step has begun."""
        self.prepared: dict[str, int] = {}

    def loses_to(self, other: _Attempt) -> bool:
        """Whether the other one is a later try of the same step: a side stream competes with none.

        What is given up so may still speak; nobody hears it.
        """
        same_step = (self.turn, self.step) == (other.turn, other.step)
        return same_step and 0 < self.number < other.number

    def feed(self, run: Any, in_use: CallIdsInUse, given: object) -> None:
        """Give a chunk to the adapter and what comes out of it to the Assembler."""
        self.chunks += 1
        for piece in self.adapter.feed(given):
            if piece.type == "tool-call":
                call_id = piece.data["call_id"]
                in_use.claim(self.name, call_id)
                if piece.data.get("name"):
                    self.prepared.setdefault(call_id, self.chunks)
            envelope = {
                "attempt": self.name,
                "number": self.number,
                "turn": self.turn,
                "step": self.step,
            }
            run.emit({**envelope, "type": piece.type, "data": piece.data})


class _Taken(NamedTuple):
    """A call that was handed over, and where it was made."""

    call: Call
    turn: int
    step: int


class _Backend:
    """What a run remembers between two lines. One for each run."""

    def __init__(self) -> None:
        self.live: dict[str, _Attempt] = {}
        self.given_up: set[str] = set()
        """Attempts whose calls nobody hands over any more."""
        self.in_use = CallIdsInUse()
        self.names: set[str] = set()
        self.handed_over: dict[str, _Taken] = {}
        self.calls: tuple[Call, ...] = ()
        self.prepared: dict[str, int] = {}
        self.marks: dict[str, str] = {}
        self.minted: list[str] = []

    def named(self, call_id: str) -> str:
        """Read the id of a call. `@1` is what an expectation found it to be, else the first id
        that was minted: where nobody looks at expectations, a recording runs as well."""
        if call_id in self.marks or not _is_mark(call_id):
            return self.marks.get(call_id, call_id)
        number = int(call_id[1:])
        return self.minted[number - 1] if 0 < number <= len(self.minted) else call_id

    def attempt(self, name: str) -> _Attempt:
        """Give a model call that goes on."""
        found = self.live.get(name)
        if found is None:
            msg = f"attempt: expected one that began and did not end, got {name!r}"
            raise InputError(msg)
        return found


def _backend(run: Any) -> _Backend:
    backend: _Backend = run.memory.setdefault("backend", _Backend())
    return backend


def given_up_in(run: Any) -> frozenset[str]:
    """Give the attempts of a run that ended without handing over their calls."""
    return frozenset(_backend(run).given_up)


def _is_mark(call_id: str) -> bool:
    number = call_id[1:]
    is_number = number.isascii() and number.isdecimal() and len(number) <= _MARK_DIGITS_MAX
    return call_id[:1] == "@" and is_number


# What the lines do


def _attempt(run: Any, fields: Mapping[str, Any]) -> None:
    backend = _backend(run)
    name = fields["attempt"]
    if name in backend.names or name in run.attempts:
        msg = f"attempt: expected a new name, got {name!r} once more"
        raise InputError(msg)
    for event in run.facts().events:
        backend.in_use.learn(event)
    reads = adapter(
        fields["provider"],
        conversation=_CONVERSATION,
        attempt=name,
        in_use=backend.in_use.outside(name),
    )
    backend.names.add(name)
    backend.live[name] = begun = _Attempt(fields, reads)
    for other in backend.live.values():
        if other.loses_to(begun):
            other.has_lost = True
            backend.given_up.add(other.name)
            backend.in_use.give_up(other.name)


def _chunk(run: Any, fields: Mapping[str, Any]) -> None:
    backend = _backend(run)
    attempt = backend.attempt(fields["attempt"])
    given = [read(fields[name]) for name, read in _GIVEN.items() if name in fields]
    if len(given) != 1:
        msg = f"data: expected exactly one of {', '.join(_GIVEN)}, got {len(given)} of them"
        raise InputError(msg)
    attempt.feed(run, backend.in_use, given[0])


def _bytes(value: str) -> bytes:
    try:
        return bytes.fromhex(value)
    except ValueError:
        msg = f"hex: expected pairs of hexadecimal digits, got {value[:80]!r}"
        raise InputError(msg) from None


def _decoded(value: Any) -> object:
    """Read a chunk as JSON, or several; a text is one of a stream, and nothing says nothing."""
    for each in value if isinstance(value, (list, tuple)) else (value,):
        if not (each is None or isinstance(each, (str, Mapping))):
            msg = f"data: expected a chunk, an object, got {json_kind(each)}"
            raise InputError(msg)
    return value


_GIVEN: Mapping[str, Callable[[Any], object]] = {
    "data": _decoded,
    "sse": lambda value: value,
    "hex": _bytes,
}


def _finish(run: Any, fields: Mapping[str, Any]) -> None:
    """A response that is whole comes too late where its attempt was given up meanwhile."""
    attempt = _backend(run).attempt(fields["attempt"])
    response, turn, step = attempt.adapter.finish(), attempt.turn, attempt.step
    too_late = attempt.has_lost
    _end(
        run,
        attempt,
        given_up(response, "retry", turn, step) if too_late else ended(response, turn, step),
    )


def _abandon(run: Any, fields: Mapping[str, Any]) -> None:
    attempt = _backend(run).attempt(fields["attempt"])
    reason = _REASONS.get(fields["reason"])
    if reason is None:
        msg = f"reason: expected one of {', '.join(_REASONS)}, got {fields['reason']!r}"
        raise InputError(msg)
    response = attempt.adapter.finish()
    _end(run, attempt, given_up(response, reason, attempt.turn, attempt.step))


def _end(run: Any, attempt: _Attempt, ending: Ending) -> None:
    backend = _backend(run)
    for draft in ending.drafts:
        run.append({"type": draft.type, "data": draft.data})
    run.settle(attempt.name, ending.outcome)
    for incident in ending.incidents:
        odd = Anomaly(incident.kind, f"tool:{incident.call_id}", position(run.last, 0))
        run.assembler.anomalies.incident(odd)
    for call in ending.handed_over:
        backend.handed_over[call.call_id] = _Taken(call, attempt.turn, attempt.step)
    if ending.outcome is not Outcome.COMPLETED or ending.why is not None:
        backend.given_up.add(attempt.name)
    if ending.outcome is Outcome.COMPLETED:
        named = [(call.call_id, call.provider_call_id) for call in ending.calls]
        backend.minted += [ours for ours, theirs in named if ours != theirs]
    else:
        backend.in_use.give_up(attempt.name)
    del backend.live[attempt.name]
    backend.calls, backend.prepared = ending.calls, attempt.prepared


def _dispatch(run: Any, fields: Mapping[str, Any]) -> None:
    backend = _backend(run)
    call_id = backend.named(fields["call_id"])
    taken = backend.handed_over.pop(call_id, None)
    if taken is None:
        msg = f"call_id: expected a call that was handed over and not dispatched, got {call_id!r}"
        raise InputError(msg)
    draft = call_draft(*taken)
    run.append({"type": draft.type, "data": draft.data})


def _result(run: Any, fields: Mapping[str, Any]) -> None:
    call_id = _backend(run).named(fields["call_id"])
    is_error = fields.get("is_error", False)
    draft = result_draft(call_id, fields.get("content") or (), is_error=is_error)
    run.append({"type": draft.type, "data": draft.data})


def _reconnect(run: Any, fields: Mapping[str, Any]) -> None:
    run.reconnect(fields["page"])


RUNNERS: Mapping[str, Callable[[Any, Mapping[str, Any]], None]] = {
    "attempt": _attempt,
    "chunk": _chunk,
    "finish": _finish,
    "abandon": _abandon,
    "dispatch": _dispatch,
    "result": _result,
    "reconnect": _reconnect,
}

LACKS: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "attempt": lambda fields: fields["provider"] not in ADAPTERS,
}


# What is expected

_Differences = list[tuple[str, Any, Any]]


def _calls(run: Any, value: Any) -> _Differences:
    """The calls of the attempt that ended last, in the order of its message."""
    backend = _backend(run)
    got = [call.to_json() for call in backend.calls]
    wanted = list(value)
    for at, (pattern, call) in enumerate(zip(value, got, strict=False)):
        if isinstance(pattern, Mapping) and "call_id" in pattern:
            marked = _marked(backend, pattern["call_id"], call["call_id"])
            wanted[at] = {**pattern, "call_id": marked}
    differences: _Differences = run.missing_from(got, wanted)
    return differences


def _marked(backend: _Backend, wanted: Any, got: object) -> Any:
    """Read `@1`: an id that is not empty and new, and from then on that id."""
    if not (isinstance(wanted, str) and _is_mark(wanted)):
        return wanted
    if wanted not in backend.marks and got and isinstance(got, str):
        if got in backend.marks.values():
            return f"{wanted}: another id"
        backend.marks[wanted] = got
    return backend.marks.get(wanted, wanted)


def _prepared(run: Any, value: Mapping[str, Any]) -> _Differences:
    """At which chunk each call's id and name were known; null: never before the end."""
    backend = _backend(run)
    differences: _Differences = []
    for call_id, wanted in value.items():
        got = backend.prepared.get(backend.named(call_id))
        if not same(wanted, got):
            differences.append((call_id, wanted, got))
    return differences


EXPECTATIONS: Mapping[str, Callable[[Any, Any], _Differences]] = {
    "calls": _calls,
    "prepared": _prepared,
}
