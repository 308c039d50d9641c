"""What the events of a Copilot session say, in one conversation.

A turn of Copilot is one answer with its calls; ours goes on until an answer has none. Thoughts come
as an event of their own before the answer, and often in it once more. Not here: which conversation
an event belongs to (`copilot`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from definitions.importers.chat_lines import (
    Block,
    Record,
    blocks_of,
    call_of,
    failed,
    prompt,
    rest,
)
from definitions.importers.transcript import Operation, Transcript, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["Chat", "calls_of", "result_of"]

_ANSWER = ("content", "toolRequests", "messageId", "reasoningText", "reasoningOpaque")


class Chat:
    """One conversation of a session. `place` is the name and the time of the record at hand."""

    def __init__(self, conversation: str | None = None) -> None:
        self.transcript = Transcript(conversation)
        self.place: tuple[str, int | None] = ("", None)
        self._thoughts: list[str] = []
        self._thought_at: tuple[str, int | None] = self.place
        self._last_thought = ""
        self._has_calls = False
        self._compaction = ""

    def turn_to_record(self, suffix: str = "") -> None:
        """Write the next events as those of the record at hand."""
        self.transcript.at(self.place[0] + suffix, self.place[1])

    def take(self, kind: str, record: Record, data: Record) -> Iterator[Operation]:
        if kind == "assistant.reasoning":
            yield from self._think(record, data)
            return
        if kind != "assistant.message":
            yield from self.flush()
        self.turn_to_record()
        write = _TYPES.get(kind)
        if write is None:
            yield self.transcript.kept(f"copilot/{kind or 'odd'}", record)
        else:
            yield from write(self, record, data)

    def flush(self) -> Iterator[Operation]:
        """Write thoughts whose answer never came."""
        thoughts, self._thoughts = self._thoughts, []
        if thoughts:
            self.transcript.at(*self._thought_at)
            blocks = [_reasoning(each) for each in thoughts]
            yield from self.transcript.answer(blocks, stop_reason="other")

    def _think(self, record: Record, data: Record) -> Iterator[Operation]:
        thought = text(data.get("content"))
        if thought and thought == self._last_thought:  # said in the answer before it
            yield from self.flush()
            self.turn_to_record()
            yield self.transcript.kept("copilot/assistant.reasoning", record)
            return
        if not self._thoughts:
            self._thought_at = self.place
        self._thoughts.append(thought)

    # -- messages ----------------------------------------------------------------------------

    def answer(self, _record: Record, data: Record) -> Iterator[Operation]:
        thoughts, self._thoughts = self._thoughts, []
        self._last_thought = text(data.get("reasoningText"))
        if self._last_thought:
            thoughts = [self._last_thought]
        blocks = [_reasoning(each) for each in thoughts]
        opaque = text(data.get("reasoningOpaque"))
        if opaque and blocks:
            blocks[-1]["signature"] = opaque
        blocks += blocks_of(data.get("content"), "copilot")
        calls = calls_of(data, self.place[0])
        self._has_calls = bool(calls)
        tokens = data.get("outputTokens")
        usage = {"output_tokens": tokens, "raw": {"outputTokens": tokens}}
        more = rest(data, *_ANSWER)
        yield from self.transcript.answer(
            [*blocks, *calls],
            message_id=text(data.get("messageId")) or None,
            usage=usage if type(tokens) is int else None,
            more=more if blocks or not opaque else {**more, "reasoningOpaque": opaque},
        )

    def user(self, _record: Record, data: Record) -> Iterator[Operation]:
        blocks = blocks_of(data.get("content"), "copilot")
        source = text(data.get("source"))
        more = rest(data, "content")
        if source not in ("", "user"):
            yield self.transcript.message(blocks, source={"kind": source}, more=more)
        else:
            yield from prompt(self.transcript, blocks, more=rest(more, "source"))

    def system(self, record: Record, data: Record) -> Iterator[Operation]:
        kind = text(record.get("type")).partition(".")[2]
        source = {"kind": "system" if kind == "message" else kind}
        blocks = blocks_of(data.get("content"), "copilot")
        yield self.transcript.message(blocks, source=source, more=rest(data, "content"))

    # -- calls -------------------------------------------------------------------------------

    def started(self, record: Record, data: Record) -> Iterator[Operation]:
        call_id = text(data.get("toolCallId"))
        if not self.transcript.has_call(call_id):
            call = call_of({**data, "name": data.get("toolName")}, self.place[0])
            yield from self.transcript.call(call["call_id"], call["name"], call["arguments"])
        yield self.transcript.kept("copilot/tool.execution_start", record)

    def done(self, _record: Record, data: Record) -> Iterator[Operation]:
        yield result_of(self.transcript, data)

    # -- how it went -------------------------------------------------------------------------

    def turn_end(self, record: Record, _data: Record) -> Iterator[Operation]:
        yield self.transcript.kept("copilot/assistant.turn_end", record)
        if not self._has_calls:
            yield from self.transcript.end_turn()

    def abort(self, record: Record, _data: Record) -> Iterator[Operation]:
        yield self.transcript.kept("copilot/abort", record)
        yield from self.transcript.end_turn("cancelled")

    def error(self, record: Record, data: Record) -> Iterator[Operation]:
        yield self.transcript.kept("copilot/session.error", record)
        name, message = text(data.get("errorType")), text(data.get("message"))
        yield from failed(self.transcript, name, message)

    def title(self, _record: Record, data: Record) -> Iterator[Operation]:
        yield self.transcript.event("conversation/title", {**data, "title": text(data["title"])})

    def compacting(self, _record: Record, data: Record) -> Iterator[Operation]:
        self._compaction = f"compaction-{self.place[0]}"
        told = {**data, "compaction_id": self._compaction}
        yield self.transcript.event("compaction/start", told)

    def compacted(self, record: Record, data: Record) -> Iterator[Operation]:
        if not self._compaction:
            yield from self.compacting(record, {})
        compaction = {"compaction_id": self._compaction}
        if said := text(data.get("summaryContent")):
            yield self.transcript.event("compaction/summary", {**compaction, "text": said})
        about = rest(data, "summaryContent")
        yield self.transcript.event("compaction/end", {**about, **compaction})
        self._compaction = ""


def calls_of(data: Record, minted: str) -> list[Block]:
    """Say the calls that an answer asks for; one without an id is named after its record."""
    told = [mapping(each) for each in array(data.get("toolRequests"))]
    return [_call(call, f"call-{minted}.{at}") for at, call in enumerate(told)]


def _call(told: Record, minted: str) -> Block:
    meta = rest(told, "type", "toolCallId", "name", "arguments")
    return call_of(told, minted) | ({"meta": meta} if meta else {})


def result_of(transcript: Transcript, data: Record) -> Operation:
    """Write what came of a call; what Copilot shows in place of it stands beside."""
    result, error = mapping(data.get("result")), mapping(data.get("error"))
    content = blocks_of(result.get("content"), "copilot")
    if not content and (said := text(error.get("message"))):
        content = [text_block(said)]
    meta = {**rest(data, "toolCallId", "success", "result"), **rest(result, "content")}
    is_error = data.get("success") is False
    call_id = text(data.get("toolCallId"))
    return transcript.result(call_id, content, is_error=is_error, more={"meta": meta})


def _reasoning(thought: str) -> Block:
    return {"type": "reasoning", "text": thought}


_TYPES: Mapping[str, Callable[[Chat, Record, Record], Iterator[Operation]]] = {
    "assistant.message": Chat.answer,
    "user.message": Chat.user,
    "system.message": Chat.system,
    "system.notification": Chat.system,
    "tool.execution_start": Chat.started,
    "tool.execution_complete": Chat.done,
    "assistant.turn_end": Chat.turn_end,
    "abort": Chat.abort,
    "session.error": Chat.error,
    "session.title_changed": Chat.title,
    "session.compaction_start": Chat.compacting,
    "session.compaction_complete": Chat.compacted,
}
