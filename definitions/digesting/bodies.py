"""What a recorded file is, by what stands in it, and its chunks read as simply as can be.

The reading here is independent of the adapters' own, so that the two can be compared: it takes the
whole file, and neither cuts nor repairs. Not here: what a chunk says (`definitions.providers`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from definitions.providers import formats

__all__ = ["EXCHANGE", "LOG", "PROVIDERS", "RECORDED", "Body", "Chunk", "body", "format_of"]

Chunk = Mapping[str, Any]

EXCHANGE = "exchange"
LOG = "dsh-session"
RECORDED = "gemini-cli-responses"

PROVIDERS = formats.FORMATS
"""The adapter of each format of streams."""

_NOT_BLANK = re.compile(r"\S")
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
    lost = sum(value is None and payload.lstrip()[:1] == b"{" for payload, value in values)
    if (lost or not chunks) and data[:1] in (b"[", b"{"):
        return _one_behind_another(data) or Body(chunks, lost)
    return Body(chunks, lost)


def _one_behind_another(data: bytes) -> Body | None:
    """Read values that are broken into lines as their writer liked; None when it is not that."""
    text, at, found = data.decode("utf-8", "replace"), 0, list[Any]()
    decoder = json.JSONDecoder()
    while (begins := _NOT_BLANK.search(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, begins.start())
        except (ValueError, RecursionError):
            return None
        found += value if isinstance(value, list) else [value]
    return Body(tuple(each for each in found if isinstance(each, dict)))


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
        if _is_exchange(chunk):
            return EXCHANGE
        if _is_log(chunk):
            return LOG
        if _is_recorded(chunk):
            return RECORDED
        if (name := formats.format_of((chunk,))) is not None:
            return name
    return None


def _is_exchange(chunk: Chunk) -> bool:
    return isinstance(chunk.get("request"), dict) and isinstance(chunk.get("response"), str)


def _is_log(chunk: Chunk) -> bool:
    return chunk.get("type") == "session" and isinstance(chunk.get("createdAt"), int)


def _is_recorded(chunk: Chunk) -> bool:
    return isinstance(chunk.get("method"), str) and isinstance(chunk.get("response"), dict | list)
