"""Transcripts of Cursor's agent, made into recordings: a message a line, without ids or times.

A call has no id, so a result is that of the first call of the answer that still waits. A subagent
has a file of its own, which nothing names. Not here: how messages are spelled (`chat_lines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.chat_lines import Calls, blocks_of, prompt, rest, results_of
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import mapping, text

__all__ = ["CURSOR", "cursor"]

_QUERY = "user_query"
"""The tags that Cursor puts around what a person typed."""


def cursor(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one transcript into the operations of a recording, the header first. O(size)."""
    transcript, calls = Transcript(), Calls()
    yield transcript.header(name, "Imported from a transcript of Cursor.")
    for number, record in values(lines, name):
        told = mapping(record)
        transcript.at(str(number), milliseconds(told.get("timestamp")))
        yield from _message(transcript, calls, record, f"call-{number}")
    yield transcript.finish()


def _message(transcript: Transcript, calls: Calls, record: Any, minted: str) -> Iterator[Operation]:
    told = mapping(record)
    content = mapping(told.get("message")).get("content")
    role = text(told.get("role"))
    more = rest(told, "role", "message", "timestamp")
    blocks = blocks_of(content, "cursor", minted)
    if role == "assistant":
        calls.wait(blocks)
        yield from transcript.answer(blocks, more=more)
    elif role == "user":
        for result in results_of(content, "cursor"):
            call_id = calls.of(result.call_id)
            yield transcript.result(call_id, result.content, is_error=result.is_error)
        if blocks:
            yield from prompt(transcript, blocks, wrapper=_QUERY, more=more)
    else:
        kept = told or {"value": record}
        yield transcript.kept(f"cursor/{text(told.get('type')) or role or 'odd'}", kept)


def _recognises(sample: Sample) -> bool:
    """Whether a file begins with messages in an envelope that says their role and nothing else."""
    first = sample.records[0] if sample.records else {}
    content = mapping(first.get("message")).get("content")
    bare = first.keys() <= {"role", "message", "timestamp"}
    return bare and first.get("role") in ("user", "assistant") and isinstance(content, list)


CURSOR = Importer("transcripts of Cursor's agent", cursor, _recognises)
