"""A step of a Kimi wire: the parts of its answer, its calls, what it cost, what came of the calls.

Not here: where a step begins and ends in the file (`kimi`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator

from definitions.importers.chat_lines import Block, Record, blocks_of, call_of, rest, usage_of
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation, Transcript
from definitions.providers.reading import mapping, text

__all__ = ["Step", "approval", "result"]

_STOPS = {
    "end_turn": "end_turn",
    "completed": "end_turn",
    "tool_use": "tool_use",
    "tool_calls": "tool_use",
    "max_tokens": "length",
    "truncated": "length",
    "length": "length",
    "filtered": "content_filter",
    "paused": "pause",
    "cancelled": "cancelled",
    "error": "error",
}
_USAGE = {
    "inputOther": "input_tokens",
    "output": "output_tokens",
    "inputCacheRead": "cache_read_tokens",
    "inputCacheCreation": "cache_write_tokens",
}


class Step:
    """One step while it is told. `held` are the records that stand behind its answer."""

    def __init__(self, number: int, event: Record) -> None:
        self.held: list[tuple[int, Record]] = []
        self._number = number
        self._event = event
        self._time: int | None = None
        self._blocks: list[Block] = []

    def hears(self, number: int, record: Record, kind: str, event: Record) -> bool:
        """Take a part of the answer; False for what is none."""
        if kind == "content.part":
            self._blocks += blocks_of([event.get("part")], "kimi")
        elif kind == "tool.call":
            self._blocks.append(_call(event, f"call-{number}"))
        else:
            return False
        self._time = milliseconds(record.get("time"))
        return True

    def write(self, transcript: Transcript, end: Record) -> Generator[Operation, None, str | None]:
        """Write the answer, and say why it stopped; `end` is empty for a step without an end."""
        reason = text(end.get("finishReason"))
        if not self._blocks and not end:
            return None
        transcript.at(str(self._number), self._time)
        # A call is told when it is made, so it was made also where the step was cut.
        called = any(block["type"] == "tool-call" for block in self._blocks)
        stop = _STOPS.get(reason, "other") if reason else None if called else "cancelled"
        more = rest(end, "type", "uuid", "usage", "finishReason", "turnId", "step")
        more |= {"stop_detail": reason} if reason else {"interrupted": True}
        yield from transcript.answer(
            self._blocks,
            message_id=text(self._event.get("uuid")) or None,
            stop_reason=stop,
            usage=usage_of(end.get("usage"), _USAGE),
            more=more,
        )
        return stop


def _call(event: Record, minted: str) -> Block:
    taken = ("type", "uuid", "turnId", "step", "stepUuid", "toolCallId", "name", "args")
    meta = rest(event, *taken)
    return call_of(event, minted) | ({"meta": meta} if meta else {})


def result(transcript: Transcript, event: Record) -> Operation:
    """Write what came of a call."""
    told = mapping(event.get("result"))
    output = told.get("output")
    known = isinstance(output, (str, list)) or output is None
    content = blocks_of(output, "kimi") if known else [{"type": "json", "value": output}]
    meta = rest(told, "output", "isError")
    return transcript.result(
        text(event.get("toolCallId")),
        content,
        is_error=told.get("isError") is True,
        more={"meta": meta} if meta else {},
    )


def approval(transcript: Transcript, record: Record, number: int) -> Iterator[Operation]:
    """Write what a person was asked about a call and answered: the wire has both in one record."""
    told = mapping(record.get("result"))
    call_id = transcript.known(text(record.get("toolCallId")))
    named = {"call_id": call_id, "request_id": f"approval-{number}"}
    more = rest(record, "type", "time", "toolCallId", "agentId", "result")
    yield transcript.event("permission/request", {**more, **named, "input": {}})
    allows = text(told.get("decision")).startswith("approve")
    answer = {**named, "decision": "allow" if allows else "deny"}
    remember = {"remember": True} if told.get("scope") == "session" else {}
    yield transcript.event("permission/answer", {**rest(told, "decision"), **answer, **remember})
