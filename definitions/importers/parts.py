"""Messages as Gemini spells them, in the sessions of programs that were made from its own.

Not here: which program keeps them how (`qwen_code`, `gemini_cli`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from definitions.importers.transcript import arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = ["Block", "answer_blocks", "results", "usage_of"]

Block: TypeAlias = dict[str, Any]

_USAGE = {
    "promptTokenCount": "input_tokens",
    "candidatesTokenCount": "output_tokens",
    "cachedContentTokenCount": "cache_read_tokens",
    "thoughtsTokenCount": "reasoning_tokens",
    "input": "input_tokens",
    "output": "output_tokens",
    "cached": "cache_read_tokens",
    "thoughts": "reasoning_tokens",
}


def answer_blocks(parts: object, minted: str) -> list[Block]:
    """Say parts as blocks; a call without an id is `minted`, with its place behind it."""
    return [_block(mapping(part), f"{minted}.{at}") for at, part in enumerate(array(parts))]


def _block(part: Mapping[str, Any], minted: str) -> Block:
    called = mapping(part.get("functionCall"))
    data = mapping(part.get("inlineData"))
    if called:
        named = {"call_id": text(called.get("id")) or minted, "name": text(called.get("name"))}
        return {"type": "tool-call", **named, "arguments": arguments_text(called.get("args", {}))}
    if isinstance(part.get("text"), str):
        if part.get("thought") is True:
            return {"type": "reasoning", "text": part["text"]}
        return text_block(part["text"])
    if isinstance(data.get("data"), str):
        return {"type": "file", "media_type": text(data.get("mimeType")), "data": data["data"]}
    return {"type": "provider", "provider": "gemini", "raw": dict(part)}


def results(parts: object) -> list[tuple[str, list[Block], bool]]:
    """Read the results among parts: the call's id, what came of it, whether it failed."""
    found = (mapping(mapping(part).get("functionResponse")) for part in array(parts))
    return [_result(each) for each in found if each]


def _result(told: Mapping[str, Any]) -> tuple[str, list[Block], bool]:
    response = mapping(told.get("response"))
    for key in ("output", "error"):
        if isinstance(response.get(key), str):
            return text(told.get("id")), [text_block(response[key])], key == "error"
    content: Sequence[Block] = [{"type": "json", "value": dict(response)}] if response else []
    return text(told.get("id")), list(content), False


def usage_of(told: object) -> Block | None:
    """Name the usage as we do, if there is one."""
    raw = mapping(told)
    if not raw:
        return None
    return {ours: raw[theirs] for theirs, ours in _USAGE.items() if theirs in raw} | {"raw": raw}
