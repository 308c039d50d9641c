"""How Claude Code spells what is inside of a record: blocks, usage, commands, errors.

A block without a counterpart is kept whole as the provider's. Not here: the records themselves
(`claude_code_records`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from definitions.importers.transcript import arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = [
    "Block",
    "answer_block",
    "command_of",
    "error_of",
    "output_of",
    "prompt_blocks",
    "result_of",
    "stop_of",
    "usage_of",
]

Block: TypeAlias = dict[str, Any]

_STOPS = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "refusal",
    "aborted": "cancelled",
}
_USAGE = {
    "input_tokens": "input_tokens",
    "output_tokens": "output_tokens",
    "cache_read_input_tokens": "cache_read_tokens",
    "cache_creation_input_tokens": "cache_write_tokens",
}
_TAG = r"<{0}>(.*?)</{0}>"
_NAME = re.compile(_TAG.format("command-name"), re.DOTALL)
_ARGUMENTS = re.compile(_TAG.format("command-args"), re.DOTALL)
_SHELL = re.compile(_TAG.format("bash-input"), re.DOTALL)
_OUTPUT = re.compile(r"<(local-command|bash)-(stdout|stderr)>(.*?)</\1-\2>", re.DOTALL)


def answer_block(block: Mapping[str, Any], name: Callable[[Mapping[str, Any]], str]) -> Block:
    """Say one block of an answer as ours; `name` gives a call its id."""
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return text_block(block["text"])
    if kind == "thinking" and isinstance(block.get("thinking"), str):
        signature = block.get("signature")
        made: Block = {"type": "reasoning", "text": block["thinking"]}
        return made | ({"signature": signature} if isinstance(signature, str) else {})
    if kind == "tool_use":
        made = {"type": "tool-call", "call_id": name(block), "name": text(block.get("name"))}
        return made | {"arguments": arguments_text(block.get("input"))}
    return {"type": "provider", "provider": "anthropic", "raw": dict(block)}


def prompt_blocks(content: object) -> list[Block]:
    """Say what a user sent in blocks."""
    return [_block(each) for each in array(content)]


def _block(part: object) -> Block:
    if isinstance(part, str):
        return text_block(part)
    block = mapping(part)
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return text_block(block["text"])
    source = mapping(block.get("source"))
    media, data = source.get("media_type"), source.get("data")
    if block.get("type") in ("image", "document") and isinstance(data, str):
        return {"type": "file", "media_type": _media_of(block, media), "data": data}
    url = source.get("url")
    if block.get("type") in ("image", "document") and isinstance(url, str):
        return {"type": "file", "media_type": _media_of(block, media), "url": url}
    return {"type": "provider", "provider": "anthropic", "raw": part}


def _media_of(block: Mapping[str, Any], told: object) -> str:
    return text(told) or ("image/*" if block.get("type") == "image" else "application/pdf")


def result_of(block: Mapping[str, Any]) -> list[Block]:
    """Say the content of a result in blocks."""
    content = block.get("content")
    if isinstance(content, str):
        return [text_block(content)]
    return [] if content is None else prompt_blocks(content)


def stop_of(told: str) -> str | None:
    """Say why an answer stopped, if it says so."""
    return _STOPS.get(told, "other") if told else None


def usage_of(told: object) -> Block | None:
    """Name the usage as we do, if there is one."""
    raw = mapping(told)
    if not raw:
        return None
    return {ours: raw[theirs] for theirs, ours in _USAGE.items() if theirs in raw} | {"raw": raw}


def command_of(said: str) -> tuple[str, str] | None:
    """Read a command that the user gave to the program: its name and arguments."""
    if (shell := _SHELL.search(said)) is not None:
        return "!", shell.group(1).strip()
    if (found := _NAME.search(said)) is None:
        return None
    arguments = _ARGUMENTS.search(said)
    name = found.group(1).strip().removeprefix("/")
    return name, arguments.group(1).strip() if arguments else ""


def output_of(said: str) -> tuple[str, bool] | None:
    """Read what a command printed, and whether that was on its error stream alone."""
    found = _OUTPUT.findall(said) if said.lstrip().startswith("<") else []
    if not found:
        return None
    printed = [(stream, part) for _, stream, part in found if part.strip()]
    is_error = bool(printed) and all(stream == "stderr" for stream, _ in printed)
    return "".join(part for _, part in printed), is_error


def error_of(record: Mapping[str, Any], message: Mapping[str, Any]) -> Block:
    """Say what went wrong between the program and the model."""
    parts = array(message.get("content"))
    said = "".join(text(mapping(part).get("text")) for part in parts)
    return {"name": text(record.get("error")) or "api-error", "message": said}
