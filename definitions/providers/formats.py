"""What a stream is, by what stands in its first chunks: the formats that have an adapter.

Here lives one sign for each format, which its own chunks show and no other's. Not here: what a
chunk means (each adapter).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any

__all__ = ["FORMATS", "format_of"]

Chunk = Mapping[str, Any]

FORMATS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic-messages": "anthropic",
        "bedrock-converse": "bedrock",
        "cohere-v2": "cohere",
        "google-generate": "gemini",
        "google-interactions": "gemini_interactions",
        "ollama-chat": "ollama",
        "openai-chat": "openai_chat",
        "openai-responses": "openai_responses",
    }
)
"""The adapter of each format of streams."""

_LOOKED_AT = 5
"""So many chunks are looked at; the first of a stream may be a sign of life."""

_CONVERSE = ("messageStart", "contentBlockStart", "contentBlockDelta", "messageStop")


def format_of(chunks: Iterable[Chunk]) -> str | None:
    """Give the name of a format that has an adapter; None for whatever else it is."""
    for chunk in islice(chunks, _LOOKED_AT):
        for name, fits in _SIGNS.items():
            if fits(chunk):
                return name
    return None


def _is_messages(chunk: Chunk) -> bool:
    if chunk.get("type") == "message_start":
        return isinstance(chunk.get("message"), dict)
    return chunk.get("type") == "message" and isinstance(chunk.get("content"), list)


def _is_converse(chunk: Chunk) -> bool:
    if isinstance(chunk.get("output"), dict):
        return "stopReason" in chunk
    is_named = chunk.get("type") in _CONVERSE
    return is_named or any(isinstance(chunk.get(name), dict) for name in _CONVERSE)


def _is_cohere(chunk: Chunk) -> bool:
    if chunk.get("type") == "message-start":
        return isinstance(chunk.get("delta"), dict)
    return isinstance(chunk.get("message"), dict) and "finish_reason" in chunk


def _is_generate(chunk: Chunk) -> bool:
    named = "modelVersion" in chunk or "promptFeedback" in chunk
    return isinstance(chunk.get("candidates"), list) or ("usageMetadata" in chunk and named)


def _is_interaction(chunk: Chunk) -> bool:
    if str(chunk.get("event_type")).startswith("interaction."):
        return isinstance(chunk.get("interaction"), dict)
    return chunk.get("object") == "interaction"


def _is_responses(chunk: Chunk) -> bool:
    return str(chunk.get("type")).startswith("response.") or chunk.get("object") == "response"


def _is_ollama(chunk: Chunk) -> bool:
    return isinstance(chunk.get("done"), bool) and isinstance(chunk.get("message"), dict)


def _is_chat(chunk: Chunk) -> bool:
    return isinstance(chunk.get("choices"), list)


_SIGNS: Mapping[str, Callable[[Chunk], bool]] = MappingProxyType(
    {
        "anthropic-messages": _is_messages,
        "bedrock-converse": _is_converse,
        "cohere-v2": _is_cohere,
        "google-generate": _is_generate,
        "google-interactions": _is_interaction,
        "openai-responses": _is_responses,
        "ollama-chat": _is_ollama,
        "openai-chat": _is_chat,
    }
)
