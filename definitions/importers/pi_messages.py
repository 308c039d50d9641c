"""How pi spells messages: prompts, answers, results, what a person ran, what extensions say.

What has no counterpart keeps its name, beside. Not here: records that are no messages (`pi`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["ROLES", "Record", "custom", "without"]

Record = Mapping[str, Any]
Block = dict[str, Any]

_STOPS = {
    "stop": "end_turn",
    "toolUse": "tool_use",
    "length": "length",
    "aborted": "cancelled",
    "error": "error",
}
_TOLD = frozenset(
    {"type", "role", "content", "usage", "stopReason", "id", "parentId", "timestamp", "customType"}
)
_USAGE = {
    "input": "input_tokens",
    "output": "output_tokens",
    "cacheRead": "cache_read_tokens",
    "cacheWrite": "cache_write_tokens",
}


def _user(transcript: Transcript, message: Record, _number: int) -> Iterator[Operation]:
    yield from transcript.user(_blocks(message), more=_rest(message))


def _assistant(transcript: Transcript, message: Record, _number: int) -> Iterator[Operation]:
    told = text(message.get("stopReason"))
    stop = _STOPS.get(told, "other") if told else None
    yield from transcript.answer(
        _blocks(message),
        stop_reason=stop,
        usage=_usage(message),
        more=_rest(message) | ({"stop_detail": told} if told else {}),
    )
    if stop == "end_turn":
        yield from transcript.end_turn()
    elif stop == "cancelled":
        yield from transcript.end_turn("cancelled")
    elif stop == "error":
        error = {"name": "error", "message": text(message.get("errorMessage"))}
        yield from transcript.end_turn("error", error)


def _result(transcript: Transcript, message: Record, _number: int) -> Iterator[Operation]:
    details = message.get("details")
    yield transcript.result(
        text(message.get("toolCallId")),
        _blocks(message),
        is_error=message.get("isError") is True,
        more={} if details is None else {"meta": {"details": details}},
    )


def _bash(transcript: Transcript, message: Record, number: int) -> Iterator[Operation]:
    """Write what a person ran."""
    told = {"command_id": f"command-{number}"}
    run = {**told, "name": "bash", "arguments": text(message.get("command"))}
    yield transcript.event("command/run", run)
    failed = message.get("cancelled") is True or message.get("exitCode", 0) != 0
    rest = without(message, "role", "command", "output")
    done = {**rest, **told, "output": text(message.get("output"))}
    yield transcript.event("command/done", done | ({"is_error": True} if failed else {}))


def custom(transcript: Transcript, record: Record, _number: int) -> Iterator[Operation]:
    """Write what an extension tells the model."""
    source = {"kind": text(record.get("customType")) or "custom"}
    yield transcript.message(_blocks(record), source=source, more=_rest(record))


ROLES = {
    "user": _user,
    "assistant": _assistant,
    "toolResult": _result,
    "bashExecution": _bash,
    "custom": custom,
    "hookMessage": custom,
}


def _rest(message: Record) -> Block:
    return without(message, *_TOLD)


def without(told: Record, *keys: str) -> Block:
    """Give what has no counterpart; it keeps its name."""
    return {key: value for key, value in told.items() if key not in keys}


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
        rest = without(part, "type", "thinking", "thinkingSignature")
        made: Block = {**rest, "type": "reasoning", "text": text(part.get("thinking"))}
        return made | ({"signature": signature} if isinstance(signature, str) else {})
    if kind == "toolCall":
        named = {"call_id": text(part.get("id")) or "call", "name": text(part.get("name"))}
        arguments = arguments_text(part.get("arguments"))
        rest = without(part, "type", "id", "name", "arguments")
        return {**rest, "type": "tool-call", **named, "arguments": arguments}
    if kind == "image" and isinstance(part.get("data"), str):
        media = text(part.get("mimeType")) or "image/*"
        return {"type": "file", "media_type": media, "data": part["data"]}
    return {"type": "provider", "provider": "pi", "raw": dict(part)}
