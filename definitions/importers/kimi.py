"""Sessions of Kimi Code, made into recordings: the wire of an agent, and the state beside it.

The wire tells a step part by part, what came of its calls among them, and at its end what it cost:
it is written when it ends, and what stood in it behind its answer. A record that only says a
prompt once more is left out. The state holds no conversation: it says what to call one. What a
step says is in `kimi_steps`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.chat_lines import Block, Record, blocks_of, rest
from definitions.importers.kimi_steps import Step, approval, result
from definitions.importers.reading import document, values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import mapping, text

__all__ = ["KIMI", "kimi"]

_ABOUT = "Imported from a session of Kimi Code."
_ENDS = {"completed": "completed", "cancelled": "cancelled", "failed": "error", "error": "error"}
_LAST = {"end_turn": "completed", "length": "limit"}
"""Answers behind which the model is not asked again, and how the turn ends."""
_CUTS = frozenset({"turn.prompt", "turn.cancel", "turn.ended"})
"""What ends a step that has not said its end."""


def kimi(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one file into the operations of a recording, the header first.

    O(size); memory: the records of the step at hand.
    """
    found = iter(lines)
    first = next(found, b"")
    # A document in several lines begins with a bracket alone; a wire has a record a line.
    if first.strip() in (b"{", "{"):
        yield from _state(document(chain([first], found), name), name)
        return
    wire = _Wire()
    yield wire.transcript.header(name, _ABOUT)
    for number, record in values(chain([first], found), name):
        told = mapping(record)
        if _is_state(told):
            yield from _said(wire.transcript, told)
        else:
            yield from wire.take(number, told or {"value": record})
    for operation in wire.flush():
        yield {**operation, "tail": "unfinished"}
    yield wire.transcript.finish()


def _state(told: Any, name: str) -> Iterator[Operation]:
    transcript = Transcript()
    yield transcript.header(name, _ABOUT)
    yield from _said(transcript, mapping(told) or {"value": told})
    yield transcript.finish()


def _said(transcript: Transcript, state: Record) -> Iterator[Operation]:
    transcript.at("state", milliseconds(state.get("updatedAt")))
    yield transcript.kept("kimi/state", state)
    if title := text(state.get("title")):
        yield transcript.event("conversation/title", {"title": title})


class _Wire:
    """One wire: the step at hand, and prompts that come once more."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._step: Step | None = None
        self._prompts: list[tuple[list[Block], str]] = []
        """Prompts that the context will say, with the id of those that wait in the queue."""
        self._compaction = ""
        self._number = 0

    def take(self, number: int, record: Record) -> Iterator[Operation]:
        kind = text(record.get("type"))
        event = mapping(record.get("event"))
        told = text(event.get("type")) if kind == "context.append_loop_event" else ""
        if kind in _CUTS or told == "step.begin":
            yield from self.flush()
        if told == "step.begin":
            self._step = Step(number, event)
        elif self._step is None:
            yield from self._write(number, record)
        elif told == "step.end":
            yield from self._end(number, record, event)
        elif not self._step.hears(number, record, told, event):
            self._step.held.append((number, record))

    def flush(self) -> Iterator[Operation]:
        """Write a step that has not said its end."""
        step, self._step = self._step, None
        if step is not None:
            yield from step.write(self.transcript, {})
            yield from self._held(step)

    def _end(self, number: int, record: Record, event: Record) -> Iterator[Operation]:
        step, self._step = self._step, None
        if step is None:
            return
        stop = (yield from step.write(self.transcript, event)) or ""
        yield from self._held(step)
        self._at(number, record)
        yield from self.transcript.end_step()
        if stop in _LAST:
            yield from self.transcript.end_turn(_LAST[stop])

    def _held(self, step: Step) -> Iterator[Operation]:
        for number, record in step.held:
            yield from self._write(number, record)

    def _write(self, number: int, record: Record) -> Iterator[Operation]:
        self._at(number, record)
        kind = text(record.get("type"))
        event = mapping(record.get("event"))
        write = _TYPES.get(kind)
        if write is not None:
            yield from write(self, record)
        elif event.get("type") == "tool.result":
            yield result(self.transcript, event)
        else:
            told = text(event.get("type")) or kind or "odd"
            yield self.transcript.kept(f"kimi/{told}", record)

    def _at(self, number: int, record: Record) -> None:
        self._number = number
        self.transcript.at(str(number), milliseconds(record.get("time", record.get("created_at"))))

    # -- prompts -----------------------------------------------------------------------------

    def prompt(self, record: Record) -> Iterator[Operation]:
        blocks = blocks_of(record.get("input"), "kimi")
        source = _source(record)
        self._prompts = [each for each in self._prompts if each[1]] + [(blocks, "")]
        yield from self.transcript.end_turn("interrupted")  # else it would have said its end
        yield from self.transcript.user(blocks, source=source)

    def steer(self, record: Record) -> Iterator[Operation]:
        """Write what a person says while the model works: it waits until the context takes it."""
        blocks, name = blocks_of(record.get("input"), "kimi"), f"steer-{self._number}"
        self._prompts.append((blocks, name))
        told = {"message_id": name, "content": blocks}
        queue = {"queue": "next-step", "added": [name], "claimed": [], "messages": [told]}
        yield self.transcript.event("inbox/spliced", queue)

    def message(self, record: Record) -> Iterator[Operation]:
        """Write a message of the context, if it is not what a prompt has said."""
        message = mapping(record.get("message"))
        blocks, role = blocks_of(message.get("content"), "kimi"), text(message.get("role"))
        source = _source(message)
        at = next((at for at, each in enumerate(self._prompts) if each[0] == blocks), None)
        if at is not None:
            _, name = self._prompts.pop(at)
            if name:
                queue = {"queue": "next-step", "added": [], "claimed": [name]}
                yield self.transcript.event("inbox/spliced", queue)
                yield self.transcript.message(blocks, message_id=name, source=source)
        elif role == "user" and source is None and not self.transcript.is_in_turn:
            yield from self.transcript.user(blocks)
        elif role == "user":
            yield self.transcript.message(blocks, source=source)
        else:
            yield self.transcript.kept(f"kimi/message-{role or 'odd'}", record)

    # -- how it went -------------------------------------------------------------------------

    def cancel(self, record: Record) -> Iterator[Operation]:
        yield from self.transcript.end_turn("cancelled")
        if more := rest(record, "type", "time", "agentId"):
            yield self.transcript.kept("kimi/turn.cancel", more)

    def ended(self, record: Record) -> Iterator[Operation]:
        yield self.transcript.kept("kimi/turn.ended", record)
        # The number of a turn counts from 0, ours from 1.
        turn = record.get("turnId", self.transcript.turn - 1)
        if turn == self.transcript.turn - 1:
            yield from self.transcript.end_turn(_ENDS.get(text(record.get("reason")), "completed"))

    def approved(self, record: Record) -> Iterator[Operation]:
        yield from approval(self.transcript, record, self._number)

    def compacting(self, record: Record) -> Iterator[Operation]:
        self._compaction = f"compaction-{self._number}"
        told = {**rest(record, "type", "time"), "compaction_id": self._compaction}
        yield self.transcript.event("compaction/start", told)

    def summary(self, record: Record) -> Iterator[Operation]:
        if not self._compaction:
            yield from self.compacting({})
        told = {"compaction_id": self._compaction, "text": text(record.get("summary"))}
        more = rest(record, "type", "time", "summary")
        yield self.transcript.event("compaction/summary", {**more, **told})

    def compacted(self, record: Record) -> Iterator[Operation]:
        if self._compaction:
            told = {**rest(record, "type", "time"), "compaction_id": self._compaction}
            yield self.transcript.event("compaction/end", told)
            self._compaction = ""


_TYPES: Mapping[str, Callable[[_Wire, Record], Iterator[Operation]]] = {
    "turn.prompt": _Wire.prompt,
    "turn.steer": _Wire.steer,
    "turn.cancel": _Wire.cancel,
    "turn.ended": _Wire.ended,
    "context.append_message": _Wire.message,
    "permission.record_approval_result": _Wire.approved,
    "full_compaction.begin": _Wire.compacting,
    "context.apply_compaction": _Wire.summary,
    "full_compaction.complete": _Wire.compacted,
    "full_compaction.cancel": _Wire.compacted,
}


def _source(holder: Record) -> Block | None:
    """Say who sent it, when no person did."""
    origin = mapping(holder.get("origin"))
    return None if origin.get("kind") in (None, "user") else dict(origin)


def _is_state(record: Record) -> bool:
    return {"isCustomTitle", "agents", "workDir"} <= record.keys()


def _recognises(sample: Sample) -> bool:
    """Whether a file is a state, or begins with what a wire says of itself."""
    first = sample.records[0] if sample.records else {}
    named = {"type", "protocol_version", "created_at"} <= first.keys()
    return (named and first["type"] == "metadata") or _is_state(first)


KIMI = Importer("sessions of Kimi Code: wires and states", kimi, _recognises)
