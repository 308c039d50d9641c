"""Sessions of the coding agent pi, made into recordings: a record a line, most of them messages.

Answers that were stopped or failed say so, and none of their calls ran. Not here: how transcripts
are written in general (`transcript`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.reading import values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["PI", "pi"]

Record = Mapping[str, Any]
Block = dict[str, Any]

_STOPS = {
    "stop": "end_turn",
    "toolUse": "tool_use",
    "length": "length",
    "aborted": "cancelled",
    "error": "error",
}
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_tokens",
    "cacheWrite": "cache_write_tokens",
}


def pi(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. O(size)."""
    transcript = Transcript()
    yield transcript.header(name, "Imported from a session of pi.")
    for number, record in values(lines, name):
        told = mapping(record)
        transcript.at(str(number), milliseconds(told.get("timestamp")))
        message = mapping(told.get("message"))
        write = _ROLES.get(text(message.get("role")))
        if told.get("type") == "message" and write is not None:
            yield from write(transcript, message)
        else:
            kept = record if isinstance(record, dict) else {"value": record}
            yield transcript.kept(f"pi/{text(told.get('type')) or 'odd'}", kept)
    yield transcript.finish()


def _user(transcript: Transcript, message: Record) -> Iterator[Operation]:
    yield from transcript.user(_blocks(message))


def _assistant(transcript: Transcript, message: Record) -> Iterator[Operation]:
    told = text(message.get("stopReason"))
    stop = _STOPS.get(told, "other") if told else None
    more = {key: message[key] for key in ("provider", "model", "errorMessage") if key in message}
    yield from transcript.answer(
        _blocks(message),
        stop_reason=stop,
        usage=_usage(message),
        more=more | ({"stop_detail": told} if told else {}),
    )
    if stop == "end_turn":
        yield from transcript.end_turn()
    elif stop == "cancelled":
        yield from transcript.end_turn("cancelled")
    elif stop == "error":
        error = {"name": "error", "message": text(message.get("errorMessage"))}
        yield from transcript.end_turn("error", error)


def _result(transcript: Transcript, message: Record) -> Iterator[Operation]:
    details = message.get("details")
    yield transcript.result(
        text(message.get("toolCallId")),
        _blocks(message),
        is_error=message.get("isError") is True,
        more={} if details is None else {"meta": {"details": details}},
    )


_ROLES = {"user": _user, "assistant": _assistant, "toolResult": _result}


def _usage(message: Record) -> Block | None:
    raw = mapping(message.get("usage"))
    if not raw:
        return None
    return {ours: raw[theirs] for theirs, ours in _USAGE.items() if theirs in raw} | {"raw": raw}


def _blocks(message: Record) -> list[Block]:
    content = message.get("content")
    if isinstance(content, str):
        return [text_block(content)]
    return [_block(mapping(part)) for part in array(content)]


def _block(part: Record) -> Block:
    kind = part.get("type")
    if kind == "text":
        return text_block(text(part.get("text")))
    if kind == "thinking":
        signature = part.get("thinkingSignature")
        made: Block = {"type": "reasoning", "text": text(part.get("thinking"))}
        return made | ({"signature": signature} if isinstance(signature, str) else {})
    if kind == "toolCall":
        named = {"call_id": text(part.get("id")) or "call", "name": text(part.get("name"))}
        arguments = arguments_text(part.get("arguments"))
        return {"type": "tool-call", **named, "arguments": arguments}
    if kind == "image" and isinstance(part.get("data"), str):
        media = text(part.get("mimeType")) or "image/*"
        return {"type": "file", "media_type": media, "data": part["data"]}
    return {"type": "provider", "provider": "pi", "raw": dict(part)}


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
