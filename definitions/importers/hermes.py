"""Sessions of Hermes, made into recordings: one document, its messages as OpenAI has them.

Not here: how messages are spelled (`chat_lines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assembler.plugins import Importer, Sample
from definitions.importers.chat_lines import Block, Record, blocks_of, call_of, prompt, rest
from definitions.importers.reading import document
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import array, mapping, text

__all__ = ["HERMES", "hermes"]

_STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "length",
    "content_filter": "content_filter",
}


def hermes(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. Holds the document."""
    session = mapping(document(lines, name))
    transcript = Transcript()
    yield transcript.header(name, "Imported from a session of Hermes.")
    transcript.at("session", milliseconds(session.get("session_start")))
    yield transcript.kept("hermes/session", rest(session, "messages"))
    if title := text(session.get("title")):
        yield transcript.event("conversation/title", {"title": title})
    for number, told in enumerate(array(session.get("messages")), 1):
        message = mapping(told)
        transcript.at(str(number), milliseconds(message.get("timestamp")))
        yield from _message(transcript, message or {"value": told}, f"call-{number}")
    yield transcript.finish()


def _message(transcript: Transcript, message: Record, minted: str) -> Iterator[Operation]:
    role = text(message.get("role"))
    blocks = blocks_of(message.get("content"), "hermes")
    if role == "user":
        yield from prompt(transcript, blocks, more=rest(message, "role", "content", "timestamp"))
    elif role == "assistant":
        yield from _answer(transcript, message, blocks, minted)
    elif role == "tool":
        meta = rest(message, "role", "content", "tool_call_id", "timestamp")
        call_id = text(message.get("tool_call_id"))
        yield transcript.result(call_id, blocks, more={"meta": meta} if meta else {})
    elif role == "system":
        yield transcript.message(blocks, source={"kind": "system"})
    else:
        yield transcript.kept(f"hermes/{role or 'odd'}", message)


def _answer(
    transcript: Transcript, message: Record, said: list[Block], minted: str
) -> Iterator[Operation]:
    thought = text(message.get("reasoning")) or text(message.get("reasoning_content"))
    thinks: list[Block] = [{"type": "reasoning", "text": thought}] if thought else []
    told = enumerate(array(message.get("tool_calls")))
    calls = [call_of(mapping(call), f"{minted}.{at}") for at, call in told]
    reason = text(message.get("finish_reason"))
    # Some models say `stop` with calls.
    stop = _STOPS.get(reason, "other") if reason and not (calls and reason == "stop") else None
    taken = ("role", "content", "timestamp", "reasoning", "tool_calls", "finish_reason")
    again = ("reasoning_content",) if message.get("reasoning_content") == thought else ()
    more = rest(message, *taken, *again) | ({"stop_detail": reason} if reason else {})
    yield from transcript.answer([*thinks, *said, *calls], stop_reason=stop, more=more)
    if stop == "end_turn":
        yield from transcript.end_turn()


def _recognises(sample: Sample) -> bool:
    first = sample.records[0] if sample.records else {}
    named = "session_id" in first and "session_start" in first
    return named and isinstance(first.get("messages"), list)


HERMES = Importer("sessions of Hermes", hermes, _recognises)
