"""Session logs of DeepSeek Harness, made into recordings.

Here lives the importer itself: the header, and which function says which type of record. What the
two dialects of that log say in our words is in `dsh_records`, `dsh_messages`, `dsh_calls` and
`dsh_chunks`, over what `dsh_log` keeps and `dsh_values` spells. Not here: opening files, and what
an operation does.

Durable records become events in file order, chunks become deltas of attempts behind the last
event, and the end of a stream becomes a `settle`. What is not ours to name is kept: a type without
a counterpart keeps its name and its data unchanged (those that are not worth a row in a chat are
`QUIET_TYPES`). Nothing is added that the log does not say: a stream without a message stays a
stream. A subagent's log is a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from assembler.plugins import Importer, Sample
from definitions.importers.dsh_calls import CALLS
from definitions.importers.dsh_chunks import CHUNKS
from definitions.importers.dsh_log import Log, Operation, Record, kept
from definitions.importers.dsh_messages import MESSAGES
from definitions.importers.dsh_records import RECORDS
from definitions.importers.errors import ImportFault
from definitions.importers.halves import mended
from definitions.importers.reading import Fields, read, written
from definitions.quiet import QUIET_TYPES

__all__ = ["DSH_SESSION", "QUIET_TYPES", "dsh_session", "said"]

_HANDLERS = {**RECORDS, **MESSAGES, **CALLS, **CHUNKS}


def dsh_session(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session log into the operations of a recording, the header first. O(size).

    `name` is what an error and the title call the log. What cannot be read raises `ImportFault`;
    the operations before it were yielded, so write nothing before the last one is there.
    """
    found = read(written(lines), name)
    first = next(found, None)
    if first is None or first.fields.values.get("type") != "session":
        raise _no_log(name, None if first is None else first.fields)
    yield {
        "recording": 1,
        "title": name.rsplit("/", 1)[-1],
        "about": "Imported from a session log of DeepSeek Harness.",
    }
    log = Log()
    for record in map(Record.of, chain([first], found)):
        yield from said(log, record)
    yield from log.settle_finished()


def said(log: Log, record: Record) -> Iterator[Operation]:
    """Say the next record of a log, whichever way it came."""
    log.count(record)
    for operation in _HANDLERS.get(record.type, kept)(log, record):
        yield mended(operation) if record.halves else operation


def _no_log(name: str, first: Fields | None) -> ImportFault:
    """The fault of a file whose first line begins no session log."""
    expected = '"session", which begins a session log'
    if first is None:
        return ImportFault(name, 1, "type", expected)
    if "type" not in first.values:
        # Not even a record: whatever the file is, it is another thing.
        expected += "; the file is no dsh-session log"
    return first.fault("type", expected)


def _recognises(sample: Sample) -> bool:
    """Whether a file begins as a session log: with the session, made at a time in numbers."""
    first = sample.records[0] if sample.records else {}
    return first.get("type") == "session" and "createdAt" in first


DSH_SESSION = Importer("session logs of DeepSeek Harness", dsh_session, _recognises)
