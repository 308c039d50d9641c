"""Transcripts of Antigravity, made into recordings: a step a line, of a person, a model or a tool.

The model plans (`PLANNER_RESPONSE`); what a tool did is a step of its own, named after what it did,
which says no call: it is the result of the first call of the plan that still waits, or else a call
by itself. Not here: how messages are spelled (`chat_lines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assembler.plugins import Importer, Sample
from definitions.importers.chat_lines import Block, Calls, Record, blocks_of, call_of, prompt, rest
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import array, mapping, text

__all__ = ["ANTIGRAVITY", "antigravity"]

_REQUEST = "USER_REQUEST"
"""The tags that Antigravity puts around what a person typed."""
_SAID = ("step_index", "source", "type", "status", "created_at", "content")
_ERRORS = frozenset({"ERROR", "FAILED", "CANCELED", "CANCELLED"})


def antigravity(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one transcript into the operations of a recording, the header first. O(size)."""
    transcript, calls = Transcript(), Calls()
    yield transcript.header(name, "Imported from a transcript of Antigravity.")
    for number, record in values(lines, name):
        told = mapping(record)
        transcript.at(str(number), milliseconds(told.get("created_at")))
        yield from _step(transcript, calls, told or {"value": record}, f"call-{number}")
    yield transcript.finish()


def _step(transcript: Transcript, calls: Calls, record: Record, minted: str) -> Iterator[Operation]:
    kind, source = text(record.get("type")), text(record.get("source"))
    blocks = blocks_of(record.get("content"), "antigravity")
    if kind == "USER_INPUT":
        more = rest(record, *_SAID)
        yield from prompt(transcript, blocks, wrapper=_REQUEST, more=more)
    elif kind == "PLANNER_RESPONSE":
        plan = [*_thought(record), *blocks, *_calls(record, minted)]
        calls.wait(plan)
        stop = "error" if text(record.get("status")) in _ERRORS else None
        more = rest(record, *_SAID, "thinking", "tool_calls")
        yield from transcript.answer(plan, stop_reason=stop, more=more)
    elif kind and source == "MODEL":
        yield from _did(transcript, calls, record, minted)
    elif blocks and source:
        more = rest(record, *_SAID) | {"step_type": kind}
        yield transcript.message(blocks, source={"kind": source.lower()}, more=more)
    else:
        yield transcript.kept(f"antigravity/{kind or 'odd'}", record)


def _thought(record: Record) -> list[Block]:
    said = text(record.get("thinking"))
    return [{"type": "reasoning", "text": said}] if said else []


def _calls(record: Record, minted: str) -> list[Block]:
    told = enumerate(array(record.get("tool_calls")))
    return [call_of(mapping(call), f"{minted}.{at}") for at, call in told]


def _did(transcript: Transcript, calls: Calls, record: Record, minted: str) -> Iterator[Operation]:
    """Write what a tool did."""
    call_id = calls.of()
    if not call_id:
        call_id = minted
        yield from transcript.call(call_id, text(record.get("type")).lower(), "{}")
    meta = rest(record, "source", "created_at", "content")
    content = blocks_of(record.get("content"), "antigravity")
    is_error = text(record.get("status")) in _ERRORS
    yield transcript.result(call_id, content, is_error=is_error, more={"meta": meta})


def _recognises(sample: Sample) -> bool:
    """Whether a file begins with numbered steps that say where they come from."""
    first = sample.records[0] if sample.records else {}
    return {"step_index", "source", "type", "status"} <= first.keys()


ANTIGRAVITY = Importer("transcripts of Antigravity", antigravity, _recognises)
