"""Sessions of DeepSeek Harness as a client receives them, made into recordings.

Here live the two envelopes (notifications of JSON-RPC, and `stream-json`), and which session an
event belongs to: the first one is the main conversation, that of a subagent is one beside it, named
by its session. Not here: what an event says, which is the same in a session log (`dsh_session`).

What the envelopes say besides is kept, but for whether a session is at work. Events that were
received before are not said again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from attrs import define

from assembler.plugins import Importer, Sample
from definitions.importers.dsh_log import Log, Operation, Record
from definitions.importers.dsh_session import said
from definitions.importers.halves import mended
from definitions.importers.reading import Fields, Line, read, written
from definitions.providers.reading import text

__all__ = ["DSH_STREAM", "dsh_stream"]

_ABOUT = "Imported from what a client of DeepSeek Harness received."
_EVENTS = frozenset({"session.event", "session_event"})
_AT_WORK = {"running": True, "idle": False}


def dsh_stream(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn what a client received into the operations of recordings, the header first. O(size)."""
    client = _Client(name)
    for line in read(written(lines), name):
        yield from client.take(line)
    yield from client.rest()


@define
class _Conversation:
    """One session, as far as it was received."""

    log: Log
    name: str | None = None
    live: bool | None = None

    def told(self, operations: Iterable[Operation]) -> Iterator[Operation]:
        """Say whose operations these are."""
        for operation in operations:
            yield operation if self.name is None else {**operation, "conversation": self.name}


class _Client:
    """Everything that one client received."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._sessions: dict[str, list[_Conversation]] = {}
        """By the id of the session; several where it is another's as well, as in neutral data."""
        self._spoke: dict[str, _Conversation] = {}
        self._starting: set[str] = set()
        """Sessions of subagents that have started and said nothing yet."""

    def take(self, line: Line) -> Iterator[Operation]:
        if "method" in line.fields.values:
            kind, told = line.fields.text("method"), line.fields.inner("params")
        else:
            kind, told = line.fields.text("type"), line.fields
        if kind in _EVENTS:
            record = Record.of(Line(told.inner("event"), line.text))
            yield from self._event(mended(told.text("sessionId")), record)
        else:
            yield from self._aside(kind, told)

    def _event(self, session: str, record: Record) -> Iterator[Operation]:
        number = record.envelope.values.get("seq", record.envelope.values.get("seq0"))
        conversation = self._waiting(session, number)
        if conversation is None:
            conversation = _Conversation(Log(), self._new_name(session))
            self._sessions.setdefault(session, []).append(conversation)
            self._starting.discard(session)
            yield from self._header(conversation)
        self._spoke[session] = conversation
        if type(number) is int and number <= conversation.log.number:
            return
        yield from conversation.told(said(conversation.log, record))

    def _waiting(self, session: str, number: object) -> _Conversation | None:
        """The conversation whose next event this is; None: a new one begins."""
        known = self._sessions.get(session, [])
        for conversation in reversed(known):
            if conversation.log.number + 1 == number:
                return conversation
        begins = number == 0 and session in self._starting
        return None if begins or not known else self._spoke[session]

    def _new_name(self, session: str) -> str | None:
        if not self._sessions:
            return None
        count = len(self._sessions.get(session, []))
        return f"{session}#{count + 1}" if count else session

    def _header(self, conversation: _Conversation) -> Iterator[Operation]:
        title = (conversation.name or self._name).rsplit("/", 1)[-1]
        yield from conversation.told([{"recording": 1, "title": title, "about": _ABOUT}])

    def _aside(self, kind: str, told: Fields) -> Iterator[Operation]:
        """Say what is no event of a session, in the conversation that it speaks of."""
        session = told.values.get("parentSessionId", told.values.get("sessionId"))
        session = mended(text(session))
        child = mended(text(told.values.get("childSessionId")))
        if kind == "subagent.started" and child:
            self._starting.add(child)
        conversation = self._spoke.get(session) or next(iter(self._spoke.values()), None)
        if conversation is None:
            conversation = _Conversation(Log())
            self._sessions[session] = [conversation]
            self._spoke[session] = conversation
            yield from self._header(conversation)
        status = text(told.values.get("status"))
        if kind == "session.status" and status in _AT_WORK:
            conversation.live = _AT_WORK[status]
            yield from conversation.told([{"op": "liveness", "live": conversation.live}])
        else:
            yield from conversation.told(
                [conversation.log.aside(f"dsh-stream/{mended(kind)}", mended(told.values))]
            )

    def rest(self) -> Iterator[Operation]:
        """Say what the end of the file leaves: nobody is at work."""
        if not self._sessions:
            yield from self._header(_Conversation(Log()))
        for conversation in chain(*self._sessions.values()):
            yield from conversation.told(conversation.log.settle_finished())
            yield from conversation.told([{"op": "liveness", "live": False}])


def _recognises(sample: Sample) -> bool:
    """Whether a file begins with events of a session in one of the two envelopes."""
    for record in sample.records:
        kind = text(record.get("method", record.get("type")))
        told = record.get("params", record)
        if kind in _EVENTS and isinstance(told, dict) and isinstance(told.get("event"), dict):
            return "sessionId" in told
    return False


DSH_STREAM = Importer("what clients of DeepSeek Harness receive", dsh_stream, _recognises)
