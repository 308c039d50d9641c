"""What Claude Code printed as `stream-json`, made into recordings: logs of one side, or of both.

A file holds frames, one a line, one behind another or in a list; a log of both sides may put
something around each (`{direction, message}`), or all of them into one document (`{messages}`).
Not here: what a frame means (`definitions.providers.claude_code_agent`), the transcripts that the
program keeps (`claude_code`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from assembler.plugins import Importer, Sample
from definitions.importers.agents import AgentTranscript
from definitions.importers.reading import sequence
from definitions.importers.times import milliseconds
from definitions.importers.transcript import Operation
from definitions.providers.claude_code_agent import ClaudeCodeAgent
from definitions.providers.reading import array, is_object, mapping, text

__all__ = ["CLAUDE_CODE_STREAM", "claude_code_stream"]

Frame = Mapping[str, Any]

_ABOUT = "Imported from what Claude Code printed."
_WRAPPERS = ("message", "payload", "data", "frame")
"""Where logs have the frame, when something stands around it."""
_TIMES = ("timestamp", "time", "ts", "at")
_KINDS = frozenset(
    {
        "assistant",
        "user",
        "system",
        "result",
        "stream_event",
        "control_request",
        "control_response",
        "control_cancel_request",
    }
)


def claude_code_stream(lines: Iterable[bytes | str], *, name: str) -> Iterator[Operation]:
    """Turn a file into the operations of a recording, the header first; O(size).

    What a subagent says is a conversation of its own, named by the call that started it.
    """
    session = AgentTranscript(ClaudeCodeAgent())
    yield session.header(name, _ABOUT)
    number = 0
    for _, value in sequence(lines, name):
        for frame, time in _frames(value, None):
            number += 1
            session.at(str(number), time)
            yield from session.feed(frame)
    yield from session.finish()


def _frames(value: Any, time: int | None) -> Iterator[tuple[Frame, int | None]]:
    """Give the frames that a value of a file stands for, and when they were written."""
    if isinstance(value, list):
        for each in value:
            yield from _frames(each, time)
        return
    told = mapping(value)
    found = (milliseconds(told.get(key)) for key in _TIMES)
    time = next((each for each in found if each is not None), time)
    if text(told.get("type")) in _KINDS:
        yield told, time
    elif isinstance(told.get("messages"), list):
        rest = {key: each for key, each in told.items() if key != "messages"}
        if rest:
            yield {"type": "file", **rest}, time
        yield from _frames(told["messages"], time)
    elif inner := [told[key] for key in _WRAPPERS if _is_kind(told.get(key))]:
        yield from _frames(inner, time)
    else:
        yield (told or {"type": "odd", "value": value}), time


def _is_kind(value: object) -> bool:
    return is_object(value) and text(value.get("type")) in _KINDS


def _recognises(sample: Sample) -> bool:
    """Whether one of the first values is a frame, or holds some."""
    return any(map(_is_known, sample.values))


def _is_known(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_is_known, value))
    told = mapping(value)
    inner = [told[key] for key in _WRAPPERS if _is_kind(told.get(key))]
    return _is_frame(told) or any(map(_is_known, [*inner, *array(told.get("messages"))]))


def _is_frame(frame: Frame) -> bool:
    kind = text(frame.get("type"))
    if kind in ("assistant", "user"):
        is_record = "parentUuid" in frame or "isSidechain" in frame
        return "parent_tool_use_id" in frame and is_object(frame.get("message")) and not is_record
    if kind == "system":
        return frame.get("subtype") == "init" and "session_id" in frame
    if kind == "result":
        return "subtype" in frame and "session_id" in frame and "num_turns" in frame
    if kind == "stream_event":
        return "parent_tool_use_id" in frame and is_object(frame.get("event"))
    if kind == "control_request":
        return "request_id" in frame and bool(text(mapping(frame.get("request")).get("subtype")))
    response = mapping(frame.get("response"))
    return kind == "control_response" and "request_id" in response and "subtype" in response


CLAUDE_CODE_STREAM = Importer("what Claude Code printed", claude_code_stream, _recognises)
