"""Frames of Claude Code's stream-json, written by hand, and what an agent made of them.

Not here: tests.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from assembler.codec import plain
from definitions.providers import AgentDelta, AgentEvent, AgentPiece, ClaudeCodeAgent

__all__ = [
    "allowed",
    "asked",
    "call",
    "deltas",
    "denied",
    "ended",
    "events",
    "frame",
    "init",
    "prompt",
    "read",
    "returned",
    "said",
    "settled",
    "streamed",
    "system",
    "text",
    "types",
]

Json = dict[str, Any]

USAGE = {"input_tokens": 3, "output_tokens": 1}


def frame(type: str, **fields: Any) -> Json:
    return {"type": type, "session_id": "s1", **fields}


def system(subtype: str, **fields: Any) -> Json:
    return frame("system", subtype=subtype, **fields)


def init(**fields: Any) -> Json:
    return system("init", model="small", **fields)


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(id: str, name: str = "Bash", **given: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": given}


def prompt(words: Any, parent: str | None = None, **fields: Any) -> Json:
    message = {"role": "user", "content": words}
    return frame("user", message=message, parent_tool_use_id=parent, **fields)


def said(id: str, *blocks: Json, parent: str | None = None, **fields: Any) -> Json:
    message = {"id": id, "model": "small", "content": list(blocks), "stop_reason": None}
    message["usage"] = USAGE
    return frame("assistant", message=message, parent_tool_use_id=parent, **fields)


def returned(id: str, content: Any = "done", parent: str | None = None, **fields: Any) -> Json:
    is_error = fields.pop("is_error", False)
    block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}
    return prompt([block], parent, **fields)


def ended(subtype: str = "success", **fields: Any) -> Json:
    told = {"is_error": subtype != "success", "num_turns": 1, **fields}
    return frame("result", subtype=subtype, **told)


def asked(request: str, id: str, tool: str = "Bash", **more: Any) -> Json:
    given = more.pop("input", {})
    told = {"subtype": "can_use_tool", "tool_name": tool, "input": given, "tool_use_id": id, **more}
    return {"type": "control_request", "request_id": request, "request": told}


def answered(request: str, **answer: Any) -> Json:
    response = {"subtype": "success", "request_id": request, "response": answer}
    return {"type": "control_response", "response": response}


def allowed(request: str, **more: Any) -> Json:
    return answered(request, behavior="allow", **more)


def denied(request: str, message: str = "No.", **more: Any) -> Json:
    return answered(request, behavior="deny", message=message, **more)


def streamed(
    id: str, *blocks: Json, end: bool = True, model: str = "small", parent: str | None = None
) -> list[Json]:
    """The events of a message, and the frame of each block that is finished. Without its `end` it
    broke off inside of its last block."""
    start = {"id": id, "model": model, "usage": USAGE, "content": []}
    told: list[Json] = [{"type": "message_start", "message": start}]
    for index, block in enumerate(blocks):
        place = {"index": index}
        if block["type"] == "text":
            opened, delta = text(""), {"type": "text_delta", "text": block["text"]}
        else:
            given = json.dumps(block["input"])
            opened, delta = {**block, "input": {}}, {"type": "input_json_delta"}
            delta["partial_json"] = given if end or index < len(blocks) - 1 else given[:-1]
        told += [
            {"type": "content_block_start", **place, "content_block": opened},
            {"type": "content_block_delta", **place, "delta": delta},
        ]
        if end or index < len(blocks) - 1:
            told += [said(id, block, parent=parent), {"type": "content_block_stop", **place}]
    if end:
        stop = "tool_use" if blocks[-1]["type"] == "tool_use" else "end_turn"
        usage = {"output_tokens": 9}
        told.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage})
        told.append({"type": "message_stop"})
    return [
        each
        if each["type"] == "assistant"
        else frame("stream_event", event=each, parent_tool_use_id=parent)
        for each in told
    ]


# What came of them


def flat(frames: Iterable[Any]) -> Iterable[Any]:
    for each in frames:
        if isinstance(each, list):
            yield from each
        else:
            yield each


def read(*frames: Any, reason: str | None = None, turn: int = 0) -> list[AgentPiece]:
    agent = ClaudeCodeAgent(turn=turn)
    pieces = [piece for each in flat(frames) for piece in agent.feed(each)]
    return [*pieces, *agent.finish(reason)]


def events(pieces: Iterable[AgentPiece], kind: str, beside: str | None = None) -> list[Json]:
    return [
        plain(piece.data)
        for piece in pieces
        if isinstance(piece, AgentEvent) and (piece.type, piece.conversation) == (kind, beside)
    ]


def types(pieces: Iterable[AgentPiece], beside: str | None = None) -> list[str]:
    """The types of the events that are no frames kept as they came."""
    return [
        piece.type
        for piece in pieces
        if isinstance(piece, AgentEvent)
        and piece.conversation == beside
        and not piece.type.startswith("claude-code/")
    ]


def deltas(pieces: Iterable[AgentPiece], kind: str) -> list[Json]:
    return [
        plain(piece.data)
        for piece in pieces
        if isinstance(piece, AgentDelta) and piece.type == kind
    ]


def settled(pieces: Iterable[AgentPiece]) -> list[tuple[str, str]]:
    return [
        (piece.attempt, piece.outcome.value)
        for piece in pieces
        if not isinstance(piece, (AgentDelta, AgentEvent))
    ]
