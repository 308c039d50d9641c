"""Whatever a backend has in its hands -> decoded chunks, each a JSON object.

Bytes and text of a stream, cut anywhere; decoded JSON; objects of a provider's SDK, told by what
they can do and never by importing it. Not here: what a chunk says (the adapters).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import DecodeError, Struct
from msgspec import json as quick_json

from definitions.providers.framing import Frame, Frames

__all__ = ["Chunk", "Chunks"]

_quick = quick_json.Decoder().decode
_LAST_WORD = "[DONE]"
_BYTE_ORDER_MARK = "\ufeff"
_ERROR = "error"
"""The event whose payload counts even when it is mere text."""


class Chunk(Struct, frozen=True):
    """One decoded chunk. `event` is the name that an event stream gave it.

    `data` None: something that was to be an object and cannot be read; there may be a hole.
    `is_last_word`: none at all, the stream says that it is over (`[DONE]`).
    """

    data: Mapping[str, Any] | None
    event: str | None = None
    is_last_word: bool = False


class Chunks:
    """The chunks of one response."""

    __slots__ = ("_frames",)

    def __init__(self) -> None:
        self._frames = Frames()

    def feed(self, given: object) -> Iterator[Chunk]:
        """Give the chunks that are whole now; `TypeError` for what no provider can have given."""
        if isinstance(given, (bytes, bytearray, memoryview)):
            return _read(self._frames.feed(bytes(given)))
        if isinstance(given, str):
            return _read(self._frames.feed(given.encode("utf-8", "surrogatepass")))
        if isinstance(given, (list, tuple)):
            return (chunk for one in given for chunk in self.feed(one))
        return iter(()) if given is None else iter((_decoded(given),))

    def rest(self) -> Iterator[Chunk]:
        """Nothing follows: give what stands whole at the end of the bytes."""
        return (chunk for chunk in _read(self._frames.rest()) if chunk.data is not None)


def _read(frames: Iterable[Frame]) -> Iterator[Chunk]:
    return filter(None, map(_parsed, frames))


def _parsed(frame: Frame) -> Chunk | None:
    """Read a payload; None for what was not meant to be an object (a sign of life).

    The quick reader refuses what no JSON may hold (half characters, endless numbers); the patient
    one reads whatever a server may have written.
    """
    try:
        value = _quick(frame.raw)
    except (DecodeError, RecursionError):
        return _patiently_parsed(frame)
    return Chunk(value, frame.event) if type(value) is dict else _patiently_parsed(frame)


def _patiently_parsed(frame: Frame) -> Chunk | None:
    data = frame.data
    if data.strip() == _LAST_WORD:
        return Chunk({}, frame.event, is_last_word=True)
    try:
        value = json.loads(data.removeprefix(_BYTE_ORDER_MARK))
    except (ValueError, RecursionError):
        if frame.event != _ERROR:  # where its beginning is lost, the rest still tells an object
            return Chunk(None, frame.event) if "{" in data or "}" in data else None
        value = data
    if frame.event == _ERROR and not isinstance(value, dict):
        value = {"error": value}
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return Chunk(None, frame.event)  # nobody says what several at once would mean
    return Chunk(value, frame.event) if isinstance(value, dict) else None


def _decoded(given: object) -> Chunk:
    """Read an object that somebody else has decoded."""
    if isinstance(given, Mapping):
        return Chunk(given)
    dump = getattr(given, "model_dump", None)
    if callable(dump):  # pydantic, and with it the SDKs of the big providers
        value = _dumped(dump)
        if isinstance(value, Mapping):
            return Chunk(value)
    for name in ("to_dict", "to_json_dict", "dict"):
        method = getattr(given, name, None)
        if callable(method):
            value = method()
            if isinstance(value, Mapping):
                return Chunk(value)
    payload = getattr(given, "data", None)
    if isinstance(payload, str):  # an event that a library took out of its stream
        raw = payload.encode("utf-8", "surrogatepass")
        return _parsed(Frame(raw, getattr(given, "event", None))) or Chunk({})
    msg = f"a chunk: expected bytes, text, an object of JSON or of an SDK, got {type(given)}"
    raise TypeError(msg)


def _dumped(dump: Any) -> Any:
    """Ask for what was really sent, under the names of the wire, as JSON."""
    try:
        return dump(mode="json", by_alias=True, exclude_unset=True, warnings=False)
    except (TypeError, ValueError):
        return dump()
