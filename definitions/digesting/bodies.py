"""What a recorded file is, by what stands in it, and its chunks read as simply as can be.

The reading here is independent of the adapters' own, so that the two can be compared: it takes the
whole file, and neither cuts nor repairs. Not here: what a chunk says (`definitions.providers`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from msgspec import Struct

__all__ = ["EXCHANGE", "LOG", "PROVIDERS", "Body", "Chunk", "body", "format_of"]

Chunk = Mapping[str, Any]

EXCHANGE = "exchange"
LOG = "dsh-session"

PROVIDERS: Mapping[str, str] = MappingProxyType(
    {
        "anthropic-messages": "anthropic",
        "google-generate": "gemini",
        "google-interactions": "gemini_interactions",
        "ollama-chat": "ollama",
        "openai-chat": "openai_chat",
        "openai-responses": "openai_responses",
    }
)
"""The adapter of each format of streams."""

_BOM = b"\xef\xbb\xbf"
_LOOKED_AT = 5
"""So many chunks are looked at; the first of a stream may be a sign of life."""


class Body(Struct, frozen=True):
    """The objects of a file, in order. `lost`: payloads that begin as an object and are none."""

    chunks: tuple[Chunk, ...]
    lost: int = 0


def body(data: bytes) -> Body:
    """Read a file of JSON, of JSON lines, or an event stream. Never raises; linear."""
    data = data.removeprefix(_BOM).strip()
    if data[:1] in (b"[", b"{"):
        whole = _read(data)
        if isinstance(whole, list):
            return Body(tuple(each for each in whole if isinstance(each, dict)))
        if isinstance(whole, dict):
            return Body((whole,))
    payloads = list(data.splitlines() if data[:1] == b"{" else _payloads(data))
    values = [(payload, _read(payload)) for payload in payloads]
    chunks = tuple(value for _, value in values if isinstance(value, dict))
    lost = [value is None and payload.lstrip()[:1] == b"{" for payload, value in values]
    return Body(chunks, sum(lost))


def _payloads(data: bytes) -> Iterator[bytes]:
    """The data of each event of an event stream."""
    held: list[bytes] = []
    for line in [*data.splitlines(), b""]:
        if line.startswith(b"data:"):
            held.append(line.removeprefix(b"data:"))
        elif not line and held:
            yield b"\n".join(held)
            held = []


def _read(payload: bytes) -> Any:
    try:
        return json.loads(payload)
    except (ValueError, RecursionError):
        return None


def format_of(chunks: tuple[Chunk, ...]) -> str | None:
    """Give the name of a format that is read here; None for whatever else it is."""
    for chunk in chunks[:_LOOKED_AT]:
        for name, fits in _SIGNS.items():
            if fits(chunk):
                return name
    return None


def _is_exchange(chunk: Chunk) -> bool:
    return isinstance(chunk.get("request"), dict) and isinstance(chunk.get("response"), str)


def _is_log(chunk: Chunk) -> bool:
    return chunk.get("type") == "session" and isinstance(chunk.get("createdAt"), int)


def _is_messages(chunk: Chunk) -> bool:
    if chunk.get("type") == "message_start":
        return isinstance(chunk.get("message"), dict)
    return chunk.get("type") == "message" and isinstance(chunk.get("content"), list)


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
        EXCHANGE: _is_exchange,
        LOG: _is_log,
        "anthropic-messages": _is_messages,
        "google-generate": _is_generate,
        "google-interactions": _is_interaction,
        "openai-responses": _is_responses,
        "ollama-chat": _is_ollama,
        "openai-chat": _is_chat,
    }
)
