"""One recorded answer, read in every way that a network may cut it, and held against itself.

What is compared: all that comes out of the adapter for each way of feeding it; what was said while
the answer came, with what it was in the end; and that with a second, plain reading. Not
here: what others say of the file (`listing`, `histories`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from assembler.codec import plain
from assembler.engine.values import same
from assembler.plugins import Odd
from definitions.digesting.bodies import PROVIDERS, Body
from definitions.digesting.plainly import Plain, plainly
from definitions.providers import Call, Piece, Response, adapter
from definitions.providers.reading import mapping

__all__ = ["Answer", "read_answer", "text_of"]

_PART = 997
"""Bytes in a part of one of the ways; a prime, so that no line's length goes into it."""
_SHORT = 2_000
"""A body of so many bytes is read byte by byte as well."""
_LAST_WORD = b"[DONE]"


class Answer(Struct, frozen=True):
    """What one body said, and what was odd about it. `where` is its place in the file."""

    where: str
    format: str
    body: Body
    response: Response
    odd: tuple[Odd, ...] = ()
    is_confirmed: bool = False
    """Whether the plain reading could read all of it, and says the same."""


def read_answer(name: str, data: bytes, found: Body, where: str = "") -> Answer:
    """Read a body of the format `name` in every way."""
    data += b"\n\n"  # a file may lack the end of its last line, which a stream has
    pieces, response = _read(name, [data])
    whole = _told(pieces, response)
    plain_reading = plainly(name, found.chunks)
    doubts = list(_doubts(where, response, plain_reading))
    odd = [*doubts, *_itself(where, pieces, response), *_findings(where, found, response)]
    for way, parts in _ways(data, found):
        other = _read(name, parts)
        told = _told(*other)
        kind = _outside(data, found, other[1]) if way == "decoded" else ""
        odd += [
            Odd(where, f"{field}, {way}", value, told[field], kind)
            for field, value in whole.items()
            if not same(value, told[field])
        ]
    is_confirmed = response.whole and not doubts and not plain_reading.is_partial
    return Answer(where, name, found, response, tuple(odd), is_confirmed)


def _read(name: str, parts: Iterable[object]) -> tuple[list[Piece], Response]:
    reads = adapter(PROVIDERS[name], conversation="digest", attempt="digest")
    pieces = [piece for part in parts for piece in reads.feed(part)]
    return pieces, reads.finish()


def _ways(data: bytes, found: Body) -> Iterator[tuple[str, Iterable[object]]]:
    yield "line by line", data.splitlines(keepends=True)
    for cut in (len(data) // 3, len(data) * 4 // 5):
        yield f"cut at byte {cut}", [data[:cut], data[cut:]]
    part = 1 if len(data) <= _SHORT else _PART
    yield f"{part} bytes at a time", [data[at : at + part] for at in range(0, len(data), part)]
    yield "decoded", found.chunks


def _told(pieces: Iterable[Piece], response: Response) -> Mapping[str, Any]:
    """Give all that came out, field by field, as JSON."""
    return {
        "pieces": plain([[piece.type, piece.data] for piece in pieces]),
        "why": response.why,
        "content": plain(response.content),
        "finish": [response.stop_reason, response.stop_detail],
        "usage": plain(response.usage),
        "source": plain(response.source),
        "calls": [call.to_json() for call in response.calls],
        "ran": plain([[ran.type, ran.data] for ran in response.ran]),
        "incidents": [[odd.kind, odd.call_id] for odd in response.incidents],
    }


def _outside(data: bytes, found: Body, decoded: Response) -> str:
    """Say why decoded chunks may tell less than the bytes they came in."""
    if found.lost:
        return "lost-chunk"
    if decoded.why == "no-terminal" and _LAST_WORD in data[-4 * len(_LAST_WORD) :]:
        return "last-word"
    return ""


def _findings(where: str, found: Body, response: Response) -> Iterator[Odd]:
    """Whatever is odd in the file itself."""
    if found.lost:
        yield Odd(where, "chunks", "JSON", f"{found.lost} that cannot be read", "lost-chunk")
    if response.why is not None:
        yield Odd(where, "why", None, response.why, "not-whole")
    for call in response.calls if response.whole else ():
        if call.why is not None:
            yield Odd(where, f"call {call.call_id}", None, call.why, "not-ready")
    for odd in response.incidents:
        yield Odd(where, f"call {odd.call_id}", None, odd.kind, "incident")


def _doubts(where: str, response: Response, plainer: Plain) -> Iterator[Odd]:
    """Compare with the plain reading. What broke off is left out: it may not show all it had."""
    if not (response.whole or response.cut):
        return
    told: list[tuple[str, Any, Any]] = [
        ("text", plainer.text, text_of(response)),
        ("reasoning", plainer.reasoning, text_of(response, "reasoning")),
    ]
    if response.whole:
        tokens = mapping(plain(response.usage)).get("output_tokens")
        told.append(("finish", plainer.finish, response.stop_detail or ""))
        told.append(("output tokens", plainer.tokens, tokens))
        if not plainer.is_partial:
            ours = [call for call in response.calls if call.ran_by == "host"]
            told.append(("calls", *_sure(plainer.calls, ours)))
    for field, plainly_read, read in told:
        if not same(plainly_read, read):
            kind = "incident" if field == "calls" and response.incidents else ""
            yield Odd(where, f"{field}, read plainly", plainly_read, read, kind)


def _sure(plainly_read: list[list[Any]], calls: list[Call]) -> tuple[list[Any], list[Any]]:
    """Give what both say of the calls; nothing of arguments that the adapter itself doubts."""
    theirs = [
        [name, arguments if at >= len(calls) or calls[at].ready else None]
        for at, (name, arguments) in enumerate(plainly_read)
    ]
    return theirs, [[call.name, call.arguments] for call in calls]


def _itself(where: str, pieces: list[Piece], response: Response) -> Iterator[Odd]:
    """Compare what was said while the answer came with what it was in the end."""
    for kind in ("text", "reasoning"):
        told = "".join(piece.data["text"] for piece in pieces if piece.type == kind)
        if told != (settled := text_of(response, kind)):
            yield Odd(where, kind, told, settled)
    usages = [piece.data["usage"] for piece in pieces if piece.type == "usage"]
    if usages and not same(usages[-1], response.usage):
        yield Odd(where, "usage", plain(usages[-1]), plain(response.usage))
    yield from _told_calls(where, pieces, response)


def text_of(response: Response, kind: str = "text") -> str:
    """Give the text or the reasoning of an answer."""
    return "".join(str(block["text"]) for block in response.content if block["type"] == kind)


def _told_calls(where: str, pieces: list[Piece], response: Response) -> Iterator[Odd]:
    names: dict[str, Any] = {}
    arguments: dict[str, str] = {}
    for data in (piece.data for piece in pieces if piece.type == "tool-call"):
        call_id = data["call_id"]
        names[call_id] = data.get("name", names.get(call_id))
        arguments[call_id] = arguments.get(call_id, "") + data["arguments"]
    settled = {call.call_id: call.name for call in response.calls if call.call_id in names}
    if list(settled.items()) != list(names.items()):
        yield Odd(where, "calls", names, settled)
    doubted = {odd.call_id for odd in response.incidents}
    for call in response.calls:
        kind = "incident" if call.call_id in doubted else ""
        told = arguments.get(call.call_id, call.arguments_text)
        for text in (call.arguments_text, told) if call.ready else ():
            if not same(value := _parsed(text), call.arguments):
                yield Odd(where, f"arguments of {call.call_id}", value, call.arguments, kind)


def _parsed(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except (ValueError, RecursionError):
        return text
