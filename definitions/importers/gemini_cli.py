"""Sessions of Gemini CLI, made into recordings: one document with all messages.

Each answer has its thoughts, its text and its calls with what came of them. Not here: how parts are
spelled (`parts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.parts import Block, answer_blocks, results, usage_of
from definitions.importers.reading import document
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["GEMINI_CLI", "gemini_cli"]

Record = Mapping[str, Any]

_FAILED = frozenset({"error", "cancelled"})
_CANCELLED = "Request cancelled."
"""What the program says to a person who stopped it, and to nobody else."""
_TOLD = frozenset(
    {"id", "timestamp", "type", "content", "parts", "thoughts", "toolCalls", "tokens"}
)
_TOLD_OF_CALL = frozenset({"id", "name", "args", "result", "resultDisplay"})


def gemini_cli(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. Holds the document."""
    session = mapping(document(lines, name))
    transcript = Transcript()
    yield transcript.header(name, "Imported from a session of Gemini CLI.")
    transcript.at("session", milliseconds(session.get("startTime")))
    about = {key: each for key, each in session.items() if key != "messages"}
    yield transcript.kept("gemini-cli/session", about)
    for number, told in enumerate(array(session.get("messages")), 1):
        message = mapping(told)
        transcript.at(
            text(message.get("id")) + f"-{number}", milliseconds(message.get("timestamp"))
        )
        kind = text(message.get("type"))
        if kind == "user":
            yield from transcript.user(_said(message), more=_rest(message))
        elif kind in ("gemini", "model"):
            yield from _answer(transcript, message, number)
        elif kind == "error":
            error = {"name": "error", "message": _text(message)}
            yield from transcript.begin_turn()
            yield from transcript.end_turn("error", error)
        else:
            kept = message or {"value": told}
            yield transcript.kept(f"gemini-cli/{kind or 'odd'}", kept)
            if kind == "info" and _text(message).strip() == _CANCELLED:
                yield from transcript.end_turn("cancelled")
    yield transcript.finish()


def _answer(transcript: Transcript, message: Record, number: int) -> Iterator[Operation]:
    calls = [mapping(each) for each in array(message.get("toolCalls"))]
    ids = [text(call.get("id")) or f"call-{number}.{at}" for at, call in enumerate(calls)]
    blocks = [*map(_thought, array(message.get("thoughts")))]
    blocks += [block for block in _said(message) if block != text_block("")]
    for call_id, call in zip(ids, calls, strict=True):
        arguments = arguments_text(call.get("args", {}))
        named = {"call_id": call_id, "name": text(call.get("name"))}
        blocks.append({"type": "tool-call", **named, "arguments": arguments})
    yield from transcript.answer(
        blocks,
        usage=usage_of(message.get("tokens")),
        more=_rest(message),
    )
    for call_id, call in zip(ids, calls, strict=True):
        yield from _result(transcript, call_id, call)
    if not calls:
        yield from transcript.end_turn()


def _result(transcript: Transcript, call_id: str, call: Record) -> Iterator[Operation]:
    """Write what came of a call, when its status says that something did."""
    status = text(call.get("status"))
    found = results(call.get("result"))
    shown = call.get("resultDisplay")
    if not found and status not in ("success", *_FAILED):
        return
    content = [block for _, blocks, _ in found for block in blocks]
    if not content and isinstance(shown, str):
        content = [text_block(shown)]
    failed = status in _FAILED or any(is_error for _, _, is_error in found)
    about = {key: each for key, each in call.items() if key not in _TOLD_OF_CALL}
    about |= {} if shown is None else {"display": shown}
    meta = {"meta": about} if about else {}
    yield transcript.result(call_id, content, is_error=failed, more=meta)


def _thought(thought: object) -> Block:
    told = mapping(thought)
    said = [text(told.get(key)) for key in ("subject", "description")]
    return {"type": "reasoning", "text": "\n".join(filter(None, said))}


def _said(message: Record) -> list[Block]:
    """Give what a message says: one text, or parts, which older sessions call so."""
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return [text_block(content)]
    return answer_blocks(content, "part")


def _rest(message: Record) -> Block:
    """Give what has no counterpart; it keeps its name."""
    return {key: each for key, each in message.items() if key not in _TOLD}


def _text(message: Record) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(text(mapping(part).get("text")) for part in array(content))


def _recognises(sample: Sample) -> bool:
    first = sample.records[0] if sample.records else {}
    return (
        "projectHash" in first and "sessionId" in first and isinstance(first.get("messages"), list)
    )


GEMINI_CLI = Importer("sessions of Gemini CLI", gemini_cli, _recognises)
