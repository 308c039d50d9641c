"""What a provider streamed, as a conversation: one answer, or the exchanges of a tool loop.

Here lives how an answer is read by its adapter and written: deltas, message, calls. What the client
said before it is in `requests`. Not here: any format of streams (`definitions.providers`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.codec import plain
from assembler.plugins import Importer, Sample
from definitions.answering import call_draft, ended
from definitions.importers.errors import ImportFault
from definitions.importers.halves import may_hold_halves, mended
from definitions.importers.reading import read, written
from definitions.importers.requests import Prompt, said_last
from definitions.importers.transcript import Operation, Transcript
from definitions.providers import adapter
from definitions.providers.chunks import Chunks
from definitions.providers.formats import FORMATS, format_of
from definitions.providers.reading import text

__all__ = ["EXCHANGE", "MODEL_STREAM", "Conversation", "exchange", "format_said", "model_stream"]

_WHOLE = "-full"
"""Ends the name of a format when the answer was not streamed."""


class Conversation:
    """A conversation that is written answer by answer: what was said before one, then the answer.

    Its operations have no header.
    """

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._in_use: set[str] = set()
        self._running: dict[str, None] = {}
        self._request: Mapping[str, Any] | None = None
        self.is_cut = False
        """Whether the last answer has no end: what is said of it is what is there of it."""

    def say(self, request: Mapping[str, Any]) -> Iterator[Operation]:
        """Write what a client says that is new in a request: results of calls, prompts."""
        before, self._request = self._request, request
        for each in said_last(request, before):
            if isinstance(each, Prompt):
                self._running.clear()
                yield from self.transcript.user(each.content)
            elif (call_id := self._known(each.call_id)) is not None:
                del self._running[call_id]
                yield self.transcript.result(call_id, each.content, is_error=each.is_error)

    def _known(self, told: str) -> str | None:
        """The call that a client means: under its id, or the next, where the client has no ids."""
        if told in self._running:
            return told
        alike = [each for each in self._running if told and told.endswith(each)]
        return next(iter(alike or self._running), None)

    def answer(self, name: str, response: bytes) -> Iterator[Operation]:
        """Write one answer in that format: as it was streamed, and as it ended."""
        yield from self.transcript.begin_step()
        turn, step = self.transcript.turn, self.transcript.step
        attempt = f"{turn}.{step}.1"
        reader = adapter(FORMATS[name], attempt=attempt, in_use=self._in_use)
        where = {"attempt": attempt, "number": 1, "turn": turn, "step": step}
        for piece in reader.feed(response):
            yield {"op": "delta", **where, "type": piece.type, "data": plain(piece.data)}
        ending = ended(reader.finish(), turn, step)
        self.is_cut = ending.why == "no-terminal"
        for draft in ending.drafts:
            yield self.transcript.event(draft.type, plain(draft.data))
        yield {"op": "settle", "attempt": attempt, "outcome": ending.outcome.value}
        for call in ending.handed_over:
            draft = call_draft(call, turn, step)
            yield self.transcript.event(draft.type, plain(draft.data))
            self._running[call.call_id] = None
        self._in_use |= {call.call_id for call in ending.calls}
        if ending.why is not None and ending.outcome.value == "failed":
            error = {"name": ending.why, "message": "the answer did not come whole"}
            yield from self.transcript.end_turn("error", error)
        elif not ending.handed_over:
            yield from self.transcript.end_turn()


def model_stream(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn one streamed answer into a turn with one step. O(size)."""
    body = b"".join(line.encode() if isinstance(line, str) else line for line in lines)
    found = format_of(_objects(body))
    if found is None:
        raise ImportFault(name, 1, "line", f"an answer in one of {', '.join(sorted(FORMATS))}")
    conversation = Conversation()
    yield conversation.transcript.header(name, f"Imported from a model's answer ({found}).")
    conversation.transcript.at("answer")
    for operation in conversation.answer(found, body):
        # The rest may still come, and it will be another message then.
        yield operation | ({"tail": "unfinished"} if conversation.is_cut else {})
    yield conversation.transcript.finish()


def _objects(body: bytes) -> list[dict[str, Any]]:
    """Give the first chunks of a stream, by the framing that adapters read."""
    chunks = Chunks()
    found = [*chunks.feed(body), *chunks.rest()]
    return [dict(chunk.data) for chunk in found if chunk.data is not None]


def exchange(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn recorded exchanges with a model into a conversation: a line for each request.

    A line is `{request, response, …}`: what the client sent, and the raw text of the answer.
    """
    conversation = Conversation()
    yield conversation.transcript.header(name, "Imported from exchanges with a model.")
    for line in read(written(lines), name):
        fields = line.fields
        if not isinstance(fields.values.get("request"), dict):
            raise fields.fault("request", "what a client sent, as an object")
        told = mended(fields.values) if may_hold_halves(line.text) else fields.values
        response = told.get("response")
        body = text(response).encode()
        found = format_said(told)
        conversation.transcript.at(f"line-{fields.line}")
        yield from conversation.say(told["request"])
        if found is None:
            yield conversation.transcript.kept("exchange/response", told)
            continue
        yield from conversation.answer(found, body)
    yield conversation.transcript.finish()


def format_said(line: Mapping[str, Any]) -> str | None:
    """Give the format of the answer in a line: what it shows, else what is said of it."""
    said = text(line.get("format")).removesuffix(_WHOLE)
    found = format_of(_objects(text(line.get("response")).encode()))
    return found or (said if said in FORMATS else None)


def _is_stream(sample: Sample) -> bool:
    return format_of(sample.records) is not None and not _is_exchange(sample)


def _is_exchange(sample: Sample) -> bool:
    first = sample.records[0] if sample.records else {}
    return isinstance(first.get("request"), dict) and isinstance(first.get("response"), str)


EXCHANGE = Importer("exchanges with a model, request and answer", exchange, _is_exchange)
MODEL_STREAM = Importer("the streamed answer of a model", model_stream, _is_stream)
