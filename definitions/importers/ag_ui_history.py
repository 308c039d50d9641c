"""The messages of AG-UI: what a client knows of a conversation, in a request or a snapshot.

Not here: events (`ag_ui`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["History", "content_blocks", "name_of", "outcome_of", "ran_by"]

Message: TypeAlias = Mapping[str, Any]
Block: TypeAlias = dict[str, Any]

_SAID = ("id", "role", "content", "toolCalls", "toolCallId")


def content_blocks(content: object) -> list[Block]:
    """Say content in blocks: one text, or parts."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    if isinstance(content, list):
        return [_part(each) for each in content]
    return [] if content is None else [{"type": "json", "value": content}]


def outcome_of(result: Message) -> str:
    """What became of a call, where its result says it beside its content; else empty."""
    return text(mapping(result.get("metadata")).get("outcome"))


def _part(part: object) -> Block:
    told = mapping(part)
    source = mapping(told.get("source"))
    if isinstance(told.get("text"), str):
        return text_block(told["text"])
    kind = source.get("type") or next((key for key in ("url", "data") if key in told), None)
    value = source.get("value", told.get(text(kind)))
    if kind in ("url", "data") and isinstance(value, str):
        media = text(source.get("mimeType")) or text(told.get("mimeType"))
        return {"type": "file", "media_type": media or f"{told.get('type')}/*", str(kind): value}
    return {"type": "provider", "provider": "ag-ui", "raw": part}


class History:
    """Writes messages that were not written yet: snapshots and requests tell them again."""

    def __init__(self, transcript: Transcript) -> None:
        self.said: set[str] = set()
        """Ids of messages that are written, or told by events."""
        self.running: dict[str, None] = {}
        """Calls that were handed over and have no result, as they were told."""
        self.returned: set[str] = set()
        self._transcript = transcript

    def new(self, messages: object) -> list[Message]:
        """Those of the messages that were not written yet."""
        return [each for each in map(mapping, array(messages)) if not self._is_known(each)]

    def _is_known(self, message: Message) -> bool:
        if message.get("role") == "tool":
            return text(message.get("toolCallId")) in self.returned
        if name_of(message) in self.said:
            return True
        calls = [text(mapping(each).get("id")) for each in array(message.get("toolCalls"))]
        return bool(calls) and all(map(self._transcript.has_call, calls))

    def write(self, messages: Sequence[Message]) -> Iterator[Operation]:
        """Write messages; a thought belongs to the answer behind it."""
        thoughts: list[Block] = []
        for message in messages:
            if thoughts and message.get("role") not in ("assistant", "reasoning"):
                yield from self._transcript.answer(thoughts)
                thoughts = []
            self.said |= {each for each in (name_of(message),) if each}
            if message.get("role") == "reasoning":
                thoughts.append(_thought(message))
                continue
            yield from self._message(message, thoughts)
            thoughts = []
        if thoughts:
            yield from self._transcript.answer(thoughts)

    def _message(self, message: Message, thoughts: list[Block]) -> Iterator[Operation]:
        role, message_id = text(message.get("role")), text(message.get("id")) or None
        more = {key: each for key, each in message.items() if key not in _SAID}
        blocks = content_blocks(message.get("content"))
        if role == "user":
            self.running.clear()
            yield from self._transcript.user(blocks, message_id=message_id, more=more)
        elif role == "assistant":
            calls = [_call(mapping(each)) for each in array(message.get("toolCalls"))]
            content = [*thoughts, *blocks, *calls]
            yield from self._transcript.answer(content, message_id=message_id, more=more)
            self.running |= {call["call_id"]: None for call in calls}
        elif role == "tool":
            yield self.result(text(message.get("toolCallId")), blocks, message, more)
        elif role in ("system", "developer"):
            source = {"kind": role}
            yield self._transcript.message(blocks, message_id=message_id, source=source, more=more)
        else:
            yield self._transcript.kept("ag-ui/message", message)

    def result(
        self, call_id: str, blocks: list[Block], told: Message, meta: Mapping[str, Any]
    ) -> Operation:
        """Write what came of a call, whoever made it; `told` may say that it failed, or that
        nothing came of it."""
        self.running.pop(call_id, None)
        self.returned.add(call_id)
        outcome = outcome_of(told)
        if outcome in ("unsettled", "withdrawn"):
            return self._transcript.kept(f"ag-ui/{outcome}", told)
        return self._transcript.result(
            call_id,
            blocks,
            is_error=outcome == "failed",
            error=_error(told),
            more={"meta": dict(meta)} if meta else {},
        )


def name_of(message: Message) -> str:
    """Name a message as it is remembered: a thought may have the id of its text."""
    told = text(message.get("id"))
    return f"reasoning:{told}" if told and message.get("role") == "reasoning" else told


def ran_by(call: Message) -> dict[str, str]:
    """Say of a call that its provider ran it, where it says so."""
    is_provider = mapping(call.get("metadata")).get("ranBy") == "provider"
    return {"ran_by": "provider"} if is_provider else {}


def _error(told: Message) -> dict[str, Any] | None:
    error = mapping(mapping(told.get("metadata")).get("error"))
    if error:
        return dict(error)
    message = told.get("error")
    return {"name": "error", "message": message} if isinstance(message, str) else None


def _call(call: Message) -> Block:
    called = mapping(call.get("function"))
    named = {"call_id": text(call.get("id")), "name": text(called.get("name"))}
    arguments = arguments_text(called.get("arguments"))
    return {"type": "tool-call", **named, "arguments": arguments, **ran_by(call)}


def _thought(message: Message) -> Block:
    content = message.get("content")
    made: Block = {"type": "reasoning", "text": content if isinstance(content, str) else ""}
    signature = message.get("encryptedValue")
    return made | ({"signature": signature} if isinstance(signature, str) else {})
