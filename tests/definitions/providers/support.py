"""Reading a response in tests: fed whole or cut, and told as plain JSON.

Other formats use it as well. Not here: tests, and what a format's chunks look like.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any

from hypothesis import strategies as st

from assembler.codec import plain
from assembler.engine.assembler import Assembler
from definitions.catalog import catalog
from definitions.providers import Piece, Response, adapter

__all__ = [
    "broken_off",
    "chunks_in",
    "cuts",
    "emitted",
    "json_values",
    "named",
    "read",
    "sound",
    "spoilt",
    "spoilt_stream",
    "texts",
    "told",
]


def read(
    provider: str, chunks: Iterable[object], *, in_use: Container[str] = ()
) -> tuple[list[Piece], Response]:
    reads = adapter(provider, conversation="c1", attempt="a1", in_use=in_use)
    pieces = [piece for chunk in chunks for piece in reads.feed(chunk)]
    return pieces, reads.finish()


def told(pieces: list[Piece], response: Response) -> Any:
    """All that came out, as plain JSON values: for comparing two ways of reading."""
    return plain(
        {
            "pieces": [{"type": piece.type, "data": piece.data} for piece in pieces],
            "why": response.why,
            "content": response.content,
            "stop": [response.stop_reason, response.stop_detail],
            "usage": response.usage,
            "source": response.source,
            "calls": [call.to_json() for call in response.calls],
            "ran": [{"type": ran.type, "data": ran.data} for ran in response.ran],
            "incidents": [[odd.kind, odd.call_id] for odd in response.incidents],
        }
    )


def named(pieces: Iterable[Piece]) -> list[tuple[str, str]]:
    """The announcements, in order: call id and name."""
    return [
        (piece.data["call_id"], piece.data["name"])
        for piece in pieces
        if piece.type == "tool-call" and "name" in piece.data
    ]


def texts(pieces: Iterable[Piece], type: str = "text") -> str:
    return "".join(piece.data["text"] for piece in pieces if piece.type == type)


def emitted(pieces: Iterable[Piece]) -> Assembler:
    """An Assembler with the whole catalog that has taken the pieces; it refuses what is none."""
    assembler = Assembler(catalog(), strict=True)
    for ordinal, piece in enumerate(pieces):
        envelope = {"attempt": "a1", "turn": 1, "step": 1, "ordinal": ordinal, "index": ordinal + 1}
        assembler.emit({**envelope, "type": piece.type, "data": piece.data})
    assembler.flush()
    return assembler


def sound(provider: str, chunks: Iterable[object]) -> None:
    """Whatever the chunks are: nothing raises, what comes out can be shown and told, and each call
    has an id of its own and either its arguments or a reason."""
    pieces, response = read(provider, chunks)
    emitted(pieces)
    told(pieces, response)
    for each in response.calls:
        assert each.call_id
        assert each.ready is (each.why is None)
        assert each.ready is (each.arguments is not None)
    assert len({each.call_id for each in response.calls}) == len(response.calls)


def chunks_in(data: bytes) -> list[Any]:
    """The chunks of a recorded body, read naively: `data:` lines, or one JSON value a line."""
    found = []
    for line in data.decode().splitlines():
        payload = line.removeprefix("data:").strip()
        if payload.startswith("{"):
            try:
                found.append(json.loads(payload))
            except ValueError:
                continue
    return found


def cuts(data: bytes, every: int) -> Iterator[list[bytes]]:
    """The bytes in two parts, cut at every so many; in lines; and byte by byte when it is short."""
    for at in range(1, len(data), every):
        yield [data[:at], data[at:]]
    yield data.splitlines(keepends=True)
    if len(data) <= 3_000:
        yield [data[at : at + 1] for at in range(len(data))]


def broken_off(provider: str, chunks: list[Any], whole_at: Iterable[int] = ()) -> None:
    """Broken off anywhere, no call of the answer is ready."""
    ends = {len(chunks), *whole_at}
    for count in range(len(chunks)):
        _, response = read(provider, chunks[:count])
        if count not in ends:
            assert response.why == "no-terminal", count
            assert not any(call.ready for call in response.calls), count


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
"""What a careless server may put anywhere: lone surrogates and endless numbers too."""


@st.composite
def spoilt_stream(draw: st.DrawFn, chunks: list[Any]) -> list[Any]:
    """The chunks of a stream, some of them spoilt, lost or sent twice."""
    sent = []
    odd = draw(st.sets(st.integers(0, len(chunks) - 1), max_size=5))
    for at, chunk in enumerate(chunks):
        kinds = draw(st.sampled_from(["spoilt", "lost", "twice"])) if at in odd else ""
        if kinds == "spoilt":
            sent.append(draw(spoilt(chunk).filter(lambda each: isinstance(each, Mapping))))
        elif kinds == "twice":
            sent += [chunk, chunk]
        elif kinds == "":
            sent.append(chunk)
    return sent


def spoilt(chunk: Any) -> st.SearchStrategy[Any]:
    """A chunk with fields missing, null, of a wrong type, or repeated somewhere inside."""
    if isinstance(chunk, Mapping):
        kept = {name: _field(spoilt(value)) for name, value in chunk.items()}
        return st.fixed_dictionaries(kept).map(_without_missing)
    if isinstance(chunk, list):
        return st.tuples(*map(spoilt, chunk)).map(list).flatmap(_repeated)
    return st.just(chunk) | json_values


class _Missing:
    pass


_MISSING = _Missing()


def _field(sound: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    odd: Callable[[], st.SearchStrategy[Any]] = lambda: st.just(_MISSING) | json_values  # noqa: E731
    return st.integers(0, 9).flatmap(lambda dice: odd() if dice == 0 else sound)


def _without_missing(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not _MISSING}


def _repeated(items: list[Any]) -> st.SearchStrategy[list[Any]]:
    return st.just(items) | st.just(items + items[:1])
