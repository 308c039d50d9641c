"""What the AI SDK's UI message stream calls things: outputs, errors, parts, ends of messages.

Data, and functions of one value. The words are those of the package `ai`, 7. Not here: when a chunk
is sent (`ai_sdk`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assembler.engine.definition import Node
from assembler.engine.values import Json, Object, Text, thaw
from definitions.protocols.frames import Frame
from definitions.protocols.shown import text_of

__all__ = ["DATA", "end_of", "error_text", "file_of", "is_denied", "output_of", "steering_of"]

DATA = ("command", "compaction", "retry", "turn-limit")
"""Kinds of Nodes that are parts of their own, `data-<kind>`."""

_REASONS: Mapping[str, str] = {
    "end_turn": "stop",
    "tool_use": "tool-calls",
    "length": "length",
    "content_filter": "content-filter",
    "refusal": "content-filter",
    "error": "error",
    "cancelled": "interrupted",
}
_GAVE_UP = frozenset({"cancelled", "interrupted"})


def output_of(content: Json) -> Any:
    """Give the output of a call: its text, its value where it is one, else its blocks."""
    blocks = content if type(content) is tuple else ()
    kinds = [block.get("type") for block in blocks if type(block) is Object]
    if kinds == ["json"]:
        return thaw(blocks[0]["value"])
    if all(kind in ("text", "reasoning") for kind in kinds):
        return text_of(blocks)
    return thaw(blocks)


def is_denied(data: Object) -> bool:
    """Whether a call has its result because nobody allowed it."""
    error = data["error"]
    return type(error) is Object and error.get("name") == "denied"


def error_text(content: Json, error: Json) -> str:
    """Give what is shown of a failure: what the tool said, else its error."""
    said = text_of(content)
    if said or type(error) is not Object:
        return said or "error"
    return str(error.get("message") or error.get("name") or "error")


def file_of(block: Object) -> dict[str, Any] | None:
    """Give a file part; None of a file without content."""
    media, url, data = block.get("media_type"), block.get("url"), block.get("data")
    mime = media if type(media) is str and media else "application/octet-stream"
    if type(url) is str and url:
        return {"type": "file", "url": url, "mediaType": mime}
    if type(data) in (str, Text) and data:
        return {"type": "file", "url": f"data:{mime};base64,{data}", "mediaType": mime}
    return None


def steering_of(node: Node) -> Frame:
    """Give the chunk of what a person said while a turn went on."""
    blocks = [block for block in node.data["content"] if type(block) is Object]
    parts = [file_of(block) if block.get("type") == "file" else _text(block) for block in blocks]
    said = [part for part in parts if part is not None]
    return {"type": "steering-message", "id": node.id, "parts": said}


def _text(block: Object) -> dict[str, Any] | None:
    text = text_of((block,))
    return {"type": "text", "text": text} if text else None


def end_of(tail: Node | None, error: Node | None, stop: Json, *, is_news: bool) -> list[Frame]:
    """Give the chunks that end a message, from how its turn ended and why its last answer did.
    What is no news is not reported again."""
    status = "interrupted" if tail is None else tail.data["status"]
    if error is not None:
        end: Frame = {"type": "finish", "finishReason": "error"}
        told = {"type": "error", "errorText": error_text((), error.data["error"])}
        return [told, end] if is_news else [end]
    if status in _GAVE_UP:
        if is_news:
            return [{"type": "abort", "reason": status}]
        return [{"type": "finish", "finishReason": "interrupted"}]
    reason = "stop" if stop is None else _REASONS.get(str(stop), "other")
    return [{"type": "finish", "finishReason": reason}]
