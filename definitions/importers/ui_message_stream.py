"""UI message streams of Vercel's AI SDK, made into recordings: chunks of one or more answers.

Text, reasoning and inputs become deltas of an attempt as they come; the message and its calls are
settled when the next step begins, or the stream is over. What the user said is not in such a
stream. Not here: how parts grow (`streaming`).

The chunks are those of https://ai-sdk.dev/docs/ai-sdk-ui/stream-protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

from assembler.plugins import Importer, Sample
from definitions.importers.errors import ImportFault
from definitions.importers.frames import frames, known
from definitions.importers.halves import mended
from definitions.importers.streaming import Streamed
from definitions.importers.transcript import Operation, Transcript, arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["UI_MESSAGE_STREAM", "ui_message_stream"]

Chunk = Mapping[str, Any]

_STOPS = {
    "stop": "end_turn",
    "tool-calls": "tool_use",
    "length": "length",
    "content-filter": "content_filter",
    "error": "error",
    "interrupted": "cancelled",
}
_ENDS = {"length": "limit", "content_filter": "completed", "cancelled": "cancelled"}
"""How a turn ends whose last answer was cut."""

_SIGNS: Mapping[str, tuple[str, ...]] = {
    "start-step": (),
    "finish-step": (),
    "text-start": ("id",),
    "text-delta": ("id", "delta"),
    "reasoning-start": ("id",),
    "reasoning-delta": ("id", "delta"),
    "tool-input-start": ("toolCallId", "toolName"),
    "tool-input-available": ("toolCallId", "toolName"),
    "tool-output-available": ("toolCallId", "output"),
}
"""Chunks that no other format has, with the fields that they need."""

_SAID = ("type", "id", "delta", "toolCallId", "toolName", "inputTextDelta", "input")


def ui_message_stream(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn the chunks of a stream into a recording, the header first. Holds the file."""
    found, other = known(frames(lines, name, "delta", "inputTextDelta"), _may_be_chunk)
    if other:
        raise ImportFault(name, other, "type", "a chunk of a UI message stream")
    stream = _Stream()
    yield stream.transcript.header(name, "Imported from a UI message stream of the AI SDK.")
    for number, (_, told) in enumerate(found, 1):
        chunk = mapping(told)
        stream.transcript.at(f"chunk-{number}")
        yield from stream.write(chunk or {"value": told})
    yield stream.transcript.finish()


class _Stream:
    """What later chunks refer to."""

    def __init__(self) -> None:
        self.transcript = Transcript()
        self._answer = Streamed(self.transcript)
        self._running: dict[str, None] = {}
        """Calls without a result, as they were told."""
        self._approvals: dict[str, str] = {}
        self._is_step_over = False
        self._message_id = ""
        self._has_failed = False
        """Whether the last chunk but notes said so: the end of the answer says it once more."""

    def write(self, chunk: Chunk) -> Iterator[Operation]:
        kind = text(chunk.get("type"))
        if self._is_step_over and kind not in _BETWEEN and not _is_unsettled(chunk):
            yield from self._step_over()
        yield from self._TYPES.get(kind, _Stream._kept)(self, chunk)
        self._has_failed = self._has_failed and kind in _BETWEEN - {"finish"}

    def _kept(self, chunk: Chunk) -> Iterator[Operation]:
        kind = text(chunk.get("type")) or "odd"
        yield self.transcript.kept(f"ui-message-stream/{kind}", mended(chunk))

    # -- steps and the end -------------------------------------------------------------------

    def _start(self, chunk: Chunk) -> Iterator[Operation]:
        """Begin an answer; one that nothing ended is told once more, to a client that came now."""
        message_id, self._message_id = self._message_id, text(chunk.get("messageId"))
        if self._answer.is_growing() and message_id and message_id == self._message_id:
            yield from self._dropped()
        yield from self._step_over()
        yield from self._kept(chunk)

    def _step_start(self, chunk: Chunk) -> Iterator[Operation]:
        yield from self._step_over()
        yield from self._kept(chunk)

    def _step_finish(self, chunk: Chunk) -> Iterator[Operation]:
        """Note that the step is over; what the stream says next may say why it stopped."""
        yield from self._kept(chunk)
        self._is_step_over = True
        if self._answer.is_answered:
            yield from self._step_over()

    def _step_over(self, stop_reason: str | None = None) -> Iterator[Operation]:
        self._is_step_over = False
        yield from self._answer.end(stop_reason)

    def _step_reset(self, chunk: Chunk) -> Iterator[Operation]:
        """Forget the step so far, with its calls: they are told once more."""
        yield from self._dropped()
        yield from self._kept(chunk)

    def _dropped(self) -> Iterator[Operation]:
        for call_id in [each for each in self._running if self._answer.has(each)]:
            del self._running[call_id]
        yield from self._answer.drop()

    def _finish(self, chunk: Chunk) -> Iterator[Operation]:
        """End the answer; the turn is over unless somebody else has to run or allow a call."""
        told = text(chunk.get("finishReason"))
        stop = _STOPS.get(told)
        yield from self._step_over(None if stop in ("end_turn", "tool_use") else stop)
        yield from self._kept(chunk)
        if stop == "error" and not self._has_failed:
            yield from self._failed("the answer ended in an error")
        elif stop in _ENDS:
            yield from self._over(_ENDS[stop])
        elif not self._running:
            yield from self.transcript.end_turn()

    def _abort(self, chunk: Chunk) -> Iterator[Operation]:
        yield from self._step_over("cancelled")
        yield from self._kept(chunk)
        yield from self._over("cancelled")

    def _error(self, chunk: Chunk) -> Iterator[Operation]:
        yield from self._step_over("error")
        yield from self._kept(chunk)
        yield from self._failed(text(chunk.get("errorText")))

    def _failed(self, message: str) -> Iterator[Operation]:
        self._has_failed = True
        yield from self.transcript.begin_turn()
        yield from self._over("error", {"name": "error", "message": message})

    def _over(self, reason: str, error: Mapping[str, Any] | None = None) -> Iterator[Operation]:
        self._running.clear()
        yield from self.transcript.end_turn(reason, error)

    # -- parts -------------------------------------------------------------------------------

    def _part(self, chunk: Chunk) -> Iterator[Operation]:
        """Begin, grow or end a text or a thought."""
        kind, _, what = text(chunk.get("type")).partition("-")
        key = f"{kind}:{text(chunk.get('id'))}"
        if what == "start" or not self._answer.has(key):
            yield from self._answer.begin(key, kind, _beside(chunk))
        if what == "delta":
            yield from self._answer.grow(key, _fragment(chunk, "delta"), _beside(chunk))
        elif what == "end":
            yield from self._answer.end_part(key, _beside(chunk), **_beside(chunk))

    def _whole(self, chunk: Chunk) -> Iterator[Operation]:
        """Add a file or a source."""
        url, media = chunk.get("url"), text(chunk.get("mediaType"))
        if chunk.get("type") == "file" and isinstance(url, str):
            rest = {key: each for key, each in chunk.items() if key not in ("type", "mediaType")}
            block = {**rest, "type": "file", "media_type": media, "url": url}
        else:
            block = {"type": "provider", "provider": "ai-sdk", "raw": dict(chunk)}
        yield from self._answer.add(block, {})

    # -- calls -------------------------------------------------------------------------------

    def _input_start(self, chunk: Chunk) -> Iterator[Operation]:
        call_id = text(chunk.get("toolCallId"))
        if call_id in self._running:  # told again: it waited for somebody to allow it
            yield from self._kept(chunk)
            return
        block: dict[str, Any] = {"name": text(chunk.get("toolName"))}
        if chunk.get("providerExecuted") is True:
            block["ran_by"] = "provider"
        yield from self._answer.begin(call_id, "tool-call", _beside(chunk), **block)
        self._running[call_id] = None

    def _input_delta(self, chunk: Chunk) -> Iterator[Operation]:
        call_id = text(chunk.get("toolCallId"))
        if self._answer.has(call_id):
            said = _fragment(chunk, "inputTextDelta")
            yield from self._answer.grow(call_id, said, _beside(chunk))
        else:
            yield from self._kept(chunk)

    def _input(self, chunk: Chunk) -> Iterator[Operation]:
        """End a call's input; one that came whole was not begun before."""
        call_id = text(chunk.get("toolCallId"))
        if call_id not in self._running:
            yield from self._input_start(chunk)
        if not self._answer.has(call_id):
            yield from self._kept(chunk)
            return
        ran = {"ran_by": "provider"} if chunk.get("providerExecuted") is True else {}
        arguments = arguments_text(chunk.get("input"))
        yield from self._answer.end_part(call_id, _beside(chunk), whole=arguments, **ran)
        if chunk.get("type") == "tool-input-error":
            yield from self._output(chunk)

    def _output(self, chunk: Chunk) -> Iterator[Operation]:
        """Write what came of a call, behind the answer that made it."""
        if chunk.get("preliminary") is True:
            yield from self._kept(chunk)
            return
        call_id, kind = text(chunk.get("toolCallId")), text(chunk.get("type"))
        if _is_unsettled(chunk):
            self._running.pop(call_id, None)
            yield from self._kept(chunk)
            return
        output = chunk.get("output")
        blocks = [text_block(output)] if isinstance(output, str) else []
        if not blocks and output is not None:
            blocks = [{"type": "json", "value": output}]
        used = ("type", "toolCallId", "toolName", "output", "errorText", "input")
        meta = {key: each for key, each in chunk.items() if key not in used}
        error = None
        if kind == "tool-output-denied":
            error = {"name": "denied", "message": "denied"}
        elif kind != "tool-output-available":
            error = {"name": "error", "message": text(chunk.get("errorText"))}
        self._running.pop(call_id, None)
        yield from self._after(call_id, partial(self._result, call_id, blocks, error, meta))

    def _result(
        self,
        call_id: str,
        blocks: list[dict[str, Any]],
        error: Mapping[str, Any] | None,
        meta: Mapping[str, Any],
    ) -> Iterator[Operation]:
        more = {"meta": dict(meta)} if meta else {}
        yield from self.transcript.begin_turn()
        yield self.transcript.result(call_id, blocks, error=error, more=more)

    def _after(self, call_id: str, write: Callable[[], Iterator[Operation]]) -> Iterator[Operation]:
        """Write something of a call: behind the open answer when the call is in it."""
        if self._answer.has(call_id):
            self._answer.after(call_id, write)
        else:
            yield from write()

    # -- approvals ---------------------------------------------------------------------------

    def _asked(self, chunk: Chunk) -> Iterator[Operation]:
        request_id, call_id = text(chunk.get("approvalId")), text(chunk.get("toolCallId"))
        self._approvals[request_id] = call_id
        used = ("type", "approvalId", "toolCallId")
        rest = {key: each for key, each in chunk.items() if key not in used}
        told = {**rest, "request_id": request_id, "input": {}}
        yield from self._after(call_id, partial(self._permission, "request", call_id, told))

    def _answered(self, chunk: Chunk) -> Iterator[Operation]:
        request_id = text(chunk.get("approvalId"))
        call_id = self._approvals.get(request_id)
        if call_id is None or not isinstance(chunk.get("approved"), bool):
            yield from self._kept(chunk)
            return
        used = ("type", "approvalId", "approved")
        rest = {key: each for key, each in chunk.items() if key not in used}
        decision = "allow" if chunk["approved"] else "deny"
        told = {**rest, "request_id": request_id, "decision": decision}
        yield from self._after(call_id, partial(self._permission, "answer", call_id, told))

    def _permission(self, what: str, call_id: str, told: Mapping[str, Any]) -> Iterator[Operation]:
        known = self.transcript.known(call_id)
        yield self.transcript.event(f"permission/{what}", {**told, "call_id": known})

    # -- others ------------------------------------------------------------------------------

    def _steering(self, chunk: Chunk) -> Iterator[Operation]:
        """Write what the user said while the answer came."""
        message_id = f"steering-{text(chunk.get('id'))}"
        parts = [mapping(each) for each in array(chunk.get("parts"))]
        blocks = [text_block(text(each.get("text"))) for each in parts if each.get("text")]
        queue = {"queue": "next-step", "added": [message_id], "claimed": [message_id]}
        yield self.transcript.event("inbox/spliced", queue)
        yield self.transcript.message(blocks, message_id=message_id, more={"parts": parts})

    _TYPES: ClassVar[Mapping[str, Callable[[Any, Chunk], Iterator[Operation]]]] = {
        "start": _start,
        "finish": _finish,
        "abort": _abort,
        "error": _error,
        "start-step": _step_start,
        "finish-step": _step_finish,
        "reset-step": _step_reset,
        **dict.fromkeys(("text-start", "text-delta", "text-end"), _part),
        **dict.fromkeys(("reasoning-start", "reasoning-delta", "reasoning-end"), _part),
        **dict.fromkeys(("file", "source-url", "source-document"), _whole),
        "tool-input-start": _input_start,
        "tool-input-delta": _input_delta,
        "tool-input-available": _input,
        "tool-input-error": _input,
        "tool-output-available": _output,
        "tool-output-error": _output,
        "tool-output-denied": _output,
        "tool-approval-request": _asked,
        "tool-approval-response": _answered,
        "steering-message": _steering,
    }


_BETWEEN = frozenset({"finish", "abort", "error", "message-metadata", "tool-approval-request"})
"""What may follow the end of a step and belong to it still."""


def _is_unsettled(chunk: Chunk) -> bool:
    """Whether it says that nothing came of a call: the protocol has no word for that."""
    return mapping(chunk.get("toolMetadata")).get("unsettled") is True


def _fragment(chunk: Chunk, field: str) -> str:
    """The piece of text as it came: half a character waits for its other half."""
    said = chunk.get(field)
    return said if isinstance(said, str) else ""


def _beside(chunk: Chunk) -> dict[str, Any]:
    return {key: each for key, each in chunk.items() if key not in _SAID}


def _recognises(sample: Sample) -> bool:
    """Whether the stream begins with chunks that only such a stream has."""
    first = text(sample.records[0].get("type")) if sample.records else ""
    return first in (*_SIGNS, "start") and any(map(_is_chunk, sample.records))


def _may_be_chunk(chunk: Chunk) -> bool:
    """Whether it may be one: a stream that has just begun says no more than that."""
    return _is_chunk(chunk) or chunk.get("type") == "start"


def _is_chunk(chunk: Chunk) -> bool:
    kind = text(chunk.get("type"))
    return kind in _SIGNS and all(field in chunk for field in _SIGNS[kind])


UI_MESSAGE_STREAM = Importer("UI message streams of the AI SDK", ui_message_stream, _recognises)
