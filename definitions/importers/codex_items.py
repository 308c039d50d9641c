"""How Codex spells the items of a rollout: messages, reasoning, calls of all kinds, results.

What has no counterpart is kept whole as the provider's. Not here: which record is what (`codex`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from definitions.importers.transcript import arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = [
    "Block",
    "answer_block",
    "blocks_of",
    "is_answer",
    "is_result",
    "ran_by_provider",
    "source_of",
    "usage_of",
]

Block: TypeAlias = dict[str, Any]

_TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
_BY_PROVIDER = frozenset({"web_search", "image_generation"})
_USAGE = {
    "input_tokens": "input_tokens",
    "cached_input_tokens": "cache_read_tokens",
    "cache_write_input_tokens": "cache_write_tokens",
    "output_tokens": "output_tokens",
    "reasoning_output_tokens": "reasoning_tokens",
}
_CONTEXTS = ("<environment_context", "<user_instructions", "# AGENTS.md", "<permissions", "<turn_")


def is_answer(item: Mapping[str, Any]) -> bool:
    """Whether an item is a part of a model's answer."""
    kind = text(item.get("type"))
    return item.get("role") == "assistant" or kind == "reasoning" or kind.endswith("_call")


def is_result(item: Mapping[str, Any]) -> bool:
    """Whether an item is what came of a call."""
    kind = text(item.get("type"))
    return kind.endswith("_output") or kind == "function_result"


def answer_block(item: Mapping[str, Any], minted: str) -> Block:
    """Say an item of an answer as a block; `minted` is the id of a call that has none."""
    kind = text(item.get("type"))
    if item.get("role") == "assistant":
        return text_block(_text(item.get("content", item.get("message"))))
    if kind == "reasoning":
        said = _text(item.get("summary")) or _text(item.get("content"))
        return {"type": "reasoning", "text": said, "raw": dict(item)}
    name = text(item.get("name")) or text(mapping(item.get("function")).get("name"))
    told = next((item[key] for key in ("arguments", "input", "action") if key in item), None)
    call: Block = {
        "type": "tool-call",
        "call_id": text(item.get("call_id")) or text(item.get("id")) or minted,
        "name": name or kind.removesuffix("_call"),
        "arguments": arguments_text(told),
    }
    return call | ({"ran_by": "provider"} if call["name"] in _BY_PROVIDER and not name else {})


def ran_by_provider(block: Mapping[str, Any]) -> bool:
    """Whether a block is a call that the provider ran: no result of it stands anywhere."""
    return block.get("ran_by") == "provider"


def blocks_of(content: object) -> list[Block]:
    """Say content in blocks; a text alone is one of them."""
    if content is None:
        return []
    if isinstance(content, str):
        return [text_block(content)]
    parts = content if isinstance(content, list) else [content]
    return [_block(part) for part in parts]


def _block(part: object) -> Block:
    said = mapping(part)
    if said.get("type") in _TEXTS and isinstance(said.get("text"), str):
        return text_block(said["text"])
    url = said.get("image_url")
    if isinstance(url, str):
        return {"type": "file", "media_type": "image/*", "url": url}
    return {"type": "provider", "provider": "openai", "raw": part}


def source_of(blocks: Sequence[Mapping[str, Any]]) -> Block | None:
    """Say who wrote what stands there as a user's message, when no person did."""
    first = text(mapping(blocks[0]).get("text")) if blocks else ""
    return {"kind": "environment"} if first.lstrip().startswith(_CONTEXTS) else None


def usage_of(event: Mapping[str, Any]) -> Block | None:
    """Name what the last answer cost, if the count of tokens says so."""
    raw = mapping(mapping(event.get("info")).get("last_token_usage"))
    if not raw:
        return None
    return {ours: raw[theirs] for theirs, ours in _USAGE.items() if theirs in raw} | {"raw": raw}


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(text(mapping(part).get("text")) for part in array(content))
