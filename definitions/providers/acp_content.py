"""What agents say in ACP's blocks, as blocks of ours.

Functions of one value; the words are those of the Agent Client Protocol
(https://agentclientprotocol.com/protocol/v1/content and /tool-calls). Nothing here raises. Not
here: when something is said (`acp_agent`), and ACP for editors (`definitions.protocols`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from definitions.providers.reading import array, is_object, mapping, plain, text

__all__ = ["block_of", "blocks_of", "card_blocks", "card_text", "terminals_of", "usage_of"]

Block = dict[str, Any]

_UNKNOWN = "application/octet-stream"
_USAGE = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "cachedReadTokens": "cache_read_tokens",
    "cachedWriteTokens": "cache_write_tokens",
    "thoughtTokens": "reasoning_tokens",
}


def block_of(told: object) -> Block | None:
    """Give the block of a ContentBlock; one that we do not model is kept whole."""
    if not is_object(told):
        return None
    kind = told.get("type")
    if kind == "text" and isinstance(told.get("text"), str):
        return {"type": "text", "text": text(told["text"])}
    if kind in ("image", "audio"):
        return _file(told, f"{kind}/*", data=told.get("data"))
    if kind == "resource_link":
        return _file(told, _UNKNOWN)
    inner = mapping(told.get("resource"))
    if kind == "resource" and isinstance(inner.get("blob"), str):
        return _file(inner, _UNKNOWN, data=inner["blob"])
    if kind == "resource" and isinstance(inner.get("text"), str):
        return {"type": "text", "text": text(inner["text"]), "raw": plain(told)}
    return {"type": "provider", "provider": "acp", "raw": plain(told)}


def _file(told: Mapping[str, Any], media: str, data: object = None) -> Block:
    block: Block = {"type": "file", "media_type": text(told.get("mimeType")) or media}
    if text(told.get("name")):
        block["name"] = text(told["name"])
    if text(told.get("uri")):
        block["url"] = text(told["uri"])
    if text(data):
        block["data"] = text(data)
    return block


def blocks_of(told: object) -> list[Block]:
    """Give the blocks of a list of ContentBlocks, or of one alone."""
    found = [told] if is_object(told) else array(told)
    return [block for each in found if (block := block_of(each)) is not None]


def card_blocks(content: Iterable[Any]) -> list[Block]:
    """Give what a card of a call shows; a terminal is only named there, and has no block."""
    found = []
    for each in map(mapping, content):
        if each.get("type") == "content":
            found += blocks_of(each.get("content"))
        elif each and each.get("type") != "terminal":
            found.append({"type": "json", "value": plain(each)})
    return [block for block in found if block.get("text") != ""]


def card_text(content: Iterable[Any]) -> str:
    """Give the text that a card shows."""
    return "".join(text(block.get("text")) for block in card_blocks(content))


def terminals_of(content: Iterable[Any]) -> list[str]:
    """Give the ids of the terminals that a card names."""
    cards = map(mapping, content)
    return [text(each.get("terminalId")) for each in cards if each.get("type") == "terminal"]


def usage_of(told: object) -> Block | None:
    """Name the usage as we do, if there is one."""
    raw = mapping(told)
    if not raw:
        return None
    named = {ours: raw[theirs] for theirs, ours in _USAGE.items() if type(raw.get(theirs)) is int}
    return named | {"raw": plain(raw)}
