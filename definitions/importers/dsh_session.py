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

from definitions.importers.dsh_calls import CALLS
from definitions.importers.dsh_chunks import CHUNKS
from definitions.importers.dsh_log import Log, Operation, Record, kept
from definitions.importers.dsh_messages import MESSAGES
from definitions.importers.dsh_records import RECORDS
from definitions.importers.errors import ImportFault
from definitions.importers.halves import mended
from definitions.importers.reading import read
from definitions.quiet import QUIET_TYPES

__all__ = ["QUIET_TYPES", "dsh_session"]

_HANDLERS = {**RECORDS, **MESSAGES, **CALLS, **CHUNKS}


def dsh_session(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session log into the operations of a recording, the header first. O(size).

    `name` is what an error and the title call the log. What cannot be read raises `ImportFault`;
    the operations before it were yielded, so write nothing before the last one is there.
    """
    records = map(Record.of, read(lines, name))
    first = next(records, None)
    if first is None or first.type != "session":
        got = ... if first is None else first.type
        line = 1 if first is None else first.envelope.line
        raise ImportFault(name, line, "type", '"session", which begins a session log', got)
    yield {
        "recording": 1,
        "title": name.rsplit("/", 1)[-1],
        "about": "Imported from a session log of DeepSeek Harness.",
    }
    log = Log()
    for record in chain([first], records):
        log.count(record)
        for operation in _HANDLERS.get(record.type, kept)(log, record):
            yield mended(operation) if record.halves else operation
    yield from log.settle_finished()
