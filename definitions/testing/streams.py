"""Example streams of a provider for `check_provider`: in every form, cut, broken off, spoilt.

Not here: what an adapter must make of them (`adapters`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import partial
from types import SimpleNamespace
from typing import Any, Literal

from hypothesis import strategies as st
from msgspec import Struct

from definitions.providers.chunks import Chunk, Chunks

__all__ = ["Given", "Stream", "blanked", "kinds", "spoilings", "without_siblings"]

Given = bytes | Sequence[Mapping[str, Any]]
"""What an example is: bytes as they came over the wire, or decoded chunks."""

Path = tuple[str | int, ...]
Edit = Literal["missing", "null", "odd", "half", "twice"]

_WHOLE_MAX = 3_000
"""Bytes up to which a stream is also fed byte by byte."""
_CUTS = 24
_ENDS = 48


class Stream(Struct, frozen=True):
    """One response: its chunks, and its bytes where those were the example."""

    chunks: tuple[Chunk, ...]
    raw: bytes | None = None

    @classmethod
    def of(cls, given: Given) -> Stream:
        """Read an example; `ValueError` when something of it is no chunk."""
        if not isinstance(given, (bytes, bytearray)):
            return cls(tuple(Chunk(dict(data)) for data in given))
        reader = Chunks()
        chunks = (*reader.feed(given), *reader.rest())
        if not chunks or any(chunk.data is None for chunk in chunks):
            msg = f"an example stream: expected readable chunks, got {bytes(given[:80])!r}…"
            raise ValueError(msg)
        return cls(chunks, bytes(given))

    @property
    def decoded(self) -> list[Any]:
        return [_handed(chunk) for chunk in self.chunks]

    @property
    def wire(self) -> bytes:
        return self.raw if self.raw is not None else self._events("\n")

    def forms(self) -> Iterator[tuple[str, list[Any]]]:
        """The same response in each form that can carry it."""
        yield "decoded chunks", self.decoded
        yield "an event stream", [self._events("\n")]
        yield "an event stream with CRLF", [self._events("\r\n")]
        if all(_names_itself(chunk) for chunk in self.chunks):
            lines = "".join(f"{_payload(chunk)}\n" for chunk in self.chunks)
            yield "lines of JSON", [lines.encode()]

    def cuts(self) -> Iterator[tuple[str, list[bytes]]]:
        """Its bytes in two parts, in lines, and, when they are few, each alone."""
        data = self.wire
        for at in range(1, len(data), max(1, len(data) // _CUTS)):
            yield f"cut at byte {at}", [data[:at], data[at:]]
        yield "cut into lines", data.splitlines(keepends=True)
        if len(data) <= _WHOLE_MAX:
            yield "cut into bytes", [data[at : at + 1] for at in range(len(data))]

    def ends(self) -> list[int]:
        """How many chunks come before it breaks off: each count, or a sample and the last ones."""
        count = len(self.chunks)
        sample = range(0, count, max(1, count // _ENDS))
        return sorted({*sample, *range(max(0, count - 16), count)})

    def _events(self, line_end: str) -> bytes:
        lines = []
        for chunk in self.chunks:
            if chunk.event is not None:
                lines.append(f"event: {chunk.event}")
            lines += [f"data: {_payload(chunk)}", ""]
        return "".join(line + line_end for line in lines).encode()


def _handed(chunk: Chunk) -> Any:
    """A chunk as a backend has it in its hands: the object, or else the event it came in."""
    if _names_itself(chunk) and not chunk.is_last_word:
        return chunk.data
    return SimpleNamespace(data=_payload(chunk), event=chunk.event)


def _names_itself(chunk: Chunk) -> bool:
    """Whether the name of its event stands in it, or there is none."""
    data = chunk.data or {}
    return chunk.event is None or chunk.event in [
        value for value in data.values() if isinstance(value, str)
    ]


def _payload(chunk: Chunk) -> str:
    if chunk.is_last_word:
        return "[DONE]"
    told = json.dumps(chunk.data, ensure_ascii=False, separators=(",", ":"))
    # Half a surrogate pair has no bytes, only its escape.
    return told if _is_encodable(told) else json.dumps(chunk.data)


def _is_encodable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def kinds(stream: Stream) -> Iterator[int]:
    """The place of one chunk of each kind: those with the same fields and types are one."""
    seen = set()
    for at, chunk in enumerate(stream.chunks):
        shape = _shape(chunk.data)
        if not chunk.is_last_word and shape not in seen:
            seen.add(shape)
            yield at


def _shape(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ",".join(f"{name}:{_shape(item)}" for name, item in value.items())
        return f"{{{value.get('type')}|{inner}}}"
    if isinstance(value, list):
        return f"[{','.join(sorted({_shape(item) for item in value}))}]"
    return type(value).__name__


# -- spoilt chunks -------------------------------------------------------------------------

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(codec=None), max_size=6),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2)
    ),
    max_leaves=4,
)
"""What a careless server may put anywhere: half characters and endless numbers too."""


def spoilings(stream: Stream) -> st.SearchStrategy[list[Any]]:
    """The decoded chunks with some fields missing, null, of a wrong type, cut, or repeated."""
    places = [
        (at, path)
        for at, chunk in enumerate(stream.chunks)
        if not chunk.is_last_word
        for path in _paths(chunk.data)
    ]
    edits: list[Edit] = ["missing", "null", "odd", "odd", "half", "twice"]
    edit = st.tuples(st.sampled_from(places), st.sampled_from(edits), json_values)
    return st.lists(edit, min_size=1, max_size=5).map(lambda drawn: _spoilt(stream, drawn))


def _paths(value: Any, path: Path = ()) -> Iterator[Path]:
    yield path
    for name, item in _entries(value):
        yield from _paths(item, (*path, name))


def _entries(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        yield from value.items()
    elif isinstance(value, list):
        yield from enumerate(value)


def _spoilt(stream: Stream, drawn: list[tuple[tuple[int, Path], Edit, Any]]) -> list[Any]:
    chunks: list[list[Any]] = [[chunk] for chunk in deepcopy(stream.decoded)]
    for (at, path), edit, odd in drawn:
        if path:
            for chunk in chunks[at][:1]:
                _edit(chunk, path, edit, odd)
        elif edit == "twice":
            chunks[at] *= 2
        elif edit == "missing":
            chunks[at] = []
    return [chunk for some in chunks for chunk in some]


def _edit(chunk: Any, path: Path, edit: Edit, odd: Any) -> None:
    *way, last = path
    node = chunk
    for step in way:
        if step not in dict(_entries(node)):  # an earlier edit took it away
            return
        node = node[step]
    found = dict(_entries(node))
    if last not in found:
        return
    value = found[last]
    if edit == "missing":
        del node[last]
    elif edit == "twice" and isinstance(node, list):
        node.insert(int(last), deepcopy(value))
    elif edit == "half" and isinstance(value, str):
        node[last] = value + "\ud83d"
    else:
        node[last] = odd if edit == "odd" else None


def blanked(value: Any, odd: Any) -> Any:
    """The same fields, each end of them of another type: nothing is left that says what it did."""
    if isinstance(value, Mapping):
        return {name: blanked(item, odd) for name, item in value.items()}
    if isinstance(value, list):
        return [blanked(item, odd) for item in value]
    return None if value is None or type(odd) is type(value) else odd


def without_siblings(value: Any) -> Iterator[tuple[Any, Callable[[Any], Any]]]:
    """Each way to take one entry out of a list of several: the value without it, and a function
    that gives the value with something else in its place."""
    for path in _paths(value):
        items = value
        for step in path:
            items = items[step]
        if not isinstance(items, list) or len(items) < 2:  # noqa: PLR2004 - it has a sibling
            continue
        for at in range(len(items)):
            yield _replaced(value, path, at), partial(_replaced, value, path, at)


def _replaced(value: Any, path: Path, at: int, *instead: Any) -> Any:
    copied = deepcopy(value)
    items = copied
    for step in path:
        items = items[step]
    items[at : at + 1] = instead
    return copied
