"""Sessions of Grok's command line, made into recordings: the history of a chat, and its summary.

The history has an item a line, in the manner of a provider: reasoning and calls that the provider
ran stand before the answer they belong to. The summary holds no conversation: it says what to call
one. Not here: how messages are spelled (`chat_lines`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.chat_lines import Block, Record, blocks_of, call_of, prompt, rest
from definitions.importers.reading import document, values
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript, arguments_text
from definitions.providers.reading import array, mapping, text

__all__ = ["GROK", "grok"]

_ABOUT = "Imported from a session of Grok."


def grok(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one file into the operations of a recording, the header first. O(size)."""
    found = iter(lines)
    first = next(found, b"")
    # A document in several lines begins with a bracket alone; a history has an item a line.
    if first.strip() in (b"{", "{"):
        yield from _summary(document(chain([first], found), name), name)
        return
    history = _History()
    yield history.transcript.header(name, _ABOUT)
    for number, record in values(chain([first], found), name):
        told = mapping(record)
        if _is_summary(told):
            yield from _said(history.transcript, told)
        else:
            yield from history.take(number, told or {"value": record})
    for operation in history.flush():
        yield {**operation, "tail": "unfinished"}
    yield history.transcript.finish()


def _summary(told: Any, name: str) -> Iterator[Operation]:
    transcript = Transcript()
    yield transcript.header(name, _ABOUT)
    yield from _said(transcript, mapping(told) or {"value": told})
    yield transcript.finish()


def _said(transcript: Transcript, summary: Record) -> Iterator[Operation]:
    transcript.at("summary", milliseconds(summary.get("updated_at")))
    yield transcript.kept("grok/summary", summary)
    title = text(summary.get("generated_title")) or text(summary.get("session_summary"))
    if title:
        yield transcript.event("conversation/title", {"title": title})


class _History:
    """One history: the parts of the answer at hand, until the answer itself comes."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._number = 0
        self._began = 0
        self._parts: list[Block] = []
        self._found: list[tuple[str, list[Block]]] = []
        """What came of the calls that the provider ran."""

    def take(self, number: int, record: Record) -> Iterator[Operation]:
        self._number = number
        kind = text(record.get("type"))
        if kind in ("reasoning", "backend_tool_call"):
            if not self._parts:
                self._began = number
            self._parts.append(_reasoning(record) if kind == "reasoning" else self._ran(record))
            return
        if kind == "assistant":
            yield from self._answer(record)
            return
        yield from self.flush()
        self.transcript.at(str(number))
        yield from self._other(kind, record)

    def flush(self) -> Iterator[Operation]:
        """Write the parts of an answer that never came."""
        if self._parts:
            self.transcript.at(str(self._began))
            yield from self._write([], "other", {})

    def _answer(self, record: Record) -> Iterator[Operation]:
        minted = f"call-{self._number}"
        blocks = blocks_of(record.get("content"), "grok")
        told = enumerate(array(record.get("tool_calls")))
        blocks += [call_of(mapping(call), f"{minted}.{at}") for at, call in told]
        own = any(block["type"] == "tool-call" for block in blocks)
        more = rest(record, "type", "content", "tool_calls")
        self.transcript.at(str(self._number))
        yield from self._write(blocks, "tool_use" if own else "end_turn", more)

    def _write(self, blocks: list[Block], stop: str, more: Block) -> Iterator[Operation]:
        parts, self._parts = self._parts, []
        found, self._found = self._found, []
        yield from self.transcript.answer([*parts, *blocks], stop_reason=stop, more=more)
        for call_id, content in found:
            yield self.transcript.result(call_id, content)

    def _ran(self, record: Record) -> Block:
        """Say a call that the provider ran, whose result stands with it."""
        told = mapping(record.get("kind"))
        action = mapping(told.get("action"))
        call_id = text(told.get("id")) or f"call-{self._number}"
        sources = action.get("sources")
        if told.get("status") == "completed":
            self._found.append((call_id, [{"type": "json", "value": sources}] if sources else []))
        return {
            "type": "tool-call",
            "call_id": call_id,
            "name": text(told.get("tool_type")),
            "arguments": arguments_text(rest(action, "sources", "type")),
            "ran_by": "provider",
        }

    def _other(self, kind: str, record: Record) -> Iterator[Operation]:
        content = record.get("content")
        if kind == "tool_result":
            call_id = text(record.get("tool_call_id"))
            meta = rest(record, "type", "tool_call_id", "content")
            more = {"meta": meta} if meta else {}
            yield self.transcript.result(call_id, blocks_of(content, "grok"), more=more)
        elif kind == "user":
            yield from self._user(record)
        elif kind == "system":
            yield self.transcript.message(blocks_of(content, "grok"), source={"kind": "system"})
        else:
            yield self.transcript.kept(f"grok/{kind or 'odd'}", record)

    def _user(self, record: Record) -> Iterator[Operation]:
        blocks = blocks_of(record.get("content"), "grok")
        more = rest(record, "type", "content")
        why = text(record.get("synthetic_reason"))
        if why:
            yield self.transcript.message(blocks, source={"kind": why}, more=more)
            return
        if record.get("prior_turn_interrupt"):
            yield from self.transcript.end_turn("cancelled")
        yield from prompt(self.transcript, blocks, more=more)


def _reasoning(record: Record) -> Block:
    summary = record.get("summary")
    texts = (text(mapping(part).get("text")) for part in array(summary))
    made: Block = {"type": "reasoning", "text": "\n".join(filter(None, texts))}
    sealed = text(record.get("encrypted_content"))
    more = rest(record, "type", "summary", "encrypted_content")
    return {**more, **made} | ({"signature": sealed} if sealed else {})


def _is_summary(record: Record) -> bool:
    return "chat_format_version" in record and isinstance(record.get("info"), dict)


def _recognises(sample: Sample) -> bool:
    """Whether a file is a summary, or begins with items that have Grok's own fields."""
    for at, record in enumerate(sample.records):
        kind = record.get("type")
        if _is_summary(record) or (kind == "backend_tool_call" and "kind" in record):
            return True
        if kind == "user" and ("prompt_index" in record or "synthetic_reason" in record):
            return True
        if kind == "assistant" and "model_fingerprint" in record and "tool_calls" in record:
            return True
        if at == 0 and kind == "system" and record.keys() == {"type", "content"}:
            return isinstance(record["content"], str)
    return False


GROK = Importer("sessions of Grok: chat histories and summaries", grok, _recognises)
