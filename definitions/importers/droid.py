"""Sessions of Factory's Droid, made into recordings: as it keeps them, and as it prints them.

Its store has messages with blocks; its `stream-json` has a record for each message, call and
result, and at the end the final text once more. Not here: how messages are spelled (`chat_lines`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from assembler.plugins import Importer, Sample
from definitions.importers.chat_lines import (
    Names,
    Record,
    blocks_of,
    failed,
    prompt,
    rest,
    results_of,
    usage_of,
)
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import mapping, text

__all__ = ["DROID", "droid"]

_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}


def droid(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. O(size)."""
    session, names = _Session(), Names()
    yield session.transcript.header(name, "Imported from a session of Droid.")
    for number, record in values(lines, name):
        told = mapping(record)
        session.transcript.at(names.of(told, number), milliseconds(told.get("timestamp")))
        session.number = number
        write = _TYPES.get(text(told.get("type")), _Session.kept)
        yield from write(session, told or {"value": record})
    yield session.transcript.finish()


class _Session:
    """One file. `number` is the line of the record at hand."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self.number = 0
        self._said = ""
        """What the last answer said, which the end of a stream says once more."""
        self._is_answered = True
        """Whether a result came since the step began: the next call is another answer's."""

    def kept(self, record: Record) -> Iterator[Operation]:
        kind = text(record.get("subtype")) or text(record.get("type")) or "odd"
        yield self.transcript.kept(f"droid/{kind}", record)

    def start(self, record: Record) -> Iterator[Operation]:
        yield from self.kept(record)
        title = text(record.get("sessionTitle")) or text(record.get("title"))
        if title:
            yield self.transcript.event("conversation/title", {"title": title})

    # -- messages ----------------------------------------------------------------------------

    def message(self, record: Record) -> Iterator[Operation]:
        # The store has the message inside, the stream has its fields in the record.
        said = mapping(record.get("message")) or record
        content = said.get("content", said.get("text"))
        blocks = blocks_of(content, "droid", f"call-{self.number}")
        message_id = text(record.get("id")) or None
        more = rest(record, "type", "id", "timestamp", "message", "role", "text", "content")
        role = text(said.get("role"))
        if role == "assistant":
            self._said = "".join(each["text"] for each in blocks if each["type"] == "text")
            self._is_answered = False
            yield from self.transcript.answer(blocks, message_id=message_id, more=more)
        elif role == "user":
            for result in results_of(content, "droid"):
                failed_call = result.is_error
                yield self.transcript.result(result.call_id, result.content, is_error=failed_call)
            if blocks:
                self._said = ""
                yield from prompt(self.transcript, blocks, message_id=message_id, more=more)
        elif role:
            yield self.transcript.message(blocks, message_id=message_id, source={"kind": role})
        else:
            yield from self.kept(record)

    # -- the stream --------------------------------------------------------------------------

    def call(self, record: Record) -> Iterator[Operation]:
        if self._is_answered and self.transcript.is_in_step:
            yield from self.transcript.begin_step()
        self._is_answered, self._said = False, ""
        name = text(record.get("toolName")) or text(record.get("toolId"))
        arguments = arguments_text(record.get("parameters"))
        call_id = text(record.get("id")) or f"call-{self.number}"
        yield from self.transcript.call(call_id, name, arguments)

    def result(self, record: Record) -> Iterator[Operation]:
        self._is_answered = True
        value = record.get("value", mapping(record.get("error")).get("message"))
        known = isinstance(value, (str, list)) or value is None
        content = blocks_of(value, "droid") if known else [{"type": "json", "value": value}]
        call_id = text(record.get("id"))
        yield self.transcript.result(call_id, content, is_error=record.get("isError") is True)

    def completion(self, record: Record) -> Iterator[Operation]:
        """Write the end of a run; its text only where no message said it."""
        final = text(record.get("finalText"))
        if final and final != self._said:
            usage = usage_of(record.get("usage"), _USAGE)
            yield from self.transcript.answer([text_block(final)], usage=usage)
        yield from self.kept(record)
        yield from self.transcript.end_turn()

    def error(self, record: Record) -> Iterator[Operation]:
        yield from self.kept(record)
        yield from failed(self.transcript, "error", text(record.get("message")))


_TYPES: Mapping[str, Callable[[_Session, Record], Iterator[Operation]]] = {
    "session_start": _Session.start,
    "message": _Session.message,
    "tool_call": _Session.call,
    "tool_result": _Session.result,
    "completion": _Session.completion,
    "error": _Session.error,
}


def _recognises(sample: Sample) -> bool:
    """Whether a record is a session's first, or one of a stream, under the names of Droid."""
    for record in sample.records:
        kind = record.get("type")
        if kind == "session_start" and isinstance(record.get("id"), str) and "cwd" in record:
            return True
        if not isinstance(record.get("sessionId"), str) or "timestamp" not in record:
            continue
        if (kind == "system" and record.get("subtype") == "init") or (
            kind in ("tool_call", "tool_result") and "toolId" in record
        ):
            return True
    return False


DROID = Importer("sessions of Droid, as it keeps them and as stream-json", droid, _recognises)
