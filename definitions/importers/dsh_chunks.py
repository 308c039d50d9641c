"""Chunks of a session log: what streams said, one by one or packed, as deltas of attempts.

Here lives one function for each type of chunk. One without a counterpart becomes a delta of its
own type, as does `finish`, whose failure may be told nowhere else. Not here: which attempt of a
step takes them (`dsh_log`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import evolve

from definitions.importers.dsh_log import Attempt, Log, Operation, Record
from definitions.importers.dsh_values import block_of, place_of, usage_of
from definitions.importers.reading import Data, Fields

__all__ = ["CHUNKS"]


def _chunk(log: Log, record: Record) -> Iterator[Operation]:
    data = record.data
    chunk = data.inner("chunk")
    place = place_of(data)
    yield from log.streaming(place)
    handle = _KINDS.get(chunk.text("type"), _other_chunk)
    yield from handle(log, log.attempts[place], chunk)


def _other_chunk(log: Log, attempt: Attempt, chunk: Fields) -> Iterator[Operation]:
    yield log.delta(attempt, chunk.text("type"), {}, chunk.rest("type"))


def _block_start(log: Log, attempt: Attempt, chunk: Fields) -> Iterator[Operation]:
    told = {"block": chunk.integer("index"), "block_type": chunk.text("blockType")}
    yield log.delta(attempt, "block-start", told, chunk.rest("type", "index", "blockType"))


def _fragment(log: Log, attempt: Attempt, chunk: Fields) -> Iterator[Operation]:
    block = chunk.integer("index")
    kind = chunk.text("type").removesuffix("-delta")
    text = attempt.whole(block, chunk.fragment("text"))
    yield log.delta(attempt, kind, {"block": block, "text": text}, chunk.rest("type", "index"))


def _call_fragment(log: Log, attempt: Attempt, chunk: Fields) -> Iterator[Operation]:
    block = chunk.integer("index")
    text = attempt.whole(block, chunk.fragment("argumentsDelta"))
    rest = chunk.rest("type", "index", "id", "name", "argumentsDelta")
    call_id = chunk.text("id")
    told = _announced(attempt, block, call_id, chunk.values.get("name"))
    yield log.delta(attempt, "tool-call", {**told, "arguments": text}, rest)


def _announced(attempt: Attempt, block: int, call_id: str, name: Any) -> Data:
    """Name the call of a fragment; what the tool is called is told once, and when it changes."""
    named = {}
    if isinstance(name, str) and name and attempt.names.get(call_id) != name:
        named["name"] = name
    attempt.names[call_id] = named.get("name", attempt.names.get(call_id))
    return {"block": block, "call_id": call_id, **named}


def _block_end(log: Log, attempt: Attempt, chunk: Fields) -> Iterator[Operation]:
    block = chunk.integer("index")
    value = block_of(chunk.inner("block"))
    attempt.halves.pop(block, None)
    if value["type"] == "tool-call" and value["call_id"] not in attempt.names:
        # The end of a block starts nothing, and this call was not told before.
        told = _announced(attempt, block, value["call_id"], value["name"])
        yield log.delta(attempt, "tool-call", {**told, "arguments": value["arguments"]}, {})
    told = {"block": block, "value": value}
    yield log.delta(attempt, "block-end", told, chunk.rest("type", "index"))


def _usage_chunk(log: Log, attempt: Attempt, chunk: Fields) -> Iterator[Operation]:
    attempt.usage = usage_of(chunk)
    yield log.delta(attempt, "usage", attempt.usage, chunk.rest("type"))


def _finish(log: Log, attempt: Attempt, chunk: Fields) -> Iterator[Operation]:
    attempt.finish = chunk.inner("reason").text("kind")
    yield log.delta(attempt, "finish", {}, chunk.rest("type"))
    # The answer of a stream that came to its end takes the place of its deltas: they stay until
    # it is there. A failed one has none.
    if attempt.outcome() == "failed":
        yield from log.settle(attempt, "failed")


def _packed(log: Log, record: Record) -> Iterator[Operation]:
    """Unpack one record into the chunks that it stands for; `dt` is what lies between them."""
    data = record.data
    key, kind, fragment = _PACKED[record.type]
    place = place_of(data)
    yield from log.streaming(place)
    texts = data.texts(key)
    if not texts:
        raise data.fault(key, "at least one text")
    times = _times(log.now, data.integers("dt"), len(texts))
    handle = _KINDS[kind]
    same = {"type": kind, **data.rest("turn", "step", "dt", key)}
    for text, log.now in zip(texts, times, strict=True):
        chunk = evolve(data, values={**same, fragment: text})
        yield from handle(log, log.attempts[place], chunk)
    log.number += len(texts) - 1


def _times(now: int | None, between: list[int], count: int) -> list[int | None]:
    if now is None:
        return [None] * count
    gaps = [*between, *[0] * count][: count - 1]
    times: list[int | None] = [now]
    for gap in gaps:
        now += gap
        times.append(now)
    return times


# One function for each type of chunk.
_KINDS: Mapping[str, Callable[[Log, Attempt, Fields], Iterator[Operation]]] = {
    "block-start": _block_start,
    "text-delta": _fragment,
    "reasoning-delta": _fragment,
    "tool-call-delta": _call_fragment,
    "block-end": _block_end,
    "usage": _usage_chunk,
    "finish": _finish,
}

# type -> the field of its texts, the chunk that each of them is, and where that chunk has it
_PACKED: Mapping[str, tuple[str, str, str]] = {
    "text-chunks": ("texts", "text-delta", "text"),
    "reasoning-chunks": ("texts", "reasoning-delta", "text"),
    "tool-call-chunks": ("args", "tool-call-delta", "argumentsDelta"),
}

CHUNKS: Mapping[str, Callable[[Log, Record], Iterator[Operation]]] = {
    "assistant/chunk": _chunk,
    "text-chunks": _packed,
    "reasoning-chunks": _packed,
    "tool-call-chunks": _packed,
}
