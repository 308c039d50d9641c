"""Sessions of GitHub Copilot's command line, made into recordings: an event a line.

Here lives which event goes to which conversation: the main one, or that of a subagent, whose events
name the call that started it (`parentToolCallId`); its calls stand in the main one as well, as
children of that call. What an event says in one conversation is in `copilot_events`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assembler.plugins import Importer, Sample
from definitions.importers.chat_lines import Names, Record, rest
from definitions.importers.copilot_events import Chat, calls_of, result_of
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation
from definitions.providers.reading import mapping, text

__all__ = ["COPILOT", "copilot"]

_ENDS = {"subagent.completed": "completed", "subagent.failed": "error"}


def copilot(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. O(size)."""
    session, names = _Session(), Names()
    yield session.main.transcript.header(name, "Imported from a session of GitHub Copilot.")
    for number, record in values(lines, name):
        told = mapping(record)
        session.turn_to(names.of(told, number), milliseconds(told.get("timestamp")))
        yield from session.take(told or {"value": record})
    yield from session.rest()


class _Session:
    """One file: its conversations, and whose an event is."""

    def __init__(self) -> None:
        self.main = Chat()
        self._beside: dict[str, Chat] = {}
        self._place: tuple[str, int | None] = ("", None)

    def turn_to(self, name: str, time: int | None) -> None:
        """Turn to the next record, in every conversation that it may belong to."""
        self._place = name, time
        self.main.place = self._place

    def take(self, record: Record) -> Iterator[Operation]:
        kind, data = text(record.get("type")), mapping(record.get("data"))
        parent = text(data.get("parentToolCallId"))
        if not parent:
            yield from self.main.take(kind, record, data)
            yield from self._end(kind, text(data.get("toolCallId")))
            return
        chat = self._beside.get(parent)
        if chat is None:
            call_id = self.main.transcript.known(parent)
            chat = self._beside[parent] = Chat(call_id)
            yield chat.transcript.header(call_id, f"What the subagent of {call_id} said.")
        chat.place = self._place
        yield from chat.take(kind, record, data)
        yield from self._child(parent, kind, data)

    def _child(self, parent: str, kind: str, data: Record) -> Iterator[Operation]:
        """Say a call of a subagent in the main conversation, as a child of its own call."""
        transcript = self.main.transcript
        self.main.turn_to_record(".child")
        if kind == "assistant.message":
            for call in calls_of(data, self._place[0]):
                if call["call_id"] != parent:
                    told = call["call_id"], call["name"], call["arguments"]
                    more = rest(call, "type", "call_id", "name", "arguments")
                    yield from transcript.call(*told, parent=parent, more=more)
        elif kind == "tool.execution_complete" and text(data.get("toolCallId")) != parent:
            yield result_of(transcript, data)

    def _end(self, kind: str, call_id: str) -> Iterator[Operation]:
        """End the turn of a subagent that is through."""
        chat = self._beside.get(call_id)
        if chat is not None and kind in _ENDS:
            chat.place = self._place
            yield from chat.flush()
            chat.turn_to_record()
            yield from chat.transcript.end_turn(_ENDS[kind])

    def rest(self) -> Iterator[Operation]:
        """Say what the end of the file leaves."""
        for chat in (self.main, *self._beside.values()):
            for operation in chat.flush():
                yield {**operation, "tail": "unfinished"}
            yield chat.transcript.finish()


def _recognises(sample: Sample) -> bool:
    """Whether a file begins with events in an envelope, one of them in Copilot's own words."""
    return any(
        text(record.get("type")).startswith(("session.", "assistant.", "user.message", "tool.exec"))
        and {"data", "id", "timestamp", "parentId"} <= record.keys()
        and isinstance(record["data"], dict)
        for record in sample.records
    )


COPILOT = Importer("sessions of GitHub Copilot's command line", copilot, _recognises)
