"""How Codex spells the items of a rollout: messages, reasoning, calls of all kinds, results.

What has no counterpart is kept whole as the provider's. Not here: which record is what (`codex`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from definitions.importers.transcript import arguments_text, text_block
from definitions.providers.reading import array, mapping, text

__all__ = [
    "Block",
    "Outcome",
    "answer_block",
    "blocks_of",
    "is_answer",
    "is_result",
    "outcome_of",
    "provided",
    "rest_of",
    "source_of",
    "usage_of",
]

Block: TypeAlias = dict[str, Any]

_TEXTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")
_BY_PROVIDER = frozenset({"web_search", "image_generation"})
_ARGUMENTS = ("arguments", "input", "action")
_TOLD = frozenset(
    {
        *("type", "role", "content", "message", "summary", "name", "function", "call_id"),
        *("created_at", "output", "result", "tools", *_ARGUMENTS),
    }
)
"""What is told of an item by our names."""
_CODE = re.compile(
    r"(?:(?:Chunk ID|Wall time): [^\n]*\n)*(?:Exit code: |Process exited with code )(-?\d+)\n"
)
"""How a command's output begins in newer rollouts."""
_HEAD = 400
"""How far that beginning reaches, in characters."""
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


class Outcome(NamedTuple):
    """What came of a call."""

    content: list[Block]
    is_error: bool = False
    meta: Mapping[str, Any] = {}


def rest_of(item: Mapping[str, Any]) -> Block:
    """Give whatever else an item says, to stand beside as `item`."""
    rest = {key: value for key, value in item.items() if key not in _TOLD}
    return {"item": rest} if rest else {}


def answer_block(item: Mapping[str, Any], minted: str) -> Block:
    """Say an item of an answer as a block; `minted` is the id of a call that has none."""
    kind = text(item.get("type"))
    if item.get("role") == "assistant":
        said = _text(item.get("content", item.get("message")))
        return {**rest_of(item), **text_block(said)}
    if kind == "reasoning":
        said = _text(item.get("summary")) or _text(item.get("content"))
        return {"type": "reasoning", "text": said, "raw": dict(item)}
    name = text(item.get("name")) or text(mapping(item.get("function")).get("name"))
    call: Block = {
        **rest_of(item),
        "type": "tool-call",
        "call_id": text(item.get("call_id")) or text(item.get("id")) or minted,
        "name": name or kind.removesuffix("_call"),
        "arguments": _arguments(item),
    }
    return call | ({"ran_by": "provider"} if call["name"] in _BY_PROVIDER and not name else {})


def _arguments(item: Mapping[str, Any]) -> str:
    """Say arguments as the text of an object: a text that is none becomes the `input` of one."""
    if item.get("type") == "image_generation_call" and "revised_prompt" in item:
        return arguments_text({"prompt": item["revised_prompt"]})
    told: Any = next((item[key] for key in _ARGUMENTS if key in item), None)
    if item.get("type") == "custom_tool_call" and isinstance(told, str):
        return told if isinstance(_parsed(told), dict) else arguments_text({"input": told})
    return arguments_text(told) or "{}"


def _parsed(told: str) -> Any:
    if not told.lstrip().startswith("{"):
        return None
    try:
        return msgspec.json.decode(told)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None


def provided(block: Mapping[str, Any], item: Mapping[str, Any]) -> Outcome | None:
    """Give what came of a call that the provider ran: no other item tells it. None: of no other."""
    if block.get("ran_by") != "provider":
        return None
    picture = item.get("result") if block["name"] == "image_generation" else None
    made = isinstance(picture, str) and picture
    content: list[Block] = (
        [{"type": "file", "media_type": "image/png", "data": picture}] if made else []
    )
    return Outcome(content, item.get("status") == "failed")


def outcome_of(item: Mapping[str, Any]) -> Outcome:
    """Read what came of a call, and whether that is said to have failed.

    A command's failure stands in its code: beside its output, or at the beginning of it.
    """
    output = item.get("output", item.get("result", item.get("tools")))
    rest = rest_of(item)
    told: Mapping[str, Any] = mapping(_parsed(output) if isinstance(output, str) else output)
    about = mapping(told.get("metadata"))
    if about and isinstance(told.get("output"), str):
        failed = about.get("exit_code", 0) != 0
        return Outcome(blocks_of(told["output"]), failed, {**rest, "metadata": about})
    if "success" in told and "content" in told:
        return Outcome(blocks_of(told["content"]), told["success"] is False, rest)
    code = _CODE.match(output[:_HEAD]) if isinstance(output, str) else None
    return Outcome(blocks_of(output), code is not None and code[1] != "0", rest)


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
