"""What Claude Code's frames say, field by field: functions of one value.

The words are those of `claude --output-format stream-json`, as in `claude-agent-sdk` 0.2.189.
Nothing here raises. Not here: when something is written (`claude_code_chat`, `claude_code_agent`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from definitions.providers.reading import array, is_object, mapping, natural, plain, text

__all__ = [
    "blocks_of",
    "content_of",
    "ending_of",
    "goes_on",
    "is_interruption",
    "is_result",
    "is_summary",
    "output_of",
    "rest_of",
    "said_in",
    "source_of",
]

Block = dict[str, Any]
Frame = Mapping[str, Any]

_INTERRUPTED = "[Request interrupted by user"
_CONTINUED = "This session is being continued from a previous conversation"
_PERSONS = frozenset({"", "cli", "user", "human"})
_COUNTS = (
    "input_tokens",
    "output_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
)
_OUTPUT = re.compile(r"<(local-command|bash)-(stdout|stderr)>(.*?)</\1-\2>", re.DOTALL)


def content_of(frame: Frame) -> list[Any]:
    """Give the blocks of a frame's message; a text alone is one."""
    content = mapping(frame.get("message")).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(array(content))


def is_result(block: object) -> bool:
    """Whether a block says what came of a call."""
    return is_object(block) and block.get("type") == "tool_result"


def said_in(blocks: Sequence[object]) -> str:
    """Give the text of blocks."""
    return "".join(text(mapping(block).get("text")) for block in blocks)


def blocks_of(content: object) -> list[Block]:
    """Say content as our blocks; what we do not model is kept whole."""
    if isinstance(content, str):
        return [{"type": "text", "text": text(content)}]
    return [_block(each) for each in array(content)]


def _block(told: object) -> Block:
    if isinstance(told, str):
        return {"type": "text", "text": text(told)}
    block = mapping(told)
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return {"type": "text", "text": text(block["text"])}
    source = mapping(block.get("source"))
    if block.get("type") in ("image", "document") and isinstance(source.get("data"), str):
        media = text(source.get("media_type")) or "application/octet-stream"
        return {"type": "file", "media_type": media, "data": text(source["data"])}
    return {"type": "provider", "provider": "anthropic", "raw": plain(told)}


def goes_on(more: object) -> bool:
    """Whether what the program knows of a result says that the call goes on in the background."""
    told = mapping(more)
    launched = told.get("status") == "async_launched" or told.get("isAsync") is True
    return launched or bool(told.get("backgroundTaskId")) or told.get("detachedToolCall") is True


def source_of(frame: Frame) -> dict[str, Any] | None:
    """Say who wrote a message, when no person did."""
    kind = text(mapping(frame.get("origin")).get("kind"))
    return None if kind in _PERSONS else {"kind": kind}


def is_interruption(said: str) -> bool:
    """Whether a message is the program's note that it was interrupted."""
    return said.startswith(_INTERRUPTED)


def is_summary(frame: Frame, said: str) -> bool:
    """Whether a message is the summary of what was before it."""
    return frame.get("isCompactSummary") is True or said.startswith(_CONTINUED)


def output_of(said: str) -> tuple[str, bool] | None:
    """Read what a command of the user printed, and whether that was on its error stream alone."""
    found = _OUTPUT.findall(said) if said.lstrip().startswith("<") else []
    if not found:
        return None
    printed = [(stream, part) for _, stream, part in found if part.strip()]
    is_error = bool(printed) and all(stream == "stderr" for stream, _ in printed)
    return "".join(part for _, part in printed), is_error


def ending_of(frame: Frame, *, interrupted: bool) -> tuple[str, dict[str, Any] | None]:
    """Say how a turn ended by its `result`: the reason, and the error when it failed."""
    subtype = text(frame.get("subtype"))
    is_failed = subtype.startswith("error") or frame.get("is_error") is True
    is_aborted = text(frame.get("terminal_reason")).startswith("aborted")
    if is_aborted or (is_failed and interrupted):
        return "cancelled", None
    if subtype.startswith("error_max_"):
        return "limit", None
    if not is_failed:
        return "completed", None
    said = [text(frame.get("result")), *map(text, array(frame.get("errors")))]
    name = subtype if subtype.startswith("error") else "error"
    return "error", {"name": name, "message": "; ".join(filter(None, said)) or subtype}


def rest_of(usage: Frame, told: Sequence[Frame]) -> dict[str, Any]:
    """Give what is left of the usage of a turn when what its answers told is taken away."""
    rest = dict(usage)
    for name in _COUNTS:
        counts = [natural(each.get(name)) or 0 for each in told]
        whole = natural(usage.get(name))
        if whole is not None:
            rest[name] = max(0, whole - sum(counts))
    return rest
