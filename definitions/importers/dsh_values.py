"""How the session log of DeepSeek Harness spells what is inside of a record, and how we do.

Here live blocks of content, arguments, usage, errors, and the words for how something ended. A
field without a counterpart keeps its name beside ours, a block its whole content as `provider`.
Not here: the records themselves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from definitions.importers.reading import Data, Fields, strict_json

__all__ = [
    "Place",
    "arguments_of",
    "block_of",
    "content_of",
    "failure_of",
    "implied",
    "input_of",
    "is_repaired",
    "named",
    "outcome_of",
    "place_of",
    "reason_of",
    "stop_of",
    "usage_of",
    "with_rest",
]

Place: TypeAlias = tuple[int, int]  # turn, step

_STOPS = {
    "stop": "end_turn",
    "tool-calls": "tool_use",
    "length": "length",
    "content-filter": "content_filter",
    "refusal": "refusal",
    "pause": "pause",
    "aborted": "cancelled",
    "cancelled": "cancelled",
    "error": "error",
}
_OUTCOMES = {"error": "failed", "aborted": "interrupted", "cancelled": "interrupted"}
_REASONS = {
    "completed": "completed",
    "aborted": "cancelled",
    "cancelled": "cancelled",
    "error": "error",
    "limit": "limit",
    "max-steps": "limit",
    "interrupted": "interrupted",
}
_USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_tokens",
    "cacheWriteTokens": "cache_write_tokens",
    "reasoningTokens": "reasoning_tokens",
}
_REPAIRED = ("TOOL_OUTCOME_UNKNOWN", "TOOL_NOT_STARTED")


def place_of(holder: Fields) -> Place:
    """Say the turn and the step that a record is of."""
    return holder.integer("turn"), holder.integer("step")


def with_rest(told: Data, rest: Data) -> Data:
    """Put the rest behind what was told; of one name the told one wins."""
    return {**told, **rest, **told}


def outcome_of(finish: str | None) -> str:
    """Say how a stream ended, as far as it says so; one that just stops was interrupted."""
    return "interrupted" if finish is None else _OUTCOMES.get(finish, "completed")


def is_repaired(error: Any) -> bool:
    """Whether a repair wrote this, because the process that ran the tool was gone."""
    return isinstance(error, dict) and error.get("code") in _REPAIRED


def named(mine: str, told: Any) -> dict[str, str]:
    """Name a message as we do, and as the log did where that is another name."""
    renamed = isinstance(told, str) and told not in ("", mine)
    return {"message_id": mine, **({"source_message_id": told} if renamed else {})}


def implied(data: Fields, role: str) -> tuple[str, ...]:
    """Leave out a role that the type of the event says already."""
    return ("role",) if data.values.get("role") == role else ()


def content_of(holder: Fields, key: str = "content") -> list[Data]:
    """Say content in blocks; a text alone is one of them."""
    if isinstance(holder.values.get(key), str):
        return [{"type": "text", "text": holder.values[key]}]
    return [block_of(block) for block in holder.each(key)]


def block_of(block: Fields) -> Data:
    """Say one block as ours, or whole as the provider's own."""
    kind = block.values.get("type")
    make = _BLOCKS.get(kind) if isinstance(kind, str) else None
    made = None if make is None else make(block)
    return made or {"type": "provider", "provider": "dsh", "raw": block.values}


def _text_block(block: Fields) -> Data:
    return {**block.values, "text": block.fragment("text")}


def _call_block(block: Fields) -> Data:
    return {
        "type": "tool-call",
        "call_id": block.text("id"),
        "name": block.text("name"),
        "arguments": arguments_of(block.values.get("arguments")),
        **block.rest("type", "id", "name", "arguments"),
    }


def _file_block(block: Fields) -> Data | None:
    """Make a file, or None: what only names an attachment has nothing to load it from."""
    media_type = block.values.get("mediaType")
    source: Data = {key: block.values[key] for key in ("url", "data") if key in block.values}
    if not isinstance(media_type, str) or len(source) != 1:
        return None
    return {"type": "file", "media_type": media_type, **source, **block.rest("type", "mediaType")}


_BLOCKS: Mapping[str, Callable[[Fields], Data | None]] = {
    "text": _text_block,
    "reasoning": _text_block,
    "tool-call": _call_block,
    "image": _file_block,
    "file": _file_block,
}


def arguments_of(value: Any) -> str:
    """Arguments as JSON text: calls of a model have it, calls of a program have the value."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def input_of(arguments: str) -> Data:
    """Read arguments back into an object; {} for those that are none."""
    try:
        value = strict_json(arguments)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def usage_of(holder: Fields) -> Data:
    """Name the usage as we do, if there is one."""
    if holder.values.get("usage") is None:
        return {}
    raw = holder.inner("usage").values
    named = {ours: raw[theirs] for theirs, ours in _USAGE.items() if theirs in raw}
    return {"usage": {**named, "raw": raw}}


def _error_of(error: Mapping[str, Any]) -> Data:
    code = error.get("code")
    return {"name": code if isinstance(code, str) else "Error", "message": "", **error}


def reason_of(data: Fields) -> Data:
    """Say why a turn ended, and whatever else its reason told."""
    reason = data.inner("reason")
    kind = reason.text("kind")
    error = reason.inner("error").values if reason.values.get("error") is not None else None
    word = _REASONS.get(kind, "interrupted" if error is None else "error")
    told: Data = {"reason": word}
    if error is not None:
        told["error"] = _error_of(error)
    if word != kind or reason.rest("kind", "error"):
        told["reason_detail"] = reason.values
    return told


def failure_of(failure: Any) -> str:
    """Say in one text why a request failed; the whole of it stands beside that."""
    told = [failure.get("message"), failure.get("code")] if isinstance(failure, dict) else []
    return next((text for text in told if isinstance(text, str) and text), "failed")


def stop_of(finish: str | None, content: list[Data], *, interrupted: bool) -> dict[str, str]:
    """Say why an answer stopped: its stream knows best, where it told its `finish`."""
    if finish is not None:
        return {"stop_reason": _STOPS.get(finish, "other"), "stop_detail": finish}
    if interrupted:
        return {"stop_reason": "cancelled"}
    calls = any(block["type"] == "tool-call" for block in content)
    return {"stop_reason": "tool_use" if calls else "end_turn"}
