"""Messages of OpenAI's chat completions, as programs that call models through them keep them.

Not here: which program keeps them where (`openhands`, `openhands_log`, `swe_agent`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from definitions.importers.transcript import arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["Block", "answer_blocks", "content_blocks", "stop_of", "usage_of"]

Block: TypeAlias = dict[str, Any]

_STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "length",
    "content_filter": "content_filter",
}


def content_blocks(content: object) -> list[Block]:
    """Say content in blocks: one text, or parts; what is empty says nothing."""
    if isinstance(content, str):
        return [text_block(content)] if content else []
    return [_part(each) for each in array(content)]


def _part(part: object) -> Block:
    told = mapping(part)
    if told.get("type") in ("text", None) and isinstance(told.get("text"), str):
        return text_block(told["text"])
    image = told.get("image_url")
    url = mapping(image).get("url", image)
    if isinstance(url, str):
        return {"type": "file", "media_type": "image/*", "url": url}
    return {"type": "provider", "provider": "openai", "raw": part}


def answer_blocks(message: Mapping[str, Any], minted: str) -> list[Block]:
    """Say an answer in blocks; a call without an id is `minted`, with its place behind it."""
    blocks: list[Block] = []
    if said := text(message.get("reasoning_content")):
        blocks.append({"type": "reasoning", "text": said})
    blocks += [_thought(mapping(each)) for each in array(message.get("thinking_blocks"))]
    blocks += content_blocks(message.get("content"))
    for at, each in enumerate(array(message.get("tool_calls"))):
        call = mapping(each)
        called = mapping(call.get("function"))
        if called:
            call_id = text(call.get("id")) or f"{minted}.{at}"
            named = {"call_id": call_id, "name": text(called.get("name"))}
            arguments = arguments_text(called.get("arguments"))
            blocks.append({"type": "tool-call", **named, "arguments": arguments})
    return blocks


def _thought(block: Mapping[str, Any]) -> Block:
    made: Block = {"type": "reasoning", "text": text(block.get("thinking"))}
    signature = block.get("signature")
    return made | ({"signature": signature} if isinstance(signature, str) else {})


def stop_of(finish_reason: object, blocks: list[Block]) -> str | None:
    """Say why an answer stopped; with calls a plain stop is none: servers say so as well."""
    stop = _STOPS.get(text(finish_reason))
    if stop in ("end_turn", "tool_use"):
        return "tool_use" if any(each["type"] == "tool-call" for each in blocks) else "end_turn"
    return stop


def usage_of(told: object) -> Block | None:
    """Name the usage as we do, if there is one."""
    raw = mapping(told)
    if not raw:
        return None
    prompt = mapping(raw.get("prompt_tokens_details"))
    completion = mapping(raw.get("completion_tokens_details"))
    named = {
        "input_tokens": raw.get("prompt_tokens"),
        "output_tokens": raw.get("completion_tokens"),
        "cache_read_tokens": prompt.get("cached_tokens", raw.get("cache_read_input_tokens")),
        "cache_write_tokens": raw.get("cache_creation_input_tokens"),
        "reasoning_tokens": completion.get("reasoning_tokens"),
    }
    return {ours: count for ours, count in named.items() if type(count) is int} | {"raw": raw}
