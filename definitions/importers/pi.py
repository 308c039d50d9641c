"""Sessions of the coding agent pi, made into recordings: a record a line, most of them messages.

Sessions are trees: a record that does not stand behind the one before it goes back to another, and
says so; both ways stay. How messages are spelled is in `pi_messages`.

Events are named by lines, not by the records' own ids: pi gives ids to the records of an old
session when it opens it again, and writes it anew, line by line. Not here: how transcripts are
written in general (`transcript`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from assembler.plugins import Importer, Sample
from definitions.importers.pi_messages import ROLES, Record, custom, without
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, text_block
from definitions.providers.reading import mapping, text

__all__ = ["PI", "Writer", "is_openclaw", "pi", "session"]

Writer: TypeAlias = Callable[[Transcript, Record, int], Iterator[Operation]]
"""Writes the record of a line."""


def pi(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. O(size)."""
    yield from session("pi", "Imported from a session of pi.", lines, name)


def session(
    agent: str,
    about: str,
    lines: Iterable[bytes | str],
    name: str,
    other: Writer | None = None,
) -> Iterator[Operation]:
    """Do the same for an `agent` that keeps its sessions as pi does.

    `other` writes the records that are none of pi's; without it they are kept. The sessions of an
    agent that has such records are no trees: its records name parents that are no records.
    """
    transcript = Transcript()
    yield transcript.header(name, about)
    last = ""
    for number, record in values(lines, name):
        told = mapping(record)
        transcript.at(str(number), milliseconds(told.get("timestamp")))
        if other is None and last and told.get("parentId", last) != last:
            yield from _rewind(transcript, number, told)
        if "parentId" in told:
            last = text(told.get("id"))
        write = _writer(told) or other
        if write is None or not isinstance(record, dict):
            kept = told or {"value": record}
            yield transcript.kept(f"{agent}/{text(told.get('type')) or 'odd'}", kept)
        else:
            yield from write(transcript, told, number)
    yield transcript.finish()


def _writer(record: Record) -> Writer | None:
    """Give what writes a record, None for one without a counterpart."""
    kind = text(record.get("type"))
    if kind == "message":
        known = text(mapping(record.get("message")).get("role")) in ROLES
        return _message if known else None
    if kind == "session_info" and not text(record.get("name")):
        return None
    return _TYPES.get(kind)


def _rewind(transcript: Transcript, number: int, record: Record) -> Iterator[Operation]:
    """Say that what follows stands behind an earlier record."""
    yield from transcript.end_turn("cancelled")
    told = {"command_id": f"rewind-{number}"}
    run = {**told, "name": "rewind", "to": record.get("parentId")}
    yield transcript.event("command/run", run)
    yield transcript.event("command/done", told)


def _message(transcript: Transcript, record: Record, number: int) -> Iterator[Operation]:
    message = mapping(record.get("message"))
    yield from ROLES[text(message.get("role"))](transcript, message, number)


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
    yield transcript.event("conversation/title", {"title": text(record.get("name"))})


_TYPES = {
    "compaction": _compaction,
    "branch_summary": _branch,
    "custom_message": custom,
    "session_info": _info,
}


def is_openclaw(sample: Sample) -> bool:
    """Whether a file that looks like pi's says that OpenClaw wrote it.

    Its sessions are pi's, so only what it writes by itself tells them: its name in a record, in the
    type of a record of its own, or as the provider of an answer that no model gave.
    """
    for record in sample.records:
        named = text(record.get("agent")), text(mapping(record.get("message")).get("provider"))
        custom = text(record.get("customType"))
        begins = text(record.get("id")) if record.get("type") == "session" else ""
        if not (begins or "parentId" in record):
            continue
        if "openclaw" in named or custom.startswith("openclaw") or begins.startswith("openclaw"):
            return True
    return False


def _recognises(sample: Sample) -> bool:
    """Whether a file begins with a session and its model, or with messages as pi writes them."""
    if is_openclaw(sample):
        return False
    for record in sample.records:
        message = mapping(record.get("message"))
        if record.get("type") == "session" and "cwd" in record and "timestamp" in record:
            return True
        if record.get("type") == "message" and "stopReason" in message and "api" in message:
            return True
    return False


PI = Importer("sessions of pi", pi, _recognises)
