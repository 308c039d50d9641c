"""Bytes of a stream, cut anywhere -> the payloads in it: an event stream (SSE), or JSON.

Lines are cut as bytes and read whole, so that no cut can be seen. Linear in the bytes. The rules
of an event stream are those of WHATWG HTML, "Server-sent events", with one leniency: what stands
at the very end without its blank line is given as well. Not here: what a payload says (`chunks`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Protocol

from msgspec import Struct

__all__ = ["Frame", "Frames"]

_BOM = b"\xef\xbb\xbf"
_NOTHING_YET = re.compile(rb"\A(?:[ \t\r\n]|" + _BOM + rb")+")
_STRUCTURE = re.compile(rb'["\\{}\[\]]')


class Frame(Struct, frozen=True, gc=False):
    """One payload as its bytes, and the name of its event where the stream gives one."""

    raw: bytes
    event: str | None = None

    @property
    def data(self) -> str:
        """The payload as text."""
        return _decoded(self.raw)


class _Framing(Protocol):
    def feed(self, data: bytes) -> list[Frame]: ...

    def rest(self) -> list[Frame]: ...


class Frames:
    """The payloads of one stream. What it is, its first byte that is no blank says.

    `[`: one JSON array, an element is a payload; `{`: JSON, one value a line, or one value on many
    lines, the first of them `{` and the last `}`; else an event stream.
    """

    __slots__ = ("_framing", "_opening")

    def __init__(self) -> None:
        self._opening = b""
        self._framing: _Framing | None = None

    def feed(self, data: bytes) -> list[Frame]:
        """Give the payloads that are whole now."""
        if self._framing is None:
            data = _NOTHING_YET.sub(b"", self._opening + data)
            if len(data) < len(_BOM) and _BOM.startswith(data):
                self._opening = data
                return []
            self._framing = _framing_of(data[:1])
        return self._framing.feed(data)

    def rest(self) -> list[Frame]:
        """The stream is over: give what stands at its end."""
        return [] if self._framing is None else self._framing.rest()


def _framing_of(first: bytes) -> _Framing:
    if first == b"[":
        return _Elements()
    return _JsonLines() if first == b"{" else _EventStream()


class _Lines:
    """Whole lines out of bytes. A carriage return at their end may be half of a line's end."""

    __slots__ = ("_after_cr", "_parts")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._after_cr = False

    def feed(self, data: bytes) -> list[bytes]:
        if self._after_cr and data:
            data, self._after_cr = data.removeprefix(b"\n"), False
        if not data:
            return []
        lines = data.splitlines()  # of bytes: at CRLF, LF and CR alone
        last = data[-1:]
        self._after_cr = last == b"\r"
        unended = lines.pop() if last not in b"\r\n" else b""
        if lines and self._parts:
            lines[0] = b"".join((*self._parts, lines[0]))
            self._parts = []
        if unended:
            self._parts.append(unended)
        return lines

    def rest(self) -> bytes:
        line = b"".join(self._parts)
        self._parts = []
        return line


def _decoded(line: bytes) -> str:
    """Read UTF-8; halves of surrogate pairs, cut as text, are kept for whoever joins them."""
    try:
        return line.decode()
    except UnicodeDecodeError:
        try:
            return line.decode("utf-8", "surrogatepass")
        except UnicodeDecodeError:
            return line.decode("utf-8", "replace")


class _EventStream:
    __slots__ = ("_data", "_event", "_lines")

    def __init__(self) -> None:
        self._lines = _Lines()
        self._data: list[bytes] = []
        self._event: str | None = None

    def feed(self, data: bytes) -> list[Frame]:
        return self._take(self._lines.feed(data))

    def rest(self) -> list[Frame]:
        return self._take((self._lines.rest(), b""))

    def _take(self, lines: Iterable[bytes]) -> list[Frame]:
        frames = []
        for line in lines:
            if not line:
                if self._data:
                    frames.append(Frame(b"\n".join(self._data), self._event))
                    self._data = []
                self._event = None
                continue
            # A comment has no name; a byte order mark stands where streams were joined.
            name, _, value = line.removeprefix(_BOM).partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
            elif name == b"event":
                self._event = _decoded(value.removeprefix(b" ")) or None
        return frames


class _JsonLines:
    __slots__ = ("_lines", "_value")

    def __init__(self) -> None:
        self._lines = _Lines()
        self._value: list[bytes] = []

    def feed(self, data: bytes) -> list[Frame]:
        return [frame for line in self._lines.feed(data) for frame in self._take(line)]

    def rest(self) -> list[Frame]:
        return [*self._take(self._lines.rest())]

    def _take(self, line: bytes) -> Iterator[Frame]:
        if self._value or line.rstrip() == b"{":  # an answer that was not streamed, indented
            self._value.append(line)
            if line.rstrip() != b"}":
                return
            line = b"\n".join(self._value)
            self._value = []
        if line:
            yield Frame(line)


class _Elements:
    """The objects of one array, found by their brackets; what stands between them is nothing."""

    __slots__ = ("_depth", "_escaped", "_in_string", "_parts")

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._depth = 0
        self._in_string = self._escaped = False

    def feed(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if not data:
            return frames
        start, at = 0, 0
        if self._escaped:
            self._escaped, at = False, 1
        while (found := _STRUCTURE.search(data, at)) is not None:
            at = found.end()
            sign = found[0]
            if sign == b"\\":
                at += 1  # whatever it is, it is a part of its string
                self._escaped = at > len(data)
            elif sign == b'"':
                self._in_string = not self._in_string
            elif self._in_string:
                continue
            elif sign in b"{[":
                self._depth += 1
                if self._depth == 2:  # noqa: PLR2004 - an element of the array
                    start = found.start()
            else:
                self._depth -= 1
                if self._depth == 1:
                    self._parts.append(data[start:at])
                    frames.append(self._whole())
        if self._depth > 1:
            self._parts.append(data[start:])
        return frames

    def rest(self) -> list[Frame]:
        return []

    def _whole(self) -> Frame:
        element = b"".join(self._parts)
        self._parts = []
        return Frame(element)
