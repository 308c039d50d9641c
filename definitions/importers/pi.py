"""Sessions of the coding agent pi, made into recordings: a record a line, most of them messages.

Sessions are trees: a record that does not stand behind the one before it goes back to another, and
says so; both ways stay. How messages are spelled is in `pi_messages`.

Events are named by lines, not by the records' own ids: pi gives ids to the records of an old
session when it opens it again, and writes it anew, line by line. Not here: how transcripts are
written in general (`transcript`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assembler.plugins import Importer, Sample
from definitions.importers.pi_messages import ROLES, Record, custom, without
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, text_block
from definitions.providers.reading import mapping, text

__all__ = ["PI", "pi"]


def pi(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. O(size)."""
    transcript = Transcript()
    yield transcript.header(name, "Imported from a session of pi.")
    last = ""
    for number, record in values(lines, name):
        told = mapping(record)
        transcript.at(str(number), milliseconds(told.get("timestamp")))
        if last and told.get("parentId", last) != last:
            yield from _rewind(transcript, number, told)
        if "parentId" in told:
            last = text(told.get("id"))
        write = _TYPES.get(text(told.get("type")))
        if write is None or not isinstance(record, dict):
            yield from _keep(transcript, record)
        else:
            yield from write(transcript, told, number)
    yield transcript.finish()


def _keep(transcript: Transcript, record: object) -> Iterator[Operation]:
    told = record if isinstance(record, dict) else {"value": record}
    yield transcript.kept(f"pi/{text(told.get('type')) or 'odd'}", told)


def _rewind(transcript: Transcript, number: int, record: Record) -> Iterator[Operation]:
    """Say that what follows stands behind an earlier record."""
    yield from transcript.end_turn("cancelled")
    told = {"command_id": f"rewind-{number}"}
    run = {**told, "name": "rewind", "to": record.get("parentId")}
    yield transcript.event("command/run", run)
    yield transcript.event("command/done", told)


def _message(transcript: Transcript, record: Record, number: int) -> Iterator[Operation]:
    message = mapping(record.get("message"))
    write = ROLES.get(text(message.get("role")))
    if write is None:
        yield from _keep(transcript, record)
    else:
        yield from write(transcript, message, number)


def _compaction(transcript: Transcript, record: Record, number: int) -> Iterator[Operation]:
    compaction = {"compaction_id": f"compaction-{number}"}
    rest = without(record, "summary", "type")
    yield transcript.event("compaction/start", {**rest, **compaction})
    summary = {**compaction, "text": text(record.get("summary"))}
    yield transcript.event("compaction/summary", summary)
    yield transcript.event("compaction/end", compaction)


def _branch(transcript: Transcript, record: Record, _number: int) -> Iterator[Operation]:
    """Write what the model is told of a way that was left."""
    more = without(record, "summary", "type")
    said = [text_block(text(record.get("summary")))]
    yield transcript.message(said, source={"kind": "branch-summary"}, more=more)


def _info(transcript: Transcript, record: Record, _number: int) -> Iterator[Operation]:
    title = text(record.get("name"))
    if title:
        yield transcript.event("conversation/title", {"title": title})
    else:
        yield from _keep(transcript, record)


_TYPES = {
    "message": _message,
    "compaction": _compaction,
    "branch_summary": _branch,
    "custom_message": custom,
    "session_info": _info,
}


def _recognises(sample: Sample) -> bool:
    """Whether a file begins with a session and its model, or with messages as pi writes them."""
    for record in sample.records:
        message = mapping(record.get("message"))
        if record.get("type") == "session" and "cwd" in record and "timestamp" in record:
            return True
        if record.get("type") == "message" and "stopReason" in message and "api" in message:
            return True
    return False


PI = Importer("sessions of pi", pi, _recognises)
