"""What an agent's adapter gives, made into the operations of recordings.

Here lives how its pieces become events with a number, a time and an id, deltas and settlements, in
the conversation that they are of; and what the end of a file says. Not here: any format.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from assembler.codec import plain
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.agent import Agent, AgentDelta, AgentEvent, AgentPiece

__all__ = ["AgentTranscript"]

_NAMES = {
    "assistant/message": "message_id",
    "user/message": "message_id",
    "tool/call": "call_id",
    "tool/result": "call_id",
}
"""Events that may wait for the end of a file, and what names them, whatever brings them out."""
_UNFINISHED = frozenset({"tool/call", "tool/result", "compaction/summary", "compaction/end"})
"""Of what the end of a file brings out, what may go on otherwise in a longer one."""
_DELTA = ("attempt", "number", "turn", "step", "type")


class AgentTranscript:
    """Writes the conversations of one session of an agent, the main one named `conversation` where
    it is not that of the file. Memory: ids."""

    def __init__(self, agent: Agent, conversation: str | None = None) -> None:
        self.agent = agent
        self._about = ""
        self._at: Callable[[Transcript], None] = _nowhere
        self._main = conversation
        self._transcripts = {conversation: Transcript(conversation)}
        self._named: set[tuple[str | None, str]] = set()

    def header(self, title: str, about: str) -> Operation:
        """Say the first line of the recording."""
        self._about = about
        return self._transcripts[self._main].header(title, about)

    def at(self, record: str, time: int | None = None) -> None:
        """Turn to the next record: its unique name in the file, and when it was written."""
        self._at = lambda transcript: transcript.at(record, time)
        for transcript in self._transcripts.values():
            self._at(transcript)

    def feed(self, message: object) -> Iterator[Operation]:
        """Write what the agent says in a message."""
        yield from self._write(self.agent.feed(message))

    def finish(self) -> Iterator[Operation]:
        """Write what waited for more, and that nobody is there any more."""
        self.at("end")
        for operation in self._write(self.agent.finish()):
            is_header = "recording" in operation
            yield operation if is_header else {**operation, "tail": _tail_of(operation)}
        for transcript in self._transcripts.values():
            yield transcript.finish()

    def _write(self, pieces: Iterable[AgentPiece]) -> Iterator[Operation]:
        for piece in pieces:
            beside = piece.conversation or self._main
            if beside not in self._transcripts:
                transcript = self._transcripts[beside] = Transcript(beside)
                self._at(transcript)
                yield transcript.header(str(beside), self._about)
            named = {} if beside is None else {"conversation": beside}
            if isinstance(piece, AgentEvent):
                yield self._event(piece, beside)
            elif isinstance(piece, AgentDelta):
                told = {name: getattr(piece, name) for name in _DELTA}
                yield {"op": "delta", **told, "data": plain(piece.data), **named}
            else:
                settled = {"attempt": piece.attempt, "outcome": piece.outcome.value}
                yield {"op": "settle", **settled, **named}

    def _event(self, piece: AgentEvent, beside: str | None) -> Operation:
        operation = self._transcripts[beside].event(piece.type, plain(piece.data))
        if piece.type in _NAMES:
            event = operation["event"]
            name = f"{piece.type}/{event['data'][_NAMES[piece.type]]}"
            if (beside, name) not in self._named:
                self._named.add((beside, name))
                event["id"] = name
        return operation


def _tail_of(operation: Mapping[str, Any]) -> str:
    """Say whether what the end of a file brings out stays what it is when the file goes on."""
    event = operation.get("event", {})
    content = event.get("data", {}).get("content", ())
    calls = event.get("type") == "assistant/message" and any(
        block.get("type") == "tool-call" for block in content
    )
    return "unfinished" if calls or event.get("type") in _UNFINISHED else "read"


def _nowhere(transcript: Transcript) -> None:
    """No record was turned to yet."""
