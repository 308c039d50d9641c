"""Sessions of Qwen Code, made into recordings: records in lines, with messages in Gemini's parts.

What was rewound stays, in the order of the file. Not here: how parts are spelled (`parts`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.parts import answer_blocks, results, usage_of
from definitions.importers.reading import several
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["QWEN_CODE", "qwen_code"]

Record = Mapping[str, Any]


def qwen_code(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one session into the operations of a recording, the header first. O(size)."""
    transcript = Transcript()
    yield transcript.header(name, "Imported from a session of Qwen Code.")
    for number, (line, record) in enumerate(several(lines, name), 1):
        told = mapping(record)
        transcript.at(f"{line}-{number}", milliseconds(told.get("timestamp")))
        write = _TYPES.get(text(told.get("type")), _other)
        yield from write(transcript, told or {"value": record}, f"call-{number}")
    yield transcript.finish()


def _user(transcript: Transcript, record: Record, minted: str) -> Iterator[Operation]:
    parts = mapping(record.get("message")).get("parts")
    shown = text(mapping(record.get("systemPayload")).get("displayText"))
    blocks = [text_block(shown)] if shown else answer_blocks(parts, minted)
    more = _beside(record, shown)
    subtype = text(record.get("subtype"))
    if subtype == "mid_turn_user_message" and transcript.is_in_turn:
        message_id = f"steering-{minted}"
        queue = {"queue": "next-step", "added": [message_id], "claimed": [message_id]}
        yield transcript.event("inbox/spliced", queue)
        yield transcript.message(blocks, message_id=message_id, more=more)
    elif subtype in ("", "mid_turn_user_message"):
        message_id = text(record.get("uuid"))
        yield from transcript.user(blocks, message_id=message_id or None, more=more)
    else:
        yield transcript.message(blocks, source={"kind": subtype}, more=more)


def _beside(record: Record, shown: str) -> dict[str, Any]:
    """Give what the model was told beside what a person sees of a prompt."""
    parts = mapping(record.get("message")).get("parts")
    payload = {
        key: each
        for key, each in mapping(record.get("systemPayload")).items()
        if key != "displayText"
    }
    more = {"systemPayload": payload} if payload else {}
    return more | ({"parts": parts} if shown and parts != [{"text": shown}] else {})


def _assistant(transcript: Transcript, record: Record, minted: str) -> Iterator[Operation]:
    yield from transcript.answer(
        answer_blocks(mapping(record.get("message")).get("parts"), minted),
        message_id=text(record.get("uuid")) or None,
        usage=usage_of(record.get("usageMetadata")),
        more={"model": record["model"]} if "model" in record else {},
    )


def _result(transcript: Transcript, record: Record, _minted: str) -> Iterator[Operation]:
    about = mapping(record.get("toolCallResult"))
    failed = text(about.get("status")) in ("error", "cancelled")
    for call_id, content, is_error in results(mapping(record.get("message")).get("parts")):
        told = call_id or text(about.get("callId"))
        more = {"meta": {"toolCallResult": about}} if about else {}
        yield transcript.result(told, content, is_error=failed or is_error, more=more)


def _other(transcript: Transcript, record: Record, minted: str) -> Iterator[Operation]:
    payload = mapping(record.get("systemPayload"))
    title = text(payload.get("customTitle"))
    if title:
        yield transcript.event("conversation/title", {"title": title})
        return
    kind = text(record.get("subtype")) or text(record.get("type")) or "odd"
    if kind == "chat_compression":
        yield from _compaction(transcript, payload, minted)
    elif kind == "slash_command":
        yield from _command(transcript, payload, minted)
    else:
        yield transcript.kept(f"qwen-code/{kind}", record)
    if kind == "rewind":
        yield from transcript.end_turn("cancelled")
        command = {"command_id": f"rewind-{minted}"}
        run = {**command, "name": "rewind", "to": payload.get("targetUuid")}
        yield transcript.event("command/run", run)
        yield transcript.event("command/done", command)


def _compaction(transcript: Transcript, payload: Record, minted: str) -> Iterator[Operation]:
    """Write that the history was made short; it begins with its summary then."""
    compaction = {"compaction_id": f"compaction-{minted}"}
    yield transcript.event("compaction/start", {**payload, **compaction})
    first = next(iter(array(payload.get("compressedHistory"))), None)
    said = "".join(text(mapping(part).get("text")) for part in array(mapping(first).get("parts")))
    yield transcript.event("compaction/summary", {**compaction, "text": said})
    yield transcript.event("compaction/end", compaction)


def _command(transcript: Transcript, payload: Record, minted: str) -> Iterator[Operation]:
    """Write a command of a person: what was typed, or what was shown for it, behind that."""
    if payload.get("phase") == "result":
        yield transcript.kept("qwen-code/slash_command", payload)
        return
    command = {"command_id": f"command-{minted}"}
    name, _, arguments = text(payload.get("rawCommand")).strip().lstrip("/").partition(" ")
    run = {**command, "name": name, **({"arguments": arguments} if arguments else {})}
    yield transcript.event("command/run", run)
    yield transcript.event("command/done", command)


_TYPES = {"user": _user, "assistant": _assistant, "tool_result": _result}


def _recognises(sample: Sample) -> bool:
    """Whether a record of the beginning has parts under a parent, as no other program's has."""
    return any(
        "parentUuid" in record and isinstance(mapping(record.get("message")).get("parts"), list)
        for record in sample.records
    )


QWEN_CODE = Importer("sessions of Qwen Code", qwen_code, _recognises)
